//! The ledger: what is written on the members before what.
//!
//! ```text
//!            first write                 all answered, flushed
//!   Shut ---------------> Opening --> Open ---------------> Closing --> Closed
//!                        dirty, dirty   |  ^              dirty, clean
//!                                       +--+ a drive was lost: dirty
//! ```
//!
//! An *entry* is one generation of the book. It goes to all drives that are present at the same time, as
//! ordinary commands to absolute addresses: the first copy of the superblock, and when that is safe, the second.
//!
//! ```text
//!   begun --> safe: on enough drives --> complete: on all that answer --> the next entry
//!              |
//!              +--> answers that rely on it go out, writes that wait for the opening begin
//! ```
//!
//! An entry is on enough drives if the layout does not survive the loss of all of them together with those that are
//! not present. So whatever loss the array survives, one of the copies is left: if it were all of them, the layout
//! would not survive it. Where `k` drives are redundant, whichever they are, and `l` are not present, that is
//! `k + 1 - l` copies. For `raid10` a number would be wrong both ways: with a drive of another pair lost it survives
//! the loss of more than `k - l`, and of `k + 1` drives of different pairs it survives the loss of all; what is needed
//! is both drives of some pair, or the other one where one is not present. A drive has a copy when that was read back
//! (`verify/books.rs`); one that does not store any is not waited for, and not counted.
//!
//! # Invariants
//!
//! - G1. Nothing is written to the array's data before the second entry of the opening is safe.
//! - G2. The next entry begins only when every drive that is present and answers has the last one, in both
//!   copies, so that none of them is ever two generations behind. What was found after a crash in the middle of
//!   an entry is therefore given to all of them first, as the generation that it is. A drive that is silent gets
//!   what it missed once it answers, and before the last two entries; after a crash meanwhile it counts as stale. So does one
//!   that is needed and stores no entry at all.
//! - G3. An answer that relies on the loss of a drive goes out after an entry with that loss is safe.
//! - G4. An entry never says that more drives are gone than the layout survives.
//! - G5. What says how far redundancy was last known to be valid is begun after a flush that began after it was
//!   made so.
//! - G6. What says clean is begun after every drive that is present has ended a flush that began after the
//!   last write.
//! - G8. What says that a drive is filled up to some stripe is begun after that drive has ended a flush that began
//!   after all below was copied to it, and once enough rings say for good that what was copied is committed.
//! - G9. What operators have said of the array's own work goes out with every entry. Where the array is not open it is an entry
//!   of its own that says nothing else: one, and only while every drive is there and answers that the book says is
//!   present, so that none of them is two generations behind.
//! - G10. What was found at a start and is not on enough drives is given to all of them first, as the generation that it is:
//!   what a cut has left of an entry that calls a filled drive present may be on one drive alone, and with that one lost the
//!   others would not know that they are enough.
//! - G7. A drive has at most one record inside: an older one can never land after a newer one.

use std::collections::VecDeque;

use levelhead_block::{BufId, Command, Durability, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Sectors};

use super::books::Books;
use super::maps::Loss;
use super::membership::{Member, Membership, Why, done_without, not_present};
use super::stored::Stored;
use super::superblock::{Book, Forced, Kept, Own, State, Superblock, Uuid};
use super::wishes::Wishes;
use crate::action::{Action, SubId};
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::event::Ending;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// What the last entry says, or what was found.
    book: Book,
    owns: Vec<Option<Own>>,
    run: Uuid,
    /// Whether something was forced, and no scrub has gone through everything since.
    forced: Forced,
    /// Drives that missed the last entry, and are given it once they answer.
    lagging: DriveSet,
    /// For every drive the generation of the newest record that it may have. What it has is that one, or the one before.
    given: Vec<u64>,
    /// How the array stands with its drives now.
    members: Vec<Member>,
    /// What operators have said of the array's own work.
    wishes: Wishes,
    phase: Phase,
    synced: Synced,
    /// Entries that are to come, besides the one under way.
    due: VecDeque<Due>,
    entry: Option<Entry>,
    /// Whether what was found, or an entry since, is on enough drives.
    is_recorded: bool,
    /// Records of earlier entries that silent drives have not ended.
    leftover: Vec<Leftover>,
}

