//! What a pass over hours leaves: counts, and the edges of each drive and group.

use std::fmt;

use super::drive::{Drive, Group, GroupHour, Lengths, Runs};
use super::histogram::Histogram;
use super::rules::{Rules, Scope};

/// Years of age with a histogram of their own; older drives count with the last.
pub(super) const YEARS: usize = 12;
/// How many of the largest slowdowns of a group are kept.
pub(super) const TAILS: usize = 3;

/// What was counted, and what was not and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows with a slowdown.
    pub drive_hours: u64,
    /// Those of 2 and more.
    pub slow_drive_hours: u64,
    /// Those of 1.2 and more.
    pub drive_hours_mild: u64,
    /// Group hours with at least three usable drives.
    pub raid_hours: u64,
    /// Those with a slow drive.
    pub tail_hours: u64,
    /// Those whose slowest drive has 1.2 or more.
    pub raid_hours_mild: u64,
    /// Rows dropped for too few requests or a latency of 0.
    pub idle: u64,
    /// Rows dropped for a latency that is no number.
    pub without_value: u64,
    /// Usable rows dropped because fewer than three of the group were usable.
    pub few_peers: u64,
    /// Slow drive hours of twice the median's requests or more.
    pub slow_rate_imbalanced: u64,
    /// Drive hours of twice the median's requests or more.
    pub rate_imbalanced: u64,
    /// Slow drive hours of twice the median's request size or more.
    pub slow_size_imbalanced: u64,
    /// Drive hours of twice the median's request size or more.
    pub size_imbalanced: u64,
}

impl Counts {
    pub(super) fn fields_mut(&mut self) -> [&mut u64; 13] {
        [
            &mut self.drive_hours,
            &mut self.slow_drive_hours,
            &mut self.drive_hours_mild,
            &mut self.raid_hours,
            &mut self.tail_hours,
            &mut self.raid_hours_mild,
            &mut self.idle,
            &mut self.without_value,
            &mut self.few_peers,
            &mut self.slow_rate_imbalanced,
            &mut self.rate_imbalanced,
            &mut self.slow_size_imbalanced,
            &mut self.size_imbalanced,
        ]
    }
}

/// A fleet's hours, as far as they have been seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub(super) rules: Rules,
    pub(super) counts: Counts,
    /// Slowdowns of drive hours.
    pub(super) slowdowns: Histogram,
    /// The largest, second and third largest of a group hour.
    pub(super) tails: [Histogram; TAILS],
    /// Slowdowns by the drive's age in years.
    pub(super) by_age: Vec<Histogram>,
    /// In the order of their names.
    pub(super) models: Vec<Model>,
    /// Requests of a group's last hour over this hour's, after a stable hour: then stable, then tail.
    pub(super) degradation: [Histogram; 2],
    pub(super) runs: Runs,
    /// In the order of their numbers.
    pub(super) groups: Vec<Group>,
}

/// How large a group was, and for how long it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its drives.
    pub drives: usize,
    /// Hours from its first to its last, both counted.
    pub hours: i64,
}

/// A drive that was slow in some hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowDrive {
    /// The number of its group.
    pub raid: i32,
    /// Its number.
    pub drive: i32,
    /// Its hours with a slowdown.
    pub hours: u32,
    /// Those of 2 and more.
    pub slow_hours: u32,
    /// The largest slowdown.
    pub slowdown_max: f32,
    /// The first slow hour.
    pub first_slow: i32,
    /// The last slow hour.
    pub last_slow: i32,
}

/// The drives of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Their slowdowns.
    pub slowdowns: Histogram,
}

/// Why two summaries do not merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// One knows slowdowns only.
    Scope,
    /// They call different drive hours idle.
    IosMin,
    /// Both have seen this group in the same hours, or one lies within the other.
    Overlap {
        /// The group.
        raid: i32,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope => {
                write!(f, "a summary of slowdowns only does not merge with one of everything")
            }
            Self::IosMin => {
                write!(f, "summaries with different least numbers of requests do not merge")
            }
            Self::Overlap { raid } => {
                write!(
                    f,
                    "two summaries overlap in the hours of group {raid}: parts are merged neighbour to neighbour, each once"
                )
            }
        }
    }
}

impl std::error::Error for MergeError {}

impl Summary {
    /// Of nothing.
    pub fn new(rules: Rules) -> Self {
        let ages = match rules.scope {
            Scope::Slowdown => 0,
            Scope::Everything => YEARS,
        };
        Self {
            rules,
            counts: Counts::default(),
            slowdowns: Histogram::new(),
            tails: std::array::from_fn(|_| Histogram::new()),
            by_age: vec![Histogram::new(); ages],
            models: Vec::new(),
            degradation: std::array::from_fn(|_| Histogram::new()),
            runs: Runs { intervals: Lengths::new(), gaps: Lengths::new(), steps: [[0; 2]; 2] },
            groups: Vec::new(),
        }
    }

