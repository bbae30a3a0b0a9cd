//! `levelhead-lab drive ..`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use levelhead_app::AppError;
use levelhead_app_lab::{Measure, Model, drive_makes, measure_drive, model_drive};
use levelhead_drive::measure::Thoroughness;
use levelhead_terminal::signals::stop_on_signals;
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, progress};

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Show a drive model: seeks, rates, random reads by queue depth; without a name, list the models
    Model(ModelArgs),
    /// Measure a profile of a drive by reads alone
    Measure(MeasureArgs),
}

#[derive(Args)]
pub(crate) struct MeasureArgs {
    /// A block device, a file, or an emulated drive, emu:PATH?profile=nearline-2tb; it is only read
    drive: String,
    /// File of the profile, for --drive of replay and profile= of emulated drives
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file
    #[arg(long)]
    force: bool,
    /// Measure for seconds instead of minutes; accurate to some per cent
    #[arg(long)]
    quick: bool,
    /// Seed of random choices
    #[arg(long, default_value_t = 7, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
}

#[derive(Args)]
pub(crate) struct ModelArgs {
    /// A shipped profile, or the path of a TOML file
    profile: Option<String>,
    /// How much of its positioning time a waiting command may save, per time waited
    #[arg(
        long,
        default_value_t = 0.0,
        value_parser = shared::number,
        allow_negative_numbers = true,
        requires = "profile"
    )]
    age_weight: f64,
    /// Seed of random choices
    #[arg(long, default_value_t = 7, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Write an HTML page with the curves to this file
    #[arg(long, value_name = "FILE", requires = "profile")]
    report: Option<PathBuf>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::Measure(MeasureArgs { drive, output: path, force, quick, seed }) => {
            let thoroughness = if quick { Thoroughness::Quick } else { Thoroughness::Thorough };
            let ask = Measure { drive, output: path, force, thoroughness, seed };
            let stop = stop_on_signals()?;
            output.print(&measure_drive(&ask, &stop, progress::bars(output).as_ref())?)
        }
        Options::Model(ModelArgs { profile: None, .. }) => output.print(&drive_makes()),
        Options::Model(ModelArgs { profile: Some(profile), age_weight, seed, report }) => {
            output.print(&model_drive(&Model { profile, age_weight, seed, report })?)
        }
    }
}
