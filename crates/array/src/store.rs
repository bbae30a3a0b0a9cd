//! The store: the metadata on the drives, generation by generation.
//!
//! ```text
//!            first write                 all answered, flushed
//!   Shut ---------------> Opening --> Open ---------------> Closing --> Closed
//!                        dirty, dirty   |  ^              dirty, clean
//!                                       +--+ a change: dirty
//! ```
//!
//! A generation goes to all drives that are reachable at the same time, as ordinary commands to absolute addresses, each into
//! the slot that holds the older one. A drive has at most one write inside, and the next one gives it the newest generation:
//! one that is slow keeps no other from going on.
//!
//! ```text
//!   begun --> committed: on enough drives
//!              |
//!              +--> answers that rely on it go out, writes that wait for the opening begin
//! ```
//!
//! A generation is on enough drives if the layout does not survive the loss of all of them together with those that it does
//! not call present. So whatever loss the array survives, one of the copies is left: if it were all of them, the layout
//! would not survive it. Where `k` drives are redundant, whichever they are, and `l` are not present, that is
//! `k + 1 - l` copies. For `raid10` a number would be wrong both ways: with a drive of another pair lost it survives
//! the loss of more than `k - l`, and of `k + 1` drives of different pairs it survives the loss of all; what is needed
//! is both drives of some pair, or the other one where one is not present. A drive has a copy when that was read back
//! (`array/readback/metadata.rs`); one that does not store any is not counted.
//!
//! # Invariants
//!
//! - G1. Nothing is written to the array's data before the second generation of the opening is on every drive that answers, and
//!   committed. It says that these have the first one: a copy of a member from before has less than that.
//! - G2. An answer that relies on the loss of a drive goes out after a generation with that loss is committed.
//! - G3. Of a drive's two slots the one that holds its newest generation is never written over by the next.
//! - G4. No generation says that more drives are gone than the layout survives.
//! - G5. A change is followed by one more generation, in a while, so that both slots of every drive say it.
//! - G6. What says how far redundancy was last known to be valid is begun after a flush that began after it was made so.
//! - G7. What says clean is begun after every drive that is reachable has ended a flush that began after the last write, and has
//!   the generation before, which says dirty.
//! - G8. What says that a drive is filled up to some stripe is begun after that drive has ended a flush that began
//!   after all below was copied to it, and once enough rings say for good that what was copied is committed.
//! - G9. Where the array is not open, what operators have said is a generation that says nothing else, and only while every drive
//!   is there and answers that is called present.
//! - G10. What was found at a start and is not on enough drives is given to all of them first, as the generation that it is.

mod given;
mod looks;

use std::collections::VecDeque;
use std::sync::Arc;

use levelhead_block::BufId;
use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

use self::given::flush;
use crate::core::Core;
use crate::event::Ending;
use crate::meta::fence::{self, Fence};
use crate::meta::membership::{Generation, Membership, Why, not_present};
use crate::meta::metadata::{Forced, Kept, LEAD_MAX, Metadata, RUN, State};
use crate::meta::own::{Held, NewMember, Own};
use crate::meta::recorded::Recorded;
use crate::meta::state::{Change, CommittedSeat, Holds, seats_where};
use crate::meta::uuid::Uuid;
use crate::meta::wishes::Wishes;
use crate::names::SubId;

/// How long a change that nothing waits for may take to be written.
const LATER: Nanos = Nanos::from_secs(1);

/// How often a generation is written while clients write, at least, and once as much as all of a ring was written: a drive or an
/// image of one that is put back to an earlier state has less than it is known to have stored.
const REFRESH: Nanos = Nanos::from_secs(60);

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    owns: Vec<Option<Own>>,
    /// One a place; of those that have no drive it is at rest.
    holders: Vec<Holder>,
    run: Uuid,
    /// What the last generation that was begun says.
    content: Arc<Metadata>,
    /// Generations that are not committed, in order.
    uncommitted: VecDeque<Begun>,
    /// Whether what was begun, or found, is to be on all drives.
    gives: bool,
    phase: Phase,
    fence: Fence,
    /// Which drive alone is given what opens the array, where other servers may do the same (N1 of the fence).
    alone: Option<Alone>,
    /// Whether what operators have said is to be written although the array is not open (G9).
    are_wishes_due: bool,
    synced: Synced,
    /// Whether what was found, or a generation since, is committed.
    is_recorded: bool,
    /// When a change is written that nothing waits for.
    later_at: Option<Instant>,
    /// When data may be written at the earliest, once that is all that it waits for (N5 of the fence).
    opens_at: Option<Instant>,
    /// When something was begun last, and how much clients had written then.
    refreshed: Refreshed,
}

