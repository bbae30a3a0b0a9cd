//! Our policy against the best of the papers', case by case.
//!
//! The best is chosen for each case and figure among all the papers' policies, after the fact. Ratios are
//! of pairs: the same seed, arrivals and drives.

use levelhead_array::{HostOrder, Policy};
use levelhead_drive::Faults;
use levelhead_units::Instant;

use crate::studies::{
    Ask, Bars, Bed, Drawing, Head, Load, Row, Study, StudyPlan, Takes, Unit, Whose,
};

pub(super) const ALL: Study = Study {
    name: "level.all",
    title: "Our policy against the best of the papers'",
    source: "ours",
    says: "Case by case, the mean and the 99th percentile of our policy over those of the papers' policy that \
           is the best for that case and figure, found after the fact.",
    bed: "eraid:5+1,e=2,chunk=8KiB (or as the case says) over nearline-2tb (7200 rpm), SPTF in the drive \
          (age weight 0, or as the case says), window 32, host order elevator; Poisson arrivals every 8 ms \
          (or as the case says) at uniformly random sectors; retries of 3 rotations with adjacency 2",
    seeds_quick: 2,
    seeds_full: 20,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

const OURS: &str = "level";

/// The papers' policies; those that the program knows are compared with.
const PAPERS: [&str; 8] = [
    "normal",
    "on-failure",
    "assisted",
    "pro-active",
    "tolerant:reactive",
    "tolerant:proactive-1",
    "tolerant:proactive-2",
    "tolerant:adaptive",
];

const ERAID: &str = "eraid:5+1,e=2,chunk=8KiB";
const MIX: &str = "8KiB/16KiB/24KiB/32KiB/40KiB/48KiB/56KiB/64KiB/72KiB/80KiB";

/// One case: an array, its drives, a load.
struct Case {
    name: String,
    array: &'static str,
    /// The drives' misbehaviour: those of the first drives, the last of which stands for all others.
    faults: [&'static str; 3],
    sizes: &'static str,
    interval: &'static str,
    reads: &'static str,
    /// The factor by which it has more requests than other cases, so that rare events happen often enough.
    longer: u64,
    age_weight: f64,
    /// What ours is compared with besides.
    against: Against,
}

/// What ours is compared with besides the papers' policies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Against {
    /// The normal mode over healthy drives.
    Healthy,
    /// The same, and ours over an array whose first drive is known to be useless from the start.
    Told,
}

/// How large requests are.
#[derive(Clone, Copy)]
struct Size {
    /// As cases are named by it.
    name: &'static str,
    /// As [`Load`] reads it.
    sizes: &'static str,
}

const SIZES: [Size; 5] = [
    Size { name: "8 kB", sizes: "8KiB" },
    Size { name: "24 kB", sizes: "24KiB" },
    Size { name: "40 kB", sizes: "40KiB" },
    Size { name: "80 kB", sizes: "80KiB" },
    Size { name: "mix", sizes: MIX },
];

const WELL: &str = "retry-rate=0%";
const BAD: &str = "retry-rate=2%,rotations=3,adjacency=2";
const FAIR: &str = "retry-rate=1%,rotations=3,adjacency=2";
const SLOW: &str = "slowdown=10";
const SLOW_AND_FAIR: &str = "slowdown=10,retry-rate=1%,rotations=3,adjacency=2";

/// Slow for as large a share of the time as in the field, where episodes last minutes.
const BY_TURNS: &str = "periodic=100s-150s/2s-4s/5";

/// Slow again and again, for longer than it takes to find out and to be admitted again.
const NOW_AND_THEN: &str = "periodic=60s/20s/10";

const RAID5: &str = "raid5:6,chunk=8KiB";
const RAID6: &str = "raid6:6+2,chunk=8KiB";

fn cases() -> Vec<Case> {
    let base = |family: &str, size: Size| Case {
        name: format!("{family}, {}", size.name),
        array: ERAID,
        faults: [WELL; 3],
        sizes: size.sizes,
        interval: "8ms",
        reads: "100%",
        longer: 1,
        age_weight: 0.0,
        against: Against::Healthy,
    };
    let few = [SIZES[0], SIZES[2], SIZES[4]];
    let mut cases = Vec::new();
    // Every drive alike.
    cases.extend(SIZES.map(|size| base("healthy", size)));
    let bad = |case: Case| Case { faults: [BAD; 3], ..case };
    cases.extend(SIZES.map(|size| bad(base("2 % on all", size))));
    cases.extend(
        SIZES.map(|size| Case {
            age_weight: 0.03,
            ..bad(base("2 % on all, age weight 0.03", size))
        }),
    );
    cases.extend(few.map(|size| Case { array: RAID5, ..bad(base("raid5, 2 % on all", size)) }));
    let writes = |case: Case| Case { reads: "70%", interval: "20ms", ..case };
    cases.extend(few.map(|size| writes(bad(base("2 % on all, 30 % writes", size)))));
    // One is worse than the others.
    let one = |faults| [faults, WELL, WELL];
    cases.extend(few.map(|size| Case { faults: one(BAD), ..base("2 % on one", size) }));
    let slow = |case: Case| Case { faults: one(SLOW), against: Against::Told, ..case };
    cases.extend(SIZES.map(|size| slow(base("one 10x slower", size))));
    for (interval, name) in [("20ms", "40 kB every 20 ms"), ("40ms", "40 kB every 40 ms")] {
        cases
            .push(Case { interval, ..slow(base("one 10x slower", Size { name, sizes: "40KiB" })) });
    }
    cases.extend(few.map(|size| writes(slow(base("one 10x slower, 30 % writes", size)))));
    let both = [SLOW_AND_FAIR, FAIR, FAIR];
    cases.extend(
        SIZES.map(|size| Case { faults: both, ..base("one 10x slower and 1 % on all", size) }),
    );
    // What passes.
    cases.extend(few.map(|size| Case {
        faults: [BY_TURNS; 3],
        longer: 4,
        ..base("every drive 5x slower by turns", size)
    }));
    cases.extend(few.map(|size| Case {
        faults: one(NOW_AND_THEN),
        longer: 2,
        ..base("one 10x slower now and then", size)
    }));
    // Two of eight.
    let two =
        |faults, rest, case: Case| Case { array: RAID6, faults: [faults, faults, rest], ..case };
    cases.extend(few.map(|size| two(SLOW, WELL, base("raid6, two 10x slower", size))));
    cases.extend(
        few.map(|size| {
            two(SLOW_AND_FAIR, FAIR, base("raid6, two 10x slower and 1 % on all", size))
        }),
    );
    cases
}

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let known = |name: &&str| name.parse::<Policy>().is_ok();
    let papers: Vec<&str> = PAPERS.into_iter().filter(known).collect();
    let ours = Some(OURS).filter(known);
    let mut drawn = Vec::new();
    for case in cases() {
        add(&mut plan, &case, &papers, ours, ask);
        drawn.push(case.name);
    }
    if ours.is_none() {
        plan.remarks.push(format!("the program has no policy '{OURS}': nothing is compared"));
        return plan;
    }
    // One figure for each family of cases: what their names begin with.
    let family = |name: &str| name.rsplit_once(", ").map_or("", |(family, _)| family).to_owned();
    for members in drawn.chunk_by(|a, b| family(a) == family(b)) {
        let own = |name: &String| name.rsplit(", ").next().unwrap_or_default().to_owned();
        let title = format!("{}: ours over the best of the papers' policies", family(&members[0]));
        let bars = ["mean", "p99"].map(|metric| bars(metric, members));
        plan.drawings.push(Drawing::Bars {
            title,
            axis: "times".to_owned(),
            is_log: false,
            groups: members.iter().map(own).collect(),
            bars: bars.to_vec(),
        });
    }
    plan
}

