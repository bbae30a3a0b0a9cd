//! Samples of a group, in any order of time, become its windows.

use std::collections::{BTreeMap, btree_map::Entry};
use std::fmt;

use super::{Reading, WINDOW};

/// What was seen of one member at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When, in unix seconds; for a mean over some time, its beginning.
    pub at: i64,
    /// Mean latency, in microseconds: one that is not above 0, or not finite, leaves the sample out.
    pub latency_us: f64,
    /// Load, in requests or bytes a second: one that is below 0, or not finite, leaves the sample out.
    pub load: f64,
    /// How many samples of the original rate this one is the mean of.
    pub count: u32,
}

/// Five minutes of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its beginning, in unix seconds.
    pub at: i64,
    /// A reading for each member.
    pub members: Vec<Option<Reading>>,
}

/// All windows of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The group's name.
    pub group: String,
    /// The members' names, in the order of the readings.
    pub drives: Vec<String>,
    /// The windows, in the order of time; one of which nothing came is left out.
    pub windows: Vec<Window>,
}

/// Why a sample was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatherError {
    /// The group has [`Gather::DRIVES_MAX`] members already.
    Drives,
    /// The group has [`Gather::CELLS_MAX`] members times windows already.
    Cells,
    /// The time is outside of [`Gather::TIMES`].
    Time(i64),
}

impl fmt::Display for GatherError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drives => write!(out, "a group has at most {} drives", Gather::DRIVES_MAX),
            Self::Cells => {
                write!(out, "a group has at most {} drives times windows", Gather::CELLS_MAX)
            }
            Self::Time(at) => {
                let (first, last) = Gather::TIMES;
                write!(out, "the time {at} is not from {first} to {last}")
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    latency_sum: f64,
    load_sum: f64,
    count: u64,
}

/// A group's samples so far.
#[derive(Clone, Debug, Default)]
pub struct Gather {
    numbers: BTreeMap<String, usize>,
    /// By the window's number since 1970, then by drive; a drive that is not there yet ends the row.
    cells: BTreeMap<i64, Vec<Cell>>,
}

impl Gather {
    /// The most members of a group.
    pub const DRIVES_MAX: usize = 1024;
    /// The most members times windows of a group: 24 drives for 8 years.
    pub const CELLS_MAX: usize = 20_000_000;
    /// The first and the last time that is taken, in unix seconds.
    pub const TIMES: (i64, i64) = (0, 1 << 36);

    /// Members times windows so far.
    pub fn cell_count(&self) -> usize {
        self.cells.len().saturating_mul(self.numbers.len())
    }

    /// Takes a sample. Of samples left out, see [`Sample`], the drive and the time are still known.
    ///
    /// Fails for one drive, one window or one time too many.
    pub fn add(&mut self, drive: &str, sample: &Sample) -> Result<(), GatherError> {
        let (first, last) = Self::TIMES;
        if !(first..=last).contains(&sample.at) {
            return Err(GatherError::Time(sample.at));
        }
        let idx = match self.numbers.get(drive) {
            Some(&idx) => idx,
            None if self.numbers.len() == Self::DRIVES_MAX => return Err(GatherError::Drives),
            None => {
                let idx = self.numbers.len();
                self.numbers.insert(drive.to_owned(), idx);
                idx
            }
        };
        if self.cell_count() >= Self::CELLS_MAX {
            return Err(GatherError::Cells);
        }
        let row = match self.cells.entry(sample.at.div_euclid(WINDOW)) {
            Entry::Vacant(vacant) => vacant.insert(Vec::new()),
            Entry::Occupied(row) => row.into_mut(),
        };
        let is_usable = sample.latency_us.is_finite()
            && sample.latency_us > 0.0
            && sample.load.is_finite()
            && sample.load >= 0.0;
        if is_usable && sample.count > 0 {
            if row.len() <= idx {
                row.resize(idx + 1, Cell::default());
            }
            let cell = &mut row[idx];
            cell.latency_sum += sample.latency_us * f64::from(sample.count);
            cell.load_sum += sample.load * f64::from(sample.count);
            cell.count += u64::from(sample.count);
        }
        Ok(())
    }

