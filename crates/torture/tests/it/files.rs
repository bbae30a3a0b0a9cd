//! The crash swarm of the filesystem.

use std::ops::Range;

use levelhead_fs::rules::{Rule, Rules};
use levelhead_torture::files::{Aim, Tally, run, sequences};

use crate::expected::caught;

/// Runs `count` seeds from `first` on.
fn swarm(first: u64, count: u64, aim: &Aim) -> Tally {
    let mut tally = Tally::default();
    for seed in first..first + count {
        if let Err(broken) = run(seed, aim, &mut tally) {
            panic!(
                "{broken}\nonce more: cargo run -p levelhead-torture --example files -- all {seed} 1 --shrink"
            );
        }
    }
    println!("seeds {first} to {}: {tally:?}", first + count - 1);
    tally
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// More than 4,000 images in some ten seconds of one core; without optimization a twentieth of them.
#[test]
fn no_cut_loses_what_was_synced() {
    let seeds = if cfg!(debug_assertions) { 30 } else { 600 };
    let first = asked("FILES_FIRST").unwrap_or(0);
    let tally = swarm(first, asked("FILES_SEEDS").unwrap_or(seeds), &Aim::DEFAULT);
    println!("{} crash images", tally.images);
}

/// Disks that are left in order and mounted once more, with images from the first command on: 2,000 and more in some five seconds.
#[test]
fn no_cut_around_an_end_in_order_loses_what_was_synced() {
    let seeds = if cfg!(debug_assertions) { 6 } else { 40 };
    swarm(asked("FILES_FIRST").unwrap_or(0), asked("FILES_SEEDS").unwrap_or(seeds), &Aim::STOPS);
}

/// A page of two sectors is old or new, never mixed, whatever becomes of the file meanwhile.
#[test]
fn no_cut_loses_what_was_synced_in_files_of_any_kind() {
    let seeds = if cfg!(debug_assertions) { 20 } else { 300 };
    swarm(asked("FILES_FIRST").unwrap_or(0), asked("FILES_SEEDS").unwrap_or(seeds), &Aim::KINDS);
}

/// Files that fill a disk but for some room, with the code 9,246 and others as long.
#[test]
fn no_cut_on_a_nearly_full_disk_loses_what_was_synced() {
    let seeds = if cfg!(debug_assertions) { 4 } else { 60 };
    swarm(asked("FILES_FIRST").unwrap_or(0), asked("FILES_SEEDS").unwrap_or(seeds), &Aim::FULL);
}

/// Some sectors of the disk cannot be written: nothing is lost, and nothing becomes read-only.
#[test]
fn no_cut_of_a_disk_with_unwritable_sectors_loses_what_was_synced() {
    let seeds = if cfg!(debug_assertions) { 20 } else { 300 };
    let aim = &Aim::UNWRITABLE;
    swarm(asked("FILES_FIRST").unwrap_or(0), asked("FILES_SEEDS").unwrap_or(seeds), aim);
}

/// Each was once a mistake of the filesystem's.
#[test]
fn seeds_that_were_found_with_stops_are_mended() {
    // Sizes that came before their zeroes; copies that two wrote at a time; what was written anew, and taken by a cut.
    for seed in [2_139, 66, 669, 2_378] {
        swarm(seed, 1, &Aim::STOPS);
    }
}

/// A sector that a cut had made unreadable lay in a coding extent whose redundancy was on its way (8,001,571), or had come to its place
/// while the journal still called it stale (8,006,104). An extent that had grown was computed from what it had been before (8,500,672), and
/// what was settled came to its places once more, in records that did not count any more (8,500,740). One was damaged by more than its
/// code repairs, which was the swarm's mistake (8,008,239).
#[test]
fn seeds_that_were_found_on_a_nearly_full_disk_are_mended() {
    for seed in [8_001_571, 8_006_104, 8_008_239, 8_500_672, 8_500_740] {
        swarm(seed, 1, &Aim::FULL);
    }
}

/// Of a unit one copy could not be read since a cut, and then the two others were damaged.
#[test]
fn damage_leaves_one_copy_of_each_unit_that_can_be_read() {
    swarm(8_010_162, 1, &Aim::STOPS);
}

/// What black-box testing has found in other filesystems needed at most three operations.
#[test]
fn no_cut_during_one_operation_or_two_loses_what_was_synced() {
    let mut tally = Tally::default();
    // Here some of them, and others with another seed.
    let part = if cfg!(debug_assertions) { 401 } else { 101 };
    if let Err(broken) =
        sequences(asked("FILES_FIRST").unwrap_or(0), part, &Aim::DEFAULT, &mut tally)
    {
        panic!("{broken}");
    }
    println!("sequences: {tally:?}");
}

/// A copy of metadata that a walk had just found bad was being written anew: a scrub passed over the other copies of the unit. And a
/// scrub called a unit lost of whose copies the only good one needed retries. On the nearly full disk the repair began while the scrub
/// was reading the copies, and not before.
#[test]
fn scrub_repairs_all_copies_of_metadata() {
    for seed in [55, 113, 119, 141] {
        swarm(seed, 1, &Aim::DEFAULT);
    }
    swarm(18, 1, &Aim::FULL);
}

/// A write that had looked behind the end of a file, and found nothing to be zeroed, went on when the file had become short: what was
/// cut off was there again.
#[test]
fn write_that_meets_a_truncation_brings_nothing_back() {
    swarm(11_473, 1, &Aim::DEFAULT);
}

/// The first of some seeds that notices that a rule is left out.
fn first_to_notice(rule: Rule, aim: Aim, seeds: Range<u64>) -> Option<u64> {
    let aim = Aim { rules: Rules::without(rule), ..aim };
    let mut tally = Tally::default();
    let is_broken = |seed: &u64| {
        let run = caught(|| run(*seed, &aim, &mut tally));
        if let Ok(Err(broken)) = &run {
            println!("without {rule:?}: {broken}");
        }
        !matches!(run, Ok(Ok(())))
    };
    let found = seeds.into_iter().find(is_broken);
    println!("without {rule:?}: seed {found:?}, {} images", tally.images);
    found
}

/// Each with seeds of which several notice it, that of [`Rule::Generation`] one in thirty: it takes a disk that was left in order, and a cut
/// in the middle of the first record of the next life, which lies over an old one that counted.
#[test]
fn rules_that_are_left_out_are_noticed() {
    let rows = [
        (Rule::Flush, Aim::STOPS, 0..40),
        (Rule::Data, Aim::STOPS, 0..60),
        (Rule::Stale, Aim::DEFAULT, 0..10),
        (Rule::Pages, Aim::KINDS, 0..20),
        (Rule::Early, Aim::KINDS, 40..240),
        (Rule::Retire, Aim::DEFAULT, 60..160),
        (Rule::Copies, Aim::DEFAULT, 0..10),
        (Rule::Newest, Aim::DEFAULT, 0..10),
        (Rule::Generation, Aim::STOPS, 60..180),
        (Rule::Orphans, Aim::STOPS, 0..20),
    ];
    assert_eq!(rows.each_ref().map(|(rule, _, _)| *rule), Rule::ALL);
    for (rule, aim, seeds) in rows {
        assert!(first_to_notice(rule, aim, seeds).is_some(), "{rule:?}");
    }
}
