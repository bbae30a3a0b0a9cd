//! `levelhead-lab fleet import`: what others have recorded becomes an hours table, or samples that `detect` reads.
//!
//! ```text
//!   hours tables (CSV with numbers or names, Parquet), in any order --> Sorted  --> hours table
//!   PERSEUS, `watch`'s samples  --.
//!                                  >--> groups in windows of five minutes --+--> hours table
//!   answers of Prometheus       --'                                          \-> samples
//! ```
//!
//! What is written depends on the name of the file: `.parquet` is an hours table, `.csv` samples.

mod hours;
mod samples;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use levelhead_fleet::detect::Recording;
use levelhead_fleet_io::hours::is_table;
use levelhead_fleet_io::prometheus::{self, Imported, Members, Range};
use levelhead_fleet_io::samples::{Load, load_of, read_recordings};
use levelhead_host::words;
use levelhead_report::json;
use serde::Serialize;

use crate::names::names_place;
use levelhead_app::{AppError, Progress, Show, files};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Import {
    /// Files, folders, or one server's address that begins with `http://`.
    pub sources: Vec<String>,
    /// The file to write: `.parquet` for hours, `.csv` for samples.
    pub out: PathBuf,
    /// For answers of Prometheus.
    pub prometheus: Option<Prometheus>,
}

/// How answers of Prometheus are read.
#[derive(Clone, Debug)]
pub struct Prometheus {
    /// Which series is which drive.
    pub members: PathBuf,
    /// In what unit the latencies are.
    pub unit: LatencyUnit,
    /// What a server is asked.
    pub range: Option<Range>,
}

/// The unit of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
}

impl LatencyUnit {
    const fn in_micros(self) -> f64 {
        match self {
            Self::Seconds => 1e6,
            Self::Millis => 1e3,
            Self::Micros => 1.0,
        }
    }
}

/// What was written.
#[derive(Clone, Debug, Serialize)]
pub struct ImportedFleet {
    /// The file.
    file: PathBuf,
    /// Rows of it.
    rows: u64,
    groups: usize,
    drives: usize,
    /// Series of no member.
    strangers: usize,
    /// The file that says which number is which drive, if they had names.
    names: Option<PathBuf>,
}

/// What is to be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Hours,
    Samples,
}

fn form_of(out: &Path) -> Result<Form, AppError> {
    match out.extension().and_then(|ending| ending.to_str()) {
        Some("parquet") => Ok(Form::Hours),
        Some("csv") => Ok(Form::Samples),
        _ => Err(AppError::usage(format!(
            "{}: the name ends in .parquet for an hours table, or in .csv for samples",
            out.display()
        ))),
    }
}

/// Reads the sources and writes the file.
///
/// # Errors
///
/// A source that cannot be read or is of no known form, sources of unlike forms, and a file that cannot be written.
pub fn import(ask: &Import, progress: &dyn Progress) -> Result<ImportedFleet, AppError> {
    let form = form_of(&ask.out)?;
    let sources: Vec<PathBuf> = ask.sources.iter().map(PathBuf::from).collect();
    let names = names_place(&ask.out);
    files::check_are_apart(&sources, &[&ask.out, &names])?;
    files::check_place(&ask.out)?;
    if form == Form::Hours {
        files::check_place(&names)?;
    }
    if ask.prometheus.is_none()
        && let Some(server) = ask.sources.iter().find(|it| is_server(it))
    {
        return Err(AppError::usage(format!("{server}: a server needs --members and --query")));
    }
    if let Some(wish) = &ask.prometheus {
        let Imported { groups, strangers } = from_prometheus(ask, wish, progress)?;
        return written(ask, form, strangers, &groups, Load::Requests, progress);
    }
    let paths: Vec<PathBuf> = ask.sources.iter().map(PathBuf::from).collect();
    let mut are_hours = Vec::with_capacity(paths.len());
    for path in &paths {
        files::check_can_be_read_again(path)?;
        are_hours.push(is_table(path).map_err(AppError::usage)?);
    }
    if are_hours.iter().all(|is| *is) {
        return match form {
            Form::Hours => hours::import(&paths, &ask.out, progress),
            Form::Samples => Err(AppError::usage("hours tables have no samples: write a .parquet")),
        };
    }
    if let Some(at) = are_hours.iter().position(|is| *is) {
        let path = paths[at].display();
        return Err(AppError::usage(format!(
            "{path} is an hours table, and other sources are not"
        )));
    }
    let task = progress.begin("files", paths.len() as u64);
    let (mut groups, mut load) = (Vec::new(), None);
    for (done, path) in paths.iter().enumerate() {
        let of_file = load_of(path).map_err(AppError::usage)?;
        if load.is_some_and(|load| load != of_file) {
            let path = path.display();
            return Err(AppError::usage(format!(
                "{path}: loads are bytes a second in some sources, and requests in others"
            )));
        }
        load = Some(of_file);
        groups.extend(read_recordings(path).map_err(AppError::usage)?);
        task.reach(done as u64 + 1);
    }
    drop(task);
    let load = load.ok_or_else(|| AppError::usage("expected a source, got none"))?;
    written(ask, form, 0, &groups, load, progress)
}

