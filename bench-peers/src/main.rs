//! Our codes measured against the fastest there are, in one process.
//!
//! `ldpc` decodes the code inside a drive by us and by ldpc-toolbox ([`ldpc`]). All the rest is about the other command.
//!
//! `erasure` runs each operation of each code by us, by Intel ISA-L, by reed-solomon-simd and by
//! reed-solomon-erasure, over the same buffers, in turns, next to the true limit, which is reading all
//! sources and writing all results without arithmetic ([`peers::limit`]), and to a plain read. It checks first that the bytes are right ([`verify`]), and prints one
//! row for each code, operation and place of the data ([`table`]).
//!
//! What counts as one operation:
//!
//! ```text
//!   encode         all data of a codeword -> all its redundancy
//!   reconstruct:E  E data sectors from the others and the first E redundant ones; plan ready
//!   update         the difference of one data sector -> all redundancy; only these are touched
//!   accumulate     as encode, into open redundancy, four data sectors at a time
//! ```
//!
//! A rate is data bytes per second of this thread's CPU time. `dram` goes from codeword to codeword
//! of a pool larger than any cache, and writes where the codeword's own place is; `hot` stays with
//! one codeword.

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the peers are measured on x86-64: ISA-L is assembler");

mod bars;
mod code;
#[expect(unsafe_code, reason = "it is where all of it is")]
mod kernel;
mod ldpc;
mod measure;
mod peers;
mod pool;
mod row;
mod table;
mod verify;

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use serde::Serialize;

use levelhead_erasure::Kernel;

use code::{Cache, Operation, SHAPES, Shape, unknown_operation};
use measure::{Coder, Effort, race};
use peers::isal::Isal;
use peers::limit::movers;
use peers::ours::{self, Ours};
use peers::rs_simd::RsSimd;
use peers::rse::{Codec, Rse};
use peers::streaming::Streaming;
use pool::Pool;
use row::{Rates, Row};
use table::Report;

/// Measures us against others.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Erasure codes.
    Erasure {
        /// Prints JSON instead of tables.
        #[arg(long)]
        json: bool,
        /// Only this code; may be given again.
        #[arg(long = "code", value_name = "CODE")]
        codes: Vec<Shape>,
        /// Only this operation, as `encode` or `reconstruct:3`; may be given again.
        #[arg(long = "operation", value_name = "OPERATION")]
        operations: Vec<String>,
        /// Rounds of which the median counts.
        #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
        rounds: u16,
        /// CPU time of one turn, in milliseconds.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
        turn: u16,
    },
    /// The decoder of the code inside a drive.
    Ldpc {
        /// Prints JSON instead of tables.
        #[arg(long)]
        json: bool,
        /// Rounds of which the median counts.
        #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
        rounds: u16,
    },
}

fn main() -> ExitCode {
    let (json, codes, operations, rounds, turn) = match Arguments::parse().command {
        Command::Erasure { json, codes, operations, rounds, turn } => {
            (json, codes, operations, rounds, turn)
        }
        Command::Ldpc { json, rounds } => {
            print(json, &ldpc::measure(rounds.into()));
            return ExitCode::SUCCESS;
        }
    };
    let effort = Effort { rounds: rounds.into(), turn: Duration::from_millis(u64::from(turn)) };
    let shapes = if codes.is_empty() { SHAPES.to_vec() } else { codes };
    if let Some(name) = unknown_operation(&operations, &shapes) {
        eprintln!(
            "'{name}' is no operation of the codes asked for, which have encode, reconstruct:E for 1, 2 or as many as are redundant, update and accumulate"
        );
        return ExitCode::from(2);
    }
    match measure_all(&shapes, &operations, effort) {
        Ok(report) => {
            print(json, &report);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(json: bool, report: &(impl Serialize + fmt::Display)) {
    if json {
        println!("{}", serde_json::to_string_pretty(report).expect("it has string keys"));
    } else {
        print!("{report}");
    }
}

fn measure_all(shapes: &[Shape], only: &[String], effort: Effort) -> Result<Report, String> {
    let mut rows = Vec::new();
    let mut pool = Pool::new()?;
    for &shape in shapes {
        eprintln!("{shape}: making reed-solomon-erasure's matrix");
        let rse = Codec::new(shape).ok_or(format!("{shape}: reed-solomon-erasure refuses"))?;
        eprintln!("{shape}: checking bytes");
        verify::verify(&mut pool, shape, &rse)?;
        let is_asked =
            |operation: &Operation| only.is_empty() || only.contains(&operation.to_string());
        for operation in shape.operations().into_iter().filter(is_asked) {
            for cache in Cache::ALL {
                eprintln!("{shape}: {operation}, {cache}");
                let rates = measure(&mut pool, shape, &operation, cache, &rse, effort);
                rows.push(Row::new(shape, &operation, cache, &rates));
            }
        }
    }
    Ok(Report::new(effort, rows))
}

/// One row.
fn measure(
    pool: &mut Pool,
    shape: Shape,
    operation: &Operation,
    cache: Cache,
    rse: &Codec,
    effort: Effort,
) -> Rates {
    let kernels = match operation {
        Operation::Encode => ours::kernels(),
        Operation::Reconstruct { .. } | Operation::Update | Operation::Accumulate => {
            ours::kernels().into_iter().take(2).collect()
        }
    };
    let mut streaming = Streaming::new(operation);
    // Ours is what is measured to be the best of two; then each kernel for itself.
    let ours_of = |name, kernels: &[Kernel]| {
        let choices = ours::measured(kernels, cache).choices;
        Some((name, Ours::new(choices, shape, operation)?))
    };
    let best = kernels[..kernels.len().min(2)].to_vec();
    let mut ours: Vec<(&'static str, Ours)> = ours_of("measured", &best).into_iter().collect();
    let each = kernels.iter().filter(|_| *operation == Operation::Encode);
    ours.extend(each.filter_map(|&kernel| ours_of(kernel.name(), &[kernel])));
    let mut movers = movers(operation, cache);
    let mut isal = Isal::dot(shape, operation);
    let mut isal_update = Isal::update(shape, operation);
    let mut rs_simd = RsSimd::new(shape, operation);
    let mut rse = Rse::new(rse, shape, operation);

    let mut coders: Vec<&mut dyn Coder> = vec![&mut streaming, &mut rse];
    coders.extend(isal.as_mut().map(|coder| coder as &mut dyn Coder));
    coders.extend(isal_update.as_mut().map(|coder| coder as &mut dyn Coder));
    coders.extend(rs_simd.as_mut().map(|coder| coder as &mut dyn Coder));
    coders.extend(ours.iter_mut().map(|(_, coder)| coder as &mut dyn Coder));
    coders.extend(movers.iter_mut().map(|coder| coder as &mut dyn Coder));

    let mut codewords = pool.codewords(&operation.layout(shape));
    let data_count = operation.data_count(shape);
    let mut rates = race(&mut codewords, cache, data_count, effort, &mut coders).into_iter();
    let mut next = || rates.next().expect("a rate for each coder");
    let setup = match operation {
        Operation::Reconstruct { lost } => {
            ours::code(shape).map(|code| ours::setup_us(&code, lost.len()))
        }
        Operation::Encode | Operation::Update | Operation::Accumulate => None,
    };
    Rates {
        streaming: next(),
        rse: Some(next()),
        isal: isal.map(|_| next()),
        isal_update: isal_update.map(|_| next()),
        rs_simd: rs_simd.map(|_| next()),
        ours: ours.into_iter().map(|(name, _)| (name, next())).collect(),
        limit: movers.into_iter().map(|_| next()).fold(0.0, f64::max),
        setup,
    }
}
