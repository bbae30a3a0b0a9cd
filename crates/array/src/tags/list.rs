//! The list of checksums that no tag sector of a drive has yet, in bytes. `docs/formats/tags.md` is the normative text; the table
//! there and the constants here name the same bytes.
//!
//! A list lies in one of two slots, so that the one before it is there until it is whole. Each of its sectors stands for itself.

use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use crate::fields::{array_at, put, u32_at, u64_at};
use crate::meta::superblock::Uuid;

/// The first bytes of every sector of a list.
const MAGIC: [u8; 16] = *b"levelhead sums\0\0";

/// The version of the layout below.
const VERSION: u32 = 1;

/// The most entries of a sector.
pub(crate) const ENTRIES: usize = 201;

/// Bytes of an entry: the sector as the array counts it, 8, the first list that said so, 8, and its checksum, 4.
const ENTRY: usize = 20;

/// Where each field begins. The numbers are little-endian.
mod at {
    use super::{ENTRIES, ENTRY, SECTOR_SIZE};

    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 16;
    pub(super) const INDEX: usize = 20;
    pub(super) const SECTORS: usize = 24;
    pub(super) const ENTRIES_HERE: usize = 28;
    pub(super) const ARRAY: usize = 32;
    pub(super) const MEMBER: usize = 48;
    pub(super) const GENERATION: usize = 64;
    pub(super) const FIRST: usize = 72;
    pub(super) const CHECKSUM: usize = SECTOR_SIZE - 4;
    const _: () = assert!(FIRST + ENTRY * ENTRIES <= CHECKSUM);
}

/// Whose list it is. A drive that has come back is the same one: what its list says of sectors still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) array: Uuid,
    pub(crate) member: Uuid,
}

/// The bit of its first number that says that an entry is of a tag sector.
const OF_TAG: u64 = 1 << 63;

/// The checksum of a sector that its tag sector may lack, or what a tag sector says that is to be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The sector, as the array counts it; of a tag sector the first one of its group.
    pub(crate) lba: Lba,
    pub(crate) is_tag: bool,
    /// The first list that said this: a tag sector that was written when there was that one, or a later one, is newer (TG6).
    pub(crate) since: u64,
    pub(crate) sum: u32,
}

/// A sector of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSector {
    pub(crate) owner: Owner,
    /// Of which list: a later one has a higher number.
    pub(crate) generation: u64,
    /// Which sector of it this is, and how many it has.
    pub(crate) index: u32,
    pub(crate) sectors: u32,
    pub(crate) entries: Vec<Entry>,
}

impl ListSector {
    /// The sectors of a list with these entries.
    pub(crate) fn of(owner: Owner, generation: u64, entries: &[Entry]) -> Vec<Self> {
        let sectors = sectors_of(entries.len()).get() as u32;
        let part = |index: u32| {
            let from = index as usize * ENTRIES;
            let entries = entries[from.min(entries.len())..].iter().take(ENTRIES);
            Self { owner, generation, index, sectors, entries: entries.copied().collect() }
        };
        (0..sectors).map(part).collect()
    }

