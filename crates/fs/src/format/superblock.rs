//! What is fixed when a filesystem is made, and how it was left.
//!
//! `docs/formats/filesystem.md` is the normative text. Three copies lie far apart; the one with the highest generation
//! counts. No two of them are written without a flush in between, so that a cut always leaves one.

use levelhead_units::{Lba, SECTOR_SIZE};

use super::fields::{Fields, FieldsMut};
use super::ladder::Ladder;
use super::unit::Sector;
use crate::geometry::Geometry;

const MAGIC: [u8; 16] = *b"levelhead disk\0\0";

/// How many copies of it there are.
pub(crate) const SUPERBLOCKS: u8 = 3;

/// The version of the layout.
const VERSION: u32 = 1;

mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 16;
    pub(super) const STATE: usize = 20;
    pub(super) const COMPATIBLE: usize = 24;
    pub(super) const READ_ONLY: usize = 32;
    pub(super) const INCOMPATIBLE: usize = 40;
    pub(super) const GENERATION: usize = 48;
    pub(super) const IDENTITY: usize = 56;
    pub(super) const SECTORS: usize = 72;
    pub(super) const GROUP_SECTORS: usize = 80;
    pub(super) const COPIES: usize = 88;
    pub(super) const INTERLEAVE: usize = 89;
    pub(super) const RUNGS: usize = 90;
    pub(super) const FORCED_RUNGS: usize = 91;
    pub(super) const SUMMARY: usize = 96;
    pub(super) const ROOT: usize = 104;
    pub(super) const ORPHANS: usize = 112;
    pub(super) const DAMAGED: usize = 120;
    pub(super) const CREATED: usize = 128;
    pub(super) const RECORD: usize = 136;
    pub(super) const SPARE: usize = 144;
    pub(super) const UNITS: usize = 152;
    pub(super) const LABEL: usize = 160;
    pub(super) const LADDER: usize = 208;
    pub(super) const FORCED_LADDER: usize = LADDER + 2 * super::Ladder::RUNGS_MAX;
    pub(super) const ZEROES: usize = FORCED_LADDER + 2 * super::FORCED_RUNGS_MAX;
    pub(super) const SUM: usize = 4092;
}

/// The most redundant sectors of a group whose sectors end in zeroes that the drive makes use of.
pub const FORCED_RUNGS_MAX: usize = 8;

/// The fewest data sectors of their longest group: a page and its complementary sector.
pub const FORCED_DATA_MIN: u16 = 2;

/// No generation and no name of a record is as large, so that there is always a next one.
pub(crate) const COUNT_END: u64 = 1 << 63;

/// Bytes of a label.
pub const LABEL_MAX: usize = 48;

/// Programs that do not know a bit may ignore it; none is used yet.
const COMPATIBLE_KNOWN: u64 = 0;

/// Those that do not know one of these may only read; none is used yet.
const READ_ONLY_KNOWN: u64 = 0;

/// Files may have sectors that end in zeroes which the drive makes use of.
pub const ZERO_FORCING: u64 = 1;

/// A copy of a unit could not be written and may hold an older version: the first good copy of a unit proves nothing.
pub const OLDER_COPIES: u64 = 2;

/// Those that do not know one of these must not use the filesystem.
const INCOMPATIBLE_KNOWN: u64 = ZERO_FORCING | OLDER_COPIES;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Random bytes that no other filesystem has.
    pub identity: [u8; 16],
    /// How often it was written.
    pub generation: u64,
    /// Whether everything was in its place when it was written.
    pub is_clean: bool,
    /// Bits of features that a program must know to write.
    pub read_only: u64,
    /// Bits of features that a program must know to use the filesystem.
    pub incompatible: u64,
    /// Where everything lies.
    pub geometry: Geometry,
    /// Groups of one file that are woven, so that a run of bad sectors hits all of them alike.
    pub interleave: u8,
    /// The most data sectors of a coding group, and how many redundant ones a group of a length gets.
    pub ladder: Ladder,
    /// The same for files of kind B, where sectors may end in zeroes that the drive makes use of; it has no more than
    /// [`FORCED_RUNGS_MAX`] rungs.
    pub forced: Option<Ladder>,
    /// The first lead of the summary.
    pub summary: Lba,
    /// The inode of the root directory.
    pub root: u64,
    /// The inode whose tree names the inodes that no directory names.
    pub orphans: u64,
    /// The inode whose tree names files with sectors that are lost.
    pub damaged: u64,
    /// The inode whose tree names the units of inodes that have free ones.
    pub spare: u64,
    /// The inode whose tree names all units of inodes; its size is the number of inodes that are not the filesystem's own.
    pub units: u64,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// The name of the journal's next record, when it was left clean.
    pub record: u64,
    /// A name for people, in UTF-8.
    pub label: String,
}

