//! What is printed: one report, as a table for people or as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use levelhead_erasure::Kernel;
use serde::Serialize;

use crate::bars::{Bar, bars};
use crate::code::{BATCH_COUNT, Cache};
use crate::kernel::SECTOR_SIZE;
use crate::measure::Effort;
use crate::peers::{isal, ours, rs_simd, rse};
use crate::pool::POOL_SIZE;
use crate::row::{Row, rate};

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
pub(crate) struct Machine {
    cpu: String,
    family: String,
    model: String,
    features: Vec<&'static str>,
    caches: String,
}

/// Us.
#[derive(Debug, Serialize)]
struct OurBuild {
    /// The choices behind `ours_gbps`, as one measurement found them: by class, from memory and hot.
    choices: BTreeMap<&'static str, BTreeMap<&'static str, String>>,
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

impl Report {
    /// The report on these figures.
    pub(crate) fn new(effort: Effort, rows: Vec<Row>) -> Self {
        let kernels: Vec<String> =
            ours::kernels().into_iter().map(|kernel| kernel.name().to_owned()).collect();
        let peer = |name, version, path| Peer { name, version, path };
        Self {
            machine: Machine::here(),
            ours: OurBuild { choices: choices(), kernels },
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

/// What is chosen here.
fn choices() -> BTreeMap<&'static str, BTreeMap<&'static str, String>> {
    let of_place = |cache: Cache| {
        let kernels: Vec<Kernel> = ours::kernels().into_iter().take(2).collect();
        let classes = ours::measured(&kernels, cache).classes;
        classes.iter().map(|class| (class.class.name(), class.choice.to_string())).collect()
    };
    BTreeMap::from([("from memory", of_place(Cache::Dram)), ("hot", of_place(Cache::Hot))])
}

impl Machine {
    /// As the operating system tells it.
    pub(crate) fn here() -> Self {
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

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, family, model, features, caches } = self;
        writeln!(f, "* CPU: {cpu}, family {family} model {model}; {}", features.join(" "))?;
        write!(f, "* Caches: {caches}")
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
        writeln!(f, "{machine}")?;
        for (place, classes) in &ours.choices {
            for (class, choice) in classes {
                writeln!(f, "* Ours, {place}, {class}: {choice}")?;
            }
        }
        for Peer { name, version, path } in peers {
            writeln!(f, "* {name} {version}: {path}")?;
        }
        let Method { rounds, turn_ms, pool_mib, sector_size, .. } = method;
        write!(f, "* Median of {rounds} interleaved rounds of {turn_ms} ms each; ")?;
        writeln!(f, "sectors of {sector_size} bytes; a pool of {pool_mib} MiB")?;
        writeln!(f)?;
        write!(f, "| code | operation | cache | ours | limit | ours/limit | read ")?;
        writeln!(f, "| ISA-L | ISA-L update | rs-simd | rse | ours/ISA-L | set-up |")?;
        writeln!(f, "|-|-|-|-:|-:|-:|-:|-:|-:|-:|-:|-:|-:|")?;
        for row in rows {
            writeln!(f, "{row}")?;
        }
        if rows.iter().any(|row| !row.ours_by_kernel_gbps.is_empty()) {
            writeln!(f, "\n| code | cache | {} | rse |", ours.kernels.join(" | "))?;
            writeln!(f, "|-|-|{}-:|", "-:|".repeat(ours.kernels.len()))?;
            for row in rows.iter().filter(|row| !row.ours_by_kernel_gbps.is_empty()) {
                write!(f, "| {} | {} ", row.code, row.cache)?;
                for kernel in &ours.kernels {
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
