//! The journal: what is to be written is recorded before it is written, so that a crash leaves the whole of it or
//! nothing, and so that a client has its answer before the places are written.
//!
//! ```text
//!   an operation's sectors --> records, one on the ring of every participant
//!                                   | all durable
//!                                   v
//!                              committed: the client is answered; reads come from memory
//!                                   | enough rings say so for good
//!                                   v
//!                              durable in place --> over: the records' space is free again
//! ```
//!
//! Every drive that is there keeps a ring of records. A *transaction* is what changes on all drives together; its
//! *participants* are the drives that it changes. Rings are *enough* if the layout does not survive the loss of all
//! of them together with the drives that are recorded as lost: of them one is left after every further loss that it
//! survives. Where `k` drives are redundant, whichever they are, and `l` are recorded as lost, these are any
//! `c = k + 1 - l` rings. The ring of a drive that is being filled never counts among them.
//!
//! Where drives have nothing but a ring, no other drive has one, and each of them has every record: the array survives
//! the loss of all of them but one, so that only all that are there are enough ([`apart`]).
//!
//! # Invariants
//!
//! - J1. A transaction is committed when the record of every participant is durable. A participant that is lost
//!   counts once its loss is recorded for good, and none begins before the losses are recorded that it does without.
//! - J2. No sector of a transaction is written in place before enough rings say for good that it is committed.
//! - J3. To one sector, places are written in the order of the transactions.
//! - J4. A transaction is over when on every participant its sectors, or later ones, are durable in their places, or the
//!   loss of that participant is recorded for good.
//! - J5. A transaction gets the space of all its records at once, so that no two wait for each other's.
//! - J6. Until a sector is in its place, it is read from memory.
//! - J7. Where redundancy is not valid yet, the record of a participant lies on enough rings, so that one that cannot be
//!   read costs nothing.
//! - J8. The record of a participant that hinders may lie on enough other rings. Its own keeps the space, for a recovery.
//!   Its places are written when it comes to them.
//! - J9. A transaction is over when the metadata says what drives lack of it, where that is to be known, and that is committed.
//! - J10. A transaction is over when what it gave is off the list of damaged sectors for good. Its records name all of that, also
//!   what no drive takes: redundancy counts it, and not zeroes any more.
//! - J11. The record of a participant waits for a ring once at most, for whichever reasons it goes there. So what is withdrawn
//!   from a ring is all of it, and nothing waits for a ring that is of a transaction which is over.

mod again;
mod apart;
mod appending;
mod beginning;
mod hedging;
mod intents;
mod loading;
mod pace;
pub(crate) mod placer;
mod placing;
pub(crate) mod recalled;
mod records;
pub(crate) mod recovery;
pub(crate) mod ring;
mod room;
pub mod status;
pub(crate) mod tagging;
pub(crate) mod transaction;
pub(crate) mod verdict;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::{BufId, Outcome};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Nanos, Sectors};

use self::hedging::LeftBehind;
use self::intents::Intents;
use self::loading::Loading;
use self::pace::Paces;
use self::placer::Placer;
use self::recovery::Recovery;
use self::ring::{Append, Entry, Ring};
use self::room::Begun;
use self::transaction::{Manner, RecordRoom, Transaction, split};
use crate::core::Core;
use crate::core::spread::Spread;
use crate::log::contents::{Contents, Coverage, Logged, Stored};
use crate::log::record::{FoundRecord, RingName};
use crate::log::rules::{Rule, Rules};
use crate::log::unplaced::Version;
use crate::meta::membership::{Generation, MemberId};
use crate::meta::superblock::Uuid;
use crate::names::{OpId, SubId};
use crate::settings::{Left, Settings};
use crate::shape::{Cell, Spec};

pub use crate::log::{record, rules};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// The ring of every drive.
    rings: Vec<Ring>,
    transactions: Transactions,
    requests: Requests,
    intents: Intents,
    placing: Placing,
    form: Form,
    /// What comes first, if the array was cut off.
    recovery: Option<Box<Recovery>>,
    /// What comes before that where sectors have checksums.
    loading: Option<Loading>,
}

