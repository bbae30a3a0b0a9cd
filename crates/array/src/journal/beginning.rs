//! How a transaction that waits begins: it gets its name, and room for its records.

use levelhead_units::Instant;

use super::record::Record;
use super::ring::Entry;
use super::rules::Rule;
use super::transaction::{Manner, Transaction};
use super::{Blocked, Journal};
use crate::core::Core;

/// Of the first 64 transactions that wait one may begin before others that wait for an intent.
const LOOK_AHEAD: usize = 64;

impl Journal {
    /// Gives the first transaction that waits its name and its space, if there is room for it (J5).
    pub(super) fn begin_waiting(&mut self, core: &mut Core, now: Instant) -> bool {
        self.requests.blocked = None;
        let retired = self.watermarks().retired;
        self.intents.forget_below(retired);
        self.rings.iter_mut().for_each(|ring| ring.reclaim_below(retired));
        if self.transactions.uncommitted.len() >= Record::DROPPED_MAX {
            return false; // After a crash a mark may have to name all of them.
        }
        if !core.gate.unrecorded().is_empty() {
            return false; // It may do without a drive that is still a member after a crash (J1).
        }
        let Some(at) = self.first_to_begin(core) else {
            self.requests.blocked = (!self.requests.waiting.is_empty()).then_some(Blocked::Intent);
            return false;
        };
        let mut transaction = self.requests.waiting.remove(at).expect("it was looked at above");
        let manner = self.intents.manner_of(core, &transaction).expect("it meets no intent");
        let room = match manner {
            Manner::Payload => self.room_for_payload(core, &mut transaction),
            Manner::Intent => self.room_for_intent(core),
        };
        let entries = match room {
            Ok(entries) => entries,
            Err(blocked) => {
                let op = transaction.op;
                self.requests.waiting.insert(at, transaction);
                self.requests.blocked = Some(blocked);
                let Blocked::Space(ring) = blocked else { return false };
                let in_the_way = self.in_own_way(op, ring);
                self.take_back(core, now, op, &in_the_way);
                return !in_the_way.is_empty();
            }
        };
        transaction.manner = manner;
        self.begin_with(core, now, transaction, entries);
        true
    }

    /// The first transaction that waits and need not wait for an intent. What does keeps nothing else waiting, because two that
    /// wait never share a codeword, but for others of an operation that would announce something: N4.
    pub(super) fn first_to_begin(&self, core: &Core) -> Option<usize> {
        for at in 0..self.requests.waiting.len().min(LOOK_AHEAD) {
            let op = self.requests.waiting[at].op;
            let has_intent = !self.requests.pending[&op].intents.is_empty();
            match self.intents.manner_of(core, &self.requests.waiting[at]) {
                Some(Manner::Payload) => return Some(at),
                Some(Manner::Intent) if has_intent || self.may_all_begin(core, at) => {
                    return Some(at);
                }
                Some(Manner::Intent) => {}
                None if has_intent => return None,
                None => {}
            }
        }
        None
    }

    /// Whether no transaction of the operation of this one must wait for an intent. They stand side by side.
    fn may_all_begin(&self, core: &Core, at: usize) -> bool {
        let op = self.requests.waiting[at].op;
        let before = self.requests.waiting.range(..at).rev().take_while(|other| other.op == op);
        let after = self.requests.waiting.range(at..).take_while(|other| other.op == op);
        before.chain(after).all(|other| self.intents.manner_of(core, other).is_some())
    }

    /// Gives a transaction its name, and its records the places that were found for them.
    pub(super) fn begin_with(
        &mut self,
        core: &mut Core,
        now: Instant,
        mut transaction: Transaction,
        entries: Vec<Entry>,
    ) {
        let manner = transaction.manner;
        transaction.changes.bufs().into_iter().for_each(|buf| core.out.retain(buf));
        self.intents.note_begun(self.transactions.next, &transaction);
        if manner == Manner::Intent {
            transaction.announce_on(entries.iter().map(|entry| entry.ring).collect());
            let pending =
                self.requests.pending.get_mut(&transaction.op).expect("its operation waits");
            pending.intents.push(self.transactions.next);
            pending.to_place.extend(transaction.changes.cells());
            core.counters.journal_intents += 1;
        }
        for Entry { ring, place, sectors, id, .. } in transaction.records.take_spare() {
            self.rings[ring.as_usize()].reserve(place, sectors, id);
        }
        self.transactions.begun.add(&transaction);
        for entry in entries {
            if let (Manner::Payload, Some(copied)) = (manner, entry.copied()) {
                transaction.records.add_copy(Some(copied));
                core.counters.journal_hints += u64::from(!self.is_apart());
            }
            self.rings[entry.ring.as_usize()].enter(now, entry);
        }
        self.transactions.uncommitted.insert(self.transactions.next);
        self.transactions.open.insert(self.transactions.next, transaction);
        if !self.form.rules.keep(Rule::Records) {
            self.look_at(core, Instant::ZERO, self.transactions.next);
        }
        self.transactions.next += 1;
        core.log.live.note_next(self.transactions.next);
    }
}
