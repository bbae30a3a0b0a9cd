//! The metadata while the array runs: what is true now, what of it is committed, and what waits until it is.
//!
//! Whatever changes here is *committed* once a generation that says it is on enough drives. What relies on a change waits for
//! the generation that [`Metastate::due`] names.
//!
//! # Invariants
//!
//! - Y1. A sector that is damaged is not given to a client, and not computed.
//! - Y2. A write that takes a sector off the list of damaged sectors is durable before the metadata says so, and answered after.
//! - MW1. A stripe of a drive of which it is known what it lacks is in that if the drive may hold something else there than the
//!   array says.
//! - MW2. A region is not taken off what a drive lacks before the drive holds everything.
//! - MW3. A drive comes back by what it lacks only if a committed generation says what that is.
//! - MW4. What is written beside a seat that the committed generation gives to another drive waits until that is committed: after
//!   a crash before, the other drive would come back without it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use levelhead_units::{DriveIdx, DriveSet, Extent, Sectors};

use super::damaged::{DamagedList, DamagedRange};
use super::membership::{Generation, Member, MemberId, Membership, Why};
use super::metadata::{Forced, LACKS_MAX, Metadata, State};
use super::recorded::Recorded;
use super::regions::{Grid, Regions};
use super::uuid::Uuid;
use super::wishes::Wishes;
use crate::event::{ArrayEvent, Event};
use crate::names::OpId;
use crate::settings::Settings;
use crate::shape::{Cell, Layout, Spec};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Metastate {
    /// What is true now.
    now: Metadata,
    /// What the newest committed generation says of the seats.
    seats: Vec<CommittedSeat>,
    keeping: Keeping,
    committed: Generation,
    /// The last generation that was begun.
    begun: Generation,
    /// The generation that says all that something may wait for.
    due: Generation,
    change: Change,
    /// Whether a sector was damaged, or is not any more, since the array was started.
    wants_opening: bool,
    /// Whether something has become committed since this was asked last.
    has_news: bool,
    /// Operations that go on once a generation is committed.
    waiting: BTreeMap<OpId, Generation>,
    /// Drives that were not found at the start: none of them is back, whatever was recorded.
    absent: DriveSet,
    /// Drives that were found to be back.
    returned: DriveSet,
    /// Whether seats have changed since that was looked for.
    have_seats_changed: bool,
    /// Damaged ranges of which it was reported that they were read.
    reported: BTreeSet<DamagedRange>,
    /// The least number of stripes of a region.
    region_min: u64,
}

/// Whether the metadata outlasts the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeping {
    /// It is written to the drives.
    OnDrives,
    /// Of a study, whose array is started once: everything is committed at once.
    InMemory,
    /// The array has failed: nothing is written any more, and nothing waits for it.
    Ended,
}

/// What is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    None,
    /// In a while: nothing waits for it.
    Later,
    Now,
}

/// What a generation says of a seat, without the regions that its member lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommittedSeat {
    pub(crate) id: MemberId,
    pub(crate) membership: Membership,
    /// Whether it says what the member lacks.
    pub(crate) has_lacks: bool,
}

impl CommittedSeat {
    pub(crate) fn of(member: &Member) -> Self {
        let Member { id, membership, lacks, .. } = member;
        Self { id: *id, membership: *membership, has_lacks: lacks.is_some() }
    }
}

/// How many sectors are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedSummary {
    /// Sectors on the list.
    pub sectors: Sectors,
    /// Ranges that they lie in.
    pub ranges: usize,
    /// Whether the list was full once, and covers sectors that were not damaged.
    pub is_widened: bool,
    /// Whether the drives keep it.
    pub is_kept: bool,
}

