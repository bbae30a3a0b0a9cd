//! A tag sector in bytes. `docs/formats/tags.md` is the normative text; the table there and the constants here name the same bytes.

use levelhead_units::{DriveIdx, SECTOR_SIZE};

use crate::fields::{array_at, put, u32_at, u64_at};
use crate::meta::superblock::Uuid;

/// The first bytes of every tag sector.
const MAGIC: [u8; 16] = *b"levelhead tags\0\0";

/// The version of the layout below.
const VERSION: u32 = 1;

/// The most sectors of a group.
pub(crate) const SUMS: usize = 64;

/// Where each field begins. The numbers are little-endian.
mod at {
    use super::{SECTOR_SIZE, SUMS};

    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 16;
    pub(super) const DRIVE: usize = 20;
    pub(super) const ARRAY: usize = 24;
    pub(super) const GROUP: usize = 40;
    pub(super) const KNOWN: usize = 48;
    pub(super) const LIST: usize = 56;
    pub(super) const SUM: usize = 64;
    pub(super) const CHECKSUM: usize = SECTOR_SIZE - 4;
    const _: () = assert!(SUM + 4 * SUMS <= CHECKSUM);
}

/// What a tag sector says that is none. Whether it was newer than the list is not known: nothing counts that says what it said.
pub(crate) const NO_TAG: (Sums, u64) = (Sums::NONE, u64::MAX);

/// The checksums of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Of which of its sectors there is one, as bits.
    known: u64,
    sums: [u32; SUMS],
}

impl Sums {
    /// Of none.
    pub const NONE: Self = Self { known: 0, sums: [0; SUMS] };

    /// Those of all sectors where buffers have no bytes.
    pub(crate) const OF_NOTHING: Self = Self { known: u64::MAX, sums: [0; SUMS] };

    /// That of a sector of the group, if there is one.
    pub fn get(&self, offset: usize) -> Option<u32> {
        (self.known >> offset & 1 == 1).then(|| self.sums[offset])
    }

    /// That of a sector is this.
    pub fn set(&mut self, offset: usize, sum: u32) {
        self.known |= 1 << offset;
        self.sums[offset] = sum;
    }

    /// How many it has.
    pub(crate) fn count(&self) -> usize {
        self.known.count_ones() as usize
    }

    /// Those that it has, with which of the sectors of the group each is of.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u32)> {
        (0..SUMS).filter_map(|at| Some((at, self.get(at)?)))
    }

    /// Whether it has those of the first `count` sectors.
    pub(crate) fn has_first(&self, count: usize) -> bool {
        self.known.trailing_ones() as usize >= count
    }

    /// A checksum of all of it: CRC-32C of which it has, and of each of the 64, little-endian, 0 of those that it has not.
    pub fn digest(&self) -> u32 {
        let known = crc32c::crc32c(&self.known.to_le_bytes());
        self.sums.iter().fold(known, |sum, next| crc32c::crc32c_append(sum, &next.to_le_bytes()))
    }

    /// What another one says, and this one of the rest.
    pub(crate) fn under(self, newer: &Self) -> Self {
        let mut both = self;
        newer.iter().for_each(|(at, sum)| both.set(at, sum));
        both
    }
}

/// A tag sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagSector {
    /// Of which array.
    pub array: Uuid,
    /// In which slot of it the drive is.
    pub drive: DriveIdx,
    /// Which of the drive's groups it is for.
    pub group: u64,
    /// The newest list of its drive that there was when it was written: what that one says of the group, and those before it,
    /// does not count any more.
    pub list: u64,
    /// The checksums.
    pub sums: Sums,
}

impl TagSector {
    /// The sector as it is on the drive.
    pub fn encode(&self) -> [u8; SECTOR_SIZE] {
        let mut bytes = [0; SECTOR_SIZE];
        put(&mut bytes, at::MAGIC, &MAGIC);
        put(&mut bytes, at::VERSION, &VERSION.to_le_bytes());
        put(&mut bytes, at::DRIVE, &[self.drive.as_usize() as u8]);
        put(&mut bytes, at::ARRAY, &self.array.0);
        put(&mut bytes, at::GROUP, &self.group.to_le_bytes());
        put(&mut bytes, at::KNOWN, &self.sums.known.to_le_bytes());
        put(&mut bytes, at::LIST, &self.list.to_le_bytes());
        for (at, sum) in self.sums.sums.iter().enumerate() {
            put(&mut bytes, at::SUM + 4 * at, &sum.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
        put(&mut bytes, at::CHECKSUM, &checksum.to_le_bytes());
        bytes
    }

    /// The tag sector that these bytes are, if they are one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let is_one = bytes.len() == SECTOR_SIZE
            && bytes[at::MAGIC..][..MAGIC.len()] == MAGIC
            && u32_at(bytes, at::VERSION) == VERSION
            && crc32c::crc32c(&bytes[..at::CHECKSUM]) == u32_at(bytes, at::CHECKSUM);
        let drive = *bytes.get(at::DRIVE)?;
        if !is_one || drive >= DriveIdx::MAX {
            return None;
        }
        let mut sums = Sums { known: u64_at(bytes, at::KNOWN), ..Sums::NONE };
        for (at, sum) in sums.sums.iter_mut().enumerate() {
            *sum = u32_at(bytes, at::SUM + 4 * at);
        }
        let (array, group) = (Uuid(array_at(bytes, at::ARRAY)), u64_at(bytes, at::GROUP));
        let list = u64_at(bytes, at::LIST);
        let found = Self { array, drive: DriveIdx::new(drive), group, list, sums };
        (list < u64::MAX && found.encode()[..] == *bytes).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector() -> TagSector {
        let mut sums = Sums::NONE;
        [(0, 7), (5, 0), (63, u32::MAX)].into_iter().for_each(|(at, sum)| sums.set(at, sum));
        TagSector { array: Uuid([9; 16]), drive: DriveIdx::new(3), group: 1 << 40, list: 77, sums }
    }

    #[test]
    fn what_was_written_is_read_and_no_other_byte_counts() {
        let bytes = sector().encode();
        assert_eq!(TagSector::decode(&bytes), Some(sector()));
        for at in 0..SECTOR_SIZE {
            let mut other = bytes;
            other[at] ^= 4;
            assert_eq!(TagSector::decode(&other), None, "byte {at}");
        }
        assert_eq!(TagSector::decode(&bytes[1..]), None);
        // Bytes that no field names are zero.
        let mut other = bytes;
        other[2_000] = 1;
        let checksum = crc32c::crc32c(&other[..at::CHECKSUM]);
        put(&mut other, at::CHECKSUM, &checksum.to_le_bytes());
        assert_eq!(TagSector::decode(&other), None);
    }

    #[test]
    fn sums_say_of_which_sectors_they_are() {
        let TagSector { sums, .. } = sector();
        let known: Vec<usize> = (0..SUMS).filter(|&at| sums.get(at).is_some()).collect();
        assert_eq!(known, [0, 5, 63]);
        assert!(sums.has_first(1) && !sums.has_first(2) && Sums::NONE.has_first(0));
        let mut newer = Sums::NONE;
        newer.set(5, 1);
        newer.set(1, 2);
        let both = sums.under(&newer);
        assert_eq!(
            [0, 1, 5, 63].map(|at| both.get(at)),
            [Some(7), Some(2), Some(1), Some(u32::MAX)]
        );
    }
}
