//! A redundant array of drives as a state machine: layouts, reads, writes, queues and policies.
//!
//! ```text
//!   handle_request --> [ stripe locks ] --> read / write / flush / resync
//!                                                |  enqueue        ^
//!                                                v                 |
//!                                        [ queue per drive ]       |
//!                                                |  window         |
//!                                                v                 |
//!   poll --> Submit, Combine, Answer ..    (the runtime's drives)  |
//!   handle_done, handle_lost, handle_health, handle_timeout -------+
//! ```
//!
//! The array decides and nothing more: it holds no bytes, performs no I/O and reads no clock. Buffers
//! are names, and arithmetic is an action, so that a server runs a fast kernel, a checker the naive one,
//! and a timing study none. Emulated, real and modelled drives run behind this same code.
//!
//! # Invariants
//!
//! - A1. Every request is answered exactly once.
//! - A2. No drive is asked after it was lost, and [`Event::Lost`] comes before every answer that relies
//!   on the loss.
//! - A3. Redundancy that is not valid (not resynced yet) is never used.
//! - A4. Every buffer that was acquired is released: a buffer that a drive fills when the drive has ended that
//!   command, a buffer that drives write from when all of them have ended and no answer needs its bytes.
//! - A5. Calls of [`Array::handle_timeout`] before [`Array::deadline`] do no harm, and calls after it only
//!   delay what is due. A read's own deadline only decides which drives it still counts on, never what it
//!   answers.
//!
//! # What it leaves out
//!
//! Without a journal
//! the write hole is open, and the whole array is resynced after a crash.
//!
//! # References
//!
//! - `[ERAID]` pro-active use of redundancy against fail-slow.
//! - `[TAIL16]` strategies that tolerate slow drives.

#![forbid(unsafe_code)]

mod action;
mod background;
mod core;
mod counters;
mod drives;
mod due;
mod event;
mod fields;
pub mod journal;
mod meta;
pub mod offline;
mod operations;
mod ops;
pub mod policy;
mod server_clock;
mod settings;
mod shape;
mod timers;
mod verify;

use std::collections::{BTreeMap, VecDeque};

use levelhead_block::{Command, Health, Outcome};
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Instant, Sectors};

pub use action::{Action, Answer, Cost, Deliver, Inscribed, Segments, SubId, Submit, Sums};
pub use background::budget::Budget;
pub use background::places::NotReplaced;
pub use background::progress::{
    Blame, CopyEnd, CopyProgress, DriveFound, Fault, RebuildProgress, Resync, ResyncProgress,
    ScrubFound, ScrubProgress, ScrubState,
};
pub use counters::{Counter, Counters, DriveCounters};
pub use drives::detect::{self, DriveEvent, EventKind, Figures, Refusal};
pub use drives::queue::HostOrder;
pub use drives::silence::Patience;
pub use event::{ArrayEvent, Ending, Event, Flaw};
pub use levelhead_block::{BufId, Combine, Place, RequestId, Segment};
pub use meta::own::{Held, NewMember};
pub use meta::recorded::Recorded;
pub use meta::state::DamagedSummary;
pub use meta::wishes::{GoesOn, RebuildWish, ScrubMark, Wishes};
pub use meta::{assembly, damaged, membership, metadata, regions, reserve, superblock, version2};
pub use policy::{Again, AnswerWhen, Assisted, First, Late, Plan, Policy, Surplus, tau};
pub use server_clock::ServerClock;
pub use settings::{Content, JournalSettings, Left, Settings};
pub use shape::redundancy::{Redundancy, Term};
pub use shape::{
    Area, Cell, DRIVE_SECTORS_MAX, DriveCounts, Family, Layout, Parity, Row, Spec, SpecError,
};
pub use verify::findings::VerifyStatus;
pub use verify::settings::{Promise, Reach, VerifyMode, VerifySettings, VerifyWrites};

