//! The machine itself: requests and its own jobs over attempts, transactions, and commands to the disk.
//!
//! ```text
//!   requests --> jobs --> attempts --> running transaction --> committing --> committed --> in place --> over
//!                 ^                         |                     |
//!                 |                         | direct writes       | one record of the journal, durable
//!            units, sectors read            v                     v
//!                                          disk                 answers to Sync
//! ```
//!
//! # Invariants
//!
//! - EN1. A job changes nothing before its attempt is complete; then all its changes are in the running transaction.
//! - EN2. A transaction's record is written when everything that it points to is on the medium: what was written directly has
//!   ended, and was flushed. So were repairs of what it makes stale ([`repairs`]).
//! - EN3. One transaction commits at a time, in the order of their names.
//! - EN4. A unit is written in place only as a durable record has it; a place of the journal is written over only when everything of
//!   its record is in place and flushed, and a durable record says so.
//! - EN5. What was freed is not taken before that is durable, and nothing is inside the disk for it.

mod ahead;
mod checkpoint;
mod codes;
mod commit;
mod complements;
mod deferred;
mod early;
mod files;
mod flush;
mod job;
mod jobs;
mod journal;
#[cfg(test)]
mod life_cycle_tests;
mod mounting;
mod places;
mod plan;
mod reads;
mod reencode;
mod repairs;
mod rewriting;
mod room;
mod scrub;
mod sectors;
mod settling;
mod spares;
mod stale;
mod units;
mod unwritable;
mod writes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::Request as BlockRequest;
use levelhead_block::{
    Command, Durability, Effort, Outcome, Payload, Piece, Reply, RequestId, ZeroTail,
};
use levelhead_units::{Extent, Instant, Lba, SECTOR_SIZE, Sectors};

use self::checkpoint::Checkpoint;
use self::codes::Codes;
use self::commit::{Committing, Transaction};
use self::deferred::Waiting;
use self::early::EarlyPages;
use self::files::Files;
use self::flush::DirectWrite;
use self::job::{Asking, Job, JobId};
use self::journal::Journal;
pub(crate) use self::journal::RECORDS;
use self::mounting::Mounting;
use self::reads::PageRead;
use self::repairs::Repairs;
use self::rewriting::Rewriting;
use self::room::page_cost;
use self::scrub::Scrubbing;
use self::sectors::SectorCache;
use self::settling::Settling;
use self::spares::Spares;
use self::stale::StaleExtents;
use self::units::UnitRead;
use self::unwritable::{Stored, Unclear, Unwritable};
use crate::action::{Action, Event, SubId, Submit};
use crate::attempt::{Attempt, Changed, CutPages, Ground, RoomLeft, Stop};
use crate::cache::Cache;
use crate::format::superblock::Superblock;
use crate::ops::extents::Pages;
use crate::recent::Recent;
use crate::request::{Answer, Errno, Request};
use crate::rules::Rule;
use crate::settings::{MountMode, Settings};
use crate::status::{Failure, State, Status};

/// See the crate.
#[derive(Debug)]
pub struct Filesystem {
    superblock: Superblock,
    settings: Settings,
    phase: Phase,
    /// Whether it is to be unmounted, as soon as its phase allows that.
    is_leaving: bool,
    /// Why something that was written is lost, until a sync of all files has said so.
    not_written: Option<Errno>,
    /// The time of day that a request has named last: its own jobs have it from there.
    day: crate::format::inode::Moment,
    cache: Cache,
    /// Units of which no copy is right.
    lost: BTreeSet<Lba>,
    recent: Recent,
    /// What was freed and may not be taken yet, with the transaction that frees it.
    freed: Vec<Freed>,
    sectors: SectorCache,
    codes: Codes,
    files: Files,
    /// Those of them that may have something that is in no transaction.
    touched: BTreeSet<u64>,
    jobs: BTreeMap<JobId, Job>,
    ready: VecDeque<JobId>,
    /// Jobs that wait until a transaction can take them.
    stalled: Vec<JobId>,
    /// Writes that wait until less of others is in memory.
    crowded: Vec<JobId>,
    job_last: u64,
    unit_reads: BTreeMap<Lba, UnitRead>,
    page_reads: BTreeMap<JobId, PageRead>,
    scrubs: BTreeMap<JobId, Scrubbing>,
    repairs: Repairs,
    unwritable: Unwritable,
    deferred: Waiting,
    rewriting: Rewriting,
    /// Jobs that go on when a sector has been written anew, or flushed.
    after_repairs: Vec<JobId>,
    running: Transaction,
    committing: Option<Committing>,
    journal: Journal,
    checkpoint: Checkpoint,
    /// Sectors of files that durable or coming records have and that are not in place yet.
    logged: BTreeMap<Lba, Logged>,
    stale: StaleExtents,
    /// The one of these that was begun last.
    placed_last: Lba,
    /// Records that are needed for pages of files.
    early: EarlyPages,
    /// Records that are needed for what was freed, until that is durable.
    owed: Vec<Owed>,
    subs: BTreeMap<SubId, Inside>,
    direct: BTreeMap<SubId, DirectWrite>,
    sub_last: u64,
    actions: VecDeque<Action>,
    counts: Counts,
    /// Pages of files in memory that are in no transaction.
    dirty: u64,
    /// Sectors that one of them may come to need.
    page_cost: u64,
    /// Free sectors, once they were counted.
    free: Option<u64>,
    /// When the running transaction is to be committed.
    commit_at: Option<Instant>,
    /// When it is if nothing is changed until then.
    idle_at: Option<Instant>,
    /// Whether that is under way.
    is_syncing: bool,
    settling: Settling,
    spares: Spares,
    /// When it moved last.
    moved_at: Instant,
}

