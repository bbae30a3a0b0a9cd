//! Faults of superblocks, for canaries: planted on the members after a power cut and before a start, and in the rules of the
//! journal.

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
    /// A superblock counts as durable before it is: after a power cut each drive has the one before it.
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

impl Planted {
    /// The rules that the array keeps.
    pub(super) fn rules(self) -> Rules {
        match self {
            Self::MarkBeforeFlush => Rules::without(Rule::FillFlush),
            Self::CopyWithoutLock => Rules::without(Rule::FillLock),
            _ => Rules::ALL,
        }
    }

    /// Changes the superblocks of the members to what an array with the bug would have written.
    pub(super) fn plant(self, world: &mut World, shown: DriveSet) {
        match self {
            Self::SameGeneration => {
                change_all(world, shown, |_, superblock| superblock.book.generation = 1);
            }
            Self::LostSet => change_all(world, shown, |_, superblock| {
                let members = &mut superblock.book.members;
                members.iter_mut().for_each(|member| member.membership = Membership::Present);
            }),
            Self::StaleMember => make_current(world, shown),
            Self::None | Self::RecordLate | Self::MarkBeforeFlush | Self::CopyWithoutLock => {}
        }
    }
}

/// The superblocks of all drives, and those before them.
#[derive(Default)]
pub(super) struct Earlier {
    now: Vec<Vec<u8>>,
    before: Vec<Vec<u8>>,
    /// How many drives were replaced by then.
    replaced: u64,
}

impl Earlier {
    /// Notes what has changed since the last look.
    pub(super) fn look(&mut self, world: &mut World) {
        let all: Vec<(DriveIdx, Lba)> = all(world);
        let now: Vec<Vec<u8>> =
            all.iter().map(|&(drive, lba)| sector_mut(world, drive, lba).to_vec()).collect();
        if self.now.len() != now.len() || self.replaced != world.replaced() {
            *self = Self { before: now.clone(), now, replaced: world.replaced() };
            return;
        }
        for (at, sector) in now.into_iter().enumerate() {
            if sector != self.now[at] {
                self.before[at] = std::mem::replace(&mut self.now[at], sector);
            }
        }
    }

    /// Puts the ones before onto the drives.
    pub(super) fn put_back(&self, world: &mut World) {
        for ((drive, lba), before) in all(world).into_iter().zip(&self.before) {
            sector_mut(world, drive, lba).copy_from_slice(before);
        }
    }
}

/// Gives every member the newest book, in which those with an older one are present.
fn make_current(world: &mut World, shown: DriveSet) {
    let mut said: Vec<(DriveIdx, Superblock)> = Vec::new();
    change_all(world, shown, |drive, superblock| said.push((drive, superblock.clone())));
    let Some((_, newest)) = said.iter().max_by_key(|(_, superblock)| superblock.book.generation)
    else {
        return;
    };
    let mut book = newest.book.clone();
    for (drive, _) in
        said.iter().filter(|(_, superblock)| superblock.book.generation < book.generation)
    {
        book.members[drive.as_usize()].membership = Membership::Present;
    }
    change_all(world, shown, |_, superblock| superblock.book = book.clone());
}

/// Changes every superblock of these drives.
fn change_all(
    world: &mut World,
    shown: DriveSet,
    mut change: impl FnMut(DriveIdx, &mut Superblock),
) {
    for drive in shown.iter() {
        for lba in places(world, drive) {
            let sector = sector_mut(world, drive, lba);
            if let Ok(mut superblock) = Superblock::decode(sector) {
                change(drive, &mut superblock);
                sector.copy_from_slice(&superblock.encode());
            }
        }
    }
}

/// Every superblock of every drive.
fn all(world: &mut World) -> Vec<(DriveIdx, Lba)> {
    let drives = DriveSet::first(world.array().layout().spec().drives() as u8);
    drives.iter().flat_map(|drive| places(world, drive).map(|lba| (drive, lba))).collect()
}

/// Where a drive has superblocks: in its first sector and in its last.
fn places(world: &mut World, drive: DriveIdx) -> [Lba; 2] {
    let size = world.platter_mut(drive).expect("bytes are carried").size();
    [Lba::ZERO, Lba::ZERO + (size - Sectors::new(1))]
}

fn sector_mut(world: &mut World, drive: DriveIdx, lba: Lba) -> &mut [u8] {
    let medium = world.platter_mut(drive).expect("bytes are carried");
    medium.bytes_mut(Extent::new(lba, Sectors::new(1)))
}
