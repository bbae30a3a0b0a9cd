//! What a drive promises, on small disks whose times can be worked out by hand.

use levelhead_block::{Command, Durability, Effort, Outcome, SectorSet};
use levelhead_drive::{CacheMode, Completion, Drive, Faults, Scheduler, Settings};
use levelhead_stats::Streams;
use levelhead_testkit::extent;
use levelhead_testkit::profiles::Tiny;
use levelhead_units::{Instant, Nanos, Ratio, Sectors};

use crate::support::{at, profile, read_with, write};

const TINY: Tiny = Tiny {
    write_settle: "3ms",
    seek: r#"[[1, "1.5ms"], [2, "4ms"], [9, "11ms"]]"#,
    cache: Some(
        r#"
            segments = 3
            segment_blocks = 30
            write_blocks = 25
            write_segments = 4
            write_delay = "15ms"
        "#,
    ),
};

fn drive(settings: Settings) -> Drive {
    Drive::new(profile(TINY), settings, Streams::new(1), "drive/0").unwrap().with_angle(Ratio::ZERO)
}

fn faulty(faults: Faults) -> Drive {
    drive(Settings { faults, ..Settings::PLAIN })
}

fn ratio(share: f64) -> Ratio {
    Ratio::new(share).unwrap()
}

/// Runs one command on an idle drive.
fn run(drive: &mut Drive, now: Instant, command: Command, origin: u64) -> Completion {
    assert_eq!(drive.queue_len(), 0);
    drive.handle_submit(now, 7, command, origin);
    drive.handle_timeout(drive.deadline().unwrap());
    let completion = drive.poll().unwrap();
    assert_eq!(drive.poll(), None);
    assert_eq!(completion.id, 7);
    completion
}

fn unknown(offsets: impl IntoIterator<Item = u32>) -> Outcome {
    Outcome::Done { unknown: offsets.into_iter().collect(), damaged: SectorSet::EMPTY }
}

fn damaged(offsets: impl IntoIterator<Item = u32>) -> Outcome {
    Outcome::Done { unknown: SectorSet::EMPTY, damaged: offsets.into_iter().collect() }
}

#[test]
fn isolated_commands_end_when_a_calculation_by_hand_says() {
    let mut drive = drive(Settings::PLAIN);
    // From rest over cylinder 0 at 1 ms: sector 4 passes from 4 to 5 ms.
    let first = run(&mut drive, at(1_000), read_with(4, 1, Effort::Full), 1);
    assert_eq!((first.ended, first.service), (at(5_000), Nanos::from_millis(4)));
    assert_eq!(first.outcome, Outcome::GOOD);
    // Sector 45 lies on cylinder 2, head 0, slot 2 * 3 + 2 * 4 + 5 = 19, that is 9. Overhead until
    // 5.5 ms, seek until 9.5 ms: the slot has begun, it comes again from 19 to 20 ms.
    let second = run(&mut drive, at(5_000), read_with(45, 1, Effort::Full), 2);
    assert_eq!(second.ended, at(20_000));
    // Sector 30, written: cylinder 1, head 1, slot 2 * 3 + 4 = 10, that is 0. Overhead until
    // 20.5 ms, the switch is longer than the seek: 22.5 ms, settled at 25.5 ms.
    let third = run(&mut drive, at(20_000), write(30, 2), 3);
    assert_eq!(third.ended, at(32_000));
}

#[test]
fn commands_that_move_nothing_take_the_overhead() {
    let mut drive = drive(Settings::PLAIN);
    for command in [Command::Flush, Command::Trim { extent: extent(0, 9) }, write(3, 0)] {
        let completion = run(&mut drive, at(1_000), command, 1);
        assert_eq!(completion.service, Nanos::from_micros(500));
        assert_eq!(completion.outcome, Outcome::GOOD);
    }
    assert_eq!(drive.counters().commands, 0);
}

#[test]
fn a_full_read_with_failures_ends_exactly_so_many_revolutions_later() {
    for rotations in [1, 3, 5, 1_000] {
        let mut bad =
            faulty(Faults { retry_rate: Ratio::ONE, rotations: rotations.into(), ..Faults::NONE });
        let mut good = drive(Settings::PLAIN);
        // Fourteen sectors over two tracks: one retry mends them all.
        for (now, lba) in [(0, 35), (20_000_000, 0), (40_000_000, 123)] {
            let plain = run(&mut good, at(now), read_with(lba, 14, Effort::Full), 1);
            let retried = run(&mut bad, at(now), read_with(lba, 14, Effort::Full), 1);
            assert_eq!(retried.ended, plain.ended + Nanos::from_millis(10) * rotations.into());
            assert_eq!(retried.outcome, Outcome::GOOD);
            assert_eq!(retried.retries, rotations);
        }
    }
}

