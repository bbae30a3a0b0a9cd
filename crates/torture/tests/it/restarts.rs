//! Arrays that are started again and again, many seeds; and what must be found where the metadata is kept badly.

use levelhead_torture::restarts::{Planted, Report, run};

use crate::expected::caught;

const SEEDS: u64 = 300;

#[test]
fn what_was_promised_is_there_after_every_start() {
    let reports: Vec<Report> = (0..SEEDS).map(|seed| run(seed, Planted::None)).collect();
    assert_eq!(reports[17], run(17, Planted::None), "the same seed, the same run");
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    let sums = [
        sum(|report| report.verified),
        sum(|report| report.set_back),
        sum(|report| report.cuts),
        sum(|report| report.cuts_in_metadata),
        sum(|report| report.stops),
        sum(|report| report.refused),
        sum(|report| report.stalls),
        sum(|report| report.replaced),
        sum(|report| report.rebuilt),
    ];
    // Runs in which nothing happens prove nothing.
    let least = [200_000, 100, 300, 100, 300, 20, 50, 200, 40];
    assert!(sums.iter().zip(least).all(|(&sum, least)| sum >= least), "{sums:?} of {least:?}");
}

/// The most seeds until a planted bug is found; seven were seen.
const SEEDS_TO_FIND: u64 = 50;

/// How many seeds it takes until the checker finds a bug that is planted in the metadata, and what it finds.
fn found(planted: Planted) -> (u64, String) {
    let mut found = (0..SEEDS_TO_FIND).filter_map(|seed| {
        let panic = caught(|| drop(run(seed, planted))).err()?;
        Some((seed + 1, *panic.downcast::<String>().expect("a panic with what was wrong")))
    });
    found.next().unwrap_or_else(|| panic!("{planted:?} is not found in {SEEDS_TO_FIND} seeds"))
}

/// The canaries: data that was promised is gone, or the array is refused or in doubt although it survives what was lost.
#[test]
fn metadata_that_is_kept_badly_is_found() {
    for (planted, how) in [
        (Planted::RecordLate, "what was safe is gone"),
        (Planted::SameGeneration, "Doubtful"),
        (Planted::StaleMember, "what was safe is gone"),
        (Planted::LostSet, "what was safe is gone"),
        (Planted::MarkBeforeFlush, "what was safe is gone"),
        (Planted::CopyWithoutLock, "what was safe is gone"),
    ] {
        let (seeds, text) = found(planted);
        println!("{planted:?} is found after {seeds} seeds: {text}");
        assert!(text.contains(how), "{planted:?}: {text}");
    }
}
