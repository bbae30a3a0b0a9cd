//! Filling a drive that has come into the place of a lost one, beside what clients ask.
//!
//! ```text
//!   replaced --> steps, in order --> its front moves on --> flushed --> recorded: its mark --> .. --> present
//! ```
//!
//! Below its *front* a drive holds everything, and is read and written like any other. Below its *mark* that is on
//! all drives for good: the next start goes on from there. It counts as lost until it is full.
//!
//! A step takes some MiB of every drive. While clients are about, its commands wait until a drive has nothing else to
//! do, and the next step comes after a pause, unless a rate was asked for that is not kept otherwise. While none are
//! about, steps follow each other closely enough to keep the drive that is filled busy.
//!
//! # Invariants
//!
//! - RB1. The front moves over a step when all of it is copied, and over the steps in their order.
//! - RB2. The mark moves to where the front was when a flush of the drive was begun, once that flush has ended, every
//!   ring says for good that all transactions of that time are over, and the list of damaged sectors is safe. A recovery
//!   takes what is below the mark for what it was when the last of them was written: one that was written when the drive
//!   was not there names sectors of it that were written since without it.
//! - RB3. A sector that nothing gives never costs another drive, and is not made up: it is one damaged sector, and the
//!   rebuild goes on. Where drives have no place for the list of damaged sectors the front stays before it, and its step
//!   is tried again, until it can be had or is written.
//! - RB4. A drive that is back holds what it is not known to lack: the front passes that without a step.
//! - RB6. A new drive comes into a place only after the rebuild has let go of the one before it: nothing that was copied to that
//!   one counts for the new one.
//! - RB5. A drive that is full counts when all is over that the journal has on fewer rings than it takes from then on, and every
//!   ring says so, its own included; when it has the newest metadata; and when that is committed which says so.
//!   What a drive that is needed does not store of these is on enough others. Were its own ring empty, the others might be
//!   fewer than faults are survived from then on: a recovery that cannot read their last record would put older contents
//!   onto the drive than it was filled with.

use std::collections::VecDeque;

use levelhead_block::Command;
use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos, SECTOR_SIZE, Sectors};

use crate::action::Segments;
use crate::array::parts::Stop;
use crate::array::{Array, Moved, Op, Start};
use crate::budget::Budget;
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::event::ArrayEvent;
use crate::journal::Journal;
use crate::log::rules::Rule;
use crate::meta::wishes::RebuildWish;
use crate::names::{OpId, SubId};
use crate::ops::fill::{Haste, Span};
use crate::ops::locks::Access;
use crate::progress::{RebuildProgress, Resync};
use crate::store::Store;
use crate::timers::first_of;

/// Steps under way while no clients are about, at most. Every drive is to have several commands inside: a drive that
/// gets the next one when it has ended one loses most of a rotation each time.
pub(super) const STEPS_MAX: usize = 8;

/// What they have in memory at most, unless one step alone takes more: 120 MiB.
const MEMORY_MAX: Sectors = Sectors::new(30 << 10);

/// A step that has waited this long for drives that have nothing else to do waits no longer: they may be busy for good
/// with something that they have forgotten.
pub(super) const WAIT_MAX: Nanos = Nanos::from_secs(5);

/// A step in which a sector could not be had, nor named, is taken again after this time.
const RETRY: Nanos = Nanos::from_secs(60);

/// Clients count as being about for this long after their last request.
pub(super) const ABOUT: Nanos = Nanos::from_millis(500);

/// While clients are about and no rate is asked for, the next step begins this long after the last one has ended.
pub(super) const PAUSE: Nanos = Nanos::from_secs(2);

/// The mark follows the front after the time that the budget says, or this many bytes of the drive.
const MARK_BYTES: u64 = 4 << 30;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Rebuild {
    wish: RebuildWish,
    budget: Budget,
    /// The drive that is filled now.
    drive: Option<DriveIdx>,
    /// Drives that were given a copy, and are filled with what is left of it.
    copied: DriveSet,
    /// Steps in order.
    steps: VecDeque<OpId>,
    /// Where the next step begins.
    next: u64,
    /// When the next step begins beside clients.
    next_at: Instant,
    rate: Rate,
    /// When the step under way is in haste.
    due_at: Instant,
    /// Whether steps that are under way are to be taken again, because a sector cannot be had and not be named either.
    is_back: bool,
    /// Whether they wait for their time although no clients are about.
    waits: bool,
    /// Transactions below this one began when the drive did not count yet.
    before: u64,
    mark: Mark,
    /// Whether the drive holds everything, durably, and the metadata is to say so.
    is_full: bool,
    /// When a client asked for something last.
    asked_last: Option<Instant>,
}