/// Where it is in its life.
#[derive(Debug)]
enum Phase {
    Mounting(Box<Mounting>),
    Mounted,
    /// Everything is brought to its place.
    Unmounting,
    /// The superblocks say so; how many are still to be written.
    Closing(u8),
    Unmounted,
    /// The disk does not do what it should: nothing is written any more.
    Broken(Failure),
}

/// How an unmount has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything that was written is in its place, and the superblocks say so.
    Clean,
    /// Something that was written is not on the disk: the disk has not stored what it should, or had no room for it. What was synced is
    /// there after the next mount.
    NotStored,
}

/// What a command is for, and what it touches.
#[derive(Debug)]
struct Inside {
    what: Purpose,
    extent: Option<Extent>,
    /// Of a write.
    written: Option<WriteCommand>,
}

/// A write, as it was asked for: what of it fails is written again.
#[derive(Debug)]
struct WriteCommand {
    command: Command,
    pieces: Vec<Piece>,
}

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Some copies of a unit.
    Unit(Lba),
    /// The near copies of one or several.
    Units,
    Pages(JobId),
    /// Rewrites what was repaired: nothing waits for it.
    Repair,
    /// Writes new sectors of a file, for the running transaction of this name or an older one.
    Direct,
    FlushBeforeRecord,
    Record,
    Mark,
    InPlace,
    /// Reads a copy of a unit that could not be written.
    ReadBack(Unclear),
    FlushInPlace,
    /// Makes repairs safe.
    FlushRepairs,
    Place(Lba),
    Mount,
    Superblock,
    /// A copy of a unit, for a scrub.
    Scrub(JobId),
}

impl Purpose {
    /// Whether it may change what is on the disk.
    fn is_write(self) -> bool {
        match self {
            Self::Unit(_) | Self::Units | Self::Pages(_) | Self::Scrub(_) | Self::ReadBack(_) => {
                false
            }
            Self::FlushBeforeRecord | Self::FlushInPlace | Self::FlushRepairs => false,
            Self::Repair | Self::Direct | Self::Record | Self::Mark | Self::InPlace => true,
            Self::Place(_) | Self::Mount | Self::Superblock => true,
        }
    }
}

/// A sector of a file in the journal.
#[derive(Clone, Debug)]
struct Logged {
    page: Piece,
    sum: u32,
    /// The checksum of what is in its place until then; nothing if that counts as zeroes.
    old: Option<u32>,
    record: u64,
}

#[derive(Clone, Copy, Debug)]
struct Freed {
    extent: Extent,
    record: u64,
}

/// A record that has something of what was freed.
#[derive(Clone, Copy, Debug)]
struct Owed {
    /// It, and those after it.
    record: u64,
    /// The transaction that frees it.
    freed_by: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    repaired: u64,
    lost: u64,
    decoded: u64,
    retried: u64,
    files_damaged: u64,
    unwritable: u64,
}

/// What has come of an attempt of a job.
enum Attempted<T> {
    /// It is complete, and its changes are in the running transaction.
    Complete(T),
    /// Units are read for it; it is ready again when they are there.
    Waits,
    Failed(Errno),
}

