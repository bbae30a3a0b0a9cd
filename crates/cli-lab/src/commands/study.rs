//! `levelhead-lab study`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use levelhead_app::AppError;
use levelhead_app_lab::study::{RunStudy, Shard, list, merge, run as run_study};

use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, progress};

#[derive(Subcommand)]
pub(crate) enum Options {
    /// List all studies
    List,
    /// Run a study: the paper's numbers and ours, with 95 % intervals over seeds
    Run(Run),
    /// Combine the parts of a study that --shard has computed
    Merge(Merge),
}

#[derive(Args)]
pub(crate) struct Run {
    /// The study, as in levelhead-lab study list
    name: String,
    /// Use fewer requests and seeds: at most a minute
    #[arg(long)]
    quick: bool,
    /// The first seed; the others follow it
    #[arg(long, default_value_t = 7, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Number of seeds; each study has its own number for quick and for full runs
    #[arg(long, value_parser = shared::whole::<u32>, allow_negative_numbers = true)]
    seeds: Option<u32>,
    /// A trace in place of a synthetic load (fleet.detect: samples of drives), for studies that take one; may be repeated
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// Drives of the samples that are known to be slow, as in levelhead-lab fleet detect
    #[arg(long, value_name = "CSV")]
    labels: Option<PathBuf>,
    /// Write an HTML page with the figures into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "shard")]
    report: Option<PathBuf>,
    /// Compute only the I-th of N parts; --json then prints what levelhead-lab study merge takes
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Keep the measurements in this file, and resume from it
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Merge {
    /// All parts of one run, as --shard and --json have printed them
    #[arg(required = true)]
    parts: Vec<PathBuf>,
    /// Write an HTML page with the figures into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::List => output.print(&list()),
        Options::Run(Run { name, quick, seed, seeds, trace, labels, report, shard, resume }) => {
            let ask =
                RunStudy { name, quick, seed, seeds, traces: trace, labels, report, shard, resume };
            output.print(run_study(&ask, progress::bars(output).as_ref())?.as_ref())
        }
        Options::Merge(Merge { parts, report }) => output.print(&merge(&parts, report.as_ref())?),
    }
}
