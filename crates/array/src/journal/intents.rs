//! Intents: writes that replace whole codewords are announced on the rings and not logged, so that a stream is not
//! written twice.
//!
//! ```text
//!   the record without contents --> on enough rings for good --> the operation writes in place --> answered
//!                                                                                                     |
//!                                    over <-- flushed, because a client asks or with time <-----------+
//! ```
//!
//! A whole codeword needs nothing of what was there before: after a crash its redundancy is computed from its data,
//! old and new. Only what was on a drive that is lost as well may then be nowhere.
//!
//! # Invariants
//!
//! - N1. A codeword is never in an intent that may be found after a crash and in such a payload, unless the payload is the
//!   later one and has all of the codeword, or one like that lies between them. Intents may follow intents.
//! - N2. An intent is written in place when it is on enough rings for good, and not before.
//! - N4. From the first intent of an operation on nothing else gets a name before all transactions of the operation have one.
//!   The intent is over only after all of them are committed, and until then no ring is freed of what came after it: if that
//!   filled the rings, there would never be room for what is left of the operation.
//! - N3. What an intent gave a drive is safe after a flush of it that began after the write in place; a flush that a
//!   client asks for waits for that.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use levelhead_block::Durability;
use levelhead_units::{DriveIdx, Instant, Sectors};

use super::ring::Entry;
use super::rules::{Rule, Rules};
use super::transaction::{Manner, Transaction};
use super::{Blocked, Journal, take_off_list};
use crate::core::Core;
use crate::log::contents::InPlace;
use crate::names::OpId;
use crate::shape::Row;

/// Where this many times as much is under way as a single operation is announced for, all are.
const STREAM: usize = 12;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Intents {
    from: Option<NonZeroU32>,
    /// The last transaction of each manner that may be found after a crash, of every codeword that has one.
    payloads: BTreeMap<Row, u64>,
    intents: BTreeMap<Row, u64>,
    /// The codewords of each, in the order of the transactions.
    known: VecDeque<Known>,
    /// Operations that write in place.
    placing: BTreeMap<OpId, Placing>,
    /// Whole codewords of operations that are not over.
    under_way: usize,
    /// Sectors of intents that are not in place,
    not_in_place: usize,
    /// and those of them whose records have not gone to a drive.
    gathered: usize,
    /// On which ring the next intent begins to look for room.
    turn: usize,
    rules: Rules,
}

/// What an operation writes in place.
#[derive(Clone, Debug)]
pub(super) struct Placing {
    pub(super) ids: Vec<u64>,
    pub(super) whole: usize,
}

#[derive(Clone, Debug)]
struct Known {
    id: u64,
    manner: Manner,
    rows: Vec<Row>,
}

impl Intents {
    pub(super) fn new(from: Option<NonZeroU32>, rules: Rules) -> Self {
        Self {
            from,
            payloads: BTreeMap::new(),
            intents: BTreeMap::new(),
            known: VecDeque::new(),
            placing: BTreeMap::new(),
            under_way: 0,
            not_in_place: 0,
            gathered: 0,
            turn: 0,
            rules,
        }
    }

    /// An operation with this number of whole codewords begins: whether it is announced. Where little is written,
    /// logging it is faster, because it need not be in place before the answer.
    pub(super) fn begin(&mut self, whole: usize) -> bool {
        let Some(from) = self.from else { return false };
        self.under_way += whole;
        let from = from.get() as usize;
        whole > 0 && (whole >= from || self.under_way >= STREAM * from)
    }

    /// An operation that was logged, not announced, is over.
    pub(super) fn end(&mut self, whole: usize) {
        self.under_way = self.under_way.saturating_sub(whole);
    }

    /// How a transaction that waits is to be kept now; nothing if it must wait for an intent (N1).
    pub(super) fn manner_of(&self, core: &Core, transaction: &Transaction) -> Option<Manner> {
        if self.from.is_none() {
            return Some(Manner::Payload);
        }
        let rows = transaction.changes.rows();
        let is_apart = self.rules.keep(Rule::Apart);
        let meets_payload = rows.iter().any(|row| self.payloads.contains_key(row));
        // What was on a drive that is lost may be nowhere after a crash: then all is logged. So it is where a drive
        // cannot be computed because redundancy is not valid yet.
        // Nor can an intent be in place before its answer where a drive hinders.
        let end = rows.iter().map(|row| row.stripe + 1).max();
        let is_whole = core.drives.lost_data().is_empty()
            && core.log.hindering.is_empty()
            && core.is_redundant(end.unwrap_or(0));
        if transaction.manner == Manner::Intent && is_whole && !(is_apart && meets_payload) {
            return Some(Manner::Intent);
        }
        let meets_intent = rows.iter().any(|row| self.intents.contains_key(row));
        (!(is_apart && meets_intent)).then_some(Manner::Payload)
    }

