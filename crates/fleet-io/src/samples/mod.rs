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

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use levelhead_fleet::detect::{Gather, Recording};

use crate::ReadError;
use crate::kind::is_parquet;
use crate::lines::Lines;

pub use csv::write_samples;
pub use labels::Labels;
pub use levelhead_fleet::RECORD_HEADER as HEADER;

/// The groups of a file, or of all files of a folder that hold samples, ordered by name, numbers in names by value.
///
/// A file `.parquet` is PERSEUS's compact form. Of a `.csv`, or a `.csv.zst`, the first line tells what it is: PERSEUS's
/// original, whose group is the file's name, or samples that `watch` recorded. Files of PERSEUS in a folder below are one group,
/// which has the folder's name: a file a day.
///
/// Fails if there is nothing, for what cannot be read, and for two files with the same group.
pub fn read_recordings(path: &Path) -> Result<Vec<Recording>, ReadError> {
    let mut recordings: Vec<Recording> = Vec::new();
    for part in parts_of(path)? {
        let found = if is_parquet(&part.files[0]) {
            compact::read(&part.files[0])?
        } else {
            let mut groups = BTreeMap::new();
            for file in &part.files {
                csv::read(file, &part.group, &mut groups)?;
            }
            groups.into_iter().map(|(group, gather)| gather.finish(&group)).collect()
        };
        for recording in found {
            if recordings.iter().any(|other| other.group == recording.group) {
                let why = format!("group {} is in another file as well", recording.group);
                return Err(ReadError::of(&part.files[0], why));
            }
            recordings.push(recording);
        }
    }
    recordings.sort_by_cached_key(|recording| Gather::order_of(&recording.group));
    Ok(recordings)
}

/// What a file's loads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Requests a second: what `watch` records.
    Requests,
    /// Bytes a second: PERSEUS's.
    Bytes,
}

/// What the loads of a file are, or of the files of a folder.
///
/// Fails for what cannot be read.
pub fn load_of(path: &Path) -> Result<Load, ReadError> {
    let parts = parts_of(path)?;
    let first = &parts[0].files[0];
    if is_parquet(first) {
        return Ok(Load::Bytes);
    }
    let header = Lines::open(first)?.next()?.map(|line| line.replace('"', ""));
    Ok(if header.as_deref() == Some(HEADER) { Load::Requests } else { Load::Bytes })
}

/// Files that are read together, at least one, and the group that PERSEUS's are of.
struct Part {
    group: String,
    files: Vec<PathBuf>,
}

/// A file, or what a folder has: files of samples, and folders of those.
fn parts_of(path: &Path) -> Result<Vec<Part>, ReadError> {
    if !path.is_dir() {
        return Ok(vec![Part { group: group_of(path), files: vec![path.to_owned()] }]);
    }
    let entries = entries_of(path)?;
    let files = entries.iter().filter(|entry| holds_samples(entry));
    let mut parts: Vec<Part> =
        files.map(|file| Part { group: group_of(file), files: vec![file.clone()] }).collect();
    for folder in entries.iter().filter(|entry| entry.is_dir()) {
        let mut files = entries_of(folder)?;
        files.retain(|file| holds_samples(file));
        if !files.is_empty() {
            parts.push(Part { group: group_of(folder), files });
        }
    }
    if parts.is_empty() {
        return Err(ReadError::of(path, "this folder has no .csv and no .csv.zst"));
    }
    Ok(parts)
}

/// What is in a folder, in the order of names.
fn entries_of(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let wrong = |error: std::io::Error| ReadError::of(folder, error);
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        entries.push(entry.map_err(wrong)?.path());
    }
    entries.sort();
    Ok(entries)
}

fn holds_samples(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    (name.ends_with(".csv") || name.ends_with(".csv.zst")) && path.is_file()
}

/// The group of a PERSEUS file: its name without endings.
fn group_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(".zst").trim_end_matches(".csv").to_owned()
}
