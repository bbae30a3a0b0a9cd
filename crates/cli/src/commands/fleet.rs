//! `levelhead fleet ..`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use levelhead_app::AppError;
use levelhead_app::fleet::{Detect, Detector, detect, explain};

use crate::{Output, progress};

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Which drives are slow against the others of their group; ends with 1 if one is
    Detect(DetectArgs),
}

#[derive(Args)]
pub(crate) struct DetectArgs {
    /// Samples: PERSEUS (Parquet, host_N.csv, host_N.csv.zst, or a folder of those), or what `watch` recorded
    #[arg(value_name = "FILE", required_unless_present = "explain")]
    files: Vec<PathBuf>,
    /// The rule: level, median-ratio, mad, tukey or regression
    #[arg(long, default_value = "level")]
    detector: Detector,
    /// Count against drives known to be slow: a CSV with columns host (or group) and disk_id (or drive), and cluster if there are several
    #[arg(long, value_name = "CSV")]
    labels: Option<PathBuf>,
    /// Print the rule and its constants, and read nothing
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::Detect(args) => args.run(output),
    }
}

impl DetectArgs {
    fn run(self, output: Output) -> Result<(), AppError> {
        let Self { files, detector, labels, explain: is_explained } = self;
        if is_explained {
            return output.print(&explain(detector));
        }
        let ask = Detect { files, detector, labels };
        let detected = detect(&ask, progress::bars(output).as_ref())?;
        output.print(&detected)?;
        match detected.slow_count() {
            0 => Ok(()),
            slow => {
                let all = detected.drive_count();
                Err(AppError::trouble(format!("{slow} of {all} drives are slow")))
            }
        }
    }
}
