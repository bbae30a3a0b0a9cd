//! A flush: every drive that is given commands makes safe what it has ended.
//!
//! # Invariants
//!
//! - Z1. A flush answers well only if every drive that is there, or is being filled, has ended a flush
//!   that began after it came, and no write that was answered before it may be gone with a drive. With a journal only what that has announced and not
//!   logged needs to be flushed, and the journal does so.

use levelhead_block::{Command, Outcome, RequestId};
use levelhead_units::{DriveIdx, Instant};

use crate::action::{Answer, Cost, Segments};
use crate::array::{Array, Op};
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::names::{OpId, SubId};

/// A flush of all drives that are there.
#[derive(Clone, Debug)]
pub(crate) struct FlushOp {
    request: RequestId,
    /// Its commands that have not ended.
    pending: Vec<SubId>,
    /// How many there were.
    subs: u32,
    /// The last intent that must be safe before it is answered.
    awaits: Option<u64>,
    /// Writes that had ended when it began.
    covers: u64,
    /// Whether some of them may be gone with a drive.
    has_lost_writes: bool,
}

impl FlushOp {
    /// One of its commands has ended, or will not.
    pub(crate) fn handle_done(&mut self, sub: SubId) {
        self.pending.retain(|&other| other != sub);
    }

    /// Answers it if all its commands have ended; returns whether they have.
    pub(crate) fn advance(&self, core: &mut Core) -> bool {
        let is_at_risk = self.awaits.is_some_and(|id| core.log.at_risk.holds_up_to(id));
        if !self.pending.is_empty() || is_at_risk {
            return false;
        }
        // Later flushes do not fail for what this one says: later writes go to the other drives.
        let is_gone = core.has_failed() || self.has_lost_writes;
        core.writes.note_flushed(self.covers);
        self.answer(core, if is_gone { Outcome::Gone } else { Outcome::GOOD });
        true
    }

    /// Answers it although some of its commands have not ended.
    pub(crate) fn give_up(&self, core: &mut Core) {
        self.answer(core, Outcome::Gone);
    }

    fn answer(&self, core: &mut Core, outcome: Outcome) {
        let cost = Cost { subs: self.subs, ..Cost::default() };
        // What the lost drives missed is safe only when the others have recorded their loss.
        let relies_on = if outcome.is_good() { core.gate.unrecorded() } else { Default::default() };
        core.answer(relies_on, Answer { request: self.request, outcome, cost });
    }
}

impl Array {
    pub(crate) fn start_flush(&mut self, now: Instant, request: RequestId) {
        let op = self.work.name();
        self.note_arrival(now, op);
        let flush = |core: &mut Core, drive| {
            core.enqueue(
                now,
                Enqueue {
                    purpose: Purpose::Op(op),
                    drive,
                    command: Command::Flush,
                    segments: Segments::NONE,
                    origin: request.0,
                    end: End::Tail,
                    fate: Fate::Certain,
                    since: None,
                },
            )
        };
        // What the journal has committed is safe already.
        let is_needed = !self.core.log.is_journaled;
        let drives = self.core.drives.reachable().iter().filter(|_| is_needed);
        let drives: Vec<DriveIdx> = drives.collect();
        let pending: Vec<SubId> =
            drives.into_iter().map(|drive| flush(&mut self.core, drive)).collect();
        let subs = pending.len() as u32;
        let covers = self.core.writes.ended();
        let has_lost_writes = self.core.writes.take_lost();
        let awaits = self.core.log.at_risk.wait();
        let flush = FlushOp { request, pending, subs, awaits, covers, has_lost_writes };
        self.work.ops.insert(op, Op::Flush(flush));
        self.advance(now, op);
    }

    /// What flushes wait for may be safe.
    pub(crate) fn advance_flushes(&mut self, now: Instant) {
        let is_flush = |(op, state): (OpId, &Op)| matches!(state, Op::Flush(_)).then_some(op);
        let flushes: Vec<OpId> = self.work.ops.iter().filter_map(is_flush).collect();
        flushes.into_iter().for_each(|op| self.advance(now, op));
    }

    /// A drive was just lost. If writes may be gone with it, all flushes under way say so, and if none of them
    /// covers all these writes, the next one does.
    pub(crate) fn note_lost_writes(&mut self) {
        if !self.core.loses_writes() {
            return;
        }
        let ended = self.core.writes.ended();
        let mut is_said = false;
        for op in self.work.ops.values_mut() {
            if let Op::Flush(flush) = op {
                flush.has_lost_writes = true;
                // One that began before the last of these writes ended does not speak for that.
                is_said |= flush.covers >= ended;
            }
        }
        if !is_said {
            self.core.writes.lose();
        }
    }
}
