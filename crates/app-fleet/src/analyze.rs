//! `levelhead-lab fleet analyze`, `map` and `reduce`: every table and figure of the field study over one's own fleet.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use levelhead_fleet::analysis::{Scope, Summary};
use levelhead_fleet::events::EventsSummary;
use levelhead_fleet::exhibits::{self, Exhibit, Fleet, Line, Picture, Scale, Unit};
use levelhead_fleet::generate::Kind;
use levelhead_report::{Axis, Column, Figure, Page, Series, Table, json};
use serde::Serialize;

use super::summarise::{Summarise, summarise, summarise_events};
use levelhead_app::{AppError, Progress, Show, VERSION, files};

/// The most bytes of a summary that are read: 4 GiB, of some hundred million drives.
const SUMMARY_MAX: u64 = 1 << 32;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Analyze {
    /// Of what.
    pub of: Summarise,
    /// What happened to the drives, if that is known.
    pub events: Option<PathBuf>,
    /// Beside the study's numbers of which kind of drives.
    pub kind: Kind,
    /// A folder for an HTML page with the figures.
    pub report: Option<PathBuf>,
}

/// A fleet's numbers.
#[derive(Clone, Debug)]
pub struct Analyzed {
    summary: Summary,
    events: Option<EventsSummary>,
    kind: Kind,
}

/// Every table and figure over hours tables.
///
/// # Errors
///
/// A table that cannot be read, is out of order, or overlaps another; a folder that cannot be written.
pub fn analyze(ask: &Analyze, progress: &dyn Progress) -> Result<Analyzed, AppError> {
    let page = page_place(ask.report.as_deref())?;
    let events = ask.events.as_deref().map(|path| summarise_events(&ask.of, path, progress));
    let events = events.transpose()?;
    let summary = summarise(&ask.of, progress)?;
    Analyzed { summary, events, kind: ask.kind }.written(page)
}

/// Writes the summary of hours tables to `out`.
///
/// # Errors
///
/// As [`analyze`].
pub fn map(of: &Summarise, out: &Path, progress: &dyn Progress) -> Result<(), AppError> {
    files::check_are_apart(&of.files, &[out])?;
    files::check_place(out)?;
    let bytes = summarise(of, progress)?.to_bytes();
    files::write_whole(out, |file| file.write_all(&bytes))
}

/// What is asked of summaries.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// Files that `map` or `reduce` has written.
    pub files: Vec<PathBuf>,
    /// A file for the summary of all.
    pub out: Option<PathBuf>,
    /// Beside the study's numbers of which kind of drives.
    pub kind: Kind,
    /// A folder for an HTML page with the figures.
    pub report: Option<PathBuf>,
}

/// Puts summaries together: the numbers of one pass over all their rows.
///
/// # Errors
///
/// A file that is no summary, two that saw the same hours of a group, and summaries of unlike rules.
pub fn reduce(ask: &Reduce, progress: &dyn Progress) -> Result<Analyzed, AppError> {
    let page = page_place(ask.report.as_deref())?;
    let out = ask.out.iter().map(PathBuf::as_path).collect::<Vec<_>>();
    files::check_are_apart(&ask.files, &out)?;
    out.into_iter().try_for_each(files::check_place)?;
    let task = progress.begin("summaries", ask.files.len() as u64);
    let mut parts: Vec<(&PathBuf, Summary)> = Vec::with_capacity(ask.files.len());
    for path in &ask.files {
        let part = read_summary(path)?;
        // Summaries of slowdowns alone do not know which hours they have seen.
        if let Some((other, _)) = parts.iter().find(|(_, other)| *other == part) {
            return Err(AppError::usage(format!(
                "{} is the same summary as {}",
                path.display(),
                other.display()
            )));
        }
        parts.push((path, part));
    }
    // Neighbour to neighbour in time; parts of other groups may stand anywhere.
    parts.sort_by_key(|(_, part)| part.first_hour());
    let mut merged: Option<Summary> = None;
    for (done, (path, part)) in parts.iter().enumerate() {
        let summary = merged.get_or_insert_with(|| Summary::new(part.rules()));
        let added = summary.merge(part);
        added.map_err(|error| AppError::usage(format!("{}: {error}", path.display())))?;
        task.reach(done as u64 + 1);
    }
    let summary = merged.ok_or_else(|| AppError::usage("expected a summary, got none"))?;
    if let Some(out) = &ask.out {
        let bytes = summary.to_bytes();
        files::write_whole(out, |file| file.write_all(&bytes))?;
    }
    Analyzed { summary, events: None, kind: ask.kind }.written(page)
}

fn read_summary(path: &Path) -> Result<Summary, AppError> {
    let wrong =
        |error: &dyn std::fmt::Display| AppError::usage(format!("{}: {error}", path.display()));
    files::check_can_be_read_again(path)?;
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let mut bytes = Vec::new();
    let read = file.take(SUMMARY_MAX + 1).read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
    if read as u64 > SUMMARY_MAX {
        return Err(wrong(&format!("a summary has at most {SUMMARY_MAX} bytes")));
    }
    Summary::from_bytes(&bytes).map_err(|error| wrong(&error))
}

/// Where the page goes, in a folder that is made if it is not there.
fn page_place(folder: Option<&Path>) -> Result<Option<PathBuf>, AppError> {
    folder.map(|folder| files::page_place(folder, "fleet")).transpose()
}

