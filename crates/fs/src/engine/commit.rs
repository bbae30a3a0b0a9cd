//! Transactions become durable, one after the other.
//!
//! ```text
//!   running --> closed --> what it points to is written, and flushed --> its record is durable --> answers
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::{Buf, Durability, Piece, Reply, RequestId};
use levelhead_units::{Instant, Lba, Sectors};

use super::early::EarlyPage;
use super::job::{Job, JobId, PAGE, SyncStep, Syncing, Then};
use super::journal::{Journal, MARK};
use super::unwritable::Stored;
use super::{Failure, Filesystem, Phase, Purpose, SubId, is_stored};
use crate::cache::Unit;
use crate::format::extent::CodingExtent;
use crate::format::record::{About, Descriptor, RecordEntry};
use crate::format::unit::{Head, Sector};
use crate::request::{Answer, Errno};
use crate::rules::Rule;
use crate::settings::MountMode;
use crate::sums::sum_of;

/// Units of a transaction after which it is committed.
const UNITS_MAX: usize = 1_024;

/// Changes that become durable together.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) record: u64,
    /// The leads of units that it changes.
    pub(super) units: BTreeSet<Lba>,
    pub(super) revoked: BTreeSet<Lba>,
    pub(super) logged: BTreeMap<Lba, Piece>,
    /// Pages that come early, by their primary sectors.
    pub(super) early: BTreeMap<Lba, EarlyPage>,
    /// Primary sectors of pages that have come early and left their places.
    pub(super) dropped: BTreeSet<Lba>,
    pub(super) stale: BTreeMap<Lba, CodingExtent>,
    /// First sectors of coding extents whose redundancy is what it should be again, whatever earlier records say.
    pub(super) settled: BTreeSet<Lba>,
    /// Direct writes that it points to and that have not ended.
    pub(super) writes: BTreeSet<SubId>,
    pub(super) had_direct: bool,
    /// Jobs that are ready when it is durable.
    pub(super) waiting: Vec<JobId>,
    /// Sync jobs whose answer waits for it.
    pub(super) syncs: Vec<JobId>,
    pub(super) wants_commit: bool,
}

/// One that is being committed.
#[derive(Debug)]
pub(super) struct Committing {
    pub(super) record: u64,
    images: BTreeMap<Lba, Unit>,
    revoked: BTreeSet<Lba>,
    logged: BTreeMap<Lba, Piece>,
    early: BTreeMap<Lba, EarlyPage>,
    dropped: BTreeSet<Lba>,
    stale: BTreeMap<Lba, CodingExtent>,
    settled: BTreeSet<Lba>,
    pub(super) writes: BTreeSet<SubId>,
    had_direct: bool,
    pub(super) waiting: Vec<JobId>,
    pub(super) syncs: Vec<JobId>,
    state: State,
    /// The oldest record that counts, as its own says.
    oldest: u64,
    sealed: BTreeMap<Lba, Arc<Sector>>,
    /// How its record is laid out, and how often that was written.
    shape: RecordShape,
    tries: u8,
}

/// How often a record is written before the journal counts as failed.
const RECORD_TRIES: u8 = 16;

/// How a record is laid out: descriptor, payload with what is redundant behind it, descriptor.
#[derive(Debug, Default)]
struct RecordShape {
    descriptor: u32,
    data: u32,
    data_max: u32,
    /// Redundant sectors of each group of its payload.
    rows: Vec<u32>,
}

impl RecordShape {
    /// Whether it can be read without some of its sectors.
    fn lasts_without(&self, failed: &[u32]) -> bool {
        let all = 2 * self.descriptor + self.data + self.rows.iter().sum::<u32>();
        let behind = all - self.descriptor;
        let mut bad = vec![0; self.rows.len()];
        for &at in failed {
            if at < self.descriptor {
                if failed.contains(&(behind + at)) {
                    return false;
                }
            } else if at < behind {
                let Some(group) = self.group_of(at - self.descriptor) else { return false };
                bad[group] += 1;
            }
        }
        bad.iter().zip(&self.rows).all(|(bad, rows)| bad <= rows)
    }

