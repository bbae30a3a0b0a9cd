//! What a world's array has written on its members for the next start.
//!
//! Where a bug is to be planted in the keeping of the books, it is planted here: the product has no switch
//! for it.

use std::collections::VecDeque;

use levelhead_array::Submit;
use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_array::membership::Membership;
use levelhead_array::superblock::Superblock;
use levelhead_block::Command;
use levelhead_units::{Lba, Sectors};

use crate::bytes::LateCopy;

/// A bug in the keeping of the books, for a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None.
    None,
    /// What is recorded counts as safe before it is on the medium, which it is when something else has been
    /// recorded after it: answers go out before the record that they rely on. When it is read back the drive gives it, from its
    /// memory.
    RecordLate,
    /// A change of the array's state does not raise the generation.
    SameGeneration,
    /// A member that holds old data is taken for a good one.
    StaleMember,
    /// The drives that the array does without are not recorded.
    LostSet,
    /// What was copied to a new drive is recorded before it is flushed.
    MarkBeforeFlush,
    /// A stripe is copied to a new drive while a write changes it.
    CopyWithoutLock,
}

/// What is written on the members, and who reads it.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) planted: Planted,
    /// Where each member has its superblocks.
    pub(crate) copies: Vec<[Lba; 2]>,
    pub(crate) sizes: Vec<Sectors>,
    /// How many times the array was started.
    pub(crate) runs: u64,
    /// The last records of each drive, where records are late.
    pub(crate) late: Vec<VecDeque<LateCopy>>,
    /// Commands that kept the books.
    pub(crate) writes: u64,
}

impl Planted {
    /// The rule of the array that is left out.
    pub(crate) fn rules(self) -> Rules {
        match self {
            Self::MarkBeforeFlush => Rules::without(Rule::FillFlush),
            Self::CopyWithoutLock => Rules::without(Rule::FillLock),
            Self::None
            | Self::RecordLate
            | Self::SameGeneration
            | Self::StaleMember
            | Self::LostSet => Rules::ALL,
        }
    }
}

impl Shelf {
    /// What a member is told to say, with the bug in it.
    pub(crate) fn inscribe(&self, superblock: Superblock) -> Superblock {
        let mut told = superblock;
        match self.planted {
            Planted::SameGeneration => told.book.generation = 1,
            Planted::LostSet => {
                let members = &mut told.book.members;
                members.iter_mut().for_each(|member| member.membership = Membership::Present);
            }
            Planted::None
            | Planted::RecordLate
            | Planted::StaleMember
            | Planted::MarkBeforeFlush
            | Planted::CopyWithoutLock => {}
        }
        told
    }

    /// Counts what keeps the books.
    pub(crate) fn note_submitted(&mut self, submit: &Submit) {
        self.writes += u64::from(self.is_record(submit));
    }

    /// Whether a command writes a superblock.
    pub(crate) fn is_record(&self, submit: &Submit) -> bool {
        let copies = &self.copies[submit.drive.as_usize()];
        match submit.command {
            Command::Write { extent, .. } => copies.contains(&extent.lba),
            Command::Read { .. }
            | Command::WriteZeroes { .. }
            | Command::Trim { .. }
            | Command::Flush => false,
        }
    }

    /// What a drive gives from its memory for a record that is read back, if records are late.
    pub(crate) fn remembered(&self, submit: &Submit) -> Option<&LateCopy> {
        let Command::Read { extent, .. } = submit.command else { return None };
        let late = &self.late[submit.drive.as_usize()];
        late.iter().rev().find(|copy| copy.lba == extent.lba && extent.sectors == Sectors::new(1))
    }

    /// Where the record before this one is kept, if records are late: see [`Planted::RecordLate`].
    pub(crate) fn delay(&mut self, submit: &Submit) -> Option<&mut VecDeque<LateCopy>> {
        let is_late = self.planted == Planted::RecordLate && self.is_record(submit);
        is_late.then(|| &mut self.late[submit.drive.as_usize()])
    }
}
