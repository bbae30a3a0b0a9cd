//! Drives that read back what they have written: when, what that costs, and what it finds.

use levelhead_block::{Aftermath, Command, Outcome, Silent, What};
use levelhead_drive::{
    CacheMode, Completion, Counters, Drive, Faults, Placing, Retention, Settings, Verify,
    VerifyCounters,
};
use levelhead_stats::Streams;
use levelhead_testkit::extent;
use levelhead_testkit::profiles::Tiny;
use levelhead_units::{Bytes, Instant, Nanos, Ratio};

use crate::support::{at, profile, read, run, write};

const TINY: Tiny = Tiny::buffered(
    r#"
        segments = 4
        segment_blocks = 20
        read_ahead_blocks = 0
        write_blocks = 10
        write_delay = "100ms"
    "#,
);

const SETTINGS: Settings = Settings { queue_depth: 8, cache: CacheMode::Read, ..Settings::PLAIN };

fn verify(text: &str) -> Verify {
    let mut verify = Verify::Off;
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap();
        verify.set(key, value).unwrap();
    }
    verify
}

fn drive(settings: Settings) -> Drive {
    Drive::new(profile(TINY), settings, Streams::new(1), "drive/0").unwrap().with_angle(Ratio::ZERO)
}

fn verifying(text: &str) -> Drive {
    drive(Settings { verify: verify(text), ..SETTINGS })
}

fn counters(drive: &mut Drive, now: Instant) -> VerifyCounters {
    drive.settle(now);
    drive.counters().verify
}

#[test]
fn isolated_write_is_verified_one_revolution_after_its_end() {
    for start in ["at-once", "late"] {
        for wait in ["0ms", "1ms", "7ms"] {
            let text = format!("verify=idle,idle-wait={wait},verify-start={start}");
            let mut drive = verifying(&text);
            // Sectors 2 and 3 pass from 2 to 4 ms of every revolution.
            assert_eq!(run(&mut drive, at(0), 1, write(2, 2)).ended, at(4_000));
            let VerifyCounters { verified, waiting, .. } = counters(&mut drive, at(13_999));
            assert_eq!((verified, waiting), (0, 1), "{text}");
            let VerifyCounters { verified, waiting, response, .. } =
                counters(&mut drive, at(14_000));
            assert_eq!((verified, waiting), (1, 0), "{text}");
            assert_eq!(response, Nanos::from_millis(10));
        }
    }
    // The sectors have passed when the wait is over: they come again.
    let mut drive = verifying("verify=idle,idle-wait=9ms");
    run(&mut drive, at(0), 1, write(2, 2));
    assert_eq!(counters(&mut drive, at(60_000)).response, Nanos::from_millis(20));
}

#[test]
fn reading_back_at_once_costs_exactly_one_revolution() {
    for (lba, sectors) in [(2, 2), (0, 10), (37, 1), (155, 3)] {
        let ended = |text| run(&mut verifying(text), at(0), 1, write(lba, sectors)).ended;
        let plain = ended("verify=off");
        assert_eq!(ended("verify=raw"), plain + Nanos::from_millis(10), "{lba}");
        assert_eq!(ended("verify=idle"), plain, "{lba}");
    }
    let mut drive = verifying("verify=raw");
    run(&mut drive, at(0), 1, write(2, 2));
    let VerifyCounters { writes, verified, .. } = drive.counters().verify;
    assert_eq!((writes, verified), (1, 1));
}

#[test]
fn command_waits_for_a_verification_that_has_begun_and_for_no_other() {
    // The verification of sectors 2 and 3 is at them from 12 to 14 ms.
    for (start, came, waits) in [
        ("at-once", 4_900, 0),
        ("at-once", 5_100, 8_900),
        ("late", 11_900, 0),
        ("late", 12_100, 1_900),
    ] {
        let text = format!("verify=idle,verify-start={start}");
        let mut drive = verifying(&text);
        let mut plain = verifying("verify=off");
        for drive in [&mut drive, &mut plain] {
            run(drive, at(0), 1, write(2, 2));
        }
        let done = run(&mut drive, at(came), 2, read(2, 2));
        assert_eq!(done.service, Nanos::from_micros(500), "the memory has them");
        assert_eq!(done.ended, at(came + waits + 500), "{text}, {came}");
        let VerifyCounters { delayed, delay, .. } = drive.counters().verify;
        assert_eq!((delayed, delay), (u64::from(waits > 0), Nanos::from_micros(waits)), "{text}");
        // What was put off is made up for.
        assert_eq!(counters(&mut drive, at(100_000)).verified, 1);
    }
}

