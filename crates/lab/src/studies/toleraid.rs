//! The study of `[TAIL16]`: ToleRAID's strategies against drives that are slow now and then.
//!
//! Eight drives of which two hold redundancy always in the same places (`raid6:6+2,parity=fixed`),
//! chunks of 4 KiB and big reads of whole stripes: a read needs all six data drives, one command each. So
//! big that transfers outweigh rotation: of six drives that read 64 KiB each, one is naturally twice as
//! late as the median in one read of 16.
//!
//! * *Rare*: every drive's slowdown is drawn from the distribution measured in the field, anew between
//!   any two reads.
//! * *Periodic*: every drive is 5 times slower for 3 to 6 minutes every 2 to 3 hours, each at its own
//!   times. The study's time is compressed 30 times.
//!
//! *Extra reads* are commands beyond the six. A request's *slowdown* is its latency over that of the same
//! request under the normal mode on drives that are never slow: one seed makes both runs.

use levelhead_array::{HostOrder, Policy};
use levelhead_drive::Faults;
use levelhead_stats::quantile_of_sorted;
use levelhead_units::Nanos;

use super::bed::Bed;
use super::{Ask, Bars, Cell, Drawing, Load, Measured, Row, Study, StudyPlan, Takes, Unit, Whose};
use crate::replay::End;

pub(super) fn studies() -> Vec<Study> {
    vec![FIG_12]
}

