//! How an array's operations begin, once they hold their stripes, hear how their commands ended, and end. What each of
//! them does is in [`ops`](crate::ops).

use std::ops::Range;

use levelhead_block::{Command, Outcome};
use levelhead_units::{Extent, Instant};

use crate::array::readback::checking::Brought;
use crate::array::{Array, Ended, Op, Start};
use crate::core::{Purpose, Sub, loses_drive};
use crate::journal;
use crate::journal::tagging::Tagged;
use crate::meta::membership::Why;
use crate::names::{OpId, SubId};
use crate::ops::check::{CheckOp, Scope};
use crate::ops::fetch::FetchEnded;
use crate::ops::fill::{FillOp, Haste};
use crate::ops::locks::Access;
use crate::ops::mend::{self, MendOp, Recalled};
use crate::ops::read::Wanted;
use crate::ops::write::{Cause, Progress, WriteOp};
use crate::timers::Timer;

/// The widest write, in stripes, that waiting writes join to.
const JOINED_STRIPES_MAX: u64 = 32;

impl Array {
    /// Begins an operation that holds its stripes; a write waits until data may be written (G1).
    pub(crate) fn begin(&mut self, now: Instant, op: OpId) {
        if self.journal.as_ref().is_some_and(|journal| !journal.is_ready()) {
            if self.core.has_failed() {
                return self.give_up_op(now, op); // What is in place may be anything.
            }
            return self.work.unopened.push(op);
        }
        if let Some(store) = &mut self.store
            && !store.is_open()
            && let Some(Op::Locked(Start::Write(_) | Start::Check(Scope::Mend { .. }))) =
                self.work.ops.get(op)
            && !self.core.has_failed()
        {
            store.open(&mut self.core);
            self.work.unopened.push(op);
            return;
        }
        let start = if let Some(&Op::Locked(Start::Read(wanted))) = self.work.ops.get(op) {
            // Its entry stays: the read takes its place there at once.
            Start::Read(wanted)
        } else if let Some(Op::Locked(start)) = self.work.ops.remove(op) {
            start
        } else {
            unreachable!("only a waiting operation is granted its stripes")
        };
        self.start(now, op, start);
    }

    pub(crate) fn claim(&mut self, now: Instant, start: Start) -> Option<OpId> {
        let (stripes, access) = match &start {
            Start::Read(Wanted { extent, .. }) => {
                (self.core.layout().stripes_of(*extent), Access::Shared)
            }
            Start::Write(Cause::Client(parts)) => {
                (self.core.layout().stripes_of(parts[0].extent), Access::Exclusive)
            }
            &Start::Write(Cause::Resync { first, end }) => (first..end, Access::Exclusive),
            &Start::Check(Scope::Scan { first, end }) => (first..end, Access::Shared),
            &Start::Check(Scope::Mend { row }) => (row.stripe..row.stripe + 1, Access::Exclusive),
            Start::Fill(span) => (span.first..span.end, Access::Shared),
            Start::Mend(span) => (mend::stripes_of(self.core.layout(), span), Access::Exclusive),
        };
        let is_change = access == Access::Exclusive;
        if is_change && self.work.locks.would_wait(&stripes, access) && self.joins(&start, &stripes)
        {
            return None;
        }
        let op = self.work.name();
        let is_own =
            matches!(start, Start::Write(Cause::Resync { .. }) | Start::Check(_) | Start::Mend(_));
        if !is_own {
            self.note_arrival(now, op);
        }
        if self.work.locks.claim(op, stripes, access) {
            self.work.granted.push_back(op);
        }
        self.work.ops.insert(op, Op::Locked(start));
        Some(op)
    }

    /// Lets a client's write join one that still waits for its stripes, if there is one next to it.
    fn joins(&mut self, start: &Start, stripes: &Range<u64>) -> bool {
        let Start::Write(Cause::Client(parts)) = start else { return false };
        let ops = &self.work.ops;
        let may_join = |op| matches!(ops.get(op), Some(Op::Locked(Start::Write(Cause::Client(_)))));
        let Some(op) = self.work.locks.join(stripes, JOINED_STRIPES_MAX, may_join) else {
            return false;
        };
        let Some(Op::Locked(Start::Write(Cause::Client(joined)))) = self.work.ops.get_mut(op)
        else {
            unreachable!("only a waiting write is joined")
        };
        joined.extend(parts);
        true
    }

