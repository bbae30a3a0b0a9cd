//! `levelhead demo`.

use std::path::PathBuf;

use clap::Args;
use levelhead_app::AppError;
use levelhead_app::demo::{Demo, demo};

use crate::signals::stop_on_signals;
use crate::{Output, progress, values};

#[derive(Args)]
pub(crate) struct Options {
    /// What chance is drawn from
    #[arg(long, default_value_t = 7, value_parser = values::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Where the emulated drives' files go; a folder of its own is made there and removed again
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Show what virtual time predicts beside what real time gives
    #[arg(long)]
    compare: bool,
    /// Write an HTML page with the latencies' distributions to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    let Options { seed, folder, compare, report } = options;
    let stop = stop_on_signals()?;
    let ask = Demo { seed, folder, compare, report };
    output.print(&demo(&ask, &stop, progress::bars(output).as_ref())?)
}
