//! Swarms for as long as one likes: `cargo xtask soak --minutes 30`.
//!
//! Every seed from `--first` on runs once in each swarm, until the time is up. A seed that fails is printed with
//! what it found, and the others go on; the same seed finds the same again. One line a hundred seeds says how
//! far it is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use levelhead_torture::commit;
use levelhead_torture::crash::{self, Aim, Tally};
use levelhead_torture::files;
use levelhead_torture::restarts::{self, Planted};
use levelhead_torture::swarm::{self, Sabotage};
use levelhead_torture::tails::{Aim as TailAim, Kind, Swarm};

/// Requests of one run of the swarm.
const REQUESTS: u64 = 400;

/// One of this number of sequences of operations on a filesystem, for each seed.
const SEQUENCES: u64 = 401;

struct Ask {
    first: u64,
    time: Duration,
}

fn main() -> ExitCode {
    let Some(ask) = read_args() else {
        eprintln!("soak: expected [--minutes N] [--first SEED], both whole numbers");
        return ExitCode::from(2);
    };
    let begun = Instant::now();
    let (mut seed, mut failed) = (ask.first, 0_u64);
    // Seconds of arrays in the swarm of tails, and seconds that they took.
    let (simulated, mut spent) = (Cell::new(0.0), 0.0);
    let known = Known::default();
    let minutes = ask.time.as_secs() / 60;
    println!("soak: commit {}, seeds from {seed} on for {minutes} min", commit());
    while begun.elapsed() < ask.time {
        failed += run("swarm", seed, |seed| drop(swarm::run(seed, REQUESTS, Sabotage::None)));
        failed += run("restarts", seed, |seed| drop(restarts::run(seed, Planted::None)));
        failed += run("crash", seed, crashes);
        failed += run("files", seed, cuts);
        let before = Instant::now();
        failed += run("tails", seed, |seed| simulated.set(simulated.get() + tails(seed, &known)));
        spent += before.elapsed().as_secs_f64();
        seed += 1;
        if (seed - ask.first).is_multiple_of(100) {
            let minutes = begun.elapsed().as_secs_f64() / 60.0;
            println!("soak: {} seeds in {minutes:.1} min, {failed} failed", seed - ask.first);
        }
    }
    println!("soak: {} seeds, {failed} failed", seed - ask.first);
    println!("soak: tails: {:.2} array-years a core-day", simulated.get() / spent / 365.25);
    for (kind, seeds) in known.take() {
        println!("soak: tails: {seeds} seeds with late reads that are known: {kind}");
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Crashes at every effect boundary of a short script, and at some of a long one.
fn crashes(seed: u64) {
    for (_, aim) in Aim::ALL {
        crash::run(seed, aim, &mut Tally::default()).unwrap_or_else(|broken| panic!("{broken}"));
    }
}

/// Cuts of a filesystem, in random histories of both kinds and during some short ones.
fn cuts(seed: u64) {
    let mut tally = files::Tally::default();
    let ended = files::Aim::ALL.iter().try_for_each(|(_, aim)| files::run(seed, aim, &mut tally));
    let ended =
        ended.and_then(|()| files::sequences(seed, SEQUENCES, &files::Aim::DEFAULT, &mut tally));
    ended.unwrap_or_else(|broken| panic!("{broken}"));
}

/// Seeds by the kind of their late reads.
type Known = RefCell<BTreeMap<Kind, u64>>;

/// Reads beside drives that are slow, hang, retry, fail or lie; for how many seconds the array ran. Kinds of late reads that are
/// known are counted.
fn tails(seed: u64, known: &Known) -> f64 {
    match Swarm::default().run(seed, &TailAim::DEFAULT) {
        Ok(report) => report.time.as_secs_f64(),
        Err(broken) => match broken.kind().filter(|kind| kind.is_known()) {
            Some(kind) => {
                *known.borrow_mut().entry(kind).or_default() += 1;
                0.0
            }
            None => panic!("{broken}"),
        },
    }
}

/// Runs one seed of a swarm; 1 if it has failed.
fn run(name: &str, seed: u64, swarm: impl Fn(u64)) -> u64 {
    // The panic says what it found.
    let has_failed = catch_unwind(AssertUnwindSafe(|| swarm(seed))).is_err();
    if has_failed {
        println!("soak: {name} has failed with seed {seed}");
    }
    u64::from(has_failed)
}

fn read_args() -> Option<Ask> {
    let mut ask = Ask { first: 1_000_000, time: Duration::from_secs(600) };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value: u64 = args.next()?.parse().ok()?;
        match name.as_str() {
            "--first" => ask.first = value,
            "--minutes" => ask.time = Duration::from_secs(value.checked_mul(60)?),
            _ => return None,
        }
    }
    Some(ask)
}
