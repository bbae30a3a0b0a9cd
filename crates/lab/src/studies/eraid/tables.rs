//! Tables I and II: what retries cost a RAID of today, in the mean and at the 99th percentile.

use super::{BED, Bed, OURS, policy, retries};
use crate::studies::{Ask, Drawing, Head, Load, Row, Study, StudyPlan, Takes, Unit};

pub(super) const TABLE_1: Study = Study {
    name: "eraid.table1",
    title: "Mean latency under retries, normal mode",
    source: "[ERAID], table I",
    says: "Retries of a few sectors in a hundred raise the mean latency of an array several times over, \
           the more the larger the request, the higher the rate and the longer the retry.",
    bed: BED,
    seeds_quick: 3,
    seeds_full: 10,
    takes: Takes::Nothing,
    plan: |ask| Ok(table(ask, "mean", &MEAN)),
};

pub(super) const TABLE_2: Study = Study {
    name: "eraid.table2",
    title: "99th percentile of the latency under retries, normal mode",
    source: "[ERAID], table II",
    says: "The tail suffers as much as the mean: 832 ms without retries become 3336 ms.",
    plan: |ask| Ok(table(ask, "p99", &P99)),
    ..TABLE_1
};

/// How drives retry.
#[derive(Clone, Copy)]
struct Retry {
    /// What one retry takes.
    rotations: u32,
    /// The share of sectors that need one.
    percent: f64,
}

const fn retry(rotations: u32, percent: f64) -> Retry {
    Retry { rotations, percent }
}

/// The tables' rows: none, then four kinds of retries.
const RETRIES: [Retry; 5] =
    [retry(3, 0.0), retry(3, 1.0), retry(3, 2.0), retry(5, 1.0), retry(5, 2.0)];

/// The tables' columns.
const SIZES: [u64; 3] = [8, 24, 40];

/// Table I in ms: a row of the table each, a column a size.
const MEAN: [[f64; 3]; 5] = [
    [16.0, 41.0, 107.0],
    [18.0, 48.0, 221.0],
    [19.0, 64.0, 269.0],
    [18.0, 56.0, 284.0],
    [22.0, 90.0, 553.0],
];

/// Table II in ms.
const P99: [[f64; 3]; 5] = [
    [43.0, 169.0, 832.0],
    [63.0, 236.0, 1712.0],
    [68.0, 512.0, 2190.0],
    [81.0, 243.0, 2513.0],
    [98.0, 530.0, 3336.0],
];

/// What a cell of the table is called.
fn case(size: u64, retry: Retry) -> String {
    let Retry { rotations, percent } = retry;
    if percent > 0.0 {
        format!("{size} kB, {rotations} rotations, {percent} %")
    } else {
        format!("{size} kB, no retry")
    }
}

/// One of the tables: latencies, then ratios to the same column without retries, then what our policy
/// makes of the same reads.
fn table(ask: &Ask, metric: &'static str, paper: &[[f64; 3]; 5]) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let (mut ratios, mut beside) = (Vec::new(), Vec::new());
    let count = ask.pick(6_000, 60_000);
    for (column, size) in SIZES.into_iter().enumerate() {
        let none = case(size, RETRIES[0]);
        for (row, retry) in RETRIES.into_iter().enumerate() {
            let Retry { rotations, percent } = retry;
            let bed = Bed::paper().with_faults(retries(percent, rotations));
            let (name, load) = (case(size, retry), Load::reads(&format!("{size}KiB"), count));
            plan.cells.push(bed.cell(name.clone(), policy("normal"), &load));
            plan.rows.push(Row::of(name.clone(), metric, Unit::Millis).paper(paper[row][column]));
            let ours = format!("{name}, {OURS}");
            plan.cells.push(bed.cell(ours.clone(), policy(OURS), &load));
            let head = Head::new(name.clone(), format!("{metric} of {OURS} over normal"));
            beside.push(Row::of(ours.clone(), metric, Unit::Millis));
            beside.push(Row::ratio(head, metric, [ours, name.clone()]));
            if row > 0 {
                let head = Head::new(name.clone(), format!("{metric} over no retry"));
                let ratio = Row::ratio(head, metric, [name, none.clone()]);
                ratios.push(ratio.paper_ratio(paper[row][column], paper[0][column]));
            }
        }
        let names = RETRIES.map(|retry| {
            let name = case(size, retry);
            let short = name.split_once(", ").map_or("", |(_, short)| short).to_owned();
            (short, name)
        });
        let title = format!("Reads of {size} kB");
        plan.drawings.push(Drawing::beside_paper(
            title,
            format!("{metric} (ms)"),
            &[metric],
            &names,
        ));
    }
    plan.rows.append(&mut ratios);
    plan.rows.append(&mut beside);
    plan
}
