//! Times in which the drive says nothing.
//!
//! Stalls begin at random times (see `points`), on average one in `gap`, and last for `duration`.
//! Nothing begins and nothing is answered in one: a command that would begin starts at its end, and
//! an answer that would come is held back until then. What the arm and the platter do meanwhile goes
//! on. Overlapping stalls make a longer one; a moment lies in a stall with probability
//!
//! ```text
//! 1 - exp(-duration / gap)
//! ```

use levelhead_units::{Instant, Nanos};

use super::parts::{Parsed, fields, unit};
use super::points::Points;
use super::slowness::check_time;
use super::text::Form;
use super::{Coin, Faults, FaultsError, Key};

/// Times in which a drive says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalls {
    /// The mean time between the beginnings of two, at least the duration.
    pub gap: Nanos,
    /// How long each lasts.
    pub duration: Nanos,
}

impl Stalls {
    /// The share of time that lies in a stall.
    pub fn share(&self) -> f64 {
        -(-(self.duration.get() as f64) / self.gap.get() as f64).exp_m1()
    }

    fn check(&self) -> Result<(), FaultsError> {
        check_time("the time between stalls", self.gap)?;
        check_time("the duration of a stall", self.duration)?;
        if self.duration > self.gap {
            return Err(FaultsError::Stalls { gap: self.gap, duration: self.duration });
        }
        Ok(())
    }
}

impl Form for Stalls {
    fn read(text: &str) -> Parsed<Self> {
        let [gap, duration] = fields(text, "GAP/DURATION, as in 10min/5s")?;
        Ok(Self { gap: unit(gap)?, duration: unit(duration)? })
    }

    fn show(&self) -> String {
        let Self { gap, duration } = self;
        format!("{gap}/{duration}")
    }
}

pub(super) fn check(faults: &Faults) -> Result<(), FaultsError> {
    faults.stalls.map_or(Ok(()), |stalls| stalls.check())
}

/// The stalls of one drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallMap {
    points: Points,
    duration: u64,
}

impl StallMap {
    pub(crate) fn new(stalls: &Stalls, key: Key) -> Self {
        let (gap, duration) = (stalls.gap.get(), stalls.duration.get());
        Self { points: Points::new(key.of(Coin::Stall), gap, duration), duration }
    }

    /// `at`, or the end of the stall it lies in.
    pub(crate) fn end(&self, at: Instant) -> Instant {
        let mut at = at.as_nanos();
        // Another stall may cover the end of the one that covers `at`.
        loop {
            // None that covers `at` reaches further.
            let ahead = at.saturating_add(self.duration - 1);
            let touching = self.points.intervals(at, ahead, |_| self.duration);
            let covering = touching.filter(|(first, _)| *first == at).map(|(_, last)| last).max();
            match covering {
                Some(last) => at = last.saturating_add(1),
                None => return Instant::from_nanos(at),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(gap: u64, duration: u64, drive: u64) -> (Stalls, StallMap) {
        let stalls = Stalls { gap: Nanos::new(gap), duration: Nanos::new(duration) };
        stalls.check().unwrap();
        (stalls, StallMap::new(&stalls, Key::new(drive)))
    }

    /// Four standard errors around the law, over independent drives.
    #[test]
    fn the_share_of_time_in_stalls_is_that_of_the_closed_form() {
        for (gap, duration) in [(1_000_000, 20_000), (50_000, 50_000)] {
            for at in [0, 123_456_789].map(Instant::from_nanos) {
                let n = 40_000_u64;
                let stalled =
                    (0..n).filter(|&drive| map(gap, duration, drive).1.end(at) > at).count();
                let (share, law) = (stalled as f64 / n as f64, map(gap, duration, 0).0.share());
                let error = (law * (1.0 - law) / n as f64).sqrt();
                assert!((share - law).abs() <= 4.0 * error, "{share}, law {law}");
            }
        }
    }

    /// An instant is in a stall up to the same end whichever instant of it one asks about.
    #[test]
    fn a_stall_has_one_end() {
        let (_, stalls) = map(3_000, 1_500, 4);
        let mut lengths = Vec::new();
        let mut end = Instant::ZERO;
        for nanos in 0..400_000 {
            let at = Instant::from_nanos(nanos);
            let now = stalls.end(at);
            if at < end {
                assert_eq!(now, end, "{at:?}");
            } else if now > at {
                lengths.push((now - at).get());
                end = now;
            }
        }
        // The first may have begun before the run.
        assert!(lengths[1..].iter().all(|&length| length >= 1_500), "{lengths:?}");
        assert!(lengths.iter().any(|&length| length > 1_500), "some overlap");
        assert!(lengths.contains(&1_500), "some do not");
    }
}
