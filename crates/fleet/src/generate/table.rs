//! What is asked for, and the rows that come.

use crate::Hours;

/// The kind of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Magnetic disks.
    Disk,
    /// Solid-state drives.
    Ssd,
}

/// What is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The kind of drives.
    pub kind: Kind,
    /// How many groups; at most a million.
    pub group_count: usize,
    /// How many hours; a tenth of each group's is missing.
    pub hour_count: usize,
    /// What chance is drawn from.
    pub seed: u64,
}

/// Rows, as columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HoursTable {
    /// Hours since any moment.
    pub hour: Vec<i32>,
    /// The group.
    pub raid: Vec<i32>,
    /// The drive.
    pub drive: Vec<i32>,
    /// Mean latency, in microseconds.
    pub latency_us: Vec<f32>,
    /// How many requests.
    pub ios: Vec<i32>,
    /// Their mean size, in bytes.
    pub bytes: Vec<f32>,
    /// The drive's age, in hours; empty if not known.
    pub age_hours: Vec<i32>,
}

impl HoursTable {
    /// The columns as slices.
    pub fn hours(&self) -> Hours<'_> {
        Hours {
            hour: &self.hour,
            raid: &self.raid,
            drive: &self.drive,
            latency_us: &self.latency_us,
            ios: &self.ios,
            bytes: &self.bytes,
            age_hours: &self.age_hours,
        }
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        for column in
            [&mut self.hour, &mut self.raid, &mut self.drive, &mut self.ios, &mut self.age_hours]
        {
            column.clear();
        }
        self.latency_us.clear();
        self.bytes.clear();
    }
}
