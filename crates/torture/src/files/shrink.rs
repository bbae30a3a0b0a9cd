//! The shortest history that still breaks a promise, as far as that is cheaply found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Tally;
use super::life::Script;

/// Histories that are tried.
const TRIES_MAX: u32 = 300;

/// See the module; nothing if none is broken.
pub(crate) fn shrink(script: Script) -> Option<String> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let shortest = shortest(script);
    std::panic::set_hook(hook);
    shortest.map(|Failed { script, how }| {
        let mut text = format!("{}: {how}\n  operations:", script.make);
        script.operations.iter().for_each(|op| text.push_str(&format!("\n    {op:?}")));
        text.push_str("\n  what was asked for:");
        script.told.iter().for_each(|told| text.push_str(&format!("\n    {told}")));
        text
    })
}

/// A history and what was wrong.
struct Failed {
    script: Script,
    how: String,
}

fn attempt(mut script: Script) -> Option<Failed> {
    let ended = catch_unwind(AssertUnwindSafe(|| script.run(&mut Tally::default())));
    match ended {
        Ok(Ok(())) => None,
        Ok(Err(how)) => Some(Failed { script, how }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Some(Failed { script, how: format!("it panics: {}", text.unwrap_or_default()) })
        }
    }
}

/// What is wrong without its numbers, and without the cuts before.
fn class(how: &str) -> String {
    let last = how.rsplit("), ").next().unwrap_or(how);
    last.split(|c: char| c.is_ascii_digit()).next().unwrap_or(last).to_owned()
}

fn shortest(script: Script) -> Option<Failed> {
    let mut best = attempt(script)?;
    let mut tries = 0;
    let mut part = best.script.operations.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < best.script.operations.len() && tries < TRIES_MAX {
            let mut script = best.script.clone();
            let end = (at + part).min(script.operations.len());
            script.operations.drain(at..end);
            // Fewer boundaries are left: an image at each.
            script.aim.odds.image = 1;
            tries += 1;
            match attempt(script) {
                Some(failed) if class(&failed.how) == class(&best.how) => best = failed,
                Some(_) | None => at += part,
            }
        }
        if part == 1 || tries >= TRIES_MAX {
            return Some(best);
        }
        part = part.div_ceil(2);
    }
}