/// Whether the rate is kept that is asked for, if one is.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// When the step under way should have begun.
    slot: Instant,
    /// Whether it began then.
    is_kept: bool,
}

/// How far the metadata says that the drive is filled.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: u64,
    /// When it has moved last.
    since: Instant,
    moving: Option<Marking>,
}

/// The mark is moving.
#[derive(Clone, Copy, Debug)]
struct Marking {
    to: u64,
    /// The flush that has not ended.
    flush: Option<SubId>,
    /// The last transaction of that time.
    committed: u64,
    /// What was written there by then is not safe before its tag sector says it (TG2).
    order: u64,
}

impl Rebuild {
    pub(crate) fn new(budget: Option<Budget>, wish: RebuildWish) -> Self {
        Self {
            wish,
            budget: budget.unwrap_or(Budget::DEFAULT),
            drive: None,
            copied: DriveSet::EMPTY,
            steps: VecDeque::new(),
            next: 0,
            next_at: Instant::ZERO,
            rate: Rate { slot: Instant::ZERO, is_kept: false },
            due_at: Instant::ZERO,
            is_back: false,
            waits: false,
            before: 0,
            mark: Mark { at: 0, since: Instant::ZERO, moving: None },
            is_full: false,
            asked_last: None,
        }
    }

    pub(crate) fn note_request(&mut self, now: Instant) {
        self.asked_last = Some(now);
    }

    /// When a client asked for something last.
    pub(crate) fn asked_last(&self) -> Option<Instant> {
        self.asked_last
    }

    /// Sectors of a drive that a step takes.
    pub(crate) fn step_size(&self) -> Sectors {
        self.budget.step
    }

    pub(crate) fn are_clients_about(&self, now: Instant, outstanding: usize) -> bool {
        outstanding > 0 || self.asked_last.is_some_and(|last| now < last + ABOUT)
    }

    /// A flush has ended.
    pub(crate) fn handle_flushed(&mut self, sub: SubId) {
        if let Some(marking) = &mut self.mark.moving {
            marking.flush.take_if(|flush| *flush == sub);
        }
    }

    /// A drive that was given a copy has the place.
    pub(crate) fn note_copied(&mut self, drive: DriveIdx) {
        self.copied = self.copied.with(drive);
    }

    /// It is filled, or lost.
    pub(crate) fn forget_copied(&mut self, drive: DriveIdx) {
        self.copied = self.copied.without(DriveSet::EMPTY.with(drive));
    }

    /// Forgets the drive that was being filled.
    fn forget(&mut self) {
        self.is_full = false;
        (self.drive, self.mark.moving) = (None, None);
        assert!(self.steps.is_empty(), "RB1: steps are under way");
    }
}

impl Array {
    /// How far the rebuild is, if a drive is being filled: the one that is filled now, or the next one.
    pub fn rebuild(&self) -> Option<RebuildProgress> {
        let drive = self.own.rebuild.drive.or_else(|| self.core.drives.filling().iter().next())?;
        let is_now = self.own.rebuild.drive == Some(drive);
        let front = self.core.holdings.front(drive);
        let mark = if is_now { self.own.rebuild.mark.at } else { front };
        Some(self.progress(drive, mark))
    }

    fn progress(&self, drive: DriveIdx, mark: u64) -> RebuildProgress {
        let front = self.core.holdings.front(drive);
        let regions = self.core.meta.regions_left(drive, front);
        let is_copied = self.own.rebuild.copied.contains(drive);
        let stripes = self.core.layout().stripes();
        RebuildProgress { drive, front, mark, stripes, regions, is_copied }
    }

    /// What an operator has said of rebuilds.
    pub fn rebuild_wish(&self) -> RebuildWish {
        self.own.rebuild.wish
    }

    /// An operator says how rebuilds go from now on.
    pub fn handle_rebuild_wish(&mut self, now: Instant, wish: RebuildWish) {
        self.own.rebuild.wish = wish;
        self.note_wishes();
        self.move_on(now);
    }

    /// The drive that is filled now.
    pub(crate) fn rebuild_drive(&self) -> Option<DriveIdx> {
        self.own.rebuild.drive
    }

    /// Whether a command is inside a drive whose place has another one now.
    pub fn is_orphan(&self, sub: SubId) -> bool {
        self.core.is_orphan(sub)
    }

