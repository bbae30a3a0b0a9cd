//! Our policy against the best fixed policy on recorded arrivals.
//!
//! Every trace is sent as recorded, and at the rates that ask for 30, 60 and 85 % of what `normal` carries of it on healthy
//! drives, which a closed loop measures. The best fixed policy is chosen for each figure alone, after the fact, among those
//! that answered everything; a run that was given up has no times.
//!
//! How much of the difference is chance? The best fixed policy is compared with itself, the requests sent a little later: the
//! platters stand elsewhere, all else is the same. What is within that distance of one says nothing about a policy.
//!
//! Some traces were looked at while the policy was tuned. The others have rows of their own.

use std::sync::{Arc, OnceLock};

use levelhead_array::{HostOrder, Policy};
use levelhead_drive::Faults;
use levelhead_stats::{Streams, Summary};
use levelhead_trace::{Arrival, Kind, Mapping, Trace, Workload, onto_array};
use levelhead_units::{Instant, Nanos, Sectors};

use crate::World;
use crate::replay::{self, End, Sending};
use crate::studies::plan::Measured;
use crate::studies::{Ask, Bed, Cell, Head, OneSeed, Row, Study, StudyPlan, Takes, Unit, interval};

pub(super) const TRACES: Study = Study {
    name: "level.traces",
    title: "Our policy against the best fixed policy, on recorded arrivals",
    source: "ours",
    says: "Trace by trace, what our policy gives over what the best fixed policy gives, found after the fact: above one \
           is worse. The same for the best fixed policy over itself, begun a little later, which is chance. Traces that \
           were looked at while it was tuned stand apart from the others.",
    bed: "eraid:5+1,e=2, raid5:6, raid6:6+2 or raid10:6, chunk 8KiB, over nearline-2tb, SPTF in the drive, window 32, host \
          order elevator; open loop at the recorded times, and at rates of 30, 60 and 85 % of what normal carries on \
          healthy drives; retries of 3 rotations with adjacency 2",
    seeds_quick: 1,
    seeds_full: 5,
    takes: Takes::Traces,
    plan: |ask| Ok(plan(ask)),
};

/// Policies that decide nothing from what they see of the drives, and the one of `[ERAID]` that decides for each request.
const FIXED: [&str; 4] = ["normal", "on-failure", "assisted", "pro-active"];

const OURS: &str = "level";

/// By how much later the requests are sent that show what chance does: three eighths of a rotation.
const LATER: Nanos = Nanos::from_micros(3_100);

/// What is done with the requests of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    AtOnce,
    Later,
}

/// What names of the traces begin with that were looked at while the policy was tuned.
const TUNED_ON: [&str; 11] = [
    "hadoop_eternity10",
    "hadoop_eternity2",
    "cloudphysics",
    "sata_raid",
    "websearch",
    "msr_cut_10k.rw_40_60",
    "msps_dtrs",
    "dsk_iozone",
    "hp_ajw",
    "umass_financial1",
    "msr_cut_10k.rw_20_80",
];

const ARRAYS: [(&str, &str); 4] = [
    ("eRAID(2)", "eraid:5+1,e=2,chunk=8KiB"),
    ("RAID-5", "raid5:6,chunk=8KiB"),
    ("RAID-6", "raid6:6+2,chunk=8KiB"),
    ("RAID-10", "raid10:6,chunk=8KiB"),
];

/// What is wrong with the drives: of the first one, and of the others.
const TROUBLES: [(&str, &str, &str); 7] = [
    ("healthy", "", ""),
    ("0.1 % retries", "retry-rate=0.1%,rotations=3", "retry-rate=0.1%,rotations=3"),
    ("0.5 % retries", "retry-rate=0.5%,rotations=3", "retry-rate=0.5%,rotations=3"),
    ("1 % retries", "retry-rate=1%,rotations=3", "retry-rate=1%,rotations=3"),
    ("2 % retries", "retry-rate=2%,rotations=3", "retry-rate=2%,rotations=3"),
    ("one 10x slower", "slowdown=10", ""),
    ("slow by turns", "periodic=100s-150s/2s-4s/5", "periodic=100s-150s/2s-4s/5"),
];

/// Shares of what `normal` carries, in percent.
const BUSY: [Option<u32>; 4] = [None, Some(30), Some(60), Some(85)];

