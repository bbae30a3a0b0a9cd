//! The superblock: who a member of an array is.
//!
//! `docs/formats/superblock.md` is the normative text; the tables there and the constants here name the same bytes. One
//! superblock is one sector. A member gets it when it becomes one, in three copies: in its first sector, in sector 255, and
//! in its last, so that what writes over one end of a disk, or over both, leaves one. It is never changed. What changes is in
//! the [metadata](super::metadata).
//!
//! Only a sector that passed every check becomes a [`Superblock`]: code that holds one may index with what it says.
//!
//! # What it leaves out
//!
//! How an array is served (window, host order, policy) is the server's choice and is not stored.

mod error;

use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

pub use self::error::SuperblockError;
pub use super::own::Own;
use super::reserve::{
    COPIES, JOURNAL_PIECE_MIN, METADATA, RESERVED_MAX, Reserved, Use, takes_codewords,
};
use super::shape::{Logs, SHAPE_BYTES, Shape};
pub use super::uuid::Uuid;
use crate::fields::{array_at, put, u32_at, u64_at};
use crate::shape::{DRIVE_SECTORS_MAX, Spec};

/// The first bytes of every superblock.
pub(super) const MAGIC: [u8; 16] = *b"levelhead array\0";

/// The version of the layout below.
const VERSION: u32 = 3;

/// The version of `docs/formats/codeword.md` that redundancy follows.
const CODE_VERSION: u32 = 1;

/// The feature of an array that keeps a journal: who does not know it must not use the array.
const JOURNAL_FEATURE: u64 = 1;

/// The feature of an array whose journal only announces writes of whole codewords.
const INTENTS_FEATURE: u64 = 1 << 4;

/// The feature of an array whose journal lies on drives of its own: who does not know it would look for rings on drives
/// that have none.
const APART_FEATURE: u64 = 1 << 6;

/// The feature of an array whose data lies between tag sectors: who does not know it would take them for data.
const CHECKSUMS_FEATURE: u64 = 1 << 7;

/// All features without which an array must not be used.
const KNOWN_FEATURES: u64 = JOURNAL_FEATURE | INTENTS_FEATURE | APART_FEATURE | CHECKSUMS_FEATURE;

/// Bytes of a reserved place: its first sector, its sectors, its use, two zeroes.
const RESERVED_BYTES: usize = 16;

/// Where each field begins. The numbers are little-endian.
mod at {
    use super::{RESERVED_BYTES, RESERVED_MAX, SECTOR_SIZE, SHAPE_BYTES};

    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 16;
    pub(super) const CODE_VERSION: usize = 20;
    pub(super) const COMPATIBLE: usize = 24;
    pub(super) const READ_ONLY: usize = 32;
    pub(super) const INCOMPATIBLE: usize = 40;
    pub(super) const ARRAY: usize = 48;
    pub(super) const MEMBER: usize = 64;
    pub(super) const SHAPE: usize = 80;
    pub(super) const DRIVE: usize = SHAPE + SHAPE_BYTES;
    pub(super) const RESERVED_COUNT: usize = 105;
    pub(super) const MEMBER_SIZE: usize = 112;
    pub(super) const RESERVED: usize = 256;
    pub(super) const CHECKSUM: usize = SECTOR_SIZE - 4;
    const _: () = assert!(RESERVED + RESERVED_MAX * RESERVED_BYTES <= CHECKSUM);
}

/// One member's superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Which array.
    pub array: Uuid,
    /// Which drive: random bytes.
    pub member: Uuid,
    /// The array's shape.
    pub spec: Spec,
    /// Sectors of every member that hold the array's data and redundancy.
    pub drive_size: Sectors,
    /// What is in its journal; nothing where none is kept.
    pub logs: Option<Logs>,
    /// Which place it has, and which places of its own the layout steps over.
    pub own: Own,
    /// Features, unknown to this program, of an array that it may read and must not write, as bits.
    pub read_only: u64,
}

/// Where to look for the copies of a superblock on a member of `size` sectors of which nothing is known.
///
/// Panics if it has no sector.
pub fn copies_of_unknown(size: Sectors) -> [Lba; 3] {
    assert!(size > Sectors::ZERO);
    let last = Lba::ZERO + (size - Sectors::new(1));
    [Lba::ZERO, COPIES[1].min(last), last]
}

