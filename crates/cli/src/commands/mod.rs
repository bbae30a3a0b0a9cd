//! One file a command: its options, and the one call that carries it out.

mod array;
mod completions;
mod demo;
mod drive;
mod ecc;
mod fleet;
mod fs;
mod fs_replay;
pub(crate) mod fsck;
mod listen;
mod man;
mod plan;
mod replay;
mod rtl;
mod study;
mod watch;

use clap::Subcommand;
use levelhead_app::AppError;

use crate::Output;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// See the main job done: six failing drives, two policies, a minute; nothing to prepare
    Demo(demo::Options),
    /// Arrays on this machine's drives
    #[command(subcommand)]
    Array(array::Options),
    /// One drive
    #[command(subcommand)]
    Drive(drive::Options),
    /// Filesystems that repair themselves inside one disk
    #[command(subcommand)]
    Fs(fs::Options),
    /// Replay a load in virtual time, once for each policy
    Replay(Box<replay::Options>),
    /// The papers' tables and figures, with our numbers beside theirs
    #[command(subcommand)]
    Study(study::Options),
    /// Closed forms: which code, what overhead, what tail, which way of reading
    #[command(subcommand)]
    Plan(plan::Options),
    /// The code inside a drive: what it is, and how often it fails
    #[command(subcommand)]
    Ecc(ecc::Options),
    /// The erasure engine in hardware
    #[command(subcommand)]
    Rtl(rtl::Options),
    /// Which drives of a fleet are slow
    #[command(subcommand)]
    Fleet(fleet::Options),
    /// Which drives of this host are slow against their peers or hang, said as it runs
    Watch(Box<watch::Options>),
    /// Print a shell's completions
    Completions(completions::Options),
    /// Write the manual's pages, one a command, into a folder
    Man(man::Options),
}

pub(crate) fn run(
    command: Command,
    output: Output,
    definition: &mut clap::Command,
) -> Result<(), AppError> {
    match command {
        Command::Demo(options) => demo::run(options, output),
        Command::Array(options) => array::run(options, output),
        Command::Drive(options) => drive::run(options, output),
        Command::Fs(options) => fs::run(options, output),
        Command::Replay(options) => replay::run(*options, output),
        Command::Study(options) => study::run(options, output),
        Command::Plan(options) => plan::run(options, output),
        Command::Ecc(options) => ecc::run(options, output),
        Command::Rtl(options) => rtl::run(options, output),
        Command::Fleet(options) => fleet::run(options, output),
        Command::Watch(options) => watch::run(*options, output),
        Command::Completions(options) => completions::run(&options, definition, output),
        Command::Man(options) => man::run(&options, definition.clone()),
    }
}
