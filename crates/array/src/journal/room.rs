//! Room for the records of a transaction that is logged: on the ring of every participant, and on more of them where
//! redundancy is not valid yet (J7).

use levelhead_units::{DriveIdx, DriveSet};

use super::placer::BACKLOG_MAX;
use super::ring::{Copied, Entry};
use super::rules::Rule;
use super::transaction::{Manner, Transaction};
use super::{Blocked, Journal};
use crate::core::Core;

/// The most sectors that wait for their places on a drive that hinders, 64 MiB: as much as its ring holds.
const HINDERED_MAX: usize = 1 << 14;

/// For every drive the sectors of transactions that were begun, are not committed, and then wait for their places.
#[derive(Clone, Debug)]
pub(super) struct Begun(Vec<usize>);

impl Begun {
    pub(super) fn new(drives: usize) -> Self {
        Self(vec![0; drives])
    }

    /// A transaction was begun.
    pub(super) fn add(&mut self, transaction: &Transaction) {
        self.each(transaction, |count| count + 1);
    }

    /// It was committed.
    pub(super) fn remove(&mut self, transaction: &Transaction) {
        self.each(transaction, |count| count - 1);
    }

    fn each(&mut self, transaction: &Transaction, change: impl Fn(usize) -> usize) {
        match transaction.manner {
            Manner::Intent => {}
            Manner::Payload => {
                for stored in transaction.changes.cells() {
                    let count = &mut self.0[stored.cell.drive.as_usize()];
                    *count = change(*count);
                }
            }
        }
    }

    fn of(&self, drive: DriveIdx) -> usize {
        self.0[drive.as_usize()]
    }
}

impl Journal {
    /// The space of a transaction's records, if there is room for all of them (J5).
    pub(super) fn room_for_payload(
        &mut self,
        core: &Core,
        transaction: &mut Transaction,
    ) -> Result<Vec<Entry>, Blocked> {
        let own: Vec<DriveIdx> = transaction
            .participants
            .without(core.drives.away())
            .without(transaction.gone)
            .iter()
            .collect();
        for &drive in &own {
            let sectors = transaction.record_sectors(drive).as_usize();
            let backlog = core.log.unplaced.of(drive).len() + self.transactions.begun.of(drive);
            let most = if core.log.hindering.contains(drive) { HINDERED_MAX } else { BACKLOG_MAX };
            if backlog > 0 && backlog + sectors > most {
                return Err(Blocked::Backlog(drive));
            }
        }
        if self.is_apart() {
            let wanted = self.on_all_rings(core, &own);
            return self.room_with(core, transaction, &[], wanted);
        }
        let hints = self.hints(core, transaction, &own);
        match self.room_with(core, transaction, &own, hints) {
            // Rings that are too small for hints as well: the write waits for its drive.
            Err(Blocked::Space(ring)) if self.is_as_free_as_can_be(ring) => {
                self.room_with(core, transaction, &own, Vec::new())
            }
            room => room,
        }
    }

    /// The same with these hints.
    fn room_with(
        &mut self,
        core: &Core,
        transaction: &mut Transaction,
        own: &[DriveIdx],
        hints: Vec<Copied>,
    ) -> Result<Vec<Entry>, Blocked> {
        let id = self.transactions.next;
        let hinted: DriveSet = hints.iter().map(|hint| hint.subject).collect();
        let is_spare =
            |entry: &Entry| entry.ring == entry.subject && hinted.contains(entry.subject);
        let mut wanted: Vec<Copied> =
            own.iter().map(|&drive| Copied { ring: drive, subject: drive }).collect();
        wanted.extend(hints);
        let needed = wanted.len();
        let mut copies = self.copies(core, transaction, own);
        copies.retain(|copied| !wanted.contains(copied)); // J11
        wanted.extend(copies);
        let mut entries: Vec<Entry> = Vec::new();
        let mut full = None;
        for Copied { ring, subject } in wanted {
            let sectors = transaction.record_sectors(subject);
            let Some(place) = self.rings[ring.as_usize()].room(sectors, core.arm(ring)) else {
                full = Some(ring);
                break;
            };
            // Two of them may go to one ring.
            self.rings[ring.as_usize()].reserve(place, sectors, id);
            entries.push(Entry { id, ring, subject, place, sectors });
        }
        self.rings.iter_mut().for_each(|ring| ring.let_go(id));
        match full {
            None => {}
            // A ring too small for all copies at once does without some.
            Some(ring) if !self.is_as_free_as_can_be(ring) || entries.len() < needed => {
                return Err(Blocked::Space(ring));
            }
            Some(_) => {}
        }
        let records = &mut transaction.records;
        records.set_holders(match self.is_apart() {
            true => DriveSet::EMPTY,
            false => transaction.participants.without(hinted),
        });
        records.set_spare(entries.extract_if(.., |entry| is_spare(entry)).collect());
        Ok(entries)
    }

