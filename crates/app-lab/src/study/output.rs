//! What a study shows: a table, JSON rows, and a page with the figures.

use std::path::PathBuf;

use levelhead_lab::studies::{
    Ask, Curve, Drawing, Estimate, HeatMap, Measured, Place, Results, Study, StudyPlan, Whose,
};
use levelhead_report::{Axis, Column, Figure, Interval, Page, Series, Shading, Table, json};
use serde::Serialize;

use super::number::number;
use super::verdict;
use levelhead_app::{AppError, Show, VERSION, files};

/// The studies there are.
#[derive(Debug)]
pub struct Listed(Vec<Study>);

#[derive(Serialize)]
struct JsonStudy {
    study: &'static str,
    title: &'static str,
    source: &'static str,
    bed: &'static str,
}

impl Listed {
    pub(super) const fn new(studies: Vec<Study>) -> Self {
        Self(studies)
    }
}

impl Show for Listed {
    fn text(&self) -> String {
        let mut table = Table::new(["study", "title", "source"].map(Column::left));
        for study in &self.0 {
            table.push([study.name, study.title, study.source]);
        }
        table.to_text()
    }

    fn json(&self) -> String {
        let study = |study: &Study| {
            let Study { name, title, source, bed, .. } = *study;
            JsonStudy { study: name, title, source, bed }
        };
        let studies: Vec<JsonStudy> = self.0.iter().map(study).collect();
        json::pretty(&studies).expect("names are JSON")
    }
}

/// What a study has found.
#[derive(Debug)]
pub struct Studied {
    study: Study,
    ask: Ask,
    plan: StudyPlan,
    results: Results,
}

#[derive(Serialize)]
struct Json<'a> {
    study: &'a str,
    seed: u64,
    options: JsonOptions<'a>,
    rows: Vec<JsonRow<'a>>,
}

#[derive(Serialize)]
struct JsonOptions<'a> {
    quick: bool,
    seeds: u32,
    traces: Vec<&'a str>,
    bed: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    case: &'a str,
    metric: &'a str,
    unit: &'a str,
    paper: Option<f64>,
    /// `null` where a run was overloaded, and ends where there was one seed.
    ours: f64,
    low: f64,
    high: f64,
}

impl<'a> JsonRow<'a> {
    fn of(row: &'a Estimate) -> Self {
        let Estimate { case, metric, unit, paper, claim: _, ours, low, high } = row;
        let unit = unit.name();
        Self { case, metric, unit, paper: *paper, ours: *ours, low: *low, high: *high }
    }
}

impl Studied {
    pub(crate) const fn new(study: Study, ask: Ask, plan: StudyPlan, results: Results) -> Self {
        Self { study, ask, plan, results }
    }

    /// Writes the page, if it has a place.
    pub(super) fn written(self, place: Option<PathBuf>) -> Result<Self, AppError> {
        if let Some(path) = place {
            let page = self.page().to_html();
            files::write_whole(&path, |out| out.write_all(page.as_bytes()))?;
        }
        Ok(self)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let Ask { quick, seed, seeds, traces } = &self.ask;
        let (first, last) = (*seed, seed.wrapping_add(u64::from(*seeds) - 1));
        let mut facts = vec![
            ("study", self.study.name.to_owned()),
            ("source", self.study.source.to_owned()),
            ("bed", self.study.bed.to_owned()),
        ];
        if !self.plan.cells.is_empty() {
            facts.push(("seeds", format!("{seeds}, {first} to {last}")));
            facts.push(("run", if *quick { "quick" } else { "full" }.to_owned()));
        }
        if !traces.is_empty() {
            let names: Vec<&str> = traces.iter().map(|trace| trace.name.as_str()).collect();
            facts.push(("traces", names.join(", ")));
        }
        facts.push(("program", format!("levelhead {VERSION}")));
        facts
    }

