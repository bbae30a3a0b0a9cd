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
    /// Reads that ended.
    pub reads: u64,
    /// Reads among these that needed nothing from the medium that was not there or on its way already.
    pub read_hits: u64,
    /// What was silently wrong. A real drive does not know.
    pub silent: SilentCounters,
    /// What became of the writes that the drive reads back.
    pub verify: VerifyCounters,
}

/// What a drive that verifies its writes has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyCounters {
    /// Writes that waited for their verification, or had it within the command.
    pub writes: u64,
    /// Writes that were read back and found, or made, equal.
    pub verified: u64,
    /// Writes of which nothing was verified because later ones overwrote them before.
    pub superseded: u64,
    /// Writes of which a part was given up: it made room before, the power failed, or no repair succeeded.
    pub unverified: u64,
    /// Writes that wait now.
    pub waiting: u64,
    /// The most bytes of writes that waited at a time, whatever was kept of them.
    pub room_max: u64,
    /// The most memory that these took: bytes of writes and checksums.
    pub memory_max: u64,
    /// From the ends of the verified writes to those of their verifications, together.
    pub response: Nanos,
    /// Commands that came during a verification.
    pub delayed: u64,
    /// What was left of it when they came, together.
    pub delay: Nanos,
    /// The longest of these.
    pub delay_max: Nanos,
    /// Parts of writes that were found not to be what was written.
    pub found: u64,
    /// Those of them that were written again and then equal.
    pub mended: u64,
    /// Those of them that were given up: checksums alone were kept, or no repair succeeded.
    pub unmended: u64,
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

impl VerifyCounters {
    /// A command came when this was left of a verification.
    pub(crate) fn delay(&mut self, left: Nanos) {
        self.delayed += 1;
        self.delay += left;
        self.delay_max = self.delay_max.max(left);
    }

    /// The mean time from the end of a write to that of its verification.
    pub fn response_mean(&self) -> Option<Nanos> {
        self.response.get().checked_div(self.verified).map(Nanos::new)
    }
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
    /// Whether memory had it, or was about to.
    pub(crate) is_hit: bool,
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
        let is_read = entry.sectors_read > 0;
        counters.reads += u64::from(is_read);
        counters.read_hits += u64::from(is_read && entry.is_hit);
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
            is_hit: false,
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
