//! What the journal of an array says of its sectors to those that read its drives without serving it.
//!
//! ```text
//!   records of all rings --> verdict, as after a crash --> for each sector that was being written: where it is
//! ```
//!
//! A start after a crash decides the same from the same records, and then carries it out.

mod sums;

use std::collections::{BTreeMap, BTreeSet};

use levelhead_units::{DriveIdx, DriveSet, Lba};

use crate::journal::verdict::{Final, Known, OnRing, Source, Verdict, fits};
use crate::log::record::{FoundRecord, Kind};
use crate::log::rules::Rules;
use crate::meta::damaged::DamagedList;
use crate::shape::{Area, Cell, Layout, Row};

pub use sums::{DriveList, Expected};

/// An array that was cut off, as far as it is known without its journal.
#[derive(Clone, Copy, Debug)]
pub struct CutOff<'a> {
    /// Its shape and size.
    pub layout: &'a Layout,
    /// Where its data lies on every drive.
    pub area: &'a Area,
    /// Drives that are there.
    pub present: DriveSet,
    /// Stripes below this number have redundancy that may be trusted.
    pub trusted: u64,
    /// Transactions below this one are over.
    pub floor: u64,
    /// Sectors that count as damaged whatever is in their places.
    pub damaged: &'a DamagedList,
}

/// Where a sector is that the journal knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// On the ring of this drive, at this sector of the drive.
    Ring {
        /// Whose ring.
        drive: DriveIdx,
        /// The sector, as the drive counts.
        lba: Lba,
    },
    /// In the rest of its codeword alone: what is in its place may be old or new.
    Computed,
    /// Nowhere.
    Nowhere,
}

/// What should be on the rings and is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// A transaction that is committed.
    pub id: u64,
    /// The drive whose record of it is missing or damaged.
    pub drive: DriveIdx,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    contents: BTreeMap<Cell, Content>,
    /// What was given to drives that are not there.
    absent: BTreeSet<Cell>,
    needed: BTreeSet<Cell>,
    made_right: BTreeSet<Cell>,
    incomplete: Vec<Incomplete>,
    announced: BTreeSet<Row>,
    transactions: usize,
    dropped: usize,
}

impl Overlay {
    /// What these records say, each found on the ring of its drive. `unreadable` are sectors in place that drives
    /// did not give.
    pub fn of(
        records: &[(DriveIdx, FoundRecord)],
        array: CutOff<'_>,
        unreadable: &BTreeSet<Cell>,
    ) -> Self {
        let CutOff { layout, area, present, trusted, floor, damaged } = array;
        let (synced, rules) = (trusted, Rules::ALL);
        let (wrong, begun_never) = (&BTreeSet::new(), &BTreeSet::new());
        let valid = (0..layout.spec().drives()).map(DriveIdx::from_usize);
        let valid = valid.map(|drive| if present.contains(drive) { u64::MAX } else { 0 });
        let valid: &Vec<u64> = &valid.collect();
        let known = Known {
            layout,
            area,
            valid,
            meta: None,
            damaged,
            synced,
            floor,
            unreadable,
            wrong,
            dropped: begun_never,
            rules,
        };
        let records =
            records.iter().map(|(ring, found)| OnRing { ring: *ring, found: found.clone() });
        let records: Vec<OnRing> = records.collect();
        let verdict = Verdict::of(&records, known);
        let content = |source: Source| match source {
            Source::Ring { drive, lba } => Some(Content::Ring { drive, lba }),
            Source::Codeword => Some(Content::Computed),
            Source::Lost => Some(Content::Nowhere),
            Source::Absent => None,
        };
        let contents =
            verdict.finals.iter().filter_map(|(&cell, last)| Some((cell, content(last.source)?)));
        let contents: BTreeMap<Cell, Content> = contents.collect();
        let is_absent = |last: &Final| last.source == Source::Absent;
        let absent = verdict.finals.iter().filter(|(_, last)| is_absent(last));
        let absent = absent.map(|(&cell, _)| cell).collect();
        let computed = contents.iter().filter(|(_, content)| **content == Content::Computed);
        let rows: BTreeSet<Row> = computed.map(|(&cell, _)| layout.symbol(cell).0).collect();
        let needed = rows.iter().flat_map(|&row| {
            let sources = verdict.sources(row, known);
            sources.iter().map(move |symbol| layout.cell(row, symbol)).collect::<Vec<Cell>>()
        });
        let is_read = |cell: &Cell| !contents.contains_key(cell) && !verdict.is_zero(*cell, known);
        let needed = needed.filter(is_read).collect();
        let counts = verdict.changed.keys().filter(|id| !verdict.dropped.contains(id)).count();
        Self {
            needed,
            made_right: verdict.made_right(known).into_iter().collect(),
            incomplete: incomplete(&records, &verdict, present),
            announced: announced(&records, &verdict, known),
            transactions: counts,
            dropped: verdict.changed.len() - counts,
            contents,
            absent,
        }
    }

