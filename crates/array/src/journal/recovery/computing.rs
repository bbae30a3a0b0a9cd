//! Records that were not found: what they held is computed from the rest of their codewords and put onto their rings.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::{BufId, Durability, Place, SectorSet};
use levelhead_units::{DriveIdx, Instant, Lba, Sectors};

use super::decision::Homed;
use super::{At, Marks, Recovery, Space, Step};
use crate::action::{Action, Sums};
use crate::core::Core;
use crate::journal::ring::{Ring, Watermarks};
use crate::journal::transaction::runs_of;
use crate::journal::verdict::{Missing, Source, Verdict};
use crate::log::record::{Kind, Record};
use crate::log::rules::Rule;
use crate::shape::Cell;

/// What was computed.
#[derive(Clone, Debug, Default)]
pub(super) struct Computing {
    /// Records that are not on their rings yet.
    computed: Vec<Computed>,
    /// Those of them whose payload is being held against its checksums.
    checked: BTreeMap<BufId, Missing>,
}

/// A record that was not found and was computed.
#[derive(Clone, Debug)]
struct Computed {
    homed: Homed,
    /// Header and payload.
    buf: BufId,
    place: Lba,
    /// The sectors of its payload.
    cells: Vec<Cell>,
}

impl Computing {
    /// Whether nothing is being held against its checksums.
    pub(super) fn is_quiet(&self) -> bool {
        self.checked.is_empty()
    }

    /// The record in a buffer is held against its checksums.
    pub(super) fn check(&mut self, buf: BufId, missing: Missing) {
        self.checked.insert(buf, missing);
    }

    /// A buffer was examined: which record it has, if that was computed.
    pub(super) fn take_checked(&mut self, buf: BufId) -> Option<Missing> {
        self.checked.remove(&buf)
    }

    /// The step ends.
    pub(super) fn release(&mut self) {
        self.computed.clear();
    }
}

impl Recovery {
    /// Reads what is needed to compute the next transaction's missing parts; marks if there is none.
    pub(super) fn compute_next(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        let Some(id) = self.decision.take_incomplete() else {
            let Verdict { retired, committed, newest, .. } = *self.decision.verdict();
            let says = Watermarks { committed: committed.max(newest), retired };
            self.decision.tell(core);
            if self.rules.keep(Rule::Decide) {
                self.mark(core, now, rings, Marks::of_all(core, says));
            }
            self.placing.plan(core, &self.decision, self.rules);
            self.step = Step::Marking;
            return;
        };
        let mut wanted: BTreeSet<At> = BTreeSet::new();
        let (decision, verdict) = (&self.decision, self.decision.verdict());
        let to_log = decision.to_log(core, id).into_iter();
        let sources = to_log.map(|cell| decision.source_at(cell));
        wanted.extend(sources.filter(|source| source.space == Space::Drive));
        let known = decision.known(core);
        for row in decision.rows_of(core, id) {
            let sources = verdict.sources(row, known);
            let cells = sources.iter().map(|symbol| core.layout().cell(row, symbol));
            let read = cells.filter(|&cell| !verdict.is_zero(cell, known));
            wanted.extend(read.map(|cell| decision.source_at(cell)));
        }
        self.fetch_tagged(core, now, &wanted);
        self.step = Step::Fetching(id);
    }

    /// Computes what is missing of a transaction, and has it held against its checksums.
    pub(super) fn compute(&mut self, core: &mut Core, rings: &[Ring], id: u64) {
        self.leave_out_doubted(core);
        if self.came_short {
            // A sector was not given: everything is decided anew without it.
            self.step = Step::Again;
            return;
        }
        let cells = self.decision.to_log(core, id);
        for own in cells.chunk_by(|left, right| left.drive == right.drive) {
            let missing = Missing { id, drive: own[0].drive };
            let homes: Vec<DriveIdx> = self.decision.homes(missing).collect();
            for ring in homes {
                let buf = self.transfers.acquire(core, Sectors::new(1 + own.len() as u64));
                for (&cell, sector) in own.iter().zip(1..) {
                    self.compute_cell(core, cell, Place { buf, sector });
                }
                self.check(core, &rings[ring.as_usize()], missing, buf, own);
            }
        }
        self.step = Step::Checking;
    }

    fn compute_cell(&self, core: &mut Core, cell: Cell, into: Place) {
        let (decision, verdict) = (&self.decision, self.decision.verdict());
        let had = |cell: Cell| self.transfers.place_of(decision.source_at(cell));
        let had = |cell: Cell| had(cell).expect("it was read");
        if let Source::Ring { .. } = verdict.finals[&cell].source {
            return core.out.combine(into, vec![(1, had(cell))]);
        }
        let (row, symbol) = core.layout().symbol(cell);
        let known = decision.known(core);
        let sources = verdict.sources(row, known);
        let code = core.code().expect("only a redundant array computes");
        let terms = code.compute(&sources, symbol).into_iter();
        let terms =
            terms.map(|(coefficient, source)| (coefficient, core.layout().cell(row, source)));
        let terms = terms.filter(|&(_, cell)| !verdict.is_zero(cell, known));
        let from = terms.map(|(coefficient, cell)| (coefficient, had(cell))).collect();
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
        let place = self.decision.home(homed);
        // All that it changed, so that one such record says what a whole one says.
        let changed = &self.decision.verdict().changed[&id];
        let runs = runs_of(changed.keys().map(|&cell| (cell, cells.contains(&cell))));
        let sums: Vec<u32> = changed.values().copied().collect();
        let participants = changed.keys().map(|cell| cell.drive).collect();
        let Verdict { retired, committed, .. } = *self.decision.verdict();
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
            has_gaps: false,
        };
        core.out.log(Place { buf, sector: 0 }, record, Sums::Known(sums));
        self.computing.computed.push(Computed { homed, buf, place, cells: cells.to_vec() });
        if core.out.carries_content() {
            self.computing.check(buf, missing);
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
        for Computed { homed, buf, place, cells } in std::mem::take(&mut self.computing.computed) {
            let drive = homed.ring;
            for (cell, lba) in cells.iter().zip(1..) {
                self.decision.note_on_ring(*cell, drive, place + Sectors::new(lba));
            }
            let sectors = Sectors::new(1 + cells.len() as u64);
            let at = At { drive, space: Space::Drive, lba: place, sectors };
            self.write_record(core, now, at, buf, durability);
        }
        self.step = Step::Appending;
    }
}