/// A record that a drive may still carry out, of an entry that went on without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leftover {
    drive: DriveIdx,
    sub: SubId,
    buf: BufId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Shut,
    Opening,
    Open,
    /// The last flush is under way.
    Flushing(Flush),
    Closing,
    Closed,
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

/// A flush of all drives that are present.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Flush {
    /// Its parts that have not ended.
    pending: Vec<FlushPart>,
}

/// A flush of one drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlushPart {
    drive: DriveIdx,
    sub: SubId,
}

/// A drive that comes into a place of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Its identity from now on: random bytes.
    pub uuid: Uuid,
    /// What it says of itself.
    pub own: Own,
}

/// An entry that is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// The book as it is once more, for drives that missed it: of the generation that it has.
    Again,
    /// A new generation, with this state.
    New(State),
}

/// An entry under way.
#[derive(Clone, Debug)]
struct Entry {
    /// One a drive.
    progress: Vec<Progress>,
    is_safe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The drive was not present when the entry was begun, or is lost since.
    NotAsked,
    /// The drive may still carry out a record of an earlier entry, which must not land after this one.
    Waiting {
        buf: BufId,
    },
    First {
        sub: SubId,
        buf: BufId,
    },
    Second {
        sub: SubId,
        buf: BufId,
        /// Whether the drive has the first copy.
        first: Stored,
    },
    /// The drive has ended both copies, and has at least one, or none.
    Done(Stored),
}

impl Progress {
    fn has_copy(self) -> bool {
        matches!(self, Self::Second { first: Stored::Yes, .. } | Self::Done(Stored::Yes))
    }
}

impl Ledger {
    pub(crate) fn new(books: &Books) -> Self {
        let Books { book, owns, run, forced_over, lagging, damaged: _, missed: _ } = books.clone();
        let forced = if forced_over.is_some() { Forced::Yes } else { book.forced };
        assert_eq!(owns.len(), book.spec.members(), "Q1: what drives say of themselves");
        assert_eq!(owns.len(), book.members.len(), "Q1: members");
        for (at, own) in owns.iter().enumerate() {
            let drive = DriveIdx::from_usize(at);
            let Some(own) = own else {
                assert!(!lagging.contains(drive), "Q1: drive {drive} is absent");
                continue;
            };
            assert_eq!(own.drive, drive, "Q1: the place that drive {drive} says it has");
            let membership = book.members[at].membership;
            let is_used = matches!(membership, Membership::Present | Membership::Filling { .. });
            assert!(is_used, "Q2: drive {drive}: {membership:?}");
        }
        let (members, wishes) = (book.members.clone(), book.wishes);
        let given = vec![book.generation; members.len()]; // Q1
        let (phase, synced) = (Phase::Shut, Synced::NotNow);
        let there = (0..owns.len()).filter(|&at| owns[at].is_some()).map(DriveIdx::from_usize);
        let copies = there.collect::<DriveSet>().without(lagging);
        let is_recorded = lagging.is_empty() || book.is_on_enough(copies);
        let due = if is_recorded { VecDeque::new() } else { VecDeque::from([Due::Again]) }; // G10
        let entry = None;
        Self {
            book,
            owns,
            run,
            forced,
            lagging,
            given,
            members,
            wishes,
            phase,
            synced,
            due,
            entry,
            is_recorded,
            leftover: Vec::new(),
        }
    }

    /// The array's identity.
    pub(crate) fn array(&self) -> Uuid {
        self.book.array
    }

    /// The generation of the last entry, or the one that was found.
    pub(crate) fn generation(&self) -> u64 {
        self.book.generation
    }

    /// How the array stands with each of its drives.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// Whether an operator has made the array go on where data may be wrong, and no scrub has passed since.
    pub(crate) fn forced(&self) -> Forced {
        self.forced
    }

