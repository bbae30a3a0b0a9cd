//! Commands that the machine did not carry out: it has no room for them (a full file system under a member, no memory), or
//! does not permit them. And those that have not reached a drive far away.
//!
//! Neither says anything about the drive, and the same command may be sent again. It keeps its place in the drive's window
//! and is sent again after each [`PAUSE`]. To the array a drive whose commands come back so is one that ends nothing. It
//! becomes silent, and requests that wait for it are given up, as [`silence`](crate::drives::silence) says; and it is lost
//! if it cannot be reached, but not if the machine refuses its commands (P3).
//!
//! # Invariants
//!
//! - P1. To the array a command that was refused is inside its drive until it is sent again and ends. So a
//!   write whose clients were told that it has failed is still carried out once there is room, and redundancy
//!   stays right.
//! - P2. A command that no operation waits for any more is not sent again.
//! - P3. No drive is lost for what the machine refuses. The other members lie on the same machine as a rule, and have the
//!   same trouble next: to lose drives for it would take redundancy away and help no request. So what waits is answered with
//!   a failure in time, and carried out all the same once the machine permits it (P1): nothing of it is missed by the drive.

use levelhead_block::Outcome;
use levelhead_units::Instant;

use crate::action::Action;
use crate::array::Array;
use crate::core::Purpose;
use crate::names::SubId;

impl Array {
    /// A command was refused, or did not reach its drive: keeps it for another attempt, or drops it if no operation waits for it. Returns false
    /// where the refusal counts as a failure: in an array without patience, or if the drive is lost.
    pub(crate) fn handle_refused(&mut self, now: Instant, sub: SubId, outcome: &Outcome) -> bool {
        let Some((purpose, drive)) = self.core.whose(sub) else { return false };
        if self.core.drives.patience().is_none() || self.core.drives.away().contains(drive) {
            return false;
        }
        if self.is_awaited(purpose) {
            self.core.note_refused(now, sub, outcome);
            self.core.postpone(now, sub);
        } else {
            self.drop_refused(now, sub);
        }
        true
    }

    /// Sends again what was refused and is due.
    pub(crate) fn send_again(&mut self, now: Instant) {
        while let Some(sub) = self.core.take_postponed(now) {
            let Some((purpose, drive)) = self.core.whose(sub) else { continue };
            // First, because the address of a record is known only while the store waits for it.
            if self.core.drives.away().contains(drive) || !self.is_awaited(purpose) {
                self.drop_refused(now, sub); // P2
            } else if self.core.is_held(now) && purpose != Purpose::Meta {
                self.core.postpone(now, sub);
            } else if let Some((submit, _)) = self.core.submit_of(sub) {
                self.core.out.push(Action::Submit(submit));
            }
        }
    }

    fn is_awaited(&self, purpose: Purpose) -> bool {
        purpose.is_awaited(|op| self.work.ops.contains(*op))
    }

    /// Forgets a command that was refused. No operation is told of its end.
    fn drop_refused(&mut self, now: Instant, sub: SubId) {
        let state = self.core.finish(now, sub, &Outcome::Refused);
        state.read_buf().into_iter().for_each(|buf| self.core.out.release(buf));
    }
}