#[derive(Clone, Copy, Debug)]
struct Refreshed {
    at: Instant,
    writes: u64,
    ring_wraps: u64,
}

/// A drive that is given some generations before all others.
#[derive(Clone, Copy, Debug)]
struct Alone {
    drive: DriveIdx,
    /// How many more.
    left: u8,
}

/// What one drive has.
#[derive(Clone, Debug, Default)]
struct Holder {
    /// The newest generation that it has.
    has: Generation,
    /// The newest one that it was given and has not stored.
    unstored: Generation,
    /// The slot that is written next.
    next: usize,
    /// The first copy of its superblock that it is to get.
    superblock: Option<usize>,
    writing: Option<Writing>,
}

#[derive(Clone, Copy, Debug)]
struct Writing {
    sub: SubId,
    buf: BufId,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Superblock,
    Metadata(Generation),
}

/// Whether a drive has stored what it was given to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is there: it was read back.
    Yes,
    /// It is not there, however often it was written. The drive is kept because the array needs it.
    No,
}

/// A generation that is not committed.
#[derive(Clone, Debug)]
struct Begun {
    generation: Generation,
    seats: Vec<CommittedSeat>,
    synced_last: u64,
}

impl Begun {
    fn of(metadata: &Metadata) -> Self {
        let Metadata { generation, synced_last, members, .. } = metadata;
        let seats = members.iter().map(CommittedSeat::of).collect();
        Self { generation: *generation, seats, synced_last: *synced_last }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Shut,
    /// So many of the two generations of the opening are begun.
    Opening(u8),
    Open,
    /// The last flush is under way.
    Flushing(Flush),
    /// So many of the two last generations are begun.
    Closing(u8),
    Closed,
}

impl Phase {
    fn is_last(&self) -> bool {
        matches!(self, Self::Flushing(_) | Self::Closing(_) | Self::Closed)
    }
}

/// Whether all redundancy has been made valid in this run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Synced {
    /// It has not, or it was from the start.
    NotNow,
    /// It has; the flush after it is under way.
    Flushing(Flush),
    /// It has, and that is safe.
    Safely,
}

/// A flush of all drives that are reachable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Flush {
    /// Its parts that have not ended.
    pending: Vec<FlushPart>,
    /// What was in place then is not safe before tag sectors say it (TG2).
    orders: Vec<u64>,
}

/// A flush of one drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlushPart {
    drive: DriveIdx,
    sub: SubId,
}

impl Store {
    pub(crate) fn new(recorded: &Recorded) -> Self {
        let Recorded { metadata, owns, held, not_whole, run, is_recorded, .. } = recorded.clone();
        let count = metadata.spec.members();
        assert!(owns.len() == count && held.len() == count, "Q1: what drives say of themselves");
        for (at, own) in owns.iter().enumerate() {
            let Some(own) = own else { continue };
            let (drive, member) = (DriveIdx::from_usize(at), &metadata.members[at]);
            assert_eq!(own.drive, drive, "Q1: the place that drive {drive} says it has");
            assert!(member.is_present() || member.is_filling(), "Q2: drive {drive}: {member:?}");
        }
        let holder = |(at, held): (usize, &Option<Held>)| {
            let (has, next) =
                held.map_or((Generation::NONE, 0), |held| (held.generation, 1 - held.slot));
            let is_whole = !not_whole.contains(DriveIdx::from_usize(at));
            Holder { has, next, superblock: (!is_whole).then_some(0), ..Holder::default() }
        };
        let uncommitted = (!is_recorded).then(|| Begun::of(&metadata));
        let fence = Fence::new(metadata.generation, run, metadata.array);
        Self {
            owns,
            holders: held.iter().enumerate().map(holder).collect(),
            run,
            content: metadata,
            uncommitted: uncommitted.into_iter().collect(),
            gives: !is_recorded, // G10
            phase: Phase::Shut,
            fence,
            alone: None,
            are_wishes_due: false,
            synced: Synced::NotNow,
            is_recorded,
            later_at: None,
            opens_at: None,
            refreshed: Refreshed { at: Instant::ZERO, writes: 0, ring_wraps: 0 },
        }
    }

