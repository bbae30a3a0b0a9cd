//! What the records say that were found after a crash: which content every sector has at last, and where that is.
//!
//! ```text
//!   records --> live transactions --> for each sector the last one that has it
//!                                        |
//!        its record was found <----------+----------> it was not
//!        copy it from there                 compute it from the rest of its codeword, all of it at its last content
//!                                             | not possible
//!                                             v
//!                       the transaction was never committed: it counts as never begun
//! ```
//!
//! # Invariants
//!
//! - V1. Only the last transaction of a codeword can be uncommitted: the next one begins when the one before is
//!   committed.
//! - V2. A transaction up to `committed` never counts as never begun: some of its sectors may be in their places.
//! - V3. What is computed is computed once, from the last contents of the other sectors; their places may hold
//!   anything between.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, DriveSet, Lba, Sectors};

use super::record::{FoundRecord, Kind, Record};
use super::rules::{Rule, Rules};
use crate::meta::damaged::DamagedList;
use crate::meta::state::Metastate;
use crate::shape::{Area, Cell, Layout, Row};

/// A record and the ring on which it was found.
#[derive(Clone, Debug)]
pub(crate) struct OnRing {
    pub(crate) ring: DriveIdx,
    pub(crate) found: FoundRecord,
}

/// What is known besides the records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) area: &'a Area,
    /// For every drive the stripes, from the first on, that it holds.
    pub(crate) valid: &'a [u64],
    /// Says what else drives hold that are back; nothing where none counts.
    pub(crate) meta: Option<&'a Metastate>,
    /// Stripes below this number have redundancy that may be trusted.
    pub(crate) synced: u64,
    /// Transactions below this one are over.
    pub(crate) floor: u64,
    /// Sectors that count as damaged, whatever is in place.
    pub(crate) damaged: &'a DamagedList,
    /// Sectors that their drive did not give.
    pub(crate) unreadable: &'a BTreeSet<Cell>,
    /// What cannot be computed: the result was not what the transaction had written.
    pub(crate) wrong: &'a BTreeSet<Missing>,
    /// Transactions that are to count as never begun, whatever was found of them.
    pub(crate) dropped: &'a BTreeSet<u64>,
    pub(crate) rules: Rules,
}

/// What a transaction gave to a drive, if no ring has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Missing {
    pub(crate) id: u64,
    pub(crate) drive: DriveIdx,
}

impl Known<'_> {
    /// Whether what is in place of this sector is what the array wrote there.
    pub(crate) fn holds(&self, cell: Cell) -> bool {
        let stripe = self.layout.symbol(cell).0.stripe;
        let is_spared = |meta: &Metastate| meta.spares(cell.drive, stripe);
        stripe < self.valid[cell.drive.as_usize()] || self.meta.is_some_and(is_spared)
    }

    /// Whether redundancy counts this sector as zeroes, whatever is in place. A list that was full covers data that it
    /// counts as what it is.
    fn is_zero(&self, cell: Cell) -> bool {
        let (_, symbol) = self.layout.symbol(cell);
        let is_data = symbol < self.layout.data_symbols() && !self.layout.spec().is_mirror();
        is_data && self.damaged.covers(cell) && !self.damaged.is_widened()
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// Every transaction below this one is over.
    pub(crate) retired: u64,
    /// Every transaction up to this one is committed.
    pub(crate) committed: u64,
    /// The last transaction of which anything was found.
    pub(crate) newest: u64,
    /// Transactions that count as never begun.
    pub(crate) dropped: BTreeSet<u64>,
    /// The last content of every sector that a live transaction changed.
    pub(crate) finals: BTreeMap<Cell, Final>,
    /// What each live transaction changed, and the checksums of that.
    pub(crate) changed: BTreeMap<u64, BTreeMap<Cell, u32>>,
    /// For each of them the codewords that it changed.
    rows: BTreeMap<u64, BTreeSet<Row>>,
}

/// The last content of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Final {
    /// The transaction that gave it.
    pub(crate) id: u64,
    pub(crate) source: Source,
}

/// Where the last content of a sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// On a ring, at this address of the drive.
    Ring { drive: DriveIdx, lba: Lba },
    /// In the rest of its codeword.
    Codeword,
    /// Nowhere, and it is not needed: its drive is not there.
    Absent,
    /// Nowhere.
    Lost,
}

