//! Which drives are late with their parts of one read, and when the read looks again.
//!
//! | measure | a drive is late when it has not answered after |
//! |---|---|
//! | never | - |
//! | times the median | some multiple of the median time of the drives that were asked first `[TAIL16]` |
//! | slow | a time that its queue does not explain, or twice the 99th percentile of all commands, if it has ended nothing meanwhile |
//!
//! A read does not count on a late drive any more, but still uses what the drive brings. How far drives usually
//! are behind the median of their fellows is learnt from every read.

use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

use crate::core::Core;
use crate::ops::fetch::{Asked, Fetch};
use crate::policy::{Late, tolerant};

/// A read looks for stuck drives after this multiple of the 99th percentile of all commands, and again after twice
/// that time.
const LOOK_TAILS: u64 = 2;

/// The shortest time between two looks at drives that are late by the median of their fellows.
const LOOK_AGAIN_MIN: Nanos = Nanos::from_millis(1);

/// The 99th percentile of all commands is taken to be no more than this, and as much before it is known: no read waits a whole
/// second for a drive that hangs.
const TAIL_MAX: Nanos = Nanos::from_millis(400);

/// A drive is far behind its fellows when what it takes beyond their median exceeds this multiple of the usual
/// excess, and of the square of the queues' length: what is asked for instead joins those queues.
const FAR_BEHIND: f64 = 2.5;

/// The usual excess over the median is taken to be no less than this part of the median.
const USUAL_MIN: f64 = 0.25;

/// The largest multiple of the median that is waited for, also while the usual excess is not known.
const BEHIND_MAX: f64 = 1e6;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    began: Instant,
    measure: Measure,
    /// The drives that were asked first.
    asked: DriveSet,
    /// Those of them that have answered, in order.
    answered: Vec<Answered>,
    late: DriveSet,
    /// Those of them that are silent or stuck, and not only behind their fellows.
    stuck: DriveSet,
    /// When to look which drives are late, once that is known.
    deadline: Option<Instant>,
}

/// By what a drive is late.
#[derive(Clone, Copy, Debug)]
enum Measure {
    Never,
    TimesMedian(u8),
    /// The same, but it is waited for, and later reads hear of it.
    Noted(u8),
    Slow {
        /// How long a drive may end nothing.
        patience: Nanos,
        /// When drives are looked at next, from when they were asked.
        look: Nanos,
        /// When those that were asked first are late, by what their fellows took, once that is known.
        behind: Option<Instant>,
    },
}

/// A drive that has given its part, and how long it took.
#[derive(Clone, Copy, Debug)]
struct Answered {
    drive: DriveIdx,
    took: Nanos,
}

impl Lateness {
    /// Of no read.
    pub(crate) fn none() -> Self {
        Self {
            began: Instant::ZERO,
            measure: Measure::Never,
            asked: DriveSet::EMPTY,
            answered: Vec::new(),
            late: DriveSet::EMPTY,
            stuck: DriveSet::EMPTY,
            deadline: None,
        }
    }

    /// Of a read that has not asked any drive yet, in the memory of another one's. Drives that are silent are late from
    /// the start.
    pub(crate) fn renew(&mut self, core: &Core, now: Instant, late: Late) {
        self.measure = match late {
            Late::Never => Measure::Never,
            Late::TimesMedian(times) => Measure::TimesMedian(times),
            Late::Noted(times) => Measure::Noted(times),
            Late::WhenSlow => {
                let tail = core.drives.tail().map_or(TAIL_MAX, |tail| tail.min(TAIL_MAX));
                let patience = tail * LOOK_TAILS;
                Measure::Slow { patience, look: patience, behind: None }
            }
        };
        self.answered.clear();
        (self.began, self.deadline) = (now, None);
        (self.asked, self.late) = (DriveSet::EMPTY, core.drives.silent());
        self.stuck = self.late;
    }

    /// The first commands have been asked for.
    pub(crate) fn note_asked(&mut self, core: &Core, fetch: &Fetch) {
        self.asked = fetch.pending_drives();
        self.expect(core, fetch);
    }

    /// Drives that did not answer in time.
    pub(crate) fn late(&self) -> DriveSet {
        self.late
    }

    /// Those of them that are not waited for where retries would do.
    pub(crate) fn hopeless(&self) -> DriveSet {
        match self.measure {
            Measure::Slow { .. } => self.stuck,
            Measure::Never | Measure::TimesMedian(_) | Measure::Noted(_) => self.late,
        }
    }

    /// When [`Lateness::handle_timeout`] has something to do, if that is known.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// These drives are silent, and so they are late.
    pub(crate) fn note_silent(&mut self, silent: DriveSet) {
        (self.late, self.stuck) = (self.late.or(silent), self.stuck.or(silent));
    }

    /// A drive has ended a command of the read's, and is not lost.
    pub(crate) fn handle_done(
        &mut self,
        core: &Core,
        now: Instant,
        fetch: &Fetch,
        drive: DriveIdx,
    ) {
        let is_known = self.answered.iter().any(|known| known.drive == drive);
        let is_through = !fetch.pending_drives().contains(drive);
        if !is_known && self.asked.contains(drive) && is_through {
            self.answered.push(Answered { drive, took: now.saturating_since(self.began) });
            self.expect(core, fetch);
        }
        if is_through {
            // It answers: where others are late, too, it is asked for what it was not asked for before.
            let only = DriveSet::EMPTY.with(drive);
            (self.late, self.stuck) = (self.late.without(only), self.stuck.without(only));
        }
    }

