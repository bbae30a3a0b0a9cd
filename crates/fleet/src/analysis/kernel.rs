//! The pass: rows in the order of (hour, group, drive), a slice at a time, into a summary.

use std::collections::BTreeMap;
use std::fmt;

use levelhead_stats::median_of;

use super::drive::{Drive, Group, GroupHour};
use super::rules::{Rules, Scope};
use super::summary::{Summary, YEARS};
use crate::Hours;

/// Fewest usable drives of a group in an hour.
pub(crate) const PEERS_MIN: usize = 3;
/// From where on a drive is slow.
pub(crate) const SLOW: f64 = 2.0;
const MILD: f64 = 1.2;
const IMBALANCED: f64 = 2.0;
const HOURS_A_YEAR: i32 = 8766;

/// Rows out of order, or one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disorder {
    /// The hour of the row.
    pub hour: i32,
    /// Its group.
    pub raid: i32,
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hour, raid } = self;
        write!(
            f,
            "rows must rise by (hour, raid, drive): one of hour {hour}, group {raid} does not follow the row before it"
        )
    }
}

impl std::error::Error for Disorder {}

/// One pass. After an error it is of no further use.
pub struct Kernel {
    rules: Rules,
    summary: Summary,
    /// Rows of a group that may go on in the next slice.
    open: Rows,
    /// The last group that has been closed.
    closed: Option<(i32, i32)>,
    /// Where each group stands in the summary, in the order of appearance.
    places: BTreeMap<i32, usize>,
    /// Where the group after the last one stood an hour ago, most likely.
    guess: usize,
    /// Where each model stands in the summary, by its number in the rows.
    models: Vec<usize>,
    scratch: Scratch,
}

#[derive(Default)]
struct Rows {
    hour: Vec<i32>,
    raid: Vec<i32>,
    drive: Vec<i32>,
    latency_us: Vec<f32>,
    ios: Vec<i32>,
    bytes: Vec<f32>,
    age_hours: Vec<i32>,
    model: Vec<u16>,
}

/// The usable rows of the group at hand.
#[derive(Default)]
struct Scratch {
    rows: Vec<usize>,
    latencies: Vec<f32>,
    sorted: Vec<f32>,
    values: Vec<f64>,
}

impl Kernel {
    /// Before the first row.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            summary: Summary::new(rules),
            open: Rows::default(),
            closed: None,
            places: BTreeMap::new(),
            guess: 0,
            models: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// The next rows. A group may be cut between two slices. For slowdowns only, `bytes`, `age_hours` and `model` may be empty. Names of
    /// models may be added from slice to slice; those that are there keep their numbers.
    ///
    /// Panics if columns differ in length.
    pub fn handle(&mut self, hours: Hours<'_>) -> Result<(), Disorder> {
        let rows = hours.hour.len();
        for len in [hours.raid.len(), hours.drive.len(), hours.latency_us.len(), hours.ios.len()] {
            assert_eq!(len, rows, "columns have one length");
        }
        assert!(
            hours.bytes.len() == rows || self.rules.scope == Scope::Slowdown,
            "columns have one length"
        );
        assert!(
            hours.age_hours.is_empty() || hours.age_hours.len() == rows,
            "columns have one length"
        );
        assert!(hours.model.is_empty() || hours.model.len() == rows, "columns have one length");
        for name in hours.models.iter().skip(self.models.len()) {
            self.models.push(self.summary.place_of_model(name));
        }

        let mut from = 0;
        if let (Some(&hour), Some(&raid)) = (self.open.hour.last(), self.open.raid.last()) {
            from = group_end(&hours, 0, hour, raid);
            self.open.extend(&hours, 0, from);
            if from == rows {
                return Ok(());
            }
            self.close_open()?;
        }
        while from < rows {
            let to = group_end(&hours, from, hours.hour[from], hours.raid[from]);
            if to == rows {
                self.open.extend(&hours, from, to);
                break;
            }
            self.close(&part_of(&hours, from, to))?;
            from = to;
        }
        Ok(())
    }

    /// The summary of all rows.
    pub fn finish(mut self) -> Result<Summary, Disorder> {
        if !self.open.hour.is_empty() {
            self.close_open()?;
        }
        self.summary.groups.sort_unstable_by_key(|group| group.id);
        self.summary.models.retain(|model| model.slowdowns.total() > 0);
        self.summary.models.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(self.summary)
    }

    fn close_open(&mut self) -> Result<(), Disorder> {
        let open = std::mem::take(&mut self.open);
        let result = self.close(&open.hours());
        self.open = open;
        self.open.clear();
        result
    }