impl Source {
    /// Whether it is on the ring of this drive.
    fn is_on(self, ring: DriveIdx) -> bool {
        matches!(self, Self::Ring { drive, .. } if drive == ring)
    }
}

/// What live transactions gave to which sectors.
///
/// For every sector the transactions that gave it a content, and where each of these was found.
type Touched = BTreeMap<Cell, BTreeMap<u64, Option<Source>>>;

impl Verdict {
    pub(crate) fn of(records: &[OnRing], known: Known<'_>) -> Self {
        let of = |number: fn(&Record) -> u64| {
            records.iter().map(|on| number(&on.found.record)).max().unwrap_or(0)
        };
        let dropped = records.iter().flat_map(|on| on.found.record.dropped.iter().copied());
        let mut verdict = Self {
            retired: of(|record| record.retired).max(known.floor),
            committed: of(|record| record.committed),
            newest: of(|record| record.id),
            dropped: dropped.chain(known.dropped.iter().copied()).collect(),
            finals: BTreeMap::new(),
            changed: BTreeMap::new(),
            rows: BTreeMap::new(),
        };
        let touched = verdict.touched(records, known);
        while verdict.decide(&touched, known) {}
        verdict
    }

    /// What live transactions gave to which sectors.
    fn touched(&mut self, records: &[OnRing], known: Known<'_>) -> Touched {
        let mut touched = Touched::default();
        for OnRing { ring, found } in records {
            let record = &found.record;
            let is_live =
                record.kind == Kind::Payload && record.id >= self.retired && fits(record, known);
            if !is_live {
                continue;
            }
            let changed = self.changed.entry(record.id).or_default();
            let mut lba = record.place;
            let mut sums = found.sums.iter();
            for run in &record.runs {
                for (at, &sum) in run.extent.iter().zip(&mut sums) {
                    let cell = Cell { drive: run.drive, lba: at };
                    changed.insert(cell, sum);
                    self.rows.entry(record.id).or_default().insert(known.layout.symbol(cell).0);
                    let version = touched.entry(cell).or_default();
                    let version = version.entry(record.id).or_default();
                    if run.is_here {
                        lba = lba + Sectors::new(1);
                        // Its own ring needs no other copy.
                        let own = version.is_some_and(|source| source.is_on(cell.drive));
                        if found.is_whole && !own {
                            *version = Some(Source::Ring { drive: *ring, lba });
                        }
                    }
                }
            }
        }
        touched
    }

    /// Finds the last contents; returns whether another transaction was dropped, so that they are to be found anew.
    fn decide(&mut self, touched: &Touched, known: Known<'_>) -> bool {
        let last_of = |(&cell, versions): (&Cell, &BTreeMap<u64, Option<Source>>)| {
            let mut live = versions.iter().filter(|(id, _)| !self.dropped.contains(id));
            let is_last = known.rules.keep(Rule::Order);
            let (&id, source) = if is_last { live.next_back()? } else { live.next()? };
            let is_there = known.holds(cell);
            let source = source.unwrap_or(if is_there { Source::Codeword } else { Source::Absent });
            Some((cell, Final { id, source }))
        };
        self.finals = touched.iter().filter_map(last_of).collect();
        self.leave_out_old(known);
        let hopeless = self.hopeless(known);
        let last = self.last_of_rows(known);
        let mut is_new = false;
        for row in &hopeless {
            let id = last[row];
            if self.may_drop(id, &last, known) {
                is_new |= self.dropped.insert(id);
            }
        }
        if !is_new {
            self.give_up(&hopeless, known);
        }
        is_new
    }

    /// Whether a transaction may count as never begun, `last` being the last one of every codeword (V1, V2).
    fn may_drop(&self, id: u64, last: &BTreeMap<Row, u64>, known: Known<'_>) -> bool {
        let is_last = self.rows[&id].iter().all(|row| last.get(row) == Some(&id));
        is_last && (id > self.committed || !known.rules.keep(Rule::Committed))
    }

    /// Whether this transaction may count as never begun although it could be completed.
    pub(crate) fn may_give_up(&self, id: u64, known: Known<'_>) -> bool {
        self.may_drop(id, &self.last_of_rows(known), known)
    }