    /// What was looked at, and of what.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Rows and group hours, counted and dropped.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Slowdowns of drive hours.
    pub fn slowdowns(&self) -> &Histogram {
        &self.slowdowns
    }

    /// The `k`-th largest slowdowns of group hours, from 1 to 3. Panics for others.
    pub fn tails(&self, k: usize) -> &Histogram {
        assert!((1..=TAILS).contains(&k), "the tails kept are 1 to 3, not {k}");
        &self.tails[k - 1]
    }

    /// Slowdowns of drives by age in whole years, the last of all that are older; empty if only slowdowns were asked for.
    pub fn by_age(&self) -> &[Histogram] {
        &self.by_age
    }

    /// Slowdowns of drives by model, in the order of names; empty if no model is known, or if only slowdowns were asked for.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Requests of a group in a stable hour over those of the next: of next hours that are stable, and of tail hours.
    pub fn degradation(&self) -> &[Histogram; 2] {
        &self.degradation
    }

    /// How many slow intervals lasted each number of hours (the index), those at the edges of the record included.
    pub fn intervals(&self) -> Vec<u64> {
        let mut lengths = self.runs.intervals.clone();
        for drive in self.drives() {
            if drive.head > 0 {
                lengths.count(i64::from(drive.head));
            }
            if drive.tail > 0 && !drive.is_one_run() {
                lengths.count(i64::from(drive.tail));
            }
        }
        lengths.0
    }

    /// How many slow hours came each number of hours (the index) after the drive's slow hour before.
    pub fn gaps(&self) -> &[u64] {
        &self.runs.gaps.0
    }

    /// Of slow hours after which the drive was there, the share after which it was slow; `None` without any.
    pub fn stay(&self) -> Option<f64> {
        let [stable, slow] = self.runs.steps[1];
        (stable > 0 || slow > 0).then(|| slow as f64 / (stable as f64 + slow as f64))
    }

    /// How many drives there are.
    pub fn drive_count(&self) -> u64 {
        self.drives().count() as u64
    }

    /// How many groups there are.
    pub fn group_count(&self) -> u64 {
        self.groups.len() as u64
    }

    /// How many drives ever had a slowdown of at least `slowdown`.
    pub fn ever(&self, slowdown: f64) -> u64 {
        self.drives().filter(|drive| f64::from(drive.slowdown_max) >= slowdown).count() as u64
    }

    /// How many drives were slow in at least `hours` hours.
    pub fn slow_at_least(&self, hours: u32) -> u64 {
        self.drives().filter(|drive| drive.slow >= hours).count() as u64
    }

    /// At most `count` drives that were slow in the most hours; of equal ones those with the larger
    /// slowdown come first. Empty if only slowdowns were asked for.
    pub fn slowest(&self, count: usize) -> Vec<SlowDrive> {
        let all = self.groups.iter().flat_map(|group| {
            let slow = group.drives.iter().filter(|drive| drive.slow > 0);
            slow.map(|drive| SlowDrive {
                raid: group.id,
                drive: drive.id,
                hours: drive.hours,
                slow_hours: drive.slow,
                slowdown_max: drive.slowdown_max,
                first_slow: drive.first_slow,
                last_slow: drive.last_slow,
            })
        });
        let mut all: Vec<SlowDrive> = all.collect();
        // Sorting is stable: what is equal stays in the order of numbers.
        all.sort_by(|a, b| {
            b.slow_hours.cmp(&a.slow_hours).then(b.slowdown_max.total_cmp(&a.slowdown_max))
        });
        all.truncate(count);
        all
    }

    /// Of each group how many drives it had and from its first hour how many to its last, both counted; empty if only slowdowns were
    /// asked for.
    pub fn spans(&self) -> impl Iterator<Item = Span> {
        self.groups.iter().map(|group| Span {
            drives: group.drives.len(),
            hours: i64::from(group.last.hour) - i64::from(group.first.hour) + 1,
        })
    }

    /// The first hour of all; `None` of nothing, or if only slowdowns were asked for.
    pub fn first_hour(&self) -> Option<i32> {
        self.groups.iter().map(|group| group.first.hour).min()
    }

    /// The last hour of all; `None` of nothing, or if only slowdowns were asked for.
    pub fn last_hour(&self) -> Option<i32> {
        self.groups.iter().map(|group| group.last.hour).max()
    }