#[test]
fn a_fast_read_with_failures_ends_after_its_first_pass() {
    let mut bad = faulty(Faults { retry_rate: Ratio::ONE, ..Faults::NONE });
    let fast = run(&mut bad, at(0), read_with(35, 14, Effort::Fast), 1);
    let good = run(&mut drive(Settings::PLAIN), at(0), read_with(35, 14, Effort::Full), 1);
    assert_eq!(fast.ended, good.ended);
    assert_eq!(fast.outcome, unknown(0..14));
    assert_eq!(fast.retries, 0);
}

#[test]
fn a_limited_read_spends_the_revolutions_that_fit() {
    let good = run(&mut drive(Settings::PLAIN), at(0), read_with(35, 14, Effort::Full), 1);
    for (limit, rotations, outcome) in [
        (0, 0, unknown(0..14)),
        (29_999, 2, unknown(0..14)),
        (30_000, 3, Outcome::GOOD),
        (99_000, 3, Outcome::GOOD),
    ] {
        let mut bad = faulty(Faults { retry_rate: Ratio::ONE, ..Faults::NONE });
        let effort = Effort::Limited(Nanos::from_micros(limit));
        let limited = run(&mut bad, at(0), read_with(35, 14, effort), 1);
        assert_eq!(limited.retries, rotations);
        assert_eq!(limited.ended, good.ended + Nanos::from_millis(10) * rotations.into());
        assert_eq!(limited.outcome, outcome);
    }
}

#[test]
fn hard_failures_are_damage_at_full_effort_only_and_a_write_mends_them() {
    let mut drive = faulty(Faults { hard_rate: Ratio::ONE, ..Faults::NONE });
    let patient = Effort::Limited(Nanos::from_secs(10));
    for (effort, retries, outcome) in [
        (Effort::Fast, 0, unknown(0..3)),
        (patient, 3, unknown(0..3)),
        (Effort::Full, 3, damaged(0..3)),
    ] {
        let completion = run(&mut drive, at(0), read_with(20, 3, effort), 1);
        assert_eq!((completion.retries, completion.outcome), (retries, outcome));
    }
    run(&mut drive, at(0), write(21, 1), 2);
    let durability = Durability::Durable;
    run(&mut drive, at(0), Command::WriteZeroes { extent: extent(22, 1), durability }, 3);
    run(&mut drive, at(0), Command::Trim { extent: extent(20, 1) }, 4);
    let completion = run(&mut drive, at(0), read_with(20, 3, Effort::Full), 5);
    assert_eq!(completion.outcome, damaged([0]));
}

#[test]
fn the_same_client_request_meets_the_same_failures_whenever_it_comes() {
    let faults = Faults { retry_rate: ratio(0.2), adjacency: 2.0, ..Faults::NONE };
    let (mut one, mut other) = (faulty(faults), faulty(faults));
    let mut differing = 0;
    for origin in 0..100 {
        let fast = |drive: &mut Drive, now, lba, sectors, origin| match run(
            drive,
            at(now),
            read_with(lba, sectors, Effort::Fast),
            origin,
        )
        .outcome
        {
            Outcome::Done { unknown, .. } => unknown.iter().collect::<Vec<u32>>(),
            Outcome::Refused | Outcome::Unreachable | Outcome::Gone => panic!("the drive is alive"),
        };
        let here = fast(&mut one, origin * 50_000, 100, 20, origin);
        // Later, after other commands, in two pieces.
        run(&mut other, at(origin * 90_000), read_with(origin, 5, Effort::Full), origin + 1);
        let left = fast(&mut other, origin * 90_000, 100, 7, origin);
        let right = fast(&mut other, origin * 90_000, 107, 13, origin);
        let there: Vec<u32> = left.into_iter().chain(right.iter().map(|at| at + 7)).collect();
        assert_eq!(here, there, "origin {origin}");
        differing += u32::from(here != fast(&mut one, origin * 50_000, 100, 20, origin + 1));
    }
    assert!(differing > 80, "only {differing} of 100 origins differ from the next");
}