    /// Whether data may be written (G1).
    pub(crate) fn is_open(&self) -> bool {
        match self.phase {
            Phase::Open | Phase::Flushing(_) => true,
            Phase::Shut | Phase::Opening(_) | Phase::Closing(_) | Phase::Closed => false,
        }
    }

    /// Whether what the array goes on with is on enough drives (G10).
    pub(crate) fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Whether the loss of a drive must be recorded: nothing that was written to the others can rely on it
    /// before the opening has begun.
    pub(crate) fn records_losses(&self) -> bool {
        self.phase != Phase::Shut
    }

    /// Whether a generation is to be written for a change.
    fn records_changes(&self) -> bool {
        !matches!(self.phase, Phase::Shut | Phase::Closed)
    }

    /// What a drive says of itself that is there, or was.
    pub(crate) fn own(&self, drive: DriveIdx) -> Option<&Own> {
        self.owns.get(drive.as_usize())?.as_ref()
    }

    /// A write is waiting: begins the opening.
    pub(crate) fn open(&mut self, core: &mut Core) {
        if self.phase != Phase::Shut || core.has_failed() {
            return;
        }
        self.phase = Phase::Opening(0);
        for drive in core.drives.away().iter() {
            core.lose_member(drive, Membership::Missing);
        }
        core.meta.note_change(Change::Now);
    }

    /// The array does without a drive from now on.
    pub(crate) fn handle_lost(&mut self, core: &mut Core, drive: DriveIdx, why: Why) {
        core.lose_member(drive, Membership::Lost { why });
        self.fence.forget(drive);
        let holder = &mut self.holders[drive.as_usize()];
        holder.superblock = None;
        if let Some(writing) = holder.writing.take() {
            core.out.release(writing.buf);
        }
        self.note_flushed(core, |part| part.drive == drive);
        self.note_change(core);
    }

    /// A place has a new drive, or the one that was there, which is to be filled and is given every generation from now on.
    pub(crate) fn begin_filling(
        &mut self,
        core: &mut Core,
        drive: DriveIdx,
        new: NewMember,
        holds: Holds,
    ) {
        let NewMember { uuid, own, held } = new;
        assert_eq!(own.drive, drive, "Q1: the place that drive {drive} says it has");
        let is_same = core.meta.id(drive).uuid == uuid;
        core.meta.seat(drive, uuid, holds);
        self.owns[drive.as_usize()] = Some(own);
        let holder = &mut self.holders[drive.as_usize()];
        assert!(holder.writing.is_none(), "drive {drive} was lost before");
        // Nothing from before counts among the copies; but what it has newest is not written over first (G3).
        let next = match held {
            Some(held) => 1 - held.slot,
            None if is_same => holder.next,
            None => 0,
        };
        *holder = Holder { next, superblock: (!is_same).then_some(0), ..Holder::default() };
        match self.phase {
            Phase::Shut => self.open(core),
            _ => self.note_change(core),
        }
    }

    /// A drive that is being filled holds all stripes below `to` for good (G8).
    pub(crate) fn note_filled(&mut self, core: &mut Core, drive: DriveIdx, to: u64) {
        core.meta.set_filled(drive, to);
        self.note_change(core);
    }

    /// A drive that was being filled holds everything for good (G8).
    pub(crate) fn end_filling(&mut self, core: &mut Core, drive: DriveIdx) {
        core.meta.set_present(drive);
        self.note_change(core);
    }

