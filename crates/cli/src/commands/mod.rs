//! One file a command: its options, and the one call that carries it out.

mod array;
mod demo;
mod drive;
mod fs;
pub(crate) mod fsck;
mod listen;
mod watch;

use clap::Subcommand;
use levelhead_app::AppError;
use levelhead_terminal::{Output, completions, man};

use crate::PROGRAM;
use crate::examples::EXAMPLES;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create, serve and manage arrays (software RAID over NBD)
    #[command(subcommand)]
    Array(array::Options),
    /// Create, mount and repair filesystems with Reed-Solomon codes inside one disk
    #[command(subcommand)]
    Fs(fs::Options),
    /// Watch this host's drives for fail-slow and hung ones
    Watch(Box<watch::Options>),
    /// Probe a drive, or serve an emulated one
    #[command(subcommand)]
    Drive(drive::Options),
    /// Run a demo: six failing emulated drives, two policies, one minute
    Demo(demo::Options),
    /// Print a shell's completions
    Completions(completions::Options),
    /// Write the man pages, one a command, into a folder
    Man(man::Options),
}

pub(crate) fn run(
    command: Command,
    output: Output,
    definition: &mut clap::Command,
) -> Result<(), AppError> {
    match command {
        Command::Array(options) => array::run(options, output),
        Command::Fs(options) => fs::run(options, output),
        Command::Watch(options) => watch::run(*options, output),
        Command::Drive(options) => drive::run(options, output),
        Command::Demo(options) => demo::run(options, output),
        Command::Completions(options) => completions::run(&options, PROGRAM, definition, output),
        Command::Man(options) => man::run(&options, definition.clone(), EXAMPLES),
    }
}
