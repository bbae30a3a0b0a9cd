//! Searches by hand: `search [BOUND|all] [SECONDS]`. Prints what each came to, and how a promise was broken, if one was. All
//! share the seconds: what one does not need, those after it have.

use std::io::{IsTerminal, stderr};
use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use levelhead_torture::commit;
use levelhead_torture::search::{Bound, Limits, Outcome, search};

/// The most states of a bound, some kilobytes of memory each while they wait.
const STATES_MAX: u64 = 100_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("all", String::as_str);
    let seconds = args.get(1).map_or(Ok(60), |text| text.parse());
    let bounds: Vec<(&str, Bound)> = match name {
        "all" => Bound::ALL.to_vec(),
        name => Bound::ALL.into_iter().filter(|(known, _)| *known == name).collect(),
    };
    let (Ok(seconds), false) = (seconds, bounds.is_empty()) else {
        let known = Bound::ALL.map(|(name, _)| name).join(", ");
        eprintln!("search: expected [BOUND] [SECONDS]: all, or one of {known}; a number");
        return ExitCode::from(2);
    };
    let workers = available_parallelism().map_or(1, NonZero::get);
    println!("search: commit {}, {workers} workers", commit());
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut ended = ExitCode::SUCCESS;
    for (at, (name, bound)) in bounds.iter().enumerate() {
        let begun = Instant::now();
        let share = until.saturating_duration_since(begun) / (bounds.len() - at) as u32;
        let limits = Limits { time: share, states: STATES_MAX, workers };
        let tell = |so_far: &Outcome| {
            if stderr().is_terminal() {
                let Outcome { states, images, starts, .. } = so_far;
                eprint!("\r{name}: {states} states, {images} images, {starts} starts so far ");
            }
        };
        let outcome = search(*bound, limits, &tell);
        if stderr().is_terminal() {
            eprint!("\r\x1b[2K");
        }
        println!("{name}: {bound}: {outcome}, {:.1} s", begun.elapsed().as_secs_f64());
        if let Some(broken) = outcome.broken {
            broken.trace.iter().for_each(|what| println!("  {what}"));
            println!("  => {}", broken.how);
            ended = ExitCode::FAILURE;
        }
    }
    ended
}
