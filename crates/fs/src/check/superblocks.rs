//! The superblocks: which one counts, and which copies are not what they should be.

use std::collections::BTreeSet;

use levelhead_block::BlockDevice;
use levelhead_units::{Lba, Sectors};

use super::disk::Disk;
use super::{CannotCheck, Changes};
use crate::format::superblock::{NoSuperblock, OLDER_COPIES, Superblock};
use crate::format::unit::Sector;
use crate::geometry::{COPIES_MAX, Geometry};

/// Bytes that differ from one write to the next: the state, whether copies may be older, the generation, the record and the checksum.
const OF_A_WRITE: [std::ops::Range<usize>; 5] = [20..21, 40..41, 48..56, 136..144, 4_092..4_096];

/// The superblock that counts, and the copies that are not what they should be.
pub(super) struct Found {
    pub(super) superblock: Superblock,
    /// They are damaged, or older than a cut can have left them.
    pub(super) bad: Vec<Lba>,
    /// They are not the same as the one that counts, for whatever reason.
    pub(super) others: Vec<Lba>,
}

/// Looks for them.
pub(super) fn find(disk: &mut Disk<'_>) -> Result<Found, CannotCheck> {
    let size = disk.size();
    let first = read(disk, Lba::ZERO);
    let mut unknown = None;
    let places: BTreeSet<Lba> = match &first {
        Ok(superblock) => superblock.geometry.superblocks().into(),
        Err(why) => {
            if let NoSuperblock::Unknown { version, features } = *why {
                unknown = Some(CannotCheck::Unknown { version, features });
            }
            places(size)
        }
    };
    let mut found: Vec<Superblock> = Vec::new();
    for lba in places.into_iter().filter(|lba| lba.get() < size.get()) {
        found.extend(read(disk, lba).ok());
    }
    // One of another filesystem, which was there before, does not count beside the first one.
    if let Ok(first) = &first {
        found.retain(|other| other.identity == first.identity);
    }
    if let Some(trouble) = disk.trouble() {
        return Err(CannotCheck::Device { reason: trouble.to_owned() });
    }
    let newest = found.into_iter().max_by_key(|superblock| superblock.generation);
    let superblock = match (newest, unknown) {
        (_, Some(unknown)) => return Err(unknown),
        (None, None) => return Err(CannotCheck::NoFilesystem),
        (Some(newest), None) => newest,
    };
    if superblock.geometry.sectors > size.get() {
        let wanted = Sectors::new(superblock.geometry.sectors);
        return Err(CannotCheck::Short { wanted, has: size });
    }
    let (right, mut bad, mut others) = (superblock.encode(), Vec::new(), Vec::new());
    let places = superblock.geometry.superblocks();
    let all: Vec<Option<Box<Sector>>> = places.iter().map(|&lba| disk.read_one(lba)).collect();
    let is_right = |bytes: &Option<Box<Sector>>| bytes.as_ref() == Some(&right);
    for (at, &lba) in places.iter().enumerate() {
        if is_right(&all[at]) {
            continue;
        }
        let is_before_right = all[at..].iter().any(is_right);
        if !all[at].as_ref().is_some_and(|bytes| may_be_cut(bytes, &superblock, is_before_right)) {
            bad.push(lba);
        }
        others.push(lba);
    }
    Ok(Found { superblock, bad, others })
}

/// Rewrites those that are not the same as the one that counts; all of them if units were changed, for the next transaction has
/// another name than the one under which they were, and if a copy could not be written.
pub(super) fn rewrite(device: &mut dyn BlockDevice, changes: Changes) -> Result<(), CannotCheck> {
    let mut disk = Disk::new(device);
    let Found { mut superblock, mut others, .. } = find(&mut disk)?;
    let is_news = changes.has_older && !superblock.has_older_copies();
    if is_news {
        superblock.incompatible |= OLDER_COPIES;
    }
    if changes.has_changed {
        superblock.record += 1;
    }
    if changes.has_changed || is_news {
        superblock.generation += 1;
        others = superblock.geometry.superblocks().to_vec();
    }
    for lba in others {
        disk.write(lba, &superblock.encode());
        disk.flush();
    }
    if disk.unwritable().len() == superblock.geometry.superblocks().len() {
        disk.note_trouble(Some("no superblock can be written".to_owned()));
    }
    match disk.trouble() {
        Some(reason) => Err(CannotCheck::Device { reason: reason.to_owned() }),
        None => Ok(()),
    }
}

/// Whether cuts between the writes of the three copies, or within one of them, can have left a copy so: the first one is written first, each
/// time, so that those behind the newest one may be any number of times older, and none before it.
fn may_be_cut(bytes: &Sector, newest: &Superblock, is_before_right: bool) -> bool {
    let right = newest.encode();
    let is_of_a_write = |at: &usize| OF_A_WRITE.iter().any(|range| range.contains(at));
    let is_same =
        (0..bytes.len()).filter(|at| bytes[*at] != right[*at]).all(|at| is_of_a_write(&at));
    let may_be_older = match Superblock::decode(bytes) {
        Ok(older) => older.generation < newest.generation && !is_before_right,
        Err(_) => true,
    };
    is_same && may_be_older
}

/// Where superblocks lie on a disk of this size, for each number of copies of metadata.
pub(crate) fn places(size: Sectors) -> BTreeSet<Lba> {
    let geometries = (1..=COPIES_MAX).filter_map(|copies| Geometry::of_disk(size, copies));
    geometries.flat_map(|geometry| geometry.superblocks()).collect()
}

pub(crate) fn read(disk: &mut Disk<'_>, lba: Lba) -> Result<Superblock, NoSuperblock> {
    if lba.get() >= disk.size().get() {
        return Err(NoSuperblock::Absent);
    }
    let bytes = disk.read_one(lba).ok_or(NoSuperblock::Damaged)?;
    Superblock::decode(&bytes)
}
