//! The superblocks on a member that no array uses: reading them, and writing the first ones.

use std::collections::BTreeSet;
use std::io;

use levelhead_array::quorum::{Copy, Found};
use levelhead_array::superblock::{Superblock, SuperblockError, copies_of_unknown};
use levelhead_block::Buf;
use levelhead_units::{Extent, Lba, Sectors};

use crate::opened::Opened;

/// What a member's two copies say: the second one is where the first says that it is. The member has at
/// least one sector.
pub(crate) fn find(medium: &Opened) -> Found {
    let size = medium.size();
    let [first, last] = copies_of_unknown(size);
    let first = read(medium, first);
    let second = match good(&first) {
        Some(superblock) if superblock.own.size <= size => superblock.own.copies()[1],
        Some(_) | None => last,
    };
    let second = read(medium, second);
    let mut found = Found::new([first, second], size);
    found.read_lists(|extent| read_sectors(medium, extent));
    found
}

/// Looks for the second copies of members whose first is damaged and that have grown since: where the other
/// members' own sizes put theirs.
pub(crate) fn find_second_copies(media: &[Opened], found: &mut [Found]) {
    let sizes: BTreeSet<Sectors> = found.iter().filter_map(size_of_first).collect();
    for (medium, found) in media.iter().zip(found) {
        if found.copies.iter().all(|copy| good(copy).is_none()) {
            find_second_copy(medium, found, &sizes);
        }
    }
}

/// The size that a member had, as the first copy of its superblock says.
pub(crate) fn size_of_first(found: &Found) -> Option<Sectors> {
    Some(good(&found.copies[0])?.own.size)
}

/// Looks for the second copy of a member that has no good one, where members of these sizes have theirs.
pub(crate) fn find_second_copy(medium: &Opened, found: &mut Found, sizes: &BTreeSet<Sectors>) {
    for &size in sizes.iter().filter(|&&size| size < found.size) {
        let copy = read(medium, copies_of_unknown(size)[1]);
        if good(&copy).is_some_and(|superblock| superblock.own.size == size) {
            found.copies[1] = copy;
            found.read_lists(|extent| read_sectors(medium, extent));
            break;
        }
    }
}

/// What a member says: the newer of its good copies.
pub(crate) fn newest(found: &Found) -> Option<&Superblock> {
    // Of equals the first.
    found.copies.iter().rev().filter_map(good).max_by_key(|word| word.book.generation)
}

/// Whether the drive that has the first sector `now` may be the one that had `before`: by the superblocks they are,
/// if that one was one. Other programs hand in what answers at a place; whether it is still the same is told here,
/// and so is a copy of it that is older.
pub fn is_same_drive(before: &[u8], now: &[u8]) -> bool {
    let Ok(before) = Superblock::decode(before) else { return true };
    let Ok(now) = Superblock::decode(now) else { return false };
    let place = |of: &Superblock| (of.book.array, of.own.drive);
    place(&before) == place(&now) && before.book.generation <= now.book.generation
}

fn read_sectors(medium: &Opened, extent: Extent) -> Option<Vec<u8>> {
    let mut sectors = Buf::zeroed(extent.sectors);
    medium.read(extent.lba, sectors.as_mut_slice()).ok()?;
    Some(sectors.as_slice().to_vec())
}

fn read(medium: &Opened, lba: Lba) -> Copy {
    let mut sector = Buf::zeroed(Sectors::new(1));
    match medium.read(lba, sector.as_mut_slice()) {
        Ok(()) => Copy::Read(Box::new(Superblock::decode(sector.as_slice()))),
        Err(_) => Copy::Unreadable,
    }
}

/// The superblock that a copy is, if it is one.
pub(crate) fn good(copy: &Copy) -> Option<&Superblock> {
    match copy {
        Copy::Read(read) => read.as_ref().as_ref().ok(),
        Copy::Unreadable => None,
    }
}

/// Why a copy is no good superblock, if it is something like one.
pub(crate) fn damage(copy: &Copy) -> Option<&SuperblockError> {
    match copy {
        Copy::Read(read) => {
            read.as_ref().as_ref().err().filter(|error| **error != SuperblockError::Absent)
        }
        Copy::Unreadable => None,
    }
}

/// Writes both copies, the second once the first is safe.
pub(crate) fn write(medium: &Opened, superblock: &Superblock) -> io::Result<()> {
    let sector = Buf::copy_of(&superblock.encode());
    for lba in superblock.own.copies() {
        medium.write(lba, sector.as_slice())?;
        medium.sync()?;
    }
    Ok(())
}
