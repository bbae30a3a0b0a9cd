//! What a drive does with its memory, on small disks whose times can be worked out by hand, and on
//! modern makes.

use levelhead_block::{Command, Durability, Effort, Outcome, ZeroTail};
use levelhead_drive::{CacheMode, Completion, Drive, Profile, Settings};
use levelhead_stats::Streams;
use levelhead_testkit::extent;
use levelhead_testkit::profiles::{CACHE_OF_TEN, Tiny};
use levelhead_units::{Instant, Nanos, Ratio};

use crate::support::{self, at, profile, read};

const TINY: Tiny = Tiny::buffered(CACHE_OF_TEN);

fn settings(cache: CacheMode, queue_depth: u32) -> Settings {
    Settings { queue_depth, cache, ..Settings::PLAIN }
}

fn tiny(cache: CacheMode) -> Drive {
    Drive::new(profile(TINY), settings(cache, 8), Streams::new(1), "drive/0")
        .unwrap()
        .with_angle(Ratio::ZERO)
}

fn make(name: &str, cache: CacheMode, queue_depth: u32) -> Drive {
    let profile = Profile::shipped(name).unwrap();
    Drive::new(profile, settings(cache, queue_depth), Streams::new(1), "drive/0").unwrap()
}

fn write(lba: u64, sectors: u64, durability: Durability) -> Command {
    Command::Write { extent: extent(lba, sectors), durability, zero_tail: ZeroTail::None }
}

