//! `levelhead-lab fs replay`.

use clap::{Args, Subcommand};
use levelhead_app::AppError;
use levelhead_app_fs::{CodeWish, FileKind, Redundancy};
use levelhead_app_lab::{ReplayFiles, file_kind, replay_files};
use levelhead_drive::Rotations;
use levelhead_planner::Code;
use levelhead_units::Ratio;

use crate::values;
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, faults, progress};

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Carry out a list of operations on files, with a code and without
    Replay(ReplayArgs),
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    let Options::Replay(args) = options;
    args.run(output)
}

#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// A file with one operation a line: write PATH OFFSET BYTES, read PATH OFFSET BYTES, sync [PATH], remove PATH, think
    /// MILLISECONDS; begin, before which all is only prepared. Or a synthetic workload: hibench:sort, ycsb:reads=90%
    /// (docs/workloads.md)
    workload: String,
    /// Model of the drive: a shipped profile, or the path of a TOML file
    #[arg(long, value_name = "PROFILE", default_value = "nearline-2tb")]
    drive: String,
    #[arg(long, value_name = "PERCENT", default_value = "0%", help = faults::one("retry-rate"))]
    retry_rate: Ratio,
    #[arg(long, default_value = "3", allow_negative_numbers = true, help = faults::one("rotations"))]
    rotations: Rotations,
    /// The code of the longest groups, REDUNDANT,DATA
    #[arg(long, default_value = "9,246")]
    code: Code,
    /// Redundancy of shorter groups: by-length or fixed
    #[arg(long, value_name = "RULE", default_value = "by-length")]
    redundancy: Redundancy,
    /// The kind of all files: auto, a, b or mutable; the last two on a drive that makes use of zeroes at the end of a sector
    #[arg(long, value_parser = file_kind)]
    kind: Option<FileKind>,
    /// Requests of a list that may be under way at a time, 1 to 1024
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = values::steps, allow_negative_numbers = true)]
    outstanding: u32,
    /// Seed of random choices
    #[arg(long, default_value_t = 7, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
}

impl ReplayArgs {
    fn run(self, output: Output) -> Result<(), AppError> {
        let Self { workload, drive, retry_rate, rotations, code, .. } = self;
        let Self { redundancy, kind, outstanding, seed, .. } = self;
        let code = CodeWish::Code(code);
        let ask = ReplayFiles {
            workload,
            drive,
            retry_rate,
            rotations,
            code,
            redundancy,
            kind,
            outstanding,
            seed,
        };
        output.print(&replay_files(&ask, progress::bars(output).as_ref())?)
    }
}