    fn start(&mut self, now: Instant, op: OpId, start: Start) {
        if let Start::Check(Scope::Mend { row }) = start
            && !self.is_in_place(row)
        {
            self.put_off(row);
            return self.work.granted.extend(self.work.locks.release(op));
        }
        let core = &mut self.core;
        let started = match start {
            Start::Read(wanted) => {
                let mut read = self.work.ended_reads.take();
                read.begin(core, now, op, wanted, self.policy);
                Op::Read(read)
            }
            Start::Write(cause) => Op::Write(Box::new(WriteOp::start(core, now, op, cause))),
            Start::Check(scope) => {
                let blame = self.own.scrub.blame();
                Op::Check(Box::new(CheckOp::start(core, now, op, scope, blame)))
            }
            Start::Fill(span) => Op::Fill(Box::new(FillOp::start(core, op, span))),
            Start::Mend(span) => Op::Mend(Box::new(MendOp::start(core, now, op, span))),
        };
        self.work.ops.insert(op, started);
        // A write has not asked for anything yet, and a read of lost drives only may wait for nothing.
        self.advance(now, op);
    }

    pub(crate) fn note_arrival(&mut self, now: Instant, op: OpId) {
        if self.core.drives.patience().is_some() {
            self.clients.arrived.insert(op, now);
        }
    }

    /// Tells the operation that asked for a command how it ended.
    pub(crate) fn route(&mut self, now: Instant, sub: SubId, state: &Sub, outcome: &Outcome) {
        // What an old drive says is not held against the one that is in its place now.
        let is_lost = loses_drive(&state.command, outcome) && !state.is_orphan();
        if is_lost && !self.is_spared(state, outcome) {
            self.lose(now, state.drive, Why::Failed);
        }
        let buf = state.read_buf();
        match (state.purpose, &mut self.store) {
            (Purpose::Op(op), _) => self.hand_over(now, op, Ended { sub, state, buf, outcome }),
            (Purpose::Recall(op), _) if self.work.ops.contains(op) => {
                self.hand_recalled(now, op, Recalled { sub, buf, outcome });
            }
            (Purpose::Meta, Some(_)) if !self.core.drives.away().contains(state.drive) => {
                self.handle_meta_done(now, sub, state, outcome);
            }
            (Purpose::Ring | Purpose::Place, _)
                if !self.core.drives.away().contains(state.drive) =>
            {
                let journal = self.journal.as_mut().expect("it has asked for this");
                let (drive, spread, took) = (state.drive, &state.spread, state.age(now));
                let ended = journal::Ended { drive, sub, buf, spread, outcome, took };
                journal.handle_done(&mut self.core, now, ended);
            }
            (Purpose::Tag, _) if !self.core.drives.away().contains(state.drive) => {
                let journal = self.journal.as_mut().expect("checksums need a journal");
                let ended = Tagged { sub, buf, is_good: outcome.is_good() };
                let lost = journal.handle_tagged(&mut self.core, now, state.drive, &ended);
                lost.into_iter().for_each(|group| self.note_lost_group(state.drive, group));
            }
            (Purpose::Fill, _) => self.own.rebuild.handle_flushed(sub),
            (Purpose::Copy, _) => self.handle_copy_read(now, sub, buf, outcome),
            (Purpose::Verify, _) => {
                self.handle_read_back(
                    now,
                    sub,
                    state.drive,
                    Brought { buf, spread: &state.spread, outcome },
                );
            }
            // Nothing waits for it any more.
            _ => buf.into_iter().for_each(|buf| self.core.out.release(buf)),
        }
    }

    /// A repair or a record that a drive does not store is no reason to do without one that the array needs.
    fn is_spared(&self, state: &Sub, outcome: &Outcome) -> bool {
        let may_fail = match state.purpose {
            Purpose::Op(op) => matches!(self.work.ops.get(op), Some(Op::Check(_) | Op::Mend(_))),
            Purpose::Meta => true,
            Purpose::Ring
            | Purpose::Place
            | Purpose::Fill
            | Purpose::Copy
            | Purpose::Verify
            | Purpose::Tag
            | Purpose::Recall(_)
            | Purpose::Probe
            | Purpose::Abandoned => false,
        };
        may_fail && *outcome != Outcome::Gone && !self.could_spare(state.drive)
    }

