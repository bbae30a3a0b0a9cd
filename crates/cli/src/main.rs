//! The levelhead program: parse what was typed, call one function of an `app` crate, print what it shows.
//!
//! Called `fsck.levelhead`, it has the exit codes of fsck(8).

#![forbid(unsafe_code)]

mod commands;
mod examples;
mod journal;
mod manager;
mod names;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use levelhead_app::AppError;
use levelhead_terminal::{Output, end, examples::shown, refuse};

use crate::commands::Command;
use crate::examples::EXAMPLES;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Its name in messages.
const PROGRAM: &str = "levelhead";

/// Software RAID and filesystems that stay fast and intact while their disks misbehave.
#[derive(Parser)]
#[command(name = PROGRAM, version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    if names::is_fsck(std::env::args_os().next().as_deref()) {
        return commands::fsck::run();
    }
    let arguments = names::arguments(std::env::args_os());
    if let Some(moved) = names::moved(&arguments) {
        let json = arguments.iter().any(|argument| argument == "--json");
        return end(PROGRAM, Output { json, quiet: false }, Err(AppError::usage(moved)));
    }
    let mut definition = shown(Cli::command(), EXAMPLES);
    let parsed = definition.try_get_matches_from_mut(arguments);
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
