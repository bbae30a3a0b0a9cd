//! What an array does because a time has come: see [`timers`](crate::timers).

use levelhead_units::Instant;

use crate::array::parts::Stop;
use crate::array::{Array, Op};
use crate::store::Store;
use crate::timers::{Duty, Timer, first_of};

impl Array {
    /// When to call [`Array::handle_timeout`], if at all.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Time has passed (A5).
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(op) = self.timers.take_read(now) {
            let Some(Op::Read(read)) = self.work.ops.get_mut(op) else {
                unreachable!("T1: operation {op} is not a read")
            };
            read.handle_timeout(&self.core, now);
            self.advance(now, op);
        }
        for duty in Duty::ALL {
            // The duties before this one may have changed its time.
            self.timers.set(Timer::Own(duty), self.due_at(now, duty));
            match self.timers.take(now, duty) {
                Some(Duty::SendAgain) => self.send_again(now),
                Some(Duty::Silence) => self.look_for_silence(now),
                Some(Duty::Answer) => self.give_up_overdue(now),
                Some(Duty::Probe) => self.core.probe(now),
                // `move_on` below looks after these.
                Some(
                    Duty::Journal | Duty::Metadata | Duty::Background | Duty::Verify | Duty::Stop,
                )
                | None => {}
            }
        }
        self.move_on(now);
    }

    /// When there is something to do of a kind.
    fn due_at(&self, now: Instant, duty: Duty) -> Option<Instant> {
        match duty {
            Duty::SendAgain => self.core.postponed_at(),
            Duty::Silence => self.silence_due_at(),
            Duty::Answer => self.answer_at(),
            Duty::Probe => self.core.drives.probe_at(),
            Duty::Journal => {
                let journal = self.journal.as_ref()?;
                first_of([
                    journal.due_at(),
                    journal.stall_at(&self.core),
                    journal.tag_at(&self.core, now),
                ])
            }
            Duty::Metadata => self.store.as_ref().and_then(Store::due_at),
            Duty::Background => {
                let (rebuild, copy) = (self.rebuild_at(now), self.copy_at(now));
                first_of([self.resync_at(), self.scrub_at(), self.runs_at(), rebuild, copy])
            }
            Duty::Verify => self.check_at(),
            Duty::Stop => self.end.by.filter(|_| self.end.stop == Stop::Wanted),
        }
    }

    /// Called at the end of everything that may have changed a time in the table.
    pub(crate) fn set_timers(&mut self, now: Instant) {
        let has_patience = self.core.drives.patience().is_some();
        let duties: &[Duty] = if has_patience { &Duty::ALL } else { &Duty::WITHOUT_PATIENCE };
        for &duty in duties {
            self.timers.set(Timer::Own(duty), self.due_at(now, duty));
        }
    }
}
