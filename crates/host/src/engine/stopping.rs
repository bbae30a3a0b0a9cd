//! The end of an engine: when it may come although a drive hangs, and how the drives are left.

use levelhead_array::superblock::State;
use levelhead_units::{DriveIdx, DriveSet, Instant};

use super::Engine;
use crate::error::{HostError, fail};

impl Engine {
    /// Whether everybody has an answer, and no drive has anything left to do but those that hang.
    pub(super) fn is_quiet(&self) -> bool {
        let is_answered = self.requests.is_empty() && self.waiting.is_empty();
        let is_left_alone = !self.hung.is_empty() && self.silent().next().is_none();
        is_answered && (self.parts.array.is_quiet() || is_left_alone)
    }

    /// Drives that have something to do and are waited for, and since when they say nothing: before
    /// the stop, nobody counted.
    fn silent(&self) -> impl Iterator<Item = (DriveIdx, Instant)> {
        let seats = (0..).map(DriveIdx::from_usize).zip(&self.parts.seats);
        let waited = seats.filter(|(drive, _)| !self.hung.contains(*drive));
        waited.filter_map(|(drive, seat)| {
            Some((drive, seat.work.silent_since()?.max(self.stopping_since)))
        })
    }

    /// When the next drive that holds up a stop is not waited for any more.
    pub(super) fn stop_by(&self) -> Instant {
        let since = self.silent().map(|(_, since)| since).min();
        since.map_or(self.health_next, |since| since + self.parts.patience)
    }

    /// Does without the drives that hold up a stop (E4).
    pub(super) fn give_up_waiting(&mut self, now: Instant) {
        let patience = self.parts.patience;
        let silent = self.silent().filter(|(_, since)| now.saturating_since(*since) >= patience);
        let hung: DriveSet = silent.map(|(drive, _)| drive).collect();
        if hung.is_empty() {
            return;
        }
        hung.iter().for_each(|drive| self.hung = self.hung.with(drive));
        let error = format!("it has ended no command for {} s", patience.as_secs_f64());
        self.blame(hung, &error);
        self.carry_out();
    }

    /// Leaves the drives in good order, closes them, and tells those who wanted it.
    pub(super) fn end(mut self) {
        let result = self.settle();
        let stopping = std::mem::take(&mut self.stopping);
        for drive in self.hung.iter() {
            // Its end is not to be waited for: its threads go with the program.
            std::mem::forget(self.parts.seats[drive.as_usize()].backend.take());
        }
        drop(self); // Whoever is told may open the drives at once.
        for reply in stopping {
            // Whoever asked may have lost interest.
            drop(reply.send(result.clone()));
        }
    }

    /// Makes everything safe and says so on the drives. Every drive that cannot is lost.
    fn settle(&mut self) -> Result<(), HostError> {
        loop {
            if self.is_beyond_repair() {
                return fail(format!(
                    "more drives are lost than the array survives: {}",
                    self.parts.array.lost()
                ));
            }
            let (lost, synced) = (self.parts.array.lost(), self.parts.array.synced());
            let ledger = &mut self.parts.ledger;
            let mut failed = ledger.sync(lost);
            if failed.is_empty() {
                failed = ledger.record(State::Clean, synced, lost);
            }
            if failed.is_empty() {
                return Ok(());
            }
            self.blame(failed, "it could not be made safe at the stop");
            self.carry_out();
        }
    }
}
