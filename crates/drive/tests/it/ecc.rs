//! Drives whose sectors fail, and are mended, as a retry table says.

use std::sync::LazyLock;

use levelhead_block::{Command, Durability, Effort, Outcome, ZeroTail};
use levelhead_drive::{Completion, Drive, Ecc, Faults, Profile, Settings};
use levelhead_ldpc::{RetryModel, RetryTable, Step, ZeroForcing};
use levelhead_stats::{Streams, binomial_interval};
use levelhead_units::{Extent, Instant, Lba, Nanos, Sectors};

/// Fails often, at every step, in classes.
static FAR: LazyLock<RetryTable> = LazyLock::new(|| {
    let steps = [Step::list(), vec![Step { revolutions: 2, aim: 0.12, ..Step::FIRST }]].concat();
    let model = RetryModel { failure_rate: 0.1, written_offset: 0.08, pass_offset: 0.06, steps };
    model.table("far").unwrap()
});

const SECTORS: u64 = 4_000;

fn drive(ecc: Ecc) -> Drive {
    let faults = Faults { ecc: Some(ecc), ..Faults::NONE };
    let size = Some(Sectors::new(SECTORS));
    let settings = Settings { faults, size, ..Settings::PLAIN };
    let profile = Profile::shipped("nearline-2tb").unwrap();
    Drive::new(profile, settings, Streams::new(3), "ecc").unwrap()
}

fn run(drive: &mut Drive, now: &mut Instant, command: Command, origin: u64) -> Completion {
    drive.handle_submit(*now, origin, command, origin);
    loop {
        if let Some(completion) = drive.poll() {
            return completion;
        }
        *now = drive.deadline().expect("a command ends");
        drive.handle_timeout(*now);
    }
}

fn read(sectors: u64, lba: u64, effort: Effort) -> Command {
    Command::Read { extent: Extent::new(Lba::new(lba), Sectors::new(sectors)), effort }
}

fn write(lba: u64, sectors: u64, zero_tail: ZeroTail) -> Command {
    let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
    Command::Write { extent, durability: Durability::Cached, zero_tail }
}

/// How many reads of one sector each step failed with, and all those before it.
fn failed_with(table: &RetryTable, completions: &[Completion]) -> Vec<u64> {
    let mut failed = vec![0; table.step_count()];
    for completion in completions {
        let Outcome::Done { unknown, damaged } = &completion.outcome else { panic!("it lives") };
        assert!(unknown.is_empty());
        let mut end = 0;
        for (step, count) in failed.iter_mut().enumerate() {
            end += table.revolutions(step);
            *count += u64::from(completion.retries > end || !damaged.is_empty());
        }
    }
    failed
}

/// Steps whose counts lie outside the intervals of 99.9 % around the table.
fn outside(table: &RetryTable, level: ZeroForcing, failed: &[u64], reads: u64) -> Vec<usize> {
    let is_outside = |step: &usize| {
        let law = table.all_fail(level, *step);
        // 3.29 standard deviations, and one read of a law that is not Gaussian.
        let width = 3.29 * (law * (1.0 - law) * reads as f64).sqrt() + 1.0;
        (failed[*step] as f64 - law * reads as f64).abs() > width
    };
    (0..table.step_count()).filter(is_outside).collect()
}

fn reads(ecc: Ecc, tail: ZeroTail, count: u64) -> Vec<Completion> {
    let (mut drive, mut now) = (drive(ecc), Instant::ZERO);
    let mut origin = 1 << 40;
    (0..count)
        .map(|at| {
            // Each round over the disk meets sectors that were written anew.
            if at % SECTORS == 0 {
                for lba in (0..SECTORS).step_by(500) {
                    origin += 1;
                    run(&mut drive, &mut now, write(lba, 500, tail), origin);
                }
            }
            run(&mut drive, &mut now, read(1, at % SECTORS, Effort::Full), at)
        })
        .collect()
}

/// A share of it with every change; `ECC_READS=1000000` for all.
fn read_count() -> u64 {
    std::env::var("ECC_READS").map_or(60_000, |text| text.parse().expect("a number of reads"))
}

#[test]
fn reads_take_as_many_steps_as_the_table_says() {
    let count = read_count();
    for (tail, level) in [
        (ZeroTail::None, ZeroForcing::None),
        (ZeroTail::B256, ZeroForcing::B256),
        (ZeroTail::B512, ZeroForcing::B512),
    ] {
        let table = &*FAR;
        let completions = reads(Ecc::of(table), tail, count);
        let failed = failed_with(table, &completions);
        assert_eq!(outside(table, level, &failed, count), [0; 0], "{level}: {failed:?}");
        assert!(failed.last() > Some(&0), "{failed:?}");
        // A table that is off by a step would be noticed.
        let mut shifted = failed.clone();
        shifted.rotate_left(1);
        assert!(outside(table, level, &shifted, count).len() > 4, "{shifted:?}");
    }
}

#[test]
fn first_passes_of_equal_sectors_fail_as_the_curve_does() {
    let count = read_count();
    let ecc = Ecc::shipped("equal").unwrap();
    let completions = reads(ecc, ZeroTail::None, count);
    let failed = failed_with(ecc.table(), &completions);
    let interval = binomial_interval(failed[0], count);
    let law = ecc.first_pass_rate(ZeroTail::None);
    assert!((law / 5e-3 - 1.0).abs() < 1e-9);
    assert!(interval.low < law && law < interval.high, "{interval:?}, law {law}");
    assert_eq!(failed[1..], vec![0; failed.len() - 1]);
}