    /// A scrub has gone through everything and has found nothing that it could not make right: what was forced is not
    /// marked any more.
    pub(crate) fn note_scrubbed(&mut self, core: &mut Core) {
        // It has not seen what a drive holds that is away or being filled; and one that is away may still come back, so that
        // the books are not opened for this.
        if self.forced == Forced::No || !core.drives.lost().is_empty() {
            return;
        }
        self.forced = Forced::No;
        self.open(core);
        self.tell_members();
    }

    /// Whether data may be written (G1).
    pub(crate) fn is_open(&self) -> bool {
        match self.phase {
            Phase::Open | Phase::Flushing(_) => true,
            Phase::Shut | Phase::Opening | Phase::Closing | Phase::Closed => false,
        }
    }

    /// Whether every drive that answers has the last entry, and none is to come.
    pub(crate) fn is_settled(&self) -> bool {
        self.entry.is_none() && self.due.is_empty()
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

    /// A write is waiting: begins the opening.
    pub(crate) fn open(&mut self, core: &mut Core) {
        if self.phase != Phase::Shut || core.has_failed() {
            return;
        }
        self.phase = Phase::Opening;
        self.due.clear(); // The next entry says it, too (G9).
        for drive in core.drives.away().iter() {
            let generation = self.book.generation;
            let member = &mut self.members[drive.as_usize()];
            if let Some(held) = held_by(member.membership) {
                let last = self.given[drive.as_usize()];
                core.begin_missed(drive, Loss { since: generation, last, held });
                member.membership = Membership::Missing { since: generation };
            }
        }
        if !self.lagging.without(core.drives.away()).is_empty() {
            self.due.push_back(Due::Again); // G2
        }
        // The second one so that a copy of a member from before is two generations behind.
        self.due.extend([Due::New(State::Dirty), Due::New(State::Dirty)]);
    }

    /// The array does without a drive from now on.
    pub(crate) fn handle_lost(&mut self, core: &mut Core, drive: DriveIdx, why: Why) {
        let member = &mut self.members[drive.as_usize()];
        if let Some(held) = held_by(member.membership) {
            let (since, last) = (self.book.generation, self.given[drive.as_usize()]);
            core.begin_missed(drive, Loss { since, last, held });
        }
        member.membership = Membership::Lost { why };
        if let Some(entry) = &mut self.entry {
            match std::mem::replace(&mut entry.progress[drive.as_usize()], Progress::NotAsked) {
                Progress::Waiting { buf }
                | Progress::First { buf, .. }
                | Progress::Second { buf, .. } => core.release(buf),
                Progress::NotAsked | Progress::Done(_) => {}
            }
        }
        let (own, others) = self.leftover.iter().partition(|leftover| leftover.drive == drive);
        self.leftover = others;
        let own: Vec<Leftover> = own;
        own.iter().for_each(|leftover| core.release(leftover.buf));
        self.note_flushed(|part| part.drive == drive);
        self.tell_members();
    }

    /// The place of a lost drive has a new one, which is to be filled and is part of every entry from now on.
    pub(crate) fn begin_filling(&mut self, core: &mut Core, drive: DriveIdx, new: NewMember) {
        let NewMember { uuid, own } = new;
        assert_eq!(own.drive, drive, "Q1: the place that drive {drive} says it has");
        self.members[drive.as_usize()] = Member { uuid, membership: Membership::Filling { to: 0 } };
        self.owns[drive.as_usize()] = Some(own);
        self.lagging = self.lagging.without(DriveSet::EMPTY.with(drive));
        match self.phase {
            Phase::Shut => self.open(core),
            _ => self.tell_members(),
        }
    }

    /// A drive that is being filled holds all stripes below `to` for good (G8).
    pub(crate) fn note_filled(&mut self, drive: DriveIdx, to: u64) {
        self.members[drive.as_usize()].membership = Membership::Filling { to };
        self.tell_members();
    }

    /// A drive that was being filled holds everything for good (G8).
    pub(crate) fn end_filling(&mut self, drive: DriveIdx) {
        self.members[drive.as_usize()].membership = Membership::Present;
        self.tell_members();
    }

    /// The maps of more drives are kept than the books say.
    pub(crate) fn note_kept(&mut self) {
        self.tell_members();
    }

    /// What operators have said of the array's own work is this now.
    pub(crate) fn note_wishes(&mut self, core: &Core, wishes: Wishes) {
        self.wishes = wishes;
        if wishes == self.book.wishes || core.has_failed() {
            return;
        }
        match self.phase {
            // It is not begun unless all drives are there and have what was found.
            Phase::Shut if !self.is_new_due() => self.due.push_back(Due::New(self.book.state)),
            Phase::Opening | Phase::Open | Phase::Flushing(_) => self.tell_members(),
            Phase::Shut | Phase::Closing | Phase::Closed => {}
        }
    }

    fn is_new_due(&self) -> bool {
        self.due.iter().any(|due| matches!(due, Due::New(_)))
    }

    /// Whether every drive that the book says is present has the last entry and answers (G9).
    fn are_all_here(&self, core: &Core) -> bool {
        let missing = core.drives.away().without(not_present(&self.book.members));
        let is_as_found = self.members == self.book.members;
        is_as_found
            && missing.is_empty()
            && self.lagging.is_empty()
            && core.drives.silent().without(core.drives.away()).is_empty()
    }

    /// What has become of the members is recorded, unless another entry is about to say it.
    fn tell_members(&mut self) {
        let is_told = !self.is_new_due() && self.records_losses() && self.phase != Phase::Closed;
        if is_told {
            self.due.push_back(Due::New(self.book.state));
        }
    }

    /// All redundancy is valid. That is recorded, because it says how far redundancy may be trusted after a crash.
    pub(crate) fn handle_synced(&mut self, core: &mut Core, now: Instant) {
        if self.phase == Phase::Open {
            self.synced = Synced::Flushing(self.flush(core, now));
        }
    }

    fn flush(&self, core: &mut Core, now: Instant) -> Flush {
        let reachable: Vec<DriveIdx> = core.drives.reachable().iter().collect();
        let ask = |drive| {
            let sub = self.ask(core, now, drive, Command::Flush, Vec::new());
            FlushPart { drive, sub }
        };
        Flush { pending: reachable.into_iter().map(ask).collect() }
    }

    /// Some parts of flushes have ended, or will not.
    fn note_flushed(&mut self, is_over: impl Fn(&FlushPart) -> bool) {
        if let Phase::Flushing(flush) = &mut self.phase {
            flush.pending.retain(|part| !is_over(part));
        }
        if let Synced::Flushing(flush) = &mut self.synced {
            flush.pending.retain(|part| !is_over(part));
            if flush.pending.is_empty() {
                self.synced = Synced::Safely;
                if self.phase == Phase::Open {
                    self.due.push_back(Due::New(State::Dirty));
                }
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
                self.wishes = wishes;
                self.phase = Phase::Flushing(self.flush(core, now));
            }
            // The opening comes to its end first.
            Phase::Opening | Phase::Flushing(_) | Phase::Closing | Phase::Closed => {}
        }
    }

    /// How the array has ended, once it has.
    pub(crate) fn ending(&self, core: &Core) -> Option<Ending> {
        if core.has_failed() {
            return Some(Ending::Failed);
        }
        (self.phase == Phase::Closed && self.is_settled()).then_some(Ending::Clean)
    }

    /// Drives that did not store the entry under way, if it is not safe although all others have ended.
    pub(crate) fn unstored(&self) -> DriveSet {
        let Some(entry) = self.entry.as_ref().filter(|entry| !entry.is_safe) else {
            return DriveSet::EMPTY;
        };
        let is_over = |progress: &Progress| match progress {
            Progress::NotAsked | Progress::Done(_) => true,
            Progress::Waiting { .. } | Progress::First { .. } | Progress::Second { .. } => false,
        };
        if !entry.progress.iter().all(is_over) {
            return DriveSet::EMPTY;
        }
        let progress = entry.progress.iter().enumerate();
        let unstored = progress.filter(|(_, progress)| **progress == Progress::Done(Stored::No));
        unstored.map(|(at, _)| DriveIdx::from_usize(at)).collect()
    }

    /// A drive has ended a command of the ledger's, and is not lost.
    pub(crate) fn handle_done(
        &mut self,
        core: &mut Core,
        now: Instant,
        drive: DriveIdx,
        sub: SubId,
        stored: Stored,
    ) {
        let at = drive.as_usize();
        if let Some(place) = self.leftover.iter().position(|leftover| leftover.sub == sub) {
            core.release(self.leftover.swap_remove(place).buf);
            return self.write_waiting(core, now, drive);
        }
        let progress = self.entry.as_ref().map(|entry| entry.progress[at]);
        let next = match progress {
            Some(Progress::First { sub: own, buf }) if own == sub => {
                let sub = self.write_copy(core, now, drive, 1, buf);
                Progress::Second { sub, buf, first: stored }
            }
            Some(Progress::Second { sub: own, buf, first }) if own == sub => {
                core.release(buf);
                self.lagging = self.lagging.without(DriveSet::EMPTY.with(drive));
                let has_one = [first, stored].contains(&Stored::Yes);
                Progress::Done(if has_one { Stored::Yes } else { Stored::No })
            }
            Some(_) | None => return self.note_flushed(|part| part.sub == sub),
        };
        self.entry.as_mut().expect("it has progress").progress[at] = next;
    }

    /// Moves on as the facts demand. `silent` drives are not waited for.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant, silent: DriveSet) {
        if core.has_failed() {
            // G4: the last entry on the drives is the last state that can be trusted.
            self.due.clear();
            core.fail_held();
            return;
        }
        loop {
            self.look_at_entry(core, now, silent);
            if self.entry.is_some() {
                return;
            }
            let behind = self.lagging.without(core.drives.away()).without(silent);
            if !behind.is_empty() && matches!(self.due.front(), Some(Due::New(_))) {
                self.due.push_front(Due::Again); // G2
            }
            if let Some(due) = self.due.pop_front() {
                let is_unwritten = matches!(self.phase, Phase::Shut | Phase::Closed);
                if is_unwritten && due != Due::Again && !self.are_all_here(core) {
                    continue; // G9
                }
                if let Due::New(state) = due {
                    let lagging = self.lagging.without(core.drives.away()).without(silent);
                    assert!(lagging.is_empty(), "G2: drives {lagging} would be two behind");
                    self.turn_over(core, state);
                }
                self.begin(core, now);
                continue;
            }
            let lagging = self.lagging.without(core.drives.away());
            // At the end none may be silent: every drive has just ended a flush.
            let is_again_due = match &self.phase {
                Phase::Opening | Phase::Open => !lagging.without(silent).is_empty(),
                Phase::Flushing(flush) => flush.pending.is_empty() && !lagging.is_empty(),
                Phase::Shut | Phase::Closing | Phase::Closed => false,
            };
            if is_again_due {
                self.due.push_back(Due::Again); // G2
                continue;
            }
            match self.phase {
                Phase::Flushing(ref flush) if flush.pending.is_empty() => {
                    self.phase = Phase::Closing;
                    // Dirty once more, so that a copy of a member from before is two generations behind.
                    self.due.extend([Due::New(State::Dirty), Due::New(State::Clean)]);
                }
                Phase::Closing => self.phase = Phase::Closed,
                Phase::Shut | Phase::Opening | Phase::Open | Phase::Flushing(_) | Phase::Closed => {
                    return;
                }
            }
        }
    }

