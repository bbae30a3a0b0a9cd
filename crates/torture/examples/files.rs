//! The filesystem's crash swarm by hand: `files [AIM|all|sequences] [FIRST] [COUNT] [--shrink] [--without RULE]`. Prints every seed that
//! breaks a promise, and crash images a minute of one core. With `sequences` COUNT says that one of this number of them is run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use levelhead_fs::rules::{Rule, Rules};
use levelhead_torture::files::{Aim, Tally, run, sequences, shrink};

/// What is to be run.
struct Ask {
    aims: Vec<(&'static str, Aim)>,
    are_sequences: bool,
    first: u64,
    count: u64,
    shrinks: bool,
}

fn main() -> ExitCode {
    let Some(ask) = read_args() else {
        let aims = Aim::ALL.map(|(name, _)| name).join(", ");
        let rules = Rule::ALL.map(|rule| format!("{rule:?}")).join(", ");
        eprintln!(
            "files: expected [AIM] [FIRST] [COUNT] [--shrink] [--without RULE]: all, sequences, or one of {aims}; two whole numbers; \
             one of {rules}"
        );
        return ExitCode::from(2);
    };
    let mut broken = 0_u64;
    for (name, aim) in &ask.aims {
        let (begun, mut tally) = (Instant::now(), Tally::default());
        if ask.are_sequences {
            broken += ended(ask.first, || sequences(ask.first, ask.count, aim, &mut tally));
        } else {
            for seed in ask.first..ask.first + ask.count {
                let failed = ended(seed, || run(seed, aim, &mut tally));
                broken += failed;
                if failed > 0
                    && ask.shrinks
                    && let Some(shortest) = shrink(seed, aim)
                {
                    println!("  shortest: {shortest}");
                }
            }
        }
        let minutes = begun.elapsed().as_secs_f64() / 60.0;
        let rate = tally.images as f64 / minutes;
        println!("{name}: {tally:?}, {broken} broken, {rate:.0} images a minute");
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs something; 1 if it breaks a promise.
fn ended<E: std::fmt::Display>(seed: u64, run: impl FnOnce() -> Result<(), E>) -> u64 {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return 0,
        Ok(Err(how)) => println!("{how}"),
        Err(_) => println!("seed {seed} panics"),
    }
    1
}

fn read_args() -> Option<Ask> {
    let (mut numbers, mut named, mut rules, mut shrinks) = (Vec::new(), None, Rules::ALL, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), arg.parse::<u64>()) {
            (_, Ok(number)) => numbers.push(number),
            ("--shrink", _) => shrinks = true,
            ("--without", _) => {
                let name = args.next()?;
                let rule = Rule::ALL.into_iter().find(|rule| format!("{rule:?}") == name)?;
                rules = Rules::without(rule);
            }
            _ => named = Some(arg),
        }
    }
    let name = named.unwrap_or_else(|| "all".to_owned());
    let are_sequences = name == "sequences";
    let is_meant = |(known, _): &(&str, Aim)| name == "all" || name == *known;
    let aims: Vec<(&str, Aim)> = match are_sequences {
        true => vec![("sequences", Aim::DEFAULT)],
        false => Aim::ALL.into_iter().filter(is_meant).collect(),
    };
    let aims: Vec<(&str, Aim)> =
        aims.into_iter().map(|(name, aim)| (name, Aim { rules, ..aim })).collect();
    let (first, count) = match numbers[..] {
        [] => (0, 100),
        [first] => (first, 100),
        [first, count] => (first, count),
        _ => return None,
    };
    (!aims.is_empty()).then_some(Ask { aims, are_sequences, first, count, shrinks })
}