fn micros(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

/// Runs one command that comes when the drive holds no other.
fn run(drive: &mut Drive, now: Instant, command: Command) -> Completion {
    support::run(drive, now, 7, command)
}

#[test]
fn reads_of_what_was_read_and_of_what_follows_take_the_overhead() {
    let mut drive = tiny(CacheMode::Read);
    // Sectors 2 and 3 pass from 2 to 4 ms; 4 to 11 are read ahead: 4 to 9 until 10 ms, and after
    // the switch to the next head, at 12 ms, 10 and 11 from 13 to 15 ms.
    assert_eq!(run(&mut drive, at(0), read(2, 2)).ended, at(4_000));
    assert_eq!(run(&mut drive, at(9_000), read(2, 5)).ended, at(9_500));
    assert_eq!(run(&mut drive, at(9_500), read(7, 1)).ended, at(10_000));
    // That one is not there yet: it has been read at 14 ms.
    assert_eq!(run(&mut drive, at(10_000), read(10, 1)).ended, at(14_000));
    // Each of these reads has moved the end of reading ahead on: to 19, which is read until 23 ms.
    assert_eq!(run(&mut drive, at(23_000), read(11, 8)).ended, at(23_500));
    // Sector 1 was not read before: from the medium, at 31 ms.
    assert_eq!(run(&mut drive, at(24_000), read(1, 1)).ended, at(32_000));
    let mut without = tiny(CacheMode::Off);
    run(&mut without, at(0), read(2, 2));
    assert!(run(&mut without, at(9_000), read(2, 2)).service > micros(2_000));
}

#[test]
fn a_read_elsewhere_stops_reading_ahead_where_the_arm_is() {
    let mut drive = tiny(CacheMode::Read);
    run(&mut drive, at(0), read(2, 2));
    // At 6 ms sectors 4 and 5 have been read.
    run(&mut drive, at(6_000), read(100, 1));
    let now = at(100_000);
    assert_eq!(run(&mut drive, now, read(4, 2)).service, micros(500));
    // Sector 6 has not: the rest of this read is the medium's.
    let done = run(&mut drive, at(200_000), read(5, 2));
    assert!(done.service > micros(1_500), "{done:?}");
}

#[test]
fn a_segment_is_given_up_for_a_new_stream_when_it_was_used_longest_ago() {
    let mut drive = tiny(CacheMode::Read);
    for (lba, now) in [(0, 0), (60, 100_000), (120, 200_000)] {
        run(&mut drive, at(now), read(lba, 1));
    }
    assert!(run(&mut drive, at(300_000), read(60, 1)).service == micros(500));
    assert!(run(&mut drive, at(400_000), read(120, 1)).service == micros(500));
    assert!(run(&mut drive, at(500_000), read(0, 1)).service > micros(500));
}

#[test]
fn small_sequential_reads_do_not_lose_a_revolution_each() {
    // 16 KiB at a time, one after the other and two inside the drive.
    let rate = |cache, depth| {
        let mut drive = make("nearline-2tb", cache, depth);
        let (mut now, mut id) = (Instant::ZERO, 0);
        let count = 4_000;
        let mut done = 0;
        while done < count {
            while drive.has_room() {
                drive.handle_submit(now, id, read(id * 4, 4), id);
                id += 1;
            }
            now = drive.deadline().unwrap();
            drive.handle_timeout(now);
            done += std::iter::from_fn(|| drive.poll()).count() as u64;
        }
        (count * 4 * 4096) as f64 / 1e6 / (now - Instant::ZERO).as_secs_f64()
    };
    let (alone, pair) = (rate(CacheMode::Read, 1), rate(CacheMode::Read, 2));
    let without = rate(CacheMode::Off, 1);
    eprintln!(
        "16 KiB reads: {without:.1} MB/s without a cache, {alone:.1} with, {pair:.1} in pairs"
    );
    assert!(without < 2.0);
    // 16 KiB for each overhead of 0.2 ms are 82 MB/s.
    assert!((alone / 81.9 - 1.0).abs() < 0.05, "{alone}");
    assert!((pair / 81.9 - 1.0).abs() < 0.05, "{pair}");
}

#[test]
fn random_reads_do_not_care_for_a_cache() {
    let mean = |cache| {
        let mut drive = make("nearline-2tb", cache, 1);
        let mut rng = Streams::new(3).stream("addresses");
        let (mut now, mut sum) = (Instant::ZERO, 0);
        for _ in 0..5_000 {
            let lba = rng.below(drive.size().get());
            let done = run(&mut drive, now, read(lba, 1));
            (now, sum) = (done.ended, sum + done.service.get());
        }
        sum as f64 / 5_000.0 / 1e6
    };
    let (with, without) = (mean(CacheMode::Read), mean(CacheMode::Off));
    assert!((with / without - 1.0).abs() < 0.01, "{with} and {without} ms");
}

#[test]
fn a_cached_write_ends_when_the_drive_has_it_and_reaches_the_medium_later() {
    let mut drive = tiny(CacheMode::WriteBack);
    let done = run(&mut drive, at(0), write(25, 2, Durability::Cached));
    assert_eq!((done.ended, done.outcome), (at(500), Outcome::GOOD));
    assert_eq!(drive.unwritten(at(600)), [extent(25, 2)]);
    // What was just written is in memory.
    assert_eq!(run(&mut drive, at(1_000), read(25, 2)).service, micros(500));
    // It goes to the medium 100 ms after the last command: a cylinder on until 103 ms; sectors 25 and
    // 26 have slots (3 + 4 + 5) % 10 and the next, and pass from 112 to 114 ms.
    assert_eq!(drive.unwritten(at(113_999)), [extent(25, 2)]);
    assert_eq!(drive.unwritten(at(114_000)), []);
}

#[test]
fn a_command_waits_for_what_is_being_written_back() {
    let mut drive = tiny(CacheMode::WriteBack);
    run(&mut drive, at(0), write(25, 2, Durability::Cached));
    // Writing back begins at 100.5 ms and ends at 104 ms.
    drive.handle_submit(at(101_000), 1, read(25, 1), 1);
    assert_eq!(drive.deadline(), Some(at(104_000)));
    drive.handle_submit(at(102_000), 2, read(26, 1), 2);
    drive.handle_timeout(at(104_000));
    // Both have to come from the medium: the one that passes first is first.
    assert_eq!(drive.unwritten(at(104_000)), []);
    drive.handle_timeout(at(200_000));
    let order: Vec<u64> = std::iter::from_fn(|| drive.poll()).map(|done| done.id).collect();
    assert_eq!(order, [1, 2]);
}

#[test]
fn a_durable_write_and_a_flush_leave_nothing_behind() {
    let mut drive = tiny(CacheMode::WriteBack);
    run(&mut drive, at(0), write(25, 2, Durability::Cached));
    // Over the same sectors and past the memory: cylinder 1 at 2.5 ms, slot 2 comes at 12 ms.
    let done = run(&mut drive, at(500), write(25, 2, Durability::Durable));
    assert_eq!(done.ended, at(14_000));
    assert_eq!(drive.unwritten(at(14_000)), []);
    run(&mut drive, at(14_000), write(25, 1, Durability::Cached));
    run(&mut drive, at(15_000), write(60, 1, Durability::Cached));
    assert_eq!(drive.unwritten(at(16_000)), [extent(25, 1), extent(60, 1)]);
    // From 23.5 ms on. The arm is at cylinder 1: sector 60, cylinder 3, is next inwards; 2.5 ms away,
    // slot (3 * 3 + 3 * 4) % 10 = 1 comes at 31 ms. Back at 34.5 ms; sector 25 comes at 42 ms.
    let done = run(&mut drive, at(16_000), Command::Flush);
    assert_eq!(done.ended, at(43_000));
    assert_eq!(drive.unwritten(at(43_000)), []);
    // Nothing to do: the overhead.
    assert_eq!(run(&mut drive, at(50_000), Command::Flush).service, micros(500));
}

#[test]
fn a_power_cut_loses_what_was_not_written_and_nothing_else() {
    let mut drive = tiny(CacheMode::WriteBack);
    run(&mut drive, at(0), write(25, 2, Durability::Cached));
    run(&mut drive, at(1_000), write(60, 1, Durability::Durable));
    let now = run(&mut drive, at(50_000), write(90, 3, Durability::Cached)).ended;
    drive.handle_submit(now, 1, read(150, 1), 1);
    drive.handle_submit(now, 2, read(151, 1), 2);
    let cut = now + micros(10);
    assert_eq!(drive.handle_power_cut(cut), [extent(25, 2), extent(90, 3)]);
    for id in [1, 2] {
        let done = drive.poll().unwrap();
        assert_eq!((done.id, done.outcome, done.ended), (id, Outcome::Gone, cut));
    }
    assert_eq!(drive.unwritten(cut), []);
    // It goes on, with an empty memory.
    assert!(run(&mut drive, at(100_000), read(25, 1)).service > micros(500));
    // In the middle of a flush, what has been written is safe.
    run(&mut drive, at(200_000), write(25, 2, Durability::Cached));
    run(&mut drive, at(201_000), write(190, 1, Durability::Cached));
    drive.handle_submit(at(210_000), 3, Command::Flush, 3);
    let (mut sizes, mut now) = (Vec::new(), at(210_000));
    while now < drive.deadline().unwrap_or(now) {
        sizes.push(drive.unwritten(now).len());
        now = now + micros(250);
    }
    sizes.dedup();
    assert_eq!(sizes, [2, 1]);
    assert_eq!(drive.unwritten(now), []);
}

/// D6, over random writes, flushes and cuts.
#[test]
fn what_a_power_cut_loses_was_never_promised() {
    let mut losses = 0;
    for seed in 0..300 {
        let mut rng = Streams::new(seed).stream("commands");
        let mut drive = tiny(CacheMode::WriteBack);
        let mut now = at(0);
        // Sectors whose last write was cached, and came after the last flush.
        let mut unsafe_sectors = [false; 200];
        let mut inside: Vec<(u64, Command)> = Vec::new();
        for id in 0..60 {
            now = now + rng.exponential(Nanos::from_millis(30));
            let extent = extent(rng.below(190), 1 + rng.below(8));
            let durability =
                if rng.below(4) == 0 { Durability::Durable } else { Durability::Cached };
            let zero_tail = ZeroTail::None;
            let command = match rng.below(6) {
                0 => Command::Flush,
                1 => Command::Read { extent, effort: Effort::Full },
                _ => Command::Write { extent, durability, zero_tail },
            };
            if drive.has_room() {
                // Under way, it is as unsafe as when it has been answered.
                if let Command::Write { extent, durability: Durability::Cached, .. } = command {
                    extent.iter().for_each(|lba| unsafe_sectors[lba.get() as usize] = true);
                }
                drive.handle_submit(now, id, command, id);
                inside.push((id, command));
            }
            if inside.len() > 1 && rng.below(3) > 0 {
                continue; // Several at a time, now and then.
            }
            while let Some(deadline) = drive.deadline() {
                now = deadline;
                drive.handle_timeout(now);
            }
            // Alone inside, so in the order in which they were submitted or not: only what was alone
            // makes anything safe.
            let is_alone = inside.len() == 1;
            inside.clear();
            while drive.poll().is_some() {}
            match command {
                Command::Flush if is_alone => unsafe_sectors = [false; 200],
                Command::Write { extent, durability: Durability::Durable, .. } if is_alone => {
                    extent.iter().for_each(|lba| unsafe_sectors[lba.get() as usize] = false);
                }
                _ => {}
            }
        }
        let cut = now + rng.exponential(Nanos::from_millis(100));
        for lost in drive.handle_power_cut(cut) {
            losses += 1;
            assert!(
                lost.iter().all(|lba| unsafe_sectors[lba.get() as usize]),
                "seed {seed}: {lost:?}"
            );
        }
    }
    assert!(losses > 100, "only {losses} losses in all");
}

#[test]
fn a_full_memory_makes_writes_wait_for_the_medium() {
    let mut drive = tiny(CacheMode::WriteBack);
    let mut now = at(0);
    for lba in [10, 30, 50, 70, 90] {
        let done = run(&mut drive, now, write(lba, 2, Durability::Cached));
        assert_eq!(done.service, micros(500));
        now = done.ended;
    }
    let done = run(&mut drive, now, write(110, 2, Durability::Cached));
    assert!(done.service > micros(2_500), "{done:?}");
    assert_eq!(drive.unwritten(done.ended).len(), 5);
    // What never fits goes past it.
    let done = run(&mut drive, done.ended, write(150, 11, Durability::Cached));
    assert!(done.service > micros(11_000), "{done:?}");
}

#[test]
fn a_flush_costs_what_was_measured_on_a_real_drive() {
    // 28 ms and 9.4 ms a write that lies anywhere. (Fewer writes lie further apart.)
    for count in [32_u64, 128] {
        let mut drive = make("st2000dm006", CacheMode::WriteBack, 1);
        let mut rng = Streams::new(count).stream("addresses");
        let mut now = Instant::ZERO;
        for _ in 0..count {
            let lba = rng.below(drive.size().get());
            now = run(&mut drive, now, write(lba, 1, Durability::Cached)).ended;
        }
        let took = run(&mut drive, now, Command::Flush).service.as_millis_f64();
        let measured = 28.0 + 9.4 * count as f64;
        eprintln!("flush of {count} writes: {took:.0} ms, measured {measured:.0} ms");
        assert!((took / measured - 1.0).abs() < 0.15, "{count}: {took} ms, not {measured}");
    }
}

#[test]
fn a_make_without_memory_cannot_use_any() {
    let cache = Some("segments = 2\nsegment_blocks = 20\nread_ahead_blocks = 8");
    let profile = profile(Tiny { cache, ..TINY });
    let settings = settings(CacheMode::WriteBack, 1);
    let error = Drive::new(profile, settings, Streams::new(1), "drive/0").unwrap_err();
    let words = "a drive of this model has no write-back cache: its profile names none";
    assert_eq!(error.to_string(), words);
}

#[test]
fn what_is_written_into_what_was_read_ahead_is_forgotten() {
    let mut drive = tiny(CacheMode::Read);
    // Sectors 4 to 9 are read ahead until 10 ms, 10 and 11 until 15 ms.
    run(&mut drive, at(0), read(2, 2));
    run(&mut drive, at(14_500), write(6, 1, Durability::Durable));
    let done = run(&mut drive, at(100_000), read(6, 1));
    assert!(done.service > micros(500), "{done:?}");
    // What came before it is still there.
    assert_eq!(run(&mut drive, at(200_000), read(4, 2)).service, micros(500));
}

#[test]
fn durable_writes_of_a_drive_that_writes_back_are_chosen_by_where_they_go() {
    let mut drive = tiny(CacheMode::WriteBack);
    // While the arm is at cylinder 0, the far one comes first.
    drive.handle_submit(at(0), 1, read(2, 1), 1);
    drive.handle_submit(at(100), 2, write(190, 1, Durability::Durable), 2);
    drive.handle_submit(at(200), 3, write(5, 1, Durability::Durable), 3);
    // This one ends in memory, and moves nothing.
    drive.handle_submit(at(300), 4, write(150, 1, Durability::Cached), 4);
    while let Some(next) = drive.deadline().filter(|&next| next < at(90_000)) {
        drive.handle_timeout(next);
    }
    let order: Vec<u64> = std::iter::from_fn(|| drive.poll()).map(|done| done.id).collect();
    assert_eq!(order, [1, 4, 3, 2]);
}

#[test]
fn read_of_the_medium_waits_for_the_platter_and_for_what_is_not_there_yet() {
    let medium = |lba| Command::Read { extent: extent(lba, 2), effort: Effort::Medium };
    let mut drive = tiny(CacheMode::WriteBack);
    // Sectors 2 and 3 pass from 2 to 4 ms of every revolution.
    assert_eq!(run(&mut drive, at(0), read(2, 2)).ended, at(4_000));
    assert_eq!(run(&mut drive, at(20_000), read(2, 2)).ended, at(20_500), "the memory has them");
    // The arm has read ahead on the next track, and comes back too late for this revolution.
    assert_eq!(run(&mut drive, at(30_000), medium(2)).ended, at(44_000));
    run(&mut drive, at(50_000), write(2, 2, Durability::Cached));
    assert_eq!(drive.unwritten(at(50_500)), [extent(2, 2)]);
    // They are written from 52 to 54 ms, and read a revolution later.
    assert_eq!(run(&mut drive, at(50_500), medium(2)).ended, at(64_000));
    assert!(drive.unwritten(at(64_000)).is_empty());
}