    /// Where a sector is, if the journal knows of it.
    pub fn content(&self, cell: Cell) -> Option<Content> {
        self.contents.get(&cell).copied()
    }

    /// Whether the journal has changed a sector, of a drive that is there or not: what a list says of it is older.
    pub fn is_changed(&self, cell: Cell) -> bool {
        self.contents.contains_key(&cell) || self.absent.contains(&cell)
    }

    /// Whether a sector is on the list of damaged ones only because the array was cut off: redundancy counts what the journal
    /// brings to it.
    pub fn is_made_right(&self, cell: Cell) -> bool {
        self.made_right.contains(&cell)
    }

    /// The sectors of a drive from `from` on and before `to` that it knows of, and where they are.
    pub fn between(
        &self,
        drive: DriveIdx,
        from: Lba,
        to: Lba,
    ) -> impl Iterator<Item = (Lba, Content)> {
        let range = Cell { drive, lba: from }..Cell { drive, lba: to };
        self.contents.range(range).map(|(cell, &content)| (cell.lba, content))
    }

    /// Sectors that are read in place to compute others. If one cannot be read, all is to be decided anew.
    pub fn needed(&self) -> impl Iterator<Item = Cell> {
        self.needed.iter().copied()
    }

    /// Records of committed transactions that drives do not have, though they are there.
    pub fn incomplete(&self) -> &[Incomplete] {
        &self.incomplete
    }

    /// Whether a codeword was being replaced as a whole, in place: its sectors are old or new, and a start makes its
    /// redundancy right.
    pub fn is_announced(&self, row: Row) -> bool {
        self.announced.contains(&row)
    }

    /// How many codewords were.
    pub fn announced(&self) -> usize {
        self.announced.len()
    }

    /// How many sectors it knows of.
    pub fn len(&self) -> usize {
        self.contents.len()
    }

    /// Whether it knows of none.
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// How many transactions count, and how many count as never begun.
    pub fn transactions(&self) -> [usize; 2] {
        [self.transactions, self.dropped]
    }
}

/// Codewords of intents that are not over.
fn announced(records: &[OnRing], verdict: &Verdict, known: Known<'_>) -> BTreeSet<Row> {
    let is_live = |on: &&OnRing| {
        let record = &on.found.record;
        record.kind == Kind::Intent
            && record.id >= verdict.retired
            && !verdict.dropped.contains(&record.id)
            && fits(record, known)
    };
    let mut announced = BTreeSet::new();
    for OnRing { found, .. } in records.iter().filter(is_live) {
        let runs = found.record.runs.iter();
        let cells =
            runs.flat_map(|run| run.extent.iter().map(|lba| Cell { drive: run.drive, lba }));
        let rows = cells.map(|cell| known.layout.symbol(cell).0);
        announced
            .extend(rows.filter(|&row| !verdict.is_replaced(known.layout, row, found.record.id)));
    }
    announced
}