    /// What other rings have of a drive that is not there counts only if it is of the last transaction of its codeword: later
    /// ones may have done without the drive, and have changed what it should hold.
    fn leave_out_old(&mut self, known: Known<'_>) {
        let rows = self.last_of_rows(known);
        for (&cell, last) in &mut self.finals {
            let (row, _) = known.layout.symbol(cell);
            let is_had = matches!(last.source, Source::Ring { .. });
            if is_had && !known.holds(cell) && rows[&row] > last.id {
                last.source = Source::Absent;
            }
        }
    }

    /// The codewords that were changed, and the last transaction of each.
    fn last_of_rows(&self, known: Known<'_>) -> BTreeMap<Row, u64> {
        let mut last: BTreeMap<Row, u64> = BTreeMap::new();
        for (&cell, known_last) in &self.finals {
            let (row, _) = known.layout.symbol(cell);
            let id = last.entry(row).or_default();
            *id = (*id).max(known_last.id);
        }
        last
    }

    /// The codewords of which something is to be computed and cannot be.
    fn hopeless(&self, known: Known<'_>) -> BTreeSet<Row> {
        let layout = known.layout;
        let lacking = self.finals.iter().filter(|(_, last)| last.source == Source::Codeword);
        let is_wrong = |drive: DriveIdx, id: u64| known.wrong.contains(&Missing { id, drive });
        let wrong: BTreeSet<Row> = lacking
            .clone()
            .filter(|(cell, last)| is_wrong(cell.drive, last.id))
            .map(|(&cell, _)| layout.symbol(cell).0)
            .collect();
        let rows: BTreeSet<Row> = lacking.map(|(&cell, _)| layout.symbol(cell).0).collect();
        let can = |row: &Row| {
            // Of a mirror every copy that is there was changed alike.
            let is_valid = row.stripe < known.synced || layout.spec().is_mirror();
            known.rules.keep(Rule::Complete)
                && is_valid
                && !wrong.contains(row)
                && self.sources(*row, known).len() >= layout.data_symbols()
        };
        rows.into_iter().filter(|row| !can(row)).collect()
    }

    /// Whether a sector's last content is to go onto the ring of its drive before it is written in place: it is
    /// computed, or lies on other rings that may be too few.
    pub(crate) fn is_to_log(&self, cell: Cell, last: Final, present: DriveSet) -> bool {
        match last.source {
            Source::Codeword => true,
            Source::Ring { drive, .. } => drive != cell.drive && present.contains(cell.drive),
            Source::Absent | Source::Lost => false,
        }
    }

    /// The symbols of a codeword whose last contents are to be had.
    pub(crate) fn sources(&self, row: Row, known: Known<'_>) -> SymbolSet {
        let is_had = |&symbol: &usize| {
            let cell = known.layout.cell(row, symbol);
            match self.finals.get(&cell).map(|last| last.source) {
                Some(Source::Ring { .. }) => true,
                Some(Source::Codeword | Source::Absent | Source::Lost) => false,
                None if known.damaged.covers(cell) => known.is_zero(cell),
                None => known.holds(cell) && !known.unreadable.contains(&cell),
            }
        };
        (0..known.layout.symbols()).filter(is_had).collect()
    }

    /// Whether a sector is had without reading it: as zeroes.
    pub(crate) fn is_zero(&self, cell: Cell, known: Known<'_>) -> bool {
        !self.finals.contains_key(&cell) && known.is_zero(cell)
    }

    /// Sectors that redundancy counts with what the journal brings to them, and not as damaged any more. Not so what is
    /// redundant where data is nowhere, nor what no drive takes there.
    pub(crate) fn made_right(&self, known: Known<'_>) -> Vec<Cell> {
        if known.damaged.is_empty() {
            return Vec::new();
        }
        let layout = known.layout;
        let row = |cell: Cell| layout.symbol(cell).0;
        let lost = self.finals.iter().filter(|(_, last)| last.source == Source::Lost);
        let lost: BTreeSet<Row> = lost.map(|(&cell, _)| row(cell)).collect();
        let is_right = |&(&cell, last): &(&Cell, &Final)| match last.source {
            Source::Ring { .. } | Source::Codeword => {
                layout.symbol(cell).1 < layout.data_symbols() || !lost.contains(&row(cell))
            }
            Source::Absent => !lost.contains(&row(cell)),
            Source::Lost => false,
        };
        let right = self.finals.iter().filter(is_right).map(|(&cell, _)| cell);
        right.filter(|&cell| known.damaged.covers(cell)).collect()
    }

