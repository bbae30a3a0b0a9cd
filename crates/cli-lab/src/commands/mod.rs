//! One file a command: its options, and the one call that carries it out.

mod demo;
mod drive;
mod ecc;
mod fleet;
mod fs;
mod plan;
mod replay;
mod rtl;
mod study;

use clap::Subcommand;
use levelhead_app::AppError;
use levelhead_terminal::{Output, completions, man};

use crate::PROGRAM;
use crate::examples::EXAMPLES;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Replay a trace or a synthetic load in virtual time, once for each policy
    Replay(Box<replay::Options>),
    /// Reproduce the papers' tables and figures, with our numbers beside theirs
    #[command(subcommand)]
    Study(study::Options),
    /// Analytic estimates: code strength, overhead, tail latency, read strategy
    #[command(subcommand)]
    Plan(plan::Options),
    /// Show a drive model, or measure a profile of a drive
    #[command(subcommand)]
    Drive(drive::Options),
    /// Replay operations on files over a modelled drive
    #[command(subcommand)]
    Fs(fs::Options),
    /// Analyse a fleet's records, and find its slow drives
    #[command(subcommand)]
    Fleet(fleet::Options),
    /// Parameters and failure rates of the LDPC code inside a drive
    #[command(subcommand)]
    Ecc(ecc::Options),
    /// The erasure code as Verilog
    #[command(subcommand)]
    Rtl(rtl::Options),
    /// The demo of levelhead in real time, beside what virtual time predicts
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
        Command::Replay(options) => replay::run(*options, output),
        Command::Study(options) => study::run(options, output),
        Command::Plan(options) => plan::run(options, output),
        Command::Drive(options) => drive::run(options, output),
        Command::Fs(options) => fs::run(options, output),
        Command::Fleet(options) => fleet::run(options, output),
        Command::Ecc(options) => ecc::run(options, output),
        Command::Rtl(options) => rtl::run(options, output),
        Command::Demo(options) => demo::run(options, output),
        Command::Completions(options) => completions::run(&options, PROGRAM, definition, output),
        Command::Man(options) => man::run(&options, definition.clone(), EXAMPLES),
    }
}