#[test]
fn a_slow_drive_takes_so_many_times_as_long() {
    let faults = Faults { slowdown: 2.5, retry_rate: Ratio::ONE, ..Faults::NONE };
    let slow = run(&mut faulty(faults), at(0), read_with(35, 1, Effort::Full), 1);
    let usual = run(
        &mut faulty(Faults { slowdown: 1.0, ..faults }),
        at(0),
        read_with(35, 1, Effort::Full),
        1,
    );
    assert_eq!(slow.service.get() * 2, usual.service.get() * 5);
}

#[test]
fn a_command_that_comes_as_another_ends_takes_no_part_in_that_choice() {
    let mut drive = drive(Settings::PLAIN);
    drive.handle_submit(at(0), 1, read_with(4, 1, Effort::Full), 1);
    drive.handle_submit(at(1_000), 2, read_with(190, 1, Effort::Full), 2);
    let end = drive.deadline().unwrap();
    // Far sooner positioned than command 2, but too late by nothing at all.
    drive.handle_submit(end, 3, read_with(6, 1, Effort::Full), 3);
    drive.handle_timeout(at(1_000_000));
    let order: Vec<u64> = std::iter::from_fn(|| drive.poll()).map(|done| done.id).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn a_dead_drive_ends_everything_as_gone() {
    let mut drive = drive(Settings::PLAIN);
    for id in 0..4 {
        drive.handle_submit(at(0), id, read_with(id * 40, 1, Effort::Full), id);
    }
    let end = drive.deadline().unwrap();
    let death = end + Nanos::from_micros(700);
    drive.handle_death(death);
    assert_eq!(drive.deadline(), None);
    assert_eq!(drive.queue_len(), 0);
    let first = drive.poll().unwrap();
    assert_eq!((first.ended, first.outcome), (end, Outcome::GOOD), "it had ended before");
    for _ in 0..3 {
        let gone = drive.poll().unwrap();
        assert_eq!((gone.ended, gone.outcome), (death, Outcome::Gone));
    }
    assert_eq!(drive.poll(), None);
    drive.handle_submit(at(900_000), 9, Command::Flush, 9);
    let gone = drive.poll().unwrap();
    assert_eq!((gone.id, gone.outcome), (9, Outcome::Gone));
    assert!(drive.has_room());
}

#[test]
fn a_smaller_drive_is_the_outer_part_of_its_make() {
    let mut small = drive(Settings { size: Some(Sectors::new(60)), ..Settings::PLAIN });
    assert_eq!(small.size(), Sectors::new(60));
    let part = run(&mut small, at(0), read_with(59, 1, Effort::Full), 1);
    let whole = run(&mut drive(Settings::PLAIN), at(0), read_with(59, 1, Effort::Full), 1);
    assert_eq!(part, whole);
}

/// A random run: the commands in the order in which they were submitted, and their completions.
fn random_run(
    seed: u64,
    settings: Settings,
    on_time: bool,
) -> (Drive, Vec<(Instant, Command)>, Vec<Completion>) {
    let mut rng = Streams::new(seed).stream("commands");
    let mut drive = drive(settings);
    // Where the drive is when it is called in time decides what is submitted in both runs.
    let mut prompt = self::drive(settings);
    let (mut submitted, mut completions) = (Vec::new(), Vec::new());
    let mut now = Instant::ZERO;
    for id in 0..400 {
        now = now + rng.exponential(Nanos::from_millis(12));
        if rng.below(50) == 0 {
            now = now + Nanos::from_secs(1);
        }
        let (lba, sectors) = (rng.below(180), rng.below(20));
        let command = match rng.below(8) {
            0 => Command::Flush,
            1 | 2 => write(lba, sectors),
            3 => read_with(lba, sectors, Effort::Fast),
            4 => read_with(lba, sectors, Effort::Limited(Nanos::from_millis(rng.below(40)))),
            _ => read_with(lba, sectors, Effort::Full),
        };
        prompt.handle_timeout(now);
        while on_time && drive.deadline().is_some_and(|deadline| deadline <= now) {
            drive.handle_timeout(drive.deadline().unwrap());
            completions.extend(std::iter::from_fn(|| drive.poll()));
        }
        if prompt.has_room() {
            prompt.handle_submit(now, id, command, id);
            drive.handle_submit(now, id, command, id);
            submitted.push((now, command));
            assert!(drive.queue_len() <= settings.queue_depth, "seed {seed}");
        } else {
            submitted.push((now, Command::Flush));
        }
        if rng.below(5) == 0 {
            drive.handle_timeout(now); // Early or late, it changes nothing.
        }
    }
    drive.handle_timeout(now + Nanos::from_secs(3_600));
    completions.extend(std::iter::from_fn(|| drive.poll()));
    assert_eq!(drive.deadline(), None, "seed {seed}");
    (drive, submitted, completions)
}

#[test]
fn random_runs_keep_the_invariants_and_late_calls_change_nothing() {
    let faults =
        Faults { retry_rate: ratio(0.05), adjacency: 2.0, hard_rate: ratio(0.02), ..Faults::NONE };
    for seed in 0..200 {
        let settings = Settings {
            queue_depth: [1, 2, 8, 32][seed as usize % 4],
            scheduler: Scheduler::Sptf { age_weight: [0.0, 0.1][seed as usize % 2] },
            cache: [CacheMode::Off, CacheMode::Read, CacheMode::WriteBack][seed as usize % 3],
            faults,
            ..Settings::PLAIN
        };
        let (drive, submitted, completions) = random_run(seed, settings, true);
        let (_, _, late) = random_run(seed, settings, false);
        assert_eq!(completions, late, "seed {seed}");
        check_invariants(seed, settings, &drive, &submitted, &completions);
    }
}

fn check_invariants(
    seed: u64,
    settings: Settings,
    drive: &Drive,
    submitted: &[(Instant, Command)],
    completions: &[Completion],
) {
    let mut ids: Vec<u64> = completions.iter().map(|done| done.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), completions.len(), "D1, seed {seed}");
    let mut free = Instant::ZERO;
    let (mut retries, mut rotations, mut busy, mut sectors_read) = (0, 0, Nanos::ZERO, 0);
    for done in completions {
        let (since, command) = submitted[done.id as usize];
        let began = Instant::ZERO + (done.ended - Instant::ZERO).saturating_sub(done.service);
        assert!(began >= since, "D1, seed {seed}: {done:?}");
        assert!(began >= free, "D2, seed {seed}: {done:?}");
        // What the drive writes back on its own may come between.
        if settings.queue_depth == 1 && settings.cache != CacheMode::WriteBack {
            assert_eq!(began, since.max(free), "D3, seed {seed}: {done:?}");
        }
        free = done.ended;
        retries += u64::from(done.retries > 0);
        rotations += u64::from(done.retries);
        busy += done.service;
        let Outcome::Done { unknown, damaged } = &done.outcome else { panic!("{done:?}") };
        if let Command::Read { extent, effort } = command {
            sectors_read += extent.sectors.get();
            match effort {
                Effort::Fast => assert_eq!(done.retries, 0, "seed {seed}"),
                Effort::Limited(_) => assert!(damaged.is_empty(), "D5, seed {seed}"),
                Effort::Full | Effort::Medium => assert!(unknown.is_empty(), "D5, seed {seed}"),
            }
        } else {
            assert_eq!(done.outcome, Outcome::GOOD, "seed {seed}");
        }
    }
    let counters = drive.counters();
    assert_eq!(
        (counters.retries, counters.rotations, counters.busy, counters.sectors_read),
        (retries, rotations, busy, sectors_read),
        "seed {seed}"
    );
    // A revolution takes 10 ms.
    assert_eq!(counters.retrying, Nanos::from_millis(10) * rotations, "seed {seed}");
}

