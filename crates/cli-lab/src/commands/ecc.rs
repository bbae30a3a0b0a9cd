//! `levelhead-lab ecc ..`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use levelhead_app::AppError;
use levelhead_app_lab::ecc::{Simulate, TableAsk, retry_table, show_code, simulate};
use levelhead_ldpc::{ChannelKind, Kernel, RetryModel, Step, Until, ZeroForcing};

use crate::values;
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, progress};

#[derive(Subcommand)]
pub(crate) enum Options {
    /// The parameters of the code, and its matrix
    Code(CodeArgs),
    /// Failure rates by Monte Carlo, with exact 95 % intervals
    Simulate(SimulateArgs),
    /// Failure rates of the steps of a drive's retries, from these rates and off-track heads
    Table(TableArgs),
}

#[derive(Args)]
pub(crate) struct CodeArgs {
    /// Write the parity-check matrix to this file, in the alist format
    #[arg(long, value_name = "FILE")]
    alist: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct SimulateArgs {
    /// Zeroes at a sector's end that the decoder knows, in bytes: 0, 256, 512 or 1024
    #[arg(long, value_name = "BYTES,..", value_delimiter = ',', default_value = "0,256,512,1024")]
    forced: Vec<ZeroForcing>,
    /// Raw bit error rates
    #[arg(long, value_name = "P,..", value_delimiter = ',', required = true, value_parser = shared::probability, allow_negative_numbers = true)]
    ber: Vec<f64>,
    /// Input of the decoder for a sample: soft, a level; or hard, one bit
    #[arg(long, default_value = "soft")]
    channel: ChannelKind,
    /// End a point after this many failures
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = values::failures, allow_negative_numbers = true)]
    failures: u64,
    /// End a point after this many sectors, rounded up to blocks of 64
    #[arg(long, value_name = "COUNT", default_value = "1000000", value_parser = values::frames, allow_negative_numbers = true)]
    frames_max: u64,
    /// Maximum number of decoder iterations
    #[arg(long, value_name = "COUNT", default_value = "50", value_parser = values::iterations, allow_negative_numbers = true)]
    iterations: u32,
    /// Seed of random choices
    #[arg(long, default_value = "7", value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Kernel: naive, portable, avx2 or avx512; the counts do not depend on it
    #[arg(long)]
    kernel: Option<Kernel>,
    /// Keep the counts in this file, and resume from it
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct TableArgs {
    /// Share of sectors without zeroes whose first pass fails
    #[arg(long, value_name = "P", default_value = "5e-3", value_parser = shared::probability, allow_negative_numbers = true)]
    failure_rate: f64,
    /// How far beside the middle of the track a sector was written: standard deviation, as a share of the track pitch
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = shared::probability, allow_negative_numbers = true)]
    written_offset: f64,
    /// How far beside it each pass is: standard deviation, as a share of the track pitch
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = shared::probability, allow_negative_numbers = true)]
    pass_offset: f64,
    /// A step, once for each, the first pass first: revolutions=1,aim=-3%,averaged=1,iterations=50, in any order; what
    /// is left out is as in the first pass. Without any: the first pass, one more that is averaged with it, then one
    /// revolution each at 3, -3, 6, -6, 9 and -9 %
    #[arg(long = "step", value_name = "KEY=VALUE,..", value_parser = values::retry_step)]
    steps: Vec<Step>,
    /// Write the table to this file, for ecc=FILE among a drive's faults
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::Code(CodeArgs { alist }) => output.print(&show_code(alist.as_deref())?),
        Options::Simulate(args) => {
            let ask = Simulate {
                forced: args.forced,
                bers: args.ber,
                channel: args.channel,
                until: Until { failures: args.failures, frames_max: args.frames_max },
                iterations: args.iterations,
                seed: args.seed,
                kernel: args.kernel,
                checkpoint: args.checkpoint,
            };
            output.print(&simulate(&ask, progress::bars(output).as_ref())?)
        }
        Options::Table(args) => {
            let TableArgs { failure_rate, written_offset, pass_offset, steps, output: file } = args;
            let steps = if steps.is_empty() { Step::list() } else { steps };
            let model = RetryModel { failure_rate, written_offset, pass_offset, steps };
            output.print(&retry_table(&TableAsk { model, output: file })?)
        }
    }
}
