//! `levelhead fleet generate`: a made-up fleet.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use levelhead_fleet::HoursTable;
use levelhead_fleet::generate::{HoursGenerator, Shape};
use levelhead_fleet_io::hours::{CSV_HEADER, HoursWriter, ROWS_WRITTEN, write_csv};
use levelhead_fleet_io::{begin_events, write_events};

use crate::{AppError, Progress, files};

/// The most groups, and the most hours.
const GROUPS_MAX: usize = 1_000_000;
/// Eleven years.
const HOURS_MAX: usize = 100_000;

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
            return Err(AppError::usage(format!("{count} {what}: there are 1 to {most}")));
        }
    }
    let task = progress.begin("hours", hour_count as u64);
    let form = form_of(&ask.out)?;
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
    Parquet(HoursWriter<&'a mut (dyn Write + Send)>),
    Csv(&'a mut (dyn Write + Send)),
}

impl<'a> Writer<'a> {
    fn begin(form: Form, out: &'a mut (dyn Write + Send)) -> io::Result<Self> {
        match form {
            Form::Parquet => Ok(Self::Parquet(HoursWriter::begin(out)?)),
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