impl Analyzed {
    fn written(self, page: Option<PathBuf>) -> Result<Self, AppError> {
        if let Some(path) = page {
            let html = self.page().to_html();
            files::write_whole(&path, |out| out.write_all(html.as_bytes()))?;
        }
        Ok(self)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (c, rules) = (self.summary.counts(), self.summary.rules());
        let looked_at = match rules.scope {
            Scope::Slowdown => "slowdowns",
            Scope::Everything => "everything",
        };
        vec![
            ("drive hours", format!("{}, of which {} are slow", c.drive_hours, c.slow_drive_hours)),
            (
                "RAID hours",
                format!("{}, of which {} have a slow drive", c.raid_hours, c.tail_hours),
            ),
            (
                "dropped, idle",
                format!("{} drive hours of fewer than {} requests", c.idle, rules.ios_min),
            ),
            ("dropped, no value", format!("{} drive hours", c.without_value)),
            (
                "dropped, few peers",
                format!("{} drive hours with fewer than two others", c.few_peers),
            ),
            ("looked at", looked_at.to_owned()),
            ("paper", format!("numbers of [TAIL16] for {}", self.kind.plural())),
            ("program", format!("levelhead {VERSION}")),
        ]
    }

    fn fleet(&self) -> Fleet<'_> {
        Fleet { hours: &self.summary, events: self.events.as_ref() }
    }

    /// The exhibits for which there is data.
    fn shown(&self) -> Vec<(Exhibit, Vec<Line>)> {
        let all = exhibits::all().into_iter();
        let fleet = self.fleet();
        let shown = all.map(|exhibit| (exhibit, exhibit.lines(&fleet)));
        shown.filter(|(_, lines)| !lines.is_empty()).collect()
    }

    fn table(&self, lines: &[Line]) -> Table {
        let columns = [Column::left("metric"), Column::left("unit")];
        let numbers = [Column::right("paper"), Column::right("fleet")];
        let mut table = Table::new(columns.into_iter().chain(numbers));
        for Line { metric, unit, paper, value } in lines {
            let paper = paper.of(self.kind).map_or("-".to_owned(), |paper| number(*unit, paper));
            table.push([metric.clone(), name_of(*unit).to_owned(), paper, number(*unit, *value)]);
        }
        table
    }

    fn page(&self) -> Page {
        let mut page = Page::new("Slow drives of a fleet").facts(self.facts());
        for (exhibit, lines) in self.shown() {
            page = page
                .heading(format!("{}: {}", exhibit.name, exhibit.title))
                .paragraph(format!("The study: {}", exhibit.says))
                .table("", self.table(&lines));
            if let Some(picture) = exhibit.picture(&self.fleet()) {
                page = page.figure(figure(exhibit.title, picture));
            }
        }
        page
    }
}

fn figure(title: &str, picture: Picture) -> Figure {
    let axis = |scale: Scale, label: &str| match scale {
        Scale::Linear => Axis::linear(label),
        Scale::Log => Axis::log(label),
        Scale::Tail => Axis::tail(label),
    };
    let series = picture.curves.into_iter().map(|curve| {
        Series::line(curve.name, curve.points.into_iter().map(|point| (point.across, point.up)))
    });
    let across = axis(picture.across_scale, picture.across);
    Figure::lines(title, across, axis(picture.up_scale, picture.up), series.collect())
}

const fn name_of(unit: Unit) -> &'static str {
    match unit {
        Unit::Percent => "%",
        Unit::Times => "x",
        Unit::Count => "count",
    }
}

fn number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Count if value.fract().abs() > 0.0 => format!("{value:.1}"),
        Unit::Count => format!("{value}"),
        Unit::Percent | Unit::Times => format!("{value:.3}"),
    }
}

#[derive(Serialize)]
struct Json<'a> {
    counts: Counts,
    dropped: Dropped,
    options: Options<'a>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Counts {
    drive_hours: u64,
    slow_drive_hours: u64,
    raid_hours: u64,
    tail_hours: u64,
}

#[derive(Serialize)]
struct Dropped {
    idle: u64,
    without_value: u64,
    few_peers: u64,
}

#[derive(Serialize)]
struct Options<'a> {
    only: Option<&'a str>,
    ios_min: i32,
    kind: &'a str,
    version: &'a str,
}

/// A row as those of studies; one fleet is no sample, and has no interval.
#[derive(Serialize)]
struct Row {
    study: String,
    case: &'static str,
    metric: String,
    unit: &'static str,
    paper: Option<f64>,
    ours: f64,
    low: Option<f64>,
    high: Option<f64>,
}

impl Show for Analyzed {
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.facts() {
            text.push_str(&format!("{name}: {value}\n"));
        }
        for (exhibit, lines) in self.shown() {
            let table = self.table(&lines).to_text();
            text.push_str(&format!("\n{}: {}\n{table}", exhibit.name, exhibit.title));
        }
        text
    }

    fn json(&self) -> String {
        let (c, rules) = (self.summary.counts(), self.summary.rules());
        let mut rows = Vec::new();
        for (exhibit, lines) in self.shown() {
            rows.extend(lines.into_iter().map(|line| Row {
                study: format!("fleet.{}", exhibit.name),
                case: "fleet",
                metric: line.metric,
                unit: name_of(line.unit),
                paper: line.paper.of(self.kind),
                ours: line.value,
                low: None,
                high: None,
            }));
        }
        json::pretty(&Json {
            counts: Counts {
                drive_hours: c.drive_hours,
                slow_drive_hours: c.slow_drive_hours,
                raid_hours: c.raid_hours,
                tail_hours: c.tail_hours,
            },
            dropped: Dropped {
                idle: c.idle,
                without_value: c.without_value,
                few_peers: c.few_peers,
            },
            options: Options {
                only: (rules.scope == Scope::Slowdown).then_some("slowdown"),
                ios_min: rules.ios_min,
                kind: self.kind.name(),
                version: VERSION,
            },
            rows,
        })
        .expect("numbers and names are JSON")
    }
}
