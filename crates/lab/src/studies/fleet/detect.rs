//! Every detector over the same samples: which slow drives it finds, how soon, and which healthy ones it accuses.

use std::sync::Arc;

use levelhead_fleet::detect::{self, Kind, Label, Recording};
use levelhead_fleet::generate::groups::{Episodes, GroupsOptions, group};

use super::super::{
    Ask, Cell, Drawing, Labelled, Measured, NamedTrace, Row, Study, StudyPlan, Takes, Unit,
};

pub(super) const DETECT: Study = Study {
    name: "fleet.detect",
    title: "Which detector finds slow drives, how soon, and whom it accuses",
    source: "our own; over PERSEUS's clusters with --trace and --labels",
    says: "Of PERSEUS's cluster C its own detector finds 32 of 32 drives after 15 days, and accuses none; a fixed threshold and IASO \
           find 32 and accuse 104 and 142.",
    bed: "synthetic groups of 6 to 16 drives for 21 days of three busy hours, a tenth of the drives 1.3 times as \
        slow; or the \
          samples that are given",
    seeds_quick: 1,
    seeds_full: 5,
    takes: Takes::Samples,
    plan: |ask| Ok(plan(ask)),
};

const METRICS: [&str; 3] = ["found", "missed", "accused without cause"];
const MEDIAN: &str = "busy hours to the verdict, median";
const WORST: &str = "busy hours to the verdict, most";

/// Made-up groups, by whether the run is quick.
const GROUPS: [usize; 2] = [150, 30];

fn options(groups: usize) -> GroupsOptions {
    GroupsOptions {
        groups,
        drives: 6..=16,
        days: 21,
        noise: 0.03..=0.15,
        episodes: Some(Episodes { share: 0.1, ratio: 1.3, first_day: 0, days: 21 }),
        ..GroupsOptions::HEALTHY
    }
}

/// Where the samples of a cell come from.
#[derive(Clone)]
enum Samples {
    MadeUp { groups: usize },
    Given(Option<Arc<Labelled>>),
}

fn plan(ask: &Ask) -> StudyPlan {
    let given = |one: &NamedTrace| (one.name.clone(), Samples::Given(one.samples.clone()));
    let mut sources: Vec<(String, Samples)> = ask.traces.iter().map(given).collect();
    if sources.is_empty() {
        let [full, quick] = GROUPS;
        sources.push(("made-up".to_owned(), Samples::MadeUp { groups: ask.pick(quick, full) }));
    }
    let mut plan = StudyPlan::default();
    for (source, samples) in sources {
        let mut names = Vec::new();
        for kind in Kind::ALL {
            let (case, samples) = (format!("{source}, {kind}"), samples.clone());
            plan.cells.push(Cell::new(case.clone(), move |seed| measure(kind, &samples, seed)));
            for metric in METRICS.into_iter().chain([MEDIAN, WORST]) {
                plan.rows.push(Row::of(case.clone(), metric, Unit::Count));
            }
            names.push((kind.name().to_owned(), case));
        }
        for metric in METRICS.into_iter().chain([MEDIAN]) {
            plan.drawings.push(Drawing::beside_paper(
                format!("{source}: {metric}"),
                "count",
                &[metric],
                &names,
            ));
        }
    }
    plan.remarks.push(
        "A drive counts as found if it was ever called slow. A detector that finds none takes all busy hours there are.".to_owned(),
    );
    plan
}

fn measure(kind: Kind, samples: &Samples, seed: u64) -> Result<Measured, String> {
    let made;
    let labelled = match samples {
        Samples::Given(Some(labelled)) => labelled.as_ref(),
        Samples::Given(None) => return Err("there are no samples to measure".to_owned()),
        Samples::MadeUp { groups } => {
            made = make(*groups, seed);
            &made
        }
    };
    let mut rows = Vec::new();
    for recording in &labelled.groups {
        let mut detector = kind.detector(recording.drives.len());
        rows.extend(detect::detect(recording, detector.as_mut()));
    }
    let score = detect::score(&rows, &labelled.slow);
    let all = rows.iter().map(|row| row.finding.busy_hours).fold(0.0, f64::max);
    Ok(Measured::default()
        .with(METRICS[0], score.found as f64)
        .with(METRICS[1], score.missed.len() as f64)
        .with(METRICS[2], score.false_ones.len() as f64)
        .with(MEDIAN, score.busy_hours_median().unwrap_or(all))
        .with(WORST, score.busy_hours_max().unwrap_or(all)))
}

fn make(groups: usize, seed: u64) -> Labelled {
    let options = options(groups);
    let mut labelled = Labelled { groups: Vec::new(), slow: Vec::new() };
    for idx in 0..groups {
        let made = group(&options, seed, idx);
        let Recording { group, drives, .. } = &made.recording;
        let slow = drives.iter().zip(&made.is_slow).filter(|(_, is_slow)| **is_slow);
        labelled
            .slow
            .extend(slow.map(|(drive, _)| Label { group: group.clone(), drive: drive.clone() }));
        labelled.groups.push(made.recording);
    }
    labelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_finds_the_planted_drives_first_and_a_fence_of_quartiles_finds_few() {
        let samples = Samples::MadeUp { groups: 30 };
        let [level, ratio, tukey] = [Kind::Level, Kind::MedianRatio, Kind::Tukey]
            .map(|kind| measure(kind, &samples, 7).expect("made-up samples").values);
        assert!(level["found"] >= 25.0, "{level:?}");
        assert!(level["missed"].total_cmp(&0.0).is_eq(), "{level:?}");
        assert!(level["accused without cause"].total_cmp(&0.0).is_eq(), "{level:?}");
        assert!(ratio[MEDIAN] > level[MEDIAN], "{ratio:?}");
        assert!(tukey["found"] < level["found"] / 2.0, "{tukey:?}");
    }
}
