//! What a member records that no array uses: reading that, and writing the first superblocks and metadata.

use std::collections::BTreeSet;
use std::io;

use levelhead_array::assembly::{Copy, Found};
use levelhead_array::metadata::{Author, Inscription};
use levelhead_array::superblock::{Own, Superblock, SuperblockError, copies_of_unknown};
use levelhead_block::Buf;
use levelhead_units::{Extent, Sectors};

use crate::opened::Opened;

/// What a member records: the copies of its superblock, and its metadata. The member has at least one sector.
pub(crate) fn find(medium: &Opened) -> Found {
    Found::read(medium.size(), |extent| read_sectors(medium, extent))
}

/// Looks for the last copies of members whose others are damaged and that have grown since: where the other members' own
/// sizes put theirs.
pub(crate) fn find_last_copies(media: &[Opened], found: &mut [Found]) {
    let sizes: BTreeSet<Sectors> = found.iter().filter_map(size_of_member).collect();
    for (medium, found) in media.iter().zip(found) {
        if found.good().is_none() {
            find_last_copy(medium, found, &sizes);
        }
    }
}

/// The size that a member had, as its superblock says.
pub(crate) fn size_of_member(found: &Found) -> Option<Sectors> {
    Some(found.good()?.own.size)
}

/// Looks for the last copy of a member that has no good one, where members of these sizes have theirs.
pub(crate) fn find_last_copy(medium: &Opened, found: &mut Found, sizes: &BTreeSet<Sectors>) {
    for &size in sizes.iter().filter(|&&size| size < found.size) {
        let [.., last] = copies_of_unknown(size);
        let Some(sector) = read_sectors(medium, Extent::new(last, Sectors::new(1))) else {
            continue;
        };
        let read = Superblock::decode(&sector);
        if read.as_ref().is_ok_and(|superblock| superblock.own.size == size) {
            found.copies[2] = Copy::Read(Box::new(read));
            found.read_slots(|extent| read_sectors(medium, extent));
            break;
        }
    }
}

/// Who has written each slot of a member, as far as that can be read.
pub(crate) fn authors(medium: &Opened, own: &Own) -> [Option<Author>; 2] {
    own.slots().map(|slot| {
        let header = read_sectors(medium, Extent::new(slot.lba, Sectors::new(1)))?;
        Inscription::author_of(&header).ok()
    })
}

/// The sectors of a drive that [`is_same_drive`] compares: its superblock, and the first ones of its two slots for metadata.
pub const COMPARED: [u64; 3] = [0, 1, 128];

/// Whether the drive that has the [compared](COMPARED) sectors `now` may be the one that had those `before`: the same member,
/// no copy of it that is older, and one to which no other server has written since. One that was no member may be any. Other
/// programs hand in what answers at a place; whether it is still the same is said here.
pub fn is_same_drive(before: &[&[u8]], now: &[&[u8]]) -> bool {
    let said = |sectors: &[&[u8]]| {
        let (first, slots) = sectors.split_first()?;
        let Superblock { array, member, own, .. } = Superblock::decode(first).ok()?;
        let authors = slots.iter().filter_map(|slot| Inscription::author_of(slot).ok());
        let newest = authors.max_by_key(|author| author.generation);
        Some(((array, member, own.drive), newest))
    };
    let Some((before, known)) = said(before) else { return true };
    let is_known = |newest: Option<Author>| match (known, newest) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(known), Some(newest)) => {
            newest.run == known.run && newest.generation >= known.generation
        }
    };
    said(now).is_some_and(|(now, newest)| now == before && is_known(newest))
}

