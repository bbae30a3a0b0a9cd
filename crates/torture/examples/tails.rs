//! How slow reads get at worst: `tails [SEEDS [FIRST]]` runs seeds of the swarm of that name.
//!
//! Prints each seed with what came of it, and in the end how many years of an array a day of one core is.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use levelhead_torture::tails::{Aim, Swarm};
use levelhead_units::Nanos;

fn main() -> ExitCode {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let [count, first] = match numbers.as_deref() {
        Ok([]) => [100, 0],
        Ok([count]) => [*count, 0],
        Ok([count, first]) => [*count, *first],
        Ok(_) | Err(_) => {
            eprintln!(
                "tails: expected at most two whole numbers, how many seeds and the first of them"
            );
            return ExitCode::from(2);
        }
    };
    let (begun, mut swarm) = (Instant::now(), Swarm::default());
    let (mut time, mut busy) = (Nanos::ZERO, Nanos::ZERO);
    let (mut broken, mut kinds) = (0, BTreeMap::new());
    for seed in first..first + count {
        match swarm.run(seed, &Aim::DEFAULT) {
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