use crate::background::budget::Pacer;
use crate::background::copying::Copies;
use crate::background::rebuild::Rebuild;
use crate::background::scrub::Scrub;
use crate::core::in_progress::InProgress;
use crate::core::{Core, OpId, Sub};
use crate::event::ResyncTold;
use crate::journal::Journal;
pub use crate::journal::status::JournalStatus;
use crate::meta::membership::{Membership, Why};
use crate::meta::metadata::Forced;
use crate::meta::store::Store;
use crate::ops::check::{CheckOp, Scope};
use crate::ops::fill::{FillOp, Span};
use crate::ops::flush::FlushOp;
use crate::ops::locks::StripeLocks;
use crate::ops::mend::{self, MendOp};
use crate::ops::read::{EndedReads, ReadOp, Wanted};
use crate::ops::write::{Cause, Part, WriteOp};
use crate::policy::tau::DriveView;
use crate::timers::Timers;
use crate::verify::checking::{Checks, HeldRead};
use crate::verify::metadata::RecordChecks;

/// An array. Call [`Array::poll`] until it returns `None` after every other call.
#[derive(Clone, Debug)]
pub struct Array {
    core: Core,
    policy: Policy,
    locks: StripeLocks,
    ops: InProgress<OpId, Op>,
    ended_reads: EndedReads,
    op_next: OpId,
    /// Operations that hold their stripes and have not begun, in order.
    granted: VecDeque<OpId>,
    resync: Resync,
    scrub: Scrub,
    /// When the next step of it may begin.
    pacer: Pacer,
    /// What has been told of it.
    resync_told: ResyncTold,
    rebuild: Rebuild,
    copies: Copies,
    checks: Checks,
    record_checks: RecordChecks,
    /// What is recorded of the array, where something is.
    store: Option<Store>,
    /// Where what is written goes first, where a journal is kept.
    journal: Option<Journal>,
    /// Operations that hold their stripes and wait until data may be written, or for the journal.
    unopened: Vec<OpId>,
    stop: Stop,
    /// When the array ends whether or not everything is safe.
    stop_by: Option<Instant>,
    /// When all requests that are still waiting are given up.
    give_up_at: Option<Instant>,
    /// Clients' requests that are not answered yet.
    outstanding: usize,
    /// When operations that clients wait for came, where there is a limit to that.
    arrived: BTreeMap<OpId, Instant>,
    /// When it was last looked for drives that are silent or keep changes waiting.
    looked: Instant,
    /// Until when no drive is declared unresponsive or failed for its silence (S5, S6).
    spared_until: Instant,
    /// Drives that kept a write or a flush waiting then for as long as makes a drive lost.
    kept_waiting: DriveSet,
    /// Drives that were done without because they were behind, and when.
    were_behind: Vec<(DriveIdx, Instant)>,
    timers: Timers,
}

#[derive(Clone, Debug)]
enum Op {
    /// Waits for its stripes.
    Locked(Start),
    // In boxes, so that little is moved when operations come and go.
    Read(Box<ReadOp>),
    Write(Box<WriteOp>),
    Fill(Box<FillOp>),
    Flush(FlushOp),
    Check(Box<CheckOp>),
    Mend(Box<MendOp>),
}

/// Whether a step has changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moved {
    No,
    Yes,
}

/// Whether the array is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    No,
    Wanted,
    /// It has been said how it ended.
    Told,
}

/// The end of a command that an operation waits for.
#[derive(Clone, Copy)]
struct Ended<'a> {
    sub: SubId,
    state: &'a Sub,
    /// What a read filled, unless the drive is lost.
    buf: Option<BufId>,
    outcome: &'a Outcome,
}

#[derive(Clone, Debug)]
enum Start {
    Read(Wanted),
    Write(Cause),
    Check(Scope),
    Fill(Span),
    Mend(mend::Span),
}