/// Transactions that are not over.
#[derive(Clone, Debug)]
struct Transactions {
    open: BTreeMap<u64, Transaction>,
    uncommitted: BTreeSet<u64>,
    /// Their sectors.
    begun: Begun,
    /// The name of the next one.
    next: u64,
    /// Lost drives whose loss counted at the last look.
    settled: DriveSet,
    left_behind: Vec<LeftBehind>,
}

/// What operations want, and what has become of it.
#[derive(Clone, Debug)]
struct Requests {
    /// What waits for room, in order.
    waiting: VecDeque<Transaction>,
    /// What the first one that waits, waits for.
    blocked: Option<Blocked>,
    /// Operations that wait until all of theirs is committed.
    pending: BTreeMap<OpId, Pending>,
    /// Operations that are to be told what has become of what they wanted.
    ended: Vec<Told>,
    /// Operations whose writes in place are the journal's from now on.
    taken_over: Vec<OpId>,
    /// Nothing that was announced is logged before.
    log_again_at: Instant,
}

/// How what is committed comes to its place.
#[derive(Clone, Debug)]
struct Placing {
    placers: Vec<Placer>,
    paces: Paces,
    /// Since when some places wait for a mark.
    unmarked_since: Option<Instant>,
    /// Whether everything is to be in its place soon.
    drains: bool,
    /// The same for a moment, beside what clients ask.
    hurries: bool,
    /// The array has failed: nothing comes with time any more.
    has_failed: bool,
}

/// What does not change.
#[derive(Clone, Copy, Debug)]
struct Form {
    rules: Rules,
    spec: Spec,
    record_max: Sectors,
    /// Where the two slots of every drive for its list lie.
    lists: Option<Extent>,
}

/// The end of a command of the journal's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) drive: DriveIdx,
    pub(crate) sub: SubId,
    /// What a read filled, and where its sectors lie there.
    pub(crate) buf: Option<BufId>,
    pub(crate) spread: &'a Spread,
    pub(crate) outcome: &'a Outcome,
    /// How long it took, with its wait in the queue.
    pub(crate) took: Nanos,
}

/// What an operation waits for.
#[derive(Clone, Debug, Default)]
struct Pending {
    /// Its transactions that are not committed.
    left: usize,
    /// The codewords that it replaces as a whole.
    whole: usize,
    /// Its intents,
    intents: Vec<u64>,
    /// and all sectors of these.
    to_place: Vec<Stored>,
}

/// What an operation is told.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) op: OpId,
    pub(crate) logged: Logged,
    /// What it is to write in place itself.
    pub(crate) to_place: Vec<Stored>,
}

/// What a transaction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    /// Space on the ring of a drive.
    Space(DriveIdx),
    /// That fewer sectors wait for their places on a drive.
    Backlog(DriveIdx),
    /// That an intent of one of its codewords is over.
    Intent,
}