    /// Whether this drive is back, and is being given what it has missed.
    pub fn is_catching_up(&self, drive: DriveIdx) -> bool {
        self.core.meta.is_back(drive)
    }

    /// Whether this drive is being filled.
    pub fn is_filling(&self, drive: DriveIdx) -> bool {
        self.core.drives.filling().contains(drive)
    }

    /// Whether a rebuild goes on that was under way when the array ended, so that the array is opened for it. It is
    /// not where drives are away: those would be recorded as missing, and may still come back.
    pub(crate) fn opens_for_rebuild(&self) -> bool {
        let is_ending = self.end.stop != Stop::No || self.end.give_up_at.is_some();
        self.is_rebuilding() && self.core.drives.away().is_empty() && !is_ending
    }

    /// Whether a drive is being filled.
    pub(crate) fn is_rebuilding(&self) -> bool {
        !self.core.drives.filling().is_empty()
    }

    /// When there is something to do that comes with time.
    pub(crate) fn rebuild_at(&self, now: Instant) -> Option<Instant> {
        let rebuild = &self.own.rebuild;
        let drive = rebuild.drive?;
        let is_behind = self.core.holdings.front(drive) > rebuild.mark.at;
        let mark_at = rebuild.mark.since + rebuild.budget.mark;
        let may_mark = is_behind && rebuild.mark.moving.is_none() && self.end.stop == Stop::No;
        let mark_at = may_mark.then_some(mark_at);
        let wants = self.wants_step() && rebuild.steps.is_empty();
        let about = rebuild.asked_last.map(|last| last + ABOUT).filter(|&at| at > now);
        let about_until = about.filter(|_| !rebuild.waits);
        let next_at = about_until.map_or(rebuild.next_at, |at| at.min(rebuild.next_at));
        let step_at = (wants && next_at > now).then_some(next_at);
        let due_at = rebuild.due_at;
        let due_at = (due_at > now && !rebuild.steps.is_empty()).then_some(due_at);
        let quiet_at = about.filter(|_| !rebuild.steps.is_empty());
        first_of([mark_at, step_at, due_at, quiet_at])
    }

    fn wants_step(&self) -> bool {
        if self.core.are_tags_full() {
            return false;
        }
        let is_ready = self.journal.as_ref().is_none_or(Journal::is_ready);
        let is_ending = self.end.stop != Stop::No || self.end.give_up_at.is_some();
        let rebuild = &self.own.rebuild;
        rebuild.drive.is_some_and(|drive| self.core.meta.is_named(drive))
            && self.core.gate.may_write()
            && is_ready
            && !is_ending
            && !rebuild.wish.is_paused
            && !self.core.has_failed()
            && rebuild.next < self.core.layout().stripes()
    }

    /// Moves the rebuild on.
    pub(crate) fn keep_rebuild(&mut self, now: Instant) -> Moved {
        if !self.is_rebuilding() && self.own.rebuild.drive.is_none() {
            return Moved::No;
        }
        let mut moved = self.choose_drive(now);
        if self.begin_step(now) == Moved::Yes {
            moved = Moved::Yes;
        }
        if self.move_steps(now) == Moved::Yes {
            moved = Moved::Yes;
        }
        if self.move_mark(now) == Moved::Yes {
            moved = Moved::Yes;
        }
        moved
    }

    /// Steps that wait for their stripes would be taken for those of the next drive in the place, and what was copied to the one
    /// before it for what that holds.
    fn withdraw_steps(&mut self) {
        let is_waiting = |&op: &OpId| matches!(self.work.ops.get(op), Some(Op::Locked(_)));
        let (waiting, steps): (VecDeque<OpId>, VecDeque<OpId>) =
            self.own.rebuild.steps.iter().partition(|&op| is_waiting(op));
        self.own.rebuild.steps = steps;
        for op in waiting {
            self.work.ops.remove(op);
            self.work.granted.retain(|&granted| granted != op);
            self.work.unopened.retain(|&unopened| unopened != op);
            if self.keeps(Rule::FillLock) {
                self.work.granted.extend(self.work.locks.withdraw(op));
            }
        }
    }

