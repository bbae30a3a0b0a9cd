//! What becomes of requests whose drive ends no command: see [`silence`](crate::drives::silence).
//!
//! # Invariants
//!
//! - O1. Every request is answered within [`Patience::answer`](crate::Patience::answer) of its arrival.
//! - O2. A write that was answered before its end goes on, and keeps its stripes and its memory until its end. So
//!   no later request overtakes a sub-write that a drive may still carry out, and redundancy matches the data
//!   once all sub-writes have ended.
//! - O3. The memory of such writes is bounded: while it is [`GIVEN_UP_MAX`] or more, new writes fail at once.

use levelhead_block::{BufId, Effort, Outcome, RequestId, SectorSet};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Sectors};

use crate::action::{Answer, Cost};
use crate::array::{Array, Moved, Op, Start};
use crate::drives::Silenced;
use crate::meta::membership::Why;
use crate::names::OpId;
use crate::ops::read::{Answering, Wanted};
use crate::ops::write::{Cause, Part};
use crate::server_clock::ServerClock;
use crate::timers::Timer;
use crate::timers::first_of;

/// The most memory of writes that were given up and are still being carried out: 64 MiB.
const GIVEN_UP_MAX: Sectors = Sectors::new(1 << 14);

impl Array {
    /// When a request, or an answer that is held, has waited for too long.
    pub(crate) fn answer_at(&self) -> Option<Instant> {
        first_of([self.give_up_op_at(), self.before_the_end(self.core.held_by())])
    }

    /// When the operation that came first has waited for too long.
    fn give_up_op_at(&self) -> Option<Instant> {
        let patience = self.core.drives.patience()?;
        let &arrived = self.clients.arrived.values().next()?;
        self.before_the_end(Some(arrived + patience.answer()))
    }

    /// The time itself, or when all requests are given up if that is sooner.
    fn before_the_end(&self, at: Option<Instant>) -> Option<Instant> {
        at.map(|at| self.end.give_up_at.map_or(at, |end| end.min(at)))
    }

    /// Limits how long the answers are held that an operation has just given (O1).
    pub(crate) fn limit_held(&mut self, arrived: Option<Instant>) {
        if let (Some(arrived), Some(patience)) = (arrived, self.core.drives.patience()) {
            self.core.limit_held(arrived + patience.answer());
        }
    }

    /// Whether a write must fail at once (O3).
    pub(crate) fn is_beyond_given_up(&self) -> bool {
        self.core.writes.given_up() >= GIVEN_UP_MAX
    }

    /// When to look next for drives that a write or a flush has waited for as long as [`Patience::lost`]: not before
    /// the oldest request is that old, and not before [`Patience::silent`] has passed since the last look.
    pub(crate) fn kept_waiting_at(&self) -> Option<Instant> {
        let patience = self.core.drives.patience()?;
        let &arrived = self.clients.arrived.values().next()?;
        Some((arrived + patience.lost).max(self.watch.looked + patience.silent))
    }

    /// Drives one of whose commands a write or a flush has waited for as long as [`Patience::lost`], even if they
    /// have ended other commands meanwhile (S3 of [`silence`](crate::drives::silence)).
    fn find_kept_waiting(&self, now: Instant, among: DriveSet) -> DriveSet {
        let Some(patience) = self.core.drives.patience() else { return DriveSet::EMPTY };
        let is_change = |&op: &OpId| {
            let op = self.work.ops.get(op);
            matches!(
                op,
                Some(Op::Write(_) | Op::Fill(_) | Op::Flush(_) | Op::Check(_) | Op::Mend(_))
            )
        };
        let waits =
            |&drive: &DriveIdx| self.core.is_kept_waiting(now, drive, patience.lost, is_change);
        among.iter().filter(waits).collect()
    }

    /// When to look next for drives that complete nothing, or keep a change waiting.
    pub(crate) fn silence_due_at(&self) -> Option<Instant> {
        let next = first_of([self.core.drives.silence_at(), self.kept_waiting_at()]);
        let spared = Some(self.watch.spared_until).filter(|&until| until > self.watch.looked);
        // One that is known to be overdue may still have to fail.
        let again = spared.filter(|_| !self.overdue().is_empty());
        first_of([next.map(|at| at.max(self.watch.spared_until)), again])
    }

    /// No drive is declared unresponsive, or failed for its silence, before the server has looked for what the drives
    /// have completed (S5, S6 of [`silence`](crate::drives::silence)).
    pub(crate) fn spare_drives(&mut self, now: Instant) {
        self.watch.spared_until = now + ServerClock::STEP_MAX;
    }

    /// Drives that have been silent, or have kept a change waiting, for too long.
    fn overdue(&self) -> DriveSet {
        let journals = self.core.layout().spec().journal_drives();
        let silent = self.core.drives.silent().and(journals);
        let overdue = self.core.drives.overdue().or(self.watch.kept_waiting).or(silent);
        overdue.without(self.core.drives.away())
    }

    /// Looks for drives that are silent. Reads do not count on those that have just become so.
    pub(crate) fn look_for_silence(&mut self, now: Instant) {
        self.watch.looked = now;
        self.watch.kept_waiting = self.find_kept_waiting(now, self.core.drives.reachable());
        let Silenced { newly, events } = self.core.drives.look_for_silence(now);
        self.core.note_events(events);
        if !newly.is_empty() {
            self.note_silent(now, newly);
        }
    }

    /// Answers the requests that have waited for too long with a failure.
    pub(crate) fn give_up_overdue(&mut self, now: Instant) {
        while self.give_up_op_at().is_some_and(|at| at <= now)
            && let Some((op, _)) = self.clients.arrived.pop_first()
        {
            self.give_up_op(now, op);
        }
        let ends_now = self.end.give_up_at.is_some_and(|at| at <= now);
        let is_over = |by: Option<Instant>| ends_now || by.is_some_and(|by| by <= now);
        self.core.fail_held_if(is_over);
    }

