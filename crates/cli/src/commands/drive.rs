//! `levelhead drive ..`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use levelhead_app::{AppError, Emulate, emulate, probe_device};
use levelhead_drive::Faults;
use levelhead_nbd::Endpoint;

use crate::Output;
use crate::signals::stop_on_signals;

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Serve one emulated drive over NBD, for other programs to build on
    Emulate(Box<EmulateArgs>),
    /// Say what a drive can do and what it says of itself; changes nothing on it
    Probe(ProbeArgs),
}

#[derive(Args)]
pub(crate) struct EmulateArgs {
    /// The drive: emu:PATH?profile=nearline-2tb&size=1GiB&retry-rate=2%&rotations=3&slowdown=1
    member: String,
    /// What is wrong with it, instead of what its name says: KEY=VALUE,.. with retry-rate, adjacency,
    /// bursts, rotations, hard-rate, slowdown, episodes, periodic, field, stalls, lost-writes,
    /// torn-writes and death (docs/drive.md)
    #[arg(long, value_name = "KEYS")]
    faults: Option<Faults>,
    /// Where NBD clients find it: unix:PATH, a path ending in .sock, tcp:PORT on this machine, or
    /// tcp:ADDRESS:PORT
    #[arg(long)]
    nbd: Endpoint,
    /// The export's name
    #[arg(long, default_value = "")]
    export: String,
}

#[derive(Args)]
pub(crate) struct ProbeArgs {
    /// A block device, or a file
    device: PathBuf,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::Emulate(args) => {
            let EmulateArgs { member, faults, nbd, export } = *args;
            let stop = stop_on_signals()?;
            emulate(&Emulate { member, faults, nbd, export }, &stop, &mut |emulated| {
                // It serves all the same.
                drop(output.print(emulated));
            })
        }
        Options::Probe(ProbeArgs { device }) => output.print(&probe_device(&device)?),
    }
}
