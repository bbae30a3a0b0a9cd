//! Samples as lines: PERSEUS's original files, and what `watch` records.
//!
//! ```text
//!   "ts","disk_id","throughput","latency"      PERSEUS: unix s, text, bytes/s, us; the group is the file's name
//!   ts,group,drive,latency_us,load             watch: unix s, text, text, us, bytes/s
//! ```
//!
//! Lines stand in any order. A value that is `NA`, or empty, leaves its line out. Fields may stand in double quotes; a comma, a
//! quote or the end of a line within a field is not known.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use levelhead_fleet::RECORD_HEADER as HEADER;
use levelhead_fleet::detect::{Gather, Reading, Recording, Sample, Window};

use crate::ReadError;
use crate::lines::{Lines, fields};

/// The first line of PERSEUS's files, without quotes.
const PERSEUS: &str = "ts,disk_id,throughput,latency";

/// The most groups of a file.
pub(super) const GROUPS_MAX: usize = 100_000;

/// Adds a file's samples to their groups; PERSEUS's have no name of their own and are those of `group`.
pub(super) fn read(
    path: &Path,
    group: &str,
    groups: &mut BTreeMap<String, Gather>,
) -> Result<(), ReadError> {
    let mut lines = Lines::open(path)?;
    let header = lines.next()?.map(|line| line.replace('"', ""));
    let form = match header.as_deref() {
        Some(PERSEUS) => Form::Perseus,
        Some(HEADER) => Form::Watch,
        Some(_) => {
            let why = format!("the first line is neither '{PERSEUS}' nor '{HEADER}'");
            return Err(ReadError::at(path, 1, why));
        }
        None => return Err(ReadError::of(path, "the file is empty")),
    };
    while let Some(line) = lines.next()? {
        if line.is_empty() {
            continue;
        }
        let taken = match form {
            Form::Perseus => perseus_row(line, group),
            Form::Watch => watch_row(line),
        };
        let added = taken.and_then(|row| {
            if !groups.contains_key(row.group) {
                if groups.len() == GROUPS_MAX {
                    return Err(format!("a file has at most {GROUPS_MAX} groups"));
                }
                groups.insert(row.group.to_owned(), Gather::default());
            }
            let gather = groups.get_mut(row.group).expect("it has just been put there");
            gather.add(row.drive, &row.sample).map_err(|why| why.to_string())
        });
        added.map_err(|why| ReadError::at(path, lines.number(), why))?;
    }
    Ok(())
}

/// Writes a group's windows as lines, without the first one.
///
/// # Errors
///
/// `out` does not take them.
pub fn write_samples(out: &mut dyn Write, recording: &Recording) -> std::io::Result<()> {
    let Recording { group, drives, windows } = recording;
    for Window { at, members } in windows {
        for (drive, reading) in drives.iter().zip(members) {
            let Some(Reading { latency_us, load }) = reading else { continue };
            writeln!(out, "{at},{group},{drive},{latency_us},{load}")?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Form {
    Perseus,
    Watch,
}

struct Row<'a> {
    group: &'a str,
    drive: &'a str,
    sample: Sample,
}

fn perseus_row<'a>(line: &'a str, group: &'a str) -> Result<Row<'a>, String> {
    let [at, drive, load, latency] = fields(line)?;
    let (latency_us, load) = (value("latency", latency)?, value("throughput", load)?);
    Ok(Row { group, drive, sample: Sample { at: time(at)?, latency_us, load, count: 1 } })
}

fn watch_row(line: &str) -> Result<Row<'_>, String> {
    let [at, group, drive, latency, load] = fields(line)?;
    let (latency_us, load) = (value("latency_us", latency)?, value("load", load)?);
    Ok(Row { group, drive, sample: Sample { at: time(at)?, latency_us, load, count: 1 } })
}

fn time(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("ts '{text}' is not a whole number of seconds"))
}

/// A value; not a number for `NA` and for nothing, which leaves the sample out.
fn value(name: &str, text: &str) -> Result<f64, String> {
    if text.is_empty() || text == "NA" {
        return Ok(f64::NAN);
    }
    text.parse().map_err(|_| format!("{name} '{text}' is neither a number nor NA"))
}
