//! How the array stands with each of its drives while it runs. It is decided here and nowhere else; what has
//! been recorded of a drive is its [`Membership`](crate::meta::membership::Membership).
//!
//! ```text
//!                 found slow, and the layout can spare it
//!   CountedOn -----------------------------------------------> SatOut
//!     ^  ^  <-- its term is over, its probes are quick; needed ---+
//!     |  |                                                        |
//!     |  +-- an operator admits it; needed --  SatOutByHand <-----+  an operator wants it, from either
//!     |
//!     +--- any of them ---> Lost <-- its place gets a new drive, which is filled --+
//!     |                      +---------------------------------------------------+
//!     +-- the new drive holds everything
//!
//!   and of any drive that is not lost:   (heard) <--- ended a command / ended none for long ---> silent
//! ```
//!
//! Silent and aside are no standings: a drive has its standing besides. A *silent* drive keeps its standing, which
//! counts again as soon as it ends a command. Drives that are *aside* are those that one read does
//! without; the next read chooses again. Of them it is remembered that nothing may be heard, so that they are probed.
//!
//! The term of a drive that sits out doubles with each time it comes back and is found slow again soon after.
//!
//! # Invariants
//!
//! - D1. The layout survives the loss of all lost drives together with those that sit out, unless it does not survive
//!   that of the lost ones. It survives that of the lost drives and those that a read sets aside, too.
//! - D2. A drive that sits out by hand comes back by hand, or when the layout needs it.
//! - D4. A drive that is being filled counts as lost, and is the only one of these that is given commands.
//! - D3. A lost drive does not sit out, is not set aside, is not overdue and is not probed. That it is silent
//!   still counts for the end of the array, which does not wait for commands inside silent drives.

use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

use super::detect::{Detector, DriveEvent, EventKind, Figures, FoundSlow, Refusal};
use crate::shape::{Losses, Spec};

/// How long a drive sits out at least, the first time and at most.
const TERM: Nanos = Nanos::from_secs(5);
const TERM_MAX: Nanos = Nanos::from_secs(160);

/// A drive that is sat out again within this time of its coming back gets twice the term.
const RELAPSE: Nanos = Nanos::from_secs(60);

/// Time between two probe reads of one drive.
pub(crate) const PROBE_INTERVAL: Nanos = Nanos::from_millis(250);

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Reads may ask it.
    CountedOn,
    /// It was found slow: it is not read while others suffice.
    SatOut(Term),
    /// The same, because an operator wants it.
    SatOutByHand(Term),
    /// The array does without it.
    Lost,
}

/// For how long a drive sits out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
    since: Instant,
    /// It does not come back by itself before.
    until: Instant,
    probe_at: Instant,
}

/// One drive's standing, and what the next term depends on.
#[derive(Clone, Copy, Debug)]
struct Record {
    standing: Standing,
    /// The length of the last term.
    term: Nanos,
    /// When it last came back.
    back: Option<Instant>,
}

/// What a policy does about slow drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Practice {
    /// They sit out.
    SitOut,
    /// They are named, and read all the same.
    Name,
}

/// The standings of an array's drives.
#[derive(Clone, Debug)]
pub(crate) struct Standings {
    records: Vec<Record>,
    detector: Detector,
    spec: Spec,
    practice: Practice,
    // Sets of what the records say, kept because they are asked for at every read.
    lost: DriveSet,
    /// Those of the lost ones that are being filled.
    filling: DriveSet,
    sat_out: DriveSet,
    silent: DriveSet,
    /// Drives that have been silent for [`Patience::lost`](super::silence::Patience::lost), and are to be lost.
    overdue: DriveSet,
    /// Drives that reads did without and of which nothing has been heard since.
    stale: DriveSet,
}

impl Standings {
    pub(crate) fn new(spec: Spec, lost: DriveSet, practice: Practice) -> Self {
        let (drives, none) = (spec.members(), DriveSet::EMPTY);
        let record = |at| {
            let is_lost = lost.contains(DriveIdx::from_usize(at));
            let standing = if is_lost { Standing::Lost } else { Standing::CountedOn };
            Record { standing, term: TERM, back: None }
        };
        Self {
            records: (0..drives).map(record).collect(),
            detector: Detector::new(drives),
            spec,
            practice,
            lost,
            filling: none,
            sat_out: none,
            silent: none,
            overdue: none,
            stale: none,
        }
    }

