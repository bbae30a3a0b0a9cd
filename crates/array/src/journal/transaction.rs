//! A transaction: what changes on all drives together, or, after a crash, not at all.

use std::collections::BTreeMap;

use levelhead_block::{BufId, Segment};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use super::record::{ChangedRun, Record};
use super::records::Records;
use crate::action::append;
use crate::log::contents::{Changed, Stored};
use crate::meta::membership::Generation;
use crate::names::OpId;
use crate::shape::{Cell, Row};

/// How a transaction outlasts a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Its contents are on the rings: each participant's on its own.
    Payload,
    /// It replaces whole codewords. Enough rings say so, and its operation writes it in place itself.
    Intent,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub(crate) op: OpId,
    pub(crate) since: Instant,
    pub(crate) manner: Manner,
    pub(crate) changes: Changes,
    /// The drives that it changes something on.
    pub(crate) participants: DriveSet,
    pub(crate) records: Records,
    pub(crate) places: Places,
    /// The intent that it stands for, because that waited for a drive that hinders;
    pub(crate) instead_of: Option<u64>,
    /// of an intent how many stand for it that are not committed.
    pub(crate) logged_by: usize,
    /// Participants that were lost, and whose place has a new drive by now: they do not count, nor does the new one.
    pub(crate) gone: DriveSet,
    /// The generation that says what drives miss of it (J9), and which sectors it has given that were damaged (J10); none if
    /// that is committed.
    pub(crate) recorded: Generation,
    pub(crate) is_committed: bool,
    /// Of an intent the drives whose sectors are safe in their places, with their checksums or without.
    pub(crate) flushed: DriveSet,
}

/// What a transaction changes.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    /// The codewords, in order.
    rows: Vec<Row>,
    /// In the order of the drives and their sectors.
    cells: Vec<Stored>,
    /// What no drive takes, and its records name so that it leaves the list of damaged sectors (J10).
    absent: Vec<Stored>,
}

/// What of a transaction a crash may still take away.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Sectors that are not in their places, nor replaced there by later ones; none of an intent.
    unplaced: usize,
    /// For each participant its sectors that a crash may still take away; of an intent all of them count as one.
    at_risk: BTreeMap<DriveIdx, usize>,
}

impl Changes {
    fn new(codewords: Vec<Changed>) -> Self {
        let rows = codewords.iter().map(|changed| changed.row).collect();
        let (mut cells, mut absent): (Vec<Stored>, Vec<Stored>) = Default::default();
        for changed in codewords {
            cells.extend(changed.cells);
            absent.extend(changed.absent);
        }
        cells.sort_unstable_by_key(|stored| stored.cell);
        Self { rows, cells, absent }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn cells(&self) -> &[Stored] {
        &self.cells
    }

    /// The stripe behind the last one.
    pub(crate) fn end(&self) -> u64 {
        self.rows.iter().map(|row| row.stripe + 1).max().unwrap_or(0)
    }

    /// How many sectors of a drive its records name before this one.
    pub(crate) fn count_before(&self, cell: Cell) -> usize {
        let is_before =
            |stored: &&Stored| stored.cell.drive == cell.drive && stored.cell.lba < cell.lba;
        // The cells are in order.
        let up_to = |cell: Cell| self.cells.partition_point(|stored| stored.cell < cell);
        let before = up_to(cell) - up_to(Cell { lba: Lba::ZERO, ..cell });
        before + self.absent.iter().filter(is_before).count()
    }

    /// All that its records name, in the order of the drives and their sectors.
    pub(crate) fn all(&self) -> Vec<Stored> {
        let mut all = [self.cells.as_slice(), &self.absent].concat();
        all.sort_by_key(|stored| stored.cell);
        all
    }

    /// All that it changes, for the record with the contents for a drive, if for any.
    pub(crate) fn runs(&self, subject: Option<DriveIdx>) -> Vec<ChangedRun> {
        let is_here = |cell: Cell| subject == Some(cell.drive);
        runs_of(self.all().into_iter().map(|stored| (stored.cell, is_here(stored.cell))))
    }

    /// Where the new bytes are, in the order of the runs: of one drive, or of all.
    pub(crate) fn segments(&self, of: Option<DriveIdx>) -> Vec<Segment> {
        let mut segments = Vec::new();
        for stored in self.all() {
            if of.is_none_or(|drive| drive == stored.cell.drive) {
                append(&mut segments, stored.place);
            }
        }
        segments
    }

    /// The buffers that its bytes are in, each once.
    pub(crate) fn bufs(&self) -> Vec<BufId> {
        let all = self.cells.iter().chain(&self.absent);
        let mut bufs: Vec<BufId> = all.map(|stored| stored.place.buf).collect();
        bufs.sort_unstable();
        bufs.dedup();
        bufs
    }
}

impl Places {
    fn new(cells: &[Stored]) -> Self {
        let mut at_risk: BTreeMap<DriveIdx, usize> = BTreeMap::new();
        for stored in cells {
            *at_risk.entry(stored.cell.drive).or_default() += 1;
        }
        Self { unplaced: cells.len(), at_risk }
    }

