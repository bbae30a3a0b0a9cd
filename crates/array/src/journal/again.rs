//! What was announced and waits for a drive that hinders is logged after all, so that the write is answered without that
//! drive.
//!
//! ```text
//!   announced --> its record, or a write in place, waits for a drive that hinders --> all of it is logged (J8) --> answered
//!                                                                                            |
//!                                                  the journal puts it in place (J6) <-------+
//! ```
//!
//! What is logged replaces the same codewords as a whole. So it needs nothing of what is in place by then, old, new or some
//! of each, and a recovery that finds it asks no more what became of the announcement (N1). What the operation has
//! given to drives by then stays there; until a drive ends that, nothing else is written to the same place (J3).
//!
//! Where rings are short, part of a write may have been announced when its rest is to be logged, and keep it from ever having room:
//! then the announcement is taken back, and all of the write is logged in its turn.
//!
//! It begins at once or not at all: as long as an intent is not over, no ring frees what is later, so that nothing that waits for
//! room may keep one from ending.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_units::{DriveIdx, Extent, Instant, Nanos};

use super::intents::Placing;
use super::record::Record;
use super::ring::Entry;
use super::transaction::{Manner, RecordRoom, Transaction, split};
use super::{Journal, Pending};
use crate::core::Core;
use crate::log::contents::{Changed, Coverage, Stored};
use crate::names::{OpId, SubId};
use crate::shape::Row;

/// An announced write waits for this long for a drive that hinders: writing it once more costs as much.
const LOG_AFTER: Nanos = Nanos::from_millis(500);

impl Journal {
    /// Operations that leave their writes in place to the journal from now on.
    pub(crate) fn take_taken_over(&mut self) -> Vec<OpId> {
        std::mem::take(&mut self.requests.taken_over)
    }

    /// A write in place that an operation gave to a drive is the journal's from now on.
    pub(crate) fn adopt(&mut self, sub: SubId, drive: DriveIdx, extent: Extent) {
        self.placing.placers[drive.as_usize()].adopt(sub, extent);
    }

    /// Whether other rings are enough for what drives that hinder are to get.
    fn can_do_without(&self, core: &Core) -> bool {
        if self.is_apart() {
            // Every ring gets all.
            return !core.log.hindering.is_empty()
                && core.log.hindering.and(core.counted()).is_empty();
        }
        let on = self
            .transactions
            .settled
            .or(core.uncounted())
            .or(core.counted().without(core.log.hindering));
        !core.log.hindering.is_empty() && self.form.spec.is_enough(on)
    }

    /// Intents that are not committed because the ring of a drive that hinders lacks them.
    fn held_up(&self, core: &Core) -> impl Iterator<Item = (u64, &Transaction)> {
        let hindering = core.log.hindering;
        let is_held_up = move |transaction: &Transaction| {
            let missing = transaction.records.missing();
            let is_waiting = transaction.logged_by == 0 && !missing.and(hindering).is_empty();
            transaction.manner == Manner::Intent && is_waiting
        };
        let open =
            self.transactions.uncommitted.iter().map(|&id| (id, &self.transactions.open[&id]));
        open.filter(move |(_, transaction)| is_held_up(transaction))
    }

    /// When something that was announced is to be logged, if its drive hinders until then.
    pub(super) fn log_announced_at(&self, core: &Core) -> Option<Instant> {
        // No transaction begins before the losses are recorded that it does without (J1).
        if !self.can_do_without(core) || !core.gate.unrecorded().is_empty() {
            return None;
        }
        let records = self.held_up(core).map(|(_, transaction)| transaction.since).min();
        let places = match self.intents.are_placing() {
            true => core.writing_since(core.log.hindering, |op| self.intents.is_placing(op)),
            false => None,
        };
        let since = records.into_iter().chain(places).min()?;
        Some((since + LOG_AFTER).max(self.requests.log_again_at))
    }

