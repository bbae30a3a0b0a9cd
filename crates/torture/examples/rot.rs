//! Swarms of faulty drives by hand: `rot [AIM|all] [FIRST] [COUNT]`. Prints every seed that breaks the promise, and what each
//! swarm has come to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use levelhead_torture::commit;
use levelhead_torture::rot::{Aim, Tally, run};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).map_or(Ok(default), |text| text.parse());
    let name = args.first().map_or("all", String::as_str);
    let all = Aim::ALL.into_iter().chain(Aim::KNOWN);
    let aims = all.clone().filter(|(known, _)| name == "all" || name == *known);
    let aims: Vec<(&str, Aim)> = aims.collect();
    let (Ok(first), Ok(count), false) = (number(1, 0), number(2, 100), aims.is_empty()) else {
        let known = all.map(|(name, _)| name).collect::<Vec<&str>>().join(", ");
        eprintln!("rot: expected [AIM] [FIRST] [COUNT]: all, or one of {known}; two numbers");
        return ExitCode::from(2);
    };
    println!("rot: commit {}, {count} seeds from {first} on", commit());
    let mut broken = 0_u64;
    for (name, aim) in aims {
        let mut tally = Tally::default();
        let before = broken;
        for seed in first..first + count {
            match catch_unwind(AssertUnwindSafe(|| run(seed, aim, &mut tally))) {
                Ok(Ok(())) => continue,
                Ok(Err(how)) => println!("{name}: {how}"),
                Err(_) => println!("{name}: seed {seed} panics"),
            }
            broken += 1;
        }
        let percent = |of: u64| 100.0 * of as f64 / tally.faulty.max(1) as f64;
        println!("{name}: {} broken, {tally:?}", broken - before);
        if aim == Aim::DROPPED {
            let (before, after) = (percent(tally.wrong_before), percent(tally.wrong_after));
            println!(
                "{name}: wrong data in {before:.1} % of the faulty runs, {after:.1} % after a scrub"
            );
        }
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