    fn all(&self) -> DriveSet {
        DriveSet::first(self.records.len() as u8)
    }

    /// The array's shape.
    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Drives that the array does without.
    pub(crate) fn lost(&self) -> DriveSet {
        self.lost
    }

    /// Those of them that have data.
    pub(crate) fn lost_data(&self) -> DriveSet {
        self.lost.and(self.spec.data_drives())
    }

    /// All others.
    pub(crate) fn present(&self) -> DriveSet {
        self.all().without(self.lost)
    }

    /// Lost drives whose place has a drive that is being filled (D4).
    pub(crate) fn filling(&self) -> DriveSet {
        self.filling
    }

    /// The place of a lost drive has a drive that is being filled.
    pub(crate) fn begin_filling(&mut self, drive: DriveIdx) {
        assert!(self.lost.contains(drive), "D4: drive {drive} is not lost");
        self.filling = self.filling.with(drive);
        self.silent = self.silent.without(self.filling);
        self.check();
    }

    /// A drive that was being filled holds everything, and counts.
    pub(crate) fn end_filling(&mut self, now: Instant, drive: DriveIdx) {
        assert!(self.filling.contains(drive), "D4: drive {drive} is not being filled");
        let only = DriveSet::EMPTY.with(drive);
        (self.lost, self.filling) = (self.lost.without(only), self.filling.without(only));
        self.bring_in(now, drive);
        self.check();
    }

    /// How many more drives the layout can lose, whichever they are.
    pub(crate) fn spare(&self) -> usize {
        self.spec.redundant().saturating_sub(self.lost_data().len() as usize)
    }

    /// What is lost of its layout.
    pub(crate) fn losses(&self) -> Losses {
        Losses { spec: self.spec, lost: self.lost }
    }

    /// Whether the layout survives the loss of these drives, too.
    pub(crate) fn can_spare(&self, drives: DriveSet) -> bool {
        self.losses().can_spare(drives)
    }

    /// Whether more drives are lost than the layout survives.
    pub(crate) fn has_failed(&self) -> bool {
        !self.can_spare(DriveSet::EMPTY)
    }

    /// Drives that sit out.
    pub(crate) fn sat_out(&self) -> DriveSet {
        self.sat_out
    }

    /// Those of them that an operator sat out.
    pub(crate) fn by_hand(&self) -> DriveSet {
        let is_by_hand = |drive: &DriveIdx| matches!(self.of(*drive), Standing::SatOutByHand(_));
        self.sat_out.iter().filter(is_by_hand).collect()
    }

    /// Drives that have ended nothing for long.
    pub(crate) fn silent(&self) -> DriveSet {
        self.silent
    }

    /// Those of them that are to be lost.
    pub(crate) fn overdue(&self) -> DriveSet {
        self.overdue
    }

    /// Drives that are to be probed when nothing is heard of them.
    pub(crate) fn stale(&self) -> DriveSet {
        self.stale
    }

    /// What is known of a drive's speed.
    pub(crate) fn figures(&self, now: Instant, drive: DriveIdx) -> Figures {
        self.detector.figures(now, drive, self.fellows())
    }

    fn of(&self, drive: DriveIdx) -> Standing {
        self.records[drive.as_usize()].standing
    }

    /// Drives whose speed the others are compared with.
    fn fellows(&self) -> DriveSet {
        self.present().and(self.spec.data_drives()).without(self.sat_out)
    }

    /// A drive took `busy` for a read, which was a probe or a client's.
    pub(crate) fn note_read(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        busy: Nanos,
        is_probe: bool,
    ) -> Option<DriveEvent> {
        match self.of(drive) {
            // A drive for the journal is of another kind than the others.
            _ if !self.spec.data_drives().contains(drive) => None,
            Standing::Lost => None,
            Standing::SatOut(_) | Standing::SatOutByHand(_) if !is_probe => None,
            Standing::CountedOn => {
                self.detector.note(now, drive, busy);
                let found = self.detector.look(now, drive, self.fellows())?;
                self.handle_slow(now, drive, found)
            }
            Standing::SatOut(term) => {
                self.detector.note(now, drive, busy);
                if now < term.until {
                    return None;
                }
                let figures = self.detector.look_at_probes(now, drive, self.fellows())?;
                self.bring_in(now, drive);
                Some(DriveEvent { at: now, drive, kind: EventKind::Admitted, figures })
            }
            Standing::SatOutByHand(_) => {
                self.detector.note(now, drive, busy);
                None // D2
            }
        }
    }