    fn table(&self) -> Table {
        let has_papers = self.results.rows.iter().any(|row| row.paper.is_some());
        let mut columns = ["case", "metric"].map(Column::left).to_vec();
        columns.extend(["ours", "low", "high"].map(Column::right));
        columns.push(Column::left("unit"));
        if has_papers {
            columns.extend([Column::right("paper"), Column::left("reproduced")]);
        }
        let mut table = Table::new(columns);
        for row in &self.results.rows {
            let Estimate { case, metric, unit, low, high, .. } = row;
            let [low, high] = [low, high].map(|end| number(*unit, *end));
            let mut cells = vec![case.clone(), metric.clone(), verdict::ours(row), low, high];
            cells.push(unit.name().to_owned());
            if has_papers {
                cells.push(verdict::papers(row).unwrap_or_else(|| "-".to_owned()));
                cells.push(verdict::word(row).to_owned());
            }
            table.push(cells);
        }
        table
    }

    pub(crate) fn page(&self) -> Page {
        // Studies of our own say what they measure.
        let says = match self.study.source.starts_with('[') {
            true => format!("The paper: {}", self.study.says),
            false => self.study.says.to_owned(),
        };
        let mut page = Page::new(format!("{}: {}", self.study.name, self.study.title))
            .lead(verdict::verdict(&self.results.rows))
            .paragraph(says)
            .facts(self.facts());
        for drawing in &self.plan.drawings {
            page = page.figure(self.figure(drawing));
        }
        let caption = if self.plan.cells.is_empty() {
            "Ours: calculated, without chance"
        } else {
            "Ours: the mean over the seeds and its 95 % interval (Student's t; the jackknife's for \
             ratios of sums; the exact one for counts, which are of all seeds together)"
        };
        page = page.heading("Every number").table(caption, self.table());
        for remark in &self.plan.remarks {
            page = page.paragraph(remark);
        }
        page
    }

    fn figure(&self, drawing: &Drawing) -> Figure {
        match drawing {
            Drawing::Bars { title, axis, is_log, groups, bars } => {
                let height = |whose: Whose, (case, metric): &(String, String)| {
                    let row = self.results.row(case, metric);
                    let number = row.and_then(|row| match whose {
                        Whose::Paper => row.paper,
                        Whose::Ours => Some(row.ours),
                    });
                    number.filter(|value| value.is_finite()).unwrap_or(f64::NAN)
                };
                let interval = |whose: Whose, (case, metric): &(String, String)| {
                    let row = self.results.row(case, metric);
                    match (whose, row) {
                        (Whose::Ours, Some(row)) => interval(row),
                        (Whose::Ours, None) | (Whose::Paper, _) => Interval::NONE,
                    }
                };
                let shown: Vec<(&str, Vec<f64>, Vec<Interval>)> = bars
                    .iter()
                    .map(|bar| {
                        let heights = bar.rows.iter().map(|row| height(bar.whose, row)).collect();
                        let intervals = bar.rows.iter().map(|row| interval(bar.whose, row));
                        (bar.name.as_str(), heights, intervals.collect())
                    })
                    .filter(|(_, heights, _): &(_, Vec<f64>, _)| {
                        heights.iter().any(|h| !h.is_nan())
                    })
                    .collect();
                let series: Vec<(&str, &[f64])> =
                    shown.iter().map(|(name, heights, _)| (*name, heights.as_slice())).collect();
                let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
                let axis = if *is_log { Axis::log(axis) } else { Axis::linear(axis) };
                let figure = Figure::bars(title, axis, &groups, &series);
                let figure = shown.iter().fold(figure, |figure, (name, _, intervals)| {
                    figure.with_intervals(name, intervals)
                });
                let has_whiskers = |of: &[Interval]| of.iter().any(|one| one.low < one.high);
                match shown.iter().any(|(_, _, intervals)| has_whiskers(intervals)) {
                    true => figure.with_note("Whiskers: 95 % intervals."),
                    false => figure,
                }
            }
            Drawing::HeatMap(map) => heat_map(map, &self.results),
            Drawing::Curves { title, across, up, curves } => {
                let series = curves.iter().map(|curve| series(curve, &self.results)).collect();
                Figure::lines(title, Axis::linear(across), Axis::log(up), series)
            }
            Drawing::Distributions { title, axis, cells } => {
                let series = cells.iter().filter_map(|(name, cell)| {
                    let values = self.results.distributions.get(cell)?;
                    let points = values.iter().copied().zip(Measured::SHARES);
                    Some(Series::line(name, points))
                });
                let (x, y) = (Axis::log(axis), Axis::tail("share at or below"));
                Figure::lines(title, x, y, series.collect())
            }
        }
    }
}

