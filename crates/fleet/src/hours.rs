//! The hours table: what each drive of a fleet did in each hour, in columns; `docs/formats/hours.md` has it as files.

/// The place of a model that is not known.
pub const MODEL_UNKNOWN: u16 = u16::MAX;

/// A run of rows of the hours table, as slices of equal lengths, in the order of (`hour`, `raid`): the drives of a group in an hour
/// follow one another.
#[derive(Clone, Copy, Debug)]
pub struct Hours<'a> {
    /// Hours since any moment.
    pub hour: &'a [i32],
    /// The group.
    pub raid: &'a [i32],
    /// The drive, by a number that no other drive of the fleet has.
    pub drive: &'a [i32],
    /// Mean latency, in microseconds.
    pub latency_us: &'a [f32],
    /// How many requests.
    pub ios: &'a [i32],
    /// Their mean size, in bytes.
    pub bytes: &'a [f32],
    /// The drive's age in hours, where it is known: empty if it is of none.
    pub age_hours: &'a [i32],
    /// The drive's model, as a place in `models`, [`MODEL_UNKNOWN`] for none: empty if it is known of none.
    pub model: &'a [u16],
    /// The names of models.
    pub models: &'a [String],
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
    /// The drive's model, as a place in `models`, [`MODEL_UNKNOWN`] for none; empty if not known.
    pub model: Vec<u16>,
    /// The names of models.
    pub models: Vec<String>,
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
            model: &self.model,
            models: &self.models,
        }
    }

    /// Removes all rows; the names of models stay.
    pub fn clear(&mut self) {
        for column in
            [&mut self.hour, &mut self.raid, &mut self.drive, &mut self.ios, &mut self.age_hours]
        {
            column.clear();
        }
        self.latency_us.clear();
        self.bytes.clear();
        self.model.clear();
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.hour.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.hour.is_empty()
    }

    /// Keeps the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        for column in
            [&mut self.hour, &mut self.raid, &mut self.drive, &mut self.ios, &mut self.age_hours]
        {
            column.truncate(rows);
        }
        self.latency_us.truncate(rows);
        self.bytes.truncate(rows);
        self.model.truncate(rows);
    }

    /// Removes the first `rows` rows, of which there are at least this number.
    pub fn remove_first(&mut self, rows: usize) {
        for column in
            [&mut self.hour, &mut self.raid, &mut self.drive, &mut self.ios, &mut self.age_hours]
        {
            column.drain(..rows.min(column.len()));
        }
        self.latency_us.drain(..rows.min(self.latency_us.len()));
        self.bytes.drain(..rows.min(self.bytes.len()));
        self.model.drain(..rows.min(self.model.len()));
    }
}