/// More iterations on the samples of a pass: nothing is paid, and the same number decides.
#[test]
fn steps_without_revolutions_belong_to_the_pass_before_them() {
    const TEXT: &str = "levelhead retry table 1\nsteps 0 0 2 0 1\n\
        class 0.5\n0 0.4 0.2 0.5 0.4 0.3\n256 0.4 0.2 0.5 0.4 0.3\n512 0 0 0 0 0\n1024 0 0 0 0 0\n\
        class 0.5\n0 0.2 0.2 0.1 0.1 0.1\n256 0.2 0.1 0.1 0.1 0.1\n512 0 0 0 0 0\n1024 0 0 0 0 0\n";
    let table: &'static RetryTable = Box::leak(Box::new(RetryTable::parse("free", TEXT).unwrap()));
    let ecc = Ecc::of(table);
    assert!((ecc.first_pass_rate(ZeroTail::None) - 0.2).abs() < 1e-12);
    let (mut drive, mut now) = (drive(ecc), Instant::ZERO);
    let (count, mut ends) = (40_000, [0_u64; 4]);
    for at in 0..count {
        let full = run(&mut drive, &mut now, read(1, at % SECTORS, Effort::Full), at);
        let Outcome::Done { damaged, .. } = full.outcome else { panic!("it lives") };
        // After the first pass, its step of more iterations included; after two revolutions; after three; never.
        let end = match (full.retries, damaged.is_empty()) {
            (0, true) => 0,
            (2, true) => 1,
            (3, true) => 2,
            (3, false) => 3,
            other => panic!("{other:?}"),
        };
        ends[end] += 1;
        let fast = run(&mut drive, &mut now, read(1, at % SECTORS, Effort::Fast), at);
        let Outcome::Done { unknown, damaged } = fast.outcome else { panic!("it lives") };
        assert_eq!((unknown.is_empty(), damaged.is_empty()), (end == 0, true), "{at}");
    }
    // 1 - 0.2; then 0.2 0.4 and 0.2 0.1 go on; then 0.3 and 0.1 of these.
    let left = [0.2, (0.2 * 0.4 + 0.2 * 0.1) / 2.0, (0.2 * 0.4 * 0.3 + 0.2 * 0.1 * 0.1) / 2.0];
    let laws = [1.0 - left[0], left[0] - left[1], left[1] - left[2], left[2]];
    for (seen, law) in ends.into_iter().zip(laws) {
        let n = count as f64;
        let width = 4.0 * (law * (1.0 - law) * n).sqrt();
        assert!((seen as f64 - law * n).abs() < width, "{ends:?}, laws {laws:?}");
    }
}

/// What a read with less effort leaves unread, one with all effort reads, at the cost that the table says.
#[test]
fn limited_reads_take_the_steps_that_fit() {
    let ecc = Ecc::of(&FAR);
    let rotation = Nanos::new(60_000_000_000 / 7_200);
    let (mut full, mut other) = (drive(ecc), drive(ecc));
    let (mut now, mut then) = (Instant::ZERO, Instant::ZERO);
    let (mut seen, mut damaged_count) = ([0; 4], 0);
    for at in 0..6_000 {
        let lba = at % (SECTORS - 8);
        let all = run(&mut full, &mut now, read(8, lba, Effort::Full), at);
        let Outcome::Done { unknown, damaged } = &all.outcome else { panic!("it lives") };
        assert!(unknown.is_empty());
        damaged_count += damaged.len();
        let limit = at % 4;
        let effort = match limit {
            0 => Effort::Fast,
            limit => Effort::Limited(rotation * limit + Nanos::from_millis(4)),
        };
        let some = run(&mut other, &mut then, read(8, lba, effort), at);
        let Outcome::Done { unknown, damaged: gone } = &some.outcome else { panic!("it lives") };
        assert!(gone.is_empty(), "not all steps fit");
        let fits = u64::from(all.retries) <= limit && damaged.is_empty();
        assert_eq!(unknown.is_empty(), fits, "{at}: {all:?} {some:?}");
        assert_eq!(u64::from(some.retries), u64::from(all.retries).min(limit), "{at}");
        seen[limit as usize] += u32::from(!unknown.is_empty());
        let everything = Effort::Limited(Nanos::from_secs(1));
        let same = run(&mut other, &mut then, read(8, lba, everything), at);
        assert_eq!((&same.outcome, same.retries), (&all.outcome, all.retries), "{at}");
    }
    assert!(damaged_count > 0 && seen.iter().all(|count| *count > 0), "{damaged_count} {seen:?}");
}

#[test]
fn health_has_the_failures_and_revolutions_of_the_table() {
    let (mut drive, mut now) = (drive(Ecc::of(&FAR)), Instant::ZERO);
    for at in 0..1_000 {
        run(&mut drive, &mut now, read(1, at, Effort::Full), at);
    }
    let counters = drive.counters();
    assert!((60..140).contains(&counters.sectors_failed), "{counters:?}");
    assert_eq!(counters.retries, counters.sectors_failed);
    assert!(counters.rotations > counters.retries, "{counters:?}");
    assert_eq!(drive.health(now).first_pass_failures, Some(counters.sectors_failed));
}
