//! `levelhead drive ..`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use levelhead_app::AppError;
use levelhead_app_drive::{Emulate, MemoryKey, emulate, probe_device};
use levelhead_drive::{CacheMode, Faults};

use super::listen::ListenArgs;
use levelhead_terminal::signals::stop_on_signals;
use levelhead_terminal::{Output, faults, say};

/// What `--faults` is.
const FAULTS: &str = "Its faults, instead of those in its name";

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Serve one emulated drive over NBD, for other programs to build on
    Emulate(Box<EmulateArgs>),
    /// Show what a drive can do and what it reports; changes nothing on it
    Probe(ProbeArgs),
}

#[derive(Args)]
pub(crate) struct EmulateArgs {
    /// The drive: emu:PATH?profile=nearline-2tb&size=1GiB&retry-rate=2%&rotations=3&slowdown=1
    member: String,
    #[arg(
        long,
        value_name = "KEYS",
        help = faults::all(FAULTS),
        long_help = faults::each(FAULTS),
        value_parser = levelhead_host::read_faults
    )]
    faults: Option<Faults>,
    /// Use of its memory, instead of the one in its name: off, read or write-back. With
    /// write-back a drive that is killed (kill -9) loses what was neither flushed nor written yet
    #[arg(long, value_name = "MODE")]
    cache: Option<CacheMode>,
    /// Read back what was written, and write again what differs: off, raw (within each write) or
    /// idle (when nothing else is to do)
    #[arg(long, value_name = "MODE")]
    verify: Option<String>,
    /// Idle time before it does so
    #[arg(long, value_name = "TIME")]
    idle_wait: Option<String>,
    /// What stays in its memory: mru-lru:SIZE, mru-mru, stay, adaptive or dedicated
    #[arg(long, value_name = "POLICY:SIZE")]
    retention: Option<String>,
    #[command(flatten)]
    nbd: ListenArgs,
}

#[derive(Args)]
pub(crate) struct ProbeArgs {
    /// A block device, or a file
    device: PathBuf,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::Emulate(args) => {
            let EmulateArgs { member, faults, cache, verify, idle_wait, retention, nbd } = *args;
            let typed = [("verify", verify), ("idle-wait", idle_wait), ("retention", retention)];
            let given = |(key, value): (_, Option<String>)| Some(MemoryKey { key, value: value? });
            let memory = typed.into_iter().filter_map(given).collect();
            let nbd = nbd.listen()?;
            let stop = stop_on_signals()?;
            let ask = Emulate { member, faults, cache, memory, nbd };
            let verified = emulate(&ask, &stop, &mut |emulated| {
                // It serves all the same.
                drop(output.print(emulated));
            })?;
            // Not with the results: those are one JSON value.
            if let Some(verified) = verified {
                say(&verified.to_string());
            }
            Ok(())
        }
        Options::Probe(ProbeArgs { device }) => output.print(&probe_device(&device)?),
    }
}