    /// The drives with sectors that a crash may still take away.
    pub(crate) fn at_risk(&self) -> DriveSet {
        self.at_risk.keys().copied().collect()
    }

    /// Whether nothing keeps the memory of its sectors.
    pub(crate) fn have_all(&self) -> bool {
        self.unplaced == 0
    }

    /// A sector of a drive is safe in its place, or a later one is.
    pub(crate) fn note_safe(&mut self, drive: DriveIdx) {
        let left = self.at_risk.get_mut(&drive).expect("J4: this drive has some");
        *left -= 1;
        if *left == 0 {
            self.at_risk.remove(&drive);
        }
    }

    /// A sector is in its place, or a later one is.
    pub(crate) fn note_placed(&mut self) {
        self.unplaced -= 1;
    }
}

impl Transaction {
    pub(crate) fn new(op: OpId, since: Instant, manner: Manner, codewords: Vec<Changed>) -> Self {
        let changes = Changes::new(codewords);
        let places = Places::new(&changes.cells);
        let participants = places.at_risk();
        Self {
            op,
            since,
            manner,
            participants,
            records: Records::of(participants),
            places,
            changes,
            instead_of: None,
            logged_by: 0,
            gone: DriveSet::EMPTY,
            recorded: Generation::NONE,
            is_committed: false,
            flushed: DriveSet::EMPTY,
        }
    }

    /// From now on it is an intent, on the rings of these drives.
    pub(crate) fn announce_on(&mut self, holders: DriveSet) {
        assert_eq!(self.manner, Manner::Intent, "only whole codewords are announced");
        self.records.set_holders(holders);
        self.places.unplaced = 0;
        self.places.at_risk.values_mut().for_each(|sectors| *sectors = 1);
    }

    /// The drives that its records name.
    pub(crate) fn named(&self) -> DriveSet {
        match self.manner {
            Manner::Payload => self.participants,
            Manner::Intent => self.records.holders(),
        }
    }

    /// Sectors of the record for a drive, header included.
    pub(crate) fn record_sectors(&self, drive: DriveIdx) -> Sectors {
        Sectors::new(1 + self.places.at_risk.get(&drive).copied().unwrap_or(0) as u64)
    }
}

/// Sectors, in order, as runs of neighbours; each with whether its contents are in the record.
pub(crate) fn runs_of(cells: impl IntoIterator<Item = (Cell, bool)>) -> Vec<ChangedRun> {
    let mut runs: Vec<ChangedRun> = Vec::new();
    for (Cell { drive, lba }, is_here) in cells {
        match runs.last_mut() {
            Some(run)
                if run.drive == drive && run.extent.end() == lba && run.is_here == is_here =>
            {
                run.extent.sectors += Sectors::new(1);
            }
            Some(_) | None => {
                runs.push(ChangedRun { drive, extent: Extent::new(lba, Sectors::new(1)), is_here });
            }
        }
    }
    runs
}

/// How much a transaction may take of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordRoom {
    /// Sectors, headers included.
    pub(crate) sectors: Sectors,
    /// Whether the records of all participants lie on the same rings.
    pub(crate) is_shared: bool,
}

/// Puts codewords together into as few transactions as their records have room for, with one header for all runs and
/// checksums.
pub(crate) fn split(codewords: Vec<Changed>, room: RecordRoom) -> Vec<Vec<Changed>> {
    let mut all: Vec<Vec<Changed>> = Vec::new();
    let mut size = Size::default();
    for changed in codewords {
        let mut grown = size.clone();
        grown.add(&changed);
        match all.last_mut() {
            Some(last) if grown.fits(room) => {
                last.push(changed);
                size = grown;
            }
            Some(_) | None => {
                size = Size::default();
                size.add(&changed);
                assert!(size.fits(room), "a codeword fits into a record");
                all.push(vec![changed]);
            }
        }
    }
    all
}

