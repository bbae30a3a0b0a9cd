//! `levelhead-lab fleet generate`: a made-up fleet, in hours or in samples.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use levelhead_fleet::HoursTable;
use levelhead_fleet::detect::Recording;
use levelhead_fleet::generate::groups::{GroupsOptions, group};
use levelhead_fleet::generate::{HoursGenerator, Shape};
use levelhead_fleet_io::hours::{CSV_HEADER, HoursWriter, ROWS_WRITTEN, write_csv};
use levelhead_fleet_io::samples::{HEADER, write_samples};
use levelhead_fleet_io::{begin_events, write_events};

use levelhead_app::{AppError, Progress, files};

/// The most groups, and the most hours.
const GROUPS_MAX: usize = 1_000_000;
/// Eleven years.
const HOURS_MAX: usize = 100_000;

/// The most drives of a group, days, and the greatest deviation of a logarithm, of samples.
const DRIVES_MAX: usize = 1024;
const DAYS_MAX: usize = 3660;
const SPREAD_MAX: f64 = 10.0;

/// What is made.
#[derive(Clone, Debug)]
pub struct Generate {
    /// How many groups and hours, of what kind, from which seed.
    pub shape: Shape,
    /// The file for the hours table, `.parquet` or `.csv`.
    pub out: PathBuf,
    /// A file for the events of its drives, CSV.
    pub events: Option<PathBuf>,
}

/// Writes an hours table.
///
/// # Errors
///
/// A count outside of its limits, and a file that cannot be written.
pub fn generate(ask: &Generate, progress: &dyn Progress) -> Result<(), AppError> {
    let Shape { group_count, hour_count, .. } = ask.shape;
    for (what, count, most) in
        [("groups", group_count, GROUPS_MAX), ("hours", hour_count, HOURS_MAX)]
    {
        if !(1..=most).contains(&count) {
            return Err(AppError::usage(format!("{count} {what}: expected 1 to {most}")));
        }
    }
    let task = progress.begin("hours", hour_count as u64);
    let form = form_of(&ask.out)?;
    let outputs: Vec<&Path> =
        [Some(ask.out.as_path()), ask.events.as_deref()].into_iter().flatten().collect();
    files::check_are_apart(&[], &outputs)?;
    if let Some(events) = &ask.events {
        files::check_place(events)?;
    }
    let mut events = Vec::new();
    begin_events(&mut events).expect("memory takes all");
    files::write_whole(&ask.out, |out| {
        let mut generator = HoursGenerator::new(ask.shape);
        let mut writer = Writer::begin(form, out)?;
        let (mut table, mut done) = (HoursTable::default(), 0);
        while generator.next_hour(&mut table) {
            done += 1;
            if table.len() >= ROWS_WRITTEN {
                writer.write(&table)?;
                table.clear();
                task.reach(done);
            }
        }
        write_events(&mut events, &generator.take_events())?;
        writer.write(&table)?;
        writer.finish()
    })?;
    match &ask.events {
        Some(path) => files::write_whole(path, |out| out.write_all(&events)),
        None => Ok(()),
    }
}

#[derive(Clone, Copy)]
enum Form {
    Parquet,
    Csv,
}

fn form_of(out: &Path) -> Result<Form, AppError> {
    match out.extension().and_then(|ending| ending.to_str()) {
        Some("parquet") => Ok(Form::Parquet),
        Some("csv") => Ok(Form::Csv),
        _ => {
            Err(AppError::usage(format!("{}: the name ends in .parquet or in .csv", out.display())))
        }
    }
}

