//! Mirrors: our policy against copies that take turns, and against an array that knows which drive is slow.

use levelhead_array::{HostOrder, Policy};
use levelhead_drive::Faults;
use levelhead_units::Instant;

use crate::studies::{
    Ask, Bars, Bed, Drawing, Head, Load, Row, Study, StudyPlan, Takes, Unit, Whose,
};

pub(super) const MIRRORS: Study = Study {
    name: "level.mirrors",
    title: "Our policy on mirrors",
    source: "ours",
    says: "The mean and the 99th percentile of our policy over those of copies that take turns, and of the papers' \
           policy that is the best for the case and figure; where a drive is ten times slower, over those of an array \
           that never reads the slow drive.",
    bed: "nearline-2tb (7200 rpm), SPTF in the drive (age weight 0), window 32, host order elevator; Poisson arrivals \
          at uniformly random sectors; retries of 3 rotations with adjacency 2",
    seeds_quick: 2,
    seeds_full: 20,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

const OURS: Policy = Policy::DEFAULT;

/// The papers' policies; of mirrors `normal` reads the copies in turn.
const PAPERS: [&str; 4] = ["normal", "on-failure", "assisted", "tolerant:reactive"];

/// One case: an array, its drives, a load.
struct Case {
    name: String,
    array: &'static str,
    /// The misbehaviour of the first drive, and of all others.
    faults: [&'static str; 2],
    size: &'static str,
    interval: &'static str,
    reads: &'static str,
}

/// The shapes, with the intervals at which reads come: idle, a third, two thirds and nine tenths of what they carry
/// if the copies take turns.
const ARRAYS: [(&str, [&str; 4]); 3] = [
    ("raid1:2", ["60ms", "18ms", "9ms", "6.5ms"]),
    ("raid1:3", ["40ms", "12ms", "6ms", "4.3ms"]),
    ("raid10:4", ["30ms", "9ms", "4.5ms", "3.2ms"]),
];

const WELL: &str = "retry-rate=0%";
const BAD: &str = "retry-rate=2%,rotations=3,adjacency=2";
const SLOW: &str = "slowdown=10";
const NOW_AND_THEN: &str = "periodic=60s/20s/10";

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (array, intervals) in ARRAYS {
        let case = |name: &str, faults, size, interval| Case {
            name: format!("{array}, {name}, {size} every {interval}"),
            array,
            faults,
            size,
            interval,
            reads: "100%",
        };
        for size in ["4KiB", "64KiB"] {
            cases.extend(intervals.map(|interval| case("healthy", [WELL; 2], size, interval)));
        }
        for interval in &intervals[..3] {
            cases.push(case("2 % on all", [BAD; 2], "4KiB", interval));
        }
        // Without the slow drive the others must carry it.
        for interval in &intervals[..2] {
            cases.push(case("one 10x slower", [SLOW, WELL], "4KiB", interval));
            cases.push(case("one 10x slower", [SLOW, WELL], "64KiB", interval));
            cases.push(case("one 10x slower now and then", [NOW_AND_THEN, WELL], "4KiB", interval));
        }
        let writes = case("30 % writes", [WELL; 2], "4KiB", intervals[1]);
        cases.push(Case { reads: "70%", ..writes });
    }
    cases
}

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let mut healthy = Vec::new();
    for case in cases() {
        add(&mut plan, &case, ask);
        if case.faults == [WELL; 2] {
            healthy.push(case.name);
        }
    }
    let row = |metric: &str| {
        let row = |case: &String| (case.clone(), format!("{metric} over copies in turn"));
        let rows = healthy.iter().map(row).collect();
        Bars { name: metric.to_owned(), rows, whose: Whose::Ours }
    };
    plan.drawings.push(Drawing::Bars {
        title: "Healthy mirrors: ours over copies that take turns".to_owned(),
        axis: "times".to_owned(),
        is_log: false,
        groups: healthy.clone(),
        bars: ["mean", "p99"].map(row).to_vec(),
    });
    plan
}

fn faults(text: &str) -> Faults {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn add(plan: &mut StudyPlan, case: &Case, ask: &Ask) {
    let Case { name, array, size, interval, reads, .. } = case;
    let count: u64 = ask.pick(2_000, 10_000);
    let load =
        Load::synthetic(&format!("size={size},interval={interval},count={count},reads={reads}"));
    let healthy = Bed::paper().with_array(array).with_queue(32, HostOrder::Elevator);
    let bed = Bed { faults: case.faults.map(faults).to_vec(), ..healthy.clone() };
    let cell = |policy: &str| format!("{name}, {policy}");
    let papers = PAPERS.map(|name| (name, name.parse().expect("the policies above exist")));
    for (policy, parsed) in papers.into_iter().chain([("level", OURS)]) {
        plan.cells.push(bed.cell(cell(policy), parsed, &load));
        for metric in ["mean", "p99"] {
            plan.rows.push(Row::of(cell(policy), metric, Unit::Millis));
        }
    }
    for metric in ["mean", "p99"] {
        let head = Head::new(name.clone(), format!("{metric} over copies in turn"));
        plan.rows.push(Row::ratio(head, metric, [cell("level"), cell("normal")]));
        let head =
            Head::new(name.clone(), format!("{metric} over the best of the papers' policies"));
        let others = PAPERS.map(cell).to_vec();
        plan.rows.push(Row::over_best(head, metric, cell("level"), others));
    }
    if case.faults[0] == SLOW {
        let told = cell("level, first drive known to be useless");
        let dead = Faults { death: Some(Instant::ZERO), ..Faults::NONE };
        let bed = Bed { faults: vec![dead, Faults::NONE], ..healthy };
        plan.cells.push(bed.cell(told.clone(), OURS, &load));
        for metric in ["mean", "p99"] {
            let head = Head::new(name.clone(), format!("{metric} over an array told in advance"));
            plan.rows.push(Row::ratio(head, metric, [cell("level"), told.clone()]));
        }
    }
}