/// Records that committed transactions must have, and have not. They may lie on any ring.
fn incomplete(records: &[OnRing], verdict: &Verdict, present: DriveSet) -> Vec<Incomplete> {
    let mut whole: BTreeMap<u64, DriveSet> = BTreeMap::new();
    let mut wanted: BTreeMap<u64, DriveSet> = BTreeMap::new();
    for OnRing { found, .. } in records {
        let record = &found.record;
        let is_live = record.kind == Kind::Payload && verdict.changed.contains_key(&record.id);
        if !is_live || record.id > verdict.committed || verdict.dropped.contains(&record.id) {
            continue;
        }
        let all = wanted.entry(record.id).or_insert(DriveSet::EMPTY);
        *all = all.or(record.participants.and(present));
        if found.is_whole {
            let had = whole.entry(record.id).or_insert(DriveSet::EMPTY);
            *had = had.with(record.drive);
        }
    }
    let lacking = wanted.into_iter().flat_map(|(id, all)| {
        let had = whole.get(&id).copied().unwrap_or(DriveSet::EMPTY);
        all.without(had).iter().map(move |drive| Incomplete { id, drive }).collect::<Vec<_>>()
    });
    lacking.collect()
}

#[cfg(test)]
mod tests {
    use levelhead_units::{Extent, Sectors};

    use super::*;
    use crate::log::record::{ChangedRun, Record, RingName};
    use crate::meta::membership::MemberId;
    use crate::meta::superblock::Uuid;

    /// A record of transaction `id` that changes sector 0 of drives 0 and 2 of three, on the ring of `drive`.
    fn record(id: u64, drive: u8, committed: u64, is_whole: bool) -> (DriveIdx, FoundRecord) {
        let subject = DriveIdx::new(drive);
        let run = |at: u8| ChangedRun {
            drive: DriveIdx::new(at),
            extent: Extent::new(Lba::ZERO, Sectors::new(1)),
            is_here: at == drive,
        };
        let record = Record {
            ring: RingName { array: Uuid::default(), member: MemberId::new(Uuid([drive; 16])) },
            place: Lba::new(100),
            kind: Kind::Payload,
            id,
            drive: subject,
            participants: [0, 2].into_iter().map(DriveIdx::new).collect(),
            runs: vec![run(0), run(2)],
            committed,
            retired: 1,
            dropped: Vec::new(),
            has_gaps: false,
        };
        (subject, FoundRecord { record, sums: vec![1, 2], is_whole })
    }

    fn overlay(records: &[(DriveIdx, FoundRecord)], unreadable: &[Cell]) -> Overlay {
        overlay_with(records, unreadable, &DamagedList::default())
    }

    fn overlay_with(
        records: &[(DriveIdx, FoundRecord)],
        unreadable: &[Cell],
        damaged: &DamagedList,
    ) -> Overlay {
        let layout = Layout::new("raid5:3,chunk=4KiB".parse().unwrap(), Sectors::new(8));
        let area = Area::plain(Extent::new(Lba::new(50), Sectors::new(8)));
        let (present, floor) = (DriveSet::first(3), 1);
        let trusted = u64::MAX;
        let array = CutOff { layout: &layout, area: &area, present, trusted, floor, damaged };
        Overlay::of(records, array, &unreadable.iter().copied().collect())
    }

    fn cell(drive: u8) -> Cell {
        Cell { drive: DriveIdx::new(drive), lba: Lba::ZERO }
    }

    #[test]
    fn whole_records_give_their_sectors_and_a_damaged_one_is_computed_and_told() {
        let found = overlay(&[record(5, 0, 0, true), record(5, 2, 5, true)], &[]);
        let on = |drive| Some(Content::Ring { drive: DriveIdx::new(drive), lba: Lba::new(101) });
        assert_eq!([found.content(cell(0)), found.content(cell(2))], [on(0), on(2)]);
        assert_eq!((found.content(cell(1)), found.incomplete()), (None, &[][..]));
        let found = overlay(&[record(5, 0, 5, true), record(5, 2, 5, false)], &[]);
        assert_eq!(found.content(cell(2)), Some(Content::Computed));
        assert_eq!(found.needed().collect::<Vec<_>>(), [cell(1)]);
        assert_eq!(found.incomplete(), [Incomplete { id: 5, drive: DriveIdx::new(2) }]);
        assert_eq!(found.transactions(), [1, 0]);
    }

