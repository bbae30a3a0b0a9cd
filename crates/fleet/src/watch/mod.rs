//! The verdicts of one host as it runs: [`Watch::handle_groups`], [`Watch::handle_sample`], and [`Watch::poll`] for what has changed.
//!
//! ```text
//!   stat, every 15 s --> progress of a drive --.                                .--> detector of the cohort --.
//!                                              |--> window of five minutes -----|                             |--> verdict --> event
//!                          commands inside ----'                                '--> history --> own past ----'
//! ```
//!
//! Members of a group are compared with those of the same model: a *cohort*. A detector belongs to a cohort and is told of its
//! windows in the order of time; when members change, and after a restart, a new one is told of the kept windows again.
//!
//! # Invariants
//!
//! - WA1. A window is told to a detector once, when it is over, and never one of a time when the group was being rebuilt.
//! - WA2. A drive is itself by its key, whatever the kernel calls it: renaming changes no verdict.
//! - WA3. What is kept is bounded: [`WINDOWS_MAX`] windows a cohort, an event a drive, and what is known of [`GONE_MAX`] cohorts that are gone.
//! - WA4. A drive that cannot be read takes nothing from the others but itself.
//! - WA5. Time that goes back starts the window anew and ends none; windows of times to come count as those just before it.

mod cohort;
mod counters;
mod history;
mod saved;
#[cfg(test)]
mod tests;
mod verdict;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cohort::Cohort;
pub use counters::{Counters, Progress, parse_stat};
pub use history::WINDOWS_MAX;
pub use saved::{COHORTS_MAX, MEMBERS_MAX, Saved};
pub use verdict::{Comparison, DriveVerdict, Event, State, Why};

use crate::detect::{Detector, WINDOW};

/// A drive has to have at least this number of peers to be compared with them.
pub const PEERS_MIN: usize = 3;

/// Seconds for which nothing ends until a drive is called hung.
pub const HUNG_AFTER: i64 = 30;

/// Cohorts whose groups are not there that are remembered in case they return, and seconds after their last window for which they are.
pub const GONE_MAX: usize = 256;
const GONE_AFTER: i64 = 30 * 24 * 3600;

/// Makes a detector for this number of members.
pub type MakeDetector = Box<dyn Fn(usize) -> Box<dyn Detector>>;

/// A set of drives that share a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What identifies it, whatever it is called: histories are found by it.
    pub id: String,
    /// Its name, of its own on this host.
    pub name: String,
    /// Its drives.
    pub members: Vec<Member>,
    /// Whether it is being rebuilt, checked or reshaped.
    pub is_rebuilding: bool,
}

/// One drive of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What identifies it: a WWN, a serial number, for want of those the kernel's name.
    pub key: String,
    /// The kernel's name for it.
    pub device: String,
    /// Its model, empty if unknown.
    pub model: String,
}

/// Drives by their keys, with what the kernel counts of each; a drive that could not be read is not there.
pub type Sample = BTreeMap<String, Counters>;

/// See the module.
pub struct Watch {
    make: MakeDetector,
    /// Sorted by name.
    cohorts: Vec<Cohort>,
    /// What was kept of cohorts whose groups are not there, or not yet.
    saved: Saved,
    /// The beginning of the running window.
    window: Option<i64>,
    last: Option<i64>,
    /// The beginning of the window that ended last.
    ended: Option<i64>,
    events: BTreeMap<(String, String), Event>,
}

impl Watch {
    /// Knows no group yet, and takes up what was kept of those it will be told of.
    pub fn new(make: MakeDetector, saved: Saved) -> Self {
        Self {
            make,
            cohorts: Vec::new(),
            saved,
            window: None,
            last: None,
            ended: None,
            events: BTreeMap::new(),
        }
    }

    /// These are the groups now, each id and each name once. Of those that are not among them any more the windows are kept for some time; of
    /// the others everything that is of a member that is still there. What is beyond [`COHORTS_MAX`] cohorts, or [`MEMBERS_MAX`] members of one, is not watched.
    pub fn handle_groups(&mut self, groups: &[Group]) {
        let mut olds = std::mem::take(&mut self.cohorts);
        for group in groups {
            let models: BTreeSet<&str> = group.members.iter().map(|it| it.model.as_str()).collect();
            for model in models {
                if self.cohorts.len() == COHORTS_MAX - GONE_MAX {
                    break;
                }
                let name = if model.is_empty() {
                    group.id.clone()
                } else {
                    format!("{}\t{model}", group.id)
                };
                let members = group.members.iter().filter(|it| it.model == model);
                let members: Vec<_> = members.take(MEMBERS_MAX).cloned().collect();
                let old = olds.iter().position(|it| it.name == name).map(|at| olds.swap_remove(at));
                let mut cohort =
                    old.unwrap_or_else(|| Cohort::new(&self.make, name, &mut self.saved));
                cohort.group.clone_from(&group.name);
                cohort.handle_members(&self.make, members, group.members.len());
                cohort.handle_rebuilding(group.is_rebuilding);
                self.cohorts.push(cohort);
            }
        }
        self.cohorts.sort_by(|a, b| a.name.cmp(&b.name));
        self.saved.cohorts.extend(olds.iter().map(Cohort::save));
        self.forget();
    }

