//! What a recovery writes in place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::BufId;
use levelhead_units::Instant;

use super::decision::Decision;
use super::transfers::{BATCH, Filled};
use super::{At, Recovery, Space, Step};
use crate::action::Action;
use crate::core::Core;
use crate::journal::verdict::{Final, Source};
use crate::log::contents::Stored;
use crate::log::rules::{Rule, Rules};
use crate::shape::Cell;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Placing {
    /// Sectors that are to be written in place, and where their contents are.
    to_place: VecDeque<Move>,
    moving: Vec<Move>,
    /// Buffers of which checksums are being computed, and where they were read; which checksums they should have.
    summed: BTreeMap<BufId, At>,
    sums: BTreeMap<At, u32>,
    /// Sectors in place that have other ones.
    doubted: Vec<Cell>,
    /// Sectors on the list of damaged sectors that are to be taken off it.
    made_right: Vec<Cell>,
}

/// A sector that goes to its place.
#[derive(Clone, Copy, Debug)]
struct Move {
    to: Cell,
    from: At,
}

impl Placing {
    /// What is to be written in place.
    pub(super) fn plan(&mut self, core: &Core, decision: &Decision, rules: Rules) {
        let (verdict, known) = (decision.verdict(), decision.known(core));
        let of = |(&to, last): (&Cell, &Final)| match last.source {
            // A copy of it may be there although its drive is not, or is being filled and gets it later.
            Source::Ring { .. } if !known.holds(to) => None,
            Source::Ring { drive, lba } => {
                Some(Move { to, from: At::one(drive, Space::Drive, lba) })
            }
            Source::Codeword | Source::Absent | Source::Lost => None,
        };
        self.to_place = verdict.finals.iter().filter_map(of).collect();
        if rules.keep(Rule::UnlistedAgain) {
            self.add_right(verdict.made_right(known)); // X7
        }
        // All drives side by side.
        self.to_place.make_contiguous().sort_by_key(|moved| (moved.to.lba, moved.to.drive));
    }

    /// Whether no checksums are being computed.
    pub(super) fn is_quiet(&self) -> bool {
        self.summed.is_empty()
    }

    /// Where a buffer was read of which the checksums were being computed.
    pub(super) fn take_summed(&mut self, buf: BufId) -> Option<At> {
        self.summed.remove(&buf)
    }

    /// These sectors leave the list of damaged ones when they are in place.
    pub(super) fn add_right(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.made_right.extend(cells);
    }

    /// What leaves the list of damaged sectors.
    pub(super) fn take_right(&mut self) -> Vec<Cell> {
        std::mem::take(&mut self.made_right)
    }
}

impl Recovery {
    /// Reads the next part of what is to be written in place; flushes if there is none.
    pub(super) fn load(&mut self, core: &mut Core, now: Instant) {
        let Placing { to_place, moving, .. } = &mut self.placing;
        *moving = to_place.drain(..to_place.len().min(BATCH as usize)).collect();
        if moving.is_empty() {
            self.transfers.flush(core, now);
            self.step = Step::Flushing;
            return;
        }
        let wanted: BTreeSet<At> = moving.iter().map(|moved| moved.from).collect();
        self.transfers.fetch(core, now, &wanted);
    }

    /// Has what was read held against the checksums of its records: a ring may have lost what was put onto it since (X8).
    pub(super) fn prove(&mut self, core: &mut Core) {
        self.step = Step::Proving;
        if !core.out.carries_content() {
            return;
        }
        let verdict = self.decision.verdict();
        let sum = |moved: &Move| {
            let sums = &verdict.changed[&verdict.finals[&moved.to].id];
            (moved.from, sums[&moved.to])
        };
        self.placing.sums = self.placing.moving.iter().map(sum).collect();
        self.sum_filled(core);
    }

    /// Has what was read to compute from held against the checksums of what is at rest.
    pub(super) fn weigh(&mut self, core: &mut Core, id: u64) {
        self.step = Step::Weighing(id);
        self.placing.doubted.clear();
        let Some(tags) = core.tags.as_ref().filter(|_| core.out.carries_content()) else { return };
        let layout = core.layout();
        let at_rest = |one: &At| {
            let cell = Cell { drive: one.drive, lba: one.lba };
            let row = layout.symbol(cell).0;
            let is_written = row.stripe < core.holdings.synced() && !self.announced.has(row);
            (one.space == Space::Layout && is_written).then(|| tags.get(one.drive, one.lba))?
        };
        let known = self.transfers.had().filter_map(|one| Some((one, at_rest(&one)?)));
        self.placing.sums = known.collect();
        self.sum_filled(core);
    }