impl Array {
    /// An array at rest. `streams` decides what is left to chance: the lanes of
    /// `paper32`, and where drives are probed.
    ///
    /// Panics if the window is zero or the drives hold no stripe.
    pub fn new(settings: &Settings, streams: Streams) -> Self {
        let core = Core::new(settings, streams);
        let wishes =
            settings.recorded.as_ref().map(|known| known.metadata.wishes).unwrap_or_default();
        let size = settings.area.size();
        assert!(core.layout.stripes() > 0, "{} sectors hold no stripe", size.get());
        let mut array = Self {
            core,
            policy: settings.policy,
            locks: StripeLocks::default(),
            ops: InProgress::default(),
            ended_reads: EndedReads::default(),
            op_next: 0,
            granted: VecDeque::new(),
            resync: Resync::Idle,
            scrub: Scrub::new(settings.spec.drives(), wishes.scrub),
            pacer: Pacer::new(settings.background),
            resync_told: ResyncTold::default(),
            rebuild: Rebuild::new(settings.background, wishes.rebuild),
            copies: Copies::default(),
            checks: Checks::new(settings.spec.members()),
            record_checks: RecordChecks::default(),
            store: settings.recorded.as_ref().map(Store::new),
            journal: Journal::new(settings),
            unopened: Vec::new(),
            stop: Stop::No,
            stop_by: None,
            give_up_at: None,
            outstanding: 0,
            arrived: BTreeMap::new(),
            looked: Instant::ZERO,
            spared_until: Instant::ZERO,
            kept_waiting: DriveSet::EMPTY,
            were_behind: Vec::new(),
            timers: Timers::default(),
        };
        if let Some(recorded) = &settings.recorded {
            for drive in array.core.drives.reachable().iter() {
                let own = recorded.owns[drive.as_usize()].as_ref();
                assert!(own.is_some(), "Q2: drive {drive} is present and was not found");
            }
            array.tell(ArrayEvent::Assembled {
                absent: array.core.drives.away(),
                forced: if recorded.forced_over.is_some() { Forced::Yes } else { Forced::No },
                unsynced: array.core.layout.stripes() - array.core.synced,
            });
            array.tell_scrub_goes_on();
        }
        array.set_timers(Instant::ZERO);
        array
    }

    /// How many sectors clients can address.
    pub fn size(&self) -> Sectors {
        self.core.layout.size()
    }

    /// Where everything lies.
    pub fn layout(&self) -> &Layout {
        &self.core.layout
    }

    /// Where the layout's sectors lie on every drive.
    pub fn area(&self) -> &Area {
        &self.core.area
    }

    /// The lost drives.
    pub fn lost(&self) -> DriveSet {
        self.core.drives.lost()
    }

    /// Those of them that are not being filled either.
    pub fn away(&self) -> DriveSet {
        self.core.drives.away()
    }

    /// Those of the lost drives whose loss is not safely recorded yet, where losses are recorded.
    pub fn unrecorded(&self) -> DriveSet {
        self.core.unrecorded
    }

    /// Stripes whose redundancy is valid, from the first on.
    pub fn synced(&self) -> u64 {
        self.core.synced
    }

    /// How far the resync is.
    pub fn resync(&self) -> Resync {
        self.resync
    }

    /// What it has done since it was started.
    pub fn counters(&self) -> Counters {
        self.core.counters
    }

    /// How reads are served.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Commands waiting for a drive or inside it.
    pub fn queue_len(&self, drive: DriveIdx) -> usize {
        self.core.drives.queue_len(drive)
    }

    /// What is known of a drive, and what policies decide from: what it says and what is seen of it.
    pub fn view(&self, now: Instant, drive: DriveIdx) -> DriveView {
        self.core.drives.view(now, drive)
    }

    /// How fast a drive is, compared with the others.
    pub fn figures(&self, now: Instant, drive: DriveIdx) -> Figures {
        self.core.drives.figures(now, drive)
    }

    /// Drives that are not read while others suffice: because they were found slow, or because an operator wants
    /// that.
    pub fn sat_out(&self) -> DriveSet {
        self.core.drives.sat_out()
    }

    /// Drives that have had something to do for long, and ended nothing.
    pub fn silent(&self) -> DriveSet {
        self.core.drives.silent()
    }

    /// Whether a command of this drive was refused, or has not reached it, and is sent again until it ends.
    pub fn has_refused(&self, drive: DriveIdx) -> bool {
        self.core.has_refused(drive)
    }

    /// Whether no request and no command is in progress.
    pub fn is_quiet(&self) -> bool {
        self.ops.is_empty() && self.core.is_quiet()
    }

    /// The same, except for commands of drives that are silent.
    pub fn is_quiet_but_for_silent(&self) -> bool {
        self.ops.is_empty() && self.core.is_quiet_but_for_silent()
    }