/// Which requests of a trace are sent. Reads and writes apart are sent to the first array, at one rate.
const SENT: [(&str, Option<Kind>); 3] =
    [("all", None), ("reads alone", Some(Kind::Read)), ("writes alone", Some(Kind::Write))];
const APART_BUSY: Option<u32> = Some(60);

/// Requests of a cell: the first of the trace. A trace that has fewer than the least of a kind has no cell for it.
const REQUESTS: usize = 4_000;
const REQUESTS_QUICK: usize = 1_500;
const REQUESTS_LEAST: usize = 500;

/// A quick run measures each 24th cell.
const QUICK_STEP: usize = 24;

/// How the rate is measured that `normal` carries.
const CAPACITY_OUTSTANDING: usize = 64;
const CAPACITY_SEED: u64 = 1;

const FIGURES: [&str; 2] = ["mean", "p99"];

/// A trace, or what stands for one.
#[derive(Clone)]
enum Source {
    Recorded(Option<Arc<Trace>>),
    MadeUp(Workload),
}

impl Source {
    fn arrivals(&self, size: Sectors) -> Result<Vec<Arrival>, String> {
        match self {
            Self::Recorded(trace) => {
                let trace = trace.as_ref().ok_or("there is only a name of this trace")?;
                let mapped = onto_array(trace, Mapping::as_recorded(trace, size));
                Ok(mapped.map_err(|error| error.to_string())?.0)
            }
            Self::MadeUp(workload) => {
                let streams = Streams::new(CAPACITY_SEED);
                workload.generate(size, streams).map_err(|error| error.to_string())
            }
        }
    }
}

/// One cell of the study, for each policy.
#[derive(Clone)]
struct Point {
    name: String,
    trace: String,
    trouble: usize,
}

impl Point {
    fn cell(&self, policy: &str, begun: Begun) -> String {
        match begun {
            Begun::AtOnce => format!("{}: {policy}", self.name),
            Begun::Later => format!("{}, later: {policy}", self.name),
        }
    }

    fn is_tuned_on(&self) -> bool {
        TUNED_ON.iter().any(|known| self.trace.starts_with(known))
    }
}

/// What an array is sent: some requests of a source, and the rate at which `normal` carries them.
struct Sent {
    bed: Bed,
    source: Source,
    kind: Option<Kind>,
    most: usize,
    /// Measured when it is first asked for: it depends on no seed of the study.
    known: OnceLock<Result<(Vec<Arrival>, f64), String>>,
}

impl Sent {
    /// The requests as recorded, from time zero on, and how many of them a second `normal` carries.
    fn known(&self) -> Result<&(Vec<Arrival>, f64), String> {
        let known = self.known.get_or_init(|| {
            let settings = self.bed.world(Policy::Normal, CAPACITY_SEED)?;
            let size = World::new(&settings).map_err(|error| error.to_string())?.size();
            let mut arrivals = self.source.arrivals(size)?;
            arrivals.retain(|arrival| self.kind.is_none_or(|kind| arrival.kind == kind));
            arrivals.truncate(self.most);
            if arrivals.len() < REQUESTS_LEAST {
                return Ok((Vec::new(), 0.0));
            }
            let sending = Sending::Closed(CAPACITY_OUTSTANDING);
            let ask = replay::Ask { sending, ..replay::Ask::open(&arrivals) };
            let run = replay::run(&settings, &ask, &mut |_| {}).map_err(|e| e.to_string())?;
            let rate = run.rate();
            Ok((arrivals, rate))
        });
        known.as_ref().map_err(Clone::clone)
    }

    fn measure(
        &self,
        bed: &Bed,
        policy: Policy,
        busy: Option<u32>,
        begun: Begun,
        seed: u64,
    ) -> Result<Measured, String> {
        let (arrivals, carried) = self.known()?;
        let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else {
            return Ok(figures(0.0, 0.0, false));
        };
        let span = (last.at - first.at).as_secs_f64();
        let recorded = arrivals.len() as f64 / span.max(f64::MIN_POSITIVE);
        let faster = busy.map_or(1.0, |percent| carried * f64::from(percent) / 100.0 / recorded);
        let begin = match begun {
            Begun::AtOnce => Instant::ZERO,
            Begun::Later => Instant::ZERO + LATER,
        };
        let moved = |arrival: &Arrival| {
            let since = (arrival.at - first.at).as_secs_f64() / faster;
            Arrival { at: begin + Nanos::from_secs_f64_round(since), ..*arrival }
        };
        let arrivals: Vec<Arrival> = arrivals.iter().map(moved).collect();
        let settings = bed.world(policy, seed)?;
        let run = replay::run(&settings, &replay::Ask::open(&arrivals), &mut |_| {})
            .map_err(|error| error.to_string())?;
        let Summary { mean, p99, .. } = run.summary();
        Ok(figures(mean.as_millis_f64(), p99.as_millis_f64(), run.end == End::Overloaded))
    }
}