    /// The deadline has come.
    pub(crate) fn handle_timeout(&mut self, core: &Core, now: Instant, fetch: &Fetch) {
        self.deadline = None;
        let Measure::Slow { patience, look, behind } = self.measure else {
            let pending = fetch.pending_drives();
            let late = pending.without(self.only_queued(core, now));
            self.late = self.late.or(late);
            if late.is_empty() && !pending.is_empty() {
                let waited = now.saturating_since(self.began);
                self.deadline = Some(now + waited.max(LOOK_AGAIN_MIN));
            }
            return;
        };
        let is_behind = behind.is_some_and(|behind| behind <= now);
        // A long queue alone makes a wait long. So the drive must also have ended nothing, or many other
        // commands.
        let is_stuck =
            |sub: &Asked| sub.asked + patience <= now && core.is_stuck(now, sub.id, patience);
        let is_late = |sub: &&Asked| is_stuck(sub) || (is_behind && sub.asked == self.began);
        let overdue = fetch.subs.iter().filter(is_late);
        self.late = self.late.or(overdue.map(|sub| sub.drive).collect());
        let stuck = fetch.subs.iter().filter(|sub| is_stuck(sub));
        self.stuck = self.stuck.or(stuck.map(|sub| sub.drive).collect());
        if fetch.subs.iter().any(|sub| sub.asked + look <= now) {
            self.measure = Measure::Slow { patience, look: look * 2, behind };
        }
        self.watch(fetch);
    }

    /// Commands were asked for: sets the deadline to the time when the next drive may be late, or one that is behind may
    /// be stuck.
    pub(crate) fn watch(&mut self, fetch: &Fetch) {
        let Measure::Slow { look, behind, .. } = self.measure else { return };
        let in_time = fetch.subs.iter().filter(|sub| !self.stuck.contains(sub.drive));
        let late_at = |sub: &Asked| {
            let is_late = self.late.contains(sub.drive);
            let behind = behind.filter(|_| sub.asked == self.began && !is_late);
            behind.map_or(sub.asked + look, |behind| behind.min(sub.asked + look))
        };
        self.deadline = in_time.map(late_at).min();
    }

    /// Finds out when drives are late, if that depends on the times of their fellows.
    fn expect(&mut self, core: &Core, fetch: &Fetch) {
        match self.measure {
            Measure::TimesMedian(_) if self.late.is_empty() && self.deadline.is_none() => {
                self.deadline = self.due(core);
            }
            Measure::Slow { patience, look, behind: None } => {
                let behind = self.behind(core);
                self.measure = Measure::Slow { patience, look, behind };
                self.watch(fetch);
            }
            Measure::Never
            | Measure::TimesMedian(_)
            | Measure::Noted(_)
            | Measure::Slow { behind: Some(_), .. } => {}
        }
    }

    /// When a drive is far behind its fellows, once half of them have answered.
    fn behind(&self, core: &Core) -> Option<Instant> {
        let usual = core.drives.spread().unwrap_or(f64::INFINITY) - 1.0;
        self.fellows().map(|median| {
            let queues = (core.drives.mean_queue() + 1.0).powi(2);
            let times = 1.0 + FAR_BEHIND * queues * usual.max(USUAL_MIN);
            let secs = median.as_secs_f64() * times.min(BEHIND_MAX);
            self.began + Nanos::from_secs_f64_round(secs)
        })
    }

    /// The median time of the drives that were asked first, once half of them have answered.
    fn fellows(&self) -> Option<Nanos> {
        let rank = tolerant::rank(self.asked.len() as usize)?;
        self.answered.get(rank).map(|answered| answered.took)
    }

    /// When a drive is late by the measure of `[TAIL16]`, if it is known.
    fn due(&self, core: &Core) -> Option<Instant> {
        let (Measure::TimesMedian(times) | Measure::Noted(times)) = self.measure else {
            return None;
        };
        let has_fellows = tolerant::rank(self.asked.len() as usize).is_some();
        let median = if has_fellows { self.fellows() } else { core.drives.median() };
        median.map(|median| self.began + median * u64::from(times))
    }

    /// Drives that this read does not call late. A read of three drives or more compares each with the others, so
    /// there is none. A read of one or two drives calls only those late that are slower than the array's other
    /// drives.
    fn only_queued(&self, core: &Core, now: Instant) -> DriveSet {
        match tolerant::rank(self.asked.len() as usize) {
            Some(_) => DriveSet::EMPTY,
            None => self.asked.without(core.drives.slower(now, f64::from(tolerant::SLOW_TIMES))),
        }
    }

    /// Learns from this read how far drives usually are behind the median of their fellows. Of drives that have not
    /// answered it is known only that they take longer than the read has taken until now.
    pub(crate) fn note_spread(&self, core: &mut Core, now: Instant, fetch: &Fetch) {
        let Some(median) = self.fellows().filter(|&median| median > Nanos::ZERO) else { return };
        let times = |time: Nanos| time.as_secs_f64() / median.as_secs_f64();
        for answered in &self.answered {
            core.drives.note_spread(times(answered.took));
        }
        let waited = times(now.saturating_since(self.began));
        let left = fetch.subs.iter().filter(|sub| sub.asked == self.began).count();
        if core.drives.spread().is_some_and(|usual| waited > usual) {
            (0..left).for_each(|_| core.drives.note_spread(waited));
        }
    }

    /// Notes which drives were late, now that the read is answered. Returns the time after which the drives that
    /// have not answered are late, if they are to be noted, too.
    pub(crate) fn note_late(&self, core: &mut Core, now: Instant) -> Option<Instant> {
        let due = self.due(core)?;
        let only_queued = self.only_queued(core, now);
        for &Answered { drive, took } in &self.answered {
            let is_late = self.began + took > due && !only_queued.contains(drive);
            core.drives.note_late(drive, is_late);
        }
        only_queued.is_empty().then_some(due)
    }
}
