//! Crash swarms by hand: `crashes [AIM|all] [FIRST] [COUNT]`. Prints every seed that breaks the promise, what each swarm
//! has met, and its crash images a minute of one core.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use levelhead_torture::commit;
use levelhead_torture::crash::{Aim, Met, Tally, run};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).map_or(Ok(default), |text| text.parse());
    let name = args.first().map_or("all", String::as_str);
    let is_all = name == "all";
    let known = Aim::KNOWN.into_iter().filter(|(known, _)| name == *known);
    let aims = Aim::ALL.into_iter().filter(|(known, _)| is_all || name == *known);
    let aims: Vec<(&str, Aim)> = aims.chain(known).collect();
    let (Ok(first), Ok(count), false) = (number(1, 0), number(2, 100), aims.is_empty()) else {
        let known = Aim::ALL.into_iter().chain(Aim::KNOWN).map(|(name, _)| name);
        let known = known.collect::<Vec<&str>>().join(", ");
        eprintln!("crashes: expected [AIM] [FIRST] [COUNT]: all, or one of {known}; two numbers");
        return ExitCode::from(2);
    };
    println!("crashes: commit {}, {count} seeds from {first} on", commit());
    let (mut broken, mut met) = (0_u64, Met::default());
    for (name, aim) in aims {
        let (begun, mut tally) = (Instant::now(), Tally::default());
        for seed in first..first + count {
            let ended = catch_unwind(AssertUnwindSafe(|| run(seed, aim, &mut tally)));
            if let Ok(Ok(())) = ended {
                continue;
            }
            broken += 1;
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(how)) => println!("{name}: {how}"),
                Err(_) => println!("{name}: seed {seed} panics"),
            }
        }
        let minutes = begun.elapsed().as_secs_f64() / 60.0;
        met.add(&tally.met);
        println!("{name}: {tally:?}, {:.0} images a minute", tally.images as f64 / minutes);
    }
    println!("{met}");
    if is_all {
        // Each aim by itself leaves out most.
        let [pairs, transitions] = met.never().map(|never| never.join(", "));
        println!("never met: {pairs}\ntransitions never met: {transitions}");
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
