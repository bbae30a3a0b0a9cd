//! What is committed and not in its place yet: for each drive its sectors, and where in memory their contents are.
//!
//! Reads of these sectors come from here, and so does every computation that needs them.
//!
//! # Invariants
//!
//! - U1. The versions of a sector are in the order of their transactions; the last one is what the sector holds.
//! - U2. A version leaves when it, or a later one, is in its place.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::Place;
use levelhead_units::{DriveIdx, Lba};

use crate::shape::Cell;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unplaced {
    drives: Vec<Backlog>,
}

/// The sectors of one drive that wait for their places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    cells: BTreeMap<Lba, Vec<Version>>,
    /// The oldest version of every sector, in the order of the transactions.
    oldest: BTreeSet<(u64, Lba)>,
    versions: usize,
}

/// What a transaction gave a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) id: u64,
    pub(crate) place: Place,
}

/// A version and its sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) lba: Lba,
    pub(crate) version: Version,
}

impl Unplaced {
    pub(crate) fn new(drives: usize) -> Self {
        Self { drives: (0..drives).map(|_| Backlog::default()).collect() }
    }

    /// Where the content of a sector is, if not on its drive.
    pub(crate) fn find(&self, cell: Cell) -> Option<Place> {
        let versions = self.of(cell.drive).cells.get(&cell.lba)?;
        Some(versions.last().expect("U1: a sector has a version").place)
    }

    /// How many sectors are not in their places.
    pub(crate) fn len(&self) -> usize {
        self.drives.iter().map(|backlog| backlog.cells.len()).sum()
    }

    /// Whether every sector is in its place.
    pub(crate) fn is_empty(&self) -> bool {
        self.drives.iter().all(|backlog| backlog.versions == 0)
    }

    pub(crate) fn of(&self, drive: DriveIdx) -> &Backlog {
        &self.drives[drive.as_usize()]
    }

    pub(crate) fn insert(&mut self, cell: Cell, version: Version) {
        let backlog = &mut self.drives[cell.drive.as_usize()];
        let versions = backlog.cells.entry(cell.lba).or_default();
        assert!(versions.last().is_none_or(|last| last.id < version.id), "U1: {cell:?}");
        if versions.is_empty() {
            backlog.oldest.insert((version.id, cell.lba));
        }
        versions.push(version);
        backlog.versions += 1;
    }

    /// A version is in its place: takes it and all that came before it.
    pub(crate) fn take(&mut self, cell: Cell, id: u64) -> Vec<Version> {
        let backlog = &mut self.drives[cell.drive.as_usize()];
        let Some(versions) = backlog.cells.get_mut(&cell.lba) else { return Vec::new() };
        let taken: Vec<Version> = versions.extract_if(.., |version| version.id <= id).collect();
        if let Some(first) = taken.first() {
            backlog.oldest.remove(&(first.id, cell.lba));
            backlog.oldest.extend(versions.first().map(|left| (left.id, cell.lba)));
        }
        if versions.is_empty() {
            backlog.cells.remove(&cell.lba);
        }
        backlog.versions -= taken.len();
        taken
    }

    /// The drive is lost: takes all that waited for it.
    pub(crate) fn take_all(&mut self, drive: DriveIdx) -> Vec<Version> {
        let backlog = std::mem::take(&mut self.drives[drive.as_usize()]);
        backlog.cells.into_values().flatten().collect()
    }
}

impl Backlog {
    /// How many sectors wait.
    pub(crate) fn sectors(&self) -> usize {
        self.cells.len()
    }

    /// How many versions there are.
    pub(crate) fn len(&self) -> usize {
        self.versions
    }

    /// The sectors whose oldest version is of a transaction before this one, the oldest first.
    pub(crate) fn older_than(&self, id: u64) -> impl Iterator<Item = Lba> {
        self.oldest.range(..(id, Lba::ZERO)).map(|&(_, lba)| lba)
    }

    /// For each sector from `from` on, and then from the first, the newest version up to transaction `marked`.
    pub(crate) fn from(&self, from: Lba, marked: u64) -> impl Iterator<Item = Pick> {
        let newest = move |(&lba, versions): (&Lba, &Vec<Version>)| {
            let version = versions.iter().rev().find(|version| version.id <= marked)?;
            Some(Pick { lba, version: *version })
        };
        self.cells.range(from..).chain(self.cells.range(..from)).filter_map(newest)
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::BufId;

    use super::*;

    /// U1, U2, and what is counted of them.
    #[test]
    fn a_version_leaves_with_all_before_it_and_is_counted_until_then() {
        let drive = DriveIdx::new(1);
        let mut unplaced = Unplaced::new(2);
        let cell = |lba| Cell { drive, lba: Lba::new(lba) };
        let place = |id| Place { buf: BufId::Own(id), sector: 0 };
        let counted = |unplaced: &Unplaced| {
            let backlog = unplaced.of(drive);
            (unplaced.is_empty(), unplaced.len(), backlog.sectors(), backlog.len())
        };
        assert_eq!(counted(&unplaced), (true, 0, 0, 0));
        for (lba, id) in [(7, 1), (7, 3), (8, 4), (7, 5)] {
            unplaced.insert(cell(lba), Version { id, place: place(id) });
        }
        assert_eq!(counted(&unplaced), (false, 2, 2, 4));
        let taken: Vec<u64> = unplaced.take(cell(7), 3).iter().map(|version| version.id).collect();
        assert_eq!((taken, counted(&unplaced)), (vec![1, 3], (false, 2, 2, 2)));
        assert_eq!((unplaced.find(cell(7)), unplaced.find(cell(9))), (Some(place(5)), None));
        let older: Vec<Lba> = unplaced.of(drive).older_than(5).collect();
        assert_eq!(older, [Lba::new(8)]);
        assert_eq!(unplaced.take(cell(7), 9).len(), 1);
        assert_eq!((unplaced.take_all(drive).len(), counted(&unplaced)), (1, (true, 0, 0, 0)));
    }
}