/// Sectors of a member; nothing if it does not give them.
pub(crate) fn read_sectors(medium: &Opened, extent: Extent) -> Option<Vec<u8>> {
    // One that has shrunk may end before what its superblock names.
    if !extent.fits(medium.size()) {
        return None;
    }
    let mut sectors = Buf::zeroed(extent.sectors);
    medium.read(extent.lba, sectors.as_mut_slice()).ok()?;
    Some(sectors.as_slice().to_vec())
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

/// Writes all copies, each once the one before is safe.
pub(crate) fn write(medium: &Opened, superblock: &Superblock) -> io::Result<()> {
    let sector = Buf::copy_of(&superblock.encode());
    for lba in superblock.own.copies() {
        medium.write(lba, sector.as_slice())?;
        medium.sync()?;
    }
    Ok(())
}

/// Writes the first metadata of a member that says this of itself.
pub(crate) fn inscribe(medium: &Opened, own: &Own, first: &Inscription) -> io::Result<()> {
    let [slot, _] = own.slots();
    medium.write(slot.lba, Buf::copy_of(&first.encode()).as_slice())?;
    medium.sync()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use levelhead_array::damaged::DamagedList;
    use levelhead_array::membership::{Generation, Member, MemberId, Membership};
    use levelhead_array::metadata::{Forced, Metadata, State};
    use levelhead_array::reserve::Division;
    use levelhead_array::superblock::Uuid;
    use levelhead_array::{Spec, Wishes};
    use levelhead_units::{DriveIdx, Lba};

    use super::*;

    fn superblock(member: u8) -> Superblock {
        let spec: Spec = "raid1:2".parse().unwrap();
        let size = Sectors::new(1_024);
        let division = Division::of(&spec, size).unwrap();
        let own = Own { drive: DriveIdx::new(0), size, reserved: division.reserved(size) };
        let (array, member) = (Uuid([1; 16]), Uuid([member; 16]));
        let drive_size = division.drive_size;
        Superblock { array, member, spec, drive_size, logs: None, own, read_only: 0 }
    }

    /// The first sector of a slot with this generation, which lists a sector as damaged: the list lies behind it.
    fn header(generation: u64) -> Vec<u8> {
        let Superblock { array, member, spec, drive_size, .. } = superblock(2);
        let mut damaged = DamagedList::default();
        damaged.add(DriveIdx::new(0), Extent::new(Lba::new(3), Sectors::new(1)));
        let metadata = Metadata {
            generation: Generation(generation),
            array,
            run: Uuid::default(),
            base: Generation::NONE,
            spec,
            drive_size,
            state: State::Dirty,
            forced: Forced::No,
            synced: 0,
            synced_last: 0,
            journal: None,
            wishes: Wishes::default(),
            members: vec![Member::new(member, Membership::Present); 2],
            damaged,
        };
        let first = Inscription { metadata: Arc::new(metadata), holder: MemberId::new(member) };
        first.encode()[..levelhead_units::SECTOR_SIZE].to_vec()
    }

    #[test]
    fn the_sectors_that_are_compared_are_where_members_have_them() {
        let own = superblock(2).own;
        let slots = own.slots().map(|slot| slot.lba);
        assert_eq!(COMPARED.map(Lba::new), [own.copies()[0], slots[0], slots[1]]);
    }

    #[test]
    fn another_member_is_not_the_same_drive_and_neither_is_an_older_copy() {
        let drive = |member: u8, slots: [u64; 2]| {
            let [a, b] = slots.map(header);
            [superblock(member).encode().to_vec(), a, b]
        };
        let is_same = |before: &[Vec<u8>; 3], now: &[Vec<u8>; 3]| {
            is_same_drive(&before.each_ref().map(Vec::as_slice), &now.each_ref().map(Vec::as_slice))
        };
        let before = drive(2, [7, 8]);
        assert!(is_same(&before, &before));
        assert!(is_same(&before, &drive(2, [9, 8])) && is_same(&before, &drive(2, [8, 5])));
        assert!(!is_same(&before, &drive(2, [7, 6])), "older");
        assert!(!is_same(&before, &drive(3, [7, 8])), "another");
        // A write of the next one that was cut off says nothing, and leaves the other slot.
        let [first, older, newer] = before.clone();
        assert!(is_same(&before, &[first.clone(), vec![0xA5; older.len()], newer.clone()]));
        assert!(!is_same(&before, &[first.clone(), older, vec![0xA5; newer.len()]]));
        // What was no member may be any now, and a member is nothing else.
        let none = [vec![], vec![], vec![]];
        assert!(is_same(&none, &before) && !is_same(&before, &none));
        assert!(is_same(&[first, vec![], vec![]], &before), "its metadata was not known");
    }
}
