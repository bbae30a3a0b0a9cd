//! The copies of the list of damaged sectors on the drives.
//!
//! ```text
//!   changed --> written to every drive that is there, each in its other slot --> safe: on enough drives
//! ```
//!
//! A change is one *generation*. What relies on it waits until it is safe: the layout does not survive the loss of
//! all drives that have it together with those that are recorded as lost, so that one of them is left after every
//! further loss that it survives.
//!
//! # Invariants
//!
//! - Y3. Of a drive's two slots the one that holds its newest generation is never written over by the next.

use levelhead_block::{BufId, Command, Durability, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant};

use super::books::Books;
use super::damaged::{DamagedList, Listing, slots};
use super::listing::DamagedSummary;
use super::stored::Stored;
use super::superblock::{Own, Uuid};
use crate::action::{Action, SubId};
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::{Array, Moved};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListCopies {
    array: Uuid,
    /// What the last generation that was begun says.
    begun: DamagedList,
    /// One a drive; nothing for one that keeps no list.
    seats: Vec<Option<Seat>>,
}

/// The copies on one drive.
#[derive(Clone, Debug)]
struct Seat {
    member: Uuid,
    place: Extent,
    /// The newest generation that it has, 0 for none.
    has: u64,
    /// The newest generation that it was given and has not stored, 0 for none.
    unstored: u64,
    /// The slot that is written next.
    next: usize,
    writing: Option<Writing>,
}

#[derive(Clone, Copy, Debug)]
struct Writing {
    sub: SubId,
    buf: BufId,
    generation: u64,
}

impl Seat {
    /// Whether the drive has a generation, or was given it and has not stored it.
    fn was_given(&self, generation: u64) -> bool {
        self.has.max(self.unstored) >= generation
    }
}

impl ListCopies {
    pub(crate) fn new(books: &Books) -> Self {
        let seat = |(at, own): (usize, &Option<Own>)| {
            let place = own.as_ref()?.damaged()?;
            let newest = books.damaged.newest[at];
            let (has, next) = newest.map_or((0, 0), |newest| (newest.generation, 1 - newest.slot));
            let member = books.book.members[at].uuid;
            Some(Seat { member, place, has, unstored: 0, next, writing: None })
        };
        let seats = books.owns.iter().enumerate().map(seat).collect();
        Self { array: books.book.array, begun: books.damaged.list.clone(), seats }
    }

    /// A drive has ended a write of its list.
    pub(crate) fn handle_done(
        &mut self,
        core: &mut Core,
        drive: DriveIdx,
        sub: SubId,
        stored: Stored,
    ) {
        let Some(seat) = &mut self.seats[drive.as_usize()] else { return };
        let Some(writing) = seat.writing.take_if(|writing| writing.sub == sub) else { return };
        core.release(writing.buf);
        match stored {
            Stored::Yes => {
                seat.has = writing.generation;
                seat.next = 1 - seat.next; // Y3
            }
            Stored::No => seat.unstored = writing.generation,
        }
    }

    /// The place of a lost drive has a new one, which has no list yet: it gets one when it holds all else, before it counts.
    pub(crate) fn replace(&mut self, drive: DriveIdx, member: Uuid, own: &Own) {
        if let Some(seat) = self.seats.get_mut(drive.as_usize()) {
            let new = |place| Seat { member, place, has: 0, unstored: 0, next: 0, writing: None };
            *seat = own.damaged().map(new);
        }
    }

    /// The array does without a drive from now on.
    pub(crate) fn handle_lost(&mut self, core: &mut Core, drive: DriveIdx) {
        let Some(Some(seat)) = self.seats.get_mut(drive.as_usize()) else { return };
        if let Some(writing) = seat.writing.take() {
            core.release(writing.buf);
        }
    }

    /// Drives that did not store the last generation, if it is not safe although all others have ended.
    pub(crate) fn unstored(&self, core: &Core) -> DriveSet {
        let Some(generation) = core.damaged.generation() else { return DriveSet::EMPTY };
        let counted = core.counted();
        if self.is_on_enough(core, generation) || self.is_writing(core, DriveSet::EMPTY) {
            return DriveSet::EMPTY;
        }
        let seat = |drive: DriveIdx| self.seats.get(drive.as_usize())?.as_ref();
        let is_meant = |seat: &Seat| seat.unstored >= generation;
        counted.iter().filter(|&drive| seat(drive).is_some_and(is_meant)).collect()
    }

