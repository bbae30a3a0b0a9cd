//! What the array knows of its drives: what they say, and what it sees.

use levelhead_block::Health;
use levelhead_units::{Instant, Nanos};

use crate::drives::Reader;
use crate::policy::tau::DriveView;

/// The time over which rates are averaged.
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
    /// The same over the last [`PACE_MEMORY`] commands, as if each had been alone inside the drive.
    pace: f64,
    /// Share of sectors read without retries that were not given.
    failures: Share,
    /// Mean time of what is asked again with retries, less that of other commands, once one was.
    retry_time: Option<f64>,
    /// Mean of what commands take longer than [`EXCESS`] times the median drive's pace.
    excess: f64,
}

/// The time of a retry until one was seen, in seconds: three rotations at 7200 a minute.
const RETRY_TIME_AT_FIRST: f64 = 0.025;

/// Retries whose mean is kept.
const RETRY_MEMORY: f64 = 16.0;

/// The time by which a command takes longer than this multiple of the median drive's pace is its excess.
const EXCESS: f64 = 3.0;

/// Commands over which the mean excess is kept.
const EXCESS_MEMORY: f64 = 128.0;

/// A share that is learnt; what comes later replaces what was learnt before.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    hits: f64,
    trials: f64,
}

/// The number of sectors over which the share is learnt: a share of 2 % is then known to a tenth of itself.
const TRIALS_MAX: f64 = 4096.0;

/// The number of sectors without failure that is assumed at first, so that an unknown drive counts as a good one.
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

/// A probe counts as this number of commands: of a drive that is not read nothing else is heard.
const PROBE_COUNTS: f64 = 4.0;

/// A drive that has worked on one command for `t` is taken to need at least `t` divided by this for a command.
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

/// The share of a count that is left after `age`.
fn left(age: Nanos) -> f64 {
    // Several counts are asked for at the time of the last change.
    if age == Nanos::ZERO { 1.0 } else { (-age.as_secs_f64() / MEMORY.as_secs_f64()).exp() }
}

/// The time of a command in a drive that has `n` commands to choose from, the index, divided by that of a single
/// command: `n` to the power of -0.26, which is what the shipped profiles do under shortest positioning time first.
/// A drive that serves its commands in another order is taken for faster than it is while it has many.
const CHOICE: [f64; 33] = [
    1.000, 1.000, 0.835, 0.752, 0.697, 0.658, 0.628, 0.603, 0.582, 0.565, 0.550, 0.536, 0.524,
    0.513, 0.504, 0.495, 0.486, 0.479, 0.472, 0.465, 0.459, 0.453, 0.448, 0.443, 0.438, 0.433,
    0.429, 0.424, 0.420, 0.417, 0.413, 0.409, 0.406,
];

fn choice(commands: usize) -> f64 {
    CHOICE[commands.min(CHOICE.len() - 1)]
}

/// What a drive has to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// Commands waiting for it or inside it.
    pub(crate) queued: usize,
    /// Commands inside it.
    pub(crate) inside: usize,
    /// Since when it has had something to do.
    pub(crate) since: Option<Instant>,
}

impl DriveTrack {
    pub(crate) fn handle_health(&mut self, said: Health) {
        self.said = said;
    }

    pub(crate) fn handle_asked(&mut self, now: Instant) {
        self.arrivals.add(now, 1.0);
    }

    /// A command was withdrawn, and does not count as an arrival any more.
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

    /// A command that went into the drive at `started` has ended; with it, `inside` commands were in the drive.
    pub(crate) fn handle_finished(
        &mut self,
        now: Instant,
        started: Instant,
        inside: usize,
        reader: Reader,
    ) {
        // With several commands inside, the drive turned to this one when it was through with the
        // one before.
        let busy = now.saturating_since(started.max(self.finished_last)).as_secs_f64();
        self.finished_last = now;
        let alone = busy / choice(inside);
        if self.service_time.is_none() {
            self.pace = alone;
        }
        let memory = match reader {
            Reader::Operation => PACE_MEMORY,
            Reader::None => PACE_MEMORY / PROBE_COUNTS,
        };
        self.pace += (alone - self.pace) / memory;
        let mean = self.service_time.get_or_insert(busy);
        *mean += (busy - *mean) / 64.0;
    }

    /// A command took `busy`, where the median drive takes `usual` seconds for one.
    pub(crate) fn handle_busy(&mut self, busy: Nanos, usual: f64) {
        let excess = (busy.as_secs_f64() - EXCESS * usual).max(0.0);
        self.excess += (excess - self.excess) / EXCESS_MEMORY;
    }