    fn handle_slow(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        found: FoundSlow,
    ) -> Option<DriveEvent> {
        let FoundSlow { figures, is_new } = found;
        if self.practice == Practice::SitOut && self.can_sit_out(drive) {
            self.put_out(now, drive, Standing::SatOut);
            return Some(DriveEvent { at: now, drive, kind: EventKind::SatOut, figures });
        }
        // Said once for each time it becomes slow.
        is_new.then_some(DriveEvent { at: now, drive, kind: EventKind::Slow, figures })
    }

    /// Whether this drive may sit out besides those that do (D1).
    fn can_sit_out(&self, drive: DriveIdx) -> bool {
        self.can_spare(self.sat_out.with(drive))
    }

    fn put_out(&mut self, now: Instant, drive: DriveIdx, standing: fn(Term) -> Standing) {
        let record = &mut self.records[drive.as_usize()];
        let has_relapsed = record.back.is_some_and(|back| now.saturating_since(back) < RELAPSE);
        let longer = Nanos::new(record.term.get() * 2).min(TERM_MAX);
        record.term = if has_relapsed { longer } else { TERM };
        let (until, probe_at) = (now + record.term, now + PROBE_INTERVAL);
        record.standing = standing(Term { since: now, until, probe_at });
        self.detector.forget(drive);
        self.sat_out = self.sat_out.with(drive);
        self.check();
    }

    fn bring_in(&mut self, now: Instant, drive: DriveIdx) {
        let record = &mut self.records[drive.as_usize()];
        (record.standing, record.back) = (Standing::CountedOn, Some(now));
        self.detector.forget(drive);
        self.sat_out = self.sat_out.without(DriveSet::EMPTY.with(drive));
    }

    /// An operator wants a drive not to be read.
    pub(crate) fn sit_out(&mut self, now: Instant, drive: DriveIdx) -> Result<DriveEvent, Refusal> {
        match self.of(drive) {
            _ if !self.spec.data_drives().contains(drive) => return Err(Refusal::Journal),
            Standing::Lost => return Err(Refusal::Lost),
            Standing::SatOutByHand(_) => return Err(Refusal::Already),
            Standing::CountedOn if !self.can_sit_out(drive) => {
                return Err(Refusal::Needed { spare: self.spec.redundant() });
            }
            Standing::CountedOn | Standing::SatOut(_) => {}
        }
        let figures = self.figures(now, drive);
        self.put_out(now, drive, Standing::SatOutByHand);
        Ok(DriveEvent { at: now, drive, kind: EventKind::SatOutByHand, figures })
    }

    /// An operator wants a drive to be read again.
    pub(crate) fn admit(&mut self, now: Instant, drive: DriveIdx) -> Result<DriveEvent, Refusal> {
        match self.of(drive) {
            Standing::Lost | Standing::CountedOn => return Err(Refusal::Already),
            Standing::SatOut(_) | Standing::SatOutByHand(_) => {}
        }
        let figures = self.figures(now, drive);
        self.bring_in(now, drive);
        Ok(DriveEvent { at: now, drive, kind: EventKind::AdmittedByHand, figures })
    }

    /// A drive is lost: others may be needed again (D1), the one that has sat out longest first, and one
    /// that sits out by hand only if there is no other.
    pub(crate) fn handle_lost(&mut self, now: Instant, drive: DriveIdx) -> Vec<DriveEvent> {
        self.bring_in(now, drive);
        self.records[drive.as_usize()].standing = Standing::Lost;
        self.lost = self.lost.with(drive);
        let only = DriveSet::EMPTY.with(drive);
        (self.filling, self.overdue) = (self.filling.without(only), self.overdue.without(only)); // D3
        let fellows = self.spec.fellows(drive);
        let events = std::iter::from_fn(|| self.bring_in_needed(now, fellows)).collect();
        self.check();
        events
    }