    /// A scrub has gone through everything and has found nothing that it could not make right: what was forced is not
    /// marked any more.
    pub(crate) fn note_scrubbed(&mut self, core: &mut Core) {
        // It has not seen what a drive holds that is away or being filled; and one that is away may still come back, so that
        // the array is not opened for this.
        if core.meta.now().forced == Forced::No || !core.drives.lost().is_empty() {
            return;
        }
        core.meta.set_forced(Forced::No);
        self.open(core);
        self.note_change(core);
    }

    /// What operators have said of the array's own work is this now.
    pub(crate) fn note_wishes(&mut self, core: &mut Core, wishes: Wishes) {
        core.meta.set_wishes(wishes);
        if wishes == self.content.wishes || core.has_failed() {
            return;
        }
        match self.phase {
            Phase::Shut => self.are_wishes_due = true,
            Phase::Opening(_) | Phase::Open | Phase::Flushing(_) => self.note_change(core),
            Phase::Closing(_) | Phase::Closed => {}
        }
    }

    /// Something has changed that is to be written at once.
    fn note_change(&self, core: &mut Core) {
        if self.records_changes() {
            core.meta.note_change(Change::Now);
        }
    }

    /// All redundancy is valid. That is recorded, because it says how far redundancy may be trusted after a crash.
    pub(crate) fn handle_synced(&mut self, core: &mut Core, now: Instant) {
        if self.phase == Phase::Open {
            self.synced = Synced::Flushing(flush(core, now));
        }
    }

    /// Some parts of flushes have ended, or will not.
    fn note_flushed(&mut self, core: &mut Core, is_over: impl Fn(&FlushPart) -> bool) {
        if let Phase::Flushing(flush) = &mut self.phase {
            flush.pending.retain(|part| !is_over(part));
        }
        if let Synced::Flushing(flush) = &mut self.synced {
            flush.pending.retain(|part| !is_over(part));
            if flush.pending.is_empty() && core.are_tagged_before(&flush.orders) {
                self.synced = Synced::Safely;
                self.note_change(core);
            }
        }
    }

    /// The last request has been answered: everything is to be made safe.
    pub(crate) fn close(&mut self, core: &mut Core, now: Instant, wishes: Wishes) {
        match self.phase {
            Phase::Shut => {
                self.note_wishes(core, wishes);
                self.phase = Phase::Closed;
            }
            Phase::Open => {
                core.meta.set_wishes(wishes);
                self.phase = Phase::Flushing(flush(core, now));
            }
            // The opening comes to its end first.
            Phase::Opening(_) | Phase::Flushing(_) | Phase::Closing(_) | Phase::Closed => {}
        }
    }

    /// How the array has ended, once it has.
    pub(crate) fn ending(&self, core: &Core) -> Option<Ending> {
        if core.has_failed() {
            return Some(Ending::Failed);
        }
        let is_over = self.phase == Phase::Closed
            && !self.are_wishes_due
            && self.have_newest(core.drives.reachable().and(self.meant(core)));
        is_over.then_some(Ending::Clean)
    }

    /// The drives that are given what is begun.
    fn meant(&self, core: &Core) -> DriveSet {
        if self.gives { core.drives.reachable() } else { DriveSet::EMPTY }
    }

    /// Whether all of these drives have the newest generation, or did not store it.
    fn have_newest(&self, drives: DriveSet) -> bool {
        let newest = self.content.generation;
        let has_it = |drive: DriveIdx| {
            let holder = &self.holders[drive.as_usize()];
            holder.superblock.is_none() && holder.has.max(holder.unstored) >= newest
        };
        drives.iter().all(has_it)
    }

    /// Whether a generation is committed that says all, and all of these drives have it or did not store it.
    pub(crate) fn is_settled_on(&self, core: &Core, drives: DriveSet) -> bool {
        let says_all = core.meta.change() != Change::Now;
        says_all && self.uncommitted.is_empty() && self.have_newest(drives)
    }