    /// What is kept of cohorts that have been gone for too long, or of too many of them, is so no more (WA3).
    fn forget(&mut self) {
        let gone = &mut self.saved.cohorts;
        let last = self.last.unwrap_or(i64::MIN);
        gone.retain(|it| it.last_window().is_some_and(|at| last.saturating_sub(at) < GONE_AFTER));
        gone.sort_by_key(|it| Reverse(it.last_window()));
        gone.truncate(GONE_MAX);
    }

    /// What was read at `now`, in unix seconds.
    pub fn handle_sample(&mut self, now: i64, sample: &Sample) {
        let begins = now.div_euclid(WINDOW) * WINDOW;
        let is_back = self.last.is_some_and(|last| now < last);
        if is_back {
            self.cohorts.iter_mut().for_each(Cohort::abandon_window);
            self.window = None;
        }
        // The sample that ends a window belongs to it: what it tells of happened before.
        for cohort in &mut self.cohorts {
            cohort.handle_sample(now, sample);
        }
        match self.window {
            Some(window) if begins > window => {
                self.end_window(window);
                self.window = Some(begins);
            }
            Some(_) => {}
            None => self.window = Some(begins),
        }
        self.last = Some(now);
        self.advance(now);
    }

    /// A drive that is found to be something else than before, one event for each at most.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_first().map(|(_, event)| event)
    }

    /// What is said of each drive now.
    pub fn verdicts(&self) -> Vec<DriveVerdict> {
        self.cohorts.iter().flat_map(Cohort::verdicts).collect()
    }

    /// Of each group that was busy in the window that ended last the latencies of its [`TAIL`] slowest drives, each over the median
    /// of those of its model, the slowest first.
    pub fn tails(&self) -> Vec<Tail> {
        let Some(ended) = self.ended else { return Vec::new() };
        let mut tails = BTreeMap::<&str, Vec<f64>>::new();
        for cohort in &self.cohorts {
            if let Some(ratios) = cohort.tail(ended) {
                tails.entry(&cohort.group).or_default().extend(ratios);
            }
        }
        let tail = |(group, mut ratios): (&str, Vec<f64>)| {
            ratios.sort_by(|a, b| b.total_cmp(a));
            ratios.truncate(TAIL);
            Tail { group: group.to_owned(), ratios }
        };
        tails.into_iter().map(tail).collect()
    }

    /// What was read of each drive in the window that ended last.
    pub fn last_window(&self) -> Vec<Recorded> {
        let Some(ended) = self.ended else { return Vec::new() };
        self.cohorts.iter().flat_map(|it| it.recorded(ended)).collect()
    }

    /// What a next run takes up, of cohorts whose groups have not been found yet as well.
    pub fn save(&self) -> Saved {
        let mut saved = self.saved.clone();
        saved.cohorts.extend(self.cohorts.iter().map(Cohort::save));
        saved
    }

    fn end_window(&mut self, window: i64) {
        self.ended = Some(window);
        for cohort in &mut self.cohorts {
            cohort.end_window(window);
        }
        let ratios: Vec<f64> = self.cohorts.iter().flat_map(Cohort::own_ratios).collect();
        let is_host_wide = is_host_wide(&ratios);
        for cohort in &mut self.cohorts {
            cohort.is_host_wide = is_host_wide;
        }
    }

    /// The one place that changes what drives are found to be.
    fn advance(&mut self, now: i64) {
        for cohort in &mut self.cohorts {
            for event in cohort.advance(now) {
                let key = (event.now.group.clone(), event.now.key.clone());
                // Of an event that was not taken, what it was before still holds.
                let before = self.events.get(&key).map_or(event.before, |it| it.before);
                self.events.insert(key, Event { before, ..event });
            }
        }
    }
}

/// Drives of a group whose latencies are shown as its tail.
pub const TAIL: usize = 3;

/// The slowest drives of one group in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// The group's name.
    pub group: String,
    /// Latencies over the median of the drives of the same model, the largest first.
    pub ratios: Vec<f64>,
}

/// One drive in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The window's beginning, in unix seconds.
    pub at: i64,
    /// The group's name.
    pub group: String,
    /// The drive's key.
    pub key: String,
    /// Mean latency in microseconds.
    pub latency_us: f64,
    /// Bytes a second.
    pub load: f64,
}

/// Whether drives are slower than their own past all together: four or more, nine of ten by a fifth, half of them by half.
fn is_host_wide(ratios: &[f64]) -> bool {
    let above = |bound: f64| ratios.iter().filter(|&&ratio| ratio > bound).count();
    ratios.len() >= 4 && above(1.2) * 10 >= ratios.len() * 9 && above(1.5) * 2 >= ratios.len()
}