fn figures(mean: f64, p99: f64, is_overloaded: bool) -> Measured {
    let overloaded = f64::from(u8::from(is_overloaded));
    Measured::default().with("mean", mean).with("p99", p99).with("overloaded", overloaded)
}

fn faults(text: &str) -> Faults {
    if text.is_empty() {
        return Faults::NONE;
    }
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn sources(ask: &Ask) -> Vec<(String, Source)> {
    if ask.traces.is_empty() {
        let made_up = "iraw:web,length=600s".parse().expect("a workload of this program");
        return vec![("stand-in for a trace".to_owned(), Source::MadeUp(made_up))];
    }
    let source =
        |one: &crate::studies::NamedTrace| (one.name.clone(), Source::Recorded(one.trace.clone()));
    ask.traces.iter().map(source).collect()
}

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let mut points = Vec::new();
    let most = ask.pick(REQUESTS_QUICK, REQUESTS);
    let step = ask.pick(QUICK_STEP, 1);
    let mut at = 0;
    for (trace, source) in sources(ask) {
        for (array_idx, (array, spec)) in ARRAYS.into_iter().enumerate() {
            let bed = Bed::paper().with_array(spec).with_queue(32, HostOrder::Elevator);
            for (sent, kind) in SENT {
                let (source, known) = (source.clone(), OnceLock::new());
                let shared = Arc::new(Sent { bed: bed.clone(), source, kind, most, known });
                for busy in BUSY {
                    if kind.is_some() && (array_idx > 0 || busy != APART_BUSY) {
                        continue;
                    }
                    for (trouble, (what, first, others)) in TROUBLES.into_iter().enumerate() {
                        at += 1;
                        if at % step != 0 {
                            continue;
                        }
                        let rate =
                            busy.map_or("as recorded".to_owned(), |busy| format!("{busy} %"));
                        let name = format!("{trace}, {sent}, {array}, {rate}, {what}");
                        let point = Point { name, trace: trace.clone(), trouble };
                        let bed =
                            Bed { faults: vec![faults(first), faults(others)], ..bed.clone() };
                        add(&mut plan, &point, &bed, busy, &shared);
                        points.push(point);
                    }
                }
            }
        }
    }
    plan.rows.extend(summaries(&points));
    if ask.traces.is_empty() {
        plan.remarks.push("No trace was given (--trace FILE): this is a stand-in.".to_owned());
    }
    plan
}

/// The cells and rows of one point.
fn add(plan: &mut StudyPlan, point: &Point, bed: &Bed, busy: Option<u32>, sent: &Arc<Sent>) {
    let at_once = FIXED.into_iter().chain([OURS]).map(|name| (name, Begun::AtOnce));
    let later = FIXED.into_iter().map(|name| (name, Begun::Later));
    for (name, begun) in at_once.chain(later) {
        let policy: Policy = name.parse().expect("a policy of this program");
        let (bed, sent) = (bed.clone(), Arc::clone(sent));
        plan.cells.push(Cell::new(point.cell(name, begun), move |seed| {
            sent.measure(&bed, policy, busy, begun, seed)
        }));
    }
    for figure in FIGURES {
        let head = Head::new(point.name.clone(), over(figure));
        let point = point.clone();
        plan.rows.push(Row::together(head, Unit::Times, move |seeds| {
            let ratios = ratios(&point, figure, Compared::Ours, seeds);
            if ratios.is_empty() { interval::NONE } else { interval::of_mean(&ratios) }
        }));
    }
}

fn over(figure: &str) -> String {
    format!("{figure} over the best fixed policy's")
}

/// What is compared with the best fixed policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Ours,
    /// That policy itself, begun later.
    Itself,
}