    /// Counts a whole group in an hour.
    fn close(&mut self, rows: &Hours<'_>) -> Result<(), Disorder> {
        let (hour, raid) = (rows.hour[0], rows.raid[0]);
        let rises = rows.drive.windows(2).all(|pair| pair[0] < pair[1]);
        if !rises || self.closed.is_some_and(|before| before >= (hour, raid)) {
            return Err(Disorder { hour, raid });
        }
        self.closed = Some((hour, raid));

        let mut scratch = std::mem::take(&mut self.scratch);
        self.take_usable(rows, &mut scratch);
        if scratch.rows.len() < PEERS_MIN {
            self.summary.counts.few_peers += scratch.rows.len() as u64;
        } else {
            let median = self.count_slowdowns(&mut scratch);
            if self.rules.scope == Scope::Everything {
                self.count_rest(rows, &mut scratch, median);
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    fn take_usable(&mut self, rows: &Hours<'_>, scratch: &mut Scratch) {
        scratch.rows.clear();
        scratch.latencies.clear();
        for (row, (&latency, &ios)) in rows.latency_us.iter().zip(rows.ios).enumerate() {
            if latency > 0.0 && latency < f32::INFINITY && ios >= self.rules.ios_min {
                scratch.rows.push(row);
                scratch.latencies.push(latency);
            } else if ios < self.rules.ios_min || latency == 0.0 {
                self.summary.counts.idle += 1;
            } else {
                self.summary.counts.without_value += 1;
            }
        }
    }

    /// Counts what latencies alone tell; returns their median.
    fn count_slowdowns(&mut self, scratch: &mut Scratch) -> f64 {
        sort_into(&mut scratch.sorted, &scratch.latencies);
        let (sorted, count) = (scratch.sorted.as_slice(), scratch.latencies.len());
        let median = (f64::from(sorted[(count - 1) / 2]) + f64::from(sorted[count / 2])) / 2.0;

        let summary = &mut self.summary;
        let (mut slow, mut mild) = (0, 0);
        for &latency in &scratch.latencies {
            let slowdown = f64::from(latency) / median;
            summary.slowdowns.count(slowdown);
            slow += u64::from(slowdown >= SLOW);
            mild += u64::from(slowdown >= MILD);
        }
        for (k, tail) in summary.tails.iter_mut().enumerate() {
            tail.count(f64::from(sorted[count - 1 - k]) / median);
        }
        let counts = &mut summary.counts;
        counts.drive_hours += count as u64;
        counts.slow_drive_hours += slow;
        counts.drive_hours_mild += mild;
        counts.raid_hours += 1;
        counts.tail_hours += u64::from(slow > 0);
        counts.raid_hours_mild += u64::from(mild > 0);
        median
    }

    fn count_rest(&mut self, rows: &Hours<'_>, scratch: &mut Scratch, median: f64) {
        let (hour, raid) = (rows.hour[0], rows.raid[0]);
        let rate_median = median_over(scratch, |row| f64::from(rows.ios[row]));
        let size_median = median_over(scratch, |row| size_of(rows, row));
        let mut ios = 0;
        let mut is_tail = false;
        let place = self.place_of(raid, hour, scratch.rows.len());
        let mut at = 0;
        for (&row, &latency) in scratch.rows.iter().zip(&scratch.latencies) {
            let slowdown = f64::from(latency) / median;
            let is_slow = slowdown >= SLOW;
            is_tail |= is_slow;
            ios += u64::from(rows.ios[row].unsigned_abs());

            let counts = &mut self.summary.counts;
            let rate = rate_median > 0.0 && f64::from(rows.ios[row]) >= IMBALANCED * rate_median;
            let size = size_median > 0.0 && size_of(rows, row) >= IMBALANCED * size_median;
            counts.rate_imbalanced += u64::from(rate);
            counts.size_imbalanced += u64::from(size);
            counts.slow_rate_imbalanced += u64::from(rate && is_slow);
            counts.slow_size_imbalanced += u64::from(size && is_slow);
            if let Some(&age) = rows.age_hours.get(row)
                && age >= 0
            {
                self.summary.by_age[((age / HOURS_A_YEAR) as usize).min(YEARS - 1)].count(slowdown);
            }
            if let Some(&model) = rows.model.get(row)
                && let Some(&place) = self.models.get(usize::from(model))
            {
                self.summary.models[place].slowdowns.count(slowdown);
            }

            let now = Drive::of_hour(rows.drive[row], hour, slowdown, is_slow);
            let drives = &mut self.summary.groups[place].drives;
            while drives.get(at).is_some_and(|drive| drive.id < now.id) {
                at += 1;
            }
            match drives.get_mut(at).filter(|drive| drive.id == now.id) {
                Some(drive) => drive.follow(&now, &mut self.summary.runs),
                None => drives.insert(at, now),
            }
            at += 1;
        }
        let now = GroupHour { hour, ios, is_tail };
        let before = self.summary.groups[place].last;
        if before.hour == hour {
            // The group's first hour: nothing was there before.
            self.summary.groups[place].first = now;
        } else {
            self.summary.step_group(before, now);
        }
        self.summary.groups[place].last = now;
    }

    /// Where the group stands, made if it is new.
    /// Room for its drives is taken at once, so that groups that follow one another in the rows do so in memory.
    fn place_of(&mut self, raid: i32, hour: i32, width: usize) -> usize {
        let groups = &mut self.summary.groups;
        let place = match groups.get(self.guess) {
            Some(group) if group.id == raid => self.guess,
            _ => *self.places.entry(raid).or_insert_with(|| {
                let first = GroupHour { hour, ios: 0, is_tail: false };
                let drives = Vec::with_capacity(width);
                groups.push(Group { id: raid, first, last: first, drives });
                groups.len() - 1
            }),
        };
        self.guess = if place + 1 == groups.len() { 0 } else { place + 1 };
        place
    }
}

fn median_over(scratch: &mut Scratch, value: impl Fn(usize) -> f64) -> f64 {
    scratch.values.clear();
    scratch.values.extend(scratch.rows.iter().map(|&row| value(row)));
    median_of(&mut scratch.values)
}

/// A row's mean size; one that is no number counts as 0.
fn size_of(rows: &Hours<'_>, row: usize) -> f64 {
    let bytes = f64::from(rows.bytes[row]);
    if bytes.is_nan() { 0.0 } else { bytes }
}

/// Sorts by insertion: groups are small, and mostly of equal drives.
fn sort_into(sorted: &mut Vec<f32>, values: &[f32]) {
    sorted.clear();
    sorted.extend_from_slice(values);
    if values.len() > 64 {
        sorted.sort_unstable_by(f32::total_cmp);
        return;
    }
    for end in 1..sorted.len() {
        let value = sorted[end];
        let mut hole = end;
        while hole > 0 && sorted[hole - 1] > value {
            sorted[hole] = sorted[hole - 1];
            hole -= 1;
        }
        sorted[hole] = value;
    }
}

fn group_end(hours: &Hours<'_>, from: usize, hour: i32, raid: i32) -> usize {
    let mut to = from;
    while to < hours.hour.len() && hours.hour[to] == hour && hours.raid[to] == raid {
        to += 1;
    }
    to
}

fn part_of<'a>(hours: &Hours<'a>, from: usize, to: usize) -> Hours<'a> {
    Hours {
        hour: &hours.hour[from..to],
        raid: &hours.raid[from..to],
        drive: &hours.drive[from..to],
        latency_us: &hours.latency_us[from..to],
        ios: &hours.ios[from..to],
        bytes: hours.bytes.get(from..to).unwrap_or_default(),
        age_hours: hours.age_hours.get(from..to).unwrap_or_default(),
        model: hours.model.get(from..to).unwrap_or_default(),
        models: hours.models,
    }
}

impl Rows {
    fn extend(&mut self, hours: &Hours<'_>, from: usize, to: usize) {
        let part = part_of(hours, from, to);
        self.hour.extend_from_slice(part.hour);
        self.raid.extend_from_slice(part.raid);
        self.drive.extend_from_slice(part.drive);
        self.latency_us.extend_from_slice(part.latency_us);
        self.ios.extend_from_slice(part.ios);
        self.bytes.extend_from_slice(part.bytes);
        self.age_hours.extend_from_slice(part.age_hours);
        self.model.extend_from_slice(part.model);
    }

    fn hours(&self) -> Hours<'_> {
        Hours {
            hour: &self.hour,
            raid: &self.raid,
            drive: &self.drive,
            latency_us: &self.latency_us,
            ios: &self.ios,
            bytes: &self.bytes,
            age_hours: &self.age_hours,
            model: &self.model,
            models: &[],
        }
    }

    fn clear(&mut self) {
        self.hour.clear();
        self.raid.clear();
        self.drive.clear();
        self.latency_us.clear();
        self.ios.clear();
        self.bytes.clear();
        self.age_hours.clear();
        self.model.clear();
    }
}
