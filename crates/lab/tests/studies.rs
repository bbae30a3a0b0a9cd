//! What the studies must show, in their quick form. The full form is `levelhead study run`.

use std::collections::BTreeMap;

use levelhead_lab::studies::{Ask, Estimate, Job, Measured, Results, find};

/// A study's quick results, with the program's own seed.
fn quick(name: &str, seeds: u32) -> Results {
    let study = find(name).unwrap();
    let ask = Ask { quick: true, seed: 7, seeds, traces: Vec::new() };
    let plan = (study.plan)(&ask).unwrap();
    let numbers = ask.seeds();
    let measured: BTreeMap<Job, Measured> = plan
        .jobs(numbers.len())
        .into_iter()
        .map(|job| (job, plan.cells[job.cell].measure(numbers[job.seed]).unwrap()))
        .collect();
    Results::of(&plan, numbers.len(), &measured).unwrap()
}

#[track_caller]
fn ours(results: &Results, case: &str, metric: &str) -> f64 {
    results.row(case, metric).unwrap_or_else(|| panic!("no row {case}, {metric}")).ours
}

/// `[ERAID]` tables I and II. The factor is 1.8; a short run has another 3 % of noise.
#[test]
fn reproduces_the_tables_of_retries() {
    let (mut near, mut far) = (0, Vec::new());
    for (name, metric) in [("eraid.table1", "mean"), ("eraid.table2", "p99")] {
        let results = quick(name, 3);
        let none = ours(&results, "8 kB, no retry", metric);
        if metric == "mean" {
            assert!((11.0..=20.0).contains(&none), "{none} ms");
        }
        for size in ["8 kB", "24 kB", "40 kB"] {
            let at = |kind: &str| ours(&results, &format!("{size}, {kind}"), metric);
            for rotations in ["3 rotations", "5 rotations"] {
                let [one, two] = ["1 %", "2 %"].map(|rate| at(&format!("{rotations}, {rate}")));
                assert!(at("no retry") < one && one < two, "{size}, {rotations}, {metric}");
            }
            for rate in ["1 %", "2 %"] {
                let [three, five] = [3, 5].map(|times| at(&format!("{times} rotations, {rate}")));
                assert!(three < five, "{size}, {rate}, {metric}");
            }
        }
        for row in results.rows.iter().filter(|row| row.metric.ends_with("over no retry")) {
            let Estimate { case, ours, paper, .. } = row;
            let factor = ours / paper.unwrap();
            match factor.max(1.0 / factor) < 1.8 * 1.03 {
                true => near += 1,
                false => far.push(format!("{case}, {metric}: {factor:.2} of the paper's ratio")),
            }
        }
    }
    assert_eq!(near + far.len(), 24);
    assert!(near >= 22, "{far:?}");
}

/// `[ERAID]` Fig. 3: simulation and closed form agree.
#[test]
fn reproduces_the_correlation_of_adjacent_sectors() {
    let results = quick("eraid.fig3", 8);
    for expansion in 1..=3 {
        let case = format!("eRAID({expansion}), independent");
        let law = ours(&results, &case, "closed form");
        let row = results.row(&case, "simulated").unwrap();
        // Three times the interval's half: all three hold in 999 of 1000 runs.
        let reach = 1.5 * (row.high - row.low);
        assert!((row.ours - law).abs() <= reach, "{row:?}, {law}");
        let case = format!("eRAID({expansion}), adjacency 2");
        assert!(ours(&results, &case, "simulated") < ours(&results, &case, "upper bound"));
    }
}

/// `[ERAID]` Fig. 5: who wins, and that removal helps where something waits.
#[test]
fn reproduces_the_order_of_the_implementations() {
    let results = quick("eraid.fig5", 2);
    let at = |size: u64, how: &str| ours(&results, &format!("{size} kB, 1 %, {how}"), "mean");
    assert!(at(24, "normal") < at(24, "assisted"));
    for size in [40, 80] {
        assert!(at(size, "assisted") < at(size, "normal"), "{size} kB");
        let order = ["assisted", "assisted:no-removal", "assisted:own-first"];
        assert!(order.map(|how| at(size, how)).is_sorted(), "{size} kB");
    }
    let case = "removal, 40 kB, 1 %, paper32";
    assert!(ours(&results, case, "mean against assisted:no-removal") < -3.0);
}

/// `[ERAID]` Fig. 7 and 8.
#[test]
fn reproduces_what_the_larger_codeword_and_the_decision_save() {
    let results = quick("eraid.fig7", 3);
    let case = "RAID-5 over eRAID(2), adjacency 2";
    assert!(ours(&results, case, "requests re-dispatched") >= 5.0);
    let results = quick("eraid.fig8", 2);
    for metric in ["mean against normal", "p99 against normal"] {
        assert!(ours(&results, "1 %, pro-active, eRAID(2)", metric) < -20.0, "{metric}");
    }
}

/// `[TAIL16]` Fig. 12: extra reads are a matter of counting.
#[test]
fn reproduces_the_extra_reads_of_the_strategies() {
    let results = quick("toleraid.fig12", 1);
    for workload in ["rare", "periodic"] {
        let extra = |name: &str| {
            let row = results.row(&format!("{workload}, {name}"), "extra reads");
            row.map(|row| row.ours)
        };
        for (name, wanted) in [
            ("normal", 0.0),
            ("tolerant:proactive-1", 100.0 / 6.0),
            ("tolerant:proactive-2", 200.0 / 6.0),
        ] {
            // A strategy that the program does not have has no row.
            let Some(extra) = extra(name) else { continue };
            assert!((extra - wanted).abs() < 1e-9, "{workload}, {name}: {extra} %");
        }
    }
}