    /// Tells the operation that a lost drive will not end its command.
    pub(crate) fn give_up(&mut self, now: Instant, sub: SubId, state: &Sub) {
        let (buf, outcome) = (None, &Outcome::Gone);
        match state.purpose {
            Purpose::Op(op) => self.hand_over(now, op, Ended { sub, state, buf, outcome }),
            Purpose::Recall(op) if self.work.ops.contains(op) => {
                self.hand_recalled(now, op, Recalled { sub, buf, outcome });
            }
            _ => {}
        }
    }

    /// Tells an operation how a command ended, if it is still in progress.
    fn hand_over(&mut self, now: Instant, id: OpId, ended: Ended<'_>) {
        let Ended { sub, state, buf, outcome } = ended;
        let unread = self.unread(id, state, outcome);
        let Some(op) = self.work.ops.get_mut(id) else {
            // A late completion: the answer has been given.
            return buf.into_iter().for_each(|buf| self.core.out.release(buf));
        };
        let (drive, spread) = (state.drive, &state.spread);
        let (unproven, corrupt) = (&*state.unproven, &*state.corrupt);
        let fetched = |extent: Extent| FetchEnded {
            sub,
            drive,
            extent,
            buf,
            spread,
            unproven,
            corrupt,
            outcome,
        };
        match (op, state.command) {
            (Op::Read(read), Command::Read { extent, .. }) => {
                read.handle_done(&mut self.core, now, fetched(extent));
            }
            (Op::Write(write), Command::Read { extent, .. }) => {
                write.fetch.handle_done(self.core.layout(), fetched(extent));
            }
            (Op::Write(write), Command::Write { .. }) => write.handle_written(sub),
            (Op::Check(check), Command::Read { extent, .. }) => {
                check.handle_done(self.core.layout(), fetched(extent));
            }
            (Op::Check(check), Command::Write { .. }) => check.handle_written(sub),
            (Op::Fill(fill), Command::Read { extent, .. }) => {
                fill.fetch_mut().handle_done(self.core.layout(), fetched(extent));
            }
            (Op::Fill(fill), Command::Write { .. }) => fill.handle_written(sub),
            (Op::Mend(mend), Command::Read { extent, .. }) => {
                mend.handle_done(self.core.layout(), fetched(extent));
            }
            (Op::Mend(mend), Command::Write { .. }) => mend.handle_written(&self.core, sub),
            (Op::Flush(flush), Command::Flush) => flush.handle_done(sub),
            (op, command) => unreachable!("{op:?} never asked for {command:?}"),
        }
        self.advance(now, id);
        if let Some(unread) = unread {
            self.note_unread(now, unread);
        }
    }

    /// Lets an operation move on, and those that waited for its stripes after it.
    pub(crate) fn advance(&mut self, now: Instant, op: OpId) {
        let Some(state) = self.work.ops.get_mut(op) else { return };
        let holds_stripes =
            matches!(state, Op::Read(_) | Op::Write(_) | Op::Check(_) | Op::Mend(_));
        let has_ended = match state {
            Op::Locked(_) => false,
            Op::Read(read) => {
                let has_ended = read.advance(&mut self.core, now);
                let deadline = read.deadline().filter(|_| !has_ended);
                self.timers.set(Timer::Read(op), deadline);
                has_ended
            }
            Op::Write(write) => {
                let progress = write.advance(&mut self.core, now);
                let has_ended = progress != Progress::NotYet;
                if has_ended {
                    let cause = write.cause.clone();
                    self.note_resync(now, progress, &cause);
                }
                has_ended
            }
            Op::Fill(fill) => {
                fill.advance(&mut self.core, now, Haste::Idle);
                false // Its stripes are held until the front is past them.
            }
            Op::Flush(flush) => flush.advance(&mut self.core),
            Op::Mend(mend) => match mend.advance(&mut self.core, now) {
                None => false,
                Some(mended) => {
                    let span = mend.span;
                    self.note_mend_ended(now, op, span, mended);
                    true
                }
            },
            Op::Check(check) => match check.advance(&mut self.core, now) {
                None => false,
                Some(checked) => {
                    let scope = check.scope;
                    self.note_checked(now, op, scope, checked);
                    true
                }
            },
        };
        if !has_ended {
            return;
        }
        if let Some(Op::Read(read)) = self.work.ops.remove(op) {
            self.work.ended_reads.keep(read);
        }
        assert!(!self.timers.has(op), "T1: operation {op} has ended");
        let arrived = self.clients.arrived.remove(&op);
        self.limit_held(arrived);
        if holds_stripes {
            self.work.granted.extend(self.work.locks.release(op));
        }
    }
}