    /// Begins with the next drive that is to be filled, or lets go of one that is lost.
    fn choose_drive(&mut self, now: Instant) -> Moved {
        let filling = self.core.drives.filling();
        match self.own.rebuild.drive {
            Some(drive) if filling.contains(drive) => Moved::No,
            Some(drive) => {
                self.withdraw_steps();
                if !self.own.rebuild.steps.is_empty() {
                    return Moved::No;
                }
                let (front, mark) = (self.own.rebuild.next, self.own.rebuild.mark.at);
                self.own.rebuild.forget();
                let progress = RebuildProgress { front, ..self.progress(drive, mark) };
                self.tell(ArrayEvent::RebuildStopped(progress));
                Moved::Yes
            }
            None => {
                let is_named = |drive: &DriveIdx| !self.is_copied(*drive);
                let Some(drive) = filling.iter().find(is_named) else { return Moved::No };
                let front = self.core.holdings.front(drive);
                let rebuild = &mut self.own.rebuild;
                (rebuild.drive, rebuild.next, rebuild.mark.at) = (Some(drive), front, front);
                (rebuild.next_at, rebuild.mark.since) = (now, now);
                let progress = self.rebuild().expect("a drive is filled");
                self.tell(ArrayEvent::RebuildBegun(progress));
                Moved::Yes
            }
        }
    }

    fn begin_step(&mut self, now: Instant) -> Moved {
        let are_about = self.own.rebuild.are_clients_about(now, self.clients.outstanding);
        let most = if are_about { 1 } else { self.steps_max() };
        if !self.wants_step() || self.own.rebuild.steps.len() >= most || self.own.rebuild.is_back {
            return Moved::No;
        }
        if (are_about || self.own.rebuild.waits) && now < self.own.rebuild.next_at {
            return Moved::No;
        }
        let drive = self.own.rebuild.drive.expect("it wants a step");
        let stripes = self.core.layout().stripes();
        let Span { first, end, .. } = self.next_span(drive);
        if first == stripes {
            self.own.rebuild.next = stripes;
            return Moved::Yes;
        }
        self.own.rebuild.next = end;
        let period = self.step_time();
        let rebuild = &mut self.own.rebuild;
        (rebuild.next_at, rebuild.due_at) = (now, now + WAIT_MAX);
        (rebuild.rate.is_kept, rebuild.waits) = (false, false);
        if let Some(period) = period.filter(|_| are_about) {
            // What is late is made up for, but not all of a time in which nothing could be done.
            let earliest = rebuild.rate.slot + period;
            let is_late = earliest + period <= now;
            rebuild.rate.slot = if is_late { now } else { earliest.min(now) };
            rebuild.rate.is_kept = true;
            rebuild.next_at = rebuild.rate.slot + period;
            rebuild.due_at = rebuild.rate.slot + Nanos::new(period.get() / 2).min(WAIT_MAX);
        }
        let op = self.claim_fill(Span { drive, first, end });
        self.own.rebuild.steps.push_back(op);
        Moved::Yes
    }

    /// Whether a drive has nothing but a ring of the journal, which begins empty.
    pub(crate) fn has_nothing_to_fill(&self, drive: DriveIdx) -> bool {
        self.core.layout().spec().journal_drives().contains(drive)
    }

    /// What the next step is of; of nothing at the end if a drive holds all that is left.
    fn next_span(&self, drive: DriveIdx) -> Span {
        let (next, stripes) = (self.own.rebuild.next, self.core.layout().stripes());
        if self.has_nothing_to_fill(drive) {
            return Span { drive, first: stripes, end: stripes };
        }
        let (meta, most) = (&self.core.meta, self.own.rebuild.budget.stripes(self.core.layout()));
        if !meta.is_back(drive) {
            return Span { drive, first: next, end: stripes.min(next + most) };
        }
        let first = meta.next_lacking(drive, next).unwrap_or(stripes);
        let run = meta.end_of_lacking(drive, first).unwrap_or(stripes);
        Span { drive, first, end: stripes.min(run).min(first + most) }
    }

    /// How many steps may be under way, as far as memory goes.
    fn steps_max(&self) -> usize {
        let step = self.own.rebuild.budget.step.get();
        let all = step * self.core.layout().spec().width() as u64;
        let sectors = |&op: &OpId| match self.work.ops.get(op) {
            Some(Op::Fill(fill)) if !fill.is_reading() => step,
            Some(_) | None => all,
        };
        let used: u64 = self.own.rebuild.steps.iter().map(sectors).sum();
        let is_room = used + all <= MEMORY_MAX.get();
        if is_room { STEPS_MAX } else { 1 }
    }

