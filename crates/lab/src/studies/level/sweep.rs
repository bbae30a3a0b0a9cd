//! Our policy against the best fixed one over the whole range of loads and troubles.
//!
//! ```text
//!   centre 1 --- sizes, reads, loads, drives, arrays: one axis at a time     (three such centres)
//!   drawn cells: every axis at once, from the stream "level.sweep"           (the rest)
//! ```
//!
//! The list of cells is fixed: it depends on no seed and was drawn before the policy was tuned on it. A
//! load is a share of what `normal` carries on healthy drives, which is measured once for each array,
//! size and share of reads, by a closed loop ([`Beds::capacity`]).
//!
//! # What counts in a cell
//!
//! Each figure is a ratio that is above one where ours is worse: mean and 99th percentile of all requests,
//! reads and writes, over those of the best fixed policy, and the best rate over ours. The best is chosen for each figure alone,
//! after the fact. A policy is overloaded in an open loop if its last answer comes later than
//! [`BEHIND_MAX`] after the last arrival; where the best policy is overloaded, or more arrives than
//! `normal` carries, latencies say how long the run was, and the rate alone counts: the time to drain.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use levelhead_array::{HostOrder, Policy};

use super::points::{ARRAYS, Array, OFFERED, Offered, Point, READS, SIZES, Size, points, troubles};
use crate::replay::Sending;
use crate::studies::{
    Ask, Bed, Cell, Drawing, Head, HeatMap, Load, OneSeed, Row, Study, StudyPlan, Takes, Unit,
    interval,
};

