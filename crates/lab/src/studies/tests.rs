//! The framework, on studies made up for it.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn ask(study: &Study) -> Ask {
    Ask { quick: true, seed: 7, seeds: study.seeds_quick, traces: Vec::new() }
}

fn measure(plan: &StudyPlan, seeds: &[u64], jobs: &[Job]) -> BTreeMap<Job, Measured> {
    let measured = |job: &Job| (*job, plan.cells[job.cell].measure(seeds[job.seed]).unwrap());
    jobs.iter().map(measured).collect()
}

/// The rows of a plan whose cells are measured with one seed, two at a time.
pub(super) fn measured_rows(plan: &StudyPlan, seed: u64) -> Vec<Estimate> {
    let jobs = plan.jobs(1);
    let (one, other) = jobs.split_at(jobs.len() / 2);
    let mut measured = BTreeMap::new();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| measure(plan, &[seed], other));
        measured.extend(measure(plan, &[seed], one));
        measured.extend(other.join().unwrap());
    });
    Results::of(plan, 1, &measured).unwrap().rows
}

/// The rows of a plan that has no cells.
pub(super) fn rows(plan: &StudyPlan) -> Vec<Estimate> {
    Results::of(plan, 1, &BTreeMap::new()).unwrap().rows
}

#[test]
fn studies_have_names_of_their_own_and_plans_that_name_what_they_have() {
    let names: BTreeSet<&str> = all().iter().map(|study| study.name).collect();
    assert_eq!(names.len(), all().len());
    for study in all() {
        let plan = (study.plan)(&ask(&study)).unwrap_or_else(|e| panic!("{}: {e}", study.name));
        let cells: BTreeSet<&str> = plan.cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(cells.len(), plan.cells.len(), "{}: two cells of one name", study.name);
        let rows: BTreeSet<(&str, &str)> =
            plan.rows.iter().map(|row| (row.case.as_str(), row.metric.as_str())).collect();
        assert_eq!(rows.len(), plan.rows.len(), "{}: two rows of one name", study.name);
        assert!(!rows.is_empty(), "{}", study.name);
        for drawing in &plan.drawings {
            match drawing {
                Drawing::Bars { groups, bars, .. } => {
                    for bar in bars {
                        assert_eq!(bar.rows.len(), groups.len(), "{}", study.name);
                        for (case, metric) in &bar.rows {
                            assert!(
                                rows.contains(&(case, metric)),
                                "{}: {case}, {metric}",
                                study.name
                            );
                        }
                    }
                }
                Drawing::HeatMap(HeatMap { columns, rows: names, bins, .. }) => {
                    assert_eq!(bins.len(), names.len(), "{}", study.name);
                    assert!(bins.iter().all(|row| row.len() == columns.len()), "{}", study.name);
                    for (case, metric) in bins.iter().flatten().flatten() {
                        assert!(rows.contains(&(case, metric)), "{}: {case}", study.name);
                    }
                }
                Drawing::Curves { curves, .. } => {
                    for place in curves.iter().flat_map(|curve| &curve.points).flatten() {
                        if let Place::Row(case, metric) = place {
                            assert!(rows.contains(&(case, metric)), "{}: {case}", study.name);
                        }
                    }
                }
                Drawing::Distributions { cells: drawn, .. } => {
                    for (_, cell) in drawn {
                        assert!(cells.contains(cell.as_str()), "{}: {cell}", study.name);
                    }
                }
            }
        }
    }
}

/// Two cells of pure chance, and a row for each kind of row.
fn made_up() -> StudyPlan {
    let cell = |name: &str, add: f64| {
        Cell::new(name, move |seed| {
            let chance = levelhead_stats::Streams::new(seed).stream("made up").unit();
            Ok(Measured { quantiles: vec![chance; 3], ..Measured::default() }
                .with("mean", chance + add))
        })
    };
    let pair = || ["b".to_owned(), "a".to_owned()];
    StudyPlan {
        cells: vec![cell("a", 1.0), cell("b", 2.0)],
        rows: vec![
            Row::of("a", "mean", Unit::Millis).paper(1.5),
            Row::change(Head::new("b", "change"), "mean", pair()),
            Row::ratio(Head::new("b", "ratio"), "mean", pair()),
            Row::new(Head::new("b", "difference"), Unit::Count, |seed| {
                seed.get("b", "mean") - seed.get("a", "mean")
            }),
            Row::exact(Head::new("all", "exact"), Unit::Count, 3.0),
        ],
        ..StudyPlan::default()
    }
}

