//! The bars: what was set out to be reached on whatever machine it runs, and whether it is.
//!
//! All but one are ratios to a peer or to the true limit in the same rounds; the time of a plan has no peer.

use std::fmt;

use serde::Serialize;

use crate::code::{Cache, Operation, Shape};
use crate::row::{Row, text};

/// Of the better of ISA-L's ways, for encoding, wherever the data is; or, where that is less, of the true
/// limit, or of ISA-L itself where it is above what was taken for the limit.
const OF_ISAL: f64 = 1.1;
const OF_LIMIT_AT_MOST: f64 = 0.95;

/// The rate of reconstructing symbols over the rate of encoding as many redundant ones.
const RECONSTRUCT_OF_ENCODE: f64 = 0.9;

/// Microseconds for the plan of a new erasure pattern.
const SETUP_US: f64 = 20.0;

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
    let Some(ours) = encode.ours_gbps else { return Vec::new() };
    let bar = |what: String, limit: Limit, measured: f64| {
        let reached = match limit {
            Limit::AtLeast(limit) => measured >= limit,
            Limit::Below(limit) => measured < limit,
        };
        Bar { code: shape, what, limit, measured: (measured * 1e3).round() / 1e3, reached }
    };
    let at_least =
        |what: &str, limit, measured| bar(what.to_owned(), Limit::AtLeast(limit), measured);
    let mut bars = Vec::new();
    bars.extend(
        of_limit(shape)
            .map(|goal| at_least("encode, of the limit", goal, ours / encode.limit_gbps)),
    );
    bars.extend(against_isal(encode).map(|(what, goal, ratio)| at_least(&what, goal, ratio)));
    for &name in SMALL_KERNELS {
        let both = encode.ours_by_kernel_gbps.get(name).zip(encode.rse_gbps);
        let what = format!("encode by {name}, times rse");
        bars.extend(both.map(|(ours, rse)| at_least(&what, SMALL_KERNEL_OF_RSE, ours / rse)));
    }
    for row in rows.iter().filter(|row| row.code == shape) {
        match (&row.operation, row.cache) {
            (Operation::Encode, Cache::Hot) => {
                let bar = against_isal(row);
                bars.extend(bar.map(|(what, goal, ratio)| at_least(&what, goal, ratio)));
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

/// What is set, what is to be reached, and what is.
fn against_isal(row: &Row) -> Option<(String, f64, f64)> {
    let (ours, isal) = row.ours_gbps.zip(row.isal_best_gbps())?;
    let where_ = match row.cache {
        Cache::Dram => "from memory",
        Cache::Hot => "hot",
    };
    Some(if OF_ISAL * isal <= OF_LIMIT_AT_MOST * row.limit_gbps {
        (format!("encode {where_}, times the better ISA-L"), OF_ISAL, ours / isal)
    } else if isal > row.limit_gbps {
        let what = format!("encode {where_}, of ISA-L, which is above the limit");
        (what, OF_LIMIT_AT_MOST, ours / isal)
    } else {
        let what = format!("encode {where_}, of the limit, which ISA-L is near");
        (what, OF_LIMIT_AT_MOST, ours / row.limit_gbps)
    })
}

/// What encoding from memory is to reach of the true limit.
fn of_limit(shape: Shape) -> Option<f64> {
    match (shape.redundant, shape.data) {
        (9, 246) => Some(0.65),
        (9, 1014) => Some(0.5),
        (redundant, _) => (redundant <= 5).then_some(0.8),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Rates;

    fn against(isal: f64) -> f64 {
        let rates = Rates {
            ours: vec![("measured", 90.0)],
            limit: 80.0,
            streaming: 80.0,
            isal: Some(isal),
            isal_update: None,
            rs_simd: None,
            rse: None,
            setup: None,
        };
        let shape: Shape = "5+1".parse().unwrap();
        let row = Row::new(shape, &Operation::Encode, Cache::Hot, &rates);
        let (_, _, ratio) = against_isal(&row).unwrap();
        ratio
    }

    #[test]
    fn no_limit_that_isal_is_above_makes_a_bar_lower() {
        assert_eq!(against(60.0), 90.0 / 60.0);
        assert_eq!(against(75.0), 90.0 / 80.0);
        assert_eq!(against(120.0), 90.0 / 120.0);
    }
}