    /// Whether all of a codeword was logged after this intent, which then says nothing of it any more (N1).
    pub(crate) fn is_replaced(&self, layout: &Layout, row: Row, intent: u64) -> bool {
        let is_later = |symbol: usize| {
            let last = self.finals.get(&layout.cell(row, symbol));
            last.is_some_and(|last| last.id > intent)
        };
        (0..layout.symbols()).all(is_later)
    }

    /// Whether something that this transaction gave to a drive is nowhere but in the rest of its codeword.
    pub(crate) fn is_lacking(&self, missing: Missing) -> bool {
        let Missing { id, drive } = missing;
        let mut finals = self.finals.iter();
        finals.any(|(cell, last)| {
            cell.drive == drive && last.id == id && last.source == Source::Codeword
        })
    }

    /// What this transaction gave to a drive cannot be put onto its ring.
    pub(crate) fn give_up_on(&mut self, Missing { id, drive }: Missing) {
        for (cell, last) in &mut self.finals {
            if cell.drive == drive && last.id == id && last.source == Source::Codeword {
                last.source = Source::Lost;
            }
        }
    }

    /// Gives up what cannot be computed any more.
    pub(crate) fn give_up_hopeless(&mut self, known: Known<'_>) {
        let hopeless = self.hopeless(known);
        self.give_up(&hopeless, known);
    }

    /// Of these codewords nothing can be computed.
    fn give_up(&mut self, hopeless: &BTreeSet<Row>, known: Known<'_>) {
        for (&cell, last) in &mut self.finals {
            if last.source == Source::Codeword && hopeless.contains(&known.layout.symbol(cell).0) {
                last.source = Source::Lost;
            }
        }
    }
}

/// Whether a record is about sectors that the array has.
pub(crate) fn fits(record: &Record, known: Known<'_>) -> bool {
    let end = Lba::ZERO + known.area.size();
    let chunks = known.layout.chunks() * known.layout.spec().chunk().get();
    let is_used =
        |drive, lba| known.layout.symbol(Cell { drive, lba }).0.stripe < known.layout.stripes();
    record.runs.iter().all(|run| {
        run.drive.as_usize() < known.layout.spec().drives()
            && run.extent.end() <= end
            && run.extent.end().get() <= chunks
            && run.extent.iter().all(|lba| is_used(run.drive, lba))
    })
}

#[cfg(test)]
mod tests {
    use levelhead_units::Extent;

    use super::*;
    use crate::log::record::{ChangedRun, RingName};
    use crate::meta::membership::MemberId;
    use crate::meta::superblock::Uuid;
    use crate::shape::Spec;

    #[test]
    fn what_has_no_room_is_lost_and_nothing_else_is() {
        let cell = |drive, lba| Cell { drive: DriveIdx::new(drive), lba: Lba::new(lba) };
        let ring = Source::Ring { drive: DriveIdx::new(2), lba: Lba::new(9) };
        let before = [
            (cell(1, 0), 5, Source::Codeword, Source::Lost),
            (cell(1, 1), 5, ring, ring),
            (cell(1, 2), 6, Source::Codeword, Source::Codeword),
            (cell(2, 0), 5, Source::Codeword, Source::Codeword),
        ];
        let finals = before.map(|(cell, id, source, _)| (cell, Final { id, source }));
        let mut verdict = Verdict { finals: BTreeMap::from(finals), ..Verdict::default() };
        verdict.give_up_on(Missing { id: 5, drive: DriveIdx::new(1) });
        for (cell, _, _, after) in before {
            assert_eq!(verdict.finals[&cell].source, after, "{cell:?}");
        }
    }