#[test]
fn rows_compare_cells_of_the_same_seed() {
    let (plan, seeds) = (made_up(), [7, 8, 9, 10]);
    let results = Results::of(&plan, 4, &measure(&plan, &seeds, &plan.jobs(4))).unwrap();
    let row = |case, metric| results.row(case, metric).unwrap();
    // Chance is the same in both cells, and so the difference has none.
    let difference = row("b", "difference");
    assert!((difference.low - 1.0).abs() < 1e-12 && (difference.high - 1.0).abs() < 1e-12);
    let mean = row("a", "mean");
    assert!(mean.low < mean.ours && mean.ours < mean.high, "{mean:?}");
    assert_eq!(mean.paper, Some(1.5));
    let exact = row("all", "exact");
    assert!([exact.low, exact.ours, exact.high].iter().all(|end| (end - 3.0).abs() < 1e-12));
    assert_eq!(results.distributions["a"].len(), 3);
}

#[test]
fn counts_of_all_seeds_and_cells_are_one_count() {
    let cell = |name: &str, failures: f64| {
        Cell::new(name, move |_| {
            Ok(Measured::default().with("failures", failures).with("trials", 25.0))
        })
    };
    let cells = || vec!["a".to_owned(), "b".to_owned()];
    let plan = StudyPlan {
        cells: vec![cell("a", 5.0), cell("b", 0.0)],
        rows: vec![
            Row::counted(Head::new("all", "share"), cells()),
            Row::counted(Head::new("b", "share"), vec!["b".to_owned()]),
            Row::sum(Head::new("all", "failures"), Unit::Count, "failures", cells()),
            Row::within(Head::new("all", "elsewhere"), Unit::Probability, [0.2, 0.1, 0.3]),
        ],
        ..StudyPlan::default()
    };
    let results = Results::of(&plan, 2, &measure(&plan, &[7, 8], &plan.jobs(2))).unwrap();
    let of = |case, metric| {
        let row = results.row(case, metric).unwrap();
        [row.ours, row.low, row.high]
    };
    let near = |seen: [f64; 3], want: [f64; 3]| {
        assert!(seen.iter().zip(want).all(|(seen, want)| (seen - want).abs() < 1e-4), "{seen:?}");
    };
    near(of("all", "share"), [0.1, 0.0490, 0.1762]);
    near(of("b", "share"), [0.0, 0.0, 0.0582]);
    near(of("all", "failures"), [10.0; 3]);
    near(of("all", "elsewhere"), [0.2, 0.1, 0.3]);
}

#[test]
fn a_value_without_bound_has_no_mean() {
    let plan = StudyPlan {
        cells: vec![Cell::new("a", |_| Ok(Measured::default().with("mean", f64::INFINITY)))],
        rows: vec![Row::of("a", "mean", Unit::Millis)],
        ..StudyPlan::default()
    };
    let results = Results::of(&plan, 2, &measure(&plan, &[1, 2], &plan.jobs(2))).unwrap();
    assert!(!results.rows[0].ours.is_finite());
}

#[test]
fn a_figure_that_was_not_measured_is_named() {
    let plan = made_up();
    let mut measured = measure(&plan, &[7, 8], &plan.jobs(2));
    measured.get_mut(&Job { cell: 1, seed: 1 }).unwrap().values.clear();
    assert_eq!(Results::of(&plan, 2, &measured).unwrap_err(), "b has no 'mean'");
}

#[test]
fn shards_share_the_jobs_out() {
    let plan = made_up();
    let jobs = plan.jobs(4);
    for count in 1..=10 {
        let mut parts: Vec<Job> =
            (1..=count).flat_map(|index| Shard { index, count }.of(&jobs)).collect();
        parts.sort_by_key(|job| (job.seed, job.cell));
        assert_eq!(parts, jobs, "{count} shards");
    }
    for text in ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"] {
        let error = text.parse::<Shard>().unwrap_err();
        assert!(error.contains("from 1 to N"), "{error}");
    }
    assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
}

#[test]
fn shares_of_distributions_rise_to_the_tail() {
    assert!(Measured::SHARES.is_sorted_by(|a, b| a < b));
    assert!((Measured::SHARES[99] - 0.99).abs() < 1e-12);
    assert!((Measured::SHARES[109] - 0.999).abs() < 1e-12);
    let last = Measured::SHARES.last().copied();
    assert!(last.is_some_and(|last| last < 1.0));
}

#[test]
fn a_cell_is_the_same_for_the_same_seed_and_another_for_another() {
    let study = find("eraid.table1").unwrap();
    let small = Ask { seeds: 1, ..ask(&study) };
    let cell = &(study.plan)(&small).unwrap().cells[1];
    let one = cell.measure(7).unwrap();
    assert_eq!(one, cell.measure(7).unwrap());
    assert_ne!(one, cell.measure(8).unwrap());
}
