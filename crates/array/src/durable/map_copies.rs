//! The copies of maps on the drives.
//!
//! Every drive that is there has all maps, and one that was filled has before it counts. A page is written where it lies, one at a time on a drive; its newest version
//! on each of enough drives makes it safe. Bits are never cleared, so that one that is cut off says what it said, or
//! more; one that is torn on too many drives counts as full. A page that a drive does not store keeps no other from it.

use levelhead_block::{BufId, Command, Durability, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Sectors};

use super::books::Books;
use super::maps::PageName;
use super::missed::{MAP_SECTORS, Page, place_of};
use super::stored::Stored;
use super::superblock::{Own, Uuid};
use crate::action::{Action, SubId};
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::{Array, Moved};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapCopies {
    array: Uuid,
    /// One a drive; nothing for one that has no place for maps.
    seats: Vec<Option<Seat>>,
}

/// The copies on one drive.
#[derive(Clone, Debug)]
struct Seat {
    member: Uuid,
    place: Extent,
    /// The change of every page that it has, by the drive whose map that is.
    has: Vec<[u64; MAP_SECTORS as usize]>,
    /// The newest change of every page that it was given and has not stored, 0 for none: it gets that page once it has changed
    /// again.
    unstored: Vec<[u64; MAP_SECTORS as usize]>,
    writing: Option<Writing>,
}

#[derive(Clone, Copy, Debug)]
struct Writing {
    sub: SubId,
    buf: BufId,
    what: PageChange,
}

/// A page as it is after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageChange {
    page: PageName,
    change: u64,
}

impl MapCopies {
    pub(crate) fn new(books: &Books) -> Self {
        let count = books.owns.len();
        let seat = |(at, own): (usize, &Option<Own>)| {
            let own = own.as_ref()?;
            Seat::new(own, books.book.members[at].uuid, count)
        };
        let seats = books.owns.iter().enumerate().map(seat).collect();
        Self { array: books.book.array, seats }
    }

    /// The place of a lost drive has a new one, or the old one under a new name: nothing on it counts.
    pub(crate) fn renew(&mut self, drive: DriveIdx, own: &Own, member: Uuid) {
        let count = self.seats.len();
        self.seats[drive.as_usize()] = Seat::new(own, member, count);
    }

    /// A drive has ended a write of a page.
    pub(crate) fn handle_done(
        &mut self,
        core: &mut Core,
        drive: DriveIdx,
        sub: SubId,
        stored: Stored,
    ) {
        let Some(Some(seat)) = self.seats.get_mut(drive.as_usize()) else { return };
        let Some(writing) = seat.writing.take_if(|writing| writing.sub == sub) else { return };
        core.release(writing.buf);
        let PageChange { page, change } = writing.what;
        let pages = match stored {
            Stored::Yes => &mut seat.has,
            Stored::No => &mut seat.unstored,
        };
        pages[page.drive.as_usize()][page.number] = change;
    }

    /// The array does without a drive from now on.
    pub(crate) fn handle_lost(&mut self, core: &mut Core, drive: DriveIdx) {
        let Some(Some(seat)) = self.seats.get_mut(drive.as_usize()) else { return };
        if let Some(writing) = seat.writing.take() {
            core.release(writing.buf);
        }
    }

    /// Drives that did not store a page, if it is not safe although all others have ended.
    pub(crate) fn unstored(&self, core: &mut Core) -> DriveSet {
        let pages = core.missed.pages();
        let seat = |drive: DriveIdx| self.seats.get(drive.as_usize())?.as_ref();
        let counted = core.counted();
        if counted.iter().filter_map(seat).any(|seat| seat.writing.is_some()) {
            return DriveSet::EMPTY;
        }
        let is_safe = |&&(page, change): &&(PageName, u64)| self.safe(core, page) >= change;
        let unsafe_pages: Vec<_> = pages.iter().filter(|page| !is_safe(page)).collect();
        let is_meant = |seat: &Seat| {
            let mut pages = unsafe_pages.iter();
            pages.any(|&&(page, change)| seat.has(page) < change && seat.was_given(page, change))
        };
        counted.iter().filter(|&drive| seat(drive).is_some_and(is_meant)).collect()
    }

    /// The last change of a page that is on enough drives.
    fn safe(&self, core: &Core, page: PageName) -> u64 {
        let lost = core.uncounted_or_away();
        let recorded = lost.without(core.unrecorded);
        let seats = self.seats.iter().enumerate();
        let mut copies: Vec<(u64, DriveIdx)> = seats
            .filter_map(|(at, seat)| Some((seat.as_ref()?.has(page), DriveIdx::from_usize(at))))
            .filter(|(_, drive)| !lost.contains(*drive))
            .collect();
        copies.sort_unstable_by(|left, right| right.cmp(left));
        let mut on = recorded;
        for (change, drive) in copies {
            on = on.with(drive);
            if !core.layout.spec().survives(on) {
                return change;
            }
        }
        0
    }