    /// Sees whether the entry under way is safe, and whether it is complete.
    fn look_at_entry(&mut self, core: &mut Core, now: Instant, silent: DriveSet) {
        let Some(entry) = &mut self.entry else { return };
        let has_copy = |(_, progress): &(usize, &Progress)| progress.has_copy();
        let copies = entry.progress.iter().enumerate().filter(has_copy);
        let copies: DriveSet = copies.map(|(at, _)| DriveIdx::from_usize(at)).collect();
        if !entry.is_safe && self.book.is_on_enough(copies) {
            (entry.is_safe, self.is_recorded) = (true, true);
            let away = not_present(&self.book.members);
            core.note_recorded(done_without(&self.book.members)); // G3
            core.unnamed = core.unnamed.and(done_without(&self.book.members));
            core.missed.note_named(core.unnamed);
            core.missed.note_recorded(self.book.missed);
            let all = DriveSet::first(self.book.members.len() as u8);
            core.present_for_good = all.without(away);
            core.synced_for_good = core.synced_for_good.max(self.book.synced_last);
            if self.phase == Phase::Opening && self.due.is_empty() {
                self.phase = Phase::Open; // G1
            }
        }
        // G2: no more silent drives are left behind than the layout can do without, and none by the last entries,
        // because there would be no later entry to give it what it missed.
        let silent = silent.without(core.drives.away());
        let may_lag = core.drives.can_spare(silent)
            && !matches!(self.phase, Phase::Flushing(_) | Phase::Closing);
        let is_waited_for = |(at, progress): (usize, &Progress)| match progress {
            Progress::NotAsked | Progress::Done(_) => false,
            Progress::Waiting { .. } | Progress::First { .. } | Progress::Second { .. } => {
                !(may_lag && silent.contains(DriveIdx::from_usize(at)))
            }
        };
        // An entry can become unable to be safe, because drives were lost that it calls present. Then the next one
        // replaces it, or nothing does where losses are not recorded.
        let is_unwritten = matches!(self.phase, Phase::Shut | Phase::Closed);
        let is_over = entry.is_safe || !self.due.is_empty() || is_unwritten;
        if is_over && !entry.progress.iter().enumerate().any(is_waited_for) {
            let progress = std::mem::take(&mut entry.progress);
            self.entry = None;
            for (at, progress) in progress.into_iter().enumerate() {
                self.leave(core, now, DriveIdx::from_usize(at), progress);
            }
        }
    }

