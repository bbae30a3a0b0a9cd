//! One file a command: its options, and the one call that carries it out.

mod completions;
mod replay;

use clap::Subcommand;
use levelhead_app::AppError;

use crate::Output;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Replay a load in virtual time, once for each policy
    Replay(Box<replay::Options>),
    /// Print a shell's completions
    Completions(completions::Options),
}

pub(crate) fn run(
    command: Command,
    output: Output,
    definition: &mut clap::Command,
) -> Result<(), AppError> {
    match command {
        Command::Replay(options) => replay::run(*options, output),
        Command::Completions(options) => {
            completions::run(&options, definition);
            Ok(())
        }
    }
}
