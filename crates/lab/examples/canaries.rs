//! Which rule of the journal, left out, crash swarms notice, and after how many images: `canaries [IMAGES]`.
//!
//! Those that CI waits for are in `tests/crash.rs`; the others need two or three faults at one moment.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_lab::crash::{Aim, Tally, run};

fn main() -> ExitCode {
    let most = match std::env::args().nth(1).map(|text| text.parse::<u64>()) {
        None => 100_000,
        Some(Ok(most)) => most,
        Some(Err(_)) => {
            eprintln!("canaries: expected the most images for each rule, a whole number");
            return ExitCode::from(2);
        }
    };
    set_hook(Box::new(|_| {}));
    for rule in Rule::ALL {
        let mut tally = Tally::default();
        let found = (0_u64..).find_map(|seed| {
            if tally.images > most {
                return Some(None);
            }
            let aim = if seed % 4 == 0 { Aim::DEFAULT } else { Aim::LONG };
            let aim = Aim { rules: Rules::without(rule), ..aim };
            let ended = catch_unwind(AssertUnwindSafe(|| run(seed, aim, &mut tally)));
            (!matches!(ended, Ok(Ok(())))).then_some(Some(seed))
        });
        match found.flatten() {
            Some(seed) => println!("without {rule:?}: seed {seed}, {} images", tally.images),
            None => println!("without {rule:?}: not noticed in {} images", tally.images),
        }
    }
    ExitCode::SUCCESS
}
