//! What the array knows of its drives: what they say, and what it sees.

use levelhead_block::Health;
use levelhead_units::{Instant, Nanos};

use crate::tau::DriveView;

/// Rates are averaged over about so long.
const MEMORY: Nanos = Nanos::from_secs(2);

/// One drive as the array sees it, merged with what the drive says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriveTrack {
    said: Health,
    arrivals: Decaying,
    asked: Decaying,
    removed: Decaying,
    /// Mean time of one command, inferred from completions; what a drive says goes first.
    service_time: Option<f64>,
    finished_last: Instant,
}

/// A count that forgets, with time constant [`MEMORY`].
#[derive(Clone, Copy, Debug, Default)]
struct Decaying {
    count: f64,
    as_of: Instant,
}

impl Decaying {
    fn add(&mut self, now: Instant, count: f64) {
        self.count = (self.at(now) + count).max(0.0);
        self.as_of = now;
    }

    fn at(self, now: Instant) -> f64 {
        self.count * left(now.saturating_since(self.as_of))
    }
}

/// What is left of a count after so long.
fn left(age: Nanos) -> f64 {
    // Several counts are asked for at the time of the last change.
    if age == Nanos::ZERO { 1.0 } else { (-age.as_secs_f64() / MEMORY.as_secs_f64()).exp() }
}

impl DriveTrack {
    pub(crate) fn handle_health(&mut self, said: Health) {
        self.said = said;
    }

    pub(crate) fn handle_asked(&mut self, now: Instant) {
        self.arrivals.add(now, 1.0);
    }

    /// A command was withdrawn: it did not come the drive's way after all.
    pub(crate) fn handle_withdrawn(&mut self, now: Instant) {
        self.arrivals.add(now, -1.0);
    }

    /// A sub-request that could have been withdrawn was, or was not.
    pub(crate) fn handle_fate(&mut self, now: Instant, removed: bool) {
        self.asked.add(now, 1.0);
        if removed {
            self.removed.add(now, 1.0);
        }
    }

    /// A command that went into the drive at `started` has come back.
    pub(crate) fn handle_finished(&mut self, now: Instant, started: Instant) {
        // With several commands inside, the drive turned to this one when it was through with the
        // one before.
        let busy = now.saturating_since(started.max(self.finished_last)).as_secs_f64();
        self.finished_last = now;
        let mean = self.service_time.get_or_insert(busy);
        *mean += (busy - *mean) / 64.0;
    }

    pub(crate) fn view(&self, now: Instant, queued: usize) -> DriveView {
        let secs = |time: Option<Nanos>| time.map(Nanos::as_secs_f64);
        // Over less than the memory since the start, the mean is over what there was.
        let memories = now.as_nanos() as f64 / MEMORY.get() as f64;
        // From 38 memories on the exponential is lost in the rounding of 1.
        let begun = if memories < 40.0 { 1.0 - (-memories).exp() } else { 1.0 };
        let span = MEMORY.as_secs_f64() * begun;
        let rate = if span > 0.0 { self.arrivals.at(now) / span } else { 0.0 };
        DriveView {
            queued: queued as f64,
            arrival_rate: rate,
            // Laplace's rule of succession, so that a mode never tried is not ruled out.
            removal: (self.removed.at(now) + 1.0) / (self.asked.at(now) + 2.0),
            retry_rate: self.said.retry_rate.map_or(0.0, levelhead_units::Ratio::get),
            retry_latency: secs(self.said.retry_latency_mean).unwrap_or(0.0),
            service_time: secs(self.said.service_time_mean).or(self.service_time).unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrival_rate_is_found_and_forgotten() {
        let mut track = DriveTrack::default();
        let mut now = Instant::ZERO;
        for _ in 0..2_000 {
            now = now + Nanos::from_millis(8);
            track.handle_asked(now);
        }
        assert!((track.view(now, 0).arrival_rate - 125.0).abs() < 2.0);
        let later = now + Nanos::from_secs(20);
        assert!(track.view(later, 0).arrival_rate < 0.1);
    }

    #[test]
    fn what_a_drive_says_goes_before_what_is_inferred() {
        let mut track = DriveTrack::default();
        let start = Instant::from_nanos(5_000_000);
        track.handle_finished(start + Nanos::from_millis(12), start);
        let view = track.view(start + Nanos::from_millis(12), 3);
        assert!((view.service_time - 0.012).abs() < 1e-9);
        let service_time_mean = Some(Nanos::from_millis(9));
        track.handle_health(Health { service_time_mean, ..Health::default() });
        assert!((track.view(start, 3).service_time - 0.009).abs() < 1e-9);
    }

    #[test]
    fn removal_is_even_until_there_is_evidence() {
        let mut track = DriveTrack::default();
        let now = Instant::from_nanos(1);
        assert!((track.view(now, 0).removal - 0.5).abs() < 1e-12);
        (0..98).for_each(|_| track.handle_fate(now, false));
        assert!((track.view(now, 0).removal - 0.01).abs() < 1e-12);
    }
}