#[test]
fn what_is_written_over_is_superseded_and_the_rest_is_verified() {
    let mut drive = verifying("verify=idle");
    drive.handle_submit(at(0), 1, write(20, 6), 1);
    drive.handle_submit(at(0), 2, write(22, 2), 2);
    drive.handle_submit(at(0), 3, write(40, 2), 3);
    drive.handle_submit(at(0), 4, write(39, 4), 4);
    let VerifyCounters { writes, verified, superseded, unverified, waiting, .. } =
        counters(&mut drive, at(1_000_000));
    // 1 in two parts, 2, 4; nothing of 3 is left, unless 4 was first.
    assert_eq!((writes, verified + superseded, unverified, waiting), (4, 4, 0, 0));
    assert_eq!(superseded, 1);
}

#[test]
fn lost_write_is_found_written_again_and_verified() {
    let faults: Faults = "lost-writes=50%".parse().unwrap();
    let mut seen = 0;
    for id in 0..40 {
        let mut drive = drive(Settings { verify: verify("verify=idle"), faults, ..SETTINGS });
        let lost = run(&mut drive, at(0), id, write(2, 2)).silent != Silent::Nothing;
        assert_eq!(drive.deadline().is_some(), lost, "a difference is an event");
        let VerifyCounters { verified, found, mended, unmended, .. } =
            counters(&mut drive, at(1_000_000));
        let told: Vec<Aftermath> = std::iter::from_fn(|| drive.poll_aftermath()).collect();
        assert!(told.iter().all(|one| (one.id, one.extent) == (id, extent(2, 2))));
        assert_eq!((found, mended + unmended), (u64::from(lost), u64::from(lost)));
        assert_eq!(verified, 1 - unmended);
        let attempts: Vec<bool> = told
            .iter()
            .filter_map(|one| match &one.what {
                What::WrittenAgain(silent) => Some(*silent == Silent::Nothing),
                What::LetGo | What::Overwritten => None,
            })
            .collect();
        // Until one was right, at most three.
        let tries = attempts.len();
        assert!(attempts.iter().rev().skip(1).all(|&good| !good), "{attempts:?}");
        assert_eq!(attempts.last().copied().unwrap_or(false), mended == 1);
        assert_eq!(unmended == 1, tries == 3 && mended == 0);
        assert_eq!(told.iter().any(|one| one.what == What::LetGo), unmended == 1);
        seen |= if lost { 1 << tries.min(3) } else { 1 };
    }
    assert_eq!(seen, 0b1111, "no attempt, one, two and three");
}

#[test]
fn raw_finds_and_mends_within_the_command() {
    let faults: Faults = "lost-writes=50%".parse().unwrap();
    let mut seen = 0;
    for id in 0..40 {
        let mut drive = drive(Settings { verify: Verify::Raw, faults, ..SETTINGS });
        let done = run(&mut drive, at(0), id, write(2, 2));
        let told = &done.after;
        let let_go = told.iter().filter(|one| one.what == What::LetGo).count();
        let attempts = told.len() - let_go;
        // Each attempt is a write and a read: two revolutions.
        let ended = at(14_000) + Nanos::from_millis(20) * attempts as u64;
        assert_eq!(done.ended, ended);
        let VerifyCounters { found, mended, unmended, verified, .. } = drive.counters().verify;
        assert_eq!(found, u64::from(done.silent != Silent::Nothing));
        assert_eq!((mended + unmended, verified), (found, 1 - unmended));
        assert_eq!(let_go as u64, unmended);
        seen |= 1 << attempts;
    }
    assert_eq!(seen, 0b1111);
}