impl Journal {
    /// A journal of which everything is over. Nothing if the array keeps none.
    pub(crate) fn new(settings: &Settings) -> Option<Self> {
        let Some(known) = &settings.journal else { return None };
        let carries = settings.content.is_carried();
        let (drives, with_ring) = (settings.spec.members(), settings.spec.ring_drives());
        let ring = |at: usize| {
            let name = match &settings.recorded {
                None => {
                    let member = MemberId::new(Uuid([at as u8; 16]));
                    RingName { array: Uuid::default(), member }
                }
                Some(known) => {
                    let metadata = &known.metadata;
                    RingName { array: metadata.array, member: metadata.members[at].id }
                }
            };
            let drive = DriveIdx::from_usize(at);
            let pieces: &[Extent] = if with_ring.contains(drive) { &known.pieces } else { &[] };
            Ring::new(drive, name, pieces, known.rules)
        };
        let rings: Vec<Ring> = (0..drives).map(ring).collect();
        let record_max = with_ring.iter().map(|drive| rings[drive.as_usize()].record_max()).min();
        let record_max = record_max.expect("an array has drives");
        let transactions = Transactions {
            open: BTreeMap::new(),
            uncommitted: BTreeSet::new(),
            begun: Begun::new(drives),
            next: known.floor.max(1),
            settled: DriveSet::EMPTY,
            left_behind: Vec::new(),
        };
        let requests = Requests {
            waiting: VecDeque::new(),
            blocked: None,
            pending: BTreeMap::new(),
            ended: Vec::new(),
            taken_over: Vec::new(),
            log_again_at: Instant::ZERO,
        };
        let placing = Placing {
            placers: (0..drives).map(|at| Placer::new(DriveIdx::from_usize(at))).collect(),
            paces: Paces::new(drives),
            unmarked_since: None,
            drains: false,
            hurries: false,
            has_failed: false,
        };
        Some(Self {
            rings,
            transactions,
            requests,
            intents: Intents::new(known.intents_from, known.rules),
            placing,
            form: Form {
                rules: known.rules,
                spec: settings.spec,
                record_max,
                lists: settings.tag_lists(),
            },
            loading: settings.tag_lists().filter(|_| carries).map(|_| Loading::first()),
            recovery: match known.left {
                Left::Drained => None,
                Left::CutOff => Some(Box::new(Recovery::new(known.floor, known.rules))),
            },
        })
    }

    /// An operation wants this to be written. It is told when all of it is committed.
    pub(crate) fn begin(&mut self, wanted: Contents) {
        let Contents { op, since, recorded, codewords } = wanted;
        let whole = codewords.iter().filter(|changed| changed.coverage == Coverage::All).count();
        let may_announce = self.intents.begin(whole);
        let (all, parts) = codewords
            .into_iter()
            .partition(|changed| may_announce && changed.coverage == Coverage::All);
        let before = self.requests.waiting.len();
        for (manner, codewords) in [(Manner::Payload, parts), (Manner::Intent, all)] {
            let room = RecordRoom { sectors: self.form.record_max, is_shared: self.is_apart() };
            let transactions = split(codewords, room).into_iter();
            let new = |all| Transaction { recorded, ..Transaction::new(op, since, manner, all) };
            self.requests.waiting.extend(transactions.map(new));
        }
        let left = self.requests.waiting.len() - before;
        assert!(left > 0, "operation {op} writes nothing");
        self.requests.pending.insert(op, Pending { left, whole, ..Pending::default() });
    }

    /// Everything is to be in its place soon.
    pub(crate) fn drain(&mut self) {
        self.placing.drains = true;
    }

    /// From now on everything is to be in its place soon, or no more.
    pub(crate) fn hurry(&mut self, hurries: bool) {
        self.placing.hurries = hurries;
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_over() && self.rings.iter().all(Ring::is_idle)
    }

