//! Commands that the machine had no room for: a full file system under a member, no memory.
//!
//! Such a command says nothing about the drive, and the same command may be sent again. It keeps its place in
//! the drive's window and is sent again after [`PAUSE`], over and over: to the array a drive whose commands are
//! refused is one that ends nothing. It becomes silent, and is lost or its requests are given up, as
//! [`silence`](crate::drives::silence) says.
//!
//! # Invariants
//!
//! - P1. A command that was refused is inside its drive for all but the runtime, until it is sent again or
//!   given up.
//! - P2. Where a part of a write was never carried out, the redundancy of its stripes is not used again before
//!   it was made valid.

use std::collections::VecDeque;

use levelhead_block::Outcome;
use levelhead_units::{Instant, Nanos};

use crate::action::{Action, SubId};
use crate::core::{Core, OpId, Purpose};
use crate::{Array, Op};

/// Time from a refusal to the next attempt.
const PAUSE: Nanos = Nanos::from_millis(100);

/// A command that was refused, and when it is sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Postponed {
    at: Instant,
    sub: SubId,
}

impl Core {
    /// Keeps a command for another attempt; false where nothing may wait for one.
    pub(crate) fn postpone(&mut self, now: Instant, sub: SubId) -> bool {
        let Some((purpose, drive)) = self.whose(sub) else { return false };
        let is_waited_for = matches!(purpose, Purpose::Op(_) | Purpose::Ledger);
        if self.drives.patience().is_none() || !is_waited_for || self.drives.lost().contains(drive)
        {
            return false;
        }
        self.postponed.push_back(Postponed { at: now + PAUSE, sub });
        true
    }

    /// When the next attempt is due.
    pub(crate) fn postponed_at(&self) -> Option<Instant> {
        self.postponed.front().map(|postponed| postponed.at)
    }

    /// Sends again what is due, and returns what is not to be sent: commands of drives that are lost by now.
    fn send_again(&mut self, now: Instant) -> Vec<SubId> {
        let mut given_up = Vec::new();
        while let Some(&Postponed { at, sub }) = self.postponed.front()
            && at <= now
        {
            self.postponed.pop_front();
            match self.submit_of(sub) {
                Some((submit, Purpose::Op(_) | Purpose::Ledger))
                    if !self.drives.lost().contains(submit.drive) =>
                {
                    self.actions.push_back(Action::Submit(submit));
                }
                Some(_) => given_up.push(sub),
                None => {}
            }
        }
        given_up
    }

    /// Takes the commands of one operation that wait for another attempt.
    fn take_postponed(&mut self, op: OpId) -> Vec<SubId> {
        let (own, others) =
            std::mem::take(&mut self.postponed).into_iter().partition(|postponed| {
                self.whose(postponed.sub).is_some_and(|(purpose, _)| purpose == Purpose::Op(op))
            });
        self.postponed = others;
        let own: VecDeque<Postponed> = own;
        own.into_iter().map(|postponed| postponed.sub).collect()
    }
}

impl Array {
    /// Sends again what was refused and is due.
    pub(crate) fn send_again(&mut self, now: Instant) {
        for sub in self.core.send_again(now) {
            let state = self.core.finish(now, sub, &Outcome::Gone);
            self.route(now, sub, &state, &Outcome::Gone);
        }
    }

    /// A write was given up: its parts that no drive has are not sent again (P2). Returns whether there were any.
    pub(crate) fn drop_postponed(&mut self, now: Instant, op: OpId) -> bool {
        let subs = self.core.take_postponed(op);
        let Some(Op::Write(write)) = self.ops.get_mut(&op) else { return false };
        for &sub in &subs {
            self.core.finish(now, sub, &Outcome::Gone);
            write.handle_written(sub);
        }
        let first = write.first_stripe().filter(|_| self.core.code.is_some());
        if let (Some(first), false) = (first, subs.is_empty()) {
            self.core.synced = self.core.synced.min(first);
            if let Some(ledger) = &mut self.ledger {
                ledger.handle_unsynced(first);
            }
        }
        !subs.is_empty()
    }
}
