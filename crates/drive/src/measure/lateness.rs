//! How late the machine itself is: when a program wakes up, against when it should have.
//!
//! A program learns of a read's end only when a thread of it runs again. How long that takes is seen from a drive's
//! times as little as from a ruler what the eye is off by, so that it is measured apart, during the same
//! run, by threads that do nothing but wait: for a time that they know, and for a message. What is usual is taken off
//! the drive's times; what is not usual makes them worthless once it is no longer rare.

use levelhead_units::Nanos;

/// What a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A time that it knew.
    Timer,
    /// A message of another thread, for some milliseconds.
    Message,
    /// The answer to a message that it had just sent: it slept so shortly that the processor is awake still. A drive's thread that
    /// has told of an end waits so for the next order.
    Answer,
}

/// A wake-up that comes later than this is not usual, in seconds.
pub(super) const LATE: f64 = 0.001;
/// The share of wake-ups that may be that late, and that share of a run in which the machine alone can be why a figure is not known.
pub(super) const LATE_SHARE_MAX: f64 = 0.05;
pub(super) const LATE_SHARE_SOME: f64 = 0.005;
/// The fewest of one kind that say what is usual.
const ENOUGH: usize = 20;
/// The part of a median that the drive's own may differ by, at least.
const DOUBT: f64 = 0.25;
/// The quantile whose distance from the median the drive's own median may differ by, at least.
const UPPER: f64 = 0.75;

/// The quantile that is the median of the lesser of two.
const LESSER: f64 = 0.293;

/// All wake-ups of a run, in seconds, by kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Wakes([Vec<f64>; 3]);

/// What wake-ups of one kind were late by, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usual {
    /// The median.
    pub median: f64,
    /// The median of the lesser of two.
    pub lesser: f64,
    /// By how much the median of the drive's own threads may differ: the greater of a quarter of the median and of the distance from
    /// it to the third quartile.
    pub doubt: f64,
    /// The distance from the median to the third quartile.
    pub quartile: f64,
}

/// By how much a machine moves times that are measured, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shift {
    /// The median.
    pub(super) median: f64,
    /// The most by which the median may be off.
    pub(super) doubt: f64,
    /// The distance from the median to the third quartile.
    pub(super) quartile: f64,
}

/// How late this machine's threads woke up during a measurement; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lateness {
    /// How many wake-ups were looked at.
    pub count: u64,
    /// Of threads that waited for a time.
    pub timer: Usual,
    /// Of threads that waited for a message.
    pub message: Usual,
    /// Of threads that waited for the answer to a message.
    pub answer: Usual,
    /// The 99th percentile of all kinds together.
    pub p99: f64,
    /// The share of all kinds that was more than a millisecond late.
    pub late_share: f64,
}

impl Usual {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_unstable_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let lesser = times[(times.len() as f64 * LESSER) as usize];
        let upper = times[(times.len() as f64 * UPPER) as usize];
        let quartile = upper - median;
        Self { median, lesser, doubt: (median * DOUBT).max(quartile), quartile }
    }
}

impl Wakes {
    pub(super) fn add(&mut self, wake: Wake, late: Nanos) {
        self.0[wake as usize].push(late.as_secs_f64());
    }

    /// Adds those of another time, and leaves it without.
    pub(super) fn append(&mut self, other: &mut Self) {
        self.0.iter_mut().zip(&mut other.0).for_each(|(mine, more)| mine.append(more));
    }

    /// None where so few of a kind were looked at that they say nothing.
    pub(super) fn lateness(&self) -> Option<Lateness> {
        if self.0.iter().any(|times| times.len() < ENOUGH) {
            return None;
        }
        let mut all = self.0.concat();
        all.sort_unstable_by(f64::total_cmp);
        let late = all.len() - all.partition_point(|time| *time <= LATE);
        let [timer, message, answer] = self.0.clone().map(Usual::of);
        Some(Lateness {
            count: all.len() as u64,
            timer,
            message,
            answer,
            p99: all[(all.len() * 99).div_ceil(100) - 1],
            late_share: late as f64 / all.len() as f64,
        })
    }
}

impl Lateness {
    /// What a read seems to take beside the drive's own time: its order is the answer to the end of the read before, and of two ends,
    /// of which `end` tells the drive's thread, the earlier one counts.
    pub(super) fn of_a_read(&self, end: Wake) -> Shift {
        let ended = match end {
            Wake::Timer => self.timer,
            Wake::Message => self.message,
            Wake::Answer => self.answer,
        };
        let ordered = self.answer;
        Shift {
            median: ordered.median + ended.lesser,
            doubt: ordered.doubt + ended.doubt,
            // Three quarters of the lesser of two are below the median of each.
            quartile: ordered.quartile + ended.median - ended.lesser,
        }
    }

    /// Whether late wake-ups are rare.
    pub(super) fn is_usual(&self) -> bool {
        self.late_share <= LATE_SHARE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_the_middle_and_the_tail_of_what_was_seen() {
        let mut wakes = Wakes::default();
        for at in 0..100 {
            wakes.add(Wake::Timer, Nanos::from_micros(if at < 86 { 100 } else { 3_000 }));
            wakes.add(Wake::Answer, Nanos::from_micros(20 + at / 2));
            assert_eq!(wakes.lateness(), None, "no message yet");
        }
        (0..100).for_each(|_| wakes.add(Wake::Message, Nanos::from_micros(40)));
        let lateness = wakes.lateness().unwrap();
        let near =
            |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{lateness:?}");
        assert_eq!(lateness.count, 300);
        near(lateness.timer.median, 100e-6);
        near(lateness.timer.doubt, 25e-6);
        near(lateness.message.median, 40e-6);
        near(lateness.answer.median, 45e-6);
        near(lateness.answer.doubt, 12e-6);
        near(lateness.p99, 3e-3);
        near(lateness.late_share, 14.0 / 300.0);
        near(lateness.answer.lesser, 34e-6);
        near(lateness.of_a_read(Wake::Timer).median, 145e-6);
        near(lateness.of_a_read(Wake::Timer).quartile, 12e-6);
        near(lateness.of_a_read(Wake::Message).doubt, 22e-6);
        assert!(lateness.is_usual());
        (0..3).for_each(|_| wakes.add(Wake::Message, Nanos::from_micros(1_001)));
        assert!(!wakes.lateness().unwrap().is_usual());
    }
}
