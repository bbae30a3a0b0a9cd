//! Figures 8 and 9: sizes from 8 to 80 kB mixed evenly; all drives bad, and one.

use levelhead_drive::Faults;

use super::{BED, Bed, OURS, policy, retries};
use crate::studies::{Ask, Drawing, Head, Load, Row, Study, StudyPlan, Takes, Unit};

pub(super) const FIG_8: Study = Study {
    name: "eraid.fig8",
    title: "Mixed sizes, all drives bad",
    source: "[ERAID], Fig. 8",
    says: "With sizes from 8 to 80 kB mixed evenly, all six drives bad at 1 % and 3 rotations, the mean is \
           44 % and the 99th percentile 46 % lower than in the normal mode.",
    bed: BED,
    seeds_quick: 3,
    seeds_full: 10,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask, &[Some(-44.0), Some(-46.0)], |rate| vec![retries(rate, 3)])),
};

pub(super) const FIG_9: Study = Study {
    name: "eraid.fig9",
    title: "Mixed sizes, one drive bad",
    source: "[ERAID], Fig. 9",
    says: "With one drive bad the gain is still noticeable.",
    plan: |ask| Ok(plan(ask, &[None, None], |rate| vec![retries(rate, 3), Faults::NONE])),
    ..FIG_8
};

/// Every multiple of 8 kB up to 80.
const SIZES: &str = "8KiB/16KiB/24KiB/32KiB/40KiB/48KiB/56KiB/64KiB/72KiB/80KiB";

/// The design of the paper is its tau over an eRAID(2); the same over RAID-5 beside it, and our policy.
const DESIGNS: [(&str, &str, &str); 6] = [
    ("normal", "raid5:6,chunk=8KiB", "normal"),
    ("pro-active", "raid5:6,chunk=8KiB", "pro-active"),
    ("pro-active, eRAID(2)", "eraid:5+1,e=2,chunk=8KiB", "pro-active"),
    ("assisted, eRAID(2)", "eraid:5+1,e=2,chunk=8KiB", "assisted"),
    ("level", "raid5:6,chunk=8KiB", OURS),
    ("level, eRAID(2)", "eraid:5+1,e=2,chunk=8KiB", OURS),
];

/// The design that the paper's numbers are compared with.
const PAPERS: &str = "pro-active, eRAID(2)";

fn plan(ask: &Ask, paper: &[Option<f64>; 2], faults: fn(f64) -> Vec<Faults>) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let load = Load::reads(SIZES, ask.pick(8_000, 60_000));
    for rate in [0.5, 1.0, 2.0] {
        let case = |name: &str| format!("{rate} %, {name}");
        for (name, array, how) in DESIGNS {
            let bed = Bed { faults: faults(rate), ..Bed::paper().with_array(array) };
            plan.cells.push(bed.cell(case(name), policy(how), &load));
            for metric in ["mean", "p99"] {
                plan.rows.push(Row::of(case(name), metric, Unit::Millis));
            }
        }
        for (name, ..) in DESIGNS.into_iter().skip(1) {
            for (metric, paper) in ["mean", "p99"].into_iter().zip(paper) {
                let head = Head::new(case(name), format!("{metric} against normal"));
                let row = Row::change(head, metric, [case(name), case("normal")]);
                let is_papers = name == PAPERS && (0.9..1.1).contains(&rate);
                plan.rows.push(row.maybe_paper(paper.filter(|_| is_papers)));
            }
        }
    }
    let names: Vec<(String, String)> = DESIGNS
        .iter()
        .skip(1)
        .map(|(name, ..)| ((*name).to_owned(), format!("1 %, {name}")))
        .collect();
    let metrics = ["mean against normal", "p99 against normal"];
    plan.drawings.push(Drawing::beside_paper("Change at 1 %", "change (%)", &metrics, &names));
    let cells = DESIGNS.iter().map(|(name, ..)| ((*name).to_owned(), format!("1 %, {name}")));
    plan.drawings.push(Drawing::Distributions {
        title: "Latency at 1 %".to_owned(),
        axis: "latency (ms)".to_owned(),
        cells: cells.collect(),
    });
    plan
}