    /// Adds the summary of another part. On an error nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.rules.scope != other.rules.scope {
            return Err(MergeError::Scope);
        }
        if self.rules.ios_min != other.rules.ios_min {
            return Err(MergeError::IosMin);
        }
        let mut both =
            self.groups.iter().filter_map(|mine| other.group(mine.id).map(|theirs| (mine, theirs)));
        if let Some((mine, _)) =
            both.find(|(a, b)| !(a.last.hour < b.first.hour || b.last.hour < a.first.hour))
        {
            return Err(MergeError::Overlap { raid: mine.id });
        }
        let mut theirs = other.counts;
        for (mine, theirs) in self.counts.fields_mut().into_iter().zip(theirs.fields_mut()) {
            *mine = mine.saturating_add(*theirs);
        }
        for (mine, theirs) in self.histograms_mut().into_iter().zip(other.histograms()) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.runs.counts_mut().zip(other.runs.counts()) {
            *mine = mine.saturating_add(*theirs);
        }
        let models = std::mem::take(&mut self.models);
        self.models = merge_sorted(
            models,
            &other.models,
            |model| model.name.clone(),
            |mut a, b| {
                a.slowdowns.merge(&b.slowdowns);
                a
            },
        );
        let groups = std::mem::take(&mut self.groups);
        self.groups = merge_sorted(groups, &other.groups, |group| group.id, |a, b| self.join(a, b));
        Ok(())
    }

    fn join(&mut self, a: Group, b: Group) -> Group {
        let (earlier, later) = if a.last.hour < b.first.hour { (a, b) } else { (b, a) };
        self.step_group(earlier.last, later.first);
        let runs = &mut self.runs;
        let drives = merge_sorted(
            earlier.drives,
            &later.drives,
            |drive| drive.id,
            |mut a, b| {
                a.follow(&b, runs);
                a
            },
        );
        Group { id: earlier.id, first: earlier.first, last: later.last, drives }
    }

    /// A group's hour after another of the same.
    pub(super) fn step_group(&mut self, before: GroupHour, now: GroupHour) {
        if i64::from(before.hour) + 1 == i64::from(now.hour) && !before.is_tail && now.ios > 0 {
            self.degradation[usize::from(now.is_tail)].count(before.ios as f64 / now.ios as f64);
        }
    }

    fn group(&self, id: i32) -> Option<&Group> {
        self.groups.binary_search_by_key(&id, |group| group.id).ok().map(|at| &self.groups[at])
    }

    fn drives(&self) -> impl Iterator<Item = &Drive> {
        self.groups.iter().flat_map(|group| &group.drives)
    }

    /// Whether counts are those of the histograms, and parts no larger than what they are of.
    pub(super) fn agrees(&self) -> bool {
        let c = self.counts;
        let [first, second, third] = &self.tails;
        let is_everything = self.rules.scope == Scope::Everything;
        c.drive_hours == self.slowdowns.total()
            && c.slow_drive_hours == self.slowdowns.at_least(2.0)
            && (c.slow_drive_hours..=c.drive_hours).contains(&c.drive_hours_mild)
            && [first, second, third].iter().all(|tail| tail.total() == c.raid_hours)
            && c.tail_hours == first.at_least(2.0)
            && (c.tail_hours..=c.raid_hours).contains(&c.raid_hours_mild)
            && c.slow_rate_imbalanced <= c.rate_imbalanced.min(c.slow_drive_hours)
            && c.slow_size_imbalanced <= c.size_imbalanced.min(c.slow_drive_hours)
            && c.rate_imbalanced.max(c.size_imbalanced) <= c.drive_hours
            && (is_everything || self.groups.is_empty() && self.models.is_empty())
    }

    /// Where the model of this name stands, made if it is new.
    pub(super) fn place_of_model(&mut self, name: &str) -> usize {
        let known = self.models.iter().position(|model| model.name == name);
        known.unwrap_or_else(|| {
            self.models.push(Model { name: name.to_owned(), slowdowns: Histogram::new() });
            self.models.len() - 1
        })
    }

    pub(super) fn histograms(&self) -> Vec<&Histogram> {
        let fixed = std::iter::once(&self.slowdowns).chain(&self.tails).chain(&self.degradation);
        fixed.chain(&self.by_age).collect()
    }

    pub(super) fn histograms_mut(&mut self) -> Vec<&mut Histogram> {
        let fixed = std::iter::once(&mut self.slowdowns)
            .chain(&mut self.tails)
            .chain(&mut self.degradation);
        fixed.chain(&mut self.by_age).collect()
    }
}

impl Runs {
    pub(super) fn counts(&self) -> impl Iterator<Item = &u64> {
        self.intervals.0.iter().chain(&self.gaps.0).chain(self.steps.iter().flatten())
    }

    pub(super) fn counts_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        self.intervals.0.iter_mut().chain(&mut self.gaps.0).chain(self.steps.iter_mut().flatten())
    }
}

/// Two lists in the order of `key`, none twice in one of them, as one; what is in both is joined.
fn merge_sorted<T: Clone, K: Ord>(
    mine: Vec<T>,
    theirs: &[T],
    key: impl Fn(&T) -> K,
    mut join: impl FnMut(T, T) -> T,
) -> Vec<T> {
    let mut merged = Vec::with_capacity(mine.len().max(theirs.len()));
    let mut theirs = theirs.iter().peekable();
    for item in mine {
        while let Some(other) = theirs.next_if(|other| key(other) < key(&item)) {
            merged.push(other.clone());
        }
        match theirs.next_if(|other| key(other) == key(&item)) {
            Some(other) => merged.push(join(item, other.clone())),
            None => merged.push(item),
        }
    }
    merged.extend(theirs.cloned());
    merged
}