    /// Drives that did not store the newest generation, if it is not committed although all others have it.
    pub(crate) fn unstored(&self, core: &Core) -> DriveSet {
        let meant = self.meant(core);
        if self.uncommitted.is_empty() || !self.have_newest(meant) {
            return DriveSet::EMPTY;
        }
        let newest = self.content.generation;
        let is_meant = |drive: &DriveIdx| self.holders[drive.as_usize()].unstored >= newest;
        meant.iter().filter(is_meant).collect()
    }

    /// A drive has ended a command of the store's, and is not lost.
    pub(crate) fn handle_done(
        &mut self,
        core: &mut Core,
        drive: DriveIdx,
        sub: SubId,
        stored: Stored,
    ) {
        let holder = &mut self.holders[drive.as_usize()];
        let Some(writing) = holder.writing.take_if(|writing| writing.sub == sub) else {
            return self.note_flushed(core, |part| part.sub == sub);
        };
        core.out.release(writing.buf);
        match (writing.what, stored) {
            (What::Superblock, _) => {
                holder.superblock = holder.superblock.map(|copy| copy + 1).filter(|&copy| copy < 3);
            }
            (What::Metadata(generation), Stored::Yes) => {
                holder.has = generation;
                holder.next = 1 - holder.next; // G3
            }
            (What::Metadata(generation), Stored::No) => holder.unstored = generation,
        }
    }

