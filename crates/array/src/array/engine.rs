//! Events in, actions out: what a runtime calls, and the loop that moves everything on.

use levelhead_block::{Command, Health, Outcome, RequestId};
use levelhead_units::{DriveIdx, DriveSet, Instant};

use super::parts::Stop;
use super::{Array, Moved, Start};
use crate::action::{Action, Answer, Cost};
use crate::array::readback::checking::HeldRead;
use crate::drives::detect::Refusal;
use crate::event::{ArrayEvent, Event};
use crate::meta::membership::{Membership, Why};
use crate::names::SubId;
use crate::ops::read::Wanted;
use crate::ops::write::{Cause, Part};
use crate::progress::ResyncProgress;
use crate::settings::Patience;

impl Array {
    /// A client asks for something. Of a write the client's buffer, [`BufId::Client`], has as many sectors
    /// as the command's extent (zeroes for [`Command::WriteZeroes`]), and is the array's until
    /// [`Action::Release`], which may come after the answer; what a read has brought, [`Action::Deliver`] says.
    ///
    /// Panics if the extent is empty or past the array's end.
    pub fn handle_request(&mut self, now: Instant, request: RequestId, command: Command) {
        assert!(command.fits(self.size()), "{command:?} is past the array's end");
        self.core.drives.note_arrival(now, self.clients.outstanding);
        self.own.rebuild.note_request(now);
        self.clients.outstanding += 1;
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
        let said = outcome;
        let outcome = &self.core.ended_with(sub, said);
        let state = self.core.finish(now, sub, outcome);
        self.core.look_at_tags(sub, &state, said);
        self.go_on_or_wait(now, HeldRead { sub, state, outcome: outcome.clone() });
        self.move_on(now);
    }

    /// A drive is not there any more, or must not be used.
    pub fn handle_lost(&mut self, now: Instant, drive: DriveIdx, why: Why) {
        if let (Some(store), Why::ByHand) = (&mut self.store, why) {
            // A loss that an operator wants is recorded even if no client writes anything.
            store.open(&mut self.core);
        }
        if self.wanted_back().contains(drive) {
            // The array does without it already, and would take it back at the next start as well.
            self.end_wanting_back(drive);
            self.record_lost(drive, why);
        }
        self.lose(now, drive, why);
        self.move_on(now);
    }

    /// The array is to end: once every request has been answered, everything is made safe, the drives say
    /// so, and [`Action::Stopped`] comes. No request must follow.
    pub fn handle_stop(&mut self, now: Instant) {
        if self.end.stop == Stop::No {
            self.end.stop = Stop::Wanted;
            self.stop_checking();
            self.end.by = self.core.drives.patience().map(|patience| now + patience.answer());
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
    pub(super) fn note_end_is_near(&mut self, now: Instant) {
        let at = self.core.drives.patience().map(|known| now + known.lost + known.silent);
        self.end.give_up_at = self.end.give_up_at.or(at);
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
        self.core.gate.set_lease_end(now);
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
        let action = self.core.out.pop()?;
        if let Action::Answer(answer) = &action {
            self.clients.outstanding =
                self.clients.outstanding.checked_sub(1).expect("A1: answered twice");
            self.core.counters.note_answer(answer.cost);
        }
        Some(action)
    }

    /// Begins the operations that hold their stripes, moves the metadata on, and lets commands into the drives. In a
    /// loop, because an operation that begins may end at once, and others then get its stripes.
    pub(super) fn move_on(&mut self, now: Instant) {
        loop {
            while let Some(op) = self.work.granted.pop_front() {
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
    pub(super) fn move_the_rest(&mut self, now: Instant) -> Moved {
        let has_begun = self.keep_metadata(now);
        if self.keep_journal(now) == Moved::No
            && self.keep_metadata(now) == Moved::No
            && has_begun == Moved::No
            && self.work.granted.is_empty()
            && self.lose_overdue(now) == Moved::No
            && self.lose_unstored(now) == Moved::No
            && self.resync_within_budget(now) == Moved::No
            && self.scrub_within_budget(now) == Moved::No
            && self.keep_rebuild(now) == Moved::No
            && self.keep_copy(now) == Moved::No
            && self.check_written(now) == Moved::No
            && self.go_on_behind(now) == Moved::No
        {
            return Moved::No;
        }
        Moved::Yes
    }

    pub(super) fn tell(&mut self, event: ArrayEvent) {
        self.core.out.push(Action::Event(Event::Array(event)));
    }

    /// Tells what is new about the resync.
    pub(super) fn tell_resync(&mut self) {
        let (synced, stripes) = (self.core.holdings.synced(), self.core.layout().stripes());
        let event = self.own.resync_told.look(self.own.resync, ResyncProgress { synced, stripes });
        event.into_iter().for_each(|event| self.tell(event));
    }

    /// Has it recorded that the array does without a drive.
    fn record_lost(&mut self, drive: DriveIdx, why: Why) {
        if let Some(store) = &mut self.store {
            if store.records_losses() {
                self.core.gate.lose(drive);
            }
            store.handle_lost(&mut self.core, drive, why);
        } else {
            self.core.lose_member(drive, Membership::Lost { why });
        }
    }

    pub(super) fn lose(&mut self, now: Instant, drive: DriveIdx, why: Why) {
        if self.core.drives.away().contains(drive) {
            return;
        }
        let survived = !self.core.has_failed();
        let recorded = self.recorded_why(drive, why);
        self.note_copied_lost(drive);
        self.own.rebuild.forget_copied(drive);
        self.core.holdings.lose(drive);
        let events = self.core.drives.handle_lost(now, drive);
        self.note_lost_writes();
        self.record_lost(drive, recorded);
        if let Some(journal) = &mut self.journal {
            journal.handle_lost(&mut self.core, drive);
        }
        self.forget_written(now, drive);
        self.forget_records(drive);
        self.core.verify.promises.forget_reads(drive);
        let is_copied = self.has_made_way(drive);
        self.core.out.push(Action::Event(Event::Lost { drive, why, is_copied }));
        let (lost, spec) = (self.core.drives.lost(), *self.core.layout().spec());
        if self.core.has_failed() && survived {
            self.tell(ArrayEvent::Failed { lost, survives: spec.redundant() });
        }
        self.core.note_events(events);
        // A drive that hangs may never end the commands inside it, so no operation waits for them either.
        let mut given_up = self.core.drain_waiting(drive);
        given_up.extend(self.core.give_up_inside(drive));
        given_up.extend(self.take_behind(drive));
        for (sub, state) in given_up {
            self.give_up(now, sub, &state);
        }
    }
}