impl Metastate {
    /// The metadata that was found; that of a whole array where none is kept.
    pub(crate) fn new(settings: &Settings) -> Self {
        let region_min = settings.journal.as_ref().map_or(1, |known| known.region_min.get());
        let (mut now, keeping, committed) = match &settings.recorded {
            None => (of_study(settings), Keeping::InMemory, Generation::NONE),
            Some(Recorded { metadata, is_recorded, .. }) => {
                let committed = if *is_recorded { metadata.generation } else { Generation::NONE };
                ((**metadata).clone(), Keeping::OnDrives, committed)
            }
        };
        if settings.recorded.as_ref().is_some_and(|known| known.may_lack_more) {
            let lacks = now.members.iter_mut().filter_map(|member| member.lacks.as_mut());
            lacks.for_each(Regions::fill);
        }
        if settings.recorded.as_ref().is_some_and(|known| known.forced_over.is_some()) {
            now.forced = Forced::Yes;
        }
        let (begun, due) = (now.generation, now.generation);
        Self {
            seats: now.members.iter().map(CommittedSeat::of).collect(),
            now,
            keeping,
            committed,
            begun,
            due,
            change: Change::None,
            wants_opening: false,
            has_news: false,
            waiting: BTreeMap::new(),
            absent: settings.recorded.as_ref().map_or(DriveSet::EMPTY, Recorded::absent),
            returned: DriveSet::EMPTY,
            have_seats_changed: true,
            reported: BTreeSet::new(),
            region_min: region_min.div_ceil(settings.spec.chunk().get()).max(1),
        }
    }

    // Generations.

    /// The generation that says all that was changed up to now; [`Generation::NONE`] if that is committed.
    pub(crate) fn due(&self) -> Generation {
        if self.is_committed(self.due) { Generation::NONE } else { self.due }
    }

    /// Whether this generation is committed, or will never be.
    pub(crate) fn is_committed(&self, generation: Generation) -> bool {
        match self.keeping {
            Keeping::OnDrives => generation <= self.committed,
            Keeping::InMemory | Keeping::Ended => true,
        }
    }

