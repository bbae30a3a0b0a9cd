//! Records that were not found: what they held is computed from the rest of their codewords and put onto their rings.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::{BufId, Durability, Place, SectorSet};
use levelhead_units::{DriveIdx, DriveSet, Instant, Sectors};

use super::{At, Computed, Homed, Recovery, Room, Space, Step};
use crate::action::{Action, Sums};
use crate::core::Core;
use crate::journal::ring::{Ring, Watermarks};
use crate::journal::transaction::runs_of;
use crate::journal::verdict::{Final, Missing, Source, Verdict};
use crate::log::record::{Kind, Record};
use crate::log::rules::Rule;
use crate::shape::{Cell, Row};

impl Recovery {
    /// Gives the records that are missing their space: each of them had some that was large enough, so the largest
    /// ones come first, each into the smallest free stretch that it fits into. What was there before counts for nothing.
    pub(super) fn reserve(
        &mut self,
        core: &Core,
        rings: &mut [Ring],
        records: BTreeMap<Homed, u64>,
    ) -> Room {
        let mut records: Vec<(Homed, u64)> = records.into_iter().collect();
        // What lies on other rings comes last: it needs its own only for good measure.
        records.sort_by_key(|&(homed, sectors)| {
            (!self.verdict.is_lacking(homed.missing), Reverse(sectors))
        });
        self.reserved.clear();
        let mut homeless: Vec<Missing> = Vec::new();
        for (homed, sectors) in records {
            let Homed { missing, ring } = homed;
            let (ring, sectors) = (&mut rings[ring.as_usize()], Sectors::new(1 + sectors));
            match ring.tightest(sectors).or_else(|| ring.room_without_latest(sectors)) {
                Some(place) => {
                    ring.reserve(place, sectors, missing.id);
                    self.reserved.insert(homed, place);
                }
                None => homeless.push(missing),
            }
        }
        // What lies on other rings only goes from there to its place.
        homeless.retain(|&missing| {
            self.verdict.is_lacking(missing) && self.homes(missing).next().is_none()
        });
        // No program of ours leaves such a ring, but sectors may have worn out since.
        for missing in &homeless {
            if self.verdict.may_give_up(missing.id, self.known(core)) {
                return Room::NotFor(missing.id);
            }
        }
        for &missing in &homeless {
            self.verdict.give_up_on(missing);
        }
        let mut verdict = std::mem::take(&mut self.verdict);
        verdict.give_up_hopeless(self.known(core));
        self.verdict = verdict;
        Room::Enough
    }

    /// The codewords of which something is to be computed that this transaction gave.
    fn rows_of(&self, core: &Core, id: u64) -> BTreeSet<Row> {
        let finals = self.verdict.finals.iter();
        let lacking = finals.filter(|(_, last)| last.id == id && last.source == Source::Codeword);
        lacking.map(|(&cell, _)| core.place.layout.symbol(cell).0).collect()
    }

