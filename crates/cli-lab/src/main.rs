//! The levelhead-lab program: parse what was typed, call one function of an `app` crate, print what it shows.

#![forbid(unsafe_code)]

mod commands;
mod examples;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use levelhead_terminal::{Output, end, examples::shown, refuse};

use crate::commands::Command;
use crate::examples::EXAMPLES;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Its name in messages.
const PROGRAM: &str = "levelhead-lab";

/// Levelhead's engine in virtual time: replay loads, reproduce the papers, plan codes, analyse fleets.
#[derive(Parser)]
#[command(name = PROGRAM, version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let mut definition = shown(Cli::command(), EXAMPLES);
    let parsed = definition.try_get_matches_from_mut(std::env::args_os());
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            let output = cli.output;
            end(PROGRAM, output, commands::run(cli.command, output, &mut Cli::command()))
        }
        Err(error) => refuse(PROGRAM, &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_examples_and_takes_them() {
        levelhead_terminal::examples::check(&Cli::command(), EXAMPLES);
    }
}