    /// A transaction has its name.
    pub(super) fn note_begun(&mut self, id: u64, transaction: &Transaction) {
        if self.from.is_none() {
            return;
        }
        let (manner, rows) = (transaction.manner, transaction.changes.rows().to_vec());
        if manner == Manner::Intent {
            self.not_in_place += transaction.changes.cells().len();
            self.gathered += transaction.changes.cells().len();
        }
        let last = self.last_mut(manner);
        last.extend(rows.iter().map(|&row| (row, id)));
        self.known.push_back(Known { id, manner, rows });
    }

    /// Transactions below this one are not looked at after a crash: every record from now on says so.
    pub(super) fn forget_below(&mut self, retired: u64) {
        while self.known.front().is_some_and(|known| known.id < retired) {
            let Known { id, manner, rows } = self.known.pop_front().expect("there is a first one");
            let last = self.last_mut(manner);
            for row in rows {
                if last.get(&row) == Some(&id) {
                    last.remove(&row);
                }
            }
        }
    }

    fn last_mut(&mut self, manner: Manner) -> &mut BTreeMap<Row, u64> {
        match manner {
            Manner::Payload => &mut self.payloads,
            Manner::Intent => &mut self.intents,
        }
    }

    /// The record of an intent has gone to the first drive.
    pub(super) fn note_sent(&mut self, transaction: &mut Transaction) {
        if transaction.records.send() {
            self.gathered -= transaction.changes.cells().len();
        }
    }

    /// Whether it is better that more intents gather: a drive that streams goes far for every record, and has enough
    /// to do with what was announced before.
    pub(super) fn may_gather(&self) -> bool {
        2 * self.gathered < self.not_in_place
    }

    /// All of these codewords is in a later payload than this intent (N1).
    pub(super) fn forget_rows(&mut self, id: u64, rows: &[Row]) {
        for row in rows {
            if self.intents.get(row) == Some(&id) {
                self.intents.remove(row);
            }
        }
    }

    /// What stands for an intent is committed.
    pub(super) fn note_instead(&mut self, transaction: &mut Transaction) {
        self.note_sent(transaction);
        self.not_in_place -= transaction.changes.cells().len();
    }

    /// Whether some operation writes in place.
    pub(super) fn are_placing(&self) -> bool {
        !self.placing.is_empty()
    }

    /// Whether this operation does.
    pub(super) fn is_placing(&self, op: OpId) -> bool {
        self.placing.contains_key(&op)
    }

    /// An operation leaves its writes in place to the journal.
    pub(super) fn take_placing(&mut self, op: OpId) -> Placing {
        self.placing.remove(&op).expect("it writes in place")
    }

    /// An operation may write these in place.
    pub(super) fn note_placing(&mut self, op: OpId, ids: Vec<u64>, whole: usize) {
        match ids.is_empty() {
            true => self.end(whole),
            false => {
                self.placing.insert(op, Placing { ids, whole });
            }
        }
    }
}

impl Journal {
    /// Room for the record of an intent on enough rings, if there is some: on those where it is one command with
    /// others, else in turns.
    pub(super) fn room_for_intent(&mut self, core: &Core) -> Result<Vec<Entry>, Blocked> {
        let mut present: Vec<DriveIdx> = core.counted().iter().collect();
        let count = present.len();
        present.rotate_left(self.intents.turn % count.max(1));
        present.sort_by_key(|drive| self.rings[drive.as_usize()].waiting.is_empty());
        let mut holders = self.transactions.settled.or(core.uncounted());
        let mut entries = Vec::new();
        for drive in present {
            if self.form.spec.is_enough(holders) {
                break;
            }
            let (ring, sectors) = (&self.rings[drive.as_usize()], Sectors::new(1));
            let place = ring.room(sectors, core.arm(drive)).ok_or(Blocked::Space(drive))?;
            entries.push(Entry {
                id: self.transactions.next,
                ring: drive,
                subject: drive,
                place,
                sectors,
            });
            holders = holders.with(drive);
        }
        self.intents.turn += entries.len();
        Ok(entries)
    }

    /// An operation has ended its writes in place.
    pub(super) fn note_in_place(&mut self, core: &mut Core, now: Instant, done: InPlace) {
        let Some(Placing { ids, whole }) = self.intents.placing.remove(&done.op) else { return };
        self.intents.end(whole);
        for id in ids {
            let Some(transaction) = self.transactions.open.get_mut(&id) else { continue };
            let drives = transaction.places.at_risk();
            if done.durability == Durability::Durable {
                take_off_list(core, transaction);
                transaction.recorded = transaction.recorded.max(core.meta.due());
            }
            self.intents.not_in_place -= transaction.changes.cells().len();
            let sectors = transaction.changes.cells().len() / drives.iter().count().max(1);
            if done.durability == Durability::Cached {
                core.log.at_risk.begin(id);
            }
            for drive in drives.without(core.drives.lost()).iter() {
                match done.durability {
                    Durability::Durable => self.note_streamed_safe(core, drive, id),
                    Durability::Cached => {
                        self.placing.placers[drive.as_usize()].note_streamed(now, id, sectors);
                    }
                }
            }
        }
    }
}
