//! The crash swarm of the filesystem.

use std::panic::{AssertUnwindSafe, catch_unwind};

use levelhead_fs::rules::{Rule, Rules};
use levelhead_lab::files::{Aim, Tally, run, sequences};

/// Runs `count` seeds from `first` on.
fn swarm(first: u64, count: u64, aim: &Aim) -> Tally {
    let mut tally = Tally::default();
    for seed in first..first + count {
        if let Err(broken) = run(seed, aim, &mut tally) {
            panic!(
                "{broken}\nonce more: cargo run -p levelhead-lab --example files -- {seed} 1 --shrink"
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

/// What black-box testing has found in other filesystems needed at most three operations.
#[test]
fn no_cut_during_one_operation_or_two_loses_what_was_synced() {
    let mut tally = Tally::default();
    // Here some of them, and others with another seed.
    let part = if cfg!(debug_assertions) { 401 } else { 23 };
    if let Err(broken) =
        sequences(asked("FILES_FIRST").unwrap_or(0), part, &Aim::DEFAULT, &mut tally)
    {
        panic!("{broken}");
    }
    println!("sequences: {tally:?}");
}

/// A copy of metadata that a walk had just found bad was being written anew: a scrub passed over the other copies of the unit. And a
/// scrub called a unit lost of whose copies the only good one needed retries.
#[test]
fn scrub_repairs_all_copies_of_metadata() {
    for seed in [55, 113, 119, 141] {
        swarm(seed, 1, &Aim::DEFAULT);
    }
}

/// A write that had looked behind the end of a file, and found nothing to be zeroed, went on when the file had become short: what was
/// cut off was there again.
#[test]
fn write_that_meets_a_truncation_brings_nothing_back() {
    swarm(11_473, 1, &Aim::DEFAULT);
}

/// How many seeds it takes until the swarm notices that a rule is left out.
fn seeds_to_find(rule: Rule) -> Option<u64> {
    let aim = Aim { rules: Rules::without(rule), ..Aim::DEFAULT };
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut tally = Tally::default();
    let is_broken = |seed: &u64| {
        let run = catch_unwind(AssertUnwindSafe(|| run(*seed, &aim, &mut tally)));
        if let Ok(Err(broken)) = &run {
            println!("without {rule:?}: {broken}");
        }
        !matches!(run, Ok(Ok(())))
    };
    let found = (0..150).find(is_broken);
    std::panic::set_hook(hook);
    println!("without {rule:?}: seed {found:?}, {} images", tally.images);
    found
}

/// [`Rule::Generation`] and [`Rule::Orphans`] are not among them yet.
#[test]
fn rules_that_are_left_out_are_noticed() {
    let rules = [Rule::Flush, Rule::Data, Rule::Stale, Rule::Retire, Rule::Copies, Rule::Newest];
    for rule in rules {
        assert!(seeds_to_find(rule).is_some(), "{rule:?}");
    }
}
