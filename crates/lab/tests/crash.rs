//! Crash swarms over arrays with a journal.

use levelhead_lab::crash::{Aim, Tally, run};

/// Runs so many seeds from `first` on.
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
    swarm(first.unwrap_or(0), count.unwrap_or(20), Aim::DEFAULT);
}
