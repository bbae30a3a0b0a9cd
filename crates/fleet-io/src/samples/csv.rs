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
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use levelhead_fleet::detect::{Gather, Sample};

use crate::ReadError;

/// The first line of samples as `watch` records them: a line a drive and window of five minutes, the mean latency in microseconds, the load in
/// bytes a second.
pub const HEADER: &str = "ts,group,drive,latency_us,load";

/// The first line of PERSEUS's files, without quotes.
const PERSEUS: &str = "ts,disk_id,throughput,latency";

/// The longest line, in bytes.
const LINE_MAX: usize = 1024;

/// The most groups of a file.
const GROUPS_MAX: usize = 100_000;

/// Adds a file's samples to their groups; PERSEUS's have no name of their own and are those of `group`.
pub(super) fn read(
    path: &Path,
    group: &str,
    groups: &mut BTreeMap<String, Gather>,
) -> Result<(), ReadError> {
    let file = File::open(path).map_err(|error| ReadError::of(path, error))?;
    let is_packed = path.extension().is_some_and(|ending| ending == "zst");
    let mut lines = if is_packed {
        let unpacked = zstd::Decoder::new(file).map_err(|error| ReadError::of(path, error))?;
        Lines::new(path, Box::new(BufReader::new(unpacked)))
    } else {
        Lines::new(path, Box::new(BufReader::new(file)))
    };
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
        added.map_err(|why| ReadError::at(path, lines.number, why))?;
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

/// The fields of a line, without their quotes.
pub(super) fn fields<const COUNT: usize>(line: &str) -> Result<[&str; COUNT], String> {
    let mut fields = [""; COUNT];
    let mut count = 0;
    for field in line.split(',') {
        if count < COUNT {
            let field = field.trim();
            let inner = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            fields[count] = inner.unwrap_or(field);
        }
        count += 1;
    }
    if count == COUNT { Ok(fields) } else { Err(format!("{count} fields instead of {COUNT}")) }
}

fn time(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("ts '{text}' is no whole number of seconds"))
}

/// A value; not a number for `NA` and for nothing, which leaves the sample out.
fn value(name: &str, text: &str) -> Result<f64, String> {
    if text.is_empty() || text == "NA" {
        return Ok(f64::NAN);
    }
    text.parse().map_err(|_| format!("{name} '{text}' is no number and not NA"))
}

/// The lines of a file, one at a time, each of bounded length.
pub(super) struct Lines<'a> {
    path: &'a Path,
    input: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(path: &'a Path, input: Box<dyn BufRead>) -> Self {
        Self { path, input, line: Vec::new(), number: 0 }
    }

    /// The number of the line that came last, the first of which is 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Result<Option<&str>, ReadError> {
        self.line.clear();
        self.number += 1;
        let read = self
            .input
            .by_ref()
            .take(LINE_MAX as u64 + 1)
            .read_until(b'\n', &mut self.line)
            .map_err(|error| ReadError::at(self.path, self.number, error))?;
        if read == 0 {
            return Ok(None);
        }
        if read > LINE_MAX {
            let why = format!("the line is longer than {LINE_MAX} bytes");
            return Err(ReadError::at(self.path, self.number, why));
        }
        let line = std::str::from_utf8(&self.line)
            .map_err(|_| ReadError::at(self.path, self.number, "the line is no text"))?;
        Ok(Some(line.trim_end_matches(['\n', '\r'])))
    }
}