    /// What orders names, so that `disk2` is before `disk10`.
    pub fn order_of(name: &str) -> impl Ord + use<> {
        (natural_key(name), name.to_owned())
    }

    /// The windows: drives in the order of their names, numbers in them by value.
    pub fn finish(self, group: &str) -> Recording {
        let mut drives: Vec<(String, usize)> = self.numbers.into_iter().collect();
        drives.sort_by_cached_key(|drive| Self::order_of(&drive.0));
        let order: Vec<usize> = drives.iter().map(|drive| drive.1).collect();
        let windows = self
            .cells
            .into_iter()
            .map(|(number, row)| Window {
                at: number * WINDOW,
                members: order.iter().map(|&idx| row.get(idx).and_then(Cell::reading)).collect(),
            })
            .filter(|window| window.members.iter().any(Option::is_some))
            .collect();
        Recording {
            group: group.to_owned(),
            drives: drives.into_iter().map(|drive| drive.0).collect(),
            windows,
        }
    }
}

impl Cell {
    fn reading(&self) -> Option<Reading> {
        let count = self.count as f64;
        let reading = Reading { latency_us: self.latency_sum / count, load: self.load_sum / count };
        // A sum of large values may have left the numbers.
        let is_usable = self.count > 0
            && reading.latency_us.is_finite()
            && reading.latency_us > 0.0
            && reading.load.is_finite();
        is_usable.then_some(reading)
    }
}

/// A name as texts and numbers in turn, so that `disk2` is before `disk10`.
fn natural_key(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0_u64)];
    let mut is_number = false;
    for letter in name.chars() {
        let last = parts.last_mut().expect("it begins with one");
        if let Some(digit) = letter.to_digit(10) {
            is_number = true;
            last.1 = last.1.saturating_mul(10).saturating_add(u64::from(digit));
        } else if is_number {
            is_number = false;
            parts.push((letter.to_string(), 0));
        } else {
            last.0.push(letter);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: i64, latency_us: f64) -> Sample {
        Sample { at, latency_us, load: 10.0, count: 1 }
    }

    #[test]
    fn samples_in_any_order_become_the_same_windows() {
        let samples =
            [("disk10", 310, 4.0), ("disk2", 10, 1.0), ("disk2", 299, 3.0), ("disk2", 300, 5.0)];
        let gathered = |order: &[usize]| {
            let mut gather = Gather::default();
            for &idx in order {
                let (drive, at, latency) = samples[idx];
                gather.add(drive, &sample(at, latency)).unwrap();
            }
            gather.finish("g")
        };
        let recording = gathered(&[0, 1, 2, 3]);
        assert_eq!(recording, gathered(&[3, 2, 1, 0]));
        assert_eq!(recording.drives, ["disk2", "disk10"]);
        assert_eq!(recording.windows.len(), 2);
        assert_eq!(recording.windows[0].at, 0);
        let reading = |latency_us| Some(Reading { latency_us, load: 10.0 });
        assert_eq!(recording.windows[0].members, [reading(2.0), None]);
        assert_eq!(recording.windows[1].members, [reading(5.0), reading(4.0)]);
    }

    #[test]
    fn samples_of_no_use_leave_the_drive_known() {
        let mut gather = Gather::default();
        for latency in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            gather.add("b", &sample(0, latency)).unwrap();
        }
        gather.add("a", &sample(0, f64::MAX)).unwrap();
        gather.add("a", &sample(0, f64::MAX)).unwrap();
        let recording = gather.finish("g");
        assert_eq!(recording.drives, ["a", "b"]);
        assert!(recording.windows.is_empty());
    }

    #[test]
    fn bounds_hold() {
        let mut gather = Gather::default();
        assert_eq!(gather.add("a", &sample(-1, 1.0)), Err(GatherError::Time(-1)));
        for drive in 0..Gather::DRIVES_MAX {
            gather.add(&drive.to_string(), &sample(0, 1.0)).unwrap();
        }
        assert_eq!(gather.add("a", &sample(0, 1.0)), Err(GatherError::Drives));
    }
}