const FIG_12: Study = Study {
    name: "toleraid.fig12",
    title: "Strategies that tolerate slow drives",
    source: "[TAIL16], Fig. 12",
    says: "Reading one or two parity drives always costs 16.7 or 33.3 % extra reads; reactively it costs \
           0.5 % and caps the slowdown at about 3x; adaptively, where slowness is periodic, 2.3 %. Where it \
           is rare the 99th percentile slows down 2.3x with one extra drive and 1.8x with two.",
    bed: "raid6:6+2,parity=fixed,chunk=4KiB over eight nearline-2tb (7200 rpm), SPTF in the drive, window \
          32, host order elevator; Poisson reads of 6 MiB (256 whole stripes, one command a drive) every \
          300 ms at uniformly random stripes",
    seeds_quick: 2,
    seeds_full: 10,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

const ARRAY: &str = "raid6:6+2,parity=fixed,chunk=4KiB";

/// Data drives, and so the commands of a read without extra ones.
const DATA: f64 = 6.0;

/// The strategies: a policy, and the paper's extra reads in percent and slowdown at the 99th percentile,
/// each when slowness is rare and when it is periodic.
type Strategy = (&'static str, [Option<f64>; 2], [Option<f64>; 2]);

const STRATEGIES: [Strategy; 6] = [
    ("normal", [None, None], [None, None]),
    ("tolerant:reactive", [Some(0.5), None], [None, None]),
    ("tolerant:proactive-1", [Some(16.7), Some(16.7)], [Some(2.3), None]),
    ("tolerant:proactive-2", [Some(33.3), Some(33.3)], [Some(1.8), None]),
    ("tolerant:adaptive", [None, Some(2.3)], [None, None]),
    ("level", [None, None], [None, None]),
];

/// Names, and how every drive is slow.
const WORKLOADS: [(&str, &str); 2] =
    [("rare", "field=100ms/0%"), ("periodic", "periodic=240s-360s/6s-12s/5")];

/// Figures of the slowdown.
const SLOWDOWNS: [&str; 4] = ["mean slowdown", "p99 slowdown", "p99.9 slowdown", "p99.99 slowdown"];

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let load = Load::synthetic(&format!(
        "size=6MiB,align=24KiB,interval=300ms,count={}",
        ask.pick(2_000, 10_000)
    ));
    let known: Vec<(Strategy, Policy)> = STRATEGIES
        .into_iter()
        .filter_map(|one| one.0.parse().ok().map(|policy| (one, policy)))
        .collect();
    for (at, (workload, faults)) in WORKLOADS.into_iter().enumerate() {
        let faults: Faults = faults.parse().unwrap_or_else(|error| panic!("{error}"));
        let case = |name: &str| format!("{workload}, {name}");
        for &((name, extra, slowdown), policy) in &known {
            plan.cells.push(cell(case(name), policy, faults, &load));
            let row = Row::of(case(name), "extra reads", Unit::Percent);
            plan.rows.push(row.maybe_paper(extra[at]));
            for metric in SLOWDOWNS {
                let number = slowdown[at].filter(|_| metric == "p99 slowdown");
                plan.rows.push(Row::of(case(name), metric, Unit::Times).maybe_paper(number));
            }
        }
        let bar = |metric: &str, whose, label: &str| Bars {
            name: label.to_owned(),
            rows: known.iter().map(|((name, ..), _)| (case(name), metric.to_owned())).collect(),
            whose,
        };
        let names: Vec<&str> = known.iter().map(|((name, ..), _)| *name).collect();
        let short = |name: &&str| name.trim_start_matches("tolerant:").to_owned();
        plan.drawings.push(Drawing::Bars {
            title: format!("{workload}: extra reads"),
            axis: "extra reads (%)".to_owned(),
            is_log: false,
            groups: names.iter().map(short).collect(),
            bars: vec![
                bar("extra reads", Whose::Paper, "paper"),
                bar("extra reads", Whose::Ours, "ours"),
            ],
        });
        plan.drawings.push(Drawing::Bars {
            title: format!("{workload}: 99th percentile of the slowdown"),
            axis: "slowdown (times)".to_owned(),
            is_log: false,
            groups: names.iter().map(short).collect(),
            bars: vec![
                bar("p99 slowdown", Whose::Paper, "paper"),
                bar("p99 slowdown", Whose::Ours, "ours"),
            ],
        });
        plan.drawings.push(Drawing::Distributions {
            title: format!("{workload}: slowdown against healthy drives"),
            axis: "slowdown (times)".to_owned(),
            cells: names.iter().map(|name| (short(name), case(name))).collect(),
        });
    }
    plan
}

fn cell(name: String, policy: Policy, faults: Faults, load: &Load) -> Cell {
    let load = load.clone();
    let healthy = Bed { array: ARRAY.to_owned(), order: HostOrder::Elevator, ..Bed::paper() };
    let slow = healthy.clone().with_faults(faults);
    Cell::new(name, move |seed| {
        let mut base = healthy.run(Policy::Normal, &load, seed)?;
        let mut run = slow.run(policy, &load, seed)?;
        let reads = run.mean_of(|one| one.subs) - run.mean_of(|one| one.removed);
        let measured = Measured::default().with("extra reads", (reads / DATA - 1.0) * 100.0);
        if [base.end, run.end].contains(&End::Overloaded) {
            // Not all were served, so that not all have a partner.
            let unbound = |measured: Measured, name| measured.with(name, f64::INFINITY);
            return Ok(SLOWDOWNS.into_iter().fold(measured, unbound));
        }
        base.served.sort_unstable_by_key(|served| served.index);
        run.served.sort_unstable_by_key(|served| served.index);
        // In millionths, so that they sort as times do.
        let mut slowdowns: Vec<Nanos> = run
            .served
            .iter()
            .zip(&base.served)
            .map(|(slow, well)| {
                let times = slow.latency.get() as f64 / well.latency.get().max(1) as f64;
                Nanos::new((times * 1e6) as u64)
            })
            .collect();
        slowdowns.sort_unstable();
        let times = |nanos: Nanos| nanos.get() as f64 / 1e6;
        let at = |q: f64| times(quantile_of_sorted(&slowdowns, q));
        let mean = slowdowns.iter().map(|one| times(*one)).sum::<f64>() / slowdowns.len() as f64;
        let measured = Measured { quantiles: Measured::SHARES.map(at).to_vec(), ..measured };
        let values = SLOWDOWNS.into_iter().zip([mean, at(0.99), at(0.999), at(0.9999)]);
        Ok(values.fold(measured, |measured, (name, value)| measured.with(name, value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overloaded_run_has_slowdowns_without_bound_and_no_pairs() {
        // A second or so for each read, and two minutes of them at once.
        let load = Load::synthetic("size=6MiB,align=24KiB,interval=1ms,count=200");
        let faults = "slowdown=50".parse().unwrap();
        let measured = cell("all".to_owned(), Policy::Normal, faults, &load).measure(7).unwrap();
        assert!(SLOWDOWNS.iter().all(|name| measured.values[*name].is_infinite()));
        assert!(measured.quantiles.is_empty());
    }
}
