//! Labels of drives known to be slow: a CSV whose first line names its columns, among them `host` (or `group`) and `disk_id` (or
//! `drive`). A column `cluster`, if there is one, tells which cluster's drives are meant.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use levelhead_fleet::detect::Label;

use super::csv::Lines;
use crate::ReadError;

/// The labels of a file: of all clusters, or of the one named; where the file has no column `cluster`, all of them.
///
/// Fails for what cannot be read, and for a file without the columns.
pub fn read_labels(path: &Path, cluster: Option<&str>) -> Result<Vec<Label>, ReadError> {
    let file = File::open(path).map_err(|error| ReadError::of(path, error))?;
    let mut lines = Lines::new(path, Box::new(BufReader::new(file)));
    let split = |line: &str| -> Vec<String> {
        line.split(',').map(|field| field.trim().trim_matches('"').to_owned()).collect()
    };
    let header = lines.next()?.map(split).unwrap_or_default();
    let place = |names: [&str; 2]| header.iter().position(|name| names.contains(&name.as_str()));
    let needed = |names: [&str; 2]| {
        let why = || format!("there is no column {} and no {}", names[0], names[1]);
        place(names).ok_or_else(|| ReadError::at(path, 1, why()))
    };
    let (group, drive) = (needed(["host", "group"])?, needed(["disk_id", "drive"])?);
    let of_cluster = place(["cluster", "cluster"]);
    let mut labels = Vec::new();
    while let Some(line) = lines.next()? {
        if line.is_empty() {
            continue;
        }
        let fields = split(line);
        if fields.len() != header.len() {
            let why = format!("{} fields instead of {}", fields.len(), header.len());
            return Err(ReadError::at(path, lines.number(), why));
        }
        let is_meant = match (of_cluster, cluster) {
            (Some(place), Some(cluster)) => fields[place] == cluster,
            _ => true,
        };
        if is_meant {
            labels.push(Label { group: fields[group].clone(), drive: fields[drive].clone() });
        }
    }
    Ok(labels)
}
