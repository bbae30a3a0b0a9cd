//! What comes into the place of a lost drive: a new one, of which nothing is used, or the very drive that was lost, which
//! holds all but what is on its map.
//!
//! ```text
//!   lost, and that is recorded --> another drive, empty ----> the books name it (MW4) --> it is filled
//!                             +--> the drive itself, back --> under a new name -------> it is given what it has missed
//! ```

use levelhead_units::{DriveIdx, Instant};

use crate::durable::ledger::NewMember;
use crate::durable::quorum::is_very_drive;
use crate::durable::superblock::{Own, Superblock};
use crate::{Array, Op, Stop};

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
    /// The place of a lost drive has a new one, of which nothing is used: it is filled. `new` is what the books say of
    /// it, where books are kept.
    pub fn handle_replaced(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        new: Option<NewMember>,
    ) -> Result<(), NotReplaced> {
        self.may_replace(drive)?;
        assert_eq!(self.ledger.is_some(), new.is_some(), "G: what the books say of drive {drive}");
        if self.core.missed.end_when_named(drive) {
            self.core.unnamed = self.core.unnamed.with(drive);
        }
        self.forget_errors(drive);
        self.take_place(drive, new);
        self.move_on(now);
        Ok(())
    }

    /// A lost drive is back, and none of its commands is inside it: it is given what it has missed. `new` is what the
    /// books say of it from now on; its name is a new one, so that nothing counts that is on it but what its map says.
    pub fn handle_returned(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        new: Option<NewMember>,
    ) -> Result<(), NotReplaced> {
        self.may_return(drive)?;
        assert_eq!(self.ledger.is_some(), new.is_some(), "G: what the books say of drive {drive}");
        if !self.has_nothing_to_fill(drive) {
            self.begin_return(drive);
        }
        self.take_place(drive, new);
        self.move_on(now);
        Ok(())
    }

    /// The place of a lost drive has one that holds what is not on its map.
    pub(crate) fn begin_return(&mut self, drive: DriveIdx) {
        self.core.missed.begin_return(drive);
        for (_, op) in self.ops.iter() {
            if let Op::Write(write) = op {
                write.note_returned(&mut self.core, drive);
            }
        }
    }

    /// Whether a drive with this superblock is the very one that a place has lost, and it is known what it has missed.
    pub fn knows(&self, drive: DriveIdx, word: &Superblock) -> bool {
        let Some(ledger) = &self.ledger else { return false };
        if self.has_nothing_to_fill(drive) {
            return word.own.drive == drive && word.book.array == ledger.array();
        }
        let Some(last) = self.core.missed.lost_at(drive) else { return false };
        let members = ledger.members();
        word.own.drive == drive
            && word.book.array == ledger.array()
            && members.get(drive.as_usize()).is_some_and(|known| known.uuid == word.member())
            && is_very_drive(&word.book, members, drive, last)
    }

    /// Whether data may be written: the books say that the array is in use, and which drives it does without.
    pub fn is_open(&self) -> bool {
        self.core.may_write
    }

    /// What a drive says of itself that is there, or was.
    pub fn own(&self, drive: DriveIdx) -> Option<&Own> {
        self.ledger.as_ref()?.own_of(drive)
    }

    /// Whether a lost drive may be caught up now.
    pub fn may_return(&self, drive: DriveIdx) -> Result<(), NotReplaced> {
        self.may_replace(drive)?;
        if !self.core.missed.kept().contains(drive) && !self.has_nothing_to_fill(drive) {
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

    /// What is in the place of a lost drive is filled from now on, and is part of the array's books.
    pub(crate) fn take_place(&mut self, drive: DriveIdx, new: Option<NewMember>) {
        assert_ne!(self.rebuild_drive(), Some(drive), "RB6: it was filled before");
        self.end_wanting_back(drive);
        self.core.orphan(drive);
        self.core.drives.begin_filling(drive);
        self.core.valid[drive.as_usize()] = 0;
        if let Some(journal) = &mut self.journal {
            journal.begin_filling(drive, new.as_ref().map(|new| new.uuid));
        }
        if let Some(new) = &new {
            self.list_copies.replace(drive, new.uuid, &new.own);
        }
        if let (Some(ledger), Some(new)) = (&mut self.ledger, new) {
            self.map_copies.renew(drive, &new.own, new.uuid);
            ledger.begin_filling(&mut self.core, drive, new);
        }
    }

    /// Whether a new drive may come into a place now.
    pub fn may_replace(&self, drive: DriveIdx) -> Result<(), NotReplaced> {
        let drives = &self.core.drives;
        let is_recovering = self.journal.as_ref().is_some_and(|journal| !journal.is_ready());
        match () {
            () if self.core.code.is_none() => Err(NotReplaced::NotRedundant),
            () if !drives.lost().contains(drive) => Err(NotReplaced::Present),
            () if drives.filling().contains(drive) => Err(NotReplaced::Filling),
            () if self.is_copied(drive) => Err(NotReplaced::Copying { drive }),
            // What was copied to the drive that was lost is nothing to a new one.
            () if self.rebuild_drive() == Some(drive) => Err(NotReplaced::Busy),
            () if self.core.has_failed() => Err(NotReplaced::Failed),
            () if self.core.unrecorded.contains(drive) => Err(NotReplaced::Unrecorded),
            () if is_recovering => Err(NotReplaced::Recovering),
            () if self.stop != Stop::No || self.give_up_at.is_some() => Err(NotReplaced::Ending),
            () => Ok(()),
        }
    }
}
