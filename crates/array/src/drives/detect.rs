//! Which drives are slow, compared with their fellows, and which are *sat out* for it: not read where
//! that can be helped.
//!
//! ```text
//!            slow in two looks in a row, and the layout can spare it
//!   (in) --------------------------------------------------------------> (sat out)
//!     ^                                                                      |
//!     |   its term is over, and its probe reads are as fast as the others'   |
//!     +----------------------------------------------------------------------+
//! ```
//!
//! A drive's figure `x` is the median time of its last commands. With `M` the median of the drives'
//! figures, itself included, and `MAD` the median of their distances from `M`, a drive is slow iff
//!
//! ```text
//!   x > 3 M   and   x > M + 6 * 1.4826 MAD   and   x > 15 ms
//! ```
//!
//! There is no baseline of its own that a drive could drag along as it wears. The last condition is for
//! loads that are unlike on different drives: a drive that moves its arm for each command is slower than
//! one that reads ahead, and not to blame. Medians look past retries, which are few.
//!
//! Only reads count: a write that ends in a cache says nothing of the disk. A drive that sits out is read
//! by nobody, so the array reads a few sectors from it now and then, and only those *probes* count. The
//! term doubles with each time it comes back soon after.
//!
//! # Invariants
//!
//! - D1. Of lost drives and those that sit out there are together at most as many as the layout can lose.
//! - D2. A drive that somebody sat out by hand comes back by hand, or when the layout needs it.

use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

/// Commands whose times make up a drive's figure, at most.
const SAMPLES: usize = 32;

/// And at least, for a drive that is in; and for one that sits out.
const SAMPLES_MIN: usize = 16;
const PROBES_MIN: usize = 5;

/// Older times do not count. A drive that takes seconds for a command still has enough younger ones.
const AGE_MAX: Nanos = Nanos::from_secs(60);

/// A look at a drive after so many of its commands.
const LOOK_EVERY: u32 = 8;

/// Looks in a row that must find a drive slow.
const LOOKS: u8 = 2;

/// Slow is more than so many times the cohort's median; a drive comes back below the other.
const SLOW_TIMES: f64 = 3.0;
const ADMIT_TIMES: f64 = 2.5;

/// And more than so many deviations above it.
const DEVIATIONS: f64 = 6.0;

/// What makes a MAD a standard deviation, for a normal law.
const MAD_TO_SIGMA: f64 = 1.4826;

/// And more than the slowest arm needs, in seconds.
const SLOW_MIN: f64 = 0.015;

/// How long a drive sits out at least, the first time and at most.
const TERM: Nanos = Nanos::from_secs(5);
const TERM_MAX: Nanos = Nanos::from_secs(160);

/// A drive that comes back and is sat out again so soon gets twice the term.
const RELAPSE: Nanos = Nanos::from_secs(60);

/// Time between two probe reads of one drive.
pub(crate) const PROBE_INTERVAL: Nanos = Nanos::from_millis(250);

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
    /// A drive is slow. It is read all the same: the policy or the layout does without no drive now.
    Slow,
    /// A slow drive sits out.
    SatOut,
    /// Somebody sat it out.
    SatOutByHand,
    /// It is read again: its probes were as fast as the others' commands.
    Admitted,
    /// Somebody wanted that.
    AdmittedByHand,
    /// It is read again because another drive was lost.
    AdmittedInNeed,
    /// It has ended no command for long, although it has some: it is not read where that can be helped.
    Silent,
    /// It has ended one after all.
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
    /// It sits out already, or it does not.
    Already,
    /// The layout can do without so many drives, and does already.
    Needed {
        /// How many.
        spare: usize,
    },
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
        (median(&mut young[..count]), count)
    }
}

fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = (values.len() - 1) / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[derive(Clone, Copy, Debug)]
struct Standing {
    window: Window,
    noted: u32,
    /// Looks in a row that found it slow.
    strikes: u8,
    out: Option<Out>,
    term: Nanos,
    /// When it last came back.
    back: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Out {
    by_hand: bool,
    since: Instant,
    until: Instant,
    probe_at: Instant,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Detector {
    drives: Vec<Standing>,
    redundant: usize,
    lost: DriveSet,
    sat_out: DriveSet,
    /// Whether slow drives are sat out.
    acts: bool,
}

impl Detector {
    pub(crate) fn new(drives: usize, redundant: usize, lost: DriveSet, acts: bool) -> Self {
        let fresh = Standing {
            window: Window::EMPTY,
            noted: 0,
            strikes: 0,
            out: None,
            term: TERM,
            back: None,
        };
        let sat_out = DriveSet::EMPTY;
        Self { drives: vec![fresh; drives], redundant, lost, sat_out, acts }
    }

    /// Drives not to be read where that can be helped.
    pub(crate) fn sat_out(&self) -> DriveSet {
        self.sat_out
    }

    /// Those of them that somebody sat out.
    pub(crate) fn by_hand(&self) -> DriveSet {
        if self.sat_out.is_empty() {
            return DriveSet::EMPTY;
        }
        let is_kept =
            |drive: &DriveIdx| self.drives[drive.as_usize()].out.is_some_and(|out| out.by_hand);
        self.sat_out.iter().filter(is_kept).collect()
    }

    /// A drive took so long for a read, which was a probe or somebody's.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        busy: Nanos,
        is_probe: bool,
    ) -> Option<DriveEvent> {
        if self.lost.contains(drive) || (self.sat_out.contains(drive) && !is_probe) {
            return None;
        }
        let standing = &mut self.drives[drive.as_usize()];
        standing.window.push(now, busy.as_secs_f64());
        standing.noted += 1;
        match standing.out {
            Some(Out { by_hand: false, until, .. }) if now >= until => self.reconsider(now, drive),
            Some(_) => None,
            None if standing.noted >= LOOK_EVERY => {
                standing.noted = 0;
                self.look(now, drive)
            }
            None => None,
        }
    }

    /// Looks whether a drive that is in has become slow.
    fn look(&mut self, now: Instant, drive: DriveIdx) -> Option<DriveEvent> {
        let standing = &mut self.drives[drive.as_usize()];
        let (x, samples) = standing.window.median(now);
        if x <= SLOW_MIN {
            // Whatever the others do; so they need not be looked at.
            standing.strikes = 0;
            return None;
        }
        let (cohort, mad) = self.cohort(now, 2)?;
        let above = cohort + DEVIATIONS * MAD_TO_SIGMA * mad;
        let is_slow = samples >= SAMPLES_MIN && x > SLOW_TIMES * cohort && x > above;
        let standing = &mut self.drives[drive.as_usize()];
        standing.strikes = if is_slow { standing.strikes.saturating_add(1) } else { 0 };
        let strikes = standing.strikes;
        if strikes < LOOKS {
            return None;
        }
        let figures = figures(x, cohort, mad, samples);
        if self.acts && self.spare() > 0 {
            self.put_out(now, drive, false);
            return Some(DriveEvent { at: now, drive, kind: EventKind::SatOut, figures });
        }
        // Said once for each time it becomes slow.
        (strikes == LOOKS).then_some(DriveEvent { at: now, drive, kind: EventKind::Slow, figures })
    }

    /// Looks whether a drive that sits out may come back.
    fn reconsider(&mut self, now: Instant, drive: DriveIdx) -> Option<DriveEvent> {
        let (x, samples) = self.drives[drive.as_usize()].window.median(now);
        // An idle array has no cohort to compare with; as quick as any is quick enough.
        let (cohort, mad) = self.cohort(now, 1).unwrap_or_default();
        if samples < PROBES_MIN || (x > ADMIT_TIMES * cohort && x > SLOW_MIN) {
            return None;
        }
        self.bring_in(now, drive);
        let figures = figures(x, cohort, mad, samples);
        Some(DriveEvent { at: now, drive, kind: EventKind::Admitted, figures })
    }

    /// Median and MAD of the drives that are in and have enough to show, if there are so many.
    fn cohort(&self, now: Instant, drives_min: usize) -> Option<(f64, f64)> {
        let mut values = [0.0; DriveIdx::MAX as usize];
        let mut count = 0;
        for (at, standing) in self.drives.iter().enumerate() {
            let drive = DriveIdx::from_usize(at);
            if self.lost.contains(drive) || self.sat_out.contains(drive) {
                continue;
            }
            let (x, samples) = standing.window.median(now);
            if samples >= SAMPLES_MIN {
                values[count] = x;
                count += 1;
            }
        }
        if count < drives_min {
            return None;
        }
        let values = &mut values[..count];
        let cohort = median(values);
        values.iter_mut().for_each(|x| *x = (*x - cohort).abs());
        Some((cohort, median(values)))
    }

    /// How many more drives may sit out (D1).
    fn spare(&self) -> usize {
        self.redundant.saturating_sub(self.lost.or(self.sat_out).len() as usize)
    }

    fn put_out(&mut self, now: Instant, drive: DriveIdx, by_hand: bool) {
        let standing = &mut self.drives[drive.as_usize()];
        let relapsed = standing.back.is_some_and(|back| now.saturating_since(back) < RELAPSE);
        standing.term =
            if relapsed { Nanos::new(standing.term.get() * 2).min(TERM_MAX) } else { TERM };
        let until = now + standing.term;
        let probe_at = now + PROBE_INTERVAL;
        standing.out = Some(Out { by_hand, since: now, until, probe_at });
        standing.window = Window::EMPTY;
        self.sat_out = self.sat_out.with(drive);
    }

    fn bring_in(&mut self, now: Instant, drive: DriveIdx) {
        let standing = &mut self.drives[drive.as_usize()];
        (standing.out, standing.strikes, standing.back) = (None, 0, Some(now));
        standing.window = Window::EMPTY;
        self.sat_out = self.sat_out.without(DriveSet::EMPTY.with(drive));
    }

    /// Somebody wants a drive not to be read.
    pub(crate) fn sit_out(&mut self, now: Instant, drive: DriveIdx) -> Result<DriveEvent, Refusal> {
        if self.lost.contains(drive) {
            return Err(Refusal::Lost);
        }
        if self.drives[drive.as_usize()].out.is_some_and(|out| out.by_hand) {
            return Err(Refusal::Already);
        }
        if !self.sat_out.contains(drive) && self.spare() == 0 {
            return Err(Refusal::Needed { spare: self.redundant });
        }
        let figures = self.figures(now, drive);
        self.put_out(now, drive, true);
        Ok(DriveEvent { at: now, drive, kind: EventKind::SatOutByHand, figures })
    }

    /// Somebody wants a drive to be read again.
    pub(crate) fn admit(&mut self, now: Instant, drive: DriveIdx) -> Result<DriveEvent, Refusal> {
        if !self.sat_out.contains(drive) {
            return Err(Refusal::Already);
        }
        let figures = self.figures(now, drive);
        self.bring_in(now, drive);
        Ok(DriveEvent { at: now, drive, kind: EventKind::AdmittedByHand, figures })
    }

    /// A drive is lost: another may be needed again (D1), the one that has sat out longest, and one
    /// that somebody sat out only if there is no other.
    pub(crate) fn handle_lost(&mut self, now: Instant, drive: DriveIdx) -> Option<DriveEvent> {
        self.lost = self.lost.with(drive);
        // What it does from now on is nobody's concern.
        self.bring_in(now, drive);
        if self.lost.or(self.sat_out).len() as usize <= self.redundant {
            return None;
        }
        let merit = |drive: &DriveIdx| {
            self.drives[drive.as_usize()].out.map(|out| (out.by_hand, out.since))
        };
        let needed = self.sat_out.iter().min_by_key(merit)?;
        let figures = self.figures(now, needed);
        self.bring_in(now, needed);
        Some(DriveEvent { at: now, drive: needed, kind: EventKind::AdmittedInNeed, figures })
    }

    /// What is known of a drive's speed.
    pub(crate) fn figures(&self, now: Instant, drive: DriveIdx) -> Figures {
        let (x, samples) = self.drives[drive.as_usize()].window.median(now);
        let (cohort, mad) = self.cohort(now, 1).unwrap_or_default();
        figures(x, cohort, mad, samples)
    }

    /// When the next drive that sits out is to be probed.
    pub(crate) fn probe_at(&self) -> Option<Instant> {
        self.sat_out
            .iter()
            .filter_map(|drive| Some(self.drives[drive.as_usize()].out?.probe_at))
            .min()
    }

    /// Whether a drive is to be probed now; the next time is later.
    pub(crate) fn take_probe(&mut self, now: Instant, drive: DriveIdx) -> bool {
        match &mut self.drives[drive.as_usize()].out {
            Some(out) if out.probe_at <= now => {
                out.probe_at = now + PROBE_INTERVAL;
                true
            }
            Some(_) | None => false,
        }
    }
}

fn figures(x: f64, cohort: f64, mad: f64, samples: usize) -> Figures {
    Figures {
        median: Nanos::from_secs_f64_round(x),
        cohort_median: Nanos::from_secs_f64_round(cohort),
        cohort_mad: Nanos::from_secs_f64_round(mad),
        samples: samples as u32,
    }
}

#[cfg(test)]
mod tests;
