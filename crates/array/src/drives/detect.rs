//! Which drives are slow, compared with their fellows. What follows from it is [`standing`](super::standing)'s.
//!
//! A drive's figure `x` is the median time of its last commands. With `M` the median of the drives'
//! figures, itself included, and `MAD` the median of their distances from `M`, a drive is slow iff
//!
//! ```text
//!   x > 3 M   and   x > M + 6 * 1.4826 MAD   and   x > 15 ms
//! ```
//!
//! A drive is not compared with its own past, because it may become slower little by little. The last condition
//! is for loads that differ from drive to drive: a drive that moves its arm for each command is slower than one
//! that reads ahead, and is not at fault. Retries are few and hardly change a median.
//!
//! Only reads count: a write that ends in a cache says nothing of the disk. No client's read goes to a drive
//! that sits out, so the array reads a few sectors from it now and then, and only those *probes* count.
//!
//! What it leaves out: whether the layout can spare a drive, and for how long one sits out.

use levelhead_stats::{distances_from, low_median_of};
use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

/// Commands whose times make up a drive's figure, at most.
const SAMPLES: usize = 32;

/// The least number of such commands for a drive that is read, and of probes for one that sits out.
const SAMPLES_MIN: usize = 16;
const PROBES_MIN: usize = 5;

/// Older times do not count. A drive that takes seconds for a command still has enough younger ones.
pub(crate) const AGE_MAX: Nanos = Nanos::from_secs(60);

/// Commands of a drive between two looks at it.
const LOOK_EVERY: u32 = 8;

/// Looks in a row that must find a drive slow.
const LOOKS: u8 = 2;

/// A drive is slow whose median is more than the first multiple of the cohort's median; one that sits out is quick
/// again at or below the second.
const SLOW_TIMES: f64 = 3.0;
const ADMIT_TIMES: f64 = 2.5;

/// The second condition: the drive's median is more than this number of standard deviations above the cohort's.
const DEVIATIONS: f64 = 6.0;

/// The standard deviation of a normal law divided by its MAD.
const MAD_TO_SIGMA: f64 = 1.4826;

/// The third condition: the drive's median is more than this, in seconds, which is as long as the slowest arm takes.
const SLOW_MIN: f64 = 0.015;

/// The numbers behind an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The median time of the drive's last commands.
    pub median: Nanos,
    /// The median of the drives' medians.
    pub cohort_median: Nanos,
    /// The median of their distances from it.
    pub cohort_mad: Nanos,
    /// Commands of the drive that were looked at.
    pub samples: u32,
}

/// Something happened to a drive's standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveEvent {
    /// When.
    pub at: Instant,
    /// Which drive.
    pub drive: DriveIdx,
    /// What.
    pub kind: EventKind,
    /// The numbers that caused it.
    pub figures: Figures,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A drive is slow. It is read all the same: the policy sits out no drive, or the layout can spare none now.
    Slow,
    /// A slow drive sits out.
    SatOut,
    /// An operator sat it out.
    SatOutByHand,
    /// It is read again: its probes were as fast as the others' commands.
    Admitted,
    /// An operator wanted it to be read again.
    AdmittedByHand,
    /// It is read again because another drive was lost.
    AdmittedInNeed,
    /// It has ended no command for long, although it has some: it is not read where that can be helped.
    Silent,
    /// A silent drive has ended a command.
    Heard,
}

impl EventKind {
    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::SatOut => "sat-out",
            Self::SatOutByHand => "sat-out-by-hand",
            Self::Admitted => "admitted",
            Self::AdmittedByHand => "admitted-by-hand",
            Self::AdmittedInNeed => "admitted-in-need",
            Self::Silent => "silent",
            Self::Heard => "heard",
        }
    }
}

/// Why a drive cannot be sat out or admitted by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is lost.
    Lost,
    /// It sits out already, or it does not sit out and so cannot be admitted.
    Already,
    /// The layout can do without `spare` drives, and does without that number already.
    Needed {
        /// How many.
        spare: usize,
    },
    /// It has nothing but a ring of the journal, and is not read.
    Journal,
}

/// The times of a drive's last commands.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// When, and how long.
    samples: [(Instant, f64); SAMPLES],
    count: usize,
    next: usize,
}

impl Window {
    const EMPTY: Self = Self { samples: [(Instant::ZERO, 0.0); SAMPLES], count: 0, next: 0 };

    fn push(&mut self, now: Instant, secs: f64) {
        self.samples[self.next] = (now, secs);
        self.next = (self.next + 1) % SAMPLES;
        self.count = (self.count + 1).min(SAMPLES);
    }

    /// The median and the number of samples that are young enough.
    fn median(&self, now: Instant) -> (f64, usize) {
        let mut young = [0.0; SAMPLES];
        let mut count = 0;
        for &(at, secs) in &self.samples[..self.count] {
            if now.saturating_since(at) <= AGE_MAX {
                young[count] = secs;
                count += 1;
            }
        }
        (if count == 0 { 0.0 } else { low_median_of(&mut young[..count]) }, count)
    }