    /// The group of a sector of the payload; nothing where there is no redundancy.
    fn group_of(&self, at: u32) -> Option<usize> {
        let Some(mut row) = at.checked_sub(self.data) else {
            let group = (at / self.data_max) as usize;
            return (group < self.rows.len()).then_some(group);
        };
        self.rows.iter().position(|&rows| match row.checked_sub(rows) {
            Some(left) => {
                row = left;
                false
            }
            None => true,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// For direct writes.
    Waiting,
    Flushing,
    /// For room in the journal.
    Blocked,
    Writing,
}

impl Transaction {
    pub(super) fn new(record: u64) -> Self {
        Self {
            record,
            units: BTreeSet::new(),
            revoked: BTreeSet::new(),
            logged: BTreeMap::new(),
            early: BTreeMap::new(),
            dropped: BTreeSet::new(),
            stale: BTreeMap::new(),
            settled: BTreeSet::new(),
            writes: BTreeSet::new(),
            had_direct: false,
            waiting: Vec::new(),
            syncs: Vec::new(),
            wants_commit: false,
        }
    }

    /// Whether it changes nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
            && self.revoked.is_empty()
            && self.logged.is_empty()
            && self.early.is_empty()
            && self.dropped.is_empty()
            && self.stale.is_empty()
            && self.settled.is_empty()
    }

    /// How many more sectors of files it may have.
    pub(super) fn logged_room(&self, journal: &Journal) -> usize {
        let taken = self.logged.len() + self.early.len();
        (journal.record_max() as usize / 2).saturating_sub(taken)
    }

    /// Whether it should be committed before anything else comes in.
    pub(super) fn is_full(&self, journal: &Journal) -> bool {
        let units = self.units.len() + (self.revoked.len() + self.settled.len()) / 8;
        units >= UNITS_MAX.min(journal.record_max() as usize / 4)
    }
}

impl Filesystem {
    /// Whether no transaction takes anything more for the moment.
    pub(super) fn is_stalling(&self) -> bool {
        if self.is_read_only() {
            return false;
        }
        let is_full = self.running.is_full(&self.journal);
        (is_full || self.journal.is_filling())
            && !matches!(self.phase, Phase::Broken(_) | Phase::Mounting(_))
    }

    /// What has stalled goes on when it can.
    pub(super) fn unstall(&mut self) -> bool {
        if self.stalled.is_empty() || self.is_stalling() {
            return false;
        }
        let stalled = std::mem::take(&mut self.stalled);
        self.ready.extend(stalled);
        true
    }

    /// Something was changed that is to be safe after a while.
    pub(super) fn begin_commit_soon(&mut self, now: Instant) {
        self.commit_at = self.commit_at.or(Some(now + self.settings.commit_every));
    }

    /// When what was changed is to be made safe although no one asks for it.
    pub(super) fn commit_due(&self) -> Option<Instant> {
        let at = self.commit_at.filter(|_| !self.is_syncing)?;
        Some(self.idle_at.map_or(at, |idle_at| at.min(idle_at)))
    }

    /// Syncs everything, if it is time: what was written comes into a transaction first, and that is committed then.
    fn sync_by_time(&mut self, now: Instant) -> bool {
        let is_due = self.commit_due().is_some_and(|at| at <= now);
        if !is_due || !matches!(self.phase, Phase::Mounted) {
            return false;
        }
        (self.commit_at, self.idle_at, self.is_syncing) = (None, None, true);
        self.begin_sync(Then::Nothing, None);
        true
    }

    /// Goes on with what is being committed, or begins.
    pub(super) fn commit_on(&mut self, now: Instant) -> bool {
        if !self.running.is_empty() {
            self.begin_commit_soon(now);
        }
        if matches!(self.phase, Phase::Broken(_)) || self.is_read_only() {
            return false;
        }
        if self.sync_by_time(now) {
            return true;
        }
        let Some(committing) = &self.committing else { return self.close(now) };
        match committing.state {
            State::Waiting => {
                let mut stale = committing.stale.values().map(CodingExtent::all);
                let are_written = committing.writes.is_empty()
                    && !stale.clone().any(|all| self.repairs.is_inside(all));
                if !are_written && self.keeps(Rule::Data) {
                    return false;
                }
                // RP3
                let is_unsafe = stale.any(|all| self.repairs.is_unsafe(all));
                let needs_flush = (committing.had_direct || is_unsafe) && self.keeps(Rule::Flush);
                let state = if needs_flush { State::Flushing } else { State::Blocked };
                self.committing.as_mut().expect("it is there").state = state;
                if needs_flush {
                    self.submit_flush(Purpose::FlushBeforeRecord);
                }
                true
            }
            State::Blocked => self.write_record(),
            State::Flushing | State::Writing => false,
        }
    }

    /// Closes the running transaction, if it is time.
    fn close(&mut self, now: Instant) -> bool {
        let is_end = matches!(self.phase, Phase::Unmounting);
        let is_full = self.running.is_full(&self.journal);
        let is_wanted = self.running.wants_commit || !self.running.syncs.is_empty();
        if !(is_end || is_full || is_wanted || !self.stalled.is_empty()) {
            return false;
        }
        if self.running.is_empty() {
            self.running.wants_commit = false;
            let waiting = std::mem::take(&mut self.running.waiting);
            let syncs = std::mem::take(&mut self.running.syncs);
            let has_moved = !(waiting.is_empty() && syncs.is_empty());
            self.ready.extend(waiting);
            self.ready.extend(syncs);
            return has_moved;
        }
        let next = self.running.record + 1;
        let Transaction { logged, early, stale, record, .. } = &self.running;
        for &lba in logged.keys().chain(early.keys()).chain(stale.keys()) {
            self.journal.note_named(lba, *record);
        }
        let closed = std::mem::replace(&mut self.running, Transaction::new(next));
        let images = closed
            .units
            .iter()
            .map(|&lead| (lead, self.cache.get(lead).expect("it is kept for this").clone()))
            .collect();
        self.committing = Some(Committing {
            record: closed.record,
            images,
            revoked: closed.revoked,
            logged: closed.logged,
            early: closed.early,
            dropped: closed.dropped,
            stale: closed.stale,
            settled: closed.settled,
            writes: closed.writes,
            had_direct: closed.had_direct,
            waiting: closed.waiting,
            syncs: closed.syncs,
            state: State::Waiting,
            oldest: 0,
            sealed: BTreeMap::new(),
            shape: RecordShape::default(),
            tries: 0,
        });
        self.reserve_spares();
        let is_dirty = !self.dirty_files().is_empty();
        self.commit_at = is_dirty.then_some(now + self.settings.commit_every);
        self.idle_at = self.idle_at.filter(|_| is_dirty);
        true
    }

    pub(super) fn handle_flushed(&mut self, reply: &Reply) {
        if !is_stored(reply) {
            return self.break_down(Failure::Flush);
        }
        if let Some(committing) = &mut self.committing {
            committing.state = State::Blocked;
        }
    }

    /// The oldest record that must be found after a crash by which this one, and none after it, is durable.
    pub(super) fn oldest_needed(&self, durable: u64) -> u64 {
        let next =
            self.committing.as_ref().map_or(self.running.record, |committing| committing.record);
        let stale = self.stale.oldest();
        let owed = self.owed.iter().filter(|owed| owed.freed_by > durable);
        let owed = owed.map(|owed| owed.record).min();
        let units = self.checkpoint.oldest();
        let early = self.oldest_early(durable);
        [Some(next), stale, owed, units, early].into_iter().flatten().min().expect("there is one")
    }

    /// Writes the record of what is being committed, if the journal has room.
    fn write_record(&mut self) -> bool {
        let coming = self.committing.as_ref().expect("it is being committed").record;
        let oldest = self.oldest_needed(coming);
        let (filesystem, ladder) = (self.superblock.filesystem(), self.superblock.ladder.clone());
        let committing = self.committing.as_mut().expect("it is being committed");
        let record = committing.record;
        let mut entries: Vec<RecordEntry> = Vec::new();
        let mut payload: Vec<Piece> = Vec::new();
        let shape = [0; 2];
        for (&lead, unit) in &committing.images {
            let mut bytes = *unit.bytes;
            let head = Head {
                kind: unit.kind,
                filesystem,
                lba: lead,
                generation: record,
                owner: unit.owner,
            };
            head.seal(&mut bytes);
            let sum = sum_of(filesystem, lead, &bytes);
            entries.push(RecordEntry { about: About::Unit, lba: lead, sum, shape });
            payload.push(Piece::whole(Arc::new(Buf::packed(&bytes))));
            let bytes = Arc::new(bytes);
            self.cache.share(lead, &unit.bytes, &bytes);
            committing.sealed.insert(lead, bytes);
        }
        let is_complement = |lba: Lba| {
            let found = committing.stale.range(..=lba).next_back();
            found.is_some_and(|(_, extent)| {
                let is_of_blocks = extent.kind.blocks().is_some() && extent.data().contains(lba);
                is_of_blocks && extent.page_of(lba).is_none()
            })
        };
        for (&lba, piece) in &committing.logged {
            if !self.settings.rules.keep(Rule::Pages) && is_complement(lba) {
                continue;
            }
            let sum = sum_of(filesystem, lba, piece.bytes());
            entries.push(RecordEntry { about: About::Data, lba, sum, shape });
            payload.push(piece.clone());
        }
        for (&lba, EarlyPage { bytes, owner }) in &committing.early {
            let sum = sum_of(filesystem, lba, bytes.bytes());
            entries.push(RecordEntry { about: About::Page, lba, sum, shape });
            entries.push(RecordEntry::of_owner(owner.inode, owner.page));
            payload.push(bytes.clone());
        }
        // A damaged sector of the journal is computed from the others, as one of a file.
        let data_max = usize::from(ladder.data_max());
        let mut redundant: Vec<Piece> = Vec::new();
        let (data, mut groups) = (payload.len() as u32, Vec::new());
        for group in payload.chunks(data_max) {
            let rows = ladder.redundant(group.len() as u32);
            if rows == 0 {
                break;
            }
            let mut buf = Buf::zeroed(Sectors::new(rows.into()));
            let data: Vec<&[u8]> = group.iter().map(Piece::bytes).collect();
            let mut into: Vec<&mut [u8]> = buf.as_mut_slice().chunks_mut(PAGE as usize).collect();
            let code = self.codes.get(group.len() as u32, rows);
            code.encode(self.settings.choices, &data, &mut into)
                .expect("one buffer for each symbol");
            let whole = Piece::whole(Arc::new(buf));
            redundant.extend((0..u32::from(rows)).map(|row| whole.part(row, 1)));
            groups.push(u32::from(rows));
        }
        for piece in redundant {
            let sum = sum_of(filesystem, Lba::ZERO, piece.bytes());
            entries.push(RecordEntry { about: About::Redundant, lba: Lba::ZERO, sum, shape });
            payload.push(piece);
        }
        for &lba in &committing.revoked {
            entries.push(RecordEntry { about: About::Revoked, lba, sum: 0, shape });
        }
        for &lba in &committing.dropped {
            entries.push(RecordEntry { about: About::Dropped, lba, sum: 0, shape });
        }
        for &lba in &committing.settled {
            entries.push(RecordEntry { about: About::Settled, lba, sum: 0, shape });
        }
        for (&lba, extent) in &committing.stale {
            let shape = [extent.redundant, extent.depth];
            entries.push(RecordEntry { about: About::Stale, lba, sum: extent.data, shape });
        }
        let descriptor = Descriptor { filesystem, record, oldest, oldest_at: 0, entries };
        let sectors = descriptor.record_sectors();
        let Some(at) = self.journal.take(record, sectors) else { return self.make_room() };
        let oldest_at = self.journal.place_of(oldest);
        let descriptor = Descriptor { oldest_at, ..descriptor };
        let pieces = assemble(&descriptor, self.journal.lba(at), payload);
        let shape = RecordShape {
            descriptor: descriptor.sectors(),
            data,
            data_max: data_max as u32,
            rows: groups,
        };
        let committing = self.committing.as_mut().expect("it is being committed");
        (committing.state, committing.oldest) = (State::Writing, oldest);
        committing.shape = shape;
        let lba = self.journal.lba(at);
        self.submit_write(Purpose::Record, lba, pieces, Durability::Durable);
        true
    }

    /// Whether a record waits for room that nothing will make: sectors of the journal that cannot be written have cut it into
    /// pieces, and what is to come to its place waits for that very record.
    pub(super) fn is_stuck(&self) -> bool {
        let is_blocked = self.committing.as_ref().is_some_and(|one| one.state == State::Blocked);
        let goes_on = matches!(self.phase, Phase::Mounted | Phase::Unmounting);
        is_blocked && goes_on && self.subs.is_empty() && self.journal.has_failed()
    }

    /// There is no room: what is over is said to be, or brought to its place.
    pub(super) fn make_room(&mut self) -> bool {
        let oldest = self.oldest_needed(self.journal.durable());
        self.settling.hurry();
        let is_marking = self.subs.values().any(|inside| inside.what == Purpose::Mark);
        if is_marking || !self.journal.has_over(oldest) || oldest <= self.journal.oldest() {
            return false;
        }
        self.write_mark(oldest);
        true
    }

    /// Says which is the oldest record that counts.
    fn write_mark(&mut self, oldest: u64) {
        let at = self.journal.take_mark();
        // A mark has the name of the newest durable record: it is that one's word, brought up to date.
        let record = self.journal.durable();
        let descriptor = Descriptor {
            filesystem: self.superblock.filesystem(),
            record,
            oldest,
            oldest_at: self.journal.place_of(oldest),
            entries: Vec::new(),
        };
        let lba = self.journal.lba(at);
        let pieces = assemble(&descriptor, lba, Vec::new());
        self.checkpoint.marking = oldest;
        self.submit_write(Purpose::Mark, lba, pieces, Durability::Durable);
    }

    /// At the end, when everything is in its place: says that no record counts any more, if one does; whether it does.
    pub(super) fn mark_end(&mut self) -> bool {
        let over = self.running.record;
        let counts = self.journal.oldest() < over && self.journal.has_over(over);
        if counts {
            self.write_mark(over);
        }
        counts
    }

    pub(super) fn handle_mark(&mut self, stored: &Stored) {
        match stored.failed() {
            // It is there twice.
            Some(failed) if failed.len() < MARK as usize => self.do_without(failed),
            Some(_) | None => return self.break_down(stored.failure(Failure::Journal)),
        }
        self.journal.note_durable(0, self.checkpoint.marking);
    }

    /// The record is durable.
    pub(super) fn handle_record(&mut self, stored: &Stored) {
        let Some(failed) = stored.failed() else { return self.break_down(Failure::Disk) };
        let Some(mut committing) = self.committing.take() else { return };
        let record = committing.record;
        if !failed.is_empty() {
            self.do_without(failed);
            let at = self.journal.lba(self.journal.place_of(record));
            let failed: Vec<u32> = failed.iter().map(|&lba| (lba - at).get() as u32).collect();
            self.journal.note_failed(record, &failed);
            if !committing.shape.lasts_without(&failed) {
                // What there is of it counts, if at all, for the same as what is written elsewhere.
                self.journal.forget(record);
                committing.tries += 1;
                if committing.tries >= RECORD_TRIES {
                    self.committing = Some(committing);
                    return self.break_down(Failure::Journal);
                }
                committing.state = State::Blocked;
                self.committing = Some(committing);
                return;
            }
        }
        self.journal.note_durable(record, committing.oldest);
        self.owed.retain(|owed| owed.freed_by > record);
        self.early.note_durable(record);
        for lead in committing.revoked {
            if let Some(older) = self.checkpoint.remove(lead) {
                self.cache.release(lead, older);
            }
        }
        // One that was freed since comes to its place as well: a crash may come before that is durable.
        for (lead, bytes) in committing.sealed {
            if let Some(older) = self.checkpoint.insert(lead, bytes, record) {
                self.cache.release(lead, older);
            }
        }
        self.ready.extend(committing.waiting);
        self.ready.extend(committing.syncs);
    }

    /// A sync job is attempted.
    pub(super) fn run_sync_job(&mut self, id: JobId, mut sync: Syncing) {
        if self.settings.mode == MountMode::ReadOnly {
            return self.end_sync(&sync, Answer::Done);
        }
        if matches!(self.phase, Phase::Broken(_)) {
            return self.end_sync(&sync, Answer::Failed(Errno::Io));
        }
        match sync.step {
            SyncStep::Pages => {
                let dirty: Vec<u64> = match sync.inode {
                    Some(inode) => {
                        Some(inode).filter(|&one| self.is_dirty(one)).into_iter().collect()
                    }
                    None => self.dirty_files(),
                };
                sync.step = SyncStep::Record;
                if dirty.is_empty() {
                    return self.run_sync_job(id, sync);
                }
                sync.left = dirty.len();
                for &inode in &dirty {
                    self.begin_flush(inode);
                    self.file(inode).waiting.push(id);
                }
                self.keep(id, Job::Sync(sync));
            }
            SyncStep::Record if sync.left > 1 => {
                sync.left -= 1;
                self.keep(id, Job::Sync(sync));
            }
            SyncStep::Record => {
                sync.step = SyncStep::Done;
                if !self.running.is_empty() {
                    self.running.syncs.push(id);
                } else if let Some(committing) = &mut self.committing {
                    committing.syncs.push(id);
                } else {
                    return self.end_sync(&sync, Answer::Done);
                }
                self.keep(id, Job::Sync(sync));
            }
            SyncStep::Done => self.end_sync(&sync, Answer::Done),
        }
    }

    /// Why a file that was to be synced, or any of all of them, is not all on the disk; said once.
    fn error_of(&mut self, sync: &Syncing) -> Option<Errno> {
        match sync.inode {
            Some(inode) => self.files.get_mut(inode)?.error.take(),
            None => self.not_written.take(),
        }
    }

    fn end_sync(&mut self, sync: &Syncing, answer: Answer) {
        match sync.then {
            Then::Reply(request) => {
                let answer = self.error_of(sync).map_or(answer, Answer::Failed);
                self.reply(request, answer);
            }
            Then::Wake(job) => self.ready.push_back(job),
            Then::Nothing => {
                self.is_syncing = false;
                if !self.dirty_files().is_empty() {
                    self.begin_commit_soon(self.moved_at);
                }
            }
        }
    }

    /// Everything that is in memory of files comes into a transaction and becomes durable; a job is ready then.
    pub(super) fn sync_for(&mut self, job: JobId, inode: Option<u64>) {
        self.begin_sync(Then::Wake(job), inode);
    }

    fn begin_sync(&mut self, then: Then, inode: Option<u64>) {
        let id = self.new_job(Job::Sync(Syncing { inode, then, step: SyncStep::Pages, left: 0 }));
        self.ready.push_back(id);
    }

    pub(super) fn run_sync(&mut self, id: JobId, request: RequestId, inode: Option<u64>) {
        let then = Then::Reply(request);
        self.run_sync_job(id, Syncing { inode, then, step: SyncStep::Pages, left: 0 });
    }
}

/// A record's sectors: descriptor, payload, and descriptor again.
fn assemble(descriptor: &Descriptor, first: Lba, payload: Vec<Piece>) -> Vec<Piece> {
    let count = u64::from(descriptor.sectors());
    let behind = first + Sectors::new(u64::from(descriptor.record_sectors()) - count);
    let copy = |from: Lba| {
        let places: Vec<Lba> = (0..count).map(|at| from + Sectors::new(at)).collect();
        let sectors = descriptor.encode(&places);
        Piece::whole(Arc::new(Buf::copy_of(sectors.as_flattened())))
    };
    let mut pieces = vec![copy(first)];
    pieces.extend(payload);
    pieces.push(copy(behind));
    pieces
}

#[cfg(test)]
mod tests;
