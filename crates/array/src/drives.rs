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
    /// The same over the last few commands only.
    pace: f64,
    /// Share of sectors read without retries that were not given.
    failures: Share,
}

/// A share that is learnt, and forgotten by what comes later.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    hits: f64,
    trials: f64,
}

/// So many sectors are remembered: at 2 % the learnt share is then right to a tenth of itself.
const TRIALS_MAX: f64 = 4096.0;

/// One more failure than there were in so many sectors is assumed at first: a drive is innocent.
const TRIALS_PRIOR: f64 = 64.0;

impl Share {
    fn add(&mut self, hits: f64, trials: f64) {
        (self.hits, self.trials) = (self.hits + hits, self.trials + trials);
        if self.trials > TRIALS_MAX {
            let keep = TRIALS_MAX / self.trials;
            (self.hits, self.trials) = (self.hits * keep, TRIALS_MAX);
        }
    }

    fn get(self) -> f64 {
        self.hits / (self.trials + TRIALS_PRIOR)
    }
}

/// Commands whose time makes up the pace.
const PACE_MEMORY: f64 = 16.0;

/// A drive that has been silent for so many times its pace must have become that much slower.
const SILENCE: f64 = 4.0;

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
        if self.service_time.is_none() {
            self.pace = busy;
        }
        self.pace += (busy - self.pace) / PACE_MEMORY;
        let mean = self.service_time.get_or_insert(busy);
        *mean += (busy - *mean) / 64.0;
    }

    /// How long the drive worked on the command that has just ended, which went in at `started`.
    pub(crate) fn busy(&self, now: Instant, started: Instant) -> Nanos {
        now.saturating_since(started.max(self.finished_last))
    }

    /// When the last command came back.
    pub(crate) fn finished_last(&self) -> Instant {
        self.finished_last
    }

    /// A read without retries has ended.
    pub(crate) fn handle_fast_read(&mut self, failed: usize, sectors: u64) {
        self.failures.add(failed as f64, sectors as f64);
    }

    /// The time of one command lately, in seconds; more if the drive, which has had something to do
    /// since `busy_since`, has been silent for long.
    pub(crate) fn pace(&self, now: Instant, busy_since: Option<Instant>) -> f64 {
        let silent = busy_since.map_or(Nanos::ZERO, |since| self.busy(now, since));
        self.pace.max(silent.as_secs_f64() / SILENCE)
    }

    pub(crate) fn view(
        &self,
        now: Instant,
        queued: usize,
        busy_since: Option<Instant>,
    ) -> DriveView {
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
            pace: self.pace(now, busy_since),
            failure_rate: self.failures.get(),
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
        assert!((track.view(now, 0, None).arrival_rate - 125.0).abs() < 2.0);
        let later = now + Nanos::from_secs(20);
        assert!(track.view(later, 0, None).arrival_rate < 0.1);
    }

    #[test]
    fn what_a_drive_says_goes_before_what_is_inferred() {
        let mut track = DriveTrack::default();
        let start = Instant::from_nanos(5_000_000);
        track.handle_finished(start + Nanos::from_millis(12), start);
        let view = track.view(start + Nanos::from_millis(12), 3, None);
        assert!((view.service_time - 0.012).abs() < 1e-9);
        let service_time_mean = Some(Nanos::from_millis(9));
        track.handle_health(Health { service_time_mean, ..Health::default() });
        assert!((track.view(start, 3, None).service_time - 0.009).abs() < 1e-9);
    }

    #[test]
    fn failures_are_learnt_and_silence_tells() {
        let mut track = DriveTrack::default();
        (0..5_000).for_each(|n| track.handle_fast_read(usize::from(n % 25 == 0), 2));
        let view = track.view(Instant::from_nanos(1), 0, None);
        assert!((view.failure_rate - 0.02).abs() < 0.002, "{}", view.failure_rate);
        let start = Instant::from_nanos(1);
        let at = |millis| start + Nanos::from_millis(millis);
        track.handle_finished(at(6), start);
        assert!((track.pace(at(400), None) - 0.006).abs() < 1e-9);
        assert!((track.pace(at(406), Some(at(6))) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn removal_is_even_until_there_is_evidence() {
        let mut track = DriveTrack::default();
        let now = Instant::from_nanos(1);
        assert!((track.view(now, 0, None).removal - 0.5).abs() < 1e-12);
        (0..98).for_each(|_| track.handle_fate(now, false));
        assert!((track.view(now, 0, None).removal - 0.01).abs() < 1e-12);
    }
}