    /// Goes on without the record that a silent drive was to write.
    fn leave(&mut self, core: &mut Core, now: Instant, drive: DriveIdx, progress: Progress) {
        if !matches!(progress, Progress::NotAsked | Progress::Done(_)) {
            self.lagging = self.lagging.with(drive);
        }
        match progress {
            Progress::NotAsked | Progress::Done(_) => {}
            Progress::Waiting { buf } => core.release(buf),
            Progress::First { sub, buf } | Progress::Second { sub, buf, .. } => {
                if core.withdraw(now, sub) {
                    core.release(buf);
                } else {
                    self.leftover.push(Leftover { drive, sub, buf });
                }
            }
        }
    }

    /// Begins the drive's record of this entry if no record of an earlier entry is inside the drive.
    fn write_waiting(&mut self, core: &mut Core, now: Instant, drive: DriveIdx) {
        let is_free = self.leftover.iter().all(|leftover| leftover.drive != drive);
        let at = drive.as_usize();
        let progress = self.entry.as_ref().map(|entry| entry.progress[at]);
        if let (true, Some(Progress::Waiting { buf })) = (is_free, progress) {
            self.given[at] = self.book.generation;
            let sub = self.write_copy(core, now, drive, 0, buf);
            let entry = self.entry.as_mut().expect("it has progress");
            entry.progress[at] = Progress::First { sub, buf };
        }
    }