enum Writer<'a> {
    Parquet(Box<HoursWriter<&'a mut (dyn Write + Send)>>),
    Csv(&'a mut (dyn Write + Send)),
}

impl<'a> Writer<'a> {
    fn begin(form: Form, out: &'a mut (dyn Write + Send)) -> io::Result<Self> {
        match form {
            Form::Parquet => Ok(Self::Parquet(Box::new(HoursWriter::begin(out)?))),
            Form::Csv => {
                writeln!(out, "{CSV_HEADER}")?;
                Ok(Self::Csv(out))
            }
        }
    }

    fn write(&mut self, table: &HoursTable) -> io::Result<()> {
        match self {
            Self::Parquet(writer) => writer.write(table),
            Self::Csv(out) => write_csv(out, table),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Parquet(writer) => writer.finish(),
            Self::Csv(out) => out.flush(),
        }
    }
}

/// What groups of drives are made, in samples.
#[derive(Clone, Debug)]
pub struct GenerateSamples {
    /// How many, how loud, how slow.
    pub options: GroupsOptions,
    /// What chance is drawn from.
    pub seed: u64,
    /// The file for the samples, `.csv`.
    pub out: PathBuf,
    /// A file for the drives that are slow, `.csv`.
    pub labels: Option<PathBuf>,
}

/// Writes samples of groups, a window of five minutes a line.
///
/// # Errors
///
/// Options that cannot be, and a file that cannot be written.
pub fn generate_samples(ask: &GenerateSamples, progress: &dyn Progress) -> Result<(), AppError> {
    let GenerateSamples { options, seed, out, labels } = ask;
    check(options)?;
    if out.extension().is_none_or(|ending| ending != "csv") {
        let out = out.display();
        return Err(AppError::usage(format!("{out}: samples are written as .csv")));
    }
    let outputs: Vec<&Path> =
        [Some(out.as_path()), labels.as_deref()].into_iter().flatten().collect();
    files::check_are_apart(&[], &outputs)?;
    outputs.into_iter().try_for_each(files::check_place)?;
    let task = progress.begin("groups", options.groups as u64);
    let mut slow = "group,drive\n".to_owned();
    files::write_whole(out, |file| {
        writeln!(file, "{HEADER}")?;
        for idx in 0..options.groups {
            let made = group(options, *seed, idx);
            write_samples(file, &made.recording)?;
            let Recording { group, drives, .. } = &made.recording;
            for (drive, _) in drives.iter().zip(&made.is_slow).filter(|(_, is_slow)| **is_slow) {
                slow += &format!("{group},{drive}\n");
            }
            task.reach(idx as u64 + 1);
        }
        Ok(())
    })?;
    match labels {
        Some(path) => files::write_whole(path, |file| file.write_all(slow.as_bytes())),
        None => Ok(()),
    }
}

fn check(options: &GroupsOptions) -> Result<(), AppError> {
    let GroupsOptions { groups, drives, days, hours_per_day, noise, lasting, missing, episodes } =
        options;
    let limits = [
        ("groups", *groups, 1..=GROUPS_MAX),
        ("days", *days, 1..=DAYS_MAX),
        ("hours a day", *hours_per_day, 1..=24),
        ("drives of a group", *drives.start(), 1..=DRIVES_MAX),
        ("drives of a group", *drives.end(), *drives.start()..=DRIVES_MAX),
    ];
    for (what, count, limit) in limits {
        if !limit.contains(&count) {
            let (least, most) = (limit.start(), limit.end());
            return Err(AppError::usage(format!("{count} {what}: expected {least} to {most}")));
        }
    }
    let shares = [
        ("deviation of the noise", *noise.start(), 0.0..=SPREAD_MAX),
        ("deviation of the noise", *noise.end(), *noise.start()..=SPREAD_MAX),
        ("lasting difference", *lasting, 0.0..=SPREAD_MAX),
        ("share of missing samples", *missing, 0.0..=0.99),
        ("share of slow drives", episodes.map_or(0.0, |it| it.share), 0.0..=1.0),
        ("ratio of slow drives", episodes.map_or(1.0, |it| it.ratio), 0.01..=10_000.0),
    ];
    for (what, value, limit) in shares {
        if !limit.contains(&value) {
            let (least, most) = (limit.start(), limit.end());
            return Err(AppError::usage(format!("a {what} of {value}: it is {least} to {most}")));
        }
    }
    Ok(())
}
