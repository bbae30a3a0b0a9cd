//! What goes onto the rings: records of transactions, and marks where no record says in time how far the journal is.

use std::cmp::Reverse;

use levelhead_block::{Command, Durability, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Nanos, Sectors};

use super::placer::Haste;
use super::record::{ChangedRun, Kind, Record};
use super::ring::{Append, Entry, Ring, Watermarks};
use super::rules::Rule;
use super::transaction::{Manner, Transaction};
use super::{Blocked, Journal};
use crate::action::Sums;
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;

/// How long places wait for a record that says that their transactions are committed, before a mark says it.
pub(super) const MARK_PAUSE: Nanos = Nanos::from_millis(200);

/// How much longer intents wait for others.
const INTENTS_GATHER: Nanos = Nanos::from_millis(100);

impl Journal {
    /// How far the journal is.
    pub(super) fn watermarks(&self) -> Watermarks {
        let first = |ids: Option<&u64>| ids.copied().unwrap_or(self.transactions.next);
        Watermarks {
            committed: first(self.transactions.uncommitted.first()) - 1,
            retired: first(self.transactions.open.keys().next()),
        }
    }

    /// Up to which transaction enough rings say for good that it is committed.
    pub(super) fn marked(&self, core: &Core) -> u64 {
        if !self.form.rules.keep(Rule::Mark) {
            return u64::MAX;
        }
        let ring = |drive: DriveIdx| self.rings[drive.as_usize()].durable.committed;
        let mut present: Vec<DriveIdx> = core.counted().iter().collect();
        present.sort_unstable_by_key(|&drive| Reverse(ring(drive)));
        let mut say_it = self.transactions.settled.or(core.uncounted());
        let enough = present.into_iter().find(|&drive| {
            say_it = say_it.with(drive);
            self.form.spec.is_enough(say_it)
        });
        enough.map_or(0, ring)
    }

    /// Hands every ring that is idle what waits for it.
    pub(super) fn append(&mut self, core: &mut Core, now: Instant) {
        for drive in core.drives.reachable().iter() {
            let at = drive.as_usize();
            let is_busy = core.drives.queue_len(drive) > 1 && !self.placing.drains;
            if is_busy && self.gathered_at(&self.rings[at]).is_some_and(|gathered| now < gathered) {
                continue;
            }
            let entries = self.rings[at].take_append();
            if !entries.is_empty() {
                self.append_to(core, now, drive, entries);
            }
        }
    }

    /// When what waits for a ring goes to its drive, if that is busy.
    pub(super) fn gathered_at(&self, ring: &Ring) -> Option<Instant> {
        let gathered = ring.gathered_at()?;
        let is_intent = |entry: &Entry| {
            self.transactions
                .open
                .get(&entry.id)
                .is_some_and(|known| known.manner == Manner::Intent)
        };
        let may_gather = self.intents.may_gather() && ring.waiting.iter().all(is_intent);
        Some(if may_gather { gathered + INTENTS_GATHER } else { gathered })
    }

    fn append_to(&mut self, core: &mut Core, now: Instant, drive: DriveIdx, entries: Vec<Entry>) {
        let says = self.watermarks();
        let buf = core.out.acquire(Sectors::new(entries.len() as u64));
        let mut segments: Vec<Segment> = Vec::new();
        let mut since = None;
        for (entry, sector) in entries.iter().zip(0..) {
            let into = Place { buf, sector };
            self.inscribe(core, drive, entry, says, into);
            segments.push(Segment { place: into, sectors: 1 });
            let transaction = self.transactions.open.get_mut(&entry.id);
            assert_eq!(transaction.is_none(), entry.id == 0, "J11: {entry:?} is of what is over");
            if let Some(transaction) = transaction {
                if transaction.manner == Manner::Intent {
                    self.intents.note_sent(transaction);
                }
                segments.extend(payload(transaction, entry.subject));
                since = since.or(Some(transaction.since));
            }
        }
        core.counters.journal_appends += 1;
        core.counters.journal_records +=
            entries.iter().filter(|entry| entry.id != 0).count() as u64;
        core.counters.journal_marks += entries.iter().filter(|entry| entry.id == 0).count() as u64;
        let sectors = entries.iter().map(|entry| entry.sectors).sum();
        core.log.ring_wraps += u64::from(self.rings[drive.as_usize()].note_written(sectors));
        let extent = Extent::new(entries[0].place, sectors);
        let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
        let command = Command::Write { extent, durability, zero_tail };
        let sub = core.enqueue(
            now,
            Enqueue {
                purpose: Purpose::Ring,
                drive,
                command,
                segments: segments.into(),
                origin: core.own_origin(),
                end: End::Head,
                fate: Fate::Certain,
                since,
            },
        );
        self.rings[drive.as_usize()].append = Some(Append { sub, buf, entries, says });
    }

