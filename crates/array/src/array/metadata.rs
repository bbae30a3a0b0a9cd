//! How the array and its metadata work together, up to the array's end.

use levelhead_units::{DriveIdx, DriveSet, Instant, Sectors};

use crate::action::Action;
use crate::array::parts::Stop;
use crate::array::{Array, Moved};
use crate::event::{ArrayEvent, Ending};
use crate::journal::Journal;
use crate::meta::damaged::DamagedList;
use crate::meta::membership::{Generation, Member};
use crate::meta::metadata::Forced;
use crate::meta::own::Own;
use crate::meta::state::DamagedSummary;
use crate::meta::uuid::Uuid;
use crate::meta::wishes::Wishes;
use crate::store::Store;

impl Array {
    /// How the array stands with each of its drives, where that is recorded.
    pub fn members(&self) -> Option<&[Member]> {
        self.store.as_ref().map(|_| self.core.meta.members())
    }

    /// What some member says of itself that holds what this drive should: data, or nothing but the journal. Nothing where
    /// nothing is recorded.
    pub fn own_of_a_member(&self, like: DriveIdx) -> Option<&Own> {
        let (store, spec) = (self.store.as_ref()?, self.core.layout().spec());
        let data = spec.data_drives();
        let alike = if data.contains(like) { data } else { spec.journal_drives() };
        let mut present = self.core.drives.present().and(alike).iter();
        present.next().and_then(|drive| store.own(drive))
    }

    /// What a drive says of itself that is there, or was.
    pub fn own(&self, drive: DriveIdx) -> Option<&Own> {
        self.store.as_ref()?.own(drive)
    }

    /// Sectors of a drive that hold data, where that is recorded.
    pub fn drive_size(&self, drive: DriveIdx) -> Option<Sectors> {
        let has_data = self.core.layout().spec().data_drives().contains(drive);
        self.store.as_ref()?;
        Some(if has_data { self.core.meta.now().drive_size } else { Sectors::ZERO })
    }

    /// What tells it from other arrays, where that is recorded.
    pub fn uuid(&self) -> Option<Uuid> {
        self.store.as_ref().map(|_| self.core.meta.now().array)
    }

    /// Whether an operator has made it go on where data may be wrong.
    pub fn forced(&self) -> Forced {
        self.core.meta.now().forced
    }

    /// The generation of what is recorded, where something is.
    pub fn generation(&self) -> Option<Generation> {
        self.store.as_ref().map(|_| self.core.meta.begun())
    }

    /// Whether what it goes on with is on enough drives that the next start finds it, whatever loss the array survives. Also
    /// where nothing is recorded.
    pub fn is_recorded(&self) -> bool {
        self.store.as_ref().is_none_or(Store::is_recorded)
    }

    /// Stripes, from the first on, whose redundancy is valid as enough drives say.
    pub fn synced_recorded(&self) -> u64 {
        if self.is_recorded() { self.core.holdings.synced_for_good() } else { 0 }
    }

    /// How many sectors of its drives are damaged, and how well that is known.
    pub fn damaged_summary(&self) -> DamagedSummary {
        self.core.meta.damaged_summary()
    }

    /// The sectors of its drives that are damaged.
    pub fn damaged(&self) -> &DamagedList {
        self.core.meta.damaged()
    }

    /// Drives of which it is known what they lack.
    pub fn mapped(&self) -> DriveSet {
        let members = self.core.meta.members().iter().enumerate();
        let known = members.filter(|(_, member)| member.lacks.is_some());
        known.map(|(at, _)| DriveIdx::from_usize(at)).collect()
    }

    /// Whether data may be written: the metadata says that the array is in use, and which drives it does without.
    pub fn is_open(&self) -> bool {
        self.core.gate.may_write()
    }

    /// What operators have said of the array's own work, and how far that is.
    fn wishes(&self) -> Wishes {
        Wishes { rebuild: self.rebuild_wish(), scrub: self.own.scrub.mark() }
    }

    /// What is to be known of the array's own work after a restart has changed.
    pub(crate) fn note_wishes(&mut self) {
        let wishes = self.wishes();
        if let Some(store) = &mut self.store {
            store.note_wishes(&mut self.core, wishes);
        }
    }

    /// Moves the metadata on, and what waits for it.
    pub(crate) fn keep_metadata(&mut self, now: Instant) -> Moved {
        self.move_store(now);
        for drive in self.core.meta.take_returned().iter() {
            self.note_back(drive);
        }
        if !self.core.meta.take_news() {
            return Moved::No;
        }
        if let Some(journal) = &mut self.journal {
            journal.note_metadata_committed(&mut self.core);
        }
        for op in self.core.meta.take_ready() {
            self.advance(now, op);
            self.core.meta.forget(op);
        }
        Moved::Yes
    }

    fn move_store(&mut self, now: Instant) {
        if self.store.is_none() && self.end.stop == Stop::No {
            return;
        }
        let meta = &self.core.meta;
        // What was found on too few drives is so again at the next start.
        let is_as_found = !self.core.gate.may_write() && !meta.wants_opening();
        let is_recorded = meta.is_settled() || is_as_found || self.core.has_failed();
        let mut is_done = self.end.stop == Stop::Wanted && self.work.ops.is_empty() && is_recorded;
        if let (true, Some(journal)) = (is_done, &mut self.journal) {
            journal.drain();
            journal.advance(&mut self.core, now);
            let has_failed = self.core.has_failed();
            if has_failed {
                journal.let_go(&mut self.core);
            }
            let is_clean = journal.is_drained() && self.core.are_tags_written();
            is_done = has_failed || (is_clean && self.core.are_tags_at_rest());
            // Also while a mark is on its way that a drive is to get that hinders.
            self.core.log.next = journal.is_over().then(|| journal.next());
        }
        let (opens, wishes) = (self.opens_for_rebuild(), self.wishes());
        let mut looks = DriveSet::EMPTY;
        let ending = match &mut self.store {
            None if self.core.has_failed() => Some(Ending::Failed),
            None => Some(Ending::Clean),
            Some(store) => {
                if is_done {
                    store.close(&mut self.core, now, wishes);
                }
                let is_recovering = self.journal.as_ref().is_some_and(|known| !known.is_ready());
                if opens || is_recovering || self.core.meta.wants_opening() {
                    store.open(&mut self.core); // X1
                }
                let silent = self.core.drives.silent();
                store.advance(&mut self.core, now, silent);
                looks = store.take_wanted_looks();
                self.core.gate.set_open(store.is_open());
                let is_ready = self.journal.as_ref().is_none_or(Journal::is_ready);
                if (is_ready && store.is_open()) || self.core.has_failed() {
                    self.work.open();
                }
                store.ending(&self.core)
            }
        };
        self.look_at(now, looks);
        let is_quiet = self.core.is_quiet_but_for_silent() && !self.readback.records.is_comparing();
        let ending = ending.filter(|_| is_done && is_quiet);
        if let Some(ending) = ending {
            self.end(ending);
        } else if self.end.stop == Stop::Wanted && self.end.by.is_some_and(|by| by <= now) {
            self.end(Ending::Unsafe { silent: self.core.drives.silent() });
        }
    }

    fn end(&mut self, ending: Ending) {
        self.end.stop = Stop::Told;
        self.tell_runs();
        self.tell(ArrayEvent::Stopped(ending));
        self.core.out.push(Action::Stopped(ending));
    }
}
