//! Records that were not found: what they held is computed from the rest of their codewords and put onto their rings.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::{Place, Segment};
use levelhead_units::{Instant, Sectors};

use super::{At, Missing, Recovery, Space, Step, Written, known};
use crate::core::Core;
use crate::journal::record::{Kind, Record};
use crate::journal::ring::{Ring, Watermarks};
use crate::journal::rules::Rule;
use crate::journal::transaction::runs_of;
use crate::journal::verdict::{Source, Verdict};
use crate::ops::read::append;
use crate::shape::{Cell, Row};

impl Recovery {
    /// Gives the records that are missing their space: each of them had some that was large enough, so the largest
    /// ones come first, and what was there before counts for nothing.
    pub(super) fn reserve(
        &mut self,
        core: &Core,
        rings: &mut [Ring],
        records: BTreeMap<Missing, u64>,
    ) {
        let mut records: Vec<(Missing, u64)> = records.into_iter().collect();
        records.sort_by_key(|&(_, sectors)| Reverse(sectors));
        self.reserved.clear();
        for (missing, sectors) in records {
            let Missing { id, drive } = missing;
            let (ring, sectors) = (&mut rings[drive.as_usize()], Sectors::new(1 + sectors));
            let room = ring.room(sectors, core.arm(drive));
            match room.or_else(|| ring.room_without_latest(sectors, core.arm(drive))) {
                Some(place) => {
                    ring.reserve(place, sectors, id);
                    self.reserved.insert(missing, place);
                }
                // No program of ours leaves such a ring.
                None => self.verdict.give_up_on(id, drive),
            }
        }
        let known = known(core, self.floor, &self.unreadable, self.rules);
        self.verdict.give_up_hopeless(known);
    }

    /// The codewords of which something is to be computed that this transaction gave.
    fn rows_of(&self, core: &Core, id: u64) -> BTreeSet<Row> {
        let finals = self.verdict.finals.iter();
        let lacking = finals.filter(|(_, last)| last.id == id && last.source == Source::Codeword);
        lacking.map(|(&cell, _)| core.layout.symbol(cell).0).collect()
    }

    /// Reads what is needed to compute the next transaction's missing parts; marks if there is none.
    pub(super) fn compute_next(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        let Some(id) = self.to_compute.pop_front() else {
            let Verdict { retired, committed, newest, .. } = self.verdict;
            let says = Watermarks { committed: committed.max(newest), retired };
            if self.rules.keep(Rule::Decide) {
                self.mark(core, now, rings, says);
            }
            self.plan_places();
            self.step = Step::Marking;
            return;
        };
        let mut wanted: BTreeSet<At> = BTreeSet::new();
        for row in self.rows_of(core, id) {
            let sources = self.verdict.sources(row, self.known(core));
            for symbol in sources.iter() {
                wanted.insert(self.source_at(core.layout.cell(row, symbol)));
            }
        }
        self.fetch(core, now, &wanted);
        self.step = Step::Fetching(id);
    }

    /// Where the last content of a sector is that can be had.
    fn source_at(&self, cell: Cell) -> At {
        match self.verdict.finals.get(&cell).map(|last| last.source) {
            Some(Source::Ring { drive, lba }) => At::one(drive, Space::Drive, lba),
            _ => At::one(cell.drive, Space::Layout, cell.lba),
        }
    }

    /// Computes what is missing of a transaction, and puts it onto the rings.
    pub(super) fn compute(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring], id: u64) {
        let rows = self.rows_of(core, id);
        let is_all_there = rows.iter().all(|&row| {
            let sources = self.verdict.sources(row, self.known(core));
            sources.iter().all(|symbol| {
                let at = self.source_at(core.layout.cell(row, symbol));
                self.had.contains_key(&at)
            })
        });
        if !is_all_there {
            // A sector was not given: everything is decided anew without it.
            self.step = Step::Again;
            return;
        }
        let finals = self.verdict.finals.iter();
        let lacking = finals.filter(|(_, last)| last.id == id && last.source == Source::Codeword);
        let cells: Vec<Cell> = lacking.map(|(&cell, _)| cell).collect();
        let buf = core.acquire(Sectors::new(cells.len() as u64));
        self.bufs.push(buf);
        for (&cell, sector) in cells.iter().zip(0..) {
            self.compute_cell(core, cell, Place { buf, sector });
        }
        for own in cells.chunk_by(|left, right| left.drive == right.drive) {
            self.append_computed(core, now, rings, id, own);
        }
        self.step = Step::Appending;
    }

    fn compute_cell(&mut self, core: &mut Core, cell: Cell, into: Place) {
        let (row, symbol) = core.layout.symbol(cell);
        let sources = self.verdict.sources(row, self.known(core));
        let code = core.code.as_ref().expect("only a redundant array computes");
        let terms = code.compute(&sources, symbol).into_iter();
        let from: Vec<(u8, Place)> = terms
            .map(|(coefficient, source)| {
                (coefficient, self.had[&self.source_at(core.layout.cell(row, source))])
            })
            .collect();
        core.combine(into, from);
        self.had.insert(At::one(cell.drive, Space::Layout, cell.lba), into);
    }

    /// Puts computed sectors of one drive onto its ring (X2).
    fn append_computed(
        &mut self,
        core: &mut Core,
        now: Instant,
        rings: &[Ring],
        id: u64,
        cells: &[Cell],
    ) {
        let drive = cells[0].drive;
        let ring = &rings[drive.as_usize()];
        let place = self.reserved[&Missing { id, drive }];
        let mut contents: Vec<Segment> = Vec::new();
        for (&cell, lba) in cells.iter().zip(1..) {
            append(&mut contents, self.had[&At::one(drive, Space::Layout, cell.lba)]);
            let last = self.verdict.finals.get_mut(&cell).expect("it is lacking");
            last.source = Source::Ring { drive, lba: place + Sectors::new(lba) };
        }
        // All that it changed, so that one such record says what a whole one says.
        let changed = &self.verdict.changed[&id];
        let runs = runs_of(changed.keys().map(|&cell| (cell, cells.contains(&cell))));
        let sums: Vec<u32> = changed.values().copied().collect();
        let participants = changed.keys().map(|cell| cell.drive).collect();
        let Verdict { retired, committed, .. } = self.verdict;
        let record = Record {
            ring: ring.name,
            place,
            kind: Kind::Payload,
            id,
            drive,
            participants,
            runs,
            committed,
            retired,
            dropped: Vec::new(),
        };
        self.write_record(core, now, drive, Written { record, sums, contents });
    }
}
