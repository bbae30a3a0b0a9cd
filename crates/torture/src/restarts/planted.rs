//! Bugs in the keeping of superblocks, for canaries: planted on the members before a start, and in the rules of the journal.

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_array::membership::Membership;
use levelhead_array::superblock::Superblock;
use levelhead_block::BlockDevice;
use levelhead_lab::World;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Sectors};

/// A bug for a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None.
    None,
    /// Drives that say of every flush at once that it has ended.
    LyingFlushes,
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

impl Planted {
    /// The rules that the array keeps.
    pub(super) fn rules(self) -> Rules {
        match self {
            Self::MarkBeforeFlush => Rules::without(Rule::FillFlush),
            Self::CopyWithoutLock => Rules::without(Rule::FillLock),
            _ => Rules::ALL,
        }
    }

    /// Makes the members say what they would say if the array had the bug.
    pub(super) fn plant(self, world: &mut World, shown: DriveSet) {
        match self {
            Self::SameGeneration => change_all(world, shown, |_, word| word.book.generation = 1),
            Self::LostSet => change_all(world, shown, |_, word| {
                let members = &mut word.book.members;
                members.iter_mut().for_each(|member| member.membership = Membership::Present);
            }),
            Self::StaleMember => make_current(world, shown),
            Self::None | Self::LyingFlushes | Self::MarkBeforeFlush | Self::CopyWithoutLock => {}
        }
    }
}

/// Gives every member the newest book, in which those with an older one are present.
fn make_current(world: &mut World, shown: DriveSet) {
    let mut said: Vec<(DriveIdx, Superblock)> = Vec::new();
    change_all(world, shown, |drive, word| said.push((drive, word.clone())));
    let Some((_, newest)) = said.iter().max_by_key(|(_, word)| word.book.generation) else {
        return;
    };
    let mut book = newest.book.clone();
    for (drive, _) in said.iter().filter(|(_, word)| word.book.generation < book.generation) {
        book.members[drive.as_usize()].membership = Membership::Present;
    }
    change_all(world, shown, |_, word| word.book = book.clone());
}

/// Changes every superblock of these drives: at the first of their sectors and at the last.
fn change_all(
    world: &mut World,
    shown: DriveSet,
    mut change: impl FnMut(DriveIdx, &mut Superblock),
) {
    for drive in shown.iter() {
        let medium = world.platter_mut(drive).expect("bytes are carried");
        for lba in [Lba::ZERO, Lba::ZERO + (medium.size() - Sectors::new(1))] {
            let sector = medium.bytes_mut(Extent::new(lba, Sectors::new(1)));
            if let Ok(mut word) = Superblock::decode(sector) {
                change(drive, &mut word);
                sector.copy_from_slice(&word.encode());
            }
        }
    }
}