    fn record(drive: u8, lba: u64, sectors: u64) -> Record {
        let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
        let drive = DriveIdx::new(drive);
        Record {
            ring: RingName { array: Uuid::default(), member: MemberId::default() },
            place: Lba::new(7),
            kind: Kind::Payload,
            id: 5,
            drive,
            participants: DriveSet::EMPTY.with(drive),
            runs: vec![ChangedRun { drive, extent, is_here: true }],
            committed: 0,
            retired: 0,
            dropped: Vec::new(),
            has_gaps: false,
        }
    }

    /// Runs `check` with what is known of an array of three drives, of so many sectors each.
    fn with_known(spec: &str, sectors: u64, check: impl Fn(Known<'_>)) {
        let spec: Spec = spec.parse().unwrap();
        let (layout, area) = (
            Layout::new(spec, Sectors::new(sectors)),
            Area::plain(Extent::new(Lba::new(90), Sectors::new(5))),
        );
        let (damaged, unreadable) = (DamagedList::default(), BTreeSet::new());
        let (wrong, dropped) = (BTreeSet::new(), BTreeSet::new());
        check(Known {
            layout: &layout,
            area: &area,
            valid: &[u64::MAX; 3],
            meta: None,
            damaged: &damaged,
            synced: u64::MAX,
            floor: 1,
            unreadable: &unreadable,
            wrong: &wrong,
            dropped: &dropped,
            rules: Rules::ALL,
        });
    }

    /// A record of which its own ring has a copy is read there and put nowhere, whichever other rings have it.
    #[test]
    fn its_own_ring_has_a_record_whatever_others_have() {
        for rings in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            with_known("raid5:2+1,chunk=8KiB", 4, |known| {
                let on = |ring| {
                    let ring = DriveIdx::new(ring);
                    let found =
                        FoundRecord { record: record(0, 1, 1), sums: vec![3], is_whole: true };
                    OnRing { ring, found }
                };
                let records = rings.map(on);
                let mut verdict = Verdict { retired: 1, ..Verdict::default() };
                let touched = verdict.touched(&records, known);
                let source = touched.values().flat_map(BTreeMap::values).next().copied().flatten();
                let lba = Lba::new(8);
                assert_eq!(
                    source,
                    Some(Source::Ring { drive: DriveIdx::new(0), lba }),
                    "{rings:?}"
                );
            });
        }
    }

    #[test]
    fn record_counts_only_if_the_array_has_all_of_its_sectors() {
        with_known("raid5:2+1,chunk=8KiB", 4, |known| {
            for (drive, lba, sectors, is_there) in [
                (0, 0, 4, true),
                (2, 3, 1, true),
                (3, 0, 1, false),
                (0, 3, 2, false),
                (0, 4, 1, false),
                (0, 9, 1, false),
            ] {
                let found = fits(&record(drive, lba, sectors), known);
                assert_eq!(found, is_there, "drive {drive}, {sectors} from {lba} on");
            }
        });
        // Of one chunk of each drive the only stripe takes two.
        with_known("raid10:3,chunk=8KiB", 2, |known| {
            let fits = [0, 1, 2].map(|drive| fits(&record(drive, 0, 2), known));
            assert_eq!(fits, [true, true, false]);
        });
    }

    /// V1, V2: only the last transaction of all its codewords is dropped, and only if no ring says that it is committed.
    #[test]
    fn transaction_may_be_given_up_if_none_came_after_it_and_it_is_not_committed() {
        let row = |stripe| Row { stripe, row: 0 };
        with_known("raid5:2+1,chunk=8KiB", 4, |known| {
            let rows = [(5, vec![row(0), row(1)]), (6, vec![row(1)]), (7, vec![row(0)])];
            let rows = rows.map(|(id, rows)| (id, rows.into_iter().collect()));
            let last = [(0, 7), (1, 6)].map(|(stripe, id)| {
                (known.layout.cell(row(stripe), 0), Final { id, source: Source::Codeword })
            });
            let mut verdict = Verdict {
                rows: BTreeMap::from(rows),
                finals: BTreeMap::from(last),
                ..Verdict::default()
            };
            let may = |verdict: &Verdict| [5, 6, 7].map(|id| verdict.may_give_up(id, known));
            assert_eq!(may(&verdict), [false, true, true]);
            verdict.committed = 6;
            assert_eq!(may(&verdict), [false, false, true]);
        });
    }
}