    /// How long a step takes at the rate that is to be kept.
    pub(crate) fn step_time(&self) -> Option<Nanos> {
        let rate = self.own.rebuild.wish.rate_min?.get().max(1);
        let chunks = self.own.rebuild.budget.step.get() * SECTOR_SIZE as u64;
        Some(Nanos::from_secs_f64_round(chunks as f64 / rate as f64))
    }

    fn haste(&self, now: Instant) -> Haste {
        let is_ending = self.end.stop != Stop::No;
        let are_about = self.own.rebuild.are_clients_about(now, self.clients.outstanding);
        let is_due = self.own.rebuild.due_at <= now;
        // A write that waits for a step's stripes does not wait for idle drives.
        let is_waited_for =
            self.own.rebuild.steps.iter().any(|&op| self.work.locks.is_waited_for(op));
        if is_ending || is_due || is_waited_for || !are_about { Haste::Now } else { Haste::Idle }
    }

    /// Lets the steps go on whose drives have become idle, and the front over those that are done (RB1).
    fn move_steps(&mut self, now: Instant) -> Moved {
        let haste = self.haste(now);
        for op in self.own.rebuild.steps.clone() {
            if let Some(Op::Fill(fill)) = self.work.ops.get_mut(op) {
                fill.advance(&mut self.core, now, haste);
            }
        }
        let mut moved = Moved::No;
        while let Some(&op) = self.own.rebuild.steps.front() {
            let Some(Op::Fill(fill)) = self.work.ops.get(op) else { break };
            if !fill.is_done() {
                break;
            }
            let (span, is_in_vain) = (fill.span, fill.is_in_vain());
            self.core.counters.rebuild_damaged += fill.damaged().len() as u64;
            self.own.rebuild.steps.pop_front();
            self.own.rebuild.is_back |= is_in_vain; // RB3
            let is_filling = self.core.drives.filling().contains(span.drive);
            if self.own.rebuild.is_back {
                (self.own.rebuild.next_at, self.own.rebuild.waits) = (now + RETRY, true);
            } else if is_filling && !self.core.has_failed() {
                let front = self.core.holdings.front(span.drive);
                assert!(front <= span.first, "RB1: {front} and {span:?}");
                self.core.holdings.fill_to(span.drive, span.end);
                let kept = self.own.rebuild.next_at;
                let after = now + PAUSE;
                self.own.rebuild.next_at =
                    if self.own.rebuild.rate.is_kept { kept.min(after) } else { after };
            }
            self.work.ops.remove(op);
            if self.keeps(Rule::FillLock) {
                self.work.granted.extend(self.work.locks.release(op));
            }
            moved = Moved::Yes;
        }
        if self.own.rebuild.is_back && self.own.rebuild.steps.is_empty() {
            let drive = self.own.rebuild.drive.expect("its steps have just ended");
            (self.own.rebuild.next, self.own.rebuild.is_back) =
                (self.core.holdings.front(drive), false);
        }
        let stripes = self.core.layout().stripes();
        let is_through = self.own.rebuild.steps.is_empty() && self.own.rebuild.next == stripes;
        if let Some(drive) = self.own.rebuild.drive.filter(|_| is_through)
            && (self.core.meta.is_back(drive) || self.has_nothing_to_fill(drive))
            && self.core.holdings.front(drive) < stripes
        {
            self.core.holdings.fill_to(drive, stripes);
            moved = Moved::Yes;
        }
        moved
    }

    /// Moves the mark after the front, and ends the rebuild when that is at the end (RB2).
    fn move_mark(&mut self, now: Instant) -> Moved {
        let Some(drive) = self.own.rebuild.drive else { return Moved::No };
        let is_filled = self.core.drives.filling().contains(drive);
        if !is_filled || self.core.has_failed() || !self.core.gate.may_write() {
            return Moved::No;
        }
        if self.own.rebuild.is_full {
            if !self.core.meta.is_present_for_good(drive) {
                return Moved::No;
            }
            self.end_rebuild(now, drive);
            return Moved::Yes;
        }
        match self.own.rebuild.mark.moving {
            Some(marking) => self.note_marked(now, drive, marking),
            None => {
                self.begin_mark(now, drive);
                Moved::No
            }
        }
    }