fn bars(metric: &str, cases: &[String]) -> Bars {
    let row =
        |case: &String| (case.clone(), format!("{metric} over the best of the papers' policies"));
    Bars { name: metric.to_owned(), rows: cases.iter().map(row).collect(), whose: Whose::Ours }
}

fn faults(text: &str) -> Faults {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn add(plan: &mut StudyPlan, case: &Case, papers: &[&str], ours: Option<&str>, ask: &Ask) {
    let Case { name, array, sizes, interval, reads, longer, age_weight, against, .. } = case;
    let count: u64 = ask.pick(1_000, 10_000) * longer;
    let load =
        Load::synthetic(&format!("sizes={sizes},interval={interval},count={count},reads={reads}"));
    let healthy = Bed { age_weight: *age_weight, ..Bed::paper() }
        .with_array(array)
        .with_queue(32, HostOrder::Elevator);
    let bed = Bed { faults: case.faults.map(faults).to_vec(), ..healthy.clone() };
    let cell = |policy: &str| format!("{name}, {policy}");
    for policy in papers.iter().copied().chain(ours) {
        let Ok(parsed) = policy.parse() else { continue };
        plan.cells.push(bed.cell(cell(policy), parsed, &load));
        for metric in ["mean", "p99"] {
            plan.rows.push(Row::of(cell(policy), metric, Unit::Millis));
        }
    }
    let well = cell("normal, healthy drives");
    plan.cells.push(healthy.cell(well.clone(), Policy::Normal, &load));
    let Some(ours) = ours else { return };
    let extra = (cell(ours), well.clone());
    plan.rows.push(Row::new(
        Head::new(name.clone(), "reads over healthy normal"),
        Unit::Times,
        move |seed| seed.get(&extra.0, "reads") / seed.get(&extra.1, "reads"),
    ));
    let writes = (*reads != "100%").then_some("mean of writes");
    for metric in ["mean", "p99"].into_iter().chain(writes) {
        let head =
            Head::new(name.clone(), format!("{metric} over the best of the papers' policies"));
        let others = papers.iter().map(|paper| cell(paper)).collect();
        plan.rows.push(Row::over_best(head, metric, cell(ours), others));
        let head = Head::new(name.clone(), format!("{metric} over healthy normal"));
        plan.rows.push(Row::ratio(head, metric, [cell(ours), well.clone()]));
    }
    if *against == Against::Told {
        let told = cell("ours, first drive known to be useless");
        let dead = Faults { death: Some(Instant::ZERO), ..Faults::NONE };
        let bed = Bed { faults: vec![dead, Faults::NONE], ..healthy };
        if let Ok(policy) = ours.parse() {
            plan.cells.push(bed.cell(told.clone(), policy, &load));
            let head = Head::new(name.clone(), "p99 over an array told in advance");
            plan.rows.push(Row::ratio(head, "p99", [cell(ours), told]));
        }
    }
}
