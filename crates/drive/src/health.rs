//! What the drive counts, and what it says about itself from that.
//!
//! Counts cover the drive's whole life. Rates and means cover a window of the last commands, so that a
//! drive that has become slow says so soon. A retry's mean length stays as it was last known when the window holds no retry: reads
//! that were told not to retry do not make it unknown.

use std::collections::VecDeque;

use levelhead_block::{Health, Silent, SilentWrite};
use levelhead_units::{Instant, Nanos, Ratio};

/// How many commands the account covers.
const WINDOW: usize = 1_000;

/// What a drive has done since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads and writes that have ended.
    pub commands: u64,
    /// Sectors that reads went over.
    pub sectors_read: u64,
    /// Sectors among these whose first pass failed.
    pub sectors_failed: u64,
    /// Reads that were retried.
    pub retries: u64,
    /// Revolutions spent on retries.
    pub rotations: u64,
    /// Time spent on retries.
    pub retrying: Nanos,
    /// Time spent on commands, retries included.
    pub busy: Nanos,
    /// What was silently wrong. A real drive does not know.
    pub silent: SilentCounters,
}

/// How often something was silently wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SilentCounters {
    /// Sectors of writes that did not reach the medium.
    pub sectors_missing: u64,
    /// Writes of which something reached it somewhere else.
    pub writes_misdirected: u64,
    /// Sectors of writes and reads that were stored or read with another content.
    pub sectors_flipped: u64,
    /// Flushes that made nothing safe.
    pub flushes_lying: u64,
}

impl SilentCounters {
    /// Of one command.
    fn of(silent: &Silent) -> Self {
        let none = Self::default();
        match silent {
            Silent::Nothing => none,
            Silent::Flush => Self { flushes_lying: 1, ..none },
            Silent::Read { flips } => Self { sectors_flipped: flips.len() as u64, ..none },
            Silent::Write(wrong) => {
                let SilentWrite { missing, landed, flips } = &**wrong;
                let flipped = flips.iter().filter(|flip| !missing.contains(flip.offset));
                Self {
                    sectors_missing: missing.len() as u64,
                    writes_misdirected: landed.map_or(0, |_| 1),
                    sectors_flipped: flipped.count() as u64,
                    ..none
                }
            }
        }
    }

    fn add(&mut self, other: Self) {
        let Self { sectors_missing, writes_misdirected, sectors_flipped, flushes_lying } = other;
        self.sectors_missing += sectors_missing;
        self.writes_misdirected += writes_misdirected;
        self.sectors_flipped += sectors_flipped;
        self.flushes_lying += flushes_lying;
    }
}

/// One read or write, as the account remembers it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) sectors_read: u64,
    pub(crate) sectors_failed: u64,
    /// The time without retries.
    pub(crate) first_pass: Nanos,
    /// The time of the retries, and the revolutions they took.
    pub(crate) retrying: Nanos,
    pub(crate) rotations: u32,
}

/// Sums over entries.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    sectors_read: u64,
    sectors_failed: u64,
    first_pass: u64,
    retrying: u64,
    retried: u64,
}

/// The account of one drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    counters: Counters,
    window: VecDeque<Entry>,
    /// The sums over `window`.
    sums: Sums,
    retry_latency_last: Option<Nanos>,
}

impl Account {
    /// A read or write has ended.
    pub(crate) fn add(&mut self, entry: Entry) {
        let counters = &mut self.counters;
        counters.commands += 1;
        counters.sectors_read += entry.sectors_read;
        counters.sectors_failed += entry.sectors_failed;
        counters.retries += u64::from(entry.rotations > 0);
        counters.rotations += u64::from(entry.rotations);
        counters.retrying += entry.retrying;
        counters.busy += entry.first_pass + entry.retrying;
        if self.window.len() == WINDOW {
            let oldest = self.window.pop_front().expect("the window is full");
            self.sums = self.sums.with(&oldest, u64::wrapping_sub);
        }
        self.window.push_back(entry);
        self.sums = self.sums.with(&entry, u64::wrapping_add);
        let mean = self.sums.retrying.checked_div(self.sums.retried).map(Nanos::new);
        self.retry_latency_last = mean.or(self.retry_latency_last);
    }

    /// This was silently wrong with a command.
    pub(crate) fn add_silent(&mut self, silent: &Silent) {
        self.counters.silent.add(SilentCounters::of(silent));
    }

    /// A command that moves nothing has ended.
    pub(crate) fn add_idle(&mut self, service: Nanos) {
        self.counters.busy += service;
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// What the drive says when asked at `now`.
    pub(crate) fn health(&self, now: Instant) -> Health {
        let Sums { sectors_read, sectors_failed, first_pass, .. } = self.sums;
        let commands = self.window.len() as u64;
        // A drive that has done nothing has nothing to say.
        let count = |count: u64| (self.counters.commands > 0).then_some(count);
        Health {
            as_of: now,
            commands: count(self.counters.commands),
            first_pass_failures: count(self.counters.sectors_failed),
            retries: count(self.counters.retries),
            retry_rate: (sectors_read > 0).then(|| Ratio::of(sectors_failed, sectors_read)),
            retry_latency_mean: self.retry_latency_last,
            service_time_mean: first_pass.checked_div(commands).map(Nanos::new),
        }
    }
}

impl Sums {
    /// The sums with `entry` put in or taken out.
    fn with(self, entry: &Entry, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            sectors_read: combine(self.sectors_read, entry.sectors_read),
            sectors_failed: combine(self.sectors_failed, entry.sectors_failed),
            first_pass: combine(self.first_pass, entry.first_pass.get()),
            retrying: combine(self.retrying, entry.retrying.get()),
            retried: combine(self.retried, u64::from(entry.rotations > 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(failed: u64, rotations: u32) -> Entry {
        Entry {
            sectors_read: 4,
            sectors_failed: failed,
            first_pass: Nanos::from_millis(10),
            retrying: Nanos::from_millis(8) * u64::from(rotations),
            rotations,
        }
    }

    #[test]
    fn a_new_drive_knows_nothing() {
        let now = Instant::from_nanos(5);
        assert_eq!(Account::default().health(now), Health { as_of: now, ..Health::default() });
    }

    #[test]
    fn the_account_covers_the_last_thousand_commands() {
        let mut account = Account::default();
        for _ in 0..500 {
            account.add(read(1, 3));
        }
        let health = account.health(Instant::ZERO);
        assert_eq!(health.retry_rate, Ratio::new(0.25));
        assert_eq!(health.retry_latency_mean, Some(Nanos::from_millis(24)));
        assert_eq!(health.service_time_mean, Some(Nanos::from_millis(10)));
        for _ in 0..750 {
            account.add(read(0, 0));
        }
        assert_eq!(account.health(Instant::ZERO).retry_rate, Ratio::new(0.0625));
        for _ in 0..250 {
            account.add(read(0, 0));
        }
        let health = account.health(Instant::ZERO);
        assert_eq!(health.retry_rate, Some(Ratio::ZERO));
        assert_eq!(health.retry_latency_mean, Some(Nanos::from_millis(24)), "as last known");
        assert_eq!(health.commands, Some(1_500));
        assert_eq!((health.first_pass_failures, health.retries), (Some(500), Some(500)));
        let counters = account.counters();
        assert_eq!((counters.commands, counters.retries, counters.rotations), (1_500, 500, 1_500));
        assert_eq!(counters.retrying, Nanos::from_millis(24) * 500);
    }
}
