//! How slow reads get at worst: `tails [SEEDS [FIRST [AIM]]]` runs seeds of the swarm of that name, of arrays as they come (0)
//! or with the aim of that number at a kind of late reads that is known.
//!
//! Prints each seed with what came of it, in the end how many years of an array a day of one core is, and how many seeds have
//! broken the bound by each kind.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use levelhead_torture::tails::{Aim, Swarm};
use levelhead_units::Nanos;

fn main() -> ExitCode {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let numbers = numbers.ok().filter(|numbers| numbers.len() <= 3);
    let aim = |number: u64| match number.checked_sub(1) {
        None => Some(Aim::DEFAULT),
        Some(at) => Aim::KNOWN.get(at as usize).map(|&(_, aim, _)| aim),
    };
    let aim = numbers.as_ref().and_then(|said| aim(said.get(2).copied().unwrap_or(0)));
    let (Some(numbers), Some(aim)) = (numbers, aim) else {
        eprintln!(
            "tails: expected at most three whole numbers: how many seeds, the first of them, and an aim from 0 to {}",
            Aim::KNOWN.len()
        );
        return ExitCode::from(2);
    };
    let count = numbers.first().copied().unwrap_or(100);
    let first = numbers.get(1).copied().unwrap_or(0);
    let (begun, mut swarm) = (Instant::now(), Swarm::default());
    let (mut time, mut busy) = (Nanos::ZERO, Nanos::ZERO);
    let (mut broken, mut kinds) = (0, BTreeMap::new());
    for seed in first..first + count {
        match swarm.run(seed, &aim) {
            Ok(report) => {
                println!("{report}");
                (time, busy) = (time + report.time, busy + report.time_busy);
            }
            Err(found) => {
                println!("BROKEN {found}");
                broken += 1;
                *kinds.entry(found.kind()).or_insert(0) += 1;
            }
        }
    }
    let wall = begun.elapsed().as_secs_f64();
    // Virtual seconds a second are days a day.
    let years = |time: Nanos| time.as_secs_f64() / wall / 365.25;
    println!(
        "{count} seeds in {wall:.1} s, {broken} broken; {:.2} array-years a core-day, {:.2} of them with requests to serve",
        years(time),
        years(busy),
    );
    for (kind, broken) in kinds {
        let kind =
            kind.map_or("none of the kinds of late reads".to_owned(), |kind| kind.to_string());
        println!("{broken:6} {kind}");
    }
    ExitCode::SUCCESS
}
