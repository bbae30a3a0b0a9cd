//! Records that wait for a drive that has begun to hinder: they go onto other rings as well, so that the write is
//! answered without it (J8).

use levelhead_block::BufId;
use levelhead_units::{DriveIdx, Instant};

use super::Journal;
use super::ring::{Copied, Entry};
use super::transaction::Manner;
use crate::core::Core;

/// A record that is inside a drive and is not waited for, and the memory that it is written from.
#[derive(Clone, Debug)]
pub(super) struct LeftBehind {
    id: u64,
    ring: DriveIdx,
    bufs: Vec<BufId>,
}

impl Journal {
    /// Gives other rings what a drive that hinders keeps waiting, if there is room.
    pub(super) fn hedge(&mut self, core: &mut Core, now: Instant) {
        if core.log.hindering.is_empty() || self.is_apart() {
            return;
        }
        let waiting: Vec<u64> = self.transactions.uncommitted.iter().copied().collect();
        for id in waiting {
            let transaction = &self.transactions.open[&id];
            let late = transaction.records.late(core.log.hindering);
            if transaction.manner == Manner::Intent || late.is_empty() {
                continue;
            }
            // One after the other: two may need the same rings.
            for drive in late.iter() {
                let hints =
                    self.on_others(core, &self.transactions.open[&id], std::iter::once(drive));
                if let Some(entries) = self.room_for_hints(core, id, &hints) {
                    self.leave_behind(core, id, drive);
                    self.give_to_others(core, now, id, entries);
                }
            }
        }
    }

    /// Places for those of these copies that are not on their way already; nothing if there are too few.
    fn room_for_hints(&mut self, core: &Core, id: u64, hints: &[Copied]) -> Option<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        let records = &self.transactions.open[&id].records;
        for &Copied { ring, subject } in hints.iter().filter(|hint| !records.awaits(hint)) {
            let sectors = self.transactions.open[&id].record_sectors(subject);
            let place = self.rings[ring.as_usize()].room(sectors, core.arm(ring))?;
            let is_taken = entries.iter().any(|entry| entry.ring == ring);
            assert!(!is_taken, "J8: {subject:?} is given to {ring:?} twice");
            entries.push(Entry { id, ring, subject, place, sectors });
        }
        (!hints.is_empty()).then_some(entries)
    }

    fn give_to_others(&mut self, core: &mut Core, now: Instant, id: u64, entries: Vec<Entry>) {
        for entry in entries {
            let transaction = self.transactions.open.get_mut(&id).expect("it is not committed");
            transaction.records.add_copy(entry.copied());
            core.counters.journal_hints += 1;
            self.rings[entry.ring.as_usize()].enter(now, entry);
        }
    }

    /// The record of a drive is not waited for any more where the ring's drive hinders: neither on its own ring nor,
    /// if another one began to hinder meanwhile, on that.
    fn leave_behind(&mut self, core: &mut Core, id: u64, subject: DriveIdx) {
        let transaction = self.transactions.open.get_mut(&id).expect("it is not committed");
        for ring in transaction.records.give_up(subject, core.log.hindering).iter() {
            if !self.rings[ring.as_usize()].withdraw(id, subject) {
                let bufs = transaction.changes.bufs();
                bufs.iter().for_each(|&buf| core.out.retain(buf));
                self.transactions.left_behind.push(LeftBehind { id, ring, bufs });
            }
        }
    }

    /// What was inside a drive for this transaction, or for any, is not any more.
    pub(super) fn let_go_behind(&mut self, core: &mut Core, ring: DriveIdx, id: Option<u64>) {
        let is_meant =
            |left: &mut LeftBehind| left.ring == ring && id.is_none_or(|id| id == left.id);
        for left in self.transactions.left_behind.extract_if(.., is_meant) {
            left.bufs.into_iter().for_each(|buf| core.out.release(buf));
        }
    }
}
