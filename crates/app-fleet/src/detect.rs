//! `levelhead-lab fleet detect`: which members of groups are slow, from recorded samples.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use levelhead_fleet::detect::{self, Kind, Label, Recording, Row, Score, Verdict};
use levelhead_fleet_io::ReadError;
use levelhead_fleet_io::samples::{Labels, read_recordings};
use levelhead_host::words;
use levelhead_lab::studies::Labelled;
use levelhead_report::{Column, Table, json};
use serde::Serialize;

use levelhead_app::{AppError, NoProgress, Progress, Show};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Detect {
    /// Files of samples, and folders of them.
    pub files: Vec<PathBuf>,
    /// By which rule.
    pub detector: Kind,
    /// Drives known to be slow, to count against.
    pub labels: Option<PathBuf>,
}

/// What was found of each drive.
#[derive(Clone, Debug)]
pub struct Detected {
    detector: Kind,
    rows: Vec<Row>,
    score: Option<Score>,
}

/// A rule in words, with its constants.
#[derive(Clone, Copy, Debug)]
pub struct Explained {
    detector: Kind,
}

/// The rule of a detector.
pub fn explain(detector: Kind) -> Explained {
    Explained { detector }
}

/// Tells a detector of every group in the files. Of files that have a group of the same name, the groups are called after the files
/// too: `cluster_A/host_2`.
///
/// # Errors
///
/// A file that cannot be read or holds no samples, or two files of one name with the same group.
pub fn detect(ask: &Detect, progress: &dyn Progress) -> Result<Detected, AppError> {
    let labels = match &ask.labels {
        Some(path) => Some(Labels::read(path).map_err(wrong)?),
        None => None,
    };
    let sources = read_sources(&ask.files, progress)?;
    let names = sources.iter().flat_map(|source| &source.recordings);
    let is_clear = names.clone().map(|group| &group.group).collect::<BTreeSet<_>>().len()
        == names.clone().count();
    let task = progress.begin("groups", names.count() as u64);
    let (mut rows, mut labelled, mut done) = (Vec::new(), Vec::new(), 0);
    for source in &sources {
        let name_of = |group: &str| {
            if is_clear { group.to_owned() } else { format!("{}/{group}", source.name) }
        };
        for recording in &source.recordings {
            let mut detector = ask.detector.detector(recording.drives.len());
            for mut row in detect::detect(recording, detector.as_mut()) {
                row.group = name_of(&row.group);
                rows.push(row);
            }
            done += 1;
            task.reach(done);
        }
        for label in labels.iter().flat_map(|labels| labels.of_cluster(&source.cluster)) {
            labelled.push(Label { group: name_of(&label.group), drive: label.drive });
        }
    }
    let groups = rows.iter().map(|row| (&row.group, &row.drive)).collect::<BTreeSet<_>>();
    if groups.len() < rows.len() {
        return Err(AppError::usage("two files of the same name have a group of the same name"));
    }
    let score = labels.map(|_| detect::score(&rows, &labelled));
    Ok(Detected { detector: ask.detector, rows, score })
}

/// The groups of a file or folder, and those of their drives that labels name.
///
/// # Errors
///
/// As [`detect`], and labels that cannot be read.
pub fn labelled(path: &Path, labels: Option<&Path>) -> Result<Labelled, AppError> {
    let labels = labels.map(Labels::read).transpose().map_err(wrong)?.unwrap_or_default();
    let mut sources = read_sources(&[path.to_owned()], &NoProgress)?;
    let source = sources.pop().expect("a file is a source");
    Ok(Labelled { slow: labels.of_cluster(&source.cluster), groups: source.recordings })
}

/// The groups of one file or folder.
struct Source {
    /// What it is called beside others.
    name: String,
    /// The cluster that labels may name: a table's or folder's own name, of a group's file the folder it is in.
    cluster: String,
    recordings: Vec<Recording>,
}

fn read_sources(files: &[PathBuf], progress: &dyn Progress) -> Result<Vec<Source>, AppError> {
    let task = progress.begin("files", files.len() as u64);
    let mut sources = Vec::new();
    for (number, path) in files.iter().enumerate() {
        let recordings = read_recordings(path).map_err(wrong)?;
        if recordings.iter().all(|recording| recording.windows.is_empty()) {
            return Err(AppError::usage(format!("{}: expected samples, got none", path.display())));
        }
        let name = stem(path);
        let is_whole = path.is_dir() || path.extension().is_some_and(|ending| ending == "parquet");
        let of_folder = || path.canonicalize().ok()?.parent().map(stem);
        let cluster =
            if is_whole { name.clone() } else { of_folder().unwrap_or_else(|| name.clone()) };
        sources.push(Source { name, cluster, recordings });
        task.reach(number as u64 + 1);
    }
    Ok(sources)
}

