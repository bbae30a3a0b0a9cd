//! What comes into the place of a lost drive: a new one, of which nothing is used, or the very drive that was lost, which
//! holds all but what it is known to lack.
//!
//! ```text
//!   lost, and that is recorded --> another drive, empty ----> it is named for good (MW4) --> it is filled
//!                             +--> the drive itself, back --> its new seating is ---------> it is given what it lacks
//! ```

use levelhead_units::{DriveIdx, Instant};

use crate::array::parts::Stop;
use crate::array::{Array, Op};
use crate::meta::assembly::{Word, may_return};
use crate::meta::own::NewMember;
use crate::meta::state::Holds;

/// Why a drive cannot come into a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReplaced {
    /// The array has the drive of that place.
    Present,
    /// It is being filled already.
    Filling,
    /// Its loss is not recorded yet.
    Unrecorded,
    /// More drives are lost than the layout survives.
    Failed,
    /// Nothing is redundant.
    NotRedundant,
    /// What an earlier crash left is being brought to its place.
    Recovering,
    /// The array is ending.
    Ending,
    /// It is not known what the drive has missed.
    NoMap,
    /// The drive may still carry out commands of the time before it was lost.
    Busy,
    /// A new drive is given a copy of one already.
    Copying {
        /// Of which one.
        drive: DriveIdx,
    },
    /// Redundancy is not valid everywhere yet.
    Unsynced,
    /// The array cannot do without the drive, not even for a moment.
    Needed,
    /// The drive has nothing but the journal: another one in its place has all that it needs at once.
    OnlyJournal,
    /// What drives miss is not marked in this array, or there is no room for that.
    Unmapped,
}

impl Array {
    /// The place of a lost drive has a new one, of which nothing is used: it is filled. `new` is what is recorded of
    /// it, where that is.
    pub fn handle_replaced(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        new: Option<NewMember>,
    ) -> Result<(), NotReplaced> {
        self.may_replace(drive)?;
        assert_eq!(self.store.is_some(), new.is_some(), "what is recorded of drive {drive}");
        self.forget_errors(drive);
        self.take_place(drive, new, Holds::Nothing);
        self.move_on(now);
        Ok(())
    }

    /// A lost drive is back, and none of its commands is inside it: it is given what it lacks. `new` is what is recorded of it
    /// from now on, with the identity that it has; it is another seating, so that nothing from before counts.
    pub fn handle_returned(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        new: Option<NewMember>,
    ) -> Result<(), NotReplaced> {
        self.may_return(drive)?;
        assert_eq!(self.store.is_some(), new.is_some(), "what is recorded of drive {drive}");
        self.take_place(drive, new, Holds::AllButWhatIsLacking);
        if let Some(journal) = &mut self.journal {
            journal.read_list_of(&mut self.core, now, drive);
        }
        self.move_on(now);
        Ok(())
    }

    /// A drive holds what it does not lack from now on: it is named for good.
    pub(crate) fn note_back(&mut self, drive: DriveIdx) {
        for (_, op) in self.work.ops.iter() {
            if let Op::Write(write) = op {
                write.note_returned(&mut self.core, drive);
            }
        }
    }

    /// Whether a drive that says this is the very one that a place has lost, and it is known what it lacks.
    pub fn knows(&self, drive: DriveIdx, word: &Word) -> bool {
        let (Some(member), Some(array)) = (self.members(), self.uuid()) else { return false };
        let Word { superblock, metadata, .. } = word;
        if superblock.own.drive != drive || superblock.array != array {
            return false;
        }
        let is_member =
            member.get(drive.as_usize()).is_some_and(|known| known.id.uuid == superblock.member);
        let is_very_drive =
            metadata.as_deref().is_some_and(|known| may_return(known, member, drive, 0));
        is_member && (self.has_nothing_to_fill(drive) || is_very_drive)
    }

    /// Whether a lost drive may be caught up now.
    pub fn may_return(&self, drive: DriveIdx) -> Result<(), NotReplaced> {
        self.may_replace(drive)?;
        if !self.core.meta.knows_lacks_for_good(drive) && !self.has_nothing_to_fill(drive) {
            return Err(NotReplaced::NoMap);
        }
        self.may_be_used_again(drive)
    }

    /// Whether a lost drive, and not another one in its place, may be written to now: nothing that it was given before may
    /// land after that.
    pub fn may_be_used_again(&self, drive: DriveIdx) -> Result<(), NotReplaced> {
        self.may_replace(drive)?;
        let is_busy = self.core.has_inside(drive) || self.rebuild_drive() == Some(drive);
        if is_busy { Err(NotReplaced::Busy) } else { Ok(()) }
    }

    /// What is in the place of a lost drive is filled from now on, and is a member of the array.
    pub(crate) fn take_place(&mut self, drive: DriveIdx, new: Option<NewMember>, holds: Holds) {
        assert_ne!(self.rebuild_drive(), Some(drive), "RB6: it was filled before");
        self.end_wanting_back(drive);
        self.core.orphan(drive);
        self.core.drives.begin_filling(drive);
        self.core.holdings.fill_to(drive, 0);
        match (&mut self.store, new) {
            (Some(store), Some(new)) => store.begin_filling(&mut self.core, drive, new, holds),
            _ => {
                let uuid = self.core.meta.id(drive).uuid;
                self.core.meta.seat(drive, uuid, holds);
            }
        }
        if let Some(tags) = &mut self.core.tags {
            match holds {
                Holds::Nothing => tags.forget(drive),
                Holds::AllButWhatIsLacking => tags.relist(drive),
            }
        }
        if let Some(journal) = &mut self.journal {
            journal.begin_filling(drive, self.core.meta.id(drive));
        }
    }

    /// Whether a new drive may come into a place now.
    pub fn may_replace(&self, drive: DriveIdx) -> Result<(), NotReplaced> {
        let drives = &self.core.drives;
        let is_recovering = self.journal.as_ref().is_some_and(|journal| !journal.is_ready());
        match () {
            () if self.core.code().is_none() => Err(NotReplaced::NotRedundant),
            () if !drives.lost().contains(drive) => Err(NotReplaced::Present),
            () if drives.filling().contains(drive) => Err(NotReplaced::Filling),
            () if self.is_copied(drive) => Err(NotReplaced::Copying { drive }),
            // What was copied to the drive that was lost is nothing to a new one.
            () if self.rebuild_drive() == Some(drive) => Err(NotReplaced::Busy),
            () if self.core.has_failed() => Err(NotReplaced::Failed),
            () if self.core.gate.unrecorded().contains(drive) => Err(NotReplaced::Unrecorded),
            () if is_recovering => Err(NotReplaced::Recovering),
            () if self.end.stop != Stop::No || self.end.give_up_at.is_some() => {
                Err(NotReplaced::Ending)
            }
            () => Ok(()),
        }
    }
}
