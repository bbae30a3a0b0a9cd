//! One line of the report.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::code::{Cache, Operation, Shape};

/// One line of the table. Rates are GB of data per second of CPU time, medians of the rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// "redundant,data", or "data+redundant" for an array.
    #[serde(serialize_with = "text")]
    pub(crate) code: Shape,
    #[serde(serialize_with = "text")]
    pub(crate) operation: Operation,
    #[serde(serialize_with = "text")]
    pub(crate) cache: Cache,
    pub(crate) ours_gbps: Option<f64>,
    /// All sources read and all results written, past the caches where it starts in memory, and no
    /// arithmetic: the fastest of several ways.
    pub(crate) limit_gbps: f64,
    /// All sources read, and no more.
    pub(crate) streaming_gbps: f64,
    pub(crate) isal_gbps: Option<f64>,
    pub(crate) isal_update_gbps: Option<f64>,
    pub(crate) rs_simd_gbps: Option<f64>,
    pub(crate) rse_gbps: Option<f64>,
    /// Our other kernels, for encoding.
    pub(crate) ours_by_kernel_gbps: BTreeMap<String, f64>,
    /// CPU time of the plan for an erasure pattern not seen before.
    pub(crate) ours_setup_us: Option<f64>,
}

/// Rates of all contestants, as they were measured.
#[derive(Debug)]
pub(crate) struct Rates {
    /// What was measured to be the best, then each of our kernels; empty if we cannot do the code.
    pub(crate) ours: Vec<(&'static str, f64)>,
    pub(crate) limit: f64,
    pub(crate) streaming: f64,
    pub(crate) isal: Option<f64>,
    pub(crate) isal_update: Option<f64>,
    pub(crate) rs_simd: Option<f64>,
    pub(crate) rse: Option<f64>,
    /// Microseconds.
    pub(crate) setup: Option<f64>,
}

impl Row {
    pub(crate) fn new(shape: Shape, operation: &Operation, cache: Cache, rates: &Rates) -> Self {
        // A thousandth of a GB/s, a hundredth of a microsecond.
        let rate = |gbps: f64| (gbps * 1e3).round() / 1e3;
        let others =
            rates.ours.iter().skip(1).map(|(name, gbps)| ((*name).to_owned(), rate(*gbps)));
        Self {
            code: shape,
            operation: operation.clone(),
            cache,
            ours_gbps: rates.ours.first().map(|(_, gbps)| rate(*gbps)),
            limit_gbps: rate(rates.limit),
            streaming_gbps: rate(rates.streaming),
            isal_gbps: rates.isal.map(rate),
            isal_update_gbps: rates.isal_update.map(rate),
            rs_simd_gbps: rates.rs_simd.map(rate),
            rse_gbps: rates.rse.map(rate),
            ours_by_kernel_gbps: others.collect(),
            ours_setup_us: rates.setup.map(|us| (us * 100.0).round() / 100.0),
        }
    }
}

impl Row {
    /// The better of ISA-L's two ways.
    pub(crate) fn isal_best_gbps(&self) -> Option<f64> {
        match (self.isal_gbps, self.isal_update_gbps) {
            (Some(dot), Some(update)) => Some(dot.max(update)),
            (one, other) => one.or(other),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = |of: Option<f64>| match (self.ours_gbps, of) {
            (Some(ours), Some(of)) => format!("{:.2}", ours / of),
            (None, _) | (_, None) => "-".to_owned(),
        };
        let setup = self.ours_setup_us.map_or("-".to_owned(), |us| format!("{us:.1} µs"));
        let cells = [
            self.code.to_string(),
            self.operation.to_string(),
            self.cache.to_string(),
            rate(self.ours_gbps),
            rate(Some(self.limit_gbps)),
            ratio(Some(self.limit_gbps)),
            rate(Some(self.streaming_gbps)),
            rate(self.isal_gbps),
            rate(self.isal_update_gbps),
            rate(self.rs_simd_gbps),
            rate(self.rse_gbps),
            ratio(self.isal_best_gbps()),
            setup,
        ];
        write!(f, "| {} |", cells.join(" | "))
    }
}

/// Three digits.
pub(crate) fn rate(gbps: Option<f64>) -> String {
    match gbps {
        None => "-".to_owned(),
        Some(gbps) if gbps < 1.0 => format!("{gbps:.2}"),
        Some(gbps) if gbps < 100.0 => format!("{gbps:.1}"),
        Some(gbps) => format!("{gbps:.0}"),
    }
}

/// For [`serde`]: as it is displayed.
pub(crate) fn text<S: Serializer>(
    value: &impl fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