    /// A client asks for something. Of a write the client's buffer, [`BufId::Client`], has as many sectors
    /// as the command's extent (zeroes for [`Command::WriteZeroes`]), and is the array's until
    /// [`Action::Release`], which may come after the answer; what a read has brought, [`Action::Deliver`] says.
    ///
    /// Panics if the extent is empty or past the array's end.
    pub fn handle_request(&mut self, now: Instant, request: RequestId, command: Command) {
        assert!(command.fits(self.size()), "{command:?} is past the array's end");
        self.core.drives.note_arrival(now, self.outstanding);
        self.rebuild.note_request(now);
        self.outstanding += 1;
        let start = match command {
            Command::Read { extent, effort } => Start::Read(Wanted { request, extent, effort }),
            Command::Write { extent, durability, .. }
            | Command::WriteZeroes { extent, durability } => {
                let part = Part { request, extent, durability };
                if self.is_beyond_given_up() {
                    return self.refuse_write(now, part);
                }
                Start::Write(Cause::Client(vec![part]))
            }
            Command::Flush => {
                self.start_flush(now, request);
                return self.move_on(now);
            }
            Command::Trim { .. } => {
                // The content may stay, and a parity that covers it stays right.
                let (outcome, cost) = (Outcome::GOOD, Cost::default());
                return self.core.answer(DriveSet::EMPTY, Answer { request, outcome, cost });
            }
        };
        self.claim(now, start);
        self.move_on(now);
    }

    /// A drive has ended a command.
    pub fn handle_done(&mut self, now: Instant, sub: SubId, outcome: &Outcome) {
        if self.is_coming(sub) {
            self.handle_coming(now, sub, outcome);
            return self.move_on(now);
        }
        if outcome.may_be_sent_again() && self.handle_refused(now, sub, outcome) {
            return self.move_on(now);
        }
        let outcome = &self.core.ended_with(sub, outcome);
        let state = self.core.finish(now, sub, outcome);
        if let Some(extent) = self.to_be_summed(&state, outcome) {
            // Its operation goes on once it has the checksums: it need not look for another way until then.
            let outcome = outcome.clone();
            return self.hold_back(extent, HeldRead { sub, state, outcome });
        }
        self.route(now, sub, &state, outcome);
        self.move_on(now);
    }

    /// A drive is not there any more, or must not be used.
    pub fn handle_lost(&mut self, now: Instant, drive: DriveIdx, why: Why) {
        if let (Some(store), Why::ByHand) = (&mut self.store, why) {
            // A loss that an operator wants is recorded even if no client writes anything.
            store.open(&mut self.core);
        }
        self.end_wanting_back(drive);
        self.lose(now, drive, why);
        self.move_on(now);
    }

    /// The array is to end: once every request has been answered, everything is made safe, the drives say
    /// so, and [`Action::Stopped`] comes. No request must follow.
    pub fn handle_stop(&mut self, now: Instant) {
        if self.stop == Stop::No {
            self.stop = Stop::Wanted;
            self.stop_checking();
            self.stop_by = self.core.drives.patience().map(|patience| now + patience.answer());
            self.note_end_is_near(now);
        }
        self.move_on(now);
    }

    /// [`Array::handle_stop`] will come soon: requests that no drive answers are given up early.
    pub fn handle_stop_soon(&mut self, now: Instant) {
        self.note_end_is_near(now);
        self.set_timers(now);
    }

    /// From now on requests are given up when a drive that was given a command just now, and ends none, would be
    /// lost.
    fn note_end_is_near(&mut self, now: Instant) {
        let at = self.core.drives.patience().map(|known| now + known.lost + known.silent);
        self.give_up_at = self.give_up_at.or(at);
    }

    /// How long it waits for a drive, where there is a limit.
    pub fn patience(&self) -> Option<Patience> {
        self.core.drives.patience()
    }

    /// The server did not run for a while, as its [`ServerClock`] has found: drives may have completed commands that it
    /// has not seen yet. To be called before anything else of this turn.
    pub fn handle_standstill(&mut self, now: Instant) {
        self.spare_drives(now);
        self.core.drives.note_standstill(now);
        // Its time has not gone on, that of other machines has (N4 of the fence).
        self.core.lease_end = self.core.lease_end.map(|_| now);
        if let Some(store) = &mut self.store {
            store.handle_standstill();
        }
        self.set_timers(now);
    }

    /// A drive's own account of itself.
    pub fn handle_health(&mut self, drive: DriveIdx, health: Health) {
        self.core.drives.handle_health(drive, health);
    }

    /// An operator wants a drive not to be read while others suffice, until it is admitted by hand.
    pub fn handle_sit_out(&mut self, now: Instant, drive: DriveIdx) -> Result<(), Refusal> {
        let event = self.core.drives.sit_out(now, drive)?;
        self.core.note_event(Some(event));
        self.set_timers(now);
        Ok(())
    }