    fn sum_filled(&mut self, core: &mut Core) {
        for Filled { buf, at } in self.transfers.take_filled() {
            self.placing.summed.insert(buf, at);
            core.out.push(Action::Sum { buf });
        }
    }

    /// The checksums of what was read there: a sector of a ring with another one than its transaction gave it counts as not given.
    pub(super) fn hold_against(&mut self, buf: BufId, at: At, sums: &[u32]) {
        for one in at.each() {
            let there = self.transfers.place_of(one).filter(|place| place.buf == buf);
            let sum = there.map(|place| sums[place.sector as usize]);
            let given = self.placing.sums.get(&one).copied();
            if sum.is_none() || given.is_none() || sum == given {
                continue;
            }
            match one.space {
                Space::Drive => {
                    self.came_short = true;
                    self.scan.tear(one);
                }
                Space::Layout => {
                    self.placing.doubted.push(Cell { drive: one.drive, lba: one.lba });
                }
            }
        }
    }

    /// What has another checksum than its tag sector says counts as not given, as long as enough is left of its codeword: the tag sector
    /// may be what is wrong, and what is computed is held against its record (X5).
    pub(super) fn leave_out_doubted(&mut self, core: &Core) {
        for cell in std::mem::take(&mut self.placing.doubted) {
            let row = core.layout().symbol(cell).0;
            let left = self.decision.verdict().sources(row, self.decision.known(core));
            if left.contains(core.layout().symbol(cell).1)
                && left.len() > core.layout().data_symbols()
            {
                self.decision.note_unreadable(cell);
                self.came_short = true;
            }
        }
    }

    /// Writes in place what was read.
    pub(super) fn place(&mut self, core: &mut Core, now: Instant) {
        if self.came_short {
            self.step = Step::Again;
            return;
        }
        let placed = std::mem::take(&mut self.placing.moving).into_iter().map(|moved| {
            let place = self.transfers.place_of(moved.from).expect("it was read");
            Stored { cell: moved.to, place }
        });
        let placed = placed.collect();
        self.write_in_place(core, now, placed);
        self.step = Step::Placing;
    }

    pub(super) fn write_in_place(&mut self, core: &mut Core, now: Instant, placed: Vec<Stored>) {
        placed.iter().for_each(|stored| self.decision.note_written(stored.cell));
        self.transfers.write_in_place(core, now, placed);
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::Place;
    use levelhead_stats::Streams;
    use levelhead_units::{DriveIdx, Lba, Sectors};

    use super::*;
    use crate::settings::Settings;
    use crate::shape::Row;

    /// X8. What a ring gives in the place of what was put there is not written in place, and is not read there again.
    #[test]
    fn sector_of_a_ring_with_another_checksum_counts_as_unreadable() {
        let drive = DriveIdx::new(1);
        let at = At { drive, space: Space::Drive, lba: Lba::new(7), sectors: Sectors::new(3) };
        for (sums, torn) in [([4, 5, 6], None), ([4, 9, 6], Some(1)), ([4, 5, 9], None)] {
            let mut recovery = Recovery::new(1, Rules::ALL);
            let given = at.each().take(2).zip([4, 5]);
            recovery.placing.sums = given.collect();
            let buf = BufId::Own(1);
            let places = at.each().zip(0..).map(|(one, sector)| (one, Place { buf, sector }));
            places.for_each(|(one, place)| recovery.transfers.keep(one, place));
            recovery.hold_against(buf, at, &sums);
            assert_eq!(recovery.came_short, torn.is_some(), "{sums:?}");
            let gaps = recovery.scan.with_gaps(0);
            assert_eq!(gaps.contains(drive), torn.is_some(), "{sums:?}");
        }
    }

    /// A sector that its tag sector contradicts is left out where others do, and used where none do.
    #[test]
    fn sector_that_its_tag_sector_contradicts_is_left_out_while_enough_are_left() {
        for (spec, left_out) in [("raid6:3+2,chunk=4KiB", 2), ("raid0:5,chunk=4KiB", 0)] {
            let core = Core::new(&Settings::of_test(spec.parse().unwrap()), Streams::new(1));
            let mut recovery = Recovery::new(1, Rules::ALL);
            let row = Row { stripe: 0, row: 0 };
            let cells = (0..3).map(|symbol| core.layout().cell(row, symbol));
            recovery.placing.doubted = cells.clone().collect();
            recovery.leave_out_doubted(&core);
            let unreadable = cells.filter(|&cell| recovery.decision.is_unreadable(cell)).count();
            assert_eq!((unreadable, recovery.came_short), (left_out, left_out > 0), "{spec}");
        }
    }
}
