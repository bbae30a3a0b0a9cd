//! Our array beside nbdkit: what our way from a socket to six files and back costs, against the shortest
//! there is, one file behind nbdkit's plugin `file`.
//!
//! ```text
//!                +--unix socket-- nbdkit file ------------ one file --+
//!   fio (libnbd) |                                                    |  all in memory (/dev/shm)
//!                +--unix socket-- levelhead array serve -- six files --+
//! ```
//!
//! * R1: both servers have the same client, the same bytes written before, and take turns in every round.
//! * R2: a run that is disturbed is worse, never better; so the best of all rounds is compared, and the median
//!   is told beside it.
//! * R3: every wait has a limit, and whatever ends the program, but being killed, ends all it started.
//!
//! The array does more for a write than nbdkit does: it computes redundancy, and stores it.

mod jobs;
#[path = "../../md/src/process.rs"]
mod process;
mod servers;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use jobs::Job;
use process::Stop;
use servers::{Servers, System, Tools};
use table::Report;

/// Compares our array with nbdkit, over files in memory.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Prints JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Only this job; may be given again.
    #[arg(long = "job", value_name = "NAME")]
    jobs: Vec<String>,
    /// How often the servers take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How long a run takes.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Where the files go: a folder in memory.
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
    /// A `levelhead` that has been built, instead of this tree's.
    #[arg(long, value_name = "PROGRAM")]
    levelhead: Option<PathBuf>,
}

/// What is wrong: something to be given or installed, or a run that failed.
enum Trouble {
    Usage(String),
    Run(String),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match compare(&arguments) {
        Ok(report) if arguments.json => {
            println!("{}", serde_json::to_string_pretty(&report).expect("it has string keys"));
            ExitCode::SUCCESS
        }
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

fn compare(arguments: &Arguments) -> Result<Report, Trouble> {
    let stop = Stop::at_signals().map_err(Trouble::Run)?;
    let jobs = jobs::named(&arguments.jobs).map_err(Trouble::Usage)?;
    let tools = Tools::find().map_err(Trouble::Usage)?;
    let levelhead = match &arguments.levelhead {
        Some(program) => std::path::absolute(program)
            .map_err(|error| Trouble::Usage(format!("{}: {error}", program.display())))?,
        None => servers::build_levelhead(&stop).map_err(Trouble::Run)?,
    };
    let nbdkit = tools.version(&stop).map_err(Trouble::Run)?;
    let mut servers =
        Servers::start(&tools, &levelhead, &arguments.folder, &stop).map_err(Trouble::Run)?;
    let mut report = Report::new(nbdkit, arguments.rounds, arguments.seconds);
    for round in 0..arguments.rounds {
        for &job in &jobs {
            // Who begins takes turns, too: what is warm helps both alike.
            let mut turns = System::BOTH;
            turns.rotate_left(round as usize % 2);
            for system in turns {
                eprintln!(
                    "round {} of {}: {}, {}",
                    round + 1,
                    arguments.rounds,
                    job.name,
                    system.name()
                );
                let run = servers.run(&tools, system, job, arguments.seconds, &stop);
                report.add(system, job, run.map_err(Trouble::Run)?);
            }
        }
    }
    Ok(report)
}

/// What one run of a job came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    /// Bytes a second.
    pub(crate) rate: f64,
    /// Mean latency in microseconds.
    pub(crate) latency: f64,
}

/// The better of two by what the job is about.
fn is_better(job: Job, left: Measured, right: Measured) -> bool {
    match job.figure {
        jobs::Figure::Rate => left.rate > right.rate,
        jobs::Figure::Latency => left.latency < right.latency,
    }
}
