//! Figure 7: RAID-5 against eRAID(2), both under the system-assisted mode.

use super::correlation;
use super::{Bed, OURS, policy, retries};
use crate::studies::{Ask, Bars, Drawing, Head, Load, Row, Study, StudyPlan, Takes, Unit, Whose};

pub(super) const FIG_7: Study = Study {
    name: "eraid.fig7",
    title: "RAID-5 against eRAID(2)",
    source: "[ERAID], Fig. 7",
    says: "At 40 kB, 3 rotations and 1 %, eRAID(2) lowers the mean by 11 % and the 99th percentile by 27 %.",
    bed: "raid5:6 and eraid:5+1,e=2, chunk 8KiB, over six nearline-2tb (7200 rpm), SPTF in the drive, \
          window 32, host order paper32; policy assisted; Poisson reads of 40 kB every 8 ms at \
          uniformly random sectors; 1 % of sectors fail, 3 rotations, adjacency 2 and 1",
    seeds_quick: 4,
    seeds_full: 20,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

const ARRAYS: [(&str, &str); 2] =
    [("RAID-5", "raid5:6,chunk=8KiB"), ("eRAID(2)", "eraid:5+1,e=2,chunk=8KiB")];

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let load = Load::reads("40KiB", ask.pick(12_000, 60_000));
    for (kind, adjacency) in [("adjacency 2", 2.0), ("independent", 1.0)] {
        let case = |array: &str| format!("{array}, {kind}");
        let pair = || [case("eRAID(2)"), case("RAID-5")];
        for (name, array) in ARRAYS {
            let faults = levelhead_drive::Faults { adjacency, ..retries(1.0, 3) };
            let bed = Bed::paper().with_faults(faults).with_array(array);
            plan.cells.push(bed.cell(case(name), policy("assisted"), &load));
            for metric in ["mean", "p99"] {
                plan.rows.push(Row::of(case(name), metric, Unit::Millis));
            }
            let cell = case(name);
            plan.rows.push(Row::new(
                Head::new(case(name), "requests re-dispatched"),
                Unit::Percent,
                move |seed| 100.0 * seed.get(&cell, "re-dispatched"),
            ));
        }
        for (name, array) in ARRAYS {
            let faults = levelhead_drive::Faults { adjacency, ..retries(1.0, 3) };
            let bed = Bed::paper().with_faults(faults).with_array(array);
            let cell = format!("{}, {OURS}", case(name));
            plan.cells.push(bed.cell(cell.clone(), policy(OURS), &load));
            for metric in ["mean", "p99"] {
                let head = Head::new(case(name), format!("{metric} of {OURS} over assisted"));
                plan.rows.push(Row::ratio(head, metric, [cell.clone(), case(name)]));
            }
        }
        let is_paper = adjacency > 1.0;
        for (metric, paper) in [("mean", -11.0), ("p99", -27.0)] {
            let head = Head::new(format!("eRAID(2) against RAID-5, {kind}"), metric);
            let row = Row::change(head, metric, pair());
            plan.rows.push(row.maybe_paper(is_paper.then_some(paper)));
        }
        let head = Head::new(format!("RAID-5 over eRAID(2), {kind}"), "requests re-dispatched");
        let [two, five] = pair();
        let (more, less) = (five.clone(), two.clone());
        // What a re-dispatch costs all requests together, the one that waits for it included.
        plan.rows.push(Row::ratio_of_totals(
            Head::new(
                format!("RAID-5 over eRAID(2), {kind}"),
                "mean saved per re-dispatch avoided",
            ),
            Unit::Millis,
            move |seed| {
                ["mean", "re-dispatched"]
                    .map(|value| seed.get(&more, value) - seed.get(&less, value))
            },
        ));
        plan.rows.push(Row::ratio_of_sums(head, "re-dispatched", [five, two]));
    }
    // A request of 40 kB touches codewords of one sector a drive in RAID-5, of two in eRAID(2): for
    // every stripe of 8 KiB chunks there are two of the former and one of the latter.
    let head =
        Head::new("RAID-5 over eRAID(2), independent", "stripes that need a retry, closed form");
    let [one, two] = [1, 2].map(correlation::independent);
    let stripe = 1.0 - (1.0 - one).powi(2);
    plan.rows.push(Row::exact(head, Unit::Times, stripe / two));
    let case = |array: &str| (array.to_owned(), format!("{array}, adjacency 2"));
    let names = ARRAYS.map(|(name, _)| case(name));
    let change = ("eRAID(2) against RAID-5, adjacency 2".to_owned(), ["mean", "p99"]);
    let bar = |name: &str, whose| Bars {
        name: name.to_owned(),
        rows: change.1.map(|metric| (change.0.clone(), metric.to_owned())).to_vec(),
        whose,
    };
    plan.drawings.push(Drawing::Bars {
        title: change.0.clone(),
        axis: "change (%)".to_owned(),
        is_log: false,
        groups: change.1.map(str::to_owned).to_vec(),
        bars: vec![bar("paper", Whose::Paper), bar("ours", Whose::Ours)],
    });
    let (title, axis) = ("Reads of 40 kB, adjacency 2", "latency (ms)");
    plan.drawings.push(Drawing::beside_paper(title, axis, &["mean", "p99"], &names));
    let cells = names.map(|(name, cell)| (name, cell)).to_vec();
    let (title, axis) = ("Latency of 40 kB reads".to_owned(), "latency (ms)".to_owned());
    plan.drawings.push(Drawing::Distributions { title, axis, cells });
    plan
}
