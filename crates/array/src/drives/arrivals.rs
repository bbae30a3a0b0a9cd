//! Whether requests come at times of their own, or when others are answered.
//!
//! In a closed loop the same number is outstanding at all times. In an open loop the number of others that a request
//! finds has at least the variance of a Poisson number, its mean. Taken for a closed loop is what has less than a
//! quarter of it.

use levelhead_units::Instant;

use crate::policy::Arrivals;

/// Requests over which the number of others that they find is averaged.
const MEMORY: f64 = 256.0;

/// The number of requests that must have come before the arrivals are known.
const KNOWN_MIN: f64 = 64.0;

/// Requests come upon answers if the variance of that number, divided by its mean, is at most this. It is at least
/// 1 where requests come independently of the answers, and 0 where the same number is outstanding at all times.
const CLOSED_LOOP: f64 = 0.25;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rhythm {
    /// Mean and variance of how many others a request finds that are not answered yet.
    found: f64,
    found_variance: f64,
    /// Requests that came, [`MEMORY`] at most.
    requests: f64,
    last: Option<Instant>,
}

impl Rhythm {
    /// A request has come and found `others` requests that are not answered yet.
    pub(crate) fn note_arrival(&mut self, now: Instant, others: usize) {
        // The first request, and those of the same moment as the one before, do not show whether requests wait for
        // answers.
        if self.last.replace(now).is_none_or(|last| last == now) {
            return;
        }
        self.requests = (self.requests + 1.0).min(MEMORY);
        let distance = others as f64 - self.found;
        self.found += distance / self.requests;
        let square = distance * (others as f64 - self.found);
        self.found_variance += (square - self.found_variance) / self.requests;
    }

    /// Whether requests come upon answers; taken to be so until [`KNOWN_MIN`] requests have come.
    pub(crate) fn arrivals(&self) -> Arrivals {
        let is_known = self.requests >= KNOWN_MIN;
        if is_known && self.found_variance > CLOSED_LOOP * self.found {
            Arrivals::Independent
        } else {
            Arrivals::UponAnswers
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// This number of requests comes; each finds `others` unanswered ones.
    fn come(rhythm: &mut Rhythm, requests: u64, others: impl Fn(u64) -> usize) {
        (0..requests).for_each(|n| rhythm.note_arrival(at(n), others(n)));
    }

    #[test]
    fn closed_loop_is_told_from_independent_arrivals() {
        let mut rhythm = Rhythm::default();
        assert_eq!(rhythm.arrivals(), Arrivals::UponAnswers, "nothing is known");
        come(&mut rhythm, 1_000, |n| (n * n) as usize % 13);
        assert_eq!(rhythm.arrivals(), Arrivals::Independent);
        come(&mut rhythm, 2_000, |_| 31);
        assert_eq!(rhythm.arrivals(), Arrivals::UponAnswers);
        // A few more or less, as answers come together.
        come(&mut rhythm, 2_000, |n| 30 + (n % 3) as usize);
        assert_eq!(rhythm.arrivals(), Arrivals::UponAnswers);
        come(&mut rhythm, 2_000, |n| (n * n) as usize % 60);
        assert_eq!(rhythm.arrivals(), Arrivals::Independent);
    }

    #[test]
    fn requests_that_come_at_the_same_moment_do_not_look_like_independent_ones() {
        let mut rhythm = Rhythm::default();
        (0..256).for_each(|others| rhythm.note_arrival(at(0), others));
        come(&mut rhythm, 200, |_| 255);
        assert_eq!(rhythm.arrivals(), Arrivals::UponAnswers);
    }
}