#[test]
fn without_room_a_write_is_given_up_or_its_checksums_wait() {
    let retention = Some(Retention::new(Placing::MruMru, Bytes::new(32 << 10)));
    for (sums, unverified) in [("0B", 2), ("95B", 1), ("96B", 0)] {
        let verify = verify(&format!("verify=idle,verify-sums={sums}"));
        let mut drive = drive(Settings { verify, retention, ..SETTINGS });
        for id in 0..4 {
            drive.handle_submit(at(0), id, write(id * 40, 1), id);
        }
        let seen = counters(&mut drive, at(1_000_000));
        assert_eq!((seen.unverified, seen.verified), (unverified, 4 - unverified), "{sums}");
        assert!(seen.memory_max <= (8 << 10) + 96, "{seen:?}");
        assert_eq!(drive.poll_aftermath(), None, "nothing was wrong");
    }
}

#[test]
fn what_only_checksums_are_kept_of_is_found_and_not_mended() {
    let retention = Some(Retention::new(Placing::MruMru, Bytes::new(16 << 10)));
    let faults: Faults = "lost-writes=100%".parse().unwrap();
    let verify = verify("verify=idle,verify-sums=1MB");
    let mut drive = drive(Settings { verify, retention, faults, ..SETTINGS });
    drive.handle_submit(at(0), 1, write(0, 1), 1);
    drive.handle_submit(at(0), 2, write(40, 1), 2);
    let VerifyCounters { found, mended, unmended, unverified, .. } =
        counters(&mut drive, at(1_000_000));
    assert_eq!((found, mended, unmended, unverified), (2, 0, 2, 2));
    let repairs = std::iter::from_fn(|| drive.poll_aftermath())
        .filter(|one| matches!(one.what, What::WrittenAgain(_)))
        .count();
    assert_eq!(repairs, 3, "three attempts for the one with its bytes");
}

/// The order in which waiting writes are verified, by what is left of them as time goes by.
#[test]
fn verification_that_can_begin_soonest_is_next() {
    let mut drive = verifying("verify=idle,verify-start=at-once");
    // One after the other without a pause, so that all wait.
    let lbas = [5, 95, 130, 61, 180, 12, 77];
    for (id, lba) in (0..).zip(lbas) {
        drive.handle_submit(at(0), id, write(lba, 1), id);
    }
    let mut last = Instant::ZERO;
    while let Some(at) = drive.deadline() {
        drive.handle_timeout(at);
        last = std::iter::from_fn(|| drive.poll()).last().map_or(last, |done| done.ended);
    }
    // In good order of arm and platter, seven verifications take less than seven revolutions and a half.
    let mut step = last;
    while counters(&mut drive, step).waiting > 0 {
        step = step + Nanos::from_micros(100);
    }
    assert!(step - last < Nanos::from_millis(75), "{:?}", step - last);
}

/// A drive that dies with a lost write waiting finds nothing any more, and asks for no further call.
#[test]
fn dead_drive_verifies_nothing_and_has_no_deadline() {
    let faults: Faults = "lost-writes=100%".parse().unwrap();
    // The verification is at the sectors from 12 to 14 ms; the deaths are before it, in it, and in the repair.
    for death in [5_000, 13_000, 23_000] {
        let mut drive = drive(Settings { verify: Verify::IDLE, faults, ..SETTINGS });
        run(&mut drive, at(0), 1, write(2, 2));
        while let Some(due) = drive.deadline().filter(|&due| due < at(death)) {
            drive.handle_timeout(due);
        }
        drive.handle_death(at(death));
        assert_eq!(drive.deadline(), None, "{death}");
        let before = drive.counters().verify;
        assert_eq!(counters(&mut drive, at(1_000_000)), before, "{death}");
        assert!(run(&mut drive, at(2_000_000), 2, read(2, 2)).outcome == Outcome::Gone);
    }
    let faults: Faults = "lost-writes=100%,death=13ms".parse().unwrap();
    let mut drive = drive(Settings { verify: Verify::IDLE, faults, ..SETTINGS });
    run(&mut drive, at(0), 1, write(2, 2));
    let mut calls = 0;
    while let Some(due) = drive.deadline() {
        drive.handle_timeout(due);
        calls += 1;
        assert!(calls < 10, "it never gets anywhere");
    }
}