    /// Whether everything that something may wait for is committed.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_committed(self.due)
    }

    /// The last generation that was begun, or the one that was found.
    pub(crate) fn begun(&self) -> Generation {
        self.begun
    }

    /// What is to be written.
    pub(crate) fn change(&self) -> Change {
        self.change
    }

    /// Something is to be written that was not changed here.
    pub(crate) fn note_change(&mut self, change: Change) {
        self.change = self.change.max(change);
        if change == Change::Now {
            self.due = self.begun.plus(1);
        }
    }

    /// Returns whether everything is committed: else the operation is advanced once what was changed up to now is.
    pub(crate) fn wait(&mut self, op: OpId) -> bool {
        if let Some(&waited) = self.waiting.get(&op) {
            return self.is_committed(waited);
        }
        if self.is_settled() {
            return true;
        }
        self.waiting.insert(op, self.due);
        false
    }

    /// Operations that may go on.
    pub(crate) fn take_ready(&mut self) -> Vec<OpId> {
        let ready = self.waiting.iter().filter(|&(_, &generation)| self.is_committed(generation));
        ready.map(|(&op, _)| op).collect()
    }

    /// An operation has gone on.
    pub(crate) fn forget(&mut self, op: OpId) {
        self.waiting.remove(&op);
    }

    /// Whether the array is to be opened because something was found that it must remember.
    pub(crate) fn wants_opening(&self) -> bool {
        self.wants_opening
    }

    /// Whether some change has become committed since this was asked last.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// A generation is begun that says all that was changed.
    pub(crate) fn begin(&mut self, generation: Generation) {
        (self.begun, self.change) = (generation, Change::None);
    }

    /// A generation is committed that says this.
    pub(crate) fn note_committed(&mut self, generation: Generation, seats: Vec<CommittedSeat>) {
        (self.committed, self.seats) = (generation, seats);
        (self.has_news, self.have_seats_changed) = (true, true);
    }

    /// The array has failed: nothing will be written any more.
    pub(crate) fn end(&mut self) {
        self.has_news |= self.keeping == Keeping::OnDrives;
        self.keeping = Keeping::Ended;
    }

    // What is true now.

    /// All of it.
    pub(crate) fn now(&self) -> &Metadata {
        &self.now
    }

    /// The same, for the store that numbers it.
    pub(crate) fn now_mut(&mut self) -> &mut Metadata {
        &mut self.now
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.now.members
    }

    pub(crate) fn id(&self, drive: DriveIdx) -> MemberId {
        self.now.members[drive.as_usize()].id
    }

    /// Whether a committed generation names the drive of a place.
    pub(crate) fn is_named(&self, drive: DriveIdx) -> bool {
        let is_same = self.seats[drive.as_usize()].id == self.id(drive);
        self.keeping != Keeping::OnDrives || is_same
    }

    /// Whether a committed generation calls the drive of a place present.
    pub(crate) fn is_present_for_good(&self, drive: DriveIdx) -> bool {
        let seat = self.seats[drive.as_usize()];
        let is_present = seat.membership == Membership::Present && self.is_named(drive);
        self.keeping != Keeping::OnDrives || is_present
    }

    /// An operator has made the array go on where data may be wrong, or a scrub has found that nothing is.
    pub(crate) fn set_forced(&mut self, forced: Forced) {
        self.now.forced = forced;
    }

    pub(crate) fn set_wishes(&mut self, wishes: Wishes) {
        self.now.wishes = wishes;
    }

    /// A drive was not there when the array was opened for writing, or is done without from now on. `lacks` says whether it
    /// is to be known what it lacks.
    pub(crate) fn lose(&mut self, drive: DriveIdx, membership: Membership, lacks: Lacks) {
        let has_room = self.has_room();
        self.returned = self.returned.without(DriveSet::EMPTY.with(drive));
        let (grid, stripes) = (self.grid(), self.now.stripes());
        let member = &mut self.now.members[drive.as_usize()];
        let held = match member.membership {
            Membership::Present => Some(stripes),
            Membership::Filling { to } => Some(to),
            Membership::Missing | Membership::Lost { .. } | Membership::Spare => None,
        };
        member.membership = membership;
        let (Some(held), Lacks::Known) = (held, lacks) else { return };
        if member.lacks.is_none() && has_room {
            let mut lacks = Regions::none(grid);
            lacks.add_all(held.min(stripes)..stripes);
            member.lacks = Some(lacks);
        }
    }

    /// A drive sits in a place from now on, and is filled.
    pub(crate) fn seat(&mut self, drive: DriveIdx, uuid: Uuid, holds: Holds) {
        let member = &mut self.now.members[drive.as_usize()];
        let new = Member::new(uuid, Membership::Filling { to: 0 });
        let old = std::mem::replace(member, new);
        if old.id.uuid == uuid {
            let is_kept = self.keeping == Keeping::OnDrives;
            member.id = if is_kept { old.id.again() } else { old.id };
            (member.stored, member.given) = (old.stored, old.given);
        }
        if holds == Holds::AllButWhatIsLacking {
            member.lacks = old.lacks;
        }
        let only = DriveSet::EMPTY.with(drive);
        (self.returned, self.absent) = (self.returned.without(only), self.absent.without(only));
        self.have_seats_changed = true;
    }

    /// Drives that are back since this was asked last.
    pub(crate) fn take_returned(&mut self) -> DriveSet {
        if !std::mem::take(&mut self.have_seats_changed) {
            return DriveSet::EMPTY;
        }
        let all = (0..self.now.members.len()).map(DriveIdx::from_usize);
        let back: DriveSet = all.filter(|&drive| self.is_back(drive)).collect();
        let new = back.without(self.returned);
        self.returned = back;
        new
    }

    /// A drive that is being filled holds all stripes below `to`.
    pub(crate) fn set_filled(&mut self, drive: DriveIdx, to: u64) {
        self.now.members[drive.as_usize()].membership = Membership::Filling { to };
    }

    /// A drive holds everything.
    pub(crate) fn set_present(&mut self, drive: DriveIdx) {
        let member = &mut self.now.members[drive.as_usize()];
        (member.membership, member.lacks) = (Membership::Present, None);
    }

    // What drives lack.

    fn lacks(&self, drive: DriveIdx) -> Option<&Regions> {
        self.now.members.get(drive.as_usize())?.lacks.as_ref()
    }

    /// Whether it is known what a drive lacks.
    pub(crate) fn knows_lacks(&self, drive: DriveIdx) -> bool {
        self.lacks(drive).is_some()
    }

    /// Whether a committed generation says what a drive lacks (MW3).
    pub(crate) fn knows_lacks_for_good(&self, drive: DriveIdx) -> bool {
        let is_said = self.seats[drive.as_usize()].has_lacks || self.keeping == Keeping::InMemory;
        self.knows_lacks(drive) && is_said && self.is_named(drive)
    }

    /// Whether something may have to wait that is written without some drive.
    pub(crate) fn may_lack(&self) -> bool {
        self.now.members.iter().any(|member| member.lacks.is_some())
            || self.seats.iter().any(|seat| seat.has_lacks)
    }

    /// How drives are cut into regions.
    pub(crate) fn grid(&self) -> Grid {
        Grid::new(self.now.stripes(), self.region_min)
    }

    /// Whether there is room for what one more drive lacks.
    pub(crate) fn has_room(&self) -> bool {
        let known = self.now.members.iter().filter(|member| member.lacks.is_some()).count();
        known < LACKS_MAX || self.keeping == Keeping::InMemory
    }

    /// Whether a drive that is back holds what was written to its part of a stripe.
    pub(crate) fn spares(&self, drive: DriveIdx, stripe: u64) -> bool {
        self.is_back(drive) && self.lacks(drive).is_some_and(|lacks| !lacks.has(stripe))
    }

    /// Whether a drive is back, and is given what it lacks. It is named for good: nothing counts on it before.
    pub(crate) fn is_back(&self, drive: DriveIdx) -> bool {
        let member = self.now.members.get(drive.as_usize());
        member.is_some_and(|member| member.is_filling() && member.lacks.is_some())
            && !self.absent.contains(drive)
            && self.is_named(drive)
    }

    /// A drive lacks something of a stripe if it is known what it lacks; returns the generation that says so, or nothing if
    /// that is committed. Until a new drive in its place is named, so does what relies on that (MW4).
    pub(crate) fn miss(&mut self, drive: DriveIdx, stripe: u64) -> Generation {
        let Some(member) = self.now.members.get_mut(drive.as_usize()) else {
            return Generation::NONE;
        };
        if member.lacks.as_mut().is_some_and(|lacks| lacks.add(stripe)) {
            self.note_change(Change::Now);
        }
        self.due()
    }

    /// The same of all these stripes.
    pub(crate) fn miss_all(&mut self, drive: DriveIdx, stripes: Range<u64>) {
        let Some(member) = self.now.members.get_mut(drive.as_usize()) else { return };
        if member.lacks.as_mut().is_some_and(|lacks| lacks.add_all(stripes)) {
            self.note_change(Change::Now);
        }
    }

    /// The first stripe from `from` on that a drive lacks.
    pub(crate) fn next_lacking(&self, drive: DriveIdx, from: u64) -> Option<u64> {
        self.lacks(drive)?.next(from)
    }

    /// The end of the stripes side by side from `from` on that it lacks.
    pub(crate) fn end_of_lacking(&self, drive: DriveIdx, from: u64) -> Option<u64> {
        self.lacks(drive)?.end_of_run(from)
    }

    /// How many regions a drive that is back lacks, those of stripes below `from` aside.
    pub(crate) fn regions_left(&self, drive: DriveIdx, from: u64) -> Option<u64> {
        self.lacks(drive).filter(|_| self.is_back(drive)).map(|lacks| lacks.count_from(from))
    }

    // Damaged sectors.

    /// The sectors that are damaged.
    pub(crate) fn damaged(&self) -> &DamagedList {
        &self.now.damaged
    }

    pub(crate) fn damaged_summary(&self) -> DamagedSummary {
        DamagedSummary {
            sectors: self.now.damaged.sectors(),
            ranges: self.now.damaged.ranges().count(),
            is_widened: self.now.damaged.is_widened(),
            is_kept: self.keeping == Keeping::OnDrives,
        }
    }

    /// Whether a sector is damaged.
    pub(crate) fn is_damaged(&self, cell: Cell) -> bool {
        !self.now.damaged.is_empty() && self.now.damaged.covers(cell)
    }

    /// Sectors are damaged from now on. Redundancy must count those of them that hold data as zeroes. Returns what is to be
    /// reported of it.
    pub(crate) fn damage(&mut self, drive: DriveIdx, extent: Extent) -> Option<Event> {
        if !self.now.damaged.add(drive, extent) {
            return None;
        }
        self.note_damage();
        Some(Event::Array(ArrayEvent::Damaged { drive, extent }))
    }

    /// These sectors were written, durably; returns whether one of them was damaged.
    pub(crate) fn undamage(&mut self, cells: impl IntoIterator<Item = Cell>) -> bool {
        let mut is_changed = false;
        for cell in cells {
            is_changed |= self.now.damaged.remove(cell);
        }
        if is_changed {
            self.note_damage();
        }
        is_changed
    }

    fn note_damage(&mut self) {
        self.wants_opening = true;
        self.note_change(Change::Now);
    }

    /// These sectors were written by an operation, durably. Returns whether the operation may go on: else it is
    /// advanced once the drives say so (Y2).
    pub(crate) fn undamage_for(&mut self, op: OpId, cells: impl Iterator<Item = Cell>) -> bool {
        if !self.waiting.contains_key(&op) {
            self.undamage(cells);
        }
        self.wait(op)
    }

    /// A range was read that a client did not get; returns what is to be reported of it.
    pub(crate) fn note_damaged_read(&mut self, cell: Cell) -> Option<Event> {
        let range = self.now.damaged.range_at(cell)?;
        let DamagedRange { drive, extent } = range;
        let is_new = self.reported.insert(range);
        is_new.then_some(Event::Array(ArrayEvent::DamagedRead { drive, extent }))
    }
}

