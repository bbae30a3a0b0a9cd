//! The ring of records: where the next one goes, and what may be written over.
//!
//! ```text
//!   | mark | mark | record | record | ..  free  .. | record | (too short) |
//!                                    ^ head
//! ```
//!
//! A record lies in one piece. What it takes is free again when everything of it is in its place and a durable record says so: the
//! name of the oldest record that counts. Two places of their own hold marks, records of nothing that only say this: there is always
//! room for the one that makes room.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_units::{Extent, Lba, Sectors};

use crate::format::superblock::Superblock;

/// Sectors of a mark: a descriptor and its copy.
pub(super) const MARK: u32 = 2;

/// Where records begin.
pub(crate) const RECORDS: u32 = 2 * MARK;

/// The least room that is counted on: a record has room for what one request changes.
const ROOM_MIN: u32 = 6 * 24;

/// See the module.
#[derive(Debug)]
pub(super) struct Journal {
    extent: Extent,
    head: u32,
    held: VecDeque<HeldRecord>,
    /// The newest durable record.
    durable: u64,
    /// The oldest record that counts, as durable records say.
    oldest: u64,
    /// Which of the places for marks is next.
    mark: u32,
    /// Places of files' sectors, and first sectors of coding extents, that records of the ring name, with the newest of these.
    named: BTreeMap<Lba, u64>,
    /// Places that could not be written: records lie elsewhere as long as there is room.
    failed: BTreeSet<u32>,
    /// The most sectors that follow one another and could be written, as far as is known. As much is counted on: what bad sectors cut the
    /// ring into may be too short for anything else.
    room: u32,
}

/// A record in the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldRecord {
    pub(super) record: u64,
    pub(super) at: u32,
    pub(super) sectors: u32,
}

impl Journal {
    /// An empty one; the next record has the name that the superblock says.
    pub(super) fn new(superblock: &Superblock) -> Self {
        Self {
            extent: superblock.geometry.journal(),
            head: RECORDS,
            held: VecDeque::new(),
            durable: superblock.record - 1,
            oldest: superblock.record,
            mark: 0,
            named: BTreeMap::new(),
            failed: BTreeSet::new(),
            room: superblock.geometry.journal().sectors.get() as u32 - RECORDS,
        }
    }

    /// One that a crash has left: what lies there is known, and the newest of it is durable.
    pub(super) fn resume(&mut self, held: &[HeldRecord], oldest: u64) {
        self.held = held.iter().copied().filter(|held| held.at >= RECORDS).collect();
        let last = held.last().expect("there is a record");
        (self.durable, self.oldest) = (last.record, oldest);
        self.head = last.at + last.sectors;
    }

    /// The newest durable record.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// The sectors that a record may have. Two of them, one that is being committed and the next, come in when a third of the room is
    /// taken already; then a third is left for those that bring what is in it to its place.
    pub(super) fn record_max(&self) -> u32 {
        self.room / 6
    }

    /// A sector of the ring.
    pub(super) fn lba(&self, at: u32) -> Lba {
        self.extent.lba + Sectors::new(at.into())
    }

    /// Where a record lies, and its successor may not.
    pub(super) fn place_of(&self, record: u64) -> u32 {
        self.held.iter().find(|held| held.record == record).map_or(0, |held| held.at)
    }

    /// Takes room for a record, if there is some.
    pub(super) fn take(&mut self, record: u64, sectors: u32) -> Option<u32> {
        let size = self.extent.sectors.get() as u32;
        let is_free = |at: u32| {
            at + sectors <= size
                && self
                    .held
                    .iter()
                    .all(|held| at + sectors <= held.at || held.at + held.sectors <= at)
        };
        let is_good = |at: u32| self.failed.range(at..at + sectors).next().is_none();
        let behind = |from: u32| self.failed.range(from..).map(|&failed| failed + 1);
        let from = |from: u32| std::iter::once(from).chain(behind(from));
        let mut good = from(self.head).chain(from(RECORDS));
        let at = good.find(|&at| is_good(at) && is_free(at));
        let at = at.or_else(|| [self.head, RECORDS].into_iter().find(|&at| is_free(at)))?;
        self.held.push_back(HeldRecord { record, at, sectors });
        self.head = at + sectors;
        Some(at)
    }

    /// Some sectors of a record, counted from its first, could not be written.
    pub(super) fn note_failed(&mut self, record: u64, failed: &[u32]) {
        let at = self.place_of(record);
        self.failed.extend(failed.iter().map(|sector| at + sector));
        let size = self.extent.sectors.get() as u32;
        let ends = self.failed.iter().copied().chain([size]);
        let mut from = RECORDS;
        let pieces = ends.map(|end| end - std::mem::replace(&mut from, end + 1));
        self.room = pieces.max().expect("there is an end").max(ROOM_MIN);
    }

    /// Whether some of its sectors could not be written.
    pub(super) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// A record cannot be read where it was written, and is written elsewhere.
    pub(super) fn forget(&mut self, record: u64) {
        self.held.retain(|held| held.record != record);
    }

    /// The place of the next mark.
    pub(super) fn take_mark(&mut self) -> u32 {
        self.mark = 1 - self.mark;
        self.mark * MARK
    }

    /// A record, or a mark, is durable, and says which is the oldest one that counts.
    pub(super) fn note_durable(&mut self, record: u64, oldest: u64) {
        self.durable = self.durable.max(record);
        self.oldest = self.oldest.max(oldest);
        // The newest one stays in any case: a mark speaks in its name, and before it others may lie that have long been over.
        self.held.retain(|held| held.record >= self.oldest || held.record == self.durable);
        self.named.retain(|_, record| *record >= self.oldest);
    }

    /// A record names a place.
    pub(super) fn note_named(&mut self, lba: Lba, record: u64) {
        self.named.insert(lba, record);
    }

    /// Places in an extent that records name which count.
    pub(super) fn named_in(&self, extent: Extent) -> Vec<Lba> {
        self.named.range(extent.lba..extent.end()).map(|(&lba, _)| lba).collect()
    }

    /// The oldest record that counts, as durable records say.
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Whether what is in the ring should come to its place before more comes in.
    pub(super) fn is_filling(&self) -> bool {
        self.used() * 3 > self.room.into()
    }

    /// Whether so much is in the ring that it should begin to come to its place.
    pub(super) fn is_growing(&self) -> bool {
        self.used() * 6 > self.room.into()
    }

    /// Sectors of records that count.
    fn used(&self) -> u64 {
        let counts = self.held.iter().filter(|held| held.record >= self.oldest);
        counts.map(|held| u64::from(held.sectors)).sum()
    }

    /// Whether records are in the ring that do not count any more.
    pub(super) fn has_over(&self, oldest: u64) -> bool {
        self.held.iter().any(|held| held.record < oldest)
    }

    /// The whole ring.
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }
}
