//! `levelhead demo`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use levelhead_app::AppError;
use levelhead_app_drive::demo::{Demo, demo};

use levelhead_terminal::signals::stop_on_signals;
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, progress};

#[derive(Args)]
pub(crate) struct Options {
    /// What chance is drawn from
    #[arg(long, default_value_t = 7, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// How long each of the five runs lasts, in seconds
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=3600), allow_negative_numbers = true)]
    seconds: u64,
    /// Where the emulated drives' files go; a folder of its own is made there and removed again
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Write an HTML page with the latencies' distributions to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    let Options { seed, seconds, folder, report } = options;
    let stop = stop_on_signals()?;
    let length = Duration::from_secs(seconds);
    let ask = Demo { seed, length, folder, report };
    output.print(&demo(&ask, None, &stop, progress::bars(output).as_ref())?)
}