fn is_overloaded(point: &Point, policy: &str, seeds: &[OneSeed<'_>]) -> bool {
    let cell = point.cell(policy, Begun::AtOnce);
    seeds.iter().any(|seed| seed.get(&cell, "overloaded") > 0.0)
}

/// The figure of one policy over the best fixed policy's for each seed; nothing where there is nothing to compare.
fn ratios(point: &Point, figure: &str, compared: Compared, seeds: &[OneSeed<'_>]) -> Vec<f64> {
    let get =
        |seed: &OneSeed<'_>, policy: &str| seed.get(&point.cell(policy, Begun::AtOnce), figure);
    let total = |policy: &&str| seeds.iter().map(|seed| get(seed, policy)).sum::<f64>();
    let carrying = FIXED.iter().filter(|policy| !is_overloaded(point, policy, seeds));
    let best = carrying.min_by(|one, other| total(one).total_cmp(&total(other)));
    match best {
        Some(best) if !is_overloaded(point, OURS, seeds) && total(best) > 0.0 => {
            let cell = match compared {
                Compared::Ours => point.cell(OURS, Begun::AtOnce),
                Compared::Itself => point.cell(best, Begun::Later),
            };
            if seeds.iter().any(|seed| seed.get(&cell, "overloaded") > 0.0) {
                return Vec::new();
            }
            seeds.iter().map(|seed| seed.get(&cell, figure) / get(seed, best)).collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// Shares of the cells within limits, the worst, and geometric means by trouble; cells that ours alone does not carry.
fn summaries(points: &[Point]) -> Vec<Row> {
    let mut rows = Vec::new();
    let tuned: Vec<Point> = points.iter().filter(|point| point.is_tuned_on()).cloned().collect();
    let others: Vec<Point> = points.iter().filter(|point| !point.is_tuned_on()).cloned().collect();
    let groups =
        [("all traces", points.to_vec()), ("traces tuned on", tuned), ("other traces", others)];
    for (case, points) in groups.into_iter().filter(|(_, points)| !points.is_empty()) {
        for figure in FIGURES {
            let mean = |ratios: Vec<f64>| ratios.iter().sum::<f64>() / ratios.len() as f64;
            let of = move |compared: Compared, points: &[Point], seeds: &[OneSeed<'_>]| {
                let all = points.iter().map(|point| ratios(point, figure, compared, seeds));
                all.filter(|ratios| !ratios.is_empty()).map(mean).collect::<Vec<f64>>()
            };
            let estimates =
                move |points: &[Point], seeds: &[OneSeed<'_>]| of(Compared::Ours, points, seeds);
            let chance = format!("{figure} of the best fixed policy begun later, over its own");
            for (compared, what) in [(Compared::Ours, over(figure)), (Compared::Itself, chance)] {
                for limit in [1.03, 1.10] {
                    let points = points.clone();
                    let head = Head::new(case, format!("{what}: at most {limit:.2}"));
                    rows.push(Row::together(head, Unit::Percent, move |seeds| {
                        let all = of(compared, &points, seeds);
                        let within = all.iter().filter(|ratio| **ratio <= limit).count();
                        [100.0 * within as f64 / all.len().max(1) as f64; 3]
                    }));
                }
            }
            let worst = points.clone();
            let head = Head::new(case, format!("{}: the worst", over(figure)));
            rows.push(Row::together(head, Unit::Times, move |seeds| {
                [estimates(&worst, seeds).into_iter().fold(0.0, f64::max); 3]
            }));
            for (trouble, (what, ..)) in TROUBLES.into_iter().enumerate() {
                let points: Vec<Point> =
                    points.iter().filter(|point| point.trouble == trouble).cloned().collect();
                if points.is_empty() {
                    continue;
                }
                let head = Head::new(
                    format!("{case}, {what}"),
                    format!("{}: geometric mean", over(figure)),
                );
                rows.push(Row::together(head, Unit::Times, move |seeds| {
                    let all = estimates(&points, seeds);
                    let logs: f64 = all.iter().map(|ratio| ratio.ln()).sum();
                    [(logs / all.len().max(1) as f64).exp(); 3]
                }));
            }
        }
        let head = Head::new(case, "loads that a fixed policy carries and ours does not");
        rows.push(Row::together(head, Unit::Count, move |seeds| {
            let is_lost = |point: &&Point| {
                let carried = FIXED.iter().any(|policy| !is_overloaded(point, policy, seeds));
                carried && is_overloaded(point, OURS, seeds)
            };
            [points.iter().filter(is_lost).count() as f64; 3]
        }));
    }
    rows
}
