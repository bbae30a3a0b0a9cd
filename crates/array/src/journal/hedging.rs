//! Records that wait for a drive that has begun to hinder: they go onto other rings as well, so that the write is
//! answered without it (J8).

use levelhead_block::BufId;
use levelhead_units::{DriveIdx, DriveSet, Instant};

use super::Journal;
use super::ring::{Copied, Entry};
use super::transaction::Manner;
use crate::core::Core;

/// A record that is inside a drive and is not waited for, and the memory that it is written from.
#[derive(Debug)]
pub(super) struct LeftBehind {
    id: u64,
    ring: DriveIdx,
    bufs: Vec<BufId>,
}

impl Journal {
    /// Gives other rings what a drive that hinders keeps waiting, if there is room.
    pub(super) fn hedge(&mut self, core: &mut Core, now: Instant) {
        if core.hindering.is_empty() {
            return;
        }
        let waiting: Vec<u64> = self.uncommitted.iter().copied().collect();
        for id in waiting {
            let transaction = &self.open[&id];
            let late = transaction.holders.without(transaction.logged).and(core.hindering);
            if transaction.manner == Manner::Intent || late.is_empty() {
                continue;
            }
            let late: Vec<DriveIdx> = late.iter().collect();
            let hints = self.hints(core, transaction, &late);
            if let Some(entries) = self.room_for_hints(core, id, &hints) {
                self.give_to_others(core, now, id, entries);
            }
        }
    }

    fn room_for_hints(&mut self, core: &Core, id: u64, hints: &[Copied]) -> Option<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        for &Copied { ring, subject } in hints {
            let sectors = self.open[&id].record_sectors(subject);
            let place = self.rings[ring.as_usize()].room(sectors, core.arm(ring))?;
            // Two for one ring might get the same place: the others wait for the next time.
            if entries.iter().any(|entry| entry.ring == ring) {
                break;
            }
            entries.push(Entry { id, ring, subject, place, sectors });
        }
        let is_whole = entries.len() == hints.len();
        (is_whole && !entries.is_empty()).then_some(entries)
    }

    fn give_to_others(&mut self, core: &mut Core, now: Instant, id: u64, entries: Vec<Entry>) {
        for entry in entries {
            let own = &mut self.rings[entry.subject.as_usize()];
            let transaction = self.open.get_mut(&id).expect("it is not committed");
            if transaction.holders.contains(entry.subject) {
                transaction.holders =
                    transaction.holders.without(DriveSet::EMPTY.with(entry.subject));
                if !own.withdraw(id) {
                    let bufs = transaction.bufs();
                    bufs.iter().for_each(|&buf| core.retain(buf));
                    self.left_behind.push(LeftBehind { id, ring: entry.subject, bufs });
                }
            }
            transaction.copies.extend(entry.copied());
            core.counters.journal_hints += 1;
            self.rings[entry.ring.as_usize()].enter(now, entry);
        }
    }

    /// What was inside a drive for this transaction, or for any, is not any more.
    pub(super) fn let_go_behind(&mut self, core: &mut Core, ring: DriveIdx, id: Option<u64>) {
        let is_meant =
            |left: &mut LeftBehind| left.ring == ring && id.is_none_or(|id| id == left.id);
        for left in self.left_behind.extract_if(.., is_meant) {
            left.bufs.into_iter().for_each(|buf| core.release(buf));
        }
    }
}