fn is_server(source: &str) -> bool {
    source.starts_with("http://") || source.starts_with("https://")
}

fn from_prometheus(
    ask: &Import,
    wish: &Prometheus,
    progress: &dyn Progress,
) -> Result<Imported, AppError> {
    let members = Members::read(&wish.members).map_err(AppError::usage)?;
    let unit = wish.unit.in_micros();
    let task = progress.begin("answers", ask.sources.len() as u64);
    let mut all = Imported { groups: Vec::new(), strangers: 0 };
    for (done, source) in ask.sources.iter().enumerate() {
        if source.starts_with("https://") {
            return Err(AppError::usage(format!(
                "{source}: https is not supported: save the answer with another program and import the file"
            )));
        }
        let imported = match (&wish.range, is_server(source)) {
            (Some(range), true) => prometheus::fetch(source, range, &members, unit),
            (None, false) => prometheus::read(Path::new(source), &members, unit),
            (None, true) => {
                return Err(AppError::usage(format!(
                    "{source}: a server needs --query, --start, --end and --step"
                )));
            }
            (Some(_), false) => {
                return Err(AppError::usage(format!(
                    "{source}: a query is for a server, whose address begins with http://"
                )));
            }
        };
        let imported = imported.map_err(AppError::usage)?;
        all.groups.extend(imported.groups);
        all.strangers += imported.strangers;
        task.reach(done as u64 + 1);
    }
    Ok(all)
}

fn written(
    ask: &Import,
    form: Form,
    strangers: usize,
    groups: &[Recording],
    load: Load,
    progress: &dyn Progress,
) -> Result<ImportedFleet, AppError> {
    let mut names = BTreeSet::new();
    if let Some(twice) = groups.iter().find(|it| !names.insert(&it.group)) {
        let name = &twice.group;
        return Err(AppError::usage(format!("group {name} is in two sources")));
    }
    if groups.iter().all(|group| group.windows.is_empty()) {
        return Err(AppError::usage("these sources have no samples"));
    }
    let imported = match form {
        Form::Hours => samples::write_hours(groups, load, &ask.out, progress)?,
        Form::Samples => samples::write_samples(groups, &ask.out, progress)?,
    };
    Ok(ImportedFleet { strangers, ..imported })
}

impl Show for ImportedFleet {
    fn text(&self) -> String {
        let Self { file, rows, groups, drives, strangers, names } = self;
        let file = file.display();
        let mut text = format!(
            "{file}: {} of {} in {}\n",
            words::counted(*rows, "row"),
            words::counted(*drives, "drive"),
            words::counted(*groups, "group")
        );
        if *strangers > 0 {
            text += &format!("{strangers} series are of no member and were left out\n");
        }
        if let Some(names) = names {
            text += &format!("{}: which number is which drive\n", names.display());
        }
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
