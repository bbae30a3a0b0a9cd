//! `levelhead-lab demo`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use levelhead_app::AppError;
use levelhead_app_drive::demo::{Demo, demo};

use levelhead_app_lab::in_virtual_time;
use levelhead_terminal::signals::stop_on_signals;
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, progress};

#[derive(Args)]
pub(crate) struct Options {
    /// Seed of random choices
    #[arg(long, default_value_t = 7, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Length of each of the five runs, in seconds, 1 to 3600
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = shared::seconds, allow_negative_numbers = true)]
    seconds: u64,
    /// Folder for the emulated drives' files; they are in a folder of their own, which is removed at the end
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Write an HTML page with the latency distributions to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    let Options { seed, seconds, folder, report } = options;
    let stop = stop_on_signals()?;
    let length = Duration::from_secs(seconds);
    let ask = Demo { seed, length, folder, report };
    output.print(&demo(&ask, Some(&in_virtual_time), &stop, progress::bars(output).as_ref())?)
}
