//! Pages with made-up numbers, to see how they look: of commands that take too long for a test, or measure in real time.

use std::collections::BTreeMap;

use levelhead_lab::studies::{
    Ask, Drawing, Estimate, Measured, Results, Row, Study, StudyPlan, Unit, all,
};
use levelhead_report::Page;

use crate::study::Studied;
use levelhead_app_drive::demo;

/// A page as `--report` writes it, but for its numbers.
#[derive(Clone, Debug)]
pub struct Specimen {
    /// What it is called.
    pub name: String,
    /// The page.
    pub html: String,
}

impl Specimen {
    fn new(name: &str, page: Page) -> Self {
        let lead = "The numbers of this page are synthetic: it shows how such a page looks, and nothing \
                    was measured for it.";
        Self { name: name.to_owned(), html: page.lead(lead).to_html() }
    }
}

/// The page of the demo, and that of every study.
///
/// # Panics
///
/// If a study cannot be planned.
pub fn specimens() -> Vec<Specimen> {
    std::iter::once(Specimen::new("demo", demo::specimen()))
        .chain(all().into_iter().map(of_study))
        .collect()
}

fn of_study(study: Study) -> Specimen {
    let ask = Ask { quick: true, seed: 1, seeds: study.seeds_quick, traces: Vec::new() };
    let plan = (study.plan)(&ask).expect("a study without traces can be planned");
    let results = made_up(&plan);
    Specimen::new(study.name, Studied::new(study, ask, plan, results).page())
}

fn made_up(plan: &StudyPlan) -> Results {
    let rows = plan.rows.iter().enumerate().map(|(idx, row)| estimate(idx, row)).collect();
    let cells = plan.drawings.iter().flat_map(|drawing| match drawing {
        Drawing::Distributions { cells, .. } => cells.clone(),
        Drawing::Bars { .. } | Drawing::HeatMap(_) | Drawing::Curves { .. } => Vec::new(),
    });
    let distribution = |idx: usize| -> Vec<f64> {
        let value = |share: f64| (4.0 + idx as f64) * (1.0 - (1.0 - share).max(1e-7).ln());
        Measured::SHARES.into_iter().map(value).collect()
    };
    let distributions: BTreeMap<String, Vec<f64>> =
        cells.enumerate().map(|(idx, (_, cell))| (cell, distribution(idx))).collect();
    Results { rows, distributions }
}

/// Near the paper's number where it has one, else one of the size that its unit is for.
fn estimate(idx: usize, row: &Row) -> Estimate {
    let step = (idx * 37 % 101) as f64 / 101.0;
    let alone = match row.unit {
        Unit::Probability => 10_f64.powf(-1.0 - 5.0 * step),
        Unit::Times => 0.7 + 0.8 * step,
        Unit::Percent => 100.0 * step,
        Unit::Count
        | Unit::Millis
        | Unit::PerSecond
        | Unit::Megabytes
        | Unit::MegabytesPerSecond => 2.0 + 180.0 * step * step,
    };
    let ours = row.paper.map_or(alone, |paper| paper * (0.9 + 0.2 * step));
    let (case, metric, unit, paper) = (row.case.clone(), row.metric.clone(), row.unit, row.paper);
    let wide = 0.04 * ours.abs() * (1.0 + step);
    let (claim, low, high) = (row.claim, ours - wide, ours + wide);
    Estimate { case, metric, unit, paper, claim, ours, low, high }
}
