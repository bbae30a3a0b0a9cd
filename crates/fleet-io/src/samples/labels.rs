//! Labels of drives known to be slow: a CSV whose first line names its columns, among them `host` (or `group`) and `disk_id` (or
//! `drive`). A column `cluster`, if there is one, tells which cluster's drives are meant.

use std::path::Path;

use levelhead_fleet::detect::Label;

use crate::ReadError;
use crate::lines::{Lines, all_fields};

/// The labels of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    rows: Vec<Labelled>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Labelled {
    cluster: Option<String>,
    label: Label,
}

impl Labels {
    /// Reads a file of labels.
    ///
    /// Fails for what cannot be read, and for a file without the columns.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let mut lines = Lines::open(path)?;
        let header = lines.next()?.map(all_fields).unwrap_or_default();
        let place = |name: &str| header.iter().position(|column| column == name);
        let needed = |names: [&str; 2]| {
            let why = || format!("missing column {} and no {}", names[0], names[1]);
            let found = names.into_iter().find_map(place);
            found.ok_or_else(|| ReadError::at(path, 1, why()))
        };
        let (group, drive) = (needed(["host", "group"])?, needed(["disk_id", "drive"])?);
        let cluster = place("cluster");
        let mut rows = Vec::new();
        while let Some(line) = lines.next()? {
            if line.is_empty() {
                continue;
            }
            let fields = all_fields(line);
            if fields.len() != header.len() {
                let why = format!("{} fields instead of {}", fields.len(), header.len());
                return Err(ReadError::at(path, lines.number(), why));
            }
            let label = Label { group: fields[group].clone(), drive: fields[drive].clone() };
            rows.push(Labelled { cluster: cluster.map(|place| fields[place].clone()), label });
        }
        Ok(Self { rows })
    }

    /// The labels of a cluster; where none names it, all.
    pub fn of_cluster(&self, cluster: &str) -> Vec<Label> {
        let is_of = |row: &&Labelled| row.cluster.as_deref() == Some(cluster);
        let is_named = self.rows.iter().any(|row| is_of(&row));
        let meant = self.rows.iter().filter(|row| !is_named || is_of(row));
        meant.map(|row| row.label.clone()).collect()
    }
}
