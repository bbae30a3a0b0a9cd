//! The levelhead-lab program: parse what was typed, call one function of an `app` crate, print what it shows.

#![forbid(unsafe_code)]

mod commands;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use levelhead_terminal::{Output, end, refuse};

use crate::commands::Command;

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
    match Cli::try_parse() {
        Ok(cli) => {
            let output = cli.output;
            end(PROGRAM, output, commands::run(cli.command, output, &mut Cli::command()))
        }
        Err(error) => refuse(PROGRAM, &error),
    }
}
