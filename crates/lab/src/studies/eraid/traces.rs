//! Figures 10 and 11: traces, all drives bad and one.
//!
//! The paper takes six: four of MSR Cambridge and two of SYSTOR'17. Their windows are not published,
//! only that reads are at least 70 %, that the share of requests above 32 kB rises from MSR-1 to MSR-4,
//! and that SYSTOR's arrivals are faster. Without traces the studies run stand-ins with these
//! properties, and no paper's number stands beside them. A trace whose file is named as the paper names
//! it (`MSR-2.csv.zst`) has the paper's numbers beside it.

use levelhead_drive::Faults;

use super::{Bed, OURS, policy, retries};
use crate::studies::{Ask, Bars, Drawing, Head, Load, Row, Study, StudyPlan, Takes, Unit, Whose};

pub(super) const FIG_10: Study = Study {
    name: "eraid.fig10",
    title: "Traces, all drives bad",
    source: "[ERAID], Fig. 10",
    says: "With all drives bad at 2 %, mean and 99th percentile fall by 34.2 and 35.1 % on MSR-2, 61.4 and \
           59.6 % on MSR-4, 68.9 and 61.9 % on Systor-2. From 0.5 to 2 % the normal mode grows by 210 and \
           132.9 % on Systor-2, the design by 38.1 and 47.0 %.",
    bed: "raid5:6 (normal) and eraid:5+1,e=2 (pro-active, level), chunk 8KiB, over six nearline-2tb (7200 rpm), \
          SPTF in the drive, window 32, host order paper32; 3 rotations, adjacency 2; latencies of reads",
    seeds_quick: 2,
    seeds_full: 8,
    takes: Takes::Traces,
    plan: |ask| Ok(plan(ask, &PAPER_ALL, |rate| vec![retries(rate, 3)])),
};

pub(super) const FIG_11: Study = Study {
    name: "eraid.fig11",
    title: "Traces, one drive bad",
    source: "[ERAID], Fig. 11",
    says: "With one drive bad at 2 %, mean and 99th percentile fall by 17.9 and 21.1 % on MSR-3, 17.5 and \
           39.8 % on MSR-4, 35.1 and 53.1 % on Systor-1, 25.2 and 47.1 % on Systor-2.",
    plan: |ask| Ok(plan(ask, &PAPER_ONE, |rate| vec![retries(rate, 3), Faults::NONE])),
    ..FIG_10
};