    /// A read with retries of sectors that were not given without them took `busy`.
    pub(crate) fn handle_retried(&mut self, busy: Nanos) {
        let time = (busy.as_secs_f64() - self.pace).max(0.0);
        let mean = self.retry_time.get_or_insert(time);
        *mean += (time - *mean) / RETRY_MEMORY;
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

    /// The predicted time of one command more, in seconds, from the times of the last commands; longer if the drive
    /// has worked on the same command for long ([`SILENCE`]).
    pub(crate) fn pace(&self, now: Instant, work: Work) -> f64 {
        self.pace_alone(now, work) * choice(work.inside + 1)
    }

    /// The same if the drive had no other command inside.
    fn pace_alone(&self, now: Instant, work: Work) -> f64 {
        let silent = work.since.map_or(Nanos::ZERO, |since| self.busy(now, since));
        self.pace.max(silent.as_secs_f64() / SILENCE / choice(work.inside + 1))
    }

    pub(crate) fn view(&self, now: Instant, work: Work) -> DriveView {
        let secs = |time: Option<Nanos>| time.map(Nanos::as_secs_f64);
        // Over less than the memory since the start, the mean is over what there was.
        let memories = now.as_nanos() as f64 / MEMORY.get() as f64;
        // From 38 memories on the exponential is lost in the rounding of 1.
        let begun = if memories < 40.0 { 1.0 - (-memories).exp() } else { 1.0 };
        let span = MEMORY.as_secs_f64() * begun;
        let rate = if span > 0.0 { self.arrivals.at(now) / span } else { 0.0 };
        DriveView {
            queued: work.queued as f64,
            arrival_rate: rate,
            // Laplace's rule of succession, so that a mode never tried is not ruled out.
            removal: (self.removed.at(now) + 1.0) / (self.asked.at(now) + 2.0),
            retry_rate: self.said.retry_rate.map_or(0.0, levelhead_units::Ratio::get),
            retry_latency: secs(self.said.retry_latency_mean).unwrap_or(0.0),
            service_time: secs(self.said.service_time_mean).or(self.service_time).unwrap_or(0.0),
            pace: self.pace(now, work),
            pace_alone: self.pace_alone(now, work),
            failure_rate: self.failures.get(),
            retry_time: secs(self.said.retry_latency_mean)
                .filter(|&time| time > 0.0)
                .or(self.retry_time)
                .unwrap_or(RETRY_TIME_AT_FIRST),
            excess: self.excess,
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
        assert!((track.view(now, Work::default()).arrival_rate - 125.0).abs() < 2.0);
        let later = now + Nanos::from_secs(20);
        assert!(track.view(later, Work::default()).arrival_rate < 0.1);
    }

    #[test]
    fn what_a_drive_says_goes_before_what_is_inferred() {
        let mut track = DriveTrack::default();
        let start = Instant::from_nanos(5_000_000);
        track.handle_finished(start + Nanos::from_millis(12), start, 1, Reader::Operation);
        let view = track.view(start + Nanos::from_millis(12), Work::default());
        assert!((view.service_time - 0.012).abs() < 1e-9);
        let service_time_mean = Some(Nanos::from_millis(9));
        track.handle_health(Health { service_time_mean, ..Health::default() });
        assert!((track.view(start, Work::default()).service_time - 0.009).abs() < 1e-9);
    }

    #[test]
    fn failures_are_learnt_and_silence_tells() {
        let mut track = DriveTrack::default();
        (0..5_000).for_each(|n| track.handle_fast_read(usize::from(n % 25 == 0), 2));
        let view = track.view(Instant::from_nanos(1), Work::default());
        assert!((view.failure_rate - 0.02).abs() < 0.002, "{}", view.failure_rate);
        let start = Instant::from_nanos(1);
        let at = |millis| start + Nanos::from_millis(millis);
        track.handle_finished(at(6), start, 1, Reader::Operation);
        assert!((track.pace(at(400), Work::default()) - 0.006).abs() < 1e-9);
        assert!(
            (track.pace(at(406), Work { since: Some(at(6)), ..Work::default() }) - 0.1).abs()
                < 1e-9
        );
    }

    #[test]
    fn removal_is_even_until_there_is_evidence() {
        let mut track = DriveTrack::default();
        let now = Instant::from_nanos(1);
        assert!((track.view(now, Work::default()).removal - 0.5).abs() < 1e-12);
        (0..98).for_each(|_| track.handle_fate(now, false));
        assert!((track.view(now, Work::default()).removal - 0.01).abs() < 1e-12);
    }
}