    #[test]
    fn what_cannot_be_computed_is_nowhere_if_it_was_committed_and_was_never_begun_if_not() {
        let found = overlay(&[record(5, 0, 5, true)], &[cell(1)]);
        assert_eq!(found.content(cell(2)), Some(Content::Nowhere));
        let found = overlay(&[record(5, 0, 4, true)], &[cell(1)]);
        assert!(found.is_empty() && found.incomplete().is_empty());
        assert_eq!(found.transactions(), [0, 1]);
        // What is not committed may lack records.
        let found = overlay(&[record(5, 0, 4, true)], &[]);
        assert_eq!((found.len(), found.incomplete().len()), (2, 0));
        let places: Vec<Lba> =
            found.between(DriveIdx::new(2), Lba::ZERO, Lba::new(8)).map(|(lba, _)| lba).collect();
        assert_eq!(places, [Lba::ZERO]);
    }

    #[test]
    fn damaged_data_counts_as_zeroes_until_the_journal_brings_something_to_it() {
        let mut damaged = DamagedList::default();
        let one = Extent::new(Lba::ZERO, Sectors::new(1));
        damaged.add(DriveIdx::new(0), one);
        damaged.add(DriveIdx::new(1), one);
        // What is in place on drive 1 is neither needed nor in the way.
        let found = overlay_with(&[record(5, 0, 5, true)], &[cell(1)], &damaged);
        assert_eq!(found.content(cell(2)), Some(Content::Computed));
        assert_eq!(found.needed().count(), 0);
        assert_eq!([0, 1, 2].map(|drive| found.is_made_right(cell(drive))), [true, false, false]);
        // What is redundant and damaged is not used.
        damaged.add(DriveIdx::new(2), one);
        let found = overlay_with(&[record(5, 2, 5, true)], &[cell(1)], &damaged);
        assert_eq!(found.content(cell(0)), Some(Content::Computed));
        assert!(found.is_made_right(cell(2)) && found.is_made_right(cell(0)));
    }

    #[test]
    fn codewords_of_an_intent_that_is_not_over_are_announced() {
        let (drive, mut found) = record(5, 0, 0, true);
        found.record.kind = Kind::Intent;
        found.record.runs.iter_mut().for_each(|run| run.is_here = false);
        let row = Row { stripe: 0, row: 0 };
        let live = overlay(&[(drive, found.clone())], &[]);
        assert!(live.is_announced(row) && live.is_empty());
        assert_eq!(live.announced(), 1);
        found.record.retired = 6;
        assert_eq!(overlay(&[(drive, found)], &[]).announced(), 0);
    }
    #[test]
    fn an_intent_says_nothing_of_a_codeword_that_was_logged_as_a_whole_later() {
        let (drive, mut intent) = record(5, 0, 0, true);
        intent.record.kind = Kind::Intent;
        intent.record.runs.iter_mut().for_each(|run| run.is_here = false);
        let part = [record(6, 0, 0, true), record(6, 2, 0, true)];
        let with = |records: &[(DriveIdx, FoundRecord)]| {
            overlay(&[&[(drive, intent.clone())], records].concat(), &[]).announced()
        };
        assert_eq!(with(&part), 1, "the third sector is as the intent left it");
        let whole = part.map(|(drive, mut found)| {
            found.record.runs.push(ChangedRun {
                drive: DriveIdx::new(1),
                extent: Extent::new(Lba::ZERO, Sectors::new(1)),
                is_here: false,
            });
            found.sums.push(3);
            (drive, found)
        });
        assert_eq!(with(&whole), 0);
        let earlier = whole.map(|(drive, mut found)| {
            found.record.id = 4;
            (drive, found)
        });
        assert_eq!(with(&earlier), 1);
    }
}