    /// Whether a ring will never have more room.
    fn is_as_free_as_can_be(&self, ring: DriveIdx) -> bool {
        let ring = &self.rings[ring.as_usize()];
        self.transactions.open.is_empty() && ring.is_idle() && ring.is_spent(self.transactions.next)
    }

    /// Which rings get the records of drives that hinder: enough of those that do not (J8).
    pub(super) fn hints(
        &self,
        core: &Core,
        transaction: &Transaction,
        own: &[DriveIdx],
    ) -> Vec<Copied> {
        let own = own.iter().copied().filter(|&subject| core.log.hindering.contains(subject));
        self.on_others(core, transaction, own)
    }

    /// Enough of the rings of drives that do not hinder for each of these drives' records; none where that cannot be.
    pub(super) fn on_others(
        &self,
        core: &Core,
        transaction: &Transaction,
        subjects: impl Iterator<Item = DriveIdx>,
    ) -> Vec<Copied> {
        if core.log.hindering.is_empty() || !core.is_redundant(transaction.changes.end()) {
            return Vec::new();
        }
        let mut others: Vec<DriveIdx> = core.counted().without(core.log.hindering).iter().collect();
        let turn = self.transactions.next as usize % others.len().max(1);
        others.rotate_left(turn);
        // One command with what goes there anyway costs next to nothing; else the drive with least to do.
        let coming = transaction.participants.without(transaction.records.logged());
        others.sort_by_key(|&drive| {
            let is_empty = self.rings[drive.as_usize()].waiting.is_empty();
            (is_empty && !coming.contains(drive), core.drives.queue_len(drive))
        });
        let mut hints = Vec::new();
        for subject in subjects {
            let mut on = self.transactions.settled.or(core.uncounted());
            let mut rings = Vec::new();
            // Its own ring is none of the others, also when it hinders no more.
            for &ring in others.iter().filter(|&&ring| ring != subject) {
                if self.form.spec.is_enough(on) {
                    break;
                }
                rings.push(Copied { ring, subject });
                on = on.with(ring);
            }
            if self.form.spec.is_enough(on) {
                if !self.form.rules.keep(Rule::Hints) && rings.len() > 1 {
                    rings.pop();
                }
                hints.extend(rings);
            }
        }
        hints
    }

    /// Which rings get a copy of which drive's record: where redundancy is not valid yet, as many as make it enough,
    /// in turns.
    fn copies(&self, core: &Core, transaction: &Transaction, own: &[DriveIdx]) -> Vec<Copied> {
        let end = transaction.changes.end();
        if end <= core.holdings.synced_for_good() || self.form.spec.is_mirror() || self.is_apart() {
            return Vec::new();
        }
        let present: Vec<DriveIdx> = core.counted().iter().collect();
        let mut copies = Vec::new();
        for &subject in own {
            let mut on: DriveSet = self.transactions.settled.or(core.uncounted()).with(subject);
            let at = present.iter().position(|&drive| drive == subject).unwrap_or(0);
            for turn in 1..present.len() {
                if self.form.spec.is_enough(on) {
                    break;
                }
                let ring = present[(at + turn) % present.len()];
                copies.push(Copied { ring, subject });
                on = on.with(ring);
            }
        }
        copies
    }
}
