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
    /// A message of another thread.
    Message,
}

/// A wake-up that comes later than this is not usual, in seconds.
pub(super) const LATE: f64 = 0.001;
/// The share of wake-ups that may be that late.
pub(super) const LATE_SHARE_MAX: f64 = 0.05;
/// The fewest of one kind that say what is usual.
const ENOUGH: usize = 20;
/// The part of what is taken off that the drive's own wake-ups may differ by.
const DOUBT: f64 = 0.25;

/// All wake-ups of a run, in seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Wakes {
    timers: Vec<f64>,
    messages: Vec<f64>,
}

/// How late this machine's threads woke up during a measurement; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lateness {
    /// How many wake-ups were looked at.
    pub count: u64,
    /// Median lateness of a thread that waited for a time.
    pub timer: f64,
    /// Median lateness of a thread that waited for a message.
    pub message: f64,
    /// The 99th percentile of both kinds together.
    pub p99: f64,
    /// The share of both kinds that was more than a millisecond late.
    pub late_share: f64,
}

impl Wakes {
    pub(super) fn add(&mut self, wake: Wake, late: Nanos) {
        match wake {
            Wake::Timer => self.timers.push(late.as_secs_f64()),
            Wake::Message => self.messages.push(late.as_secs_f64()),
        }
    }

    /// None where so few were looked at that they say nothing.
    pub(super) fn lateness(&self) -> Option<Lateness> {
        if self.timers.len() < ENOUGH || self.messages.len() < ENOUGH {
            return None;
        }
        let sorted = |times: &mut Vec<f64>| times.sort_unstable_by(f64::total_cmp);
        let (mut timers, mut messages) = (self.timers.clone(), self.messages.clone());
        sorted(&mut timers);
        sorted(&mut messages);
        let (timer, message) = (timers[timers.len() / 2], messages[messages.len() / 2]);
        let mut all = timers;
        all.append(&mut messages);
        sorted(&mut all);
        let late = all.len() - all.partition_point(|time| *time <= LATE);
        Some(Lateness {
            count: all.len() as u64,
            timer,
            message,
            p99: all[(all.len() * 99).div_ceil(100) - 1],
            late_share: late as f64 / all.len() as f64,
        })
    }
}

impl Lateness {
    /// What a read seems to take beside the drive's own time: its order is a message to a thread, and `end`
    /// is what tells that thread of its end.
    pub(super) fn of_a_read(&self, end: Wake) -> f64 {
        self.message
            + match end {
                Wake::Timer => self.timer,
                Wake::Message => self.message,
            }
    }

    /// How far off that may be.
    pub(super) fn doubt(&self, end: Wake) -> f64 {
        self.of_a_read(end) * DOUBT
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
            wakes.add(Wake::Timer, Nanos::from_micros(if at < 91 { 100 } else { 3_000 }));
            assert_eq!(wakes.lateness(), None, "no message yet");
        }
        (0..100).for_each(|_| wakes.add(Wake::Message, Nanos::from_micros(40)));
        let lateness = wakes.lateness().unwrap();
        let near =
            |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{lateness:?}");
        assert_eq!(lateness.count, 200);
        near(lateness.timer, 100e-6);
        near(lateness.message, 40e-6);
        near(lateness.p99, 3e-3);
        near(lateness.late_share, 0.045);
        near(lateness.of_a_read(Wake::Timer), 140e-6);
        near(lateness.of_a_read(Wake::Message), 80e-6);
        assert!(lateness.is_usual());
        (0..3).for_each(|_| wakes.add(Wake::Message, Nanos::from_micros(1_001)));
        assert!(!wakes.lateness().unwrap().is_usual());
    }
}
