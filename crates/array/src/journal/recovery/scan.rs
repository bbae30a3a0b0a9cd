//! What a recovery has read of the rings: their records, and the sectors that drives did not give.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::{BufId, SectorSet};
use levelhead_units::{DriveIdx, DriveSet, Lba};

use super::At;
use super::transfers::{BATCH, Filled};
use crate::action::Action;
use crate::core::Core;
use crate::journal::ring::Ring;
use crate::journal::verdict::{Missing, OnRing};
use crate::log::record::{FoundRecord, Kind};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    /// Pieces of rings that are to be read.
    pieces: VecDeque<At>,
    /// Buffers that are being examined, and the rings that they are of.
    examined: BTreeMap<BufId, DriveIdx>,
    records: Vec<OnRing>,
    /// Sectors of rings that drives did not give, until they are written again.
    torn: BTreeSet<At>,
    /// Sectors of rings that this recovery has written although they were not given before.
    rewritten: BTreeSet<At>,
    /// Those of them that were not given again: nothing is written to them any more (X4).
    worn: BTreeSet<At>,
}

impl Scan {
    /// All rings are read again, side by side.
    pub(super) fn begin(&mut self, mut pieces: Vec<At>) {
        pieces.sort_by_key(|piece| (piece.lba, piece.drive));
        self.pieces = pieces.into();
        self.records.clear();
    }

    /// The pieces that are read next.
    pub(super) fn next_pieces(&mut self) -> Vec<At> {
        let mut sectors = 0;
        let within = self.pieces.iter().take_while(|piece| {
            sectors += piece.sectors.get();
            sectors == piece.sectors.get() || sectors <= BATCH
        });
        let count = within.count();
        self.pieces.drain(..count).collect()
    }

    /// Has what was read of a ring examined.
    pub(super) fn examine(&mut self, core: &mut Core, ring: &Ring, Filled { buf, at }: Filled) {
        let torn = self.torn.iter().filter(|torn| torn.drive == at.drive);
        let torn = torn.filter(|torn| (at.lba..at.end()).contains(&torn.lba));
        let unreadable: SectorSet = torn.map(|torn| (torn.lba - at.lba).get() as u32).collect();
        self.examined.insert(buf, at.drive);
        core.out.push(Action::Examine { buf, first: at.lba, unreadable, ring: ring.name });
    }

    /// What was found in a buffer.
    pub(super) fn handle_examined(&mut self, buf: BufId, found: Vec<FoundRecord>) {
        let ring = self.examined.remove(&buf).expect("X: it was to be examined");
        self.add(ring, found);
    }

    pub(super) fn add(&mut self, ring: DriveIdx, found: Vec<FoundRecord>) {
        self.records.extend(found.into_iter().map(|found| OnRing { ring, found }));
    }

    /// Whether nothing is being examined.
    pub(super) fn is_quiet(&self) -> bool {
        self.examined.is_empty()
    }

    /// A drive did not give a sector of its ring.
    pub(super) fn tear(&mut self, one: At) {
        if self.rewritten.contains(&one) {
            self.worn.insert(one); // X4
        }
        self.torn.insert(one);
    }

    /// Sectors of a ring are written.
    pub(super) fn rewrite(&mut self, at: At) {
        let torn = at.each().filter(|one| self.torn.remove(one));
        self.rewritten.extend(torn);
    }

    pub(super) fn records(&self) -> &[OnRing] {
        &self.records
    }

    /// The records of intents that are not over.
    pub(super) fn intents(&self, retired: u64) -> impl Iterator<Item = &OnRing> {
        let is_live = move |on: &&OnRing| {
            let record = &on.found.record;
            record.kind == Kind::Intent && record.id >= retired
        };
        self.records.iter().filter(is_live)
    }

    /// Sectors of a ring that nothing is written to any more.
    pub(super) fn worn(&self, drive: DriveIdx) -> impl Iterator<Item = Lba> {
        self.worn.iter().filter(move |worn| worn.drive == drive).map(|worn| worn.lba)
    }

    /// Rings that may have held records which are nowhere: sectors of them were not given, to this recovery or to one that was cut
    /// off and has written there since.
    pub(super) fn with_gaps(&self, retired: u64) -> DriveSet {
        let unread = self.torn.iter().chain(&self.rewritten).map(|at| at.drive);
        let marks = self.records.iter().filter(|on| {
            let record = &on.found.record;
            record.has_gaps && record.retired >= retired
        });
        unread.chain(marks.map(|on| on.ring)).collect()
    }

    /// On which rings the record of a participant was found whole.
    pub(super) fn found_on(&self) -> BTreeMap<Missing, DriveSet> {
        let mut found_on: BTreeMap<Missing, DriveSet> = BTreeMap::new();
        for OnRing { ring, found: FoundRecord { record, is_whole, .. } } in &self.records {
            if *is_whole && record.kind == Kind::Payload {
                let missing = Missing { id: record.id, drive: record.drive };
                let on = found_on.entry(missing).or_default();
                *on = on.with(*ring);
            }
        }
        found_on
    }
}
