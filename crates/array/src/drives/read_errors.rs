//! How many reads a drive has failed lately, and when that is too much.
//!
//! A read that does not give a sector although the drive tried everything is an *error*, whatever number of sectors
//! it lacks: a scratch is read over in a few commands. What is remembered halves every hour. A drive with more than
//! [`ERRORS_MAX`] is done without, if the layout survives that: Linux MD does so at 20 with the same halving, ZFS at
//! 10 within ten minutes. A drive that the array cannot do without is never given up for its errors.
//!
//! Reads that return sectors with other checksums than they should have are errors too, but at most one in ten seconds: a bad
//! cable or a write that went astray spoils many of them at once, and all are repaired.

use levelhead_units::{Instant, Nanos};

/// The most errors that are remembered of a drive in use.
pub(crate) const ERRORS_MAX: u32 = 32;

/// What is remembered halves in this time.
const HALVING: Nanos = Nanos::from_secs(3_600);

/// Of reads with wrong checksums one counts in this time.
const CORRUPT_EVERY: Nanos = Nanos::from_secs(10);

/// What is remembered of one drive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadErrors {
    count: u32,
    since: Instant,
    is_told: bool,
    /// When a read with a wrong checksum counts again.
    corrupt_from: Instant,
}

impl ReadErrors {
    /// One more. Returns whether they are too many.
    pub(crate) fn note(&mut self, now: Instant) -> bool {
        while self.count > 0 && self.since + HALVING <= now {
            (self.count, self.since) = (self.count / 2, self.since + HALVING);
        }
        if self.count == 0 {
            self.since = now;
        }
        self.count = self.count.saturating_add(1);
        self.count > ERRORS_MAX
    }

    /// One more read has returned sectors with wrong checksums. Returns whether they are too many.
    pub(crate) fn note_corrupt(&mut self, now: Instant) -> bool {
        if now < self.corrupt_from {
            return false;
        }
        self.corrupt_from = now + CORRUPT_EVERY;
        self.note(now)
    }

    /// Whether it is the first time that the drive is kept although they are too many.
    pub(crate) fn tell_once(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }

    /// How many are remembered.
    pub(crate) fn count(self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_too_many_at_once_and_not_over_days() {
        let mut errors = ReadErrors::default();
        let quick: Vec<bool> = (0..=ERRORS_MAX).map(|_| errors.note(Instant::ZERO)).collect();
        assert_eq!(quick.iter().position(|&is_too_many| is_too_many), Some(ERRORS_MAX as usize));
        let mut errors = ReadErrors::default();
        let hourly = |hour: u64| Instant::ZERO + Nanos::from_secs(3_600 * hour);
        assert!((0..1_000).all(|at| !errors.note(hourly(at / 10))), "ten an hour are never");
    }

    #[test]
    fn wrong_checksums_are_too_many_only_if_they_go_on() {
        let mut errors = ReadErrors::default();
        assert!(
            (0..1_000).all(|_| !errors.note_corrupt(Instant::ZERO)),
            "all at once count as one"
        );
        assert_eq!(errors.count(), 1);
        let later = |at: u64| Instant::ZERO + CORRUPT_EVERY * at;
        assert!((1..=u64::from(ERRORS_MAX)).any(|at| errors.note_corrupt(later(at))));
    }
}
