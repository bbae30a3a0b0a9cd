//! Our array beside Linux MD, in real time, over the same emulated drives.
//!
//! ```text
//!   emulated drive --NBD--+                        emulated drives
//!   emulated drive --NBD--+-- QEMU                       |
//!   ..                    |    |                    our array
//!                            guest: MD RAID-5            |
//!                              |                      --NBD-- QEMU -- guest: one disk
//!                            client                                     |
//!                                                                     client
//! ```
//!
//! The guest is Debian's kernel with nothing but its modules, mdadm, busybox and a client of ours
//! (`client/`), the same for both systems: it reads at the same random places at the same times, a
//! Poisson process, and prints every latency. Figures are made here.
//!
//! * R1: both systems have drives of the same make, in the same trouble, of the same seed, with at most
//!   as many commands inside, and arrays of the same chunk.
//! * R2: a read counts from when it was due; one that was not answered when the run ended counts with
//!   its age. A system that falls behind ever more is called overloaded, and has no figures.
//! * R3: every wait has a limit, and whatever ends the program, but being killed, ends all it started.
//!
//! Left out: drives that fail altogether, and writes, except with `--checksums` ([`integrity`]).

mod cpio;
mod guest;
mod integrity;
mod kernel;
mod lateness;
mod process;
mod rig;
mod sample;
mod scenario;
mod table;
mod tools;

use std::env;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use levelhead_units::{Bytes, Nanos};
use serde::Serialize;

use guest::Guest;
use kernel::Kernel;
use process::Stop;
use rig::Rig;
use scenario::{Scenario, System};
use table::{Report, Versions};
use tools::Tools;

/// Compares our array with Linux MD in a virtual machine, over the same emulated drives.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Prints JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measures the cost of checksums instead (MD over dm-integrity, our array with checksums), with this many
    /// requests of each load.
    #[arg(
        long,
        value_name = "REQUESTS",
        num_args = 0..=1,
        default_missing_value = "1000",
        conflicts_with_all = ["scenarios", "chunks", "seconds"],
        value_parser = clap::value_parser!(u64).range(100..=100_000)
    )]
    checksums: Option<u64>,
    /// Only this scenario; may be given again.
    #[arg(long = "scenario", value_name = "NAME")]
    scenarios: Vec<Scenario>,
    /// The chunk of both arrays; may be given again.
    #[arg(long = "chunk", value_name = "SIZE", default_values = ["8KiB", "64KiB"], value_parser = chunk)]
    chunks: Vec<Bytes>,
    /// How long reads come in one run.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,
    /// What places and failures are drawn from.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Where the drives' files go; the system's folder for temporary files if nowhere else.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// A Debian package of a kernel, instead of the newest one for virtual machines.
    #[arg(long, value_name = "FILE.deb")]
    kernel: Option<PathBuf>,
    /// A `levelhead` that has been built, instead of this tree's.
    #[arg(long, value_name = "PROGRAM")]
    levelhead: Option<PathBuf>,
}

/// MD takes powers of two from a page upwards.
fn chunk(text: &str) -> Result<Bytes, String> {
    let chunk: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if chunk.get() < 4096 || !chunk.get().is_power_of_two() {
        return Err("expected a power of two of at least 4KiB".to_owned());
    }
    Ok(chunk)
}

/// What is wrong: something to be given or installed, or a run that failed.
enum Trouble {
    Usage(String),
    Run(String),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match compare(&arguments) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(Trouble::Usage(sentence)) => {
            eprintln!("{sentence}");
            ExitCode::from(2)
        }
        Err(Trouble::Run(sentence)) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

/// The report, as it is to be printed.
fn compare(arguments: &Arguments) -> Result<String, Trouble> {
    let stop = Stop::at_signals().map_err(Trouble::Run)?;
    let tools = Tools::find().map_err(Trouble::Usage)?;
    let parent = arguments.folder.clone().unwrap_or_else(env::temp_dir);
    rig::check_folder(&parent).map_err(Trouble::Usage)?;
    let work = work_folder().map_err(Trouble::Run)?;
    let kernel = Kernel::get(arguments.kernel.as_deref(), &work, &stop).map_err(Trouble::Usage)?;
    let levelhead = match &arguments.levelhead {
        Some(program) => std::path::absolute(program)
            .map_err(|error| Trouble::Usage(format!("{}: {error}", program.display())))?,
        None => tools::build_levelhead(&stop).map_err(Trouble::Run)?,
    };
    let client = tools::build_client(&stop).map_err(Trouble::Run)?;
    let [qemu, mdadm, integritysetup] = tools.versions(&stop).map_err(Trouble::Run)?;
    let guest =
        Guest::make(&tools, &kernel, &client, work.join("initrd"), &stop).map_err(Trouble::Run)?;
    let length = Nanos::from_millis(1000 * arguments.seconds);
    let rig = Rig { levelhead, guest, parent, seed: arguments.seed, length };
    let versions = Versions { kernel: kernel.version, qemu, mdadm, integritysetup };
    if let Some(count) = arguments.checksums {
        let report = integrity::compare(&rig, versions, count, &stop).map_err(Trouble::Run)?;
        return Ok(printed(&report, arguments.json));
    }
    let mut report = Report::new(versions, arguments.seed, length);
    let scenarios = match arguments.scenarios.as_slice() {
        [] => Scenario::all(),
        some => some.to_vec(),
    };
    for &chunk in &arguments.chunks {
        for scenario in &scenarios {
            for system in System::BOTH {
                let (name, size) = (system.name(), chunk.get() >> 10);
                eprintln!("{}, chunks of {size} KiB: {name}", scenario.name);
                let measured = rig.run(system, scenario, chunk, &stop).map_err(Trouble::Run)?;
                report.add(system, scenario, chunk, &measured);
            }
        }
    }
    Ok(printed(&report, arguments.json))
}

fn printed(report: &(impl Display + Serialize), is_json: bool) -> String {
    if is_json {
        let text = serde_json::to_string_pretty(report).expect("it has string keys");
        format!("{text}\n")
    } else {
        report.to_string()
    }
}

/// Where the kernel is kept from one call to the next: beside this program.
fn work_folder() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("this program's folder: {error}"))?;
    Ok(program.parent().unwrap_or(Path::new("/")).join("md-guest"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_powers_of_two_from_a_page_upwards() {
        assert_eq!(chunk("64KiB"), Ok(Bytes::new(64 << 10)));
        for text in ["2KiB", "12KiB", "much"] {
            assert!(chunk(text).is_err(), "{text}");
        }
    }
}