    /// Moves the mark if what is below is safe (RB2).
    fn note_marked(&mut self, now: Instant, drive: DriveIdx, marking: Marking) -> Moved {
        let Marking { to, flush, committed, order } = marking;
        let core = &mut self.core;
        let is_over = |known: &mut Journal| known.says_over(core, now, committed + 1);
        let is_over = self.journal.as_mut().is_none_or(is_over) || !self.keeps(Rule::FillOver);
        let is_last = to == self.core.layout().stripes();
        let tags = self.core.tags.as_mut();
        let is_tagged = tags.is_none_or(|tags| tags.says_before(drive, order));
        if flush.is_some() || !is_over || !is_tagged || !self.core.meta.is_settled() {
            return Moved::No;
        }
        if is_last && !self.core.holdings.is_nearly_present(drive) {
            self.core.holdings.set_nearly_present(drive);
            self.own.rebuild.before = self.journal.as_ref().map_or(0, Journal::next);
            if let Some(journal) = &mut self.journal {
                journal.note_counted(now);
            }
            return Moved::Yes;
        }
        if is_last && !self.may_count(now) {
            return Moved::No;
        }
        (self.own.rebuild.mark.moving, self.own.rebuild.mark.since) = (None, now);
        self.own.rebuild.mark.at = to;
        match &mut self.store {
            None if is_last => self.end_rebuild(now, drive),
            None => {}
            Some(store) if is_last => {
                self.own.rebuild.is_full = true;
                store.end_filling(&mut self.core, drive);
            }
            Some(store) => store.note_filled(&mut self.core, drive, to),
        }
        Moved::Yes
    }

    /// Whether a drive that is full may count as present (RB5).
    fn may_count(&mut self, now: Instant) -> bool {
        let (core, before) = (&mut self.core, self.own.rebuild.before);
        let is_over = |known: &mut Journal| known.says_over(core, now, before);
        let is_over = self.journal.as_mut().is_none_or(is_over);
        let counted = self.core.counted();
        let has_metadata = |store: &Store| store.is_settled_on(&self.core, counted);
        is_over && self.store.as_ref().is_none_or(has_metadata)
    }

    /// Begins to move the mark to the front, if it is time for that.
    fn begin_mark(&mut self, now: Instant, drive: DriveIdx) {
        let stripes = self.core.layout().stripes();
        let front = self.core.holdings.front(drive);
        let width = self.core.layout().spec().chunk().get() * SECTOR_SIZE as u64;
        let ahead = (front - self.own.rebuild.mark.at) * width;
        let is_late = front > self.own.rebuild.mark.at
            && self.own.rebuild.mark.since + self.own.rebuild.budget.mark <= now;
        // Of a drive that is back little is copied on the way.
        let is_much = ahead >= MARK_BYTES && !self.core.meta.is_back(drive);
        if self.end.stop == Stop::No && (front == stripes || is_late || is_much) {
            let flush = self.keeps(Rule::FillFlush).then(|| flush(&mut self.core, now, drive));
            let committed = self.journal.as_ref().map_or(0, |journal| journal.next() - 1);
            let order = self.core.tag_orders().get(drive.as_usize()).copied().unwrap_or(0);
            self.own.rebuild.mark.moving = Some(Marking { to: front, flush, committed, order });
        }
    }

    /// The drive holds everything, and counts from now on: a committed generation says so.
    fn end_rebuild(&mut self, now: Instant, drive: DriveIdx) {
        self.core.drives.end_filling(now, drive);
        self.core.holdings.end_filling(drive);
        self.core.meta.set_present(drive);
        if let Some(journal) = &mut self.journal {
            journal.note_counted(now);
        }
        self.own.rebuild.forget();
        self.own.resync = Resync::Idle;
        let is_copied = self.own.rebuild.copied.contains(drive);
        self.own.rebuild.forget_copied(drive);
        self.tell(ArrayEvent::RebuildDone { drive, is_copied });
    }

    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        self.journal.as_ref().is_none_or(|journal| journal.rules().keep(rule))
    }

    fn claim_fill(&mut self, span: Span) -> OpId {
        let op = self.work.name();
        let stripes = span.first..span.end;
        let is_alone = !self.keeps(Rule::FillLock);
        if is_alone || self.work.locks.claim(op, stripes, Access::Shared) {
            self.work.granted.push_back(op);
        }
        self.work.ops.insert(op, Op::Locked(Start::Fill(span)));
        op
    }
}

fn flush(core: &mut Core, now: Instant, drive: DriveIdx) -> SubId {
    let origin = core.own_origin();
    core.enqueue(
        now,
        Enqueue {
            purpose: Purpose::Fill,
            drive,
            command: Command::Flush,
            segments: Segments::NONE,
            origin,
            end: End::Tail,
            fate: Fate::Certain,
            since: None,
        },
    )
}
