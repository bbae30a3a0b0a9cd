//! Commands that the machine had no room for: a full file system under a member, no memory.
//!
//! Such a command says nothing about the drive, and the same command may be sent again. It keeps its place in
//! the drive's window and is sent again after each [`PAUSE`]. To the array a drive whose commands are refused
//! is one that ends nothing. It becomes silent, and is lost or its requests are given up, as
//! [`silence`](crate::drives::silence) says.
//!
//! # Invariants
//!
//! - P1. To the array a command that was refused is inside its drive until it is sent again and ends. So a
//!   write whose clients were told that it has failed is still carried out once there is room, and redundancy
//!   stays right.
//! - P2. A command that no operation waits for any more is not sent again.

use levelhead_block::Outcome;
use levelhead_units::{Instant, Nanos};

use crate::Array;
use crate::action::{Action, SubId};
use crate::core::{Core, Purpose};
use crate::ops::postponed::Postponed;

/// Time from a refusal to the next attempt.
pub(crate) const PAUSE: Nanos = Nanos::from_millis(100);

impl Core {
    /// When the next attempt is due.
    pub(crate) fn postponed_at(&self) -> Option<Instant> {
        self.postponed.front().map(|postponed| postponed.at)
    }

    /// The next command that is due for another attempt.
    fn take_postponed(&mut self, now: Instant) -> Option<SubId> {
        let due = self.postponed.pop_front_if(|postponed| postponed.at <= now);
        due.map(|postponed| postponed.sub)
    }
}

impl Array {
    /// A command was refused: keeps it for another attempt, or drops it if no operation waits for it. Returns false
    /// where the refusal counts as a failure: in an array without patience, or if the drive is lost.
    pub(crate) fn handle_refused(&mut self, now: Instant, sub: SubId) -> bool {
        let Some((purpose, drive)) = self.core.whose(sub) else { return false };
        if self.core.drives.patience().is_none() || self.core.drives.away().contains(drive) {
            return false;
        }
        if self.is_awaited(purpose) {
            self.core.note_refused(sub);
            self.core.postponed.push_back(Postponed { at: now + PAUSE, sub });
        } else {
            self.drop_refused(now, sub);
        }
        true
    }

    /// Sends again what was refused and is due.
    pub(crate) fn send_again(&mut self, now: Instant) {
        while let Some(sub) = self.core.take_postponed(now) {
            let Some((purpose, drive)) = self.core.whose(sub) else { continue };
            // First, because the address of a record is known only while the ledger waits for it.
            if self.core.drives.away().contains(drive) || !self.is_awaited(purpose) {
                self.drop_refused(now, sub); // P2
            } else if let Some((submit, _)) = self.core.submit_of(sub) {
                self.core.actions.push_back(Action::Submit(submit));
            }
        }
    }

    fn is_awaited(&self, purpose: Purpose) -> bool {
        purpose.is_awaited(|op| self.ops.contains(*op))
    }

    /// Forgets a command that was refused. No operation is told of its end.
    fn drop_refused(&mut self, now: Instant, sub: SubId) {
        let state = self.core.finish(now, sub, &Outcome::Refused);
        state.read_buf().into_iter().for_each(|buf| self.core.release(buf));
    }
}