    /// Reads what is needed to compute the next transaction's missing parts; marks if there is none.
    pub(super) fn compute_next(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        let Some(id) = self.to_compute.pop_front() else {
            let Verdict { retired, committed, newest, .. } = self.verdict;
            let says = Watermarks { committed: committed.max(newest), retired };
            self.tell(core);
            if self.rules.keep(Rule::Decide) {
                self.mark(core, now, rings, says);
            }
            self.plan_places(core);
            self.step = Step::Marking;
            return;
        };
        let mut wanted: BTreeSet<At> = BTreeSet::new();
        wanted.extend(self.to_log(core, id).into_iter().filter_map(|cell| {
            let is_on_a_ring = matches!(self.verdict.finals[&cell].source, Source::Ring { .. });
            is_on_a_ring.then(|| self.source_at(cell))
        }));
        for row in self.rows_of(core, id) {
            let known = self.known(core);
            let sources = self.verdict.sources(row, known);
            let cells = sources.iter().map(|symbol| core.place.layout.cell(row, symbol));
            let read = cells.filter(|&cell| !self.verdict.is_zero(cell, known));
            wanted.extend(read.map(|cell| self.source_at(cell)));
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

    /// Computes what is missing of a transaction, and has it held against its checksums.
    pub(super) fn compute(&mut self, core: &mut Core, rings: &[Ring], id: u64) {
        if self.came_short {
            // A sector was not given: everything is decided anew without it.
            self.step = Step::Again;
            return;
        }
        let cells = self.to_log(core, id);
        for own in cells.chunk_by(|left, right| left.drive == right.drive) {
            let missing = Missing { id, drive: own[0].drive };
            let homes: Vec<DriveIdx> = self.homes(missing).collect();
            for ring in homes {
                let buf = core.out.acquire(Sectors::new(1 + own.len() as u64));
                self.bufs.push(buf);
                for (&cell, sector) in own.iter().zip(1..) {
                    self.compute_cell(core, cell, Place { buf, sector });
                }
                self.check(core, &rings[ring.as_usize()], missing, buf, own);
            }
        }
        self.step = Step::Checking;
    }

    /// What this transaction gave that is to go onto the rings of its drives, where there is room.
    fn to_log(&self, core: &Core, id: u64) -> Vec<Cell> {
        let finals = self.verdict.finals.iter().filter(|(_, last)| last.id == id);
        let to_log =
            finals.filter(|(cell, last)| !self.rings_without(core, **cell, **last).is_empty());
        let has_room = |cell: &Cell| self.homes(Missing { id, drive: cell.drive }).next().is_some();
        to_log.map(|(&cell, _)| cell).filter(has_room).collect()
    }

    /// The rings that a sector's last content is to go onto before it is written in place.
    pub(super) fn rings_without(&self, core: &Core, cell: Cell, last: Final) -> DriveSet {
        let (spec, present) = (core.place.layout.spec(), core.drives.reachable());
        if spec.journals() == 0 {
            let is_to_log = self.verdict.is_to_log(cell, last, present);
            return if is_to_log { DriveSet::EMPTY.with(cell.drive) } else { DriveSet::EMPTY };
        }
        let all = present.and(spec.journal_drives());
        let missing = Missing { id: last.id, drive: cell.drive };
        match last.source {
            Source::Codeword => all,
            Source::Ring { .. } if present.contains(cell.drive) => {
                all.without(self.found_on.get(&missing).copied().unwrap_or(DriveSet::EMPTY))
            }
            Source::Ring { .. } | Source::Absent | Source::Lost => DriveSet::EMPTY,
        }
    }

    /// The rings with a place for the record of a participant.
    fn homes(&self, missing: Missing) -> impl Iterator<Item = DriveIdx> {
        let first = Homed { missing, ring: DriveIdx::new(0) };
        let homed = self.reserved.range(first..).map(|(homed, _)| *homed);
        homed.take_while(move |homed| homed.missing == missing).map(|homed| homed.ring)
    }

    fn compute_cell(&mut self, core: &mut Core, cell: Cell, into: Place) {
        if let Source::Ring { .. } = self.verdict.finals[&cell].source {
            let from = self.had[&self.source_at(cell)];
            return core.out.combine(into, vec![(1, from)]);
        }
        let (row, symbol) = core.place.layout.symbol(cell);
        let known = self.known(core);
        let sources = self.verdict.sources(row, known);
        let code = core.place.code.as_ref().expect("only a redundant array computes");
        let terms = code.compute(&sources, symbol).into_iter();
        let terms =
            terms.map(|(coefficient, source)| (coefficient, core.place.layout.cell(row, source)));
        let from: Vec<(u8, Place)> = terms
            .filter(|&(_, cell)| !self.verdict.is_zero(cell, known))
            .map(|(coefficient, cell)| (coefficient, self.had[&self.source_at(cell)]))
            .collect();
        core.out.combine(into, from);
    }

    /// Makes a record of what was computed of one drive, and has it examined (X5).
    fn check(
        &mut self,
        core: &mut Core,
        ring: &Ring,
        missing: Missing,
        buf: BufId,
        cells: &[Cell],
    ) {
        let Missing { id, drive } = missing;
        let homed = Homed { missing, ring: ring.drive };
        let place = self.reserved[&homed];
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
            has_gaps: self.rings_with_gaps().contains(ring.drive),
        };
        core.out.log(Place { buf, sector: 0 }, record, Sums::Known(sums));
        self.computed.push(Computed { homed, buf, place, cells: cells.to_vec() });
        if core.out.carries_content() {
            self.checked.insert(buf, missing);
            let (unreadable, ring) = (SectorSet::EMPTY, ring.name);
            core.out.push(Action::Examine { buf, first: place, unreadable, ring });
        }
    }

    /// Puts what was computed onto its rings (X2).
    pub(super) fn append_computed(&mut self, core: &mut Core, now: Instant) {
        if self.came_short {
            // It was computed from something that is not what it was: everything is decided anew without it.
            self.step = Step::Again;
            return;
        }
        let is_kept = self.rules.keep(Rule::Decide);
        let durability = if is_kept { Durability::Durable } else { Durability::Cached };
        for Computed { homed, buf, place, cells } in std::mem::take(&mut self.computed) {
            let drive = homed.ring;
            for (cell, lba) in cells.iter().zip(1..) {
                let last = self.verdict.finals.get_mut(cell).expect("it is lacking");
                last.source = Source::Ring { drive, lba: place + Sectors::new(lba) };
            }
            let sectors = Sectors::new(1 + cells.len() as u64);
            let at = At { drive, space: Space::Drive, lba: place, sectors };
            self.write_record(core, now, at, buf, durability);
        }
        self.step = Step::Appending;
    }
}