/// What a transaction takes on its records.
#[derive(Clone, Debug, Default)]
struct Size {
    /// For each drive its last sector and how many there are.
    drives: BTreeMap<DriveIdx, DriveSize>,
    runs: usize,
    sectors: usize,
}

#[derive(Clone, Copy, Debug)]
struct DriveSize {
    last: Cell,
    sectors: u64,
}

impl Size {
    /// In the order of the codewords, a drive's sectors come in ascending order.
    fn add(&mut self, changed: &Changed) {
        for &Stored { cell, .. } in changed.cells.iter().chain(&changed.absent) {
            self.sectors += 1;
            let known = self.drives.get(&cell.drive).copied();
            let goes_on = known.is_some_and(|known| known.last.lba + Sectors::new(1) == cell.lba);
            self.runs += usize::from(!goes_on);
            let sectors = 1 + known.map_or(0, |known| known.sectors);
            self.drives.insert(cell.drive, DriveSize { last: cell, sectors });
        }
    }

    fn fits(&self, room: RecordRoom) -> bool {
        let most = self.drives.values().map(|drive| drive.sectors).max().unwrap_or(0);
        // After a crash a record may have to hold some of a drive's sectors and not others, each a run of its own.
        let records: u64 = self.drives.values().map(|drive| 1 + drive.sectors).sum();
        let is_room = match room.is_shared {
            true => records <= room.sectors.get(),
            false => most < room.sectors.get(),
        };
        is_room && Record::has_room(self.runs + most as usize, self.sectors)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use levelhead_block::Place;

    use super::*;
    use crate::log::contents::Coverage;

    pub(crate) fn cell(drive: u8, lba: u64) -> Cell {
        Cell { drive: DriveIdx::new(drive), lba: Lba::new(lba) }
    }

    /// A transaction that gives these sectors, and names those that no drive takes.
    pub(crate) fn payload(cells: &[Cell], absent: &[Cell]) -> Transaction {
        let stored = |cells: &[Cell]| -> Vec<Stored> {
            let place = Place { buf: BufId::Own(1), sector: 0 };
            cells.iter().map(|&cell| Stored { cell, place }).collect()
        };
        let row = Row { stripe: 0, row: 0 };
        let (cells, absent) = (stored(cells), stored(absent));
        let changed = Changed { row, coverage: Coverage::Part, cells, absent };
        Transaction::new(1, Instant::ZERO, Manner::Payload, vec![changed])
    }

    #[test]
    fn runs_are_neighbours_of_one_drive_that_are_in_the_record_or_are_not() {
        let transaction =
            payload(&[cell(0, 5), cell(0, 6), cell(0, 8), cell(1, 9)], &[cell(1, 10)]);
        let runs = |subject: Option<u8>| -> Vec<(usize, u64, u64, bool)> {
            let runs = transaction.changes.runs(subject.map(DriveIdx::new)).into_iter();
            runs.map(|ChangedRun { drive, extent, is_here }| {
                (drive.as_usize(), extent.lba.get(), extent.sectors.get(), is_here)
            })
            .collect()
        };
        assert_eq!(runs(None), [(0, 5, 2, false), (0, 8, 1, false), (1, 9, 2, false)]);
        assert_eq!(runs(Some(1)), [(0, 5, 2, false), (0, 8, 1, false), (1, 9, 2, true)]);
    }

    /// A record is its header and its sectors: it may fill its room, and no more.
    #[test]
    fn record_takes_a_sector_more_than_it_has() {
        let change = |lba| {
            let cell = cell(0, lba);
            let place = Place { buf: BufId::Own(1), sector: 0 };
            let row = Row { stripe: lba, row: 0 };
            let cells = vec![Stored { cell, place }];
            Changed { row, coverage: Coverage::Part, cells, absent: Vec::new() }
        };
        for (sectors, expected) in [(4, vec![3, 3]), (3, vec![2, 2, 2]), (7, vec![6])] {
            let room = RecordRoom { sectors: Sectors::new(sectors), is_shared: false };
            let all = split((0..6).map(change).collect(), room);
            assert_eq!(all.iter().map(Vec::len).collect::<Vec<usize>>(), expected, "{sectors}");
        }
    }
}
