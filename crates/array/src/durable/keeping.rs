//! How the array and its ledger work together, up to the array's end.

use levelhead_units::{DriveIdx, Instant, Sectors};

use super::ledger::Ledger;
use super::membership::Member;
use super::superblock::{Forced, Own, Uuid};
use super::wishes::Wishes;
use crate::action::Action;
use crate::event::{ArrayEvent, Ending};
use crate::journal::Journal;
use crate::{Array, Stop};

impl Array {
    /// How the array stands with each of its drives, where that is recorded.
    pub fn members(&self) -> Option<&[Member]> {
        self.ledger.as_ref().map(Ledger::members)
    }

    /// What some member says of itself that holds what this drive should: data, or nothing but the journal. Nothing where
    /// no books are kept.
    pub fn own_of_a_member(&self, like: DriveIdx) -> Option<&Own> {
        let (ledger, spec) = (self.ledger.as_ref()?, self.core.layout.spec());
        let data = spec.data_drives();
        let alike = if data.contains(like) { data } else { spec.journal_drives() };
        self.core.drives.present().and(alike).iter().next().map(|drive| ledger.own(drive))
    }

    /// Sectors of a drive that hold data, where books are kept.
    pub fn drive_size(&self, drive: DriveIdx) -> Option<Sectors> {
        let has_data = self.core.layout.spec().data_drives().contains(drive);
        let size = self.ledger.as_ref()?.drive_size();
        Some(if has_data { size } else { Sectors::ZERO })
    }

    /// What tells it from other arrays, where that is recorded.
    pub fn uuid(&self) -> Option<Uuid> {
        self.ledger.as_ref().map(Ledger::array)
    }

    /// Whether an operator has made it go on where data may be wrong.
    pub fn forced(&self) -> Forced {
        self.ledger.as_ref().map_or(Forced::No, Ledger::forced)
    }

    /// The generation of what is recorded, where something is.
    pub fn generation(&self) -> Option<u64> {
        self.ledger.as_ref().map(Ledger::generation)
    }

    /// Whether what it goes on with is on enough drives that the next start finds it, whatever loss the array survives. Also
    /// where no books are kept.
    pub fn is_recorded(&self) -> bool {
        self.ledger.as_ref().is_none_or(Ledger::is_recorded)
    }

    /// Stripes, from the first on, whose redundancy is valid as enough drives say.
    pub fn synced_recorded(&self) -> u64 {
        if self.is_recorded() { self.core.synced_for_good } else { 0 }
    }

    /// What operators have said of the array's own work, and how far that is.
    fn wishes(&self) -> Wishes {
        Wishes { rebuild: self.rebuild_wish(), scrub: self.scrub.mark() }
    }

    /// What is to be known of the array's own work after a restart has changed.
    pub(crate) fn note_wishes(&mut self) {
        let wishes = self.wishes();
        if let Some(ledger) = &mut self.ledger {
            ledger.note_wishes(&self.core, wishes);
        }
    }

    /// Moves the ledger on, and what waits for it.
    pub(crate) fn keep_books(&mut self, now: Instant) {
        if self.ledger.is_none() && self.stop == Stop::No {
            return;
        }
        let damaged = &self.core.damaged;
        // What was found on too few drives is so again at the next start.
        let is_as_found = !self.core.may_write && !damaged.is_changed();
        let is_mapped = !self.core.may_write || self.core.missed.is_at_rest();
        let is_listed = damaged.is_safe() || is_as_found;
        let is_listed = (is_listed && is_mapped) || self.core.has_failed();
        let mut is_done = self.stop == Stop::Wanted && self.ops.is_empty() && is_listed;
        if let (true, Some(journal)) = (is_done, &mut self.journal) {
            journal.drain();
            journal.advance(&mut self.core, now);
            let has_failed = self.core.has_failed();
            if has_failed {
                journal.let_go(&mut self.core);
            }
            is_done = has_failed || journal.is_drained();
            // Also while a mark is on its way that a drive is to get that hinders.
            self.core.journal_next = journal.is_over().then(|| journal.next());
        }
        let (opens, wishes) = (self.opens_for_rebuild(), self.wishes());
        let ending = match &mut self.ledger {
            None if self.core.has_failed() => Some(Ending::Failed),
            None => Some(Ending::Clean),
            Some(ledger) => {
                if is_done {
                    ledger.close(&mut self.core, now, wishes);
                }
                if opens || self.journal.as_ref().is_some_and(|journal| !journal.is_ready()) {
                    ledger.open(&mut self.core); // X1
                }
                let silent = self.core.drives.silent();
                ledger.advance(&mut self.core, now, silent);
                self.core.may_write = ledger.is_open();
                let is_ready = self.journal.as_ref().is_none_or(Journal::is_ready);
                if (is_ready && ledger.is_open()) || self.core.has_failed() {
                    self.granted.extend(self.unopened.drain(..));
                }
                ledger.ending(&self.core)
            }
        };
        let is_quiet = self.core.is_quiet_but_for_silent() && !self.record_checks.is_comparing();
        let ending = ending.filter(|_| is_done && is_quiet);
        if let Some(ending) = ending {
            self.end(ending);
        } else if self.stop == Stop::Wanted && self.stop_by.is_some_and(|by| by <= now) {
            self.end(Ending::Unsafe { silent: self.core.drives.silent() });
        }
    }

    fn end(&mut self, ending: Ending) {
        self.stop = Stop::Told;
        self.tell_runs();
        self.tell(ArrayEvent::Stopped(ending));
        self.core.actions.push_back(Action::Stopped(ending));
    }
}