    /// The book gets its next generation.
    fn turn_over(&mut self, core: &Core, state: State) {
        if self.phase == Phase::Closing && state == State::Clean {
            // Everything was flushed, and nothing is in the journal from now on (RB2).
            for drive in core.drives.filling().iter() {
                let to = core.valid[drive.as_usize()];
                let membership = &mut self.members[drive.as_usize()].membership;
                if *membership != Membership::Present {
                    *membership = Membership::Filling { to };
                }
            }
        }
        let away = not_present(&self.members);
        assert!(core.layout.spec().survives(away), "G4: {away}");
        // A drive that is full counts from now on in the book, and here once that is safe.
        let full = core.drives.filling().without(away);
        assert_eq!(away.or(full), core.drives.lost(), "the book and the drives say the same");
        // An array to which nothing was written in this run is as clean as it was.
        let is_unwritten = matches!(self.phase, Phase::Shut | Phase::Closed);
        assert!(state == State::Dirty || self.phase == Phase::Closing || is_unwritten, "G6");
        assert!(
            !is_unwritten || (state == self.book.state && away == not_present(&self.book.members)),
            "G9"
        );
        let synced = match state {
            State::Clean => core.synced,
            State::Dirty => 0,
        };
        let is_known = state == State::Clean || self.synced == Synced::Safely; // G5
        // Never less than before: a resync that a loss has ended has made nothing worse.
        let synced_last = if is_known { core.synced } else { 0 }.max(self.book.synced_last);
        self.book = Book {
            generation: self.book.generation + 1,
            run: self.run,
            state,
            forced: self.forced(),
            synced,
            synced_last,
            journal: self.book.journal.map(|kept| match state {
                State::Clean if core.is_journaled && !is_unwritten => {
                    // With an earlier one, what comes next would be older than what its rings say is over.
                    Kept { first: core.journal_next.expect("G6: the journal is over"), ..kept }
                }
                State::Clean | State::Dirty => kept,
            }),
            missed: core.missed.kept().and(away),
            wishes: self.wishes,
            members: self.members.clone(),
            ..self.book.clone()
        };
    }

