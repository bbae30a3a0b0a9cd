//! Making redundancy valid, a step at a time.

use levelhead_units::Instant;

use crate::array::parts::Stop;
use crate::array::{Array, Moved, Start};
use crate::journal::Journal;
use crate::ops::write::{Cause, Part, Progress};
use crate::progress::Resync;

impl Array {
    /// Starts the next step of making redundancy valid, whatever the budget says, unless one is under way, all
    /// is done, or it is stuck. The step's end shows in [`Array::synced`] and [`Array::resync`].
    pub fn handle_resync(&mut self, now: Instant) {
        self.resync_step(now);
        self.move_on(now);
    }

    /// When the next step is to begin by itself although clients wait.
    pub(crate) fn resync_at(&self) -> Option<Instant> {
        self.own.pacer.next().filter(|_| self.wants_resync())
    }

    /// Starts the next step if the budget has room for it.
    pub(crate) fn resync_within_budget(&mut self, now: Instant) -> Moved {
        if !self.wants_resync()
            || self.is_turn_of_checks()
            || !self.own.pacer.may_begin(now, self.clients.outstanding)
        {
            return Moved::No;
        }
        self.note_scan();
        self.resync_step(now);
        Moved::Yes
    }

    /// An array that is to end soon begins nothing.
    pub(crate) fn wants_resync(&self) -> bool {
        let are_tags_full = self.core.are_tags_full();
        !are_tags_full
            && self.has_resync_step()
            && self.end.stop == Stop::No
            && self.end.give_up_at.is_none()
    }

    fn has_resync_step(&self) -> bool {
        let is_done = self.core.holdings.synced() == self.core.layout().stripes();
        // The first write opens the array, and what is not there then is recorded as missing. A client's write may
        // do that, the array by itself does not: drives of a mirror may still come back.
        let is_opening = self.core.layout().spec().is_mirror() && !self.core.gate.may_write();
        let waits = is_opening && !self.core.drives.lost_data().is_empty();
        let is_ready = self.journal.as_ref().is_none_or(Journal::is_ready);
        let is_alone = is_ready && !self.is_rebuilding();
        self.own.resync == Resync::Idle
            && !is_done
            && self.core.code().is_some()
            && !waits
            && is_alone
    }

    fn resync_step(&mut self, now: Instant) {
        if !self.has_resync_step() {
            return;
        }
        let (spec, lost) = (*self.core.layout().spec(), self.core.drives.lost_data());
        // Copies are made of what is left; redundancy that is computed needs all drives.
        if self.core.has_failed() || !(lost.is_empty() || spec.is_mirror()) {
            self.own.resync = Resync::Stuck;
            return self.tell_resync();
        }
        if spec.groups().all(|group| group.without(lost).len() <= 1) {
            return self.note_synced(now, self.core.layout().stripes());
        }
        self.own.resync = Resync::Running;
        self.own.pacer.note_begin();
        let (first, stripes) = (self.core.holdings.synced(), self.core.layout().stripes());
        let end = stripes.min(first + self.own.pacer.budget().stripes(self.core.layout()));
        self.claim(now, Start::Write(Cause::Resync { first, end }));
    }

    pub(crate) fn note_resync(&mut self, now: Instant, progress: Progress, cause: &Cause) {
        if let (Progress::Done | Progress::Failed, Cause::Resync { .. }) = (progress, cause) {
            self.own.pacer.note_end(now);
        }
        match (progress, cause) {
            (Progress::NotYet, _) | (Progress::Failed, Cause::Client(_)) => {}
            (Progress::Done, &Cause::Resync { first, end }) => {
                assert_eq!(first, self.core.holdings.synced(), "one step at a time");
                self.note_synced(now, end);
            }
            (Progress::Failed, Cause::Resync { .. }) => self.own.resync = Resync::Stuck,
            (Progress::Done, Cause::Client(parts)) => {
                let stripes = |part: &Part| self.core.layout().stripes_of(part.extent);
                let unsynced = |part: &Part| stripes(part).end > self.core.holdings.synced();
                if self.own.resync == Resync::Stuck && parts.iter().any(unsynced) {
                    self.own.resync = Resync::Idle;
                }
            }
        }
    }

    /// Redundancy of the stripes below `end` is valid.
    fn note_synced(&mut self, now: Instant, end: u64) {
        self.core.holdings.set_synced(end);
        if end == self.core.layout().stripes()
            && let Some(store) = &mut self.store
        {
            store.handle_synced(&mut self.core, now);
        }
        self.own.resync = Resync::Idle;
    }
}