/// A random run with every kind of write failure; called on time or only at the end of each command.
fn random_run(
    seed: u64,
    settings: Settings,
    on_time: bool,
) -> (Counters, Vec<Completion>, Vec<Aftermath>) {
    let mut rng = Streams::new(seed).stream("commands");
    let mut drive = drive(settings);
    let mut prompt = self::drive(settings);
    let (mut completions, mut told) = (Vec::new(), Vec::new());
    let mut now = Instant::ZERO;
    let mut drain = |drive: &mut Drive| {
        while let Some(mut done) = drive.poll() {
            // With which command the drive tells of earlier writes depends on when it is asked.
            told.append(&mut done.after);
            completions.push(done);
        }
        told.extend(std::iter::from_fn(|| drive.poll_aftermath()));
    };
    for id in 0..300 {
        now = now + rng.exponential(Nanos::from_millis(14));
        if rng.below(40) == 0 {
            now = now + Nanos::from_secs(1);
        }
        let (lba, sectors) = (rng.below(180), 1 + rng.below(12));
        let command = match rng.below(8) {
            0 => Command::Flush,
            1..=4 => write(lba, sectors),
            _ => read(lba, sectors),
        };
        prompt.handle_timeout(now);
        while on_time && drive.deadline().is_some_and(|deadline| deadline <= now) {
            drive.handle_timeout(drive.deadline().unwrap());
            drain(&mut drive);
        }
        if prompt.has_room() {
            prompt.handle_submit(now, id, command, id);
            drive.handle_submit(now, id, command, id);
        }
        // Early or late, it changes nothing.
        if rng.below(3) == 0 && on_time {
            drive.settle(now);
        }
        assert!(drive.counters().verify.waiting <= 300);
    }
    drive.settle(now + Nanos::from_secs(3_600));
    drain(&mut drive);
    assert_eq!(drive.deadline(), None, "seed {seed}");
    (drive.counters(), completions, told)
}

#[test]
fn every_write_is_counted_once_and_late_calls_change_nothing() {
    let faults: Faults =
        "lost-writes=5%,torn-writes=5%,misdirected-writes=3%,flips=0.5%".parse().unwrap();
    let mut sum = VerifyCounters::default();
    for seed in 0..150 {
        let verify = [
            "verify=idle",
            "verify=idle,verify-start=at-once,idle-wait=0ms",
            "verify=idle,verify-sums=200B",
        ][seed as usize % 3];
        let settings = Settings {
            queue_depth: [1, 8, 32][seed as usize / 3 % 3],
            cache: [CacheMode::Read, CacheMode::WriteBack][seed as usize % 2],
            retention: Some(Retention::new(
                Placing::ALL[seed as usize % 5].0,
                Bytes::new((16 + seed * 3) << 10),
            )),
            verify: self::verify(verify),
            faults,
            ..SETTINGS
        };
        let (seen, completions, told) = random_run(seed, settings, true);
        let (late_seen, late, late_told) = random_run(seed, settings, false);
        assert!(completions == late, "seed {seed}");
        assert!(told == late_told, "seed {seed}");
        assert_eq!(seen, late_seen, "seed {seed}");
        let VerifyCounters { writes, verified, superseded, unverified, waiting, .. } = seen.verify;
        assert_eq!(writes, verified + superseded + unverified + waiting, "UV2, seed {seed}");
        assert_eq!(waiting, 0, "an hour is enough");
        assert!(seen.verify.memory_max <= ((16 + seed * 3) << 11) + 200, "seed {seed}");
        for (into, one) in [
            (&mut sum.verified, seen.verify.verified),
            (&mut sum.superseded, superseded),
            (&mut sum.unverified, unverified),
            (&mut sum.mended, seen.verify.mended),
            (&mut sum.unmended, seen.verify.unmended),
        ] {
            *into += one;
        }
    }
    let VerifyCounters { verified, superseded, unverified, mended, unmended, .. } = sum;
    assert!(
        [verified, superseded, unverified, mended, unmended].iter().all(|&n| n > 20),
        "{sum:?}"
    );
}