    /// Whether the median is no more than this number of seconds, which is so where at least half of the young samples
    /// are: counting them takes less than finding the median.
    fn is_median_within(&self, now: Instant, most: f64) -> bool {
        let samples = self.samples[..self.count].iter();
        let young = samples.filter(|(at, _)| now.saturating_since(*at) <= AGE_MAX);
        let (within, beyond) = young.fold((0, 0), |(within, beyond), &(_, secs)| {
            if secs <= most { (within + 1, beyond) } else { (within, beyond + 1) }
        });
        within >= beyond
    }
}

/// What was seen of one drive's speed.
#[derive(Clone, Copy, Debug)]
struct Seen {
    window: Window,
    /// Commands since the last look.
    noted: u32,
    /// Looks in a row that found it slow.
    strikes: u8,
}

impl Seen {
    const NOTHING: Self = Self { window: Window::EMPTY, noted: 0, strikes: 0 };
}

/// A look at a drive that has found it slow often enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundSlow {
    pub(crate) figures: Figures,
    /// Whether no look since it was quick has found that before.
    pub(crate) is_new: bool,
}

/// Median and MAD of the drives' figures, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Cohort {
    median: f64,
    mad: f64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    drives: Vec<Seen>,
}

impl Detector {
    pub(crate) fn new(drives: usize) -> Self {
        Self { drives: vec![Seen::NOTHING; drives] }
    }

    /// A drive took `busy` for a read.
    pub(crate) fn note(&mut self, now: Instant, drive: DriveIdx, busy: Nanos) {
        let seen = &mut self.drives[drive.as_usize()];
        seen.window.push(now, busy.as_secs_f64());
        seen.noted += 1;
    }

    /// Nothing that was seen of a drive counts any more.
    pub(crate) fn forget(&mut self, drive: DriveIdx) {
        let seen = &mut self.drives[drive.as_usize()];
        (seen.window, seen.strikes) = (Window::EMPTY, 0);
    }

    /// Looks whether a drive has become slow, compared with `fellows`, itself included; at every eighth of its
    /// commands.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        fellows: DriveSet,
    ) -> Option<FoundSlow> {
        let seen = &mut self.drives[drive.as_usize()];
        if seen.noted < LOOK_EVERY {
            return None;
        }
        seen.noted = 0;
        if seen.window.is_median_within(now, SLOW_MIN) {
            // It is not slow whatever the others do, so they need not be looked at.
            seen.strikes = 0;
            return None;
        }
        let (x, samples) = seen.window.median(now);
        let cohort = self.cohort(now, fellows, 2)?;
        let above = cohort.median + DEVIATIONS * MAD_TO_SIGMA * cohort.mad;
        let is_slow = samples >= SAMPLES_MIN && x > SLOW_TIMES * cohort.median && x > above;
        let seen = &mut self.drives[drive.as_usize()];
        seen.strikes = if is_slow { seen.strikes.saturating_add(1) } else { 0 };
        let found =
            FoundSlow { figures: figures(x, cohort, samples), is_new: seen.strikes == LOOKS };
        (seen.strikes >= LOOKS).then_some(found)
    }

    /// The figures of a drive whose probes are as fast as the commands of `fellows`.
    pub(crate) fn look_at_probes(
        &self,
        now: Instant,
        drive: DriveIdx,
        fellows: DriveSet,
    ) -> Option<Figures> {
        let (x, samples) = self.drives[drive.as_usize()].window.median(now);
        // An idle array has no cohort to compare with: there the drive must be quicker than `SLOW_MIN`.
        let cohort = self.cohort(now, fellows, 1).unwrap_or_default();
        let is_quick = x <= ADMIT_TIMES * cohort.median || x <= SLOW_MIN;
        (samples >= PROBES_MIN && is_quick).then(|| figures(x, cohort, samples))
    }

    /// What is known of a drive's speed, beside that of `fellows`.
    pub(crate) fn figures(&self, now: Instant, drive: DriveIdx, fellows: DriveSet) -> Figures {
        let (x, samples) = self.drives[drive.as_usize()].window.median(now);
        figures(x, self.cohort(now, fellows, 1).unwrap_or_default(), samples)
    }

    /// Median and MAD of those of `fellows` that have enough to show, if they are at least `drives_min`.
    fn cohort(&self, now: Instant, fellows: DriveSet, drives_min: usize) -> Option<Cohort> {
        let mut values = [0.0; DriveIdx::MAX as usize];
        let mut count = 0;
        for drive in fellows.iter() {
            let (x, samples) = self.drives[drive.as_usize()].window.median(now);
            if samples >= SAMPLES_MIN {
                values[count] = x;
                count += 1;
            }
        }
        if count < drives_min.max(1) {
            return None;
        }
        let values = &mut values[..count];
        let median = low_median_of(values);
        distances_from(median, values);
        Some(Cohort { median, mad: low_median_of(values) })
    }
}

fn figures(x: f64, cohort: Cohort, samples: usize) -> Figures {
    Figures {
        median: Nanos::from_secs_f64_round(x),
        cohort_median: Nanos::from_secs_f64_round(cohort.median),
        cohort_mad: Nanos::from_secs_f64_round(cohort.mad),
        samples: samples as u32,
    }
}
