//! The bars: what was set out to be reached on a CPU with AVX-512 and GFNI, and whether it is.
//!
//! All but three kinds are ratios to somebody else in the same rounds: from the cache, against the
//! paper's hardware, and for the time of a plan there is nobody to be compared with.

use std::fmt;

use serde::Serialize;

use crate::code::{Cache, Operation, Shape};
use crate::row::{Row, text};

/// What encoding by one code is to reach.
struct Goal {
    /// Of the streaming-read limit, from memory.
    of_limit: f64,
    /// Times a peer's rate, from memory.
    against: (Peer, f64),
    /// GB/s from the cache.
    hot: Option<f64>,
}

#[derive(Clone, Copy)]
enum Peer {
    Isal,
    RsSimd,
}

/// Of the rate of encoding with as many redundant symbols, for reconstructing so many.
const RECONSTRUCT_OF_ENCODE: f64 = 0.9;

/// Microseconds for the plan of a new erasure pattern.
const SETUP_US: f64 = 20.0;

/// GB/s from memory: three times the hardware engine of the paper.
const HARDWARE_GBPS: f64 = 12.0;

/// Kernels for CPUs that have less, and what they reach times reed-solomon-erasure's rate, from
/// memory. One program holds only one build of it: its AVX2, which is compared with both, or its plain
/// Rust, with which only the portable one is.
const SMALL_KERNELS: &[&str] =
    if cfg!(feature = "rse-avx2") { &["avx2", "portable"] } else { &["portable"] };
const SMALL_KERNEL_OF_RSE: f64 = 1.0;

/// One bar and where we are.
#[derive(Debug, Serialize)]
pub(crate) struct Bar {
    #[serde(serialize_with = "text")]
    code: Shape,
    what: String,
    limit: Limit,
    measured: f64,
    reached: bool,
}

/// Which side of a number is good.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Limit {
    AtLeast(f64),
    Below(f64),
}

/// All bars that `rows` have figures for.
pub(crate) fn bars(rows: &[Row]) -> Vec<Bar> {
    let is_encode = |row: &&Row| row.operation == Operation::Encode && row.cache == Cache::Dram;
    rows.iter().filter(is_encode).flat_map(|encode| of_code(encode, rows)).collect()
}

/// The bars of one code, with its row for encoding from memory.
fn of_code(encode: &Row, rows: &[Row]) -> Vec<Bar> {
    let shape = encode.code;
    let (Some(goal), Some(ours)) = (goal(shape), encode.ours_gbps) else { return Vec::new() };
    let bar = |what: String, limit: Limit, measured: f64| {
        let reached = match limit {
            Limit::AtLeast(limit) => measured >= limit,
            Limit::Below(limit) => measured < limit,
        };
        Bar { code: shape, what, limit, measured: (measured * 1e3).round() / 1e3, reached }
    };
    let at_least =
        |what: &str, limit, measured| bar(what.to_owned(), Limit::AtLeast(limit), measured);
    let mut bars =
        vec![at_least("encode, of the limit", goal.of_limit, ours / encode.streaming_gbps)];
    let (what, theirs) = match goal.against.0 {
        Peer::Isal => ("encode, times ISA-L", encode.isal_gbps),
        Peer::RsSimd => ("encode, times rs-simd", encode.rs_simd_gbps),
    };
    bars.extend(theirs.map(|theirs| at_least(what, goal.against.1, ours / theirs)));
    bars.push(at_least("encode, GB/s", HARDWARE_GBPS, ours));
    for &name in SMALL_KERNELS {
        let both = encode.ours_by_kernel_gbps.get(name).zip(encode.rse_gbps);
        let what = format!("encode by {name}, times rse");
        bars.extend(both.map(|(ours, rse)| at_least(&what, SMALL_KERNEL_OF_RSE, ours / rse)));
    }
    for row in rows.iter().filter(|row| row.code == shape) {
        match (&row.operation, row.cache) {
            (Operation::Encode, Cache::Hot) => {
                let both = goal.hot.zip(row.ours_gbps);
                bars.extend(both.map(|(hot, ours)| at_least("encode, GB/s hot", hot, ours)));
            }
            (Operation::Reconstruct { lost }, Cache::Dram) => {
                // With as many lost as are redundant, the code itself tells what encoding costs.
                if let Some(gbps) = row.ours_gbps.filter(|_| lost.len() == shape.redundant) {
                    let what = format!("{}, of encode", row.operation);
                    bars.push(bar(what, Limit::AtLeast(RECONSTRUCT_OF_ENCODE), gbps / ours));
                }
                let what = format!("{}, µs to plan", row.operation);
                bars.extend(row.ours_setup_us.map(|us| bar(what, Limit::Below(SETUP_US), us)));
            }
            (Operation::Encode, Cache::Dram)
            | (Operation::Reconstruct { .. }, Cache::Hot)
            | (Operation::Update | Operation::Accumulate, _) => {}
        }
    }
    bars
}

fn goal(shape: Shape) -> Option<Goal> {
    use Peer::{Isal, RsSimd};
    let (of_limit, against, hot) = match (shape.redundant, shape.data) {
        (3, 252) => (0.70, (Isal, 2.3), Some(95.0)),
        (4, 251) => (0.70, (Isal, 2.7), Some(85.0)),
        (5, 250) => (0.70, (Isal, 3.0), Some(75.0)),
        (9, 246) => (0.70, (Isal, 4.3), Some(45.0)),
        (4, 1019) => (0.68, (RsSimd, 3.0), Some(50.0)),
        (7, 1016) => (0.65, (RsSimd, 3.0), Some(34.0)),
        (9, 1014) => (0.55, (RsSimd, 3.0), Some(28.0)),
        (19, 1004) => (0.30, (RsSimd, 2.0), Some(15.0)),
        (1, 5) => (0.70, (Isal, 1.4), None),
        (2, 4) => (0.50, (Isal, 1.4), None),
        (2, 10) => (0.65, (Isal, 1.4), None),
        (3, 15) => (0.47, (Isal, 1.05), None),
        _ => return None,
    };
    Some(Goal { of_limit, against, hot })
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, what, limit, measured, reached } = self;
        let limit = match limit {
            Limit::AtLeast(limit) => format!("at least {limit}"),
            Limit::Below(limit) => format!("below {limit}"),
        };
        let reached = if *reached { "yes" } else { "**no**" };
        write!(f, "| {code} | {what} | {limit} | {measured:.3} | {reached} |")
    }
}