/// Why a sector is no superblock that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSuperblock {
    /// Nothing of the kind is there.
    Absent,
    /// It was one, and is damaged.
    Damaged,
    /// It is of a version or has features that this program does not know.
    Unknown {
        /// The version.
        version: u32,
        /// Incompatible features that are not known.
        features: u64,
    },
}

impl Superblock {
    /// The inodes that no directory names, and whose trees are lists of the filesystem's own.
    pub fn own_inodes(&self) -> [u64; 4] {
        [self.orphans, self.damaged, self.spare, self.units]
    }

    /// As a sector.
    pub fn encode(&self) -> Box<Sector> {
        let mut sector = Box::new([0; SECTOR_SIZE]);
        sector[at::MAGIC..at::VERSION].copy_from_slice(&MAGIC);
        sector[at::IDENTITY..at::SECTORS].copy_from_slice(&self.identity);
        let label = self.label.as_bytes();
        assert!(label.len() <= LABEL_MAX, "a label of {} bytes", label.len());
        sector[at::LABEL..][..label.len()].copy_from_slice(label);
        let mut fields = FieldsMut(&mut sector[..]);
        fields.put_u32(at::VERSION, VERSION);
        fields.put_u8(at::STATE, u8::from(self.is_clean));
        fields.put_u64(at::READ_ONLY, self.read_only);
        fields.put_u64(at::INCOMPATIBLE, self.incompatible);
        fields.put_u64(at::GENERATION, self.generation);
        fields.put_u64(at::SECTORS, self.geometry.sectors);
        fields.put_u64(at::GROUP_SECTORS, self.geometry.group_sectors);
        fields.put_u8(at::COPIES, self.geometry.copies);
        fields.put_u8(at::INTERLEAVE, self.interleave);
        fields.put_u8(at::RUNGS, self.ladder.redundant_max());
        let forced = self.forced.as_ref();
        fields.put_u8(at::FORCED_RUNGS, forced.map_or(0, Ladder::redundant_max));
        fields.put_u64(at::SUMMARY, self.summary.get());
        fields.put_u64(at::ROOT, self.root);
        fields.put_u64(at::ORPHANS, self.orphans);
        fields.put_u64(at::DAMAGED, self.damaged);
        fields.put_u64(at::SPARE, self.spare);
        fields.put_u64(at::UNITS, self.units);
        fields.put_i64(at::CREATED, self.created);
        fields.put_u64(at::RECORD, self.record);
        for (rung, at) in self.ladder.lengths().iter().zip((at::LADDER..).step_by(2)) {
            fields.put_u16(at, *rung);
        }
        let rungs = forced.map_or(&[][..], Ladder::lengths);
        for (rung, at) in rungs.iter().zip((at::FORCED_LADDER..at::ZEROES).step_by(2)) {
            fields.put_u16(at, *rung);
        }
        let sum = crc32c::crc32c(&sector[..at::SUM]);
        FieldsMut(&mut sector[..]).put_u32(at::SUM, sum);
        sector
    }

    /// From a sector.
    pub fn decode(sector: &Sector) -> Result<Self, NoSuperblock> {
        let fields = Fields(sector);
        if sector[at::MAGIC..at::VERSION] != MAGIC {
            return Err(NoSuperblock::Absent);
        }
        if fields.u32(at::SUM) != crc32c::crc32c(&sector[..at::SUM]) {
            return Err(NoSuperblock::Damaged);
        }
        let version = fields.u32(at::VERSION);
        let incompatible = fields.u64(at::INCOMPATIBLE);
        let features = incompatible & !INCOMPATIBLE_KNOWN;
        if version != VERSION || features != 0 {
            return Err(NoSuperblock::Unknown { version, features });
        }
        let read_only = fields.u64(at::READ_ONLY);
        let are_all_known = fields.u64(at::COMPATIBLE) & !COMPATIBLE_KNOWN == 0
            && read_only & !READ_ONLY_KNOWN == 0;
        let is_zero = sector[at::ZEROES..at::SUM].iter().all(|&byte| byte == 0);
        let label = sector[at::LABEL..at::LADDER].split(|&byte| byte == 0).next();
        let label = std::str::from_utf8(label.unwrap_or_default());
        let geometry = Geometry {
            sectors: fields.u64(at::SECTORS),
            group_sectors: fields.u64(at::GROUP_SECTORS),
            copies: fields.u8(at::COPIES),
        };
        let lengths: Vec<u16> =
            (at::LADDER..at::FORCED_LADDER).step_by(2).map(|at| fields.u16(at)).collect();
        let ladder = match usize::from(fields.u8(at::RUNGS)) {
            0 => Ladder::without_redundancy(lengths[0]),
            rungs => lengths.get(..rungs).and_then(Ladder::new),
        };
        let (Some(ladder), Ok(label)) = (ladder, label) else { return Err(NoSuperblock::Damaged) };
        let forced: Vec<u16> =
            (at::FORCED_LADDER..at::ZEROES).step_by(2).map(|at| fields.u16(at)).collect();
        let forced = forced.get(..fields.u8(at::FORCED_RUNGS).into()).and_then(Ladder::new);
        let is_sane = geometry.is_sane()
            && forced.as_ref().is_none_or(|forced| forced.data_max() >= FORCED_DATA_MIN)
            && forced.is_some() == (incompatible & ZERO_FORCING != 0)
            && (is_zero || !are_all_known)
            && (1..=INTERLEAVE_MAX).contains(&fields.u8(at::INTERLEAVE))
            && (1..COUNT_END).contains(&fields.u64(at::RECORD))
            && fields.u64(at::GENERATION) < COUNT_END
            && geometry.may_lead_summary(Lba::new(fields.u64(at::SUMMARY)));
        if !is_sane {
            return Err(NoSuperblock::Damaged);
        }
        Ok(Self {
            identity: sector[at::IDENTITY..at::SECTORS].try_into().expect("16 bytes"),
            generation: fields.u64(at::GENERATION),
            is_clean: fields.u8(at::STATE) == 1,
            read_only,
            incompatible,
            geometry,
            interleave: fields.u8(at::INTERLEAVE),
            ladder,
            forced,
            summary: Lba::new(fields.u64(at::SUMMARY)),
            root: fields.u64(at::ROOT),
            orphans: fields.u64(at::ORPHANS),
            damaged: fields.u64(at::DAMAGED),
            spare: fields.u64(at::SPARE),
            units: fields.u64(at::UNITS),
            created: fields.i64(at::CREATED),
            record: fields.u64(at::RECORD),
            label: label.to_owned(),
        })
    }