    /// Has the header of a record put into a buffer.
    fn inscribe(
        &self,
        core: &mut Core,
        on: DriveIdx,
        entry: &Entry,
        says: Watermarks,
        into: Place,
    ) {
        let transaction = self.transactions.open.get(&entry.id);
        let kind = match transaction.map(|known| known.manner) {
            Some(Manner::Payload) => Kind::Payload,
            Some(Manner::Intent) => Kind::Intent,
            None => Kind::Mark,
        };
        let record = Record {
            ring: self.rings[on.as_usize()].name,
            place: entry.place,
            kind,
            id: entry.id,
            drive: entry.subject,
            participants: transaction.map_or(DriveSet::EMPTY, Transaction::named),
            runs: transaction.map_or_else(Vec::new, |known| runs(known, entry.subject)),
            committed: says.committed,
            retired: says.retired,
            dropped: Vec::new(),
            has_gaps: false,
        };
        let contents = transaction.map_or_else(Vec::new, |known| known.changes.segments(None));
        core.out.log(into, record, Sums::Of(contents));
    }

    /// Writes marks where no other record says in time what they say.
    pub(super) fn mark(&mut self, core: &mut Core, now: Instant) {
        self.mark_retired(core);
        let is_late = self.placing.unmarked_since.is_some_and(|since| since + MARK_PAUSE <= now);
        if self.placing.unmarked_since.is_some() && (is_late || self.place_haste() == Haste::Now) {
            let is_enough = self.mark_committed(core);
            self.placing.unmarked_since = (!is_enough).then_some(now);
        }
        self.append(core, now);
    }

    /// A ring whose space is waited for gets a mark that makes it free; so does that of a drive that hinders, which no
    /// record says anything on, before its space is.
    fn mark_retired(&mut self, core: &Core) {
        let retired = self.watermarks().retired;
        let awaited = match self.requests.blocked {
            Some(Blocked::Space(drive)) => DriveSet::EMPTY.with(drive),
            Some(Blocked::Backlog(_) | Blocked::Intent) | None => DriveSet::EMPTY,
        };
        for drive in core.log.hindering.or(awaited).and(core.drives.reachable()).iter() {
            let ring = &mut self.rings[drive.as_usize()];
            if !ring.is_idle() || ring.durable.retired >= retired {
                continue;
            }
            let is_awaited = awaited.contains(drive) && ring.holds_below(retired);
            if core.gate.may_write() && (is_awaited || ring.is_clogged(retired)) {
                ring.enter_mark(core.arm(drive));
            }
        }
    }

    /// As many rings as are needed get marks that say which transactions are committed; returns whether enough say
    /// so then.
    fn mark_committed(&mut self, core: &Core) -> bool {
        let committed = self.watermarks().committed;
        let mut present: Vec<DriveIdx> = core.counted().iter().collect();
        present.sort_by_key(|&drive| core.log.hindering.contains(drive));
        let will_say = |ring: &Ring| {
            let coming = ring.append.as_ref().map_or(0, |append| append.says.committed);
            !ring.waiting.is_empty() || coming.max(ring.durable.committed) >= committed
        };
        let of = |journal: &Self, drive: DriveIdx| will_say(&journal.rings[drive.as_usize()]);
        let saying = present.iter().copied().filter(|&drive| of(self, drive));
        let uncounted = self.transactions.settled.or(core.uncounted());
        let mut say_it = saying.fold(uncounted, DriveSet::with);
        for drive in present {
            let is_needed = !self.form.spec.is_enough(say_it) && !of(self, drive);
            if is_needed && self.rings[drive.as_usize()].is_idle() {
                self.rings[drive.as_usize()].enter_mark(core.arm(drive));
                say_it = say_it.with(drive);
            }
        }
        self.form.spec.is_enough(say_it)
    }
}

/// What the record of a transaction on the ring of a drive has behind its header.
fn payload(transaction: &Transaction, drive: DriveIdx) -> Vec<Segment> {
    match transaction.manner {
        Manner::Payload => transaction.changes.segments(Some(drive)),
        Manner::Intent => Vec::new(),
    }
}

/// What it says that the transaction changes.
fn runs(transaction: &Transaction, drive: DriveIdx) -> Vec<ChangedRun> {
    let subject = Some(drive).filter(|_| transaction.manner == Manner::Payload);
    transaction.changes.runs(subject)
}