    /// Logs what was announced and has waited for a drive that hinders, where there is room for all of it. Where there is none, the
    /// write waits for its drive, and this is tried again after some time.
    pub(super) fn log_announced(&mut self, core: &mut Core, now: Instant) {
        if self.log_announced_at(core).is_none_or(|at| at > now) {
            return;
        }
        self.requests.log_again_at = now + LOG_AFTER;
        let is_old = |since: Instant| since + LOG_AFTER <= now;
        let held_up = self.held_up(core).filter(|(_, transaction)| is_old(transaction.since));
        let held_up: Vec<u64> = held_up.map(|(id, _)| id).collect();
        for id in held_up {
            let op = self.transactions.open[&id].op;
            let Some(rows) = self.log_instead(core, now, &[id]) else { continue };
            let pending = self.requests.pending.get_mut(&op).expect("its operation waits");
            pending.left -= 1;
            pending.intents.retain(|&other| other != id);
            let is_other = |stored: &Stored| !rows.contains(&core.layout().symbol(stored.cell).0);
            pending.to_place.retain(is_other);
        }
        let ops = core.writing_to(core.log.hindering, now, LOG_AFTER);
        for op in ops.into_iter().filter(|&op| self.intents.is_placing(op)).collect::<Vec<_>>() {
            let Placing { ids, whole } = self.intents.take_placing(op);
            self.requests.pending.insert(op, Pending { whole, ..Pending::default() });
            if self.log_instead(core, now, &ids).is_some() {
                self.requests.taken_over.push(op);
            } else {
                self.requests.pending.remove(&op);
                self.intents.note_placing(op, ids, whole);
            }
        }
    }

    /// Logs all of these intents of one operation before anything else that waits, if there is room for all of it at once: an
    /// intent that waited for room would keep every ring from being freed meanwhile. Returns the codewords of them.
    fn log_instead(&mut self, core: &mut Core, now: Instant, ids: &[u64]) -> Option<BTreeSet<Row>> {
        let parts: Vec<Transaction> = ids.iter().flat_map(|&id| self.parts(core, id)).collect();
        if self.transactions.uncommitted.len() + parts.len() > Record::DROPPED_MAX {
            return None;
        }
        let (first, count) = (self.transactions.next, parts.len() as u64);
        let mut begun: Vec<(Transaction, Vec<Entry>)> = Vec::new();
        for mut part in parts {
            let Ok(entries) = self.room_for_payload(core, &mut part) else { break };
            for entry in entries.iter().chain(part.records.spare()) {
                self.rings[entry.ring.as_usize()].reserve(entry.place, entry.sectors, entry.id);
            }
            self.transactions.begun.add(&part);
            self.transactions.next += 1;
            begun.push((part, entries));
        }
        (first..self.transactions.next)
            .for_each(|id| self.rings.iter_mut().for_each(|ring| ring.let_go(id)));
        begun.iter().for_each(|(part, _)| self.transactions.begun.remove(part));
        self.transactions.next = first;
        if begun.len() as u64 != count {
            return None;
        }
        let mut rows = BTreeSet::new();
        for &id in ids {
            self.intents.forget_rows(id, self.transactions.open[&id].changes.rows());
            rows.extend(self.transactions.open[&id].changes.rows());
            core.counters.journal_logged_again += 1;
        }
        for (part, entries) in begun {
            let intent = part.instead_of.expect("it stands for one");
            self.transactions.open.get_mut(&intent).expect("it is not over").logged_by += 1;
            self.requests.pending.get_mut(&part.op).expect("its operation waits").left += 1;
            self.begin_with(core, now, part, entries);
        }
        Some(rows)
    }

    /// What stands for an intent: all of its codewords, logged.
    fn parts(&self, core: &Core, id: u64) -> Vec<Transaction> {
        let intent = &self.transactions.open[&id];
        let mut words: BTreeMap<Row, Vec<Stored>> = BTreeMap::new();
        for stored in intent.changes.cells() {
            words.entry(core.layout().symbol(stored.cell).0).or_default().push(*stored);
        }
        let whole = |(row, cells)| {
            let (coverage, absent) = (Coverage::All, Vec::new());
            Changed { row, coverage, cells, absent }
        };
        let room = RecordRoom { sectors: self.form.record_max, is_shared: self.is_apart() };
        let parts = split(words.into_iter().map(whole).collect(), room);
        let (op, since, recorded, gone) = (intent.op, intent.since, intent.recorded, intent.gone);
        let part = |part| Transaction {
            recorded,
            gone,
            instead_of: Some(id),
            ..Transaction::new(op, since, Manner::Payload, part)
        };
        parts.into_iter().map(part).collect()
    }

