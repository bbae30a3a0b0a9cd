//! What is printed: one report, as a table for people or as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use serde::Serialize;

use crate::bars::{Bar, bars, text};
use crate::code::{BATCH_COUNT, Cache, Operation, Shape};
use crate::measure::Effort;
use crate::peers::{isal, ours, rs_simd, rse};
use crate::pool::{POOL_SIZE, SECTOR_SIZE};

/// Everything about one run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    ours: OurBuild,
    peers: Vec<Peer>,
    method: Method,
    rows: Vec<Row>,
    bars: Vec<Bar>,
}

/// Where it ran.
#[derive(Debug, Serialize)]
struct Machine {
    cpu: String,
    family: String,
    model: String,
    features: Vec<&'static str>,
    caches: String,
}

/// Us.
#[derive(Debug, Serialize)]
struct OurBuild {
    /// The kernel behind `ours_gbps`.
    kernel: String,
    /// All kernels that have figures.
    kernels: Vec<String>,
}

/// One of the others.
#[derive(Debug, Serialize)]
struct Peer {
    name: &'static str,
    version: &'static str,
    path: &'static str,
}

/// How it was measured.
#[derive(Debug, Serialize)]
struct Method {
    rounds: usize,
    turn_ms: f64,
    pool_mib: usize,
    sector_size: usize,
    accumulate_batch: usize,
}

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
    pub(crate) streaming_gbps: f64,
    pub(crate) isal_gbps: Option<f64>,
    isal_update_gbps: Option<f64>,
    pub(crate) rs_simd_gbps: Option<f64>,
    pub(crate) rse_gbps: Option<f64>,
    /// Our other kernels, for encoding.
    pub(crate) ours_by_kernel_gbps: BTreeMap<String, f64>,
    /// CPU time of the plan for an erasure pattern not seen before.
    pub(crate) ours_setup_us: Option<f64>,
}

/// Rates of everybody, as they were measured.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Each of our kernels, the chosen one first; nobody if we cannot do the code.
    pub(crate) ours: Vec<(&'static str, f64)>,
    pub(crate) streaming: f64,
    pub(crate) isal: Option<f64>,
    pub(crate) isal_update: Option<f64>,
    pub(crate) rs_simd: Option<f64>,
    pub(crate) rse: Option<f64>,
    /// Microseconds.
    pub(crate) setup: Option<f64>,
}

impl Report {
    /// The report on these figures.
    pub(crate) fn new(effort: Effort, rows: Vec<Row>) -> Self {
        let kernels: Vec<String> =
            ours::kernels().into_iter().map(|kernel| kernel.name().to_owned()).collect();
        let peer = |name, version, path| Peer { name, version, path };
        Self {
            machine: Machine::here(),
            ours: OurBuild { kernel: kernels[0].clone(), kernels },
            peers: vec![
                peer("ISA-L", isal::VERSION, isal::path()),
                peer("reed-solomon-simd", rs_simd::VERSION, rs_simd::path()),
                peer("reed-solomon-erasure", rse::VERSION, rse::PATH),
            ],
            method: Method {
                rounds: effort.rounds,
                turn_ms: effort.turn.as_secs_f64() * 1e3,
                pool_mib: POOL_SIZE >> 20,
                sector_size: SECTOR_SIZE,
                accumulate_batch: BATCH_COUNT,
            },
            bars: bars(&rows),
            rows,
        }
    }
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

impl Machine {
    /// As the operating system tells it.
    fn here() -> Self {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            });
            line.unwrap_or_else(|| "unknown".to_owned())
        };
        let mut features = Vec::new();
        let mut add = |name, is_there| {
            if is_there {
                features.push(name);
            }
        };
        add("ssse3", is_x86_feature_detected!("ssse3"));
        add("avx2", is_x86_feature_detected!("avx2"));
        add("gfni", is_x86_feature_detected!("gfni"));
        add("avx512f", is_x86_feature_detected!("avx512f"));
        add("avx512bw", is_x86_feature_detected!("avx512bw"));
        add("avx512vl", is_x86_feature_detected!("avx512vl"));
        Self {
            cpu: field("model name"),
            family: field("cpu family"),
            model: field("model"),
            features,
            caches: caches(),
        }
    }
}

/// The data caches of the first CPU, nearest first.
fn caches() -> String {
    let mut sizes = Vec::new();
    for idx in 0..8 {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{idx}");
        let read = |name: &str| fs::read_to_string(format!("{folder}/{name}")).unwrap_or_default();
        let (kind, level, size) = (read("type"), read("level"), read("size"));
        if matches!(kind.trim(), "Data" | "Unified") {
            sizes.push(format!("L{} {}", level.trim(), size.trim()));
        }
    }
    sizes.join(", ")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, ours, peers, method, rows, bars } = self;
        let Machine { cpu, family, model, features, caches } = machine;
        writeln!(f, "* CPU: {cpu}, family {family} model {model}; {}", features.join(" "))?;
        writeln!(f, "* Caches: {caches}")?;
        writeln!(f, "* Ours: kernel {}", ours.kernel)?;
        for Peer { name, version, path } in peers {
            writeln!(f, "* {name} {version}: {path}")?;
        }
        let Method { rounds, turn_ms, pool_mib, sector_size, .. } = method;
        write!(f, "* Median of {rounds} interleaved rounds of {turn_ms} ms each; ")?;
        writeln!(f, "sectors of {sector_size} bytes; a pool of {pool_mib} MiB")?;
        writeln!(f)?;
        write!(f, "| code | operation | cache | ours | limit | ours/limit ")?;
        writeln!(f, "| ISA-L | ISA-L update | rs-simd | rse | ours/ISA-L | set-up |")?;
        writeln!(f, "|-|-|-|-:|-:|-:|-:|-:|-:|-:|-:|-:|")?;
        for row in rows {
            writeln!(f, "{row}")?;
        }
        if ours.kernels.len() > 1 {
            writeln!(f, "\n| code | cache | {} | rse |", ours.kernels.join(" | "))?;
            writeln!(f, "|-|-|{}-:|", "-:|".repeat(ours.kernels.len()))?;
            for row in rows.iter().filter(|row| !row.ours_by_kernel_gbps.is_empty()) {
                write!(f, "| {} | {} | {} ", row.code, row.cache, rate(row.ours_gbps))?;
                for kernel in &ours.kernels[1..] {
                    write!(f, "| {} ", rate(row.ours_by_kernel_gbps.get(kernel).copied()))?;
                }
                writeln!(f, "| {} |", rate(row.rse_gbps))?;
            }
        }
        if !bars.is_empty() {
            writeln!(f, "\n| code | bar | goal | measured | reached |\n|-|-|-|-:|-|")?;
            for bar in bars {
                writeln!(f, "{bar}")?;
            }
        }
        Ok(())
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
            rate(Some(self.streaming_gbps)),
            ratio(Some(self.streaming_gbps)),
            rate(self.isal_gbps),
            rate(self.isal_update_gbps),
            rate(self.rs_simd_gbps),
            rate(self.rse_gbps),
            ratio(self.isal_gbps),
            setup,
        ];
        write!(f, "| {} |", cells.join(" | "))
    }
}

/// Three digits.
fn rate(gbps: Option<f64>) -> String {
    match gbps {
        None => "-".to_owned(),
        Some(gbps) if gbps < 1.0 => format!("{gbps:.2}"),
        Some(gbps) if gbps < 100.0 => format!("{gbps:.1}"),
        Some(gbps) => format!("{gbps:.0}"),
    }
}
