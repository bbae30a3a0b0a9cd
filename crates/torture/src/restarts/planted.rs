//! Faults of the metadata, for canaries: planted on the members after a power cut and before a start, and in the rules of the
//! journal.

use std::convert::Infallible;
use std::sync::Arc;

use levelhead_array::assembly::Found;
use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_array::membership::{Generation, Membership};
use levelhead_array::metadata::{Inscription, Metadata};
use levelhead_block::{BlockDevice, Memory};
use levelhead_lab::World;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, SECTOR_SIZE, Sectors};

/// A bug for a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None.
    None,
    /// A generation counts as durable before it is: after a power cut each drive has the one before it.
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

    /// Changes the metadata of the members to what an array with the bug would have written.
    pub(super) fn plant(self, world: &mut World, shown: DriveSet) {
        match self {
            Self::SameGeneration => change_all(world, shown, |metadata| {
                let first = Generation(1);
                metadata.generation = first;
                metadata.base = metadata.base.min(first);
                for member in &mut metadata.members {
                    (member.stored, member.given) = (member.stored.min(first), first);
                }
            }),
            Self::LostSet => change_all(world, shown, |metadata| {
                for member in &mut metadata.members {
                    (member.membership, member.lacks) = (Membership::Present, None);
                }
            }),
            Self::StaleMember => make_current(world, shown),
            Self::None | Self::RecordLate | Self::MarkBeforeFlush | Self::CopyWithoutLock => {}
        }
    }
}

/// What the slots of all drives hold, and what they held before.
#[derive(Default)]
pub(super) struct Earlier {
    /// Where the slots lie on every drive.
    slots: Option<[Extent; 2]>,
    now: Vec<[Vec<u8>; 2]>,
    before: Vec<[Vec<u8>; 2]>,
    /// How many drives were replaced by then.
    replaced: u64,
}

impl Earlier {
    /// Notes what has changed since the last look.
    pub(super) fn look(&mut self, world: &mut World) {
        let slots = *self.slots.get_or_insert_with(|| slots(world));
        let now: Vec<[Vec<u8>; 2]> =
            all(world).iter().map(|drive| slots.map(|slot| content(world, drive, slot))).collect();
        if self.now.is_empty() || self.replaced != world.replaced() {
            (self.before, self.now, self.replaced) = (now.clone(), now, world.replaced());
            return;
        }
        let new = now.into_iter().flatten();
        let old = self.now.as_flattened_mut().iter_mut().zip(self.before.as_flattened_mut());
        for (new, (now, before)) in new.zip(old).filter(|(new, (now, _))| new != *now) {
            *before = std::mem::replace(now, new);
        }
    }

    /// Takes back the newest generation of each drive.
    pub(super) fn put_back(&self, world: &mut World) {
        let Some(slots) = self.slots else { return };
        for (drive, before) in all(world).iter().zip(&self.before) {
            let word = find(world, drive).word();
            let Some(held) = word.and_then(|word| word.held) else { continue };
            let bytes = &before[held.slot];
            let sectors = Sectors::new((bytes.len() / SECTOR_SIZE) as u64);
            let extent = Extent::new(slots[held.slot].lba, sectors);
            medium(world, drive).bytes_mut(extent).copy_from_slice(bytes);
        }
    }
}

/// Gives every member the newest metadata, in which those with an older one are present.
fn make_current(world: &mut World, shown: DriveSet) {
    let words = shown.iter().filter_map(|drive| {
        let word = find(world, drive).word()?;
        word.metadata.map(|metadata| (drive, metadata))
    });
    let words: Vec<(DriveIdx, Arc<Metadata>)> = words.collect();
    let Some((_, newest)) = words.iter().max_by_key(|(_, metadata)| metadata.generation) else {
        return;
    };
    let mut new = Metadata::clone(newest);
    for (drive, _) in words.iter().filter(|(_, metadata)| metadata.generation < new.generation) {
        let member = &mut new.members[drive.as_usize()];
        (member.membership, member.lacks) = (Membership::Present, None);
    }
    change_all(world, shown, |metadata| *metadata = new.clone());
}

/// Changes all metadata of these drives.
fn change_all(world: &mut World, shown: DriveSet, mut change: impl FnMut(&mut Metadata)) {
    for drive in shown.iter() {
        let found = find(world, drive);
        let Some(own) = found.good().map(|superblock| superblock.own.clone()) else { continue };
        for slot in own.slots() {
            let Some(Inscription { metadata, holder }) = inscription(world, drive, slot) else {
                continue;
            };
            let mut metadata = Metadata::clone(&metadata);
            change(&mut metadata);
            let inscription = Inscription { metadata: Arc::new(metadata), holder };
            let extent = Extent::new(slot.lba, inscription.metadata.sectors());
            medium(world, drive).bytes_mut(extent).copy_from_slice(&inscription.encode());
        }
    }
}

/// What a slot holds, as far as it means something.
fn content(world: &mut World, drive: DriveIdx, slot: Extent) -> Vec<u8> {
    let sectors = inscription(world, drive, slot).map(|found| found.metadata.sectors());
    let extent = Extent::new(slot.lba, sectors.unwrap_or(Sectors::new(1)));
    medium(world, drive).bytes(extent).to_vec()
}

/// The metadata in a slot.
fn inscription(world: &mut World, drive: DriveIdx, slot: Extent) -> Option<Inscription> {
    let medium = medium(world, drive);
    let read = |extent: Extent| -> Result<Vec<u8>, Infallible> {
        let lba = slot.lba + (extent.lba - Lba::ZERO);
        Ok(medium.bytes(Extent::new(lba, extent.sectors)).to_vec())
    };
    let Ok(decoded) = Inscription::decode(read);
    decoded.ok()
}

/// Where members have their slots.
fn slots(world: &mut World) -> [Extent; 2] {
    let slots = all(world).iter().find_map(|drive| Some(find(world, drive).good()?.own.slots()));
    slots.expect("there is a member")
}

/// What is on a drive.
fn find(world: &mut World, drive: DriveIdx) -> Found {
    let medium = medium(world, drive);
    Found::read(medium.size(), |extent| Some(medium.bytes(extent).to_vec()))
}

fn all(world: &World) -> DriveSet {
    DriveSet::first(world.array().layout().spec().drives() as u8)
}

fn medium(world: &mut World, drive: DriveIdx) -> &mut Memory {
    world.platter_mut(drive).expect("bytes are carried")
}