    /// Whether this program knows enough to write.
    pub fn may_write(&self) -> bool {
        self.read_only & !READ_ONLY_KNOWN == 0
    }

    /// Whether a copy of a unit may hold an older version.
    pub fn has_older_copies(&self) -> bool {
        self.incompatible & OLDER_COPIES != 0
    }

    /// What heads of this filesystem's sectors name it by.
    pub fn filesystem(&self) -> u64 {
        u64::from_le_bytes(self.identity[..8].try_into().expect("8 bytes"))
    }
}

/// The most groups that are woven.
pub const INTERLEAVE_MAX: u8 = 64;

#[cfg(test)]
mod tests {
    use levelhead_units::Sectors;

    use super::*;

    fn one() -> Superblock {
        let geometry = Geometry::of_disk(Sectors::new(100_000), 3).unwrap();
        let summary =
            geometry.group(crate::geometry::GroupIdx(0)).lba + Sectors::new(geometry.fixed_end());
        Superblock {
            identity: *b"0123456789abcdef",
            generation: 3,
            is_clean: true,
            read_only: 0,
            incompatible: ZERO_FORCING,
            geometry,
            interleave: 8,
            ladder: Ladder::fixed(246, 9).unwrap(),
            forced: Ladder::new(&[120, 240]),
            summary,
            root: 8_000,
            orphans: 8_001,
            damaged: 8_002,
            spare: 8_003,
            units: 8_004,
            created: -5,
            record: 77,
            label: "cold shelf".to_owned(),
        }
    }

    #[test]
    fn superblock_is_read_as_it_was_written() {
        assert_eq!(Superblock::decode(&one().encode()), Ok(one()));
        assert_eq!(Superblock::decode(&[0; SECTOR_SIZE]), Err(NoSuperblock::Absent));
        let ladder = Ladder::without_redundancy(1_000).unwrap();
        let bare = Superblock { ladder, ..one() };
        assert_eq!(Superblock::decode(&bare.encode()), Ok(bare));
    }

    #[test]
    fn damage_and_unknown_features_are_told_apart() {
        let mut sector = one().encode();
        sector[100] ^= 1;
        assert_eq!(Superblock::decode(&sector), Err(NoSuperblock::Damaged));
        let newer = Superblock { incompatible: 12, ..one() }.encode();
        let unknown = NoSuperblock::Unknown { version: 1, features: 12 };
        assert_eq!(Superblock::decode(&newer), Err(unknown));
        let newer = Superblock { read_only: 1, ..one() }.encode();
        assert!(!Superblock::decode(&newer).unwrap().may_write());
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let geometry = Geometry { copies: 9, ..one().geometry };
        for wrong in [
            Superblock { geometry, ..one() },
            Superblock { interleave: 0, ..one() },
            Superblock { forced: None, ..one() },
            Superblock { incompatible: 0, ..one() },
            Superblock { summary: Lba::ZERO, ..one() },
            Superblock { record: 0, ..one() },
            Superblock { record: COUNT_END, ..one() },
            Superblock { generation: u64::MAX, ..one() },
        ] {
            assert_eq!(Superblock::decode(&wrong.encode()), Err(NoSuperblock::Damaged));
        }
    }
}
