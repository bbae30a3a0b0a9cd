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
//! - WA3. What is kept is bounded: [`WINDOWS_MAX`] windows a cohort, an event a drive.
//! - WA4. A drive that cannot be read takes nothing from the others but itself.
//! - WA5. Time that goes back starts the window anew and ends none.

mod cohort;
mod counters;
mod history;
mod saved;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use cohort::Cohort;
pub use counters::{Counters, Progress, parse_stat};
pub use history::WINDOWS_MAX;
pub use saved::Saved;
pub use verdict::{Comparison, DriveVerdict, Event, State, Why};

use crate::detect::{Detector, WINDOW};

/// A drive has to have at least this number of peers to be compared with them.
pub const PEERS_MIN: usize = 3;

/// Seconds for which nothing ends until a drive is called hung.
pub const HUNG_AFTER: i64 = 30;

/// Makes a detector for this number of members.
pub type MakeDetector = Box<dyn Fn(usize) -> Box<dyn Detector>>;

/// A set of drives that share a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
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
    /// What was kept of cohorts that have not been found again yet.
    saved: Saved,
    /// The beginning of the running window.
    window: Option<i64>,
    last: Option<i64>,
    events: BTreeMap<(String, String), Event>,
}

impl Watch {
    /// Knows no group yet, and takes up what was kept of those it will be told of.
    pub fn new(make: MakeDetector, saved: Saved) -> Self {
        Self { make, cohorts: Vec::new(), saved, window: None, last: None, events: BTreeMap::new() }
    }

    /// These are the groups now. Those that are not among them are forgotten; of the others everything is kept that is of a
    /// member that is still there.
    pub fn handle_groups(&mut self, groups: &[Group]) {
        let mut olds = std::mem::take(&mut self.cohorts);
        for group in groups {
            let models: BTreeSet<&str> = group.members.iter().map(|it| it.model.as_str()).collect();
            for model in models {
                let name = if model.is_empty() {
                    group.name.clone()
                } else {
                    format!("{}\t{model}", group.name)
                };
                let members: Vec<_> =
                    group.members.iter().filter(|it| it.model == model).cloned().collect();
                let old = olds.iter().position(|it| it.name == name).map(|at| olds.swap_remove(at));
                let mut cohort = old
                    .unwrap_or_else(|| Cohort::new(&self.make, name, &group.name, &mut self.saved));
                cohort.handle_members(&self.make, members, group.members.len());
                cohort.handle_rebuilding(group.is_rebuilding);
                self.cohorts.push(cohort);
            }
        }
        self.cohorts.sort_by(|a, b| a.name.cmp(&b.name));
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

    /// Of each group the latencies of its slowest drives over the median of its last window, the slowest first.
    pub fn tails(&self) -> Vec<(String, Vec<f64>)> {
        self.cohorts.iter().filter_map(|it| Some((it.group.clone(), it.tail()?))).collect()
    }

    /// Of the window that ended last: its beginning, group, key, microseconds and bytes a second of each drive that was read.
    pub fn last_window(&self) -> Vec<Recorded> {
        self.cohorts.iter().flat_map(Cohort::last_window).collect()
    }

    /// What a next run takes up.
    pub fn save(&self) -> Saved {
        Saved { cohorts: self.cohorts.iter().map(Cohort::save).collect() }
    }

    fn end_window(&mut self, window: i64) {
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