impl Filesystem {
    /// One that is mounted from now on: what a crash has left is put in order before the first request is answered.
    /// `superblock` is the one with the highest generation that was found.
    pub fn new(now: Instant, superblock: Superblock, settings: Settings) -> Self {
        // A unit takes 4 KiB and its place in the maps.
        let units = (settings.cache.get() / 2).max(64) as usize;
        let journal = Journal::new(&superblock);
        let running = Transaction::new(superblock.record);
        let mut filesystem = Self {
            cache: Cache::new(units),
            sectors: SectorCache::new((settings.cache.get() / 4).max(2) as usize),
            codes: Codes::default(),
            phase: Phase::Mounting(Box::default()),
            is_leaving: false,
            not_written: None,
            day: crate::format::inode::Moment::default(),
            lost: BTreeSet::new(),
            recent: Recent::default(),
            freed: Vec::new(),
            files: Files::default(),
            touched: BTreeSet::new(),
            jobs: BTreeMap::new(),
            ready: VecDeque::new(),
            stalled: Vec::new(),
            crowded: Vec::new(),
            job_last: 0,
            unit_reads: BTreeMap::new(),
            page_reads: BTreeMap::new(),
            scrubs: BTreeMap::new(),
            repairs: Repairs::default(),
            unwritable: Unwritable::default(),
            deferred: Waiting::default(),
            rewriting: Rewriting::default(),
            after_repairs: Vec::new(),
            running,
            committing: None,
            journal,
            checkpoint: Checkpoint::default(),
            logged: BTreeMap::new(),
            stale: StaleExtents::default(),
            placed_last: Lba::ZERO,
            early: EarlyPages::default(),
            owed: Vec::new(),
            subs: BTreeMap::new(),
            direct: BTreeMap::new(),
            sub_last: 0,
            actions: VecDeque::new(),
            counts: Counts::default(),
            dirty: 0,
            page_cost: page_cost(&superblock),
            free: None,
            commit_at: None,
            idle_at: None,
            is_syncing: false,
            settling: Settling::default(),
            spares: Spares::default(),
            moved_at: now,
            superblock,
            settings,
        };
        filesystem.begin_mount(now);
        filesystem
    }

    /// The root directory's inode.
    pub fn root(&self) -> u64 {
        self.superblock.root
    }

    /// Something is asked for.
    pub fn handle_request(&mut self, now: Instant, request: Request) {
        if matches!(self.phase, Phase::Closing(_) | Phase::Unmounted) {
            // Nothing is done any more: it comes too late.
            return self.reply(request.id, Answer::Failed(Errno::Io));
        }
        if request.what.changes() {
            self.idle_at = Some(now + self.settings.commit_idle);
        }
        self.day = self.day.max(request.now);
        let id = self.new_job(Job::Request(Box::new(Asking::new(request))));
        self.ready.push_back(id);
        self.advance(now);
    }

    /// The disk has ended a command.
    pub fn handle_done(&mut self, now: Instant, sub: SubId, reply: Reply) {
        let Some((sub, reply)) = self.narrow_down(sub, reply) else { return self.advance(now) };
        let Some(inside) = self.subs.remove(&sub) else { panic!("{sub:?} is not inside") };
        self.note_repairs_done(sub, &reply);
        let stored = Stored::of(inside.extent, &reply);
        match inside.what {
            Purpose::Unit(lead) => {
                let extent = inside.extent.expect("a read has a place");
                self.handle_unit(lead, extent, reply);
            }
            Purpose::Units => {
                let extent = inside.extent.expect("a read has a place");
                self.handle_units(extent, reply);
            }
            Purpose::Pages(job) => self.handle_pages(job, sub, reply),
            Purpose::Repair => {
                self.handle_rewritten(inside.extent.expect("a write has a place"), &stored);
            }
            Purpose::Direct => self.handle_direct(sub, &stored),
            Purpose::FlushBeforeRecord => self.handle_flushed(&reply),
            Purpose::Record => self.handle_record(&stored),
            Purpose::Mark => self.handle_mark(&stored),
            Purpose::InPlace => {
                self.handle_in_place(sub, inside.extent.expect("a write has a place"), &stored);
            }
            Purpose::ReadBack(unclear) => self.handle_read_back(sub, unclear, reply),
            Purpose::FlushInPlace => self.handle_flushed_in_place(&reply),
            Purpose::FlushRepairs if is_stored(&reply) => {}
            Purpose::FlushRepairs => self.break_down(Failure::Flush),
            Purpose::Place(group) => self.handle_placed(group, sub, &stored),
            Purpose::Mount => self.handle_mount(sub, inside.written, reply),
            Purpose::Superblock => self.handle_superblock(&stored),
            Purpose::Scrub(job) => {
                let extent = inside.extent.expect("a read has a place");
                self.handle_scrub(job, sub, extent, reply);
            }
        }
        self.advance(now);
    }