    /// Gives the book to all drives that are present.
    fn begin(&mut self, core: &mut Core, now: Instant) {
        core.counters.ledger_entries += 1;
        self.entry =
            Some(Entry { progress: vec![Progress::NotAsked; self.members.len()], is_safe: false });
        // A drive that has come into a place is part of entries that say so, and not of one that is repeated: that would give it
        // the name of the one before it, which may have been lost without a record.
        let before = done_without(&self.book.members);
        let is_named = |drive: &DriveIdx| {
            self.book.members[drive.as_usize()].uuid == self.members[drive.as_usize()].uuid
        };
        let meant: Vec<DriveIdx> =
            core.drives.reachable().without(before).iter().filter(is_named).collect();
        for drive in meant {
            let buf = core.acquire(Sectors::new(1));
            let own = self.own(drive).clone();
            let superblock = Superblock { book: self.book.clone(), own, read_only: 0 };
            let (into, superblock) = (Place { buf, sector: 0 }, Box::new(superblock));
            core.actions.push_back(Action::Inscribe { into, superblock });
            let entry = self.entry.as_mut().expect("it was begun above");
            entry.progress[drive.as_usize()] = Progress::Waiting { buf };
            self.write_waiting(core, now, drive); // G7
        }
    }

    /// Sectors of every drive that hold data.
    pub(crate) fn drive_size(&self) -> Sectors {
        self.book.drive_size
    }

    /// What a drive says of itself that is there, or was.
    pub(crate) fn own_of(&self, drive: DriveIdx) -> Option<&Own> {
        self.owns.get(drive.as_usize())?.as_ref()
    }

    /// What a drive that is there says of itself.
    pub(crate) fn own(&self, drive: DriveIdx) -> &Own {
        self.owns[drive.as_usize()]
            .as_ref()
            .expect("a drive that is present said something of itself")
    }

    fn write_copy(
        &self,
        core: &mut Core,
        now: Instant,
        drive: DriveIdx,
        copy: usize,
        buf: BufId,
    ) -> SubId {
        assert!(self.leftover.iter().all(|leftover| leftover.drive != drive), "G7: drive {drive}");
        let extent = Extent::new(self.own(drive).copies()[copy], Sectors::new(1));
        let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
        let segment = Segment { place: Place { buf, sector: 0 }, sectors: 1 };
        let command = Command::Write { extent, durability, zero_tail };
        self.ask(core, now, drive, command, vec![segment])
    }

    fn ask(
        &self,
        core: &mut Core,
        now: Instant,
        drive: DriveIdx,
        command: Command,
        segments: Vec<Segment>,
    ) -> SubId {
        let origin = core.own_origin();
        core.enqueue(
            now,
            Enqueue {
                purpose: Purpose::Ledger,
                drive,
                command,
                segments: segments.into(),
                origin,
                end: End::Head,
                fate: Fate::Certain,
                since: None,
            },
        )
    }
}

/// Up to which stripe a drive holds everything that was part of the array; nothing if it was not.
fn held_by(membership: Membership) -> Option<u64> {
    match membership {
        Membership::Present => Some(u64::MAX),
        Membership::Filling { to } => Some(to),
        Membership::Missing { .. } | Membership::Lost { .. } | Membership::Spare => None,
    }
}
