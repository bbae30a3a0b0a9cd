//! Figures 5 and 6: four ways to serve a read, in the mean and at the 99th percentile; and what
//! removal is worth under other queues.

use levelhead_array::HostOrder;

use super::{BED, Bed, OURS, policy, retries};
use crate::studies::{Ask, Bars, Drawing, Head, Load, Row, Study, StudyPlan, Takes, Unit, Whose};

pub(super) const FIG_5: Study = Study {
    name: "eraid.fig5",
    title: "Four implementations of reading, mean latency",
    source: "[ERAID], Fig. 5",
    says: "At 24 kB the normal mode is better, at 40 and 80 kB the system-assisted mode is. At 1 % and 40 \
           kB, removal lowers the mean by 24 % against reading the whole group without removal, and \
           by 41 % against decoding only after a failure.",
    bed: BED,
    seeds_quick: 3,
    seeds_full: 10,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask, "mean", &[Some(-24.0), Some(-41.0)])),
};

pub(super) const FIG_6: Study = Study {
    name: "eraid.fig6",
    title: "Four implementations of reading, 99th percentile",
    source: "[ERAID], Fig. 6",
    says: "The order is that of the means.",
    plan: |ask| Ok(plan(ask, "p99", &[None, None])),
    ..FIG_5
};

/// Our names, and the paper's; then our own policy.
const WAYS: [(&str, &str); 5] = [
    ("normal", "normal mode"),
    ("assisted:own-first", "reactive reconstruction"),
    ("assisted:no-removal", "pro-active reconstruction"),
    ("assisted", "with adaptive removal"),
    (OURS, "level"),
];

const SIZES: [u64; 3] = [24, 40, 80];
const RATES: [f64; 2] = [1.0, 2.0];

/// What removal is worth depends on what waits in front of a drive.
const QUEUES: [(&str, u32, HostOrder); 4] = [
    ("paper32", 32, HostOrder::Paper32),
    ("elevator, window 2", 2, HostOrder::Elevator),
    ("elevator, window 8", 8, HostOrder::Elevator),
    ("elevator, window 32", 32, HostOrder::Elevator),
];

fn plan(ask: &Ask, metric: &'static str, removal: &[Option<f64>; 2]) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let count = ask.pick(4_000, 30_000);
    let mut changes = Vec::new();
    for rate in RATES {
        let bed = Bed::paper().with_faults(retries(rate, 3));
        let case = |size: u64, name: &str| format!("{size} kB, {rate} %, {name}");
        for size in SIZES {
            for (name, _) in WAYS {
                let load = Load::reads(&format!("{size}KiB"), count);
                plan.cells.push(bed.cell(case(size, name), policy(name), &load));
                plan.rows.push(Row::of(case(size, name), metric, Unit::Millis));
            }
            for how in ["assisted", OURS] {
                let head = Head::new(case(size, how), format!("{metric} against normal"));
                let pair = [how, "normal"].map(|name| case(size, name));
                changes.push(Row::change(head, metric, pair));
            }
        }
        let bar = |&(name, legend): &(&str, &str)| Bars {
            name: legend.to_owned(),
            rows: SIZES.map(|size| (case(size, name), metric.to_owned())).to_vec(),
            whose: Whose::Ours,
        };
        plan.drawings.push(Drawing::Bars {
            title: format!("{rate} % of sectors fail, 3 rotations"),
            axis: format!("{metric} (ms)"),
            is_log: false,
            groups: SIZES.map(|size| format!("{size} kB")).to_vec(),
            bars: WAYS.iter().map(bar).collect(),
        });
    }
    plan.rows.append(&mut changes);
    removals(&mut plan, ask, metric, removal);
    plan
}

/// What removal changes at 1 %, 40 kB, under each kind of queue.
fn removals(plan: &mut StudyPlan, ask: &Ask, metric: &'static str, paper: &[Option<f64>; 2]) {
    let load = Load::reads("40KiB", ask.pick(4_000, 30_000));
    let [normal, reactive, kept, removed, _] = WAYS.map(|(name, _)| name);
    for (queue, window, order) in QUEUES {
        let bed = Bed::paper().with_faults(retries(1.0, 3)).with_queue(window, order);
        let is_paper = order == HostOrder::Paper32;
        let case = |name: &str| match is_paper {
            true => format!("40 kB, 1 %, {name}"),
            false => format!("40 kB, 1 %, {name}, {queue}"),
        };
        if !is_paper {
            for name in [normal, reactive, kept, removed] {
                plan.cells.push(bed.cell(case(name), policy(name), &load));
                plan.rows.push(Row::of(case(name), metric, Unit::Millis));
            }
        }
        for (other, paper) in [kept, reactive].into_iter().zip(paper) {
            let head = Head::new(
                format!("removal, 40 kB, 1 %, {queue}"),
                format!("{metric} against {other}"),
            );
            let row = Row::change(head, metric, [case(removed), case(other)]);
            plan.rows.push(row.maybe_paper(paper.filter(|_| is_paper)));
        }
        let head = Head::new(format!("removal, 40 kB, 1 %, {queue}"), "sub-requests removed");
        let cell = case(removed);
        plan.rows.push(Row::new(head, Unit::Percent, move |seed| {
            100.0 * seed.get(&cell, "removed") / seed.get(&cell, "sub-requests")
        }));
    }
}