impl Superblock {
    /// The sector as it is on the drive.
    ///
    /// Panics if it has more reserved places than fit.
    pub fn encode(&self) -> [u8; SECTOR_SIZE] {
        let Self { array, member, spec, drive_size, logs: _, own, read_only } = self;
        assert!(own.reserved.len() <= RESERVED_MAX);
        let mut bytes = [0; SECTOR_SIZE];
        put(&mut bytes, at::MAGIC, &MAGIC);
        put(&mut bytes, at::VERSION, &VERSION.to_le_bytes());
        put(&mut bytes, at::CODE_VERSION, &CODE_VERSION.to_le_bytes());
        put(&mut bytes, at::READ_ONLY, &read_only.to_le_bytes());
        put(&mut bytes, at::INCOMPATIBLE, &self.features().to_le_bytes());
        put(&mut bytes, at::ARRAY, &array.0);
        put(&mut bytes, at::MEMBER, &member.0);
        let shape = Shape { spec: *spec, drive_size: *drive_size };
        put(&mut bytes, at::SHAPE, &shape.encode());
        bytes[at::DRIVE] = own.drive.as_usize() as u8;
        bytes[at::RESERVED_COUNT] = own.reserved.len() as u8;
        put(&mut bytes, at::MEMBER_SIZE, &own.size.get().to_le_bytes());
        for (place, Reserved { extent, purpose }) in own.reserved.iter().enumerate() {
            let start = at::RESERVED + place * RESERVED_BYTES;
            put(&mut bytes, start, &extent.lba.get().to_le_bytes());
            put(&mut bytes, start + 8, &(extent.sectors.get() as u32).to_le_bytes());
            put(&mut bytes, start + 12, &purpose.code().to_le_bytes());
        }
        let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
        put(&mut bytes, at::CHECKSUM, &checksum.to_le_bytes());
        bytes
    }

    /// The superblock that a sector holds.
    pub fn decode(bytes: &[u8]) -> Result<Self, SuperblockError> {
        if bytes.len() != SECTOR_SIZE {
            return Err(SuperblockError::Length { bytes: bytes.len() });
        }
        if bytes[at::MAGIC..][..MAGIC.len()] != MAGIC {
            return Err(SuperblockError::Absent);
        }
        let stored = u32_at(bytes, at::CHECKSUM);
        let computed = crc32c::crc32c(&bytes[..at::CHECKSUM]);
        if stored != computed {
            return Err(SuperblockError::Checksum { stored, computed });
        }
        let version = u32_at(bytes, at::VERSION);
        if version != VERSION {
            return Err(SuperblockError::Version { version });
        }
        let features = u64_at(bytes, at::INCOMPATIBLE);
        if features & !KNOWN_FEATURES != 0 {
            return Err(SuperblockError::Features { bits: features & !KNOWN_FEATURES });
        }
        let code_version = u32_at(bytes, at::CODE_VERSION);
        if code_version != CODE_VERSION {
            return Err(SuperblockError::CodeVersion { version: code_version });
        }
        let shape = Shape::decode(array_at(bytes, at::SHAPE))?;
        let Shape { spec, drive_size } = shape;
        let logs = match (features & JOURNAL_FEATURE != 0, features & INTENTS_FEATURE != 0) {
            (true, true) => Some(Logs::Parts),
            (true, false) => Some(Logs::All),
            (false, _) => None,
        };
        let superblock = Self {
            array: Uuid(array_at(bytes, at::ARRAY)),
            member: Uuid(array_at(bytes, at::MEMBER)),
            spec,
            drive_size,
            logs,
            own: own_of(bytes, &spec)?,
            read_only: u64_at(bytes, at::READ_ONLY),
        };
        let needs_journal = superblock.spec.journals() > 0 || superblock.spec.has_checksums();
        if superblock.features() != features || (needs_journal && superblock.logs.is_none()) {
            return Err(field("features", features));
        }
        superblock.check_own()?;
        superblock.check_unnamed(bytes)?;
        Ok(superblock)
    }

    /// The features without which the array must not be used, as bits.
    fn features(&self) -> u64 {
        let journal = match self.logs {
            None => 0,
            Some(Logs::All) => JOURNAL_FEATURE,
            Some(Logs::Parts) => JOURNAL_FEATURE | INTENTS_FEATURE,
        };
        let apart = if self.spec.journals() > 0 { APART_FEATURE } else { 0 };
        let checksums = if self.spec.has_checksums() { CHECKSUMS_FEATURE } else { 0 };
        journal | apart | checksums
    }