    /// The sector as it is on the drive.
    pub(crate) fn encode(&self) -> [u8; SECTOR_SIZE] {
        let mut bytes = [0; SECTOR_SIZE];
        put(&mut bytes, at::MAGIC, &MAGIC);
        put(&mut bytes, at::VERSION, &VERSION.to_le_bytes());
        put(&mut bytes, at::INDEX, &self.index.to_le_bytes());
        put(&mut bytes, at::SECTORS, &self.sectors.to_le_bytes());
        put(&mut bytes, at::ENTRIES_HERE, &(self.entries.len() as u32).to_le_bytes());
        put(&mut bytes, at::ARRAY, &self.owner.array.0);
        put(&mut bytes, at::MEMBER, &self.owner.member.0);
        put(&mut bytes, at::GENERATION, &self.generation.to_le_bytes());
        for (at, entry) in self.entries.iter().enumerate() {
            let at = at::FIRST + ENTRY * at;
            let lba = entry.lba.get() | if entry.is_tag { OF_TAG } else { 0 };
            put(&mut bytes, at, &lba.to_le_bytes());
            put(&mut bytes, at + 8, &entry.since.to_le_bytes());
            put(&mut bytes, at + 16, &entry.sum.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
        put(&mut bytes, at::CHECKSUM, &checksum.to_le_bytes());
        bytes
    }

    /// The sector of a list that these bytes are, if they are one.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let is_one = bytes.len() == SECTOR_SIZE
            && bytes[at::MAGIC..][..MAGIC.len()] == MAGIC
            && u32_at(bytes, at::VERSION) == VERSION
            && crc32c::crc32c(&bytes[..at::CHECKSUM]) == u32_at(bytes, at::CHECKSUM);
        let count = is_one.then(|| u32_at(bytes, at::ENTRIES_HERE) as usize)?;
        if count > ENTRIES {
            return None;
        }
        let entry = |at: usize| {
            let at = at::FIRST + ENTRY * at;
            let (since, sum) = (u64_at(bytes, at + 8), u32_at(bytes, at + 16));
            let (lba, is_tag) = (u64_at(bytes, at) & !OF_TAG, u64_at(bytes, at) & OF_TAG != 0);
            Entry { lba: Lba::new(lba), is_tag, since, sum }
        };
        let array = Uuid(array_at(bytes, at::ARRAY));
        let member = Uuid(array_at(bytes, at::MEMBER));
        let found = Self {
            owner: Owner { array, member },
            generation: u64_at(bytes, at::GENERATION),
            index: u32_at(bytes, at::INDEX),
            sectors: u32_at(bytes, at::SECTORS),
            entries: (0..count).map(entry).collect(),
        };
        let is_possible = found.index < found.sectors && found.generation < u64::MAX;
        (is_possible && found.encode()[..] == *bytes).then_some(found)
    }
}

/// The sectors of lists that a buffer has, in order; nothing for each that is none.
pub fn lists_in(bytes: &[u8]) -> Vec<Option<ListSector>> {
    bytes.chunks_exact(SECTOR_SIZE).map(ListSector::decode).collect()
}

/// How many entries a list has room for that is in one of two slots.
pub(crate) fn entries_of(slots: Extent) -> usize {
    slots.sectors.as_usize() / 2 * ENTRIES
}

/// How many sectors a list of this number of entries has.
pub(crate) fn sectors_of(entries: usize) -> Sectors {
    Sectors::new(entries.div_ceil(ENTRIES).max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner { array: Uuid([7; 16]), member: Uuid([8; 16]) };

    #[test]
    fn list_is_read_as_it_was_written_and_no_other_byte_counts() {
        let entry = |at: u32| {
            let (lba, is_tag) = (Lba::new(u64::from(at) * 7), at.is_multiple_of(3));
            Entry { lba, is_tag, since: 9, sum: at ^ 0x55 }
        };
        let entries: Vec<Entry> = (0..ENTRIES as u32 + 3).map(entry).collect();
        let sectors = ListSector::of(OWNER, 9, &entries);
        assert_eq!(sectors.len(), 2);
        let bytes: Vec<u8> = sectors.iter().flat_map(ListSector::encode).collect();
        let found: Vec<ListSector> = lists_in(&bytes).into_iter().flatten().collect();
        assert_eq!(found, sectors);
        let read: Vec<Entry> = found.into_iter().flat_map(|found| found.entries).collect();
        assert_eq!(read, entries);
        for at in 0..SECTOR_SIZE {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(lists_in(&other)[0], None, "byte {at}");
        }
    }

    #[test]
    fn list_of_nothing_is_one() {
        let sectors = ListSector::of(OWNER, 1, &[]);
        assert_eq!((sectors.len(), sectors[0].sectors), (1, 1));
        assert_eq!(lists_in(&sectors[0].encode()), [Some(sectors[0].clone())]);
        assert_eq!(lists_in(&[0; SECTOR_SIZE]), [None]);
    }
}
