//! The head that every sector of metadata begins with.
//!
//! `docs/formats/filesystem.md` is the normative text.

use levelhead_units::{Lba, SECTOR_SIZE};

use super::fields::{Fields, FieldsMut};

/// One sector's bytes.
pub type Sector = [u8; SECTOR_SIZE];

/// Bytes of the head.
pub const HEAD: usize = 64;

/// Bytes behind it.
pub const BODY: usize = SECTOR_SIZE - HEAD;

const MAGIC: u32 = u32::from_le_bytes(*b"LHfs");

/// Where the fields of the head lie.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const KIND: usize = 4;
    pub(super) const FILESYSTEM: usize = 8;
    pub(super) const LBA: usize = 16;
    pub(super) const GENERATION: usize = 24;
    pub(super) const OWNER: usize = 32;
    pub(super) const ZEROES: std::ops::Range<usize> = 40..60;
    pub(super) const SUM: usize = 60;
}

/// What a sector of metadata holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Which sectors of a group are taken.
    Bitmap = 1,
    /// Checksums of sectors of a group.
    Sums = 2,
    /// How many sectors of each group are free.
    Summary = 3,
    /// Eight inodes.
    Inodes = 4,
    /// A node of an inode's tree: a directory's entries, or where a file's sectors lie.
    Node = 5,
    /// Extended attributes of an inode.
    Attributes = 6,
    /// What a record of the journal is about.
    Record = 7,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Bitmap,
        Self::Sums,
        Self::Summary,
        Self::Inodes,
        Self::Node,
        Self::Attributes,
        Self::Record,
    ];
}

/// Why a sector is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Its checksum is wrong: it was damaged, or never written.
    Sum,
    /// It is of another filesystem, kind or place.
    Foreign,
}

/// The head of a sector of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it holds.
    pub kind: Kind,
    /// The first 8 bytes of the filesystem's identity.
    pub filesystem: u64,
    /// The lead of its unit; of a record its own place.
    pub lba: Lba,
    /// The transaction that wrote it.
    pub generation: u64,
    /// The inode that it is of, or 0.
    pub owner: u64,
}

impl Head {
    /// Writes the head in front of a body, with the checksum over both.
    pub fn seal(&self, sector: &mut Sector) {
        sector[..HEAD].fill(0);
        let mut fields = FieldsMut(sector);
        fields.put_u32(at::MAGIC, MAGIC);
        fields.put_u8(at::KIND, self.kind as u8);
        fields.put_u64(at::FILESYSTEM, self.filesystem);
        fields.put_u64(at::LBA, self.lba.get());
        fields.put_u64(at::GENERATION, self.generation);
        fields.put_u64(at::OWNER, self.owner);
        let sum = crc32c::crc32c(sector);
        FieldsMut(sector).put_u32(at::SUM, sum);
    }

    /// The head of a sector, if the sector is whole.
    pub fn open(sector: &Sector) -> Result<Self, Unfit> {
        let fields = Fields(sector);
        let mut sum = crc32c::crc32c(&sector[..at::SUM]);
        sum = crc32c::crc32c_append(sum, &[0; 4]);
        sum = crc32c::crc32c_append(sum, &sector[HEAD..]);
        if sum != fields.u32(at::SUM) {
            return Err(Unfit::Sum);
        }
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == fields.u8(at::KIND));
        let is_zero = sector[at::ZEROES].iter().chain(&sector[at::KIND + 1..at::FILESYSTEM]);
        let is_ours = fields.u32(at::MAGIC) == MAGIC && is_zero.copied().all(|byte| byte == 0);
        match kind {
            Some(kind) if is_ours => Ok(Self {
                kind,
                filesystem: fields.u64(at::FILESYSTEM),
                lba: Lba::new(fields.u64(at::LBA)),
                generation: fields.u64(at::GENERATION),
                owner: fields.u64(at::OWNER),
            }),
            Some(_) | None => Err(Unfit::Foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Head =
        Head { kind: Kind::Node, filesystem: 77, lba: Lba::new(5), generation: 9, owner: 11 };

    #[test]
    fn sealed_sector_opens_and_no_flipped_bit_does() {
        let mut sector = [7; SECTOR_SIZE];
        ONE.seal(&mut sector);
        assert_eq!(Head::open(&sector), Ok(ONE));
        assert_eq!(sector[HEAD..], [7; BODY]);
        for bit in (0..SECTOR_SIZE * 8).step_by(97) {
            let mut flipped = sector;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::open(&flipped).is_err(), "bit {bit}");
        }
        assert_eq!(Head::open(&[0; SECTOR_SIZE]), Err(Unfit::Sum));
    }
}