    /// An operator wants a drive that sits out to be read again.
    pub fn handle_admit(&mut self, now: Instant, drive: DriveIdx) -> Result<(), Refusal> {
        let event = self.core.drives.admit(now, drive)?;
        self.core.note_event(Some(event));
        self.set_timers(now);
        Ok(())
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Action> {
        let action = self.core.actions.pop_front()?;
        if let Action::Answer(answer) = &action {
            self.outstanding = self.outstanding.checked_sub(1).expect("A1: answered twice");
            self.core.counters.note_answer(answer.cost);
        }
        Some(action)
    }

    fn name_op(&mut self) -> OpId {
        self.op_next += 1;
        self.op_next
    }

    /// Begins the operations that hold their stripes, moves the metadata on, and lets commands into the drives. In a
    /// loop, because an operation that begins may end at once, and others then get its stripes.
    fn move_on(&mut self, now: Instant) {
        loop {
            while let Some(op) = self.granted.pop_front() {
                self.begin(now, op);
            }
            if self.move_the_rest(now) == Moved::No {
                break;
            }
        }
        self.core.dispatch(now);
        self.tell_old_runs(now);
        self.tell_resync();
        self.set_timers(now);
    }

    /// Moves on whatever is no operation of a client.
    // Inlined into the loop it would, at every event, prepare for all that could be done, and nearly always nothing is.
    #[inline(never)]
    fn move_the_rest(&mut self, now: Instant) -> Moved {
        let has_begun = self.keep_metadata(now);
        if self.keep_journal(now) == Moved::No
            && self.keep_metadata(now) == Moved::No
            && has_begun == Moved::No
            && self.granted.is_empty()
            && self.lose_overdue(now) == Moved::No
            && self.lose_behind(now) == Moved::No
            && self.lose_unstored(now) == Moved::No
            && self.resync_within_budget(now) == Moved::No
            && self.scrub_within_budget(now) == Moved::No
            && self.keep_rebuild(now) == Moved::No
            && self.keep_copy(now) == Moved::No
            && self.check_written(now) == Moved::No
        {
            return Moved::No;
        }
        Moved::Yes
    }

    fn tell(&mut self, event: ArrayEvent) {
        self.core.actions.push_back(Action::Event(Event::Array(event)));
    }

    /// Tells what is new about the resync.
    fn tell_resync(&mut self) {
        let (synced, stripes) = (self.core.synced, self.core.layout.stripes());
        let event = self.resync_told.look(self.resync, ResyncProgress { synced, stripes });
        event.into_iter().for_each(|event| self.tell(event));
    }

    fn lose(&mut self, now: Instant, drive: DriveIdx, why: Why) {
        if self.core.drives.away().contains(drive) {
            return;
        }
        let survived = !self.core.has_failed();
        let recorded = self.recorded_why(drive, why);
        self.note_copied_lost(drive);
        self.rebuild.forget_copied(drive);
        self.core.valid[drive.as_usize()] = 0;
        self.core.nearly_present = self.core.nearly_present.without(DriveSet::EMPTY.with(drive));
        let events = self.core.drives.handle_lost(now, drive);
        self.note_lost_writes();
        if let Some(store) = &mut self.store {
            if store.records_losses() {
                self.core.unrecorded = self.core.unrecorded.with(drive);
            }
            store.handle_lost(&mut self.core, drive, recorded);
        } else {
            self.core.lose_member(drive, Membership::Lost { why: recorded });
        }
        if let Some(journal) = &mut self.journal {
            journal.handle_lost(&mut self.core, drive);
        }
        self.forget_written(now, drive);
        self.forget_records(drive);
        self.core.promises.forget_reads(drive);
        let is_copied = self.has_made_way(drive);
        self.core.actions.push_back(Action::Event(Event::Lost { drive, why, is_copied }));
        let (lost, spec) = (self.core.drives.lost(), *self.core.layout.spec());
        if self.core.has_failed() && survived {
            self.tell(ArrayEvent::Failed { lost, survives: spec.redundant() });
        }
        self.core.note_events(events);
        // A drive that hangs may never end the commands inside it, so no operation waits for them either.
        let mut given_up = self.core.drain_waiting(drive);
        given_up.extend(self.core.give_up_inside(drive));
        for (sub, state) in given_up {
            self.give_up(now, sub, &state);
        }
    }
}