    /// Loses one of the drives that have been silent for too long, if a write, a flush or the metadata waits for it.
    pub(crate) fn lose_overdue(&mut self, now: Instant) -> Moved {
        if now < self.watch.spared_until {
            return Moved::No; // S5, S6
        }
        if !self.watch.kept_waiting.is_empty() {
            // What they were waited for may have ended since.
            let reachable = self.core.drives.reachable();
            self.watch.kept_waiting =
                self.find_kept_waiting(now, self.watch.kept_waiting.and(reachable));
        }
        let overdue = self.overdue().without(self.core.refused_now(now)); // P3
        let Some(drive) = overdue.iter().find(|&drive| self.may_lose(drive)) else {
            return Moved::No;
        };
        self.lose(now, drive, Why::Silent);
        self.spare_drives(now);
        assert!(!self.core.has_failed(), "S1: drive {drive} was needed");
        Moved::Yes
    }

    /// Reads do not count on these drives from now on, nor does what mends.
    fn note_silent(&mut self, now: Instant, silent: DriveSet) {
        self.end_silent_steps(now, silent);
        let mut held_up: Vec<OpId> = self.work.ops.names().collect();
        held_up.retain(|&op| match self.work.ops.get_mut(op).expect("it has a name") {
            Op::Read(read) => read.note_silent(silent),
            Op::Check(check) => check.is_held_up(silent),
            Op::Mend(mend) => mend.note_silent(&mut self.core, now, silent),
            Op::Locked(_) | Op::Write(_) | Op::Fill(_) | Op::Flush(_) => false,
        });
        for op in held_up {
            if let Some(Op::Check(check)) = self.work.ops.get_mut(op) {
                check.is_wanted = false; // It is done again later.
            }
            self.advance(now, op);
        }
    }

    /// Whether a write, a flush or the metadata waits for a drive, and the layout survives the loss of every drive
    /// that is silent and shares a stripe with it (S1 of [`silence`](crate::drives::silence)).
    fn may_lose(&self, drive: DriveIdx) -> bool {
        let is_redundant = self.core.is_redundant(self.core.layout().stripes());
        let waits = |&op: &OpId| {
            let op = self.work.ops.get(op);
            matches!(
                op,
                Some(Op::Write(_) | Op::Fill(_) | Op::Flush(_) | Op::Check(_) | Op::Mend(_))
            )
        };
        let drives = &self.core.drives;
        let journals = self.core.layout().spec().journal_drives();
        if journals.contains(drive) {
            // All others have the whole journal, and no data is lost with it: it is not waited for any longer (S4).
            let silent = drives.silent().and(journals).with(drive);
            return drives.can_spare(silent) && self.core.is_waited_for(drive, waits);
        }
        let fellows = self.core.layout().spec().fellows(drive);
        let silent = drives.silent().or(self.watch.kept_waiting).and(fellows.with(drive));
        is_redundant && drives.can_spare(silent) && self.core.is_waited_for(drive, waits)
    }

    /// Answers the requests of an operation with a failure.
    pub(crate) fn give_up_op(&mut self, now: Instant, op: OpId) {
        let Some(state) = self.work.ops.get_mut(op) else { return };
        match state {
            Op::Locked(start) => {
                let start = start.clone();
                self.work.unopened.retain(|&unopened| unopened != op);
                self.work.granted.retain(|&granted| granted != op);
                match start {
                    Start::Read(Wanted { request, extent, effort }) => {
                        self.answer_nothing(request, extent, effort);
                    }
                    Start::Write(Cause::Client(parts)) => {
                        parts.into_iter().for_each(|part| self.refuse_write(now, part));
                    }
                    Start::Write(Cause::Resync { .. })
                    | Start::Check(_)
                    | Start::Fill(_)
                    | Start::Mend(_) => return,
                }
            }
            Op::Read(read) => {
                read.answer(&mut self.core, now, Answering::GivenUp);
                self.core.limit_held(now); // What it may give relies on a loss that is not recorded.
                self.timers.set(Timer::Read(op), None);
            }
            Op::Write(write) => {
                let has_ended = write.give_up(&mut self.core, now);
                self.core.limit_held(now);
                if !has_ended {
                    return; // O2
                }
            }
            Op::Check(_) | Op::Fill(_) | Op::Mend(_) => return, // No client waits for it.
            Op::Flush(flush) => {
                flush.give_up(&mut self.core);
                self.work.ops.remove(op);
                return;
            }
        }
        self.work.ops.remove(op);
        self.work.granted.extend(self.work.locks.withdraw(op));
    }

    /// Answers a write of which nothing was or will be written.
    pub(crate) fn refuse_write(&mut self, now: Instant, Part { request, extent, .. }: Part) {
        let (outcome, cost) = (self.core.given_up_with(now, extent), Cost::default());
        self.core.answer(DriveSet::EMPTY, Answer { request, outcome, cost });
        self.core.out.release(BufId::Client(request));
    }

    fn answer_nothing(&mut self, request: RequestId, extent: Extent, effort: Effort) {
        let [none, all] = [SectorSet::EMPTY, SectorSet::first(extent.sectors)];
        let (unknown, damaged) = match effort {
            Effort::Fast | Effort::Limited(_) => (all, none),
            Effort::Full | Effort::Medium => (none, all),
        };
        let (outcome, cost) = (Outcome::Done { unknown, damaged }, Cost::default());
        self.core.answer(DriveSet::EMPTY, Answer { request, outcome, cost });
    }
}
