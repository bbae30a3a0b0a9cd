//! `levelhead-lab rtl ..`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use levelhead_app::AppError;
use levelhead_app_lab::rtl::{EmitEngine, emit_engine};
use levelhead_planner::Code;
use levelhead_rtl::Kind;

use levelhead_terminal::Output;
use levelhead_terminal::values as shared;

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Write an engine into a folder: SystemVerilog, a testbench with its tables, a script for yosys, a README
    Emit(EmitArgs),
}

#[derive(Args)]
pub(crate) struct EmitArgs {
    /// The code: its redundant symbols, then its data symbols
    #[arg(long, value_name = "REDUNDANT,DATA", default_value = "9,246")]
    code: Code,
    /// sector, which encodes and decodes the code of our formats; or polynomial, the encoder of [LEC17], for at most 1023 symbols
    #[arg(long, default_value = "sector")]
    kind: Kind,
    /// Bytes of a sector that the testbench plays, a power of two
    #[arg(long, value_name = "BYTES", default_value = "256", value_parser = shared::whole::<usize>, allow_negative_numbers = true)]
    sector_size: usize,
    /// Patterns of each number of erasures that the testbench plays; for polynomial, ten codewords each
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = shared::whole::<usize>, allow_negative_numbers = true)]
    patterns: usize,
    /// Seed of the testbench's bytes and erasures
    #[arg(long, default_value = "7", value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// The folder; created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Overwrite files of the same names
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    let Options::Emit(args) = options;
    output.print(&emit_engine(&EmitEngine {
        code: args.code,
        kind: args.kind,
        sector_size: args.sector_size,
        patterns: args.patterns,
        seed: args.seed,
        folder: args.output,
        is_forced: args.force,
    })?)
}