/// A file's name up to its first dot.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn wrong(error: ReadError) -> AppError {
    AppError::usage(error)
}

impl Detected {
    /// Drives that are slow at the end of the record.
    pub fn slow_count(&self) -> usize {
        self.rows.iter().filter(|row| row.finding.verdict == Verdict::Slow).count()
    }

    /// All drives.
    pub fn drive_count(&self) -> usize {
        self.rows.len()
    }
}

#[derive(Serialize)]
struct Json<'a> {
    detector: &'static str,
    drives: Vec<DriveJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<LabelsJson>,
}

#[derive(Serialize)]
struct DriveJson<'a> {
    group: &'a str,
    drive: &'a str,
    verdict: &'static str,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    decided_at: Option<i64>,
    busy_hours: Option<f64>,
}

#[derive(Serialize)]
struct LabelsJson {
    found: usize,
    #[serde(rename = "false")]
    false_ones: Vec<String>,
    missed: Vec<String>,
    busy_hours_median: Option<f64>,
    busy_hours_max: Option<f64>,
}

fn drive_json(row: &Row) -> DriveJson<'_> {
    let finite = |value: f64| value.is_finite().then_some(value);
    let finding = &row.finding;
    DriveJson {
        group: &row.group,
        drive: &row.drive,
        verdict: finding.verdict.name(),
        ratio: finite(finding.ratio),
        low: finite(finding.low),
        high: finite(finding.high),
        decided_at: finding.decided_at,
        busy_hours: finding.decided_at.map(|_| finding.busy_hours),
    }
}

fn names(labels: &[Label]) -> Vec<String> {
    labels.iter().map(|label| format!("{}/{}", label.group, label.drive)).collect()
}

impl Show for Detected {
    fn text(&self) -> String {
        let count = |verdict| self.rows.iter().filter(|row| row.finding.verdict == verdict).count();
        let mut text = format!(
            "{}: {}, {} slow, {} fine, {} of which nothing can be said\n",
            self.detector,
            words::counted(self.rows.len(), "drive"),
            count(Verdict::Slow),
            count(Verdict::Fine),
            count(Verdict::CannotTell),
        );
        if let Some(score) = &self.score {
            let hours =
                |hours: Option<f64>| hours.map_or("-".to_owned(), |hours| format!("{hours:.2}"));
            text += &format!(
                "labelled drives: {} found, {} missed; {} found slow that have no label\n\
                 busy hours to the verdict: median {}, at most {}\n",
                score.found,
                score.missed.len(),
                score.false_ones.len(),
                hours(score.busy_hours_median()),
                hours(score.busy_hours_max()),
            );
            for (what, labels) in [("missed", &score.missed), ("no label", &score.false_ones)] {
                for name in names(labels) {
                    text += &format!("{what}: {name}\n");
                }
            }
        }
        let found = self.rows.iter().filter(|row| row.finding.decided_at.is_some());
        let mut table =
            Table::new(["group", "drive", "verdict"].map(Column::left).into_iter().chain(
                ["ratio", "low", "high", "found at (unix s)", "busy hours"].map(Column::right),
            ));
        for row in found.clone() {
            let finding = &row.finding;
            let decided_at = finding.decided_at.map_or(String::new(), |at| at.to_string());
            table.push([
                row.group.clone(),
                row.drive.clone(),
                finding.verdict.name().to_owned(),
                format!("{:.2}", finding.ratio),
                format!("{:.2}", finding.low),
                format!("{:.2}", finding.high),
                decided_at,
                format!("{:.2}", finding.busy_hours),
            ]);
        }
        if found.count() > 0 {
            text += &format!("\ndrives that are slow, or were\n\n{}", table.to_text());
        }
        text
    }

    fn json(&self) -> String {
        let labels = self.score.as_ref().map(|score| LabelsJson {
            found: score.found,
            false_ones: names(&score.false_ones),
            missed: names(&score.missed),
            busy_hours_median: score.busy_hours_median(),
            busy_hours_max: score.busy_hours_max(),
        });
        json::pretty(&Json {
            detector: self.detector.name(),
            drives: self.rows.iter().map(drive_json).collect(),
            labels,
        })
        .expect("these are plain values")
    }
}

#[derive(Serialize)]
struct ExplainedJson {
    detector: &'static str,
    rule: String,
}

impl Show for Explained {
    fn text(&self) -> String {
        self.detector.explain()
    }

    fn json(&self) -> String {
        let detector = self.detector;
        json::pretty(&ExplainedJson { detector: detector.name(), rule: detector.explain() })
            .expect("these are plain values")
    }
}