    /// Time has passed; early calls do no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// When [`Filesystem::handle_timeout`] is to be called.
    pub fn deadline(&self) -> Option<Instant> {
        match self.phase {
            // What was due when it moved last waits for the disk, or for what is due later.
            Phase::Mounted => {
                let due = [
                    self.commit_due(),
                    self.settling.deadline(),
                    self.deferred.deadline(),
                    self.rewriting.deadline(),
                ];
                let due = due.into_iter().flatten();
                due.filter(|&at| at > self.moved_at).min()
            }
            _ => None,
        }
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Brings everything to its place, and says on the disk that it is there; a mount that is under way is completed first. Requests
    /// that come before everything is in its place are answered; those that come later fail.
    pub fn unmount(&mut self, now: Instant) {
        self.is_leaving = true;
        self.advance(now);
    }

    /// How that has ended, once nothing is inside the disk.
    pub fn ended(&self) -> Option<Ended> {
        if !self.subs.is_empty() {
            return None;
        }
        let has_stored = match self.phase {
            Phase::Unmounted => self.not_written.is_none(),
            Phase::Broken(_) => self.settings.mode == MountMode::ReadOnly,
            Phase::Mounting(_) | Phase::Mounted | Phase::Unmounting | Phase::Closing(_) => {
                return None;
            }
        };
        Some(if has_stored { Ended::Clean } else { Ended::NotStored })
    }

    /// Whether it has ended, one way or the other.
    pub fn is_unmounted(&self) -> bool {
        self.ended().is_some()
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        let state = match self.phase {
            Phase::Mounting(_) => State::Mounting,
            Phase::Broken(failure) => State::Failed(failure),
            _ if self.settings.mode == MountMode::ReadOnly => State::ReadOnly,
            Phase::Mounted => State::Writing,
            Phase::Unmounting | Phase::Closing(_) | Phase::Unmounted => State::Unmounting,
        };
        Status {
            state,
            sectors_unwritable: self.counts.unwritable,
            groups_stale: self.stale.not_noted() as u64,
            sectors_repaired: self.counts.repaired,
            sectors_lost: self.counts.lost,
            sectors_decoded: self.counts.decoded,
            sectors_retried: self.counts.retried,
            files_damaged: self.counts.files_damaged,
        }
    }

    /// What is still to be done.
    #[cfg(test)]
    pub(crate) fn left(&self) -> String {
        format!(
            "{:?}, running {:?}, committing {:?}, jobs {:?}, ready {:?}, stalled {:?}, stale {:?}, files {:?}, commit at {:?}",
            self.checkpoint,
            self.running,
            self.committing.is_some(),
            self.jobs,
            self.ready,
            self.stalled,
            self.stale.not_noted(),
            self.files.numbers(),
            self.commit_at
        )
    }

    /// Does whatever can be done now.
    fn advance(&mut self, now: Instant) {
        self.moved_at = self.moved_at.max(now);
        if self.is_leaving && matches!(self.phase, Phase::Mounted) {
            self.phase = Phase::Unmounting;
        }
        for round in 0_u32.. {
            self.release_freed();
            let mut moved = [false; 9];
            moved[0] = self.unstall();
            if matches!(self.phase, Phase::Mounted | Phase::Unmounting | Phase::Broken(_)) {
                moved[1] = self.run_jobs(now);
                moved[2] = self.flush_on();
                moved[3] = self.commit_on(now);
                moved[4] = self.place_on(now);
                moved[5] = self.settle_on();
                moved[6] = self.rewrite_on(now);
                moved[7] = self.rewrite_files_on(now);
                moved[8] = self.unmount_on();
            }
            if moved == [false; 9] {
                if !self.is_stuck() {
                    return;
                }
                self.break_down(Failure::Journal);
            }
            assert!(round < ROUNDS_MAX, "it moves in a circle: {moved:?}");
        }
    }

    /// An attempt of a job that was promised room, or gives some back. If it is complete, its changes are in the running transaction
    /// (EN1).
    fn attempt<T>(
        &mut self,
        job: JobId,
        operation: impl FnOnce(&mut Attempt<'_>) -> Result<T, Stop>,
    ) -> Attempted<T> {
        self.attempt_with(job, self.room_in_all(), operation)
    }

    /// The same for one that may take what is left beside what was promised.
    fn attempt_beside<T>(
        &mut self,
        job: JobId,
        operation: impl FnOnce(&mut Attempt<'_>) -> Result<T, Stop>,
    ) -> Attempted<T> {
        self.attempt_with(job, self.room_beside(), operation)
    }

    fn attempt_with<T>(
        &mut self,
        job: JobId,
        room: RoomLeft,
        operation: impl FnOnce(&mut Attempt<'_>) -> Result<T, Stop>,
    ) -> Attempted<T> {
        let Self { superblock, cache, recent, lost, .. } = self;
        let mut attempt = Attempt::new(Ground { superblock, recent, room, cache, lost });
        match operation(&mut attempt) {
            Ok(brought) => {
                let changed = attempt.finish();
                if !changed.units.is_empty() && self.is_read_only() {
                    return Attempted::Failed(Errno::ReadOnly);
                }
                self.merge(changed);
                Attempted::Complete(brought)
            }
            Err(Stop::Fail(errno)) => Attempted::Failed(errno),
            Err(Stop::Need) => {
                let missing = attempt.take_missing();
                self.fetch_units(job, &missing);
                Attempted::Waits
            }
        }
    }

    /// What can be read of units in memory alone.
    fn peek<T>(
        &mut self,
        operation: impl FnOnce(&mut Attempt<'_>) -> Result<T, Stop>,
    ) -> Option<T> {
        let room = self.room_in_all();
        let Self { superblock, cache, recent, lost, .. } = self;
        operation(&mut Attempt::new(Ground { superblock, recent, room, cache, lost })).ok()
    }

    /// Reads the units that an attempt would need next, without one.
    fn look_ahead(&mut self, operation: impl FnOnce(&mut Attempt<'_>) -> Result<(), Stop>) {
        let room = self.room_in_all();
        let Self { superblock, cache, recent, lost, .. } = self;
        let mut attempt = Attempt::new(Ground { superblock, recent, room, cache, lost });
        // What it cannot do is said when it is asked for.
        operation(&mut attempt).ok();
        for lead in attempt.take_missing() {
            self.fetch_unit(lead);
        }
    }

    /// Whether a rule is kept.
    fn keeps(&self, rule: Rule) -> bool {
        self.settings.rules.keep(rule)
    }

    fn is_read_only(&self) -> bool {
        self.settings.mode == MountMode::ReadOnly || matches!(self.phase, Phase::Broken(_))
    }

    /// What an attempt has changed is part of the running transaction.
    fn merge(&mut self, changed: Changed) {
        let Changed { units, freed, freed_units, gained, cut } = changed;
        self.free = self.free.map(|free| free.saturating_add_signed(gained));
        let record = self.running.record;
        for lead in freed_units {
            self.running.units.remove(&lead);
            self.running.revoked.insert(lead);
            self.recent.unreserve(lead);
            self.cache.remove(lead);
        }
        for (lead, unit) in units {
            self.running.units.insert(lead);
            self.running.revoked.remove(&lead);
            self.lost.remove(&lead);
            self.recent.unreserve(lead);
            self.overtake_unit(lead);
            self.cache.insert_changed(lead, unit, record);
        }
        for CutPages { inode, from, to } in cut {
            self.end_early(inode, Pages { from, to });
        }
        for extent in freed {
            self.note_freed(extent, record);
        }
    }

    /// Sectors were freed: nothing of the journal may come to them any more.
    fn note_freed(&mut self, extent: Extent, record: u64) {
        self.recent.add(extent);
        self.freed.push(Freed { extent, record });
        self.forget_deferred(extent);
        let gone: Vec<Lba> =
            self.logged.range(extent.lba..extent.end()).map(|(&lba, _)| lba).collect();
        for lba in gone {
            self.logged.remove(&lba);
            self.running.logged.remove(&lba);
        }
        for group in self.stale.inside(extent) {
            let stale = self.stale.remove(group).expect("it was found");
            self.running.stale.remove(&group);
            self.wake_readers_of(Some(group));
            if stale.record < record {
                self.owed.push(Owed { record: stale.record, freed_by: record });
            }
        }
        // What was brought to its place long ago as well: as long as a record counts, a crash brings it there once more.
        self.running.revoked.extend(self.journal.named_in(extent));
    }

    /// What may be taken again (EN5).
    fn release_freed(&mut self) {
        if self.freed.is_empty() {
            return;
        }
        let durable = self.journal.durable();
        let is_touched = |extent: &Extent| {
            self.subs.values().any(|inside| {
                inside
                    .extent
                    .is_some_and(|other| other.lba < extent.end() && extent.lba < other.end())
            })
        };
        let may_go: Vec<Extent> = self
            .freed
            .iter()
            .filter(|freed| freed.record <= durable && !is_touched(&freed.extent))
            .map(|freed| freed.extent)
            .collect();
        for extent in may_go {
            self.recent.remove(extent);
            for lba in self.repairs.worn.inside(extent) {
                self.recent.add(Extent::new(lba, Sectors::new(1)));
            }
            self.freed.retain(|freed| freed.extent != extent);
        }
    }

    /// Hands a command to the disk.
    fn submit(&mut self, what: Purpose, request: BlockRequest) -> SubId {
        self.sub_last += 1;
        let sub = SubId(self.sub_last);
        let extent = request.command.extent();
        let written = match &request.payload {
            Payload::Pieces(pieces) if request.command.is_write() => {
                Some(WriteCommand { command: request.command, pieces: pieces.clone() })
            }
            Payload::Pieces(_) | Payload::Room(_) | Payload::None => None,
        };
        self.subs.insert(sub, Inside { what, extent, written });
        self.actions.push_back(Action::Submit(Submit { sub, request }));
        sub
    }

    fn submit_read(&mut self, what: Purpose, extent: Extent, effort: Effort) -> SubId {
        self.submit(what, BlockRequest::read(extent, effort))
    }

    fn submit_write(
        &mut self,
        what: Purpose,
        lba: Lba,
        pieces: Vec<Piece>,
        durability: Durability,
    ) -> SubId {
        let pieces = Piece::aligned(pieces);
        let extent = Extent::new(lba, Piece::count(&pieces));
        let zero_tail = match self.superblock.forced {
            Some(_) => zero_tail_of(&pieces),
            None => ZeroTail::None,
        };
        let command = Command::Write { extent, durability, zero_tail };
        self.submit(what, BlockRequest::new(command, Payload::Pieces(pieces)))
    }

    fn submit_flush(&mut self, what: Purpose) -> SubId {
        let sub = self.submit(what, BlockRequest::bare(Command::Flush));
        self.repairs.note_flush(sub);
        sub
    }

    /// The disk does not store what it should: nothing is written any more.
    fn break_down(&mut self, failure: Failure) {
        if matches!(self.phase, Phase::Broken(_)) {
            return;
        }
        self.phase = Phase::Broken(failure);
        self.actions.push_back(Action::Event(Event::ReadOnly { failure }));
        // They find that nothing is written any more.
        self.ready.extend(std::mem::take(&mut self.running.syncs));
        self.ready.extend(std::mem::take(&mut self.running.waiting));
        if let Some(committing) = self.committing.take() {
            self.ready.extend(committing.syncs);
            self.ready.extend(committing.waiting);
        }
        self.ready.extend(std::mem::take(&mut self.stalled));
        self.ready.extend(std::mem::take(&mut self.crowded));
        self.wake_readers_of(None);
    }

    fn reply(&mut self, id: RequestId, answer: Answer) {
        self.actions.push_back(Action::Reply { id, answer });
    }

    fn new_job(&mut self, job: Job) -> JobId {
        self.job_last += 1;
        let id = JobId(self.job_last);
        self.jobs.insert(id, job);
        id
    }
}

/// Rounds of one advance: far more than jobs and commands that one event can set free.
const ROUNDS_MAX: u32 = 100_000;

/// The zeroes that all sectors of a write end in, as a drive that makes use of them would find them.
fn zero_tail_of(pieces: &[Piece]) -> ZeroTail {
    let mut zeroes = 512;
    for sector in pieces.iter().flat_map(|piece| piece.bytes().chunks(SECTOR_SIZE)) {
        let is_zero = |bytes: usize| sector[SECTOR_SIZE - bytes..].iter().all(|&byte| byte == 0);
        zeroes =
            [512, 256, 0].into_iter().find(|&bytes| bytes <= zeroes && is_zero(bytes)).unwrap_or(0);
        if zeroes == 0 {
            return ZeroTail::None;
        }
    }
    if zeroes == 512 { ZeroTail::B512 } else { ZeroTail::B256 }
}

/// Whether a write or a flush has done what it should.
fn is_stored(reply: &Reply) -> bool {
    reply.outcome == Outcome::GOOD
}
