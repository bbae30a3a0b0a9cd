//! How a drive that was given a copy takes the place of the other one: the last steps of [`copying`](super).

use levelhead_block::Command;
use levelhead_units::{DriveSet, Instant};

use super::{Last, Phase};
use crate::action::{Action, Segments};
use crate::array::{Array, Moved};
use crate::core::ForComing;
use crate::core::copied::{Coming, What};
use crate::event::ArrayEvent;
use crate::journal::Journal;
use crate::log::rules::Rule;
use crate::meta::membership::Why;
use crate::meta::state::Holds;
use crate::progress::CopyProgress;

/// The array makes itself do without a drive while so little of it waits for its place, or when the time for that is over.
const UNPLACED_MAX: u64 = 16;

impl Array {
    /// Whether the array may make itself do without the drive now (CP3).
    pub(super) fn may_exchange(&self) -> bool {
        let Some(copying) = self.own.copies.now.as_deref() else { return false };
        let only = DriveSet::EMPTY.with(copying.drive);
        let is_ready = self.journal.as_ref().is_none_or(Journal::is_ready);
        let has_room = self.core.meta.has_room() || self.core.meta.knows_lacks(copying.drive);
        self.core.gate.may_write()
            && has_room
            && is_ready
            && !self.rebuild_wish().is_paused
            && !self.is_rebuilding()
            && self.core.drives.can_spare(only.or(self.core.drives.silent()))
    }

    pub(super) fn hurry(&mut self, hurries: bool) {
        if let Some(journal) = &mut self.journal {
            journal.hurry(hurries);
        }
    }

    pub(super) fn flush_coming(&mut self, now: Instant) {
        if self.keeps(Rule::CopyFlush) {
            let (what, command) = (What::Flush, Command::Flush);
            let (segments, bufs) = (Segments::NONE, Vec::new());
            self.core.ask_coming(now, ForComing { what, command, segments, bufs });
        }
    }

    /// Gives the new drive the list of checksums that its tag sectors lack, before it is named: as a member it has no other one.
    fn list_coming(&mut self, now: Instant) -> bool {
        let copying = self.own.copies.now.as_ref().expect("a copy is made");
        let (Some(journal), Some(new)) = (&self.journal, &copying.new) else { return false };
        journal.list_copy(&mut self.core, now, copying.drive, new.uuid)
    }

    fn is_flushing_coming(&self) -> bool {
        let is_flush = |coming: &Coming| coming.what == What::Flush;
        self.core.holdings.copied().is_some_and(|copied| copied.inside.values().any(is_flush))
    }

    /// The new drive has been flushed: the array does without the old one.
    pub(super) fn let_go_of_copied(&mut self, now: Instant, until: Instant) -> Moved {
        let drive = self.own.copies.now.as_ref().expect("a copy is made").drive;
        let is_little = self.core.log.unplaced.of(drive).len() as u64 <= UNPLACED_MAX;
        if self.is_flushing_coming() || !(is_little || until <= now) {
            return Moved::No;
        }
        self.hurry(false);
        if !self.may_exchange() {
            return self.set_copy_phase(Phase::Copying);
        }
        let copied = self.core.holdings.copied().expect("CO1: it is copied");
        if !copied.is_little() && !copied.is_small_share() {
            // Clients have written much meanwhile.
            self.own.copies.now.as_mut().expect("a copy is made").pass.vain += 1;
            return self.set_copy_phase(Phase::Copying);
        }
        self.set_copy_phase(Phase::Leaving);
        self.lose(now, drive, Why::ByHand);
        Moved::Yes
    }

    /// The new drive has the place, if it may (CP2).
    pub(super) fn seat(&mut self, now: Instant, last: Last, is_idle: bool) -> Moved {
        match last {
            Last::NotYet | Last::Listing if !is_idle => return Moved::No,
            Last::NotYet if self.list_coming(now) => {
                return self.set_copy_phase(Phase::Lost(Last::Listing));
            }
            Last::NotYet | Last::Listing => {
                let is_kept = self.keeps(Rule::CopyFlush);
                self.flush_coming(now);
                let last = if is_kept { Last::Flushing } else { Last::Flushed };
                return self.set_copy_phase(Phase::Lost(last));
            }
            Last::Flushing => return Moved::No,
            Last::Flushed => {}
        }
        let drive = self.own.copies.now.as_ref().expect("a copy is made").drive;
        let meta = &self.core.meta;
        let is_recorded = meta.knows_lacks_for_good(drive) || !meta.knows_lacks(drive);
        let is_let_go = self.rebuild_drive() != Some(drive);
        if self.core.gate.unrecorded().contains(drive) || !is_recorded || !is_let_go {
            return Moved::No;
        }
        let copied = self.core.holdings.take_copied().expect("CO1: it is copied");
        assert!(copied.inside.is_empty(), "CP2: {:?}", copied.inside);
        self.core.out.push(Action::Seat(drive));
        let copying = self.own.copies.now.as_mut().expect("a copy is made");
        copying.phase = Phase::Seated;
        let new = copying.new.take();
        self.forget_errors(drive);
        self.take_place(drive, new, Holds::AllButWhatIsLacking);
        Moved::Yes
    }

    /// The new drive holds what the one before it does not lack, once it is named for good (CP5).
    pub(super) fn end_seating(&mut self) -> Moved {
        let drive = self.own.copies.now.as_ref().expect("a copy is made").drive;
        if !self.core.meta.is_named(drive) {
            return Moved::No;
        }
        self.own.copies.now = None;
        let regions = self.core.meta.grid().regions;
        self.own.rebuild.note_copied(drive);
        let left = self.core.meta.regions_left(drive, 0).unwrap_or(regions);
        self.tell(ArrayEvent::CopyDone(CopyProgress { drive, left, regions }));
        Moved::Yes
    }
}