pub(super) const SWEEP: Study = Study {
    name: "level.sweep",
    title: "Our policy against the best fixed policy, over loads and troubles",
    source: "ours",
    says: "Cell by cell, what our policy gives over what the best fixed policy gives, found after the fact: \
           above one is worse. Three centres with one axis varied at a time, and cells drawn from all axes.",
    bed: "eraid:5+1,e=2,chunk=8KiB, raid5:6,chunk=8KiB or raid6:6+2,chunk=8KiB over nearline-2tb, SPTF in the \
          drive, window 32, host order elevator; open loop (Poisson) at shares of what normal carries on \
          healthy drives, or closed loop; uniformly random sectors; retries of 3 rotations with adjacency 2",
    seeds_quick: 1,
    seeds_full: 3,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

/// Policies that decide nothing from what they see of the drives.
const FIXED: [&str; 6] = [
    "normal",
    "on-failure",
    "assisted",
    "tolerant:reactive",
    "tolerant:proactive-1",
    "tolerant:proactive-2",
];

const OURS: &str = "level";

/// A quick run measures each 40th cell.
const QUICK_STEP: usize = 40;

/// Requests of a cell, unless episodes need more.
const REQUESTS: u64 = 8_000;
const REQUESTS_QUICK: u64 = 600;

/// In an overload, for how many seconds more requests arrive than the array can serve.
const OVERLOAD_SECS: f64 = 30.0;

/// A policy is overloaded if its last answer comes later after the last arrival than this: a number of
/// seconds, plus a share of the length of the run.
const BEHIND_MAX: (f64, f64) = (1.0, 0.05);

/// How [`Beds::capacity`] measures.
const CAPACITY_OUTSTANDING: usize = 512;
const CAPACITY_REQUESTS: u64 = 6_000;
const CAPACITY_SEED: u64 = 1;

/// What `normal` carries on healthy drives, in requests a second, for each array, size and share of
/// reads. Measured when it is first asked for: it depends on no seed of the study.
type Capacities = BTreeMap<(Array, Size, u32), Arc<OnceLock<Result<f64, String>>>>;

fn capacities() -> Capacities {
    let mut capacities = Capacities::new();
    for array in ARRAYS {
        for size in SIZES {
            for reads in READS {
                capacities.insert((array, size, reads), Arc::default());
            }
        }
    }
    capacities
}

fn bed(array: Array) -> Bed {
    Bed::paper().with_array(array.spec).with_queue(32, HostOrder::Elevator)
}

fn load(point: &Point, interval: f64, count: u64) -> Load {
    let Point { size, reads, .. } = point;
    let nanos = (interval * 1e9).round().max(1.0);
    Load::synthetic(&format!(
        "sizes={},interval={nanos}ns,count={count},reads={reads}%",
        size.sizes
    ))
}

fn capacity(point: &Point) -> Result<f64, String> {
    let bed = Bed { sending: Sending::Closed(CAPACITY_OUTSTANDING), ..bed(point.array) };
    let load = load(point, 1.0, CAPACITY_REQUESTS);
    Ok(bed.run(Policy::Normal, &load, CAPACITY_SEED)?.rate())
}

/// What a point runs on: its bed and its load.
fn made(point: &Point, capacity: f64, requests: u64) -> (Bed, Load) {
    let faults = point.trouble.faults(point.array.redundant);
    let bed = Bed { faults, ..bed(point.array) };
    match point.offered {
        Offered::Open(percent) => {
            let rate = capacity * f64::from(percent) / 100.0;
            let count = match percent {
                // A quick run has as few here as elsewhere.
                101.. if requests >= REQUESTS => (OVERLOAD_SECS * rate) as u64,
                _ => requests.max((point.trouble.span() * rate) as u64),
            };
            let bed = Bed { sending: Sending::OpenToTheEnd, ..bed };
            (bed, load(point, 1.0 / rate, count))
        }
        Offered::Closed(outstanding) => {
            // A rough estimate of the share of the full rate that `outstanding` requests reach: half of it with 6.
            let share = outstanding as f64 / (outstanding as f64 + 6.0);
            let count = requests.max((point.trouble.span() * capacity * share) as u64);
            let bed = Bed { sending: Sending::Closed(outstanding), ..bed };
            (bed, load(point, 1.0, count))
        }
    }
}

const FIGURES: [&str; 3] = ["mean", "p99", "rate"];

fn cell_name(point: &Point, policy: &str) -> String {
    format!("{point}: {policy}")
}

fn plan(ask: &Ask) -> StudyPlan {
    let points: Vec<Point> = points().into_iter().step_by(ask.pick(QUICK_STEP, 1)).collect();
    let requests = ask.pick(REQUESTS_QUICK, REQUESTS);
    let capacities = capacities();
    let mut plan = StudyPlan::default();
    for point in &points {
        let known = Arc::clone(&capacities[&(point.array, point.size, point.reads)]);
        for name in FIXED.into_iter().chain([OURS]) {
            let (point, known) = (*point, Arc::clone(&known));
            let policy: Policy = name.parse().expect("a policy of this program");
            plan.cells.push(Cell::new(cell_name(&point, name), move |seed| {
                let capacity = known.get_or_init(|| capacity(&point)).clone()?;
                let (bed, load) = made(&point, capacity, requests);
                let measured = bed.measure(policy, &load, seed)?;
                Ok(measured.with("capacity", capacity))
            }));
        }
        for figure in FIGURES {
            let point = *point;
            let head = Head::new(point.to_string(), over(figure));
            plan.rows.push(Row::together(head, Unit::Times, move |seeds| {
                let ratios = ratios(&point, figure, seeds);
                if ratios.is_empty() { interval::NONE } else { interval::of_mean(&ratios) }
            }));
        }
    }
    plan.rows.extend(summaries(&points));
    plan.drawings = FIGURES.map(|figure| Drawing::HeatMap(heat_map(&points, figure))).to_vec();
    plan
}

fn over(figure: &str) -> String {
    match figure {
        "rate" => "the best fixed policy's rate over ours".to_owned(),
        _ => format!("{figure} over the best fixed policy's"),
    }
}

/// The figure of ours over the best fixed policy's, for each seed; nothing where it does not count.
fn ratios(point: &Point, figure: &str, seeds: &[OneSeed<'_>]) -> Vec<f64> {
    let get =
        |seed: &OneSeed<'_>, policy: &str, value: &str| seed.get(&cell_name(point, policy), value);
    // Rates are compared as times a request, so that less is better everywhere.
    let cost = |seed: &OneSeed<'_>, policy: &str| match figure {
        "rate" => 1.0 / get(seed, policy, "rate"),
        _ => get(seed, policy, &format!("{figure} of all")),
    };
    let total = |policy: &str| seeds.iter().map(|seed| cost(seed, policy)).sum::<f64>();
    let best = FIXED.into_iter().min_by(|a, b| total(a).total_cmp(&total(b)));
    let best = best.expect("there are fixed policies");
    if figure != "rate" && is_overloaded(point, best, seeds) {
        return Vec::new();
    }
    seeds.iter().map(|seed| cost(seed, OURS) / cost(seed, best)).collect()
}

/// Whether latencies under a policy are those of a queue that grows.
fn is_overloaded(point: &Point, policy: &str, seeds: &[OneSeed<'_>]) -> bool {
    let Offered::Open(percent) = point.offered else { return false };
    let late = |seed: &OneSeed<'_>| {
        let name = cell_name(point, policy);
        let (span, arrived) = (seed.get(&name, "span"), seed.get(&name, "last arrival"));
        let (least, share) = BEHIND_MAX;
        span > arrived * (1.0 + share) + least
    };
    percent > 100 || seeds.iter().any(late)
}

/// Shares of the cells within limits, and the worst; and how often drives that are mildly slow were sat out or
/// admitted.
fn summaries(points: &[Point]) -> Vec<Row> {
    let mild: Vec<Point> = points.iter().filter(|point| point.trouble.is_mild()).copied().collect();
    let head = Head::new("all cells", "drives 1.2 to 2.3 times slower: changes of standing a run");
    let mut rows = vec![Row::new(head, Unit::Count, move |seed| {
        let changes = |point| seed.get(&cell_name(point, OURS), "changes of standing");
        mild.iter().map(changes).sum::<f64>() / mild.len().max(1) as f64
    })];
    for figure in FIGURES {
        let estimates = move |points: &[Point], seeds: &[OneSeed<'_>]| -> Vec<f64> {
            let mean = |ratios: Vec<f64>| ratios.iter().sum::<f64>() / ratios.len() as f64;
            let all = points.iter().map(|point| ratios(point, figure, seeds));
            all.filter(|ratios| !ratios.is_empty()).map(mean).collect()
        };
        for limit in [1.03, 1.05, 1.10] {
            let points = points.to_vec();
            let head = Head::new("all cells", format!("{}: at most {limit:.2}", over(figure)));
            rows.push(Row::together(head, Unit::Percent, move |seeds| {
                let all = estimates(&points, seeds);
                let within = all.iter().filter(|ratio| **ratio <= limit).count();
                [100.0 * within as f64 / all.len().max(1) as f64; 3]
            }));
        }
        let points = points.to_vec();
        let head = Head::new("all cells", format!("{}: the worst", over(figure)));
        rows.push(Row::together(head, Unit::Times, move |seeds| {
            [estimates(&points, seeds).into_iter().fold(0.0, f64::max); 3]
        }));
    }
    rows
}

/// The worst cell of each load and trouble.
fn heat_map(points: &[Point], figure: &str) -> HeatMap {
    let mut families: Vec<String> = Vec::new();
    for trouble in troubles() {
        if !families.contains(&trouble.family()) {
            families.push(trouble.family());
        }
    }
    let bin = |family: &String, offered: &Offered| -> Vec<(String, String)> {
        let inside =
            |point: &&Point| point.trouble.family() == *family && point.offered == *offered;
        let row = |point: &Point| (point.to_string(), over(figure));
        points.iter().filter(inside).map(row).collect()
    };
    HeatMap {
        title: format!("{}: the worst cell of each load and trouble", over(figure)),
        columns: OFFERED.iter().map(Offered::to_string).collect(),
        bins: families
            .iter()
            .map(|family| OFFERED.iter().map(|offered| bin(family, offered)).collect())
            .collect(),
        rows: families,
    }
}