/// A trace's name and the changes of mean and 99th percentile at 2 %.
type Paper = [(&'static str, f64, f64)];

const PAPER_ALL: [(&str, f64, f64); 3] =
    [("msr-2", -34.2, -35.1), ("msr-4", -61.4, -59.6), ("systor-2", -68.9, -61.9)];

const PAPER_ONE: [(&str, f64, f64); 4] = [
    ("msr-3", -17.9, -21.1),
    ("msr-4", -17.5, -39.8),
    ("systor-1", -35.1, -53.1),
    ("systor-2", -25.2, -47.1),
];

/// From 0.5 to 2 % on Systor-2, all drives bad: the normal mode, then the design.
const GROWTH: [[f64; 2]; 2] = [[210.0, 132.9], [38.1, 47.0]];

/// Stand-ins: a name, sizes of which each is as likely as any other, interval, reads.
const STAND_INS: [(&str, &str, &str, &str); 6] = [
    ("stand-in for MSR-1", "4KiB/8KiB/16KiB/32KiB/64KiB", "12ms", "71.7%"),
    ("stand-in for MSR-2", "4KiB/8KiB/32KiB/64KiB", "12ms", "75%"),
    ("stand-in for MSR-3", "4KiB/16KiB/64KiB/64KiB", "12ms", "80%"),
    ("stand-in for MSR-4", "8KiB/64KiB/64KiB/64KiB", "12ms", "85%"),
    ("stand-in for Systor-1", "4KiB/8KiB/16KiB/32KiB/64KiB", "9ms", "75%"),
    ("stand-in for Systor-2", "8KiB/32KiB/64KiB", "9ms", "80%"),
];

const RATES: [f64; 2] = [0.5, 2.0];
const METRICS: [&str; 2] = ["mean", "p99"];

fn plan(ask: &Ask, paper: &Paper, faults: fn(f64) -> Vec<Faults>) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let loads = loads(ask);
    for (name, load) in &loads {
        let numbers = paper.iter().find(|(known, ..)| is_named(name, known));
        let is_all = paper.len() == PAPER_ALL.len();
        let growth = (is_all && is_named(name, "systor-2")).then_some(GROWTH);
        add(&mut plan, name, load, numbers.map(|&(_, mean, p99)| [mean, p99]), growth, faults);
    }
    let names: Vec<String> = loads.iter().map(|(name, _)| name.clone()).collect();
    let bar = |metric: &str, whose, label: &str| Bars {
        name: format!("{metric}{label}"),
        rows: names
            .iter()
            .map(|name| (format!("{name}, 2 %"), format!("{metric} against normal")))
            .collect(),
        whose,
    };
    let bars = METRICS.iter().flat_map(|metric| {
        [bar(metric, Whose::Paper, ", paper"), bar(metric, Whose::Ours, ", ours")]
    });
    let bars = bars.collect();
    let groups =
        names.iter().map(|name| name.trim_start_matches("stand-in for ").to_owned()).collect();
    let (title, axis) = ("Change at 2 %".to_owned(), "change (%)".to_owned());
    plan.drawings.push(Drawing::Bars { title, axis, is_log: false, groups, bars });
    if ask.traces.is_empty() {
        plan.remarks.push(
            "No trace was given: these are stand-ins with the properties that the paper states, and \
             its numbers are not theirs."
                .to_owned(),
        );
    }
    plan
}

/// Whether a trace's file has the name that the paper gives the trace, whatever follows it.
fn is_named(file: &str, known: &str) -> bool {
    let file = file.to_ascii_lowercase();
    file.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn loads(ask: &Ask) -> Vec<(String, Load)> {
    if !ask.traces.is_empty() {
        let most = ask.pick(10_000, 100_000);
        let load = |one: &crate::studies::NamedTrace| Load::Recorded {
            trace: one.trace.clone(),
            rate: 1.0,
            most,
        };
        return ask.traces.iter().map(|one| (one.name.clone(), load(one))).collect();
    }
    let count: u64 = ask.pick(5_000, 40_000);
    let load = |(name, sizes, interval, reads): (&str, &str, &str, &str)| {
        let text = format!("sizes={sizes},interval={interval},count={count},reads={reads}");
        (name.to_owned(), Load::synthetic(&text))
    };
    STAND_INS.map(load).to_vec()
}

/// The cells and rows of one trace.
fn add(
    plan: &mut StudyPlan,
    name: &str,
    load: &Load,
    paper: Option<[f64; 2]>,
    growth: Option<[[f64; 2]; 2]>,
    faults: fn(f64) -> Vec<Faults>,
) {
    let eraid = "eraid:5+1,e=2,chunk=8KiB";
    let designs = [("normal", "raid5:6,chunk=8KiB"), ("pro-active", eraid), (OURS, eraid)];
    let cell = |rate: f64, how: &str| format!("{name}, {rate} %, {how}");
    for rate in RATES {
        for (how, array) in designs {
            let bed = Bed { faults: faults(rate), ..Bed::paper().with_array(array) };
            plan.cells.push(bed.cell(cell(rate, how), policy(how), load));
            for metric in METRICS {
                plan.rows.push(Row::of(cell(rate, how), metric, Unit::Millis));
            }
        }
        for (at, metric) in METRICS.into_iter().enumerate() {
            let head = Head::new(format!("{name}, {rate} %"), format!("{metric} against normal"));
            let pair = ["pro-active", "normal"].map(|how| cell(rate, how));
            let number = paper.filter(|_| rate > 1.0).map(|numbers| numbers[at]);
            plan.rows.push(Row::change(head, metric, pair).maybe_paper(number));
            let head = Head::new(
                format!("{name}, {rate} %"),
                format!("{metric} of {OURS} against normal"),
            );
            let pair = [OURS, "normal"].map(|how| cell(rate, how));
            plan.rows.push(Row::change(head, metric, pair));
        }
    }
    for (design, (how, _)) in designs.into_iter().enumerate() {
        for (at, metric) in METRICS.into_iter().enumerate() {
            let head = Head::new(format!("{name}, 0.5 to 2 %, {how}"), format!("{metric} grows"));
            let row = Row::change(head, metric, [cell(2.0, how), cell(0.5, how)]);
            let growth = growth.and_then(|growth| growth.get(design).copied());
            plan.rows.push(row.maybe_paper(growth.map(|growth| growth[at])));
        }
    }
}