    /// Whether every byte that no field names is zero: where no feature is in use that this program does
    /// not know, whatever is there was written by no program.
    fn check_unnamed(&self, bytes: &[u8]) -> Result<(), SuperblockError> {
        if u64_at(bytes, at::COMPATIBLE) != 0 || self.read_only != 0 {
            return Ok(());
        }
        let expected = self.encode();
        match bytes.iter().zip(&expected).position(|(found, named)| found != named) {
            Some(offset) => Err(SuperblockError::Unnamed { offset }),
            None => Ok(()),
        }
    }

    /// Whether its reserved places are those of a member of this array.
    fn check_own(&self) -> Result<(), SuperblockError> {
        let Self { own, spec, drive_size, .. } = self;
        let count = own.reserved.len() as u64;
        let of = |purpose| own.reserved.iter().filter(move |place| place.purpose == purpose);
        let mut copies = of(Use::Superblock);
        let are_good = copies.clone().all(|place| place.extent.sectors == Sectors::new(1));
        if copies.by_ref().count() != COPIES.len() + 1 || !are_good {
            return Err(field("number of places for superblocks", count));
        }
        let mut metadata = of(Use::Metadata).map(|place| place.extent.sectors);
        if metadata.next() != Some(METADATA.sectors) || metadata.next().is_some() {
            return Err(field("number of places for metadata", count));
        }
        let lists = of(Use::List).map(|place| place.extent.sectors.get());
        let has_data = spec.data_drives().contains(own.drive);
        let may_have = usize::from(spec.has_checksums() && has_data);
        if lists.clone().count() > may_have || !lists.clone().all(|list| list >= 2) {
            return Err(field("number of places for lists of checksums", count));
        }
        if has_data {
            let size = own.size.get();
            let area = own.area(spec, *drive_size).ok_or(field("size of the member", size))?;
            if !area.is_cut_between(spec.chunk()) {
                return Err(field("drive size", drive_size.get()));
            }
        } else if !own.is_in_order() {
            return Err(field("size of the member", own.size.get()));
        }
        let pieces = own.journal();
        let are_large = pieces.iter().all(|piece| piece.sectors >= JOURNAL_PIECE_MIN);
        let takes_all = pieces.iter().any(|piece| takes_codewords(piece.sectors, spec));
        let has_ring = spec.ring_drives().contains(own.drive);
        let is_wrong = if has_ring { !(are_large && takes_all) } else { !pieces.is_empty() };
        if self.logs.is_some() && is_wrong {
            return Err(field("number of places for a journal", count));
        }
        Ok(())
    }
}

fn own_of(bytes: &[u8], spec: &Spec) -> Result<Own, SuperblockError> {
    let drive = bytes[at::DRIVE];
    if usize::from(drive) >= spec.members() {
        return Err(field("drive", drive.into()));
    }
    let size = u64_at(bytes, at::MEMBER_SIZE);
    if size > DRIVE_SECTORS_MAX {
        return Err(field("size of the member", size));
    }
    let count = bytes[at::RESERVED_COUNT];
    if usize::from(count) > RESERVED_MAX {
        return Err(field("number of reserved places", count.into()));
    }
    let reserved = (0..usize::from(count)).map(|place| {
        let start = at::RESERVED + place * RESERVED_BYTES;
        let lba = u64_at(bytes, start);
        let code = u16::from_le_bytes(array_at(bytes, start + 12));
        let purpose = Use::of(code).ok_or(field("use of a reserved place", code.into()))?;
        if lba > DRIVE_SECTORS_MAX {
            return Err(field("reserved place", lba));
        }
        let sectors = Sectors::new(u32_at(bytes, start + 8).into());
        Ok(Reserved { extent: Extent::new(Lba::new(lba), sectors), purpose })
    });
    let reserved = reserved.collect::<Result<Vec<_>, SuperblockError>>()?;
    Ok(Own { drive: DriveIdx::new(drive), size: Sectors::new(size), reserved })
}

const fn field(name: &'static str, value: u64) -> SuperblockError {
    SuperblockError::Field { name, value }
}

#[cfg(test)]
mod tests;
