//! The filesystem's crash swarm by hand: `files [FIRST] [COUNT] [--shrink]`. Prints every seed that breaks a promise, and crash images
//! a minute of one core.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use levelhead_lab::files::{Aim, Tally, run, shrink};

fn main() -> ExitCode {
    let (shrinks, args): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg == "--shrink");
    let number = |at: usize, default: u64| args.get(at).map_or(Ok(default), |text| text.parse());
    let (Ok(first), Ok(count)) = (number(0, 0), number(1, 100)) else {
        eprintln!("files: expected [FIRST] [COUNT] [--shrink], two whole numbers");
        return ExitCode::from(2);
    };
    let (begun, mut tally, mut broken) = (Instant::now(), Tally::default(), 0_u64);
    for seed in first..first + count {
        let ended = catch_unwind(AssertUnwindSafe(|| run(seed, &Aim::DEFAULT, &mut tally)));
        match ended {
            Ok(Ok(())) => continue,
            Ok(Err(how)) => println!("{how}"),
            Err(_) => println!("seed {seed} panics"),
        }
        broken += 1;
        if !shrinks.is_empty()
            && let Some(shortest) = shrink(seed, &Aim::DEFAULT)
        {
            println!("  shortest: {shortest}");
        }
    }
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    println!(
        "{tally:?}, {broken} of {count} broken, {:.0} images a minute",
        tally.images as f64 / minutes
    );
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