    /// Whether every transaction is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_ready() && self.transactions.open.is_empty() && self.requests.waiting.is_empty()
    }

    /// The name of the next transaction; all below it are over if every one is.
    pub(crate) fn next(&self) -> u64 {
        self.transactions.next
    }

    /// Operations that are to be told what has become of what they wanted.
    pub(crate) fn take_ended(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.requests.ended)
    }

    /// Whether operations may begin: what was cut off is in its place.
    pub(crate) fn is_ready(&self) -> bool {
        self.recovery.is_none() && !self.loading.as_ref().is_some_and(Loading::is_first)
    }

    /// How many transactions are not over.
    pub(crate) fn open(&self) -> usize {
        self.transactions.open.len() + self.requests.waiting.len()
    }

    /// What was found in a buffer that was to be examined.
    pub(crate) fn handle_examined(&mut self, buf: BufId, found: Vec<FoundRecord>) {
        let recovery = self.recovery.as_mut().expect("X: only a recovery has buffers examined");
        recovery.handle_examined(buf, found);
    }

    /// The checksums of the sectors of a buffer that were to be computed.
    pub(crate) fn handle_summed(&mut self, buf: BufId, sums: &[u32]) {
        let recovery = self.recovery.as_mut().expect("X: only a recovery has checksums computed");
        recovery.handle_summed(buf, sums);
    }

    /// When there is something to do that comes with time.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        if let Some(loading) = self.loading.as_ref().filter(|loading| loading.is_first()) {
            return (!loading.has_begun()).then_some(Instant::ZERO);
        }
        if let Some(recovery) = &self.recovery {
            return (!recovery.has_begun()).then_some(Instant::ZERO);
        }
        if self.placing.has_failed {
            return None;
        }
        let mark = self.placing.unmarked_since.map(|since| since + appending::MARK_PAUSE);
        let flushes = self.placing.placers.iter().filter_map(Placer::flush_at);
        let gathered = self.rings.iter().filter_map(|ring| self.gathered_at(ring));
        flushes.chain(mark).chain(gathered).min()
    }

    /// A drive has ended a command of the journal's, and is not lost.
    pub(crate) fn handle_done(&mut self, core: &mut Core, now: Instant, ended: Ended<'_>) {
        let Ended { drive, sub, buf, took, .. } = ended;
        if let Some(recovery) = &mut self.recovery {
            return recovery.handle_done(core, ended);
        }
        buf.into_iter().for_each(|buf| core.out.release(buf));
        let at = drive.as_usize();
        if self.rings[at].append.as_ref().is_some_and(|append| append.sub == sub) {
            if self.has_places(drive) {
                self.placing.paces.note(drive, took);
            }
            let Append { buf, entries, .. } = self.rings[at].handle_appended();
            core.out.release(buf);
            for entry in entries {
                self.let_go_behind(core, drive, Some(entry.id));
                self.note_logged(core, now, drive, &entry);
            }
            return;
        }
        if let Some(cells) = self.placing.placers[at].take_placed(sub) {
            self.placing.paces.note(drive, took);
            self.note_recallable(core, drive, &cells);
            for placing in cells {
                let cell = Cell { drive, lba: placing.lba };
                for version in core.log.unplaced.take(cell, placing.id) {
                    self.note_left(core, version);
                    let tags = core.tags.as_mut();
                    if tags.is_none_or(|tags| tags.is_safe(drive, placing.lba, version.id)) {
                        self.note_safe(core, drive, version.id);
                    }
                }
            }
            return;
        }
        if let Some(ids) = self.placing.placers[at].take_flushed(now, sub) {
            core.tags.iter_mut().for_each(|tags| tags.end_flush(drive));
            Self::settle_tags(core, drive);
            for id in ids {
                self.note_streamed_safe(core, drive, id);
            }
        }
    }

    /// What an intent gave a drive is safe there, and its transaction is once tag sectors say so (TG2).
    pub(super) fn note_streamed_safe(&mut self, core: &mut Core, drive: DriveIdx, id: u64) {
        if let Some(transaction) = self.transactions.open.get_mut(&id) {
            transaction.flushed = transaction.flushed.with(drive);
            let settled = self.transactions.settled.or(transaction.gone);
            // A client's flush need not wait for checksums: the transaction is there until they are.
            let left = transaction.places.at_risk().without(transaction.flushed.or(settled));
            if left.is_empty() {
                core.log.at_risk.end(id);
            }
        }
        let tags = core.tags.as_mut();
        if tags.is_none_or(|tags| tags.is_clean_or_waits(drive, id)) {
            self.note_safe(core, drive, id);
        }
    }

    /// A record is durable.
    fn note_logged(&mut self, core: &mut Core, now: Instant, ring: DriveIdx, entry: &Entry) {
        let Some(transaction) = self.transactions.open.get_mut(&entry.id) else { return };
        transaction.note_durable(entry);
        // One that was left behind may have ended after all, while another waits in its stead.
        self.rings[ring.as_usize()].withdraw(entry.id, entry.subject);
        self.look_at(core, now, entry.id);
    }

    /// A sector of a transaction is safe in its place, or a later one is.
    fn note_safe(&mut self, core: &mut Core, drive: DriveIdx, id: u64) {
        let transaction = self.transactions.open.get_mut(&id).expect("J4: it has sectors at risk");
        transaction.places.note_safe(drive);
        self.end_if_over(core, id);
    }

    /// The memory of a sector is not needed any more, except by those that read it now.
    fn note_left(&mut self, core: &mut Core, version: Version) {
        let Some(transaction) = self.transactions.open.get_mut(&version.id) else {
            unreachable!("J4: transaction {} has ended before its sectors left", version.id)
        };
        transaction.places.note_placed();
        if transaction.places.have_all() {
            transaction.changes.bufs().into_iter().for_each(|buf| core.out.release(buf));
        }
    }

    /// Commits a transaction if it can be (J1).
    fn look_at(&mut self, core: &mut Core, now: Instant, id: u64) {
        if self.placing.has_failed {
            return; // Its operation was told.
        }
        let settled = self.transactions.settled;
        let transaction = self.transactions.open.get_mut(&id).expect("it is open");
        if transaction.logged_by > 0 {
            return; // What stands for it decides.
        }
        // Also of an intent: a recovery takes a ring that is there and lacks it for a proof that it never counted.
        let counted = settled.or(transaction.gone);
        let is_logged = transaction.records.are_durable_but_on(counted);
        let may_commit = is_logged || !self.form.rules.keep(Rule::Records);
        if transaction.is_committed || !may_commit {
            return self.end_if_over(core, id);
        }
        transaction.is_committed = true;
        self.transactions.begun.remove(transaction);
        self.transactions.uncommitted.remove(&id);
        let op = transaction.op;
        let away = core.drives.away();
        if transaction.manner == Manner::Payload && take_off_list(core, transaction) {
            transaction.recorded = transaction.recorded.max(core.meta.due());
        }
        // What was committed after it may be marked now.
        self.placing.unmarked_since = self.placing.unmarked_since.or(Some(now));
        if transaction.manner == Manner::Intent {
            transaction.changes.bufs().into_iter().for_each(|buf| core.out.release(buf));
            self.note_committed(op);
            return;
        }
        let mut left = Vec::new();
        for Stored { cell, place } in transaction.changes.cells() {
            let version = Version { id, place: *place };
            if away.or(transaction.gone).contains(cell.drive) {
                left.push(version);
            } else {
                core.log.unplaced.insert(*cell, version);
            }
        }
        let instead_of = transaction.instead_of;
        left.into_iter().for_each(|version| self.note_left(core, version));
        instead_of.into_iter().for_each(|intent| self.note_instead(core, intent));
        self.note_committed(op);
        self.end_if_over(core, id);
    }

    /// Another transaction of an operation is committed.
    fn note_committed(&mut self, op: OpId) {
        let pending = self.requests.pending.get_mut(&op).expect("its operation waits");
        pending.left -= 1;
        if pending.left == 0 {
            let Pending { intents, to_place, whole, .. } =
                self.requests.pending.remove(&op).expect("it is there");
            self.intents.note_placing(op, intents, whole);
            self.requests.ended.push(Told { op, logged: Logged::Committed, to_place });
        }
    }

    /// J4.
    fn end_if_over(&mut self, core: &mut Core, id: u64) {
        let transaction = &self.transactions.open[&id];
        let settled = self.transactions.settled.or(transaction.gone);
        let is_safe = transaction.places.at_risk().without(settled).is_empty();
        let is_recorded =
            core.meta.is_committed(transaction.recorded) || !self.form.rules.keep(Rule::Recorded);
        let may_end = is_safe && is_recorded;
        if transaction.is_committed && may_end && transaction.places.have_all() {
            self.transactions.open.remove(&id);
            core.log.at_risk.end(id);
        }
    }

    /// A drive is lost: it misses what it was to get, or has got and may not have stored (J9).
    fn note_missed(&mut self, core: &mut Core, drive: DriveIdx) {
        if !core.meta.knows_lacks(drive) {
            return;
        }
        let Core { meta, place, log, .. } = core;
        let mut miss = |cell: Cell| meta.miss(drive, place.layout().symbol(cell).0.stripe);
        for transaction in self.transactions.open.values_mut().chain(&mut self.requests.waiting) {
            let cells = transaction.changes.cells().iter().map(|stored| stored.cell);
            let own = cells.filter(|cell| cell.drive == drive).map(&mut miss);
            transaction.recorded = own.fold(transaction.recorded, Generation::max);
        }
        for contents in &mut log.to_journal {
            let cells = contents.codewords.iter().flat_map(|changed| &changed.cells);
            let own = cells.map(|stored| stored.cell).filter(|cell| cell.drive == drive);
            contents.recorded = own.map(&mut miss).fold(contents.recorded, Generation::max);
        }
    }

    /// A generation of the metadata is committed.
    pub(crate) fn note_metadata_committed(&mut self, core: &mut Core) {
        let waits =
            |(_, transaction): &(&u64, &Transaction)| transaction.recorded > Generation::NONE;
        let ids: Vec<u64> =
            self.transactions.open.iter().filter(waits).map(|(&id, _)| id).collect();
        for id in ids {
            self.end_if_over(core, id);
        }
    }

    /// The array does without a drive from now on.
    pub(crate) fn handle_lost(&mut self, core: &mut Core, drive: DriveIdx) {
        self.note_missed(core, drive);
        self.lose_list(drive);
        let left = core.tags.as_mut().map(|tags| tags.lose(drive));
        left.into_iter().flatten().for_each(|buf| core.out.release(buf));
        if let Some(recovery) = &mut self.recovery {
            return recovery.handle_lost(drive);
        }
        let at = drive.as_usize();
        let buf = self.rings[at].handle_lost();
        buf.into_iter().for_each(|buf| core.out.release(buf));
        self.placing.placers[at].handle_lost();
        self.let_go_behind(core, drive, None);
        let versions = core.log.unplaced.take_all(drive);
        versions.into_iter().for_each(|version| self.note_left(core, version));
    }

    /// The place of a lost drive, whose loss is recorded, has a new one. What is under way has nothing to do with it.
    pub(crate) fn begin_filling(&mut self, drive: DriveIdx, member: MemberId) {
        assert!(self.is_ready(), "X3: the journal is not ready");
        let at = drive.as_usize();
        let RingName { array, .. } = self.rings[at].name;
        self.rings[at].renew(RingName { array, member });
        self.placing.placers[at].handle_lost();
        self.placing.paces.forget(drive);
        self.transactions.settled = self.transactions.settled.without(DriveSet::EMPTY.with(drive));
        for transaction in self.transactions.open.values_mut() {
            transaction.gone = transaction.gone.with(drive);
        }
        // One that waits may begin when the new drive counts, and then needs it, unless it writes to the old one. That keeps the
        // new one from counting.
        for transaction in &mut self.requests.waiting {
            if transaction.participants.contains(drive) {
                transaction.gone = transaction.gone.with(drive);
            }
        }
    }

    /// Whether every ring that counts, also that of a drive that is about to be present, says for good that everything below this
    /// transaction is over. If not, marks are written.
    pub(crate) fn says_over(&mut self, core: &mut Core, now: Instant, below: u64) -> bool {
        let says_it = |drive: DriveIdx| self.rings[drive.as_usize()].durable.retired >= below;
        let others: Vec<DriveIdx> =
            core.counted().iter().filter(|&drive| !says_it(drive)).collect();
        let is_over = self.watermarks().retired >= below;
        for &drive in others.iter().filter(|_| is_over) {
            let ring = &mut self.rings[drive.as_usize()];
            if ring.is_idle() {
                ring.enter_mark(core.arm(drive));
            }
        }
        self.append(core, now);
        others.is_empty()
    }

    pub(crate) fn rules(&self) -> Rules {
        self.form.rules
    }

    /// A drive that was being filled counts from now on, or its ring does: other rings are enough than before, so that
    /// what may be placed has to be said again.
    pub(crate) fn note_counted(&mut self, now: Instant) {
        self.placing.unmarked_since = self.placing.unmarked_since.or(Some(now));
    }

    /// Moves on as the facts demand.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant) {
        if !self.load(core, now) {
            return;
        }
        self.tag(core, now);
        if !self.recover(core, now) {
            return;
        }
        core.log.live.note_next(self.transactions.next);
        while let Some(wanted) = core.log.to_journal.pop_front() {
            self.begin(wanted);
        }
        while let Some(in_place) = core.log.in_place.pop_front() {
            self.note_in_place(core, now, in_place);
        }
        self.look_at_losses(core, now);
        self.look_at_paces(core, now);
        if core.has_failed() {
            return self.fail(core);
        }
        self.hedge(core, now);
        self.log_announced(core, now);
        while self.begin_waiting(core, now) {}
        self.append(core, now);
        self.place(core, now);
        self.mark(core, now);
        self.flush(core, now);
    }

    /// Moves the recovery on, if there is one; returns whether there is none any more.
    fn recover(&mut self, core: &mut Core, now: Instant) -> bool {
        let Some(recovery) = &mut self.recovery else { return true };
        if core.has_failed() {
            recovery.give_up(core);
            return false;
        }
        recovery.advance(core, now, &mut self.rings);
        let Some(next) = recovery.ended() else { return false };
        self.transactions.next = next;
        self.recovery = None;
        true
    }

    /// Losses that are recorded for good by now count.
    fn look_at_losses(&mut self, core: &mut Core, now: Instant) {
        let mut settled = core.drives.away().without(core.gate.unrecorded());
        if !self.form.rules.keep(Rule::Loss) {
            settled = core.drives.away();
        }
        if settled == self.transactions.settled {
            return;
        }
        self.transactions.settled = settled;
        let all: Vec<u64> = self.transactions.open.keys().copied().collect();
        all.into_iter().for_each(|id| self.look_at(core, now, id));
    }

    /// The array has failed: nothing will be committed or placed any more, and operations are told. What was
    /// committed is still read from memory where its drive is there (J6), until [`Journal::let_go`]. The memory of
    /// other transactions is kept until the drives have ended what is inside them.
    fn fail(&mut self, core: &mut Core) {
        self.placing.has_failed = true;
        self.requests.waiting.clear();
        self.placing.unmarked_since = None;
        let never = std::mem::take(&mut self.requests.pending).into_keys();
        let tell = |op| Told { op, logged: Logged::Never, to_place: Vec::new() };
        self.requests.ended.extend(never.map(tell));
        core.log.at_risk.fail();
        self.rings.iter_mut().for_each(|ring| ring.waiting.clear());
        if self.rings.iter().all(Ring::is_idle) {
            for id in std::mem::take(&mut self.transactions.uncommitted) {
                let transaction = self.transactions.open.remove(&id).expect("it is open");
                transaction.changes.bufs().into_iter().for_each(|buf| core.out.release(buf));
            }
        }
    }

    /// The array has failed and ends: nothing is read any more. Memory that a drive still writes from is kept.
    pub(crate) fn let_go(&mut self, core: &mut Core) {
        let is_quiet = self.rings.iter().all(Ring::is_idle)
            && self.placing.placers.iter().all(Placer::is_idle);
        if !is_quiet || !self.is_ready() {
            return;
        }
        for at in 0..self.rings.len() {
            self.handle_lost(core, DriveIdx::from_usize(at));
        }
        self.transactions.open.clear();
    }
}

#[cfg(test)]
mod tests;

/// Takes what a transaction has given off the list of damaged sectors; returns whether some of it was there (J10).
fn take_off_list(core: &mut Core, transaction: &Transaction) -> bool {
    if core.meta.damaged().is_empty() {
        return false;
    }
    core.meta.undamage(transaction.changes.all().into_iter().map(|stored| stored.cell))
}