    /// The intents of an operation that keep what is left of it from ever having room on a ring: all else is over, and nothing
    /// that the ring still has to do frees any of it. They are not written in place before all of the operation is committed.
    pub(super) fn in_own_way(&self, op: OpId, ring: DriveIdx) -> Vec<u64> {
        let (first, ring) = (self.watermarks().retired, &self.rings[ring.as_usize()]);
        let intents = &self.requests.pending[&op].intents;
        if intents.first() != Some(&first) || !ring.is_idle() || !ring.is_spent(first) {
            return Vec::new();
        }
        let is_left = |id: &u64| self.transactions.open.get(id).is_some_and(|it| it.logged_by == 0);
        intents.iter().copied().filter(is_left).collect()
    }

    /// Takes these intents of one operation back, whose codewords are logged in their turn. None of them is in place, and
    /// what is found of them after a crash changes nothing.
    pub(super) fn take_back(&mut self, core: &mut Core, now: Instant, op: OpId, ids: &[u64]) {
        for &id in ids {
            let parts = self.parts(core, id);
            let was_committed = !self.transactions.uncommitted.contains(&id);
            let rows = self.transactions.open[&id].changes.rows().to_vec();
            self.intents.forget_rows(id, &rows);
            self.end_intent(core, id);
            let pending = self.requests.pending.get_mut(&op).expect("its operation waits");
            pending.left = pending.left + parts.len() - usize::from(!was_committed);
            pending.intents.retain(|&other| other != id);
            let is_other = |stored: &Stored| !rows.contains(&core.layout().symbol(stored.cell).0);
            pending.to_place.retain(is_other);
            for part in parts.into_iter().rev() {
                self.requests.waiting.push_front(Transaction { instead_of: None, ..part });
            }
            core.counters.journal_logged_again += 1;
            // What was committed after it may be marked now.
            self.placing.unmarked_since = self.placing.unmarked_since.or(Some(now));
        }
    }

    /// One of those that stand for an intent is committed: with the last of them the intent is over.
    pub(super) fn note_instead(&mut self, core: &mut Core, id: u64) {
        let intent =
            self.transactions.open.get_mut(&id).expect("it is over with the last of these");
        intent.logged_by -= 1;
        if intent.logged_by == 0 {
            self.end_intent(core, id);
        }
    }

    /// An intent is over without having been written in place.
    fn end_intent(&mut self, core: &mut Core, id: u64) {
        let mut intent = self.transactions.open.remove(&id).expect("it is not over");
        self.intents.note_instead(&mut intent);
        self.rings.iter_mut().for_each(|ring| {
            ring.withdraw(id, ring.drive);
        });
        if self.transactions.uncommitted.remove(&id) {
            intent.changes.bufs().into_iter().for_each(|buf| core.out.release(buf));
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;
    use levelhead_units::DriveSet;

    use super::*;
    use crate::journal::transaction::tests::{cell, payload};
    use crate::meta::membership::Generation;
    use crate::settings::Settings;

    /// J9: what drives miss of the intent they miss of these.
    #[test]
    fn what_stands_for_an_intent_waits_for_the_same_generation_and_does_without_the_same_drives() {
        let settings = Settings::of_test("raid5:3+1,chunk=4KiB".parse().unwrap());
        let core = Core::new(&settings, Streams::new(1));
        let mut journal = Journal::new(&settings).unwrap();
        let gone = DriveSet::EMPTY.with(DriveIdx::new(3));
        let plain = payload(&[cell(0, 0), cell(1, 0), cell(2, 0), cell(0, 1)], &[]);
        let recorded = Generation(9);
        let intent = Transaction { recorded, gone, manner: Manner::Intent, ..plain };
        journal.transactions.open.insert(4, intent);
        let parts = journal.parts(&core, 4);
        let cells: Vec<usize> = parts.iter().map(|part| part.changes.cells().len()).collect();
        assert_eq!(cells, [4]);
        let Transaction { recorded, gone: without, instead_of, manner, .. } = parts[0];
        assert_eq!((recorded, without, instead_of), (Generation(9), gone, Some(4)));
        assert_eq!(manner, Manner::Payload);
    }
}