    /// When something is written that nothing waits for.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        [self.later_at, self.opens_at].into_iter().flatten().min()
    }

    /// Moves on as the facts demand. `silent` drives are not waited for.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant, silent: DriveSet) {
        if core.has_failed() {
            // G4: the last generation on the drives is the last state that can be trusted.
            self.uncommitted.clear();
            self.later_at = None;
            core.meta.end();
            core.fail_held();
            return;
        }
        self.keep_lease(core, now, silent);
        self.note_flushed(core, |_| false);
        loop {
            self.look_at_commits(core);
            if !self.step(core, now, silent) {
                break;
            }
        }
        self.write(core, now, silent);
    }

    /// Sees what is committed: a later generation says all that an earlier one does.
    fn look_at_commits(&mut self, core: &mut Core) {
        let newest = self.uncommitted.iter().rposition(|begun| self.is_committed(core, begun));
        let Some(newest) = newest else { return };
        let Begun { generation, seats, synced_last } = self.uncommitted[newest].clone();
        self.uncommitted.drain(..=newest);
        self.is_recorded = true;
        let is_away = |seat: &CommittedSeat| {
            !matches!(seat.membership, Membership::Present | Membership::Filling { .. })
        };
        let recorded = seats_where(&seats, is_away);
        core.meta.note_committed(generation, seats);
        core.holdings.note_synced_for_good(synced_last);
        core.note_recorded(recorded); // G2
    }

    fn is_committed(&self, core: &Core, begun: &Begun) -> bool {
        let has_it = |(_, holder): &(usize, &Holder)| holder.has >= begun.generation;
        let copies = self.holders.iter().enumerate().filter(has_it);
        let copies: DriveSet = copies.map(|(at, _)| DriveIdx::from_usize(at)).collect();
        let away = seats_where(&begun.seats, |seat| seat.membership != Membership::Present);
        core.place.layout.spec().is_enough(away.or(copies))
    }

    /// Begins the next generation, or goes into the next phase; returns whether it did.
    fn step(&mut self, core: &mut Core, now: Instant, silent: DriveSet) -> bool {
        let are_committed = self.uncommitted.is_empty();
        let reachable = core.drives.reachable();
        // The last ones are waited for on every drive: each has just ended a flush.
        let is_settled = self.is_settled_on(core, reachable.without(silent));
        let is_everywhere = self.is_settled_on(core, reachable);
        let may_begin = self.may_begin(core);
        let is_change_due = self.is_later_due(core, now) || core.meta.change() == Change::Now;
        match self.phase {
            Phase::Shut | Phase::Closed if self.are_wishes_due => {
                let may_say_it = self.are_all_here(core);
                let is_due = may_say_it
                    && are_committed
                    && self.have_newest(reachable)
                    && self.has_looked(core, now, silent);
                self.are_wishes_due = may_say_it && !is_due;
                if is_due {
                    self.begin(core, now, core.meta.now().state); // G9
                }
                is_due
            }
            Phase::Shut | Phase::Closed => false,
            Phase::Opening(0) => {
                let has_looked = self.has_looked(core, now, silent);
                if has_looked {
                    let first = core.gate.lease_end().and(reachable.without(silent).iter().next());
                    self.alone = first.map(|drive| Alone { drive, left: 1 });
                    self.begin(core, now, State::Dirty);
                    self.phase = Phase::Opening(1);
                }
                has_looked
            }
            Phase::Opening(_) if self.alone.is_some() => self.go_on_alone(core, now, silent),
            Phase::Opening(1) if is_settled => {
                self.begin(core, now, State::Dirty);
                self.phase = Phase::Opening(2);
                true
            }
            Phase::Opening(2) if are_committed && self.have_newest(reachable.without(silent)) => {
                let at = match core.gate.lease_end() {
                    None => now,
                    Some(_) => *self.opens_at.get_or_insert(Fence::last_lease_end(now)),
                };
                let is_open = at <= now;
                if is_open {
                    (self.phase, self.opens_at) = (Phase::Open, None); // G1
                }
                is_open
            }
            Phase::Flushing(ref flush) if flush.pending.is_empty() && are_committed => {
                self.phase = Phase::Closing(1);
                self.begin(core, now, State::Dirty);
                true
            }
            Phase::Closing(1) if is_everywhere => {
                self.phase = Phase::Closing(2);
                self.begin(core, now, State::Clean); // G7
                true
            }
            Phase::Closing(2) if is_everywhere => {
                self.phase = Phase::Closed;
                true
            }
            Phase::Opening(1 | 2) | Phase::Open | Phase::Flushing(_) | Phase::Closing(_)
                if is_change_due && may_begin =>
            {
                let is_last = matches!(self.phase, Phase::Closing(2));
                self.begin(core, now, if is_last { State::Clean } else { State::Dirty });
                true
            }
            Phase::Opening(_) | Phase::Open | Phase::Flushing(_) | Phase::Closing(_) => false,
        }
    }

    /// Gives the drive that is alone its next generation, or goes on to the others. Returns whether it did.
    fn go_on_alone(&mut self, core: &mut Core, now: Instant, silent: DriveSet) -> bool {
        let Some(Alone { drive, left }) = self.alone else { return false };
        let is_there = core.drives.reachable().without(silent).contains(drive);
        let holder = &self.holders[drive.as_usize()];
        let has_it = holder.has >= self.content.generation;
        if is_there && !has_it && holder.unstored < self.content.generation {
            return false;
        }
        self.alone = (has_it && left > 0).then(|| Alone { drive, left: left - 1 });
        if self.alone.is_some() {
            self.begin(core, now, State::Dirty);
        }
        true
    }

    /// Whether one more generation may be begun: some drive would get it at once, and no drive is too far ahead of what is
    /// committed.
    fn may_begin(&self, core: &Core) -> bool {
        let is_free = |drive: DriveIdx| self.holders[drive.as_usize()].writing.is_none();
        (self.uncommitted.len() as u64) < LEAD_MAX && core.drives.reachable().iter().any(is_free)
    }

    /// Whether every drive that is called present is there and answers, and has what was found or is given it (G9).
    fn are_all_here(&self, core: &Core) -> bool {
        let away = core.drives.away();
        let missing = away.without(not_present(&self.content.members));
        let is_as_found = core.meta.members() == self.content.members;
        let have_it = self.gives || self.have_newest(core.drives.reachable());
        is_as_found
            && missing.is_empty()
            && have_it
            && core.drives.silent().without(away).is_empty()
    }

    /// Whether it is time to write what nothing waits for.
    fn is_later_due(&mut self, core: &Core, now: Instant) -> bool {
        let has_written = core.writes.ended() > self.refreshed.writes;
        let after = match core.meta.change() {
            Change::Later => Some(LATER),
            Change::None if has_written && core.gate.lease_end().is_some() => Some(fence::SIGN),
            Change::None if core.log.ring_wraps > self.refreshed.ring_wraps => Some(LATER),
            Change::None if has_written => Some(REFRESH),
            Change::None | Change::Now => None,
        };
        let at = after.filter(|_| self.is_open()).map(|after| self.refreshed.at + after);
        self.later_at = at.filter(|&at| now < at);
        at.is_some_and(|at| at <= now)
    }

    /// Begins the next generation.
    fn begin(&mut self, core: &mut Core, now: Instant, state: State) {
        let was = core.meta.change();
        let is_first = self.content.run != self.run;
        let base = if is_first { self.content.generation } else { self.content.base };
        let generation = self.content.generation.plus(if is_first { RUN } else { 1 });
        if self.phase == Phase::Closing(2) && state == State::Clean {
            // Everything was flushed, and nothing is in the journal from now on (RB2).
            for drive in core.drives.filling().iter() {
                if !core.meta.members()[drive.as_usize()].is_present() {
                    let to = core.holdings.front(drive).min(core.layout().stripes());
                    core.meta.set_filled(drive, to);
                }
            }
        }
        self.check(core, state);
        let synced = if state == State::Clean { core.holdings.synced() } else { 0 };
        let is_unwritten = matches!(self.phase, Phase::Shut | Phase::Closed);
        let is_known = self.synced == Synced::Safely || (state == State::Clean && !is_unwritten); // G6
        let first = core.log.next.filter(|_| state == State::Clean && !is_unwritten);
        let (is_journaled, core_synced) = (core.log.is_journaled, core.holdings.synced());
        let meant = core.drives.reachable();
        let metadata = core.meta.now_mut();
        (metadata.generation, metadata.run, metadata.base) = (generation, self.run, base);
        if !is_unwritten {
            (metadata.state, metadata.synced) = (state, synced);
            // Never less than before: a resync that a loss has ended has made nothing worse.
            let known = if is_known { core_synced } else { 0 };
            metadata.synced_last = metadata.synced_last.max(known);
        }
        if state == State::Clean && !is_unwritten && is_journaled {
            // With an earlier one, what comes next would be older than what its rings say is over.
            let first = first.expect("G7: the journal is over");
            metadata.journal = metadata.journal.map(|kept| Kept { first, ..kept });
        }
        for drive in meant.iter() {
            let member = &mut metadata.members[drive.as_usize()];
            let holder = &self.holders[drive.as_usize()];
            // What one that is back has from before is known as long as it has nothing newer.
            member.stored = member.stored.max(holder.has);
            member.given = generation;
        }
        self.content = Arc::new(metadata.clone());
        self.uncommitted.push_back(Begun::of(&self.content));
        self.gives = true;
        let (writes, ring_wraps) = (core.writes.ended(), core.log.ring_wraps);
        self.refreshed = Refreshed { at: now, writes, ring_wraps };
        core.meta.begin(generation);
        if was == Change::Now && self.records_changes() {
            core.meta.note_change(Change::Later); // G5
        }
        core.counters.generations += 1;
    }

    /// Asserts what every generation keeps.
    fn check(&self, core: &Core, state: State) {
        let away = not_present(core.meta.members());
        assert!(core.meta.now().can_do_without_absent(), "G4: {away}");
        // A drive that is full counts from now on in what is recorded, and here once that is safe.
        let full = core.drives.filling().without(away);
        assert_eq!(away.or(full), core.drives.lost(), "the metadata and the drives say the same");
        // An array to which nothing was written in this run is as clean as it was.
        let is_unwritten = matches!(self.phase, Phase::Shut | Phase::Closed);
        let is_closing = matches!(self.phase, Phase::Closing(2));
        assert!(state == State::Dirty || is_closing || is_unwritten, "G7");
        let is_same = state == self.content.state && away == not_present(&self.content.members);
        assert!(!is_unwritten || is_same, "G9");
    }
}

#[cfg(test)]
mod tests;
