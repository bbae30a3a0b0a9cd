//! Swarms: many seeds, each twice.

use levelhead_array::{VerifyMode, VerifySettings};
use levelhead_torture::swarm::{Report, Sabotage, run, run_checked};
use levelhead_units::Sectors;

const SEEDS: u64 = 120;
const REQUESTS: u64 = 250;

fn swarm() -> Vec<Report> {
    (0..SEEDS).map(|seed| run(seed, REQUESTS, Sabotage::None)).collect()
}

/// The same seeds print the same bytes, twice.
#[test]
fn nothing_is_wrong_or_unanswered_and_both_runs_print_the_same_bytes() {
    let print = |reports: &[Report]| -> String {
        reports.iter().map(|report| format!("{report}\n")).collect()
    };
    let (first, second) = (swarm(), swarm());
    assert_eq!(print(&first), print(&second));
    // A swarm in which nothing happens proves nothing.
    let sum = |of: fn(&Report) -> u64| first.iter().map(of).sum::<u64>();
    assert!(sum(|report| report.verified) > 100_000);
    assert!(sum(|report| report.decoded) > 5_000);
    assert!(sum(|report| u64::from(report.lost)) > 20);
    assert!(sum(|report| report.named) > 0, "no sector was ever named missing");
}

/// Drives that are silently wrong: the checker sees what the array does not.
#[test]
#[should_panic(expected = "other bytes than were written")]
fn lost_writes_are_caught() {
    (0..8).for_each(|seed| drop(run(seed, REQUESTS, Sabotage::LoseWrites)));
}

#[test]
#[should_panic(expected = "other bytes than were written")]
fn torn_writes_are_caught() {
    (0..8).for_each(|seed| drop(run(seed, REQUESTS, Sabotage::TearWrites)));
}

#[test]
#[should_panic(expected = "other bytes than were written")]
fn misdirected_writes_are_caught() {
    (0..8).for_each(|seed| drop(run(seed, REQUESTS, Sabotage::MisdirectWrites)));
}

#[test]
#[should_panic(expected = "other bytes than were written")]
fn bits_that_flip_as_sectors_are_stored_are_caught() {
    (0..8).for_each(|seed| drop(run(seed, REQUESTS, Sabotage::FlipStored)));
}

/// The canary.
#[test]
#[should_panic(expected = "other bytes than were written")]
fn flipped_bits_are_caught() {
    for seed in 0..8 {
        run(seed, REQUESTS, Sabotage::FlipBits);
    }
}

/// The same drives, and what is written is read back: no wrong byte, whichever drives disappear.
#[test]
fn writes_that_were_not_stored_are_never_read_where_they_are_read_back() {
    let raw = VerifySettings { mode: VerifyMode::Raw, ..VerifySettings::IDLE };
    let sums = VerifySettings { cache: Sectors::ZERO, ..VerifySettings::IDLE };
    let few = VerifySettings { cache: Sectors::new(64), ..VerifySettings::IDLE };
    for verify in [VerifySettings::IDLE, raw, few, sums] {
        for sabotage in [Sabotage::LoseWrites, Sabotage::TearWrites] {
            let run = |seed| run_checked(seed, REQUESTS, sabotage, verify);
            let reports: Vec<Report> = (0..40).map(run).collect();
            let flawed: u64 = reports.iter().map(|report| report.flawed).sum();
            assert!(flawed > 500, "{verify:?}, {sabotage:?}: {flawed} were found");
        }
    }
}

/// Nothing is found where nothing is wrong.
#[test]
fn writes_that_were_stored_are_found_right() {
    for seed in 0..60 {
        let report = run_checked(seed, REQUESTS, Sabotage::None, VerifySettings::IDLE);
        assert_eq!(report.flawed, 0, "{report}");
    }
}
