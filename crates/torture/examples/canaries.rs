//! Which rule of the journal, left out, crash swarms notice, and after how many images: `canaries [IMAGES] [RULE] [AIM]`.
//!
//! Those that CI waits for are in `tests/crash.rs`; the others need two or three faults at one moment.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_torture::crash::{Aim, Tally, run};

fn main() -> ExitCode {
    let most = match std::env::args().nth(1).map(|text| text.parse::<u64>()) {
        None => 100_000,
        Some(Ok(most)) => most,
        Some(Err(_)) => {
            eprintln!("canaries: expected the most images for each rule, a whole number");
            return ExitCode::from(2);
        }
    };
    let name = std::env::args().nth(2);
    let is_meant = |rule: &Rule| name.as_ref().is_none_or(|name| *name == format!("{rule:?}"));
    let special =
        [&Rule::OF_RETURNS[..], &Rule::OF_COPIES, &Rule::OF_FILLS, &Rule::OF_VERIFICATION].concat();
    let all = Rule::ALL.into_iter().chain(special);
    let rules: Vec<Rule> = all.filter(is_meant).collect();
    set_hook(Box::new(|_| {}));
    let aim = std::env::args().nth(3);
    let is_aim = |(name, _): &(&str, Aim)| aim.as_ref().is_none_or(|aim| aim == name);
    let aims: Vec<(&str, Aim)> = Aim::ALL.into_iter().filter(is_aim).collect();
    if rules.is_empty() || aims.is_empty() {
        eprintln!("canaries: no rule or no aim has that name");
        return ExitCode::from(2);
    }
    for rule in rules {
        let mut tally = Tally::default();
        let found = (0_u64..).find_map(|seed| {
            if tally.images > most {
                return Some(None);
            }
            let (name, aim) = aims[(seed % aims.len() as u64) as usize];
            let aim = Aim { rules: Rules::without(rule), ..aim };
            let ended = catch_unwind(AssertUnwindSafe(|| run(seed, aim, &mut tally)));
            (!matches!(ended, Ok(Ok(())))).then_some(Some((seed, name)))
        });
        match found.flatten() {
            Some((seed, name)) => {
                println!("without {rule:?}: seed {seed}, aim {name}, {} images", tally.images);
            }
            None => println!("without {rule:?}: not noticed in {} images", tally.images),
        }
    }
    ExitCode::SUCCESS
}
