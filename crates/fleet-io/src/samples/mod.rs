//! Samples of groups, from files to windows of five minutes.
//!
//! ```text
//!   cluster_A.parquet          PERSEUS, compact: a row a drive and minute    \
//!   cluster_A/host_1.csv.zst   PERSEUS, as published: a row a drive and 15 s  >--> a recording a group
//!   samples.csv                what `watch` records                          /
//! ```
//!
//! The kind of a file is known from its name and its first line. All windows of a file are held at once: 24 bytes for each drive and
//! window, whatever the count of samples in them. No content of a file makes a reader panic.

mod compact;
mod csv;
mod labels;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use levelhead_fleet::detect::{Gather, Recording};

use crate::ReadError;

pub use csv::HEADER;
pub use labels::Labels;

/// The groups of a file, or of all files of a folder that hold samples, ordered by name, numbers in names by value.
///
/// A file `.parquet` is PERSEUS's compact form. Of a `.csv`, or a `.csv.zst`, the first line tells what it is: PERSEUS's
/// original, whose group is the file's name, or samples that `watch` recorded.
///
/// Fails if there is nothing, for what cannot be read, and for two files with the same group.
pub fn read_recordings(path: &Path) -> Result<Vec<Recording>, ReadError> {
    let files = if path.is_dir() { files_of(path)? } else { vec![path.to_owned()] };
    let mut recordings: Vec<Recording> = Vec::new();
    for file in &files {
        let found = if kind_of(file) == Kind::Parquet {
            compact::read(file)?
        } else {
            csv::read(file, kind_of(file) == Kind::Packed)?
        };
        for recording in found {
            if recordings.iter().any(|other| other.group == recording.group) {
                let why = format!("group {} is in another file as well", recording.group);
                return Err(ReadError::of(file, why));
            }
            recordings.push(recording);
        }
    }
    recordings.sort_by_cached_key(|recording| Gather::order_of(&recording.group));
    Ok(recordings)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Parquet,
    Packed,
    Plain,
}

fn kind_of(path: &Path) -> Kind {
    match path.extension().and_then(OsStr::to_str) {
        Some("parquet") => Kind::Parquet,
        Some("zst") => Kind::Packed,
        _ => Kind::Plain,
    }
}

/// The files of a folder that hold samples: named `*.csv` or `*.csv.zst`, and not in folders below.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let wrong = |error: std::io::Error| ReadError::of(folder, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if (name.ends_with(".csv") || name.ends_with(".csv.zst")) && path.is_file() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(ReadError::of(folder, "there is no .csv and no .csv.zst in this folder"));
    }
    files.sort();
    Ok(files)
}

/// The group of a PERSEUS file: its name without endings.
fn group_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(".zst").trim_end_matches(".csv").to_owned()
}
