//! Crash swarms over arrays with a journal.

use std::panic::{AssertUnwindSafe, catch_unwind};

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_lab::crash::disk::Manners;
use levelhead_lab::crash::{Aim, Tally, run};

/// Runs `count` seeds from `first` on.
fn swarm(first: u64, count: u64, aim: Aim) -> Tally {
    let mut tally = Tally::default();
    for seed in first..first + count {
        if let Err(broken) = run(seed, aim, &mut tally) {
            panic!("{broken}");
        }
    }
    println!("seeds {first} to {}: {tally:?}", first + count - 1);
    tally
}

#[test]
fn no_crash_breaks_the_promise() {
    let count = std::env::var("CRASH_SEEDS").ok().and_then(|text| text.parse().ok());
    let first = std::env::var("CRASH_FIRST").ok().and_then(|text| text.parse().ok());
    let (first, count) = (first.unwrap_or(0), count.unwrap_or(40));
    for (name, aim) in Aim::ALL {
        print!("{name}: ");
        swarm(first, count, aim);
    }
}

/// How many seeds it takes until the swarm notices that something is wrong with arrays like these.
fn seeds_to_find(what: &str, aim: Aim) -> u64 {
    let most = 1_000;
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut tally = Tally::default();
    let is_broken = |seed: &u64| {
        let run = catch_unwind(AssertUnwindSafe(|| run(*seed, aim, &mut tally)));
        !matches!(run, Ok(Ok(())))
    };
    let found = (0..most).find(is_broken);
    std::panic::set_hook(hook);
    eprintln!("{what}: {found:?}, {} images", tally.images);
    found.map_or(most + 1, |seed| seed + 1)
}

/// Rules that a few seeds notice. Others of [`Rule::ALL`] take two or three faults at one moment: the example
/// `canaries` looks for all of them.
#[test]
fn rules_that_are_left_out_are_noticed() {
    for rule in [Rule::Records, Rule::Flush, Rule::Complete, Rule::Order] {
        let aim = Aim { rules: Rules::without(rule), ..Aim::DEFAULT };
        assert!(seeds_to_find(&format!("without {rule:?}"), aim) <= 100, "{rule:?}");
    }
}

#[test]
fn array_without_a_journal_and_disks_that_lie_are_noticed() {
    let open = Aim { has_journal: false, ..Aim::DEFAULT };
    assert!(seeds_to_find("no journal", open) <= 100);
    let lying = Aim { manners: Manners::Lying, ..Aim::DEFAULT };
    assert!(seeds_to_find("disks that lie", lying) <= 100);
}