/// The interval of a number that has one.
fn interval(row: &Estimate) -> Interval {
    let Estimate { ours, low, high, .. } = row;
    match [ours, low, high].iter().all(|value| value.is_finite()) {
        true => Interval { low: *low, high: *high },
        false => Interval::NONE,
    }
}

/// The points of a curve; what has no place on a logarithmic axis is no number.
fn series(curve: &Curve, results: &Results) -> Series {
    let place = |place: &Place| match place {
        Place::At(at) => *at,
        Place::Row(case, metric) => results.row(case, metric).map_or(f64::NAN, |row| row.ours),
    };
    let points = curve.points.iter().map(|[across, up]| {
        let up = place(up);
        (place(across), if up > 0.0 && up.is_finite() { up } else { f64::NAN })
    });
    match curve.is_joined {
        true => Series::line(&curve.name, points),
        false => Series::dots(&curve.name, points),
    }
}

/// The ratio at which the colours of a heat map have their full strength.
const HEAT_FULL: f64 = 1.10;

fn heat_map(map: &HeatMap, results: &Results) -> Figure {
    let values: Vec<Vec<f64>> =
        map.bins.iter().map(|row| row.iter().map(|bin| largest(bin, results)).collect()).collect();
    let [columns, rows] = [&map.columns, &map.rows]
        .map(|names| names.iter().map(String::as_str).collect::<Vec<&str>>());
    Figure::heat_map(&map.title, &columns, &rows, &values, Shading::full_at(HEAT_FULL))
}

/// The largest of our finite numbers in the rows of `bin`, not a number if there is none.
fn largest(bin: &[(String, String)], results: &Results) -> f64 {
    let numbers = bin.iter().filter_map(|(case, metric)| Some(results.row(case, metric)?.ours));
    numbers.filter(|number| number.is_finite()).fold(f64::NAN, f64::max)
}

impl Show for Studied {
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.facts() {
            text.push_str(&format!("{name}: {value}\n"));
        }
        let verdict = verdict::verdict(&self.results.rows);
        text.push_str(&format!("verdict: {verdict}\n\n{}", self.table().to_text()));
        for remark in &self.plan.remarks {
            text.push_str(&format!("{remark}\n"));
        }
        text
    }

    fn json(&self) -> String {
        let Ask { quick, seed, seeds, traces } = &self.ask;
        let traces = traces.iter().map(|trace| trace.name.as_str()).collect();
        let (quick, seeds, bed) = (*quick, *seeds, self.study.bed);
        let options = JsonOptions { quick, seeds, traces, bed, version: VERSION };
        let rows = self.results.rows.iter().map(JsonRow::of).collect();
        let all = Json { study: self.study.name, seed: *seed, options, rows };
        json::pretty(&all).expect("numbers and names are JSON")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use levelhead_lab::studies::{Claim, Unit};

    use super::*;

    #[test]
    fn a_field_has_the_largest_finite_number_of_its_rows() {
        let row = |case: &str, ours: f64| Estimate {
            case: case.to_owned(),
            metric: "mean".to_owned(),
            unit: Unit::Times,
            paper: None,
            claim: Claim::Equal,
            ours,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
        let rows = vec![
            row("low", 0.25),
            row("high", 1.42),
            row("overloaded", f64::INFINITY),
            row("nothing", f64::NAN),
        ];
        let results = Results { rows, distributions: BTreeMap::new() };
        let bin = |cases: &[&str]| cases.iter().map(|&case| (case.into(), "mean".into())).collect();
        let map = HeatMap {
            title: "a".to_owned(),
            columns: vec!["x".to_owned(), "y".to_owned()],
            rows: vec!["r".to_owned(), "s".to_owned()],
            bins: vec![
                vec![bin(&["nothing", "high", "overloaded", "low"]), bin(&["low"])],
                vec![bin(&["overloaded", "nothing", "unknown"]), bin(&[])],
            ],
        };
        let svg = heat_map(&map, &results).to_svg();
        assert!(svg.contains("<title>r, x: 1.42</title>"), "{svg}");
        assert!(svg.contains("<title>r, y: 0.25</title>"), "{svg}");
        assert!(!svg.contains("<title>s, "), "{svg}");
        assert!(svg.contains("(2 of 4 fields)"), "{svg}");
    }
}