/// Whether it is to be known what a drive lacks that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacks {
    Known,
    Unknown,
}

/// What a drive holds that comes into a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Nothing,
    /// All but what the drive before it lacks, which may be the same.
    AllButWhatIsLacking,
}

fn of_study(settings: &Settings) -> Metadata {
    let spec: Spec = settings.spec;
    let member = |at: usize| {
        let is_lost = settings.lost.contains(DriveIdx::from_usize(at));
        let lost = Membership::Lost { why: Why::Failed };
        Member::new(Uuid([at as u8; 16]), if is_lost { lost } else { Membership::Present })
    };
    let drive_size = settings.area.size();
    let stripes = Layout::new(spec, drive_size).stripes();
    Metadata {
        generation: Generation::NONE,
        array: Uuid::default(),
        run: Uuid::default(),
        base: Generation::NONE,
        spec,
        drive_size,
        state: State::Dirty,
        forced: Forced::No,
        synced: stripes,
        synced_last: stripes,
        journal: None,
        wishes: Wishes::default(),
        members: (0..spec.members()).map(member).collect(),
        damaged: DamagedList::default(),
    }
}

/// The drives of a set of seats for which something holds.
pub(crate) fn seats_where(
    seats: &[CommittedSeat],
    is_meant: impl Fn(&CommittedSeat) -> bool,
) -> DriveSet {
    let meant = seats.iter().enumerate().filter(|(_, seat)| is_meant(seat));
    meant.map(|(at, _)| DriveIdx::from_usize(at)).collect()
}

#[cfg(test)]
mod tests;
