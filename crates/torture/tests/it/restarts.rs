//! Arrays that are started again and again, many seeds; and what must be found where the books are kept badly.

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
        sum(|report| report.cuts_in_books),
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

/// How many seeds it takes until the checker finds a bug that is planted in the books.
fn seeds_to_find(planted: Planted) -> u64 {
    const SEEDS_MAX: u64 = 2_000;
    let found = (0..SEEDS_MAX).find(|&seed| caught(|| drop(run(seed, planted))).is_err());
    let found = found.unwrap_or_else(|| panic!("{planted:?} is not found in {SEEDS_MAX} seeds"));
    eprintln!("{planted:?} is found after {} seeds", found + 1);
    found + 1
}

/// The canaries.
#[test]
fn books_that_are_kept_badly_are_found() {
    for planted in [
        Planted::LyingFlushes,
        Planted::SameGeneration,
        Planted::StaleMember,
        Planted::LostSet,
        Planted::MarkBeforeFlush,
        Planted::CopyWithoutLock,
    ] {
        assert!(seeds_to_find(planted) <= 2_000, "{planted:?}");
    }
}