#[test]
fn health_says_what_the_drive_did() {
    let mut drive = faulty(Faults { retry_rate: ratio(0.1), ..Faults::NONE });
    let now = at(5);
    assert_eq!(drive.health(now).retry_rate, None);
    let (mut first_pass, mut retrying, mut retried) = (0, 0, 0);
    for origin in 0..900_u64 {
        let done = run(&mut drive, at(0), read_with(origin * 7 % 180, 2, Effort::Full), origin);
        let spent = Nanos::from_millis(10) * done.retries.into();
        first_pass += done.service.saturating_sub(spent).get();
        retrying += spent.get();
        retried += u64::from(done.retries > 0);
    }
    let health = drive.health(now);
    assert_eq!(health.as_of, now);
    assert_eq!(health.retry_latency_mean, Some(Nanos::new(retrying / retried)));
    assert_eq!(health.service_time_mean, Some(Nanos::new(first_pass / 900)));
    let counters = drive.counters();
    assert_eq!(health.retry_rate, Some(Ratio::of(counters.sectors_failed, 1_800)));
    assert_eq!(health.first_pass_failures, Some(counters.sectors_failed));
    assert_eq!((health.commands, health.retries), (Some(900), Some(retried)));
    // Four standard errors around the law: sqrt(0.1 * 0.9 / 1800).
    assert!((health.retry_rate.unwrap().get() - 0.1).abs() < 4.0 * 0.00707, "{health:?}");
}