    /// Whether enough drives have the last generation, and all of these that keep a list have it or did not store it.
    pub(crate) fn is_on(&self, drives: DriveSet, core: &Core) -> bool {
        let Some(generation) = core.damaged.generation() else { return true };
        let mut seats =
            drives.iter().filter_map(|drive| self.seats.get(drive.as_usize())?.as_ref());
        self.is_on_enough(core, generation) && seats.all(|seat| seat.was_given(generation))
    }

    /// Whether every drive has what was begun.
    fn is_everywhere(&self, generation: u64) -> bool {
        self.seats.iter().flatten().all(|seat| seat.has >= generation)
    }

    /// Moves on as the facts demand. `silent` drives are not waited for.
    fn advance(&mut self, core: &mut Core, now: Instant, silent: DriveSet) {
        let Some(mut generation) = core.damaged.generation() else { return };
        if core.has_failed() {
            return core.damaged.note_failed();
        }
        if !core.may_write {
            return;
        }
        if self.is_on_enough(core, generation) {
            core.damaged.note_safe();
            if core.damaged.is_changed() && !self.is_writing(core, silent) {
                generation = core.damaged.begin();
                self.begun = core.damaged.list().clone();
            }
        }
        self.write(core, now, generation);
    }

    fn is_writing(&self, core: &Core, silent: DriveSet) -> bool {
        let drives = core.counted().without(silent);
        drives.iter().any(|drive| {
            self.seats[drive.as_usize()].as_ref().is_some_and(|seat| seat.writing.is_some())
        })
    }

    fn is_on_enough(&self, core: &Core, generation: u64) -> bool {
        let has = |(_, seat): &(usize, &Option<Seat>)| {
            seat.as_ref().is_some_and(|seat| seat.has >= generation)
        };
        let copies = self.seats.iter().enumerate().filter(has);
        let copies: DriveSet = copies.map(|(at, _)| DriveIdx::from_usize(at)).collect();
        let lost = core.uncounted_or_away();
        let recorded = lost.without(core.unrecorded);
        !core.layout.spec().survives(recorded.or(copies.without(lost)))
    }

    /// Begins to write the last generation to every drive that lacks it.
    fn write(&mut self, core: &mut Core, now: Instant, generation: u64) {
        for drive in core.counted().iter() {
            let Some(seat) = &mut self.seats[drive.as_usize()] else { continue };
            if seat.writing.is_some() || seat.was_given(generation) {
                continue;
            }
            let (array, member, list) = (self.array, seat.member, self.begun.clone());
            let listing = Listing { array, member, generation, list };
            let sectors = listing.sectors();
            let into = Place { buf: core.acquire(sectors), sector: 0 };
            core.actions.push_back(Action::Enlist { into, listing: Box::new(listing) });
            let extent = Extent::new(slots(seat.place)[seat.next], sectors);
            let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
            let origin = core.own_origin();
            let what = Enqueue {
                purpose: Purpose::List,
                drive,
                command: Command::Write { extent, durability, zero_tail },
                segments: Segment { place: into, sectors: sectors.get() as u32 }.into(),
                origin,
                end: End::Head,
                fate: Fate::Certain,
                since: None,
            };
            let sub = core.enqueue(now, what);
            seat.writing = Some(Writing { sub, buf: into.buf, generation });
        }
    }
}

impl Array {
    /// How many sectors of its drives are damaged, and how well that is known.
    pub fn damaged_summary(&self) -> DamagedSummary {
        self.core.damaged.summary()
    }

    /// The sectors of its drives that are damaged.
    pub fn damaged(&self) -> &DamagedList {
        self.core.damaged.list()
    }

    /// Moves the list of damaged sectors on, and what waits for it.
    pub(crate) fn keep_damaged(&mut self, now: Instant) -> Moved {
        let core = &mut self.core;
        let generation = core.damaged.generation().unwrap_or(0);
        let is_at_rest = core.damaged.is_safe() && self.list_copies.is_everywhere(generation);
        if is_at_rest && !core.damaged.is_awaited() {
            return Moved::No;
        }
        if core.damaged.is_changed()
            && let Some(ledger) = &mut self.ledger
        {
            ledger.open(core);
        }
        let silent = core.drives.silent();
        let was_safe = core.damaged.is_safe();
        self.list_copies.advance(core, now, silent);
        let is_news = !was_safe && core.damaged.is_safe();
        if let (Some(journal), true) = (&mut self.journal, is_news) {
            journal.note_books_safe(core);
        }
        let ready = self.core.damaged.take_ready();
        let moved = if ready.is_empty() && !is_news { Moved::No } else { Moved::Yes };
        for op in ready {
            self.advance(now, op);
            self.core.damaged.forget(op);
        }
        moved
    }
}
