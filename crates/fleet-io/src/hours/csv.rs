//! Hours tables as CSV.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use levelhead_fleet::HoursTable;

use super::ROWS;
use super::columns::Names;
use crate::ReadError;
use crate::lines::{Lines, unquoted};

/// The columns that must be there, in any order.
const NEEDED: [&str; 6] = ["hour", "raid", "drive", "latency_us", "ios", "bytes"];
/// Those that may be.
const KNOWN: [&str; 2] = ["age_hours", "model"];
/// The most columns of a file, and the most groups or drives with names.
const COLUMNS_MAX: usize = 256;
const IDS_MAX: usize = 1 << 24;

/// Whether groups and drives have numbers or names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Whole numbers: a name is an error.
    Numbers,
    /// Any text: each name gets the next number when it comes first. A drive's name counts within its group.
    Texts,
}

/// A drive that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its number.
    pub drive: i32,
    /// Its group's number.
    pub raid: i32,
    /// Its group's name.
    pub raid_name: String,
    /// Its name.
    pub drive_name: String,
}

/// A drive, by number.
struct Numbers {
    raid: i32,
    drive: i32,
}

/// The rows of a CSV file, packed by zstd or not.
pub struct CsvRows {
    path: PathBuf,
    lines: Lines,
    places: Places,
    ids: Ids,
    raids: HashMap<String, i32>,
    drives: HashMap<String, i32>,
    named: Vec<Named>,
    names: Names,
    is_done: bool,
}

/// The field of each column.
struct Places {
    count: usize,
    needed: [usize; NEEDED.len()],
    age_hours: Option<usize>,
    model: Option<usize>,
}

impl CsvRows {
    /// Opens a file and reads its first line, which names the columns.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, and a column that is missing or there twice.
    pub fn open(path: &Path, ids: Ids) -> Result<Self, ReadError> {
        let mut lines = Lines::open(path)?;
        let header = lines.next()?.ok_or_else(|| ReadError::of(path, "the file is empty"))?;
        let places = places_of(header).map_err(|why| ReadError::at(path, 1, why))?;
        Ok(Self {
            path: path.to_owned(),
            lines,
            places,
            ids,
            raids: HashMap::new(),
            drives: HashMap::new(),
            named: Vec::new(),
            names: Names::default(),
            is_done: false,
        })
    }

    /// Reads the next rows into `table`, in place of those that were there; false at the end.
    ///
    /// # Errors
    ///
    /// A line that does not fit the first one, or has a value that is no number.
    pub fn next(&mut self, table: &mut HoursTable) -> Result<bool, ReadError> {
        table.clear();
        while table.len() < ROWS && !self.is_done {
            let Some(line) = self.lines.next()? else {
                self.is_done = true;
                break;
            };
            if line.is_empty() {
                continue;
            }
            let line = line.to_owned();
            let added = self.add(&line, table);
            added.map_err(|why| ReadError::at(&self.path, self.lines.number(), why))?;
        }
        table.models.clone_from(&self.names.names);
        Ok(!table.is_empty())
    }

    /// The drives that have been named so far, in the order of their numbers.
    pub fn named(&self) -> &[Named] {
        &self.named
    }

    fn add(&mut self, line: &str, table: &mut HoursTable) -> Result<(), String> {
        let fields: Vec<&str> = line.split(',').map(unquoted).collect();
        let places = &self.places;
        if fields.len() != places.count {
            return Err(format!("{} fields instead of {}", fields.len(), places.count));
        }
        let [hour, raid, drive, latency_us, ios, bytes] = places.needed.map(|place| fields[place]);
        let age_hours = match places.age_hours.map(|place| fields[place]) {
            Some(text) if !is_none(text) => Some(whole("age_hours", text)?),
            Some(_) => Some(-1),
            None => None,
        };
        let model = match places.model.map(|place| fields[place]) {
            Some(text) => Some(self.names.place_of(if is_none(text) { "" } else { text })?),
            None => None,
        };
        let (hour, ios) = (whole("hour", hour)?, whole("ios", ios)?);
        let (latency_us, bytes) = (real("latency_us", latency_us)?, real("bytes", bytes)?);
        let Numbers { raid, drive } = match self.ids {
            Ids::Numbers => Numbers { raid: whole("raid", raid)?, drive: whole("drive", drive)? },
            Ids::Texts => self.numbers_of(raid, drive)?,
        };
        table.hour.push(hour);
        table.raid.push(raid);
        table.drive.push(drive);
        table.latency_us.push(latency_us);
        table.ios.push(ios);
        table.bytes.push(bytes);
        table.age_hours.extend(age_hours);
        table.model.extend(model);
        Ok(())
    }

    fn numbers_of(&mut self, raid_name: &str, drive_name: &str) -> Result<Numbers, String> {
        let next = self.raids.len() as i32;
        let raid = *self.raids.entry(raid_name.to_owned()).or_insert(next);
        let key = format!("{raid},{drive_name}");
        if let Some(&drive) = self.drives.get(&key) {
            return Ok(Numbers { raid, drive });
        }
        if self.named.len() == IDS_MAX {
            return Err(format!("a file has at most {IDS_MAX} drives"));
        }
        let drive = self.named.len() as i32;
        self.drives.insert(key, drive);
        let (raid_name, drive_name) = (raid_name.to_owned(), drive_name.to_owned());
        self.named.push(Named { drive, raid, raid_name, drive_name });
        Ok(Numbers { raid, drive })
    }
}

fn places_of(header: &str) -> Result<Places, String> {
    let names: Vec<&str> = header.split(',').map(unquoted).collect();
    if names.len() > COLUMNS_MAX {
        return Err(format!("{} columns, at most {COLUMNS_MAX} are read", names.len()));
    }
    let mut needed = [0; NEEDED.len()];
    let place = |name: &str| -> Result<Option<usize>, String> {
        let mut places = (0..names.len()).filter(|&place| names[place] == name);
        match (places.next(), places.next()) {
            (place, None) => Ok(place),
            (_, Some(_)) => Err(format!("column `{name}` is there twice")),
        }
    };
    for (slot, name) in needed.iter_mut().zip(NEEDED) {
        *slot = place(name)?.ok_or_else(|| format!("missing column `{name}`"))?;
    }
    let [age_hours, model] = KNOWN.map(place);
    Ok(Places { count: names.len(), needed, age_hours: age_hours?, model: model? })
}

fn is_none(text: &str) -> bool {
    text.is_empty() || text == "NA"
}

fn whole(name: &str, text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| format!("{name} '{text}' is not a whole number of 32 bits"))
}

/// A number; none for `NA` and for nothing.
fn real(name: &str, text: &str) -> Result<f32, String> {
    if is_none(text) {
        return Ok(f32::NAN);
    }
    text.parse().map_err(|_| format!("{name} '{text}' is neither a number nor NA"))
}
