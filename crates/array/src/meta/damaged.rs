//! Which sectors of the drives are damaged: what they held can be had neither from the drive nor from redundancy.
//!
//! The list is part of the [metadata](super::metadata).
//!
//! A sector on the list is never given to a client, and never computed, until it is written again. Redundancy counts
//! data on the list as zeroes, so that it protects the rest of the codeword: who puts data on the list sees to that,
//! or puts the codeword's redundant sectors on it as well, which are then not used until they are computed anew.
//!
//! The list has a bound: when it is full, the two ranges of one drive that lie nearest to each other become one, so
//! that reads of what lies between fail as well. It never forgets a sector.

use std::collections::BTreeMap;

use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use crate::fields::{put, u64_at};
use crate::shape::{Cell, DRIVE_SECTORS_MAX};

/// The most ranges on the list.
pub const RANGES_MAX: usize = 4_096;

/// Bytes of a range in the metadata.
pub(super) const RANGE_BYTES: usize = 16;

/// A range of sectors of one drive, as the layout counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedRange {
    /// The drive.
    pub drive: DriveIdx,
    /// Its sectors.
    pub extent: Extent,
}

/// The sectors that are damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamagedList {
    /// The length of each range by where it begins; ranges of a drive neither overlap nor touch.
    ranges: BTreeMap<Cell, Sectors>,
    /// Whether ranges were made one although what lies between is not damaged.
    is_widened: bool,
}

impl DamagedList {
    /// Whether nothing is damaged.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, by drive and by address.
    pub fn ranges(&self) -> impl Iterator<Item = DamagedRange> {
        self.ranges.iter().map(|(&first, &sectors)| range(first, sectors))
    }

    /// How many sectors are on it.
    pub fn sectors(&self) -> Sectors {
        self.ranges.values().copied().sum()
    }

    /// Whether it was full once, so that there are sectors on it that were not damaged.
    pub fn is_widened(&self) -> bool {
        self.is_widened
    }

    /// Whether a sector is on it.
    pub fn covers(&self, cell: Cell) -> bool {
        self.range_at(cell).is_some()
    }

    /// The range that a sector lies in.
    pub fn range_at(&self, cell: Cell) -> Option<DamagedRange> {
        let (&first, &sectors) = self.ranges.range(..=cell).next_back()?;
        let is_in = first.drive == cell.drive && cell.lba < first.lba + sectors;
        is_in.then(|| range(first, sectors))
    }

    /// Puts sectors on it. Returns whether that changes it.
    ///
    /// Panics if the extent is empty.
    pub fn add(&mut self, drive: DriveIdx, extent: Extent) -> bool {
        self.add_within(drive, extent, RANGES_MAX)
    }

    fn add_within(&mut self, drive: DriveIdx, extent: Extent, most: usize) -> bool {
        assert!(extent.sectors > Sectors::ZERO, "drive {drive}: an empty range");
        let first = Cell { drive, lba: extent.lba };
        let known = self.range_at(first);
        if known.is_some_and(|known| known.extent.end() >= extent.end()) {
            return false;
        }
        let (mut start, mut end) = (extent.lba, extent.end());
        // Every range that overlaps or touches.
        while let Some((&other, &sectors)) =
            self.ranges.range(..=Cell { drive, lba: end }).next_back()
            && other.drive == drive
            && other.lba + sectors >= start
        {
            self.ranges.remove(&other);
            (start, end) = (start.min(other.lba), end.max(other.lba + sectors));
        }
        self.ranges.insert(Cell { drive, lba: start }, end - start);
        while self.ranges.len() > most && self.widen(None) {}
        true
    }

    /// Makes the two ranges of one drive one that lie nearest to each other; those with this sector between them only where
    /// there are no others.
    fn widen(&mut self, spared: Option<Cell>) -> bool {
        let ranges = self.ranges.iter().zip(self.ranges.keys().skip(1));
        let pairs = ranges.filter(|((first, _), next)| first.drive == next.drive);
        let nearest = pairs.min_by_key(|&((first, &sectors), next)| {
            let is_spared = spared.is_some_and(|cell| *first < cell && cell < *next);
            (is_spared, next.lba - (first.lba + sectors))
        });
        let Some(((&first, _), &next)) = nearest else { return false };
        let sectors = self.ranges.remove(&next).expect("it was found above");
        self.ranges.insert(first, next.lba + sectors - first.lba);
        self.is_widened = true;
        true
    }

    /// Takes a sector off it, which was written. Returns whether it was on it.
    pub fn remove(&mut self, cell: Cell) -> bool {
        self.remove_within(cell, RANGES_MAX)
    }

    fn remove_within(&mut self, cell: Cell, most: usize) -> bool {
        let Some(DamagedRange { drive, extent }) = self.range_at(cell) else { return false };
        let (before, next) = (cell.lba - extent.lba, cell.lba + Sectors::new(1));
        self.ranges.remove(&Cell { drive, lba: extent.lba });
        if before > Sectors::ZERO {
            self.ranges.insert(Cell { drive, lba: extent.lba }, before);
        }
        if next < extent.end() {
            self.ranges.insert(Cell { drive, lba: next }, extent.end() - next);
        }
        // A range that is cut in two is one more. Its halves are the nearest of all: were they made one, what was written would
        // stay on the list however often it is written.
        while self.ranges.len() > most && self.widen(Some(cell)) {}
        self.is_widened &= !self.is_empty();
        true
    }
}

fn range(first: Cell, sectors: Sectors) -> DamagedRange {
    DamagedRange { drive: first.drive, extent: Extent::new(first.lba, sectors) }
}

impl DamagedList {
    /// The ranges as they are in the metadata: the first sector, its number in five bytes, the drive, two zeroes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.ranges.len() * RANGE_BYTES];
        for (range, into) in self.ranges().zip(bytes.chunks_exact_mut(RANGE_BYTES)) {
            put(into, 0, &range.extent.lba.get().to_le_bytes());
            // No drive has more sectors than fit into five bytes.
            put(into, 8, &range.extent.sectors.get().to_le_bytes()[..5]);
            into[13] = range.drive.as_usize() as u8;
        }
        bytes
    }

    /// The list that these ranges are; nothing if it cannot be one of drives with these places, of this size.
    pub(super) fn decode(
        bytes: &[u8],
        is_widened: bool,
        drives: usize,
        size: Sectors,
    ) -> Option<Self> {
        let mut list = Self { is_widened, ..Self::default() };
        for bytes in bytes.chunks_exact(RANGE_BYTES) {
            let mut sectors = [0; 8];
            sectors[..5].copy_from_slice(&bytes[8..13]);
            let (lba, sectors) = (u64_at(bytes, 0), u64::from_le_bytes(sectors));
            let is_good = usize::from(bytes[13]) < drives
                && sectors > 0
                && lba <= DRIVE_SECTORS_MAX
                && lba + sectors <= size.get()
                && bytes[14..] == [0, 0];
            if !is_good {
                return None;
            }
            let first = Cell { drive: DriveIdx::new(bytes[13]), lba: Lba::new(lba) };
            // In order, and with something between two of one drive.
            let is_behind = list.ranges.last_key_value().is_none_or(|(last, length)| {
                *last < first && (last.drive != first.drive || last.lba + *length < first.lba)
            });
            if !is_behind {
                return None;
            }
            list.ranges.insert(first, Sectors::new(sectors));
        }
        Some(list)
    }
}

#[cfg(test)]
mod tests;