    /// Whether enough drives have every page, and all of these that keep maps have it or did not store it.
    pub(crate) fn is_on(&self, drives: DriveSet, core: &mut Core) -> bool {
        let pages = core.missed.pages();
        let seats = drives.iter().filter_map(|drive| self.seats.get(drive.as_usize())?.as_ref());
        let seats: Vec<&Seat> = seats.collect();
        pages.iter().all(|&(page, change)| {
            let are_given = seats.iter().all(|seat| seat.was_given(page, change));
            are_given && self.safe(core, page) >= change
        })
    }

    /// Moves on as the facts demand.
    fn advance(&mut self, core: &mut Core, now: Instant) {
        if core.has_failed() {
            return core.missed.drop_all();
        }
        if !core.may_write {
            return;
        }
        let pages = core.missed.pages();
        for &(page, _) in &pages {
            let safe = self.safe(core, page);
            core.missed.note_safe(page, safe);
        }
        for drive in core.counted().iter() {
            let Some(Some(seat)) = self.seats.get_mut(drive.as_usize()) else { continue };
            let lacks = |&&(page, change): &&(PageName, u64)| !seat.was_given(page, change);
            // The head last: it says that the others are there, on enough drives.
            let next = pages.iter().rev().find(lacks).copied();
            if let (None, Some((page, change))) = (&seat.writing, next) {
                let what = PageChange { page, change };
                seat.writing =
                    Some(write(core, now, Write { array: self.array, seat, drive, what }));
            }
        }
    }
}

/// A page that is to be written.
#[derive(Clone, Copy)]
struct Write<'a> {
    array: Uuid,
    seat: &'a Seat,
    drive: DriveIdx,
    what: PageChange,
}

fn write(core: &mut Core, now: Instant, what: Write<'_>) -> Writing {
    let Write { array, seat, drive, what } = what;
    let PageChange { page, .. } = what;
    let (map, words) = core.missed.contents(page);
    let extent = Extent::new(place_of(seat.place, map.slot, page.number), Sectors::new(1));
    let (key, number, words) = (map.key, page.number as u8, words.to_vec());
    let contents = Page { array, holder: seat.member, key, number, words };
    let into = Place { buf: core.acquire(Sectors::new(1)), sector: 0 };
    core.actions.push_back(Action::Map { into, page: Box::new(contents) });
    core.counters.missed_writes += 1;
    let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
    let origin = core.own_origin();
    let write = Enqueue {
        purpose: Purpose::List,
        drive,
        command: Command::Write { extent, durability, zero_tail },
        segments: Segment { place: into, sectors: 1 }.into(),
        origin,
        end: End::Head,
        fate: Fate::Certain,
        since: None,
    };
    Writing { sub: core.enqueue(now, write), buf: into.buf, what }
}

impl Seat {
    fn new(own: &Own, member: Uuid, drives: usize) -> Option<Self> {
        let place = own.maps()?;
        let none = vec![[0; MAP_SECTORS as usize]; drives];
        Some(Self { member, place, has: none.clone(), unstored: none, writing: None })
    }

    /// The change of a page that the drive has.
    fn has(&self, page: PageName) -> u64 {
        self.has[page.drive.as_usize()][page.number]
    }

    /// Whether the drive has a page as it is after a change, or was given it and has not stored it.
    fn was_given(&self, page: PageName, change: u64) -> bool {
        self.has(page).max(self.unstored[page.drive.as_usize()][page.number]) >= change
    }
}

impl Array {
    /// Moves the maps of what drives have missed on, and what waits for them.
    pub(crate) fn keep_missed(&mut self, now: Instant) -> Moved {
        // The last map may just have been dropped: nothing waits for what was on it.
        let was_safe = self.core.missed.take_become_safe();
        if self.core.missed.drives().is_empty() && !was_safe {
            return Moved::No;
        }
        self.map_copies.advance(&mut self.core, now);
        if self.core.missed.take_become_kept()
            && let Some(ledger) = &mut self.ledger
        {
            ledger.note_kept();
        }
        let is_safe = was_safe | self.core.missed.take_become_safe();
        match (&mut self.journal, is_safe) {
            (Some(journal), true) => {
                journal.note_books_safe(&mut self.core);
                Moved::Yes
            }
            (None, _) | (_, false) => Moved::No,
        }
    }

    /// Drives that have a map of what they have missed.
    pub fn mapped(&self) -> DriveSet {
        self.core.missed.drives()
    }
}

#[cfg(test)]
mod tests;
