//! `levelhead-lab fleet analyze`, `map` and `reduce`: every table and figure of the field study over one's own fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use levelhead_fleet::analysis::{Scope, SlowDrive, Summary};
use levelhead_fleet::events::EventsSummary;
use levelhead_fleet::exhibits::{self, Exhibit, Fleet, Line, Picture, Scale, Unit};
use levelhead_fleet::generate::Kind;
use levelhead_report::{Axis, Column, Figure, Page, Series, Table, json};
use serde::Serialize;

use super::names::{DriveName, DriveNo, names_of};
use super::summarise::{Summarise, summarise, summarise_events};
use levelhead_app::{AppError, Progress, Show, VERSION, files};

/// The most bytes of a summary that are read: 4 GiB, of some hundred million drives.
const SUMMARY_MAX: u64 = 1 << 32;

/// The most slow drives that are named.
const WORST_MAX: usize = 20;

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
    /// The drives that were slow in the most hours.
    worst: Vec<SlowDrive>,
    /// What those are called that have names.
    names: BTreeMap<DriveNo, DriveName>,
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
    // Names that cannot be read are refused before the work.
    names_of(&ask.of.files, &BTreeSet::new())?;
    let summary = summarise(&ask.of, progress)?;
    let worst = summary.slowest(WORST_MAX);
    let names = names_of(&ask.of.files, &worst.iter().map(number_of).collect())?;
    Analyzed { summary, events, kind: ask.kind, worst, names }.written(page)
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
    let worst = summary.slowest(WORST_MAX);
    Analyzed { summary, events: None, kind: ask.kind, worst, names: BTreeMap::new() }.written(page)
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

    fn json_of(&self, drive: &SlowDrive) -> WorstDrive<'_> {
        let name = self.names.get(&number_of(drive));
        WorstDrive {
            raid: drive.raid,
            drive: drive.drive,
            raid_name: name.map(|name| name.raid.as_str()),
            drive_name: name.map(|name| name.drive.as_str()),
            hours: drive.hours,
            slow_hours: drive.slow_hours,
            slowdown_max: drive.slowdown_max,
            first_slow_hour: drive.first_slow,
            last_slow_hour: drive.last_slow,
        }
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

    /// How common slow drives are, in one sentence for their owner.
    fn verdict(&self) -> String {
        let (c, summary) = (self.summary.counts(), &self.summary);
        if c.drive_hours == 0 {
            return "No drive hour could be compared with those of two other drives of its group."
                .to_owned();
        }
        let percent =
            |part: u64, whole: u64| format!("{:.2} %", 100.0 * part as f64 / whole as f64);
        let hours = percent(c.slow_drive_hours, c.drive_hours);
        let (slow, all) = (summary.slow_at_least(1), summary.drive_count());
        let named: u64 = self.worst.iter().map(|drive| u64::from(drive.slow_hours)).sum();
        match (summary.rules().scope, self.worst.len()) {
            (Scope::Slowdown, _) => format!("{hours} of the drive hours are slow."),
            (Scope::Everything, 0) => format!("None of the {all} drives was slow in any hour."),
            (Scope::Everything, shown) => {
                let were = if slow == 1 { "was" } else { "were" };
                let share = percent(named, c.slow_drive_hours);
                let first = match shown {
                    1 => "that drive has all of the slow hours".to_owned(),
                    shown if shown as u64 == slow => "all of them are listed below".to_owned(),
                    shown => format!("the {shown} worst drives have {share} of the slow hours"),
                };
                format!(
                    "{slow} of {all} drives {were} slow in at least one hour ({}), and {hours} of the drive hours are slow; {first}.",
                    percent(slow, all)
                )
            }
        }
    }

    /// The drives to look at first.
    fn worst_table(&self) -> Table {
        let numbers =
            ["slow hours", "% of its hours", "largest S", "last slow, hours before the end"];
        let columns = ["drive", "group"].map(Column::left).into_iter();
        let mut table = Table::new(columns.chain(numbers.map(Column::right)));
        let end = self.summary.last_hour().map_or(0, i64::from);
        for drive in &self.worst {
            let SlowDrive { raid, hours, slow_hours, slowdown_max, last_slow, .. } = *drive;
            let name = self.names.get(&number_of(drive));
            table.push([
                name.map_or_else(|| drive.drive.to_string(), |name| name.drive.clone()),
                name.map_or_else(|| raid.to_string(), |name| name.raid.clone()),
                slow_hours.to_string(),
                format!("{:.1}", 100.0 * f64::from(slow_hours) / f64::from(hours)),
                format!("{slowdown_max:.1}"),
                (end - i64::from(last_slow)).to_string(),
            ]);
        }
        table
    }

    fn table(&self, lines: &[Line]) -> Table {
        let columns = [
            Column::left("metric"),
            Column::right("fleet"),
            Column::left("unit"),
            Column::right("study"),
        ];
        let mut table = Table::new(columns);
        for Line { metric, unit, paper, value } in lines {
            let paper = paper.of(self.kind).map_or("-".to_owned(), |paper| number(*unit, paper));
            table.push([metric.clone(), number(*unit, *value), name_of(*unit).to_owned(), paper]);
        }
        table
    }

    fn page(&self) -> Page {
        let mut page = Page::new("Slow drives of a fleet").lead(self.verdict()).paragraph(TERMS);
        if !self.worst.is_empty() {
            page = page.heading(WORST).paragraph(WORST_SAYS).table("", self.worst_table());
        }
        page = page.heading("The data").facts(self.facts());
        for (exhibit, lines) in self.shown() {
            page = page
                .heading(exhibit.title)
                .paragraph(format!("The study [TAIL16]: {}", exhibit.says))
                .table(format!("As {} of the study", exhibit.label()), self.table(&lines));
            if let Some(picture) = exhibit.picture(&self.fleet()) {
                page = page.figure(figure(exhibit.title, picture));
            }
        }
        page
    }
}

const TERMS: &str = "The slowdown S of a drive in an hour is its mean latency over the median of its group's drives in that hour. A \
                     drive is slow in an hour if S is 2 or more. T1, T2 and T3 are the largest, the second and the third largest S \
                     of a group in an hour. A tail hour is a group's hour with a T1 of 2 or more.";
const WORST: &str = "Drives to look at first";
const WORST_SAYS: &str = "The drives that were slow in the most hours, at most 20. One whose last slow hour is 0 hours before the end \
                          was still slow when the record ended.";

fn number_of(drive: &SlowDrive) -> DriveNo {
    DriveNo { raid: drive.raid, drive: drive.drive }
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
    /// The drives that were slow in the most hours.
    worst_drives: Vec<WorstDrive<'a>>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct WorstDrive<'a> {
    raid: i32,
    drive: i32,
    /// Names are there where the table has them beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    raid_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drive_name: Option<&'a str>,
    hours: u32,
    slow_hours: u32,
    slowdown_max: f32,
    first_slow_hour: i32,
    last_slow_hour: i32,
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
        let mut text = format!("verdict: {}\n", self.verdict());
        for (name, value) in self.facts() {
            text.push_str(&format!("{name}: {value}\n"));
        }
        if !self.worst.is_empty() {
            text.push_str(&format!("\n{WORST}\n{}", self.worst_table().to_text()));
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
            worst_drives: self.worst.iter().map(|drive| self.json_of(drive)).collect(),
            rows,
        })
        .expect("numbers and names are JSON")
    }
}