    /// Brings in one of the `fellows` of a drive that was just lost, if the array needs one of them.
    fn bring_in_needed(&mut self, now: Instant, fellows: DriveSet) -> Option<DriveEvent> {
        if self.can_spare(self.sat_out) {
            return None;
        }
        let merit = |drive: &DriveIdx| match self.of(*drive) {
            Standing::SatOut(term) => Some((false, term.since)),
            Standing::SatOutByHand(term) => Some((true, term.since)),
            Standing::CountedOn | Standing::Lost => None,
        };
        let needed = self.sat_out.and(fellows).iter().min_by_key(merit)?;
        let (by_hand, others) = (self.by_hand(), self.sat_out.without(self.by_hand()));
        let is_last = others.and(fellows).is_empty();
        assert!(!by_hand.contains(needed) || is_last, "D2: drive {needed} comes back");
        let figures = self.figures(now, needed);
        self.bring_in(now, needed);
        Some(DriveEvent { at: now, drive: needed, kind: EventKind::AdmittedInNeed, figures })
    }

    /// A drive has ended none of its commands for long.
    pub(crate) fn note_silent(&mut self, now: Instant, drive: DriveIdx) -> Option<DriveEvent> {
        self.silent = self.silent.with(drive);
        self.event_of_present(now, drive, EventKind::Silent)
    }

    /// These drives, and no others, are to be lost for their silence.
    pub(crate) fn set_overdue(&mut self, overdue: DriveSet) {
        let away = self.lost.without(self.filling);
        assert!(overdue.and(away).is_empty(), "D3: {overdue} are overdue");
        self.overdue = overdue;
    }

    /// A drive has ended a command.
    pub(crate) fn note_heard(&mut self, now: Instant, drive: DriveIdx) -> Option<DriveEvent> {
        if !self.silent.contains(drive) {
            return None;
        }
        let only = DriveSet::EMPTY.with(drive);
        (self.silent, self.overdue) = (self.silent.without(only), self.overdue.without(only));
        self.event_of_present(now, drive, EventKind::Heard)
    }

    fn event_of_present(
        &self,
        at: Instant,
        drive: DriveIdx,
        kind: EventKind,
    ) -> Option<DriveEvent> {
        let is_there = !self.lost.without(self.filling).contains(drive);
        is_there.then(|| DriveEvent { at, drive, kind, figures: self.figures(at, drive) })
    }

    /// A read does without these drives: they are probed if nothing is heard of them.
    pub(crate) fn note_aside(&mut self, aside: DriveSet) {
        assert!(aside.and(self.lost).is_empty(), "D3: lost drives are set aside: {aside}");
        let is_spared = aside.is_empty() || self.can_spare(aside);
        assert!(is_spared, "D1: too many are set aside: {aside}");
        self.stale = self.stale.or(aside.without(self.sat_out));
    }

    /// A drive that reads did without is probed now.
    pub(crate) fn note_fresh(&mut self, drive: DriveIdx) {
        self.stale = self.stale.without(DriveSet::EMPTY.with(drive));
    }

    /// When the next drive that sits out is to be probed.
    pub(crate) fn probe_at(&self) -> Option<Instant> {
        let at = |drive| match self.of(drive) {
            Standing::SatOut(term) | Standing::SatOutByHand(term) => Some(term.probe_at),
            Standing::CountedOn | Standing::Lost => None,
        };
        self.sat_out.iter().filter_map(at).min()
    }

    /// Whether a drive that sits out is to be probed now; the next time is later.
    pub(crate) fn take_probe(&mut self, now: Instant, drive: DriveIdx) -> bool {
        match &mut self.records[drive.as_usize()].standing {
            Standing::SatOut(term) | Standing::SatOutByHand(term) if term.probe_at <= now => {
                term.probe_at = now + PROBE_INTERVAL;
                true
            }
            Standing::SatOut(_)
            | Standing::SatOutByHand(_)
            | Standing::CountedOn
            | Standing::Lost => false,
        }
    }

    /// Called after every change of a standing; there are few.
    fn check(&self) {
        let is_spared = self.can_spare(self.sat_out);
        assert!(is_spared || self.has_failed(), "D1: {} sit out", self.sat_out);
        assert!(self.sat_out.and(self.lost).is_empty(), "D3: {} sit out", self.sat_out);
        let away = self.lost.without(self.filling);
        assert!(self.overdue.and(away).is_empty(), "D3: {} are overdue", self.overdue);
        assert!(self.filling.without(self.lost).is_empty(), "D4: {} are filled", self.filling);
        for drive in self.all().iter() {
            let standing = self.of(drive);
            let sits_out = matches!(standing, Standing::SatOut(_) | Standing::SatOutByHand(_));
            assert_eq!(sits_out, self.sat_out.contains(drive), "drive {drive}: {standing:?}");
        }
    }
}

#[cfg(test)]
mod tests;
