//! The superblock: what every drive of an array says about the array and its own place in it.
//!
//! `docs/formats/superblock.md` is the normative text; the table there and the constants here name
//! the same bytes. One superblock is one sector. Every drive has two copies, in its first and in its
//! last sector, written one after the other, so that a torn write leaves the other one.
//!
//! Only a sector that passed every check becomes a [`Superblock`]: whoever holds one may index with
//! what it says.
//!
//! # What it leaves out
//!
//! How an array is served (window, host order, policy) is the server's choice and is not stored.

use std::fmt;

use levelhead_units::{DriveIdx, DriveSet, SECTOR_SIZE, Sectors};

use crate::shape::Layout;
use crate::shape::{Family, Parity, Spec, SpecError};

/// Where the array's data begins on every drive.
pub const DATA_START: Sectors = Sectors::new(256);

/// Sectors at the end of every drive that hold no data; the very last one is the second copy.
pub const RESERVED_END: Sectors = Sectors::new(256);

/// The first bytes of every superblock.
const MAGIC: [u8; 16] = *b"levelhead array\0";

/// The version of the layout below.
const VERSION: u32 = 1;

/// The version of `docs/formats/codeword.md` that redundancy follows.
const CODE_VERSION: u32 = 1;

/// Where each field begins. The numbers are little-endian.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 16;
    pub(super) const CODE_VERSION: usize = 20;
    pub(super) const GENERATION: usize = 24;
    pub(super) const UUID: usize = 32;
    pub(super) const DRIVE: usize = 48;
    pub(super) const FAMILY: usize = 49;
    pub(super) const DATA: usize = 50;
    pub(super) const REDUNDANT: usize = 51;
    pub(super) const EXPANSION: usize = 52;
    pub(super) const CHUNK: usize = 56;
    pub(super) const PARITY: usize = 60;
    pub(super) const STATE: usize = 61;
    pub(super) const DRIVE_SIZE: usize = 64;
    pub(super) const DATA_START: usize = 72;
    pub(super) const SYNCED: usize = 80;
    pub(super) const LOST: usize = 88;
    pub(super) const CHECKSUM: usize = 4092;
}

const _: () = assert!(at::CHECKSUM + 4 == SECTOR_SIZE);

/// What tells one array from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// Whether redundancy below the watermark can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The array was stopped after its last write had ended.
    Clean,
    /// The array is being served, or was when everything stopped.
    Dirty,
}

/// One drive's superblock. See the page for the meaning of each field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Counts changes of the array's state; the drive with the highest one is right.
    pub generation: u64,
    /// Which array.
    pub uuid: Uuid,
    /// Which of its drives this is.
    pub drive: DriveIdx,
    /// The array's shape.
    pub spec: Spec,
    /// Sectors of every drive that hold the array's data.
    pub drive_size: Sectors,
    /// Where they begin.
    pub data_start: Sectors,
    /// Redundancy of stripes below this number is valid, if the state is clean.
    pub synced: u64,
    /// The drives that the array does without.
    pub lost: DriveSet,
    /// Whether the array was stopped in good order.
    pub state: State,
}

/// Why a sector is no superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuperblockError {
    /// It is not one sector.
    Length {
        /// Its bytes.
        bytes: usize,
    },
    /// It does not begin like one.
    Absent,
    /// It is of another version of the layout.
    Version {
        /// The version it names.
        version: u32,
    },
    /// Its bytes are not those that were written.
    Checksum {
        /// The checksum that is stored.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// Its redundancy follows another version of the codewords.
    CodeVersion {
        /// The version it names.
        version: u32,
    },
    /// It describes an array that cannot be.
    Spec(SpecError),
    /// A field has a value that cannot be.
    Field {
        /// Which.
        name: &'static str,
        /// Its value.
        value: u64,
    },
}

impl fmt::Display for SuperblockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes } => {
                write!(f, "a superblock has {SECTOR_SIZE} bytes, got {bytes}")
            }
            Self::Absent => f.write_str("there is no superblock"),
            Self::Version { version } => {
                write!(f, "the superblock is of version {version}, this program reads {VERSION}")
            }
            Self::Checksum { stored, computed } => write!(
                f,
                "the superblock is damaged: its checksum is {computed:#010x}, not {stored:#010x}"
            ),
            Self::CodeVersion { version } => write!(
                f,
                "the array's codewords are of version {version}, this program knows {CODE_VERSION}"
            ),
            Self::Spec(error) => write!(f, "the superblock describes no array: {error}"),
            Self::Field { name, value } => {
                write!(f, "the superblock cannot have {value} as its {name}")
            }
        }
    }
}

impl std::error::Error for SuperblockError {}

impl Superblock {
    /// How many stripes the array has.
    pub fn stripes(&self) -> u64 {
        Layout::new(self.spec, self.drive_size).stripes()
    }

    /// The sector as it is on the drive.
    pub fn encode(&self) -> [u8; SECTOR_SIZE] {
        let mut bytes = [0; SECTOR_SIZE];
        put(&mut bytes, at::MAGIC, &MAGIC);
        put(&mut bytes, at::VERSION, &VERSION.to_le_bytes());
        put(&mut bytes, at::CODE_VERSION, &CODE_VERSION.to_le_bytes());
        put(&mut bytes, at::GENERATION, &self.generation.to_le_bytes());
        put(&mut bytes, at::UUID, &self.uuid.0);
        // All of these are small in every valid spec.
        bytes[at::DRIVE] = self.drive.as_usize() as u8;
        bytes[at::FAMILY] = family_code(self.spec.family());
        bytes[at::DATA] = self.spec.data() as u8;
        bytes[at::REDUNDANT] = self.spec.redundant() as u8;
        put(&mut bytes, at::EXPANSION, &(self.spec.expansion() as u32).to_le_bytes());
        put(&mut bytes, at::CHUNK, &(self.spec.chunk().get() as u32).to_le_bytes());
        bytes[at::PARITY] = match self.spec.parity() {
            Parity::Fixed => 0,
            Parity::Rotating => 1,
        };
        bytes[at::STATE] = match self.state {
            State::Clean => 0,
            State::Dirty => 1,
        };
        put(&mut bytes, at::DRIVE_SIZE, &self.drive_size.get().to_le_bytes());
        put(&mut bytes, at::DATA_START, &self.data_start.get().to_le_bytes());
        put(&mut bytes, at::SYNCED, &self.synced.to_le_bytes());
        put(&mut bytes, at::LOST, &self.lost.to_bits().to_le_bytes());
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
        let version = u32_at(bytes, at::VERSION);
        if version != VERSION {
            return Err(SuperblockError::Version { version });
        }
        let stored = u32_at(bytes, at::CHECKSUM);
        let computed = crc32c::crc32c(&bytes[..at::CHECKSUM]);
        if stored != computed {
            return Err(SuperblockError::Checksum { stored, computed });
        }
        let code_version = u32_at(bytes, at::CODE_VERSION);
        if code_version != CODE_VERSION {
            return Err(SuperblockError::CodeVersion { version: code_version });
        }
        let spec = spec_of(bytes)?;
        let (drive, lost) = places_of(bytes, &spec)?;
        let state = match bytes[at::STATE] {
            0 => State::Clean,
            1 => State::Dirty,
            other => return Err(field("state", other.into())),
        };
        let superblock = Self {
            generation: u64_at(bytes, at::GENERATION),
            uuid: Uuid(array_at(bytes, at::UUID)),
            drive,
            spec,
            drive_size: Sectors::new(u64_at(bytes, at::DRIVE_SIZE)),
            data_start: Sectors::new(u64_at(bytes, at::DATA_START)),
            synced: u64_at(bytes, at::SYNCED),
            lost,
            state,
        };
        superblock.check_sizes()?;
        Ok(superblock)
    }

    /// Whether the sizes are such that nobody who computes with them runs over.
    fn check_sizes(&self) -> Result<(), SuperblockError> {
        /// No drive has more: 2^52 bytes.
        const DRIVE_SECTORS_MAX: u64 = 1 << 40;
        let (size, start) = (self.drive_size.get(), self.data_start.get());
        // One a nanosecond would take three hundred years.
        if self.generation > 1 << 63 {
            return Err(field("generation", self.generation));
        }
        if size > DRIVE_SECTORS_MAX || self.stripes() == 0 {
            return Err(field("drive size", size));
        }
        if start == 0 || start > DRIVE_SECTORS_MAX {
            return Err(field("start of data", start));
        }
        if self.synced > self.stripes() {
            return Err(field("number of stripes in sync", self.synced));
        }
        Ok(())
    }
}

fn spec_of(bytes: &[u8]) -> Result<Spec, SuperblockError> {
    let family = match bytes[at::FAMILY] {
        0 => Family::Raid0,
        4 => Family::Raid4,
        5 => Family::Raid5,
        6 => Family::Raid6,
        b'e' => Family::Eraid,
        other => return Err(field("family", other.into())),
    };
    let parity = match bytes[at::PARITY] {
        0 => Parity::Fixed,
        1 => Parity::Rotating,
        other => return Err(field("parity", other.into())),
    };
    let shape = (u32::from(bytes[at::DATA]), u32::from(bytes[at::REDUNDANT]));
    let chunk = Sectors::new(u32_at(bytes, at::CHUNK).into());
    Spec::new(family, shape, u32_at(bytes, at::EXPANSION), chunk, parity)
        .map_err(SuperblockError::Spec)
}

/// The drive's own place, and those of the lost ones.
fn places_of(bytes: &[u8], spec: &Spec) -> Result<(DriveIdx, DriveSet), SuperblockError> {
    let drive = bytes[at::DRIVE];
    if usize::from(drive) >= spec.drives() {
        return Err(field("drive", drive.into()));
    }
    let drive = DriveIdx::new(drive);
    let bits = u64_at(bytes, at::LOST);
    let lost = DriveSet::from_bits(bits);
    let all = DriveSet::first(spec.drives() as u8);
    // A lost drive is never written to, so none says of itself that it is lost.
    if !lost.without(all).is_empty() || lost.contains(drive) {
        return Err(field("set of lost drives", bits));
    }
    Ok((drive, lost))
}

const fn family_code(family: Family) -> u8 {
    match family {
        Family::Raid0 => 0,
        Family::Raid4 => 4,
        Family::Raid5 => 5,
        Family::Raid6 => 6,
        Family::Eraid => b'e',
    }
}

const fn field(name: &'static str, value: u64) -> SuperblockError {
    SuperblockError::Field { name, value }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..][..value.len()].copy_from_slice(value);
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..][..N].try_into().expect("the slice has this length")
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    const PAGE: &str = include_str!("../../../../docs/formats/superblock.md");

    /// The superblock that the page shows.
    fn example() -> Superblock {
        Superblock {
            generation: 0x0102_0304_0506_0708,
            uuid: Uuid(std::array::from_fn(|at| 0xA0 + at as u8)),
            drive: DriveIdx::new(4),
            spec: "eraid:5+1,e=2,chunk=8KiB".parse().unwrap(),
            drive_size: Sectors::new(261_632),
            data_start: DATA_START,
            synced: 1_000,
            lost: DriveSet::EMPTY.with(DriveIdx::new(2)),
            state: State::Dirty,
        }
    }

    /// Makes the checksum right again.
    fn seal(bytes: &mut [u8]) {
        let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
        put(bytes, at::CHECKSUM, &checksum.to_le_bytes());
    }

    #[test]
    fn what_was_encoded_decodes_to_the_same() {
        for text in ["raid0:3", "raid4:3+1", "raid5:5+1,chunk=512KiB", "raid6:6+2,parity=fixed"] {
            let spec = text.parse().unwrap();
            let lost = DriveSet::EMPTY;
            let superblock = Superblock { spec, drive: DriveIdx::new(1), lost, ..example() };
            assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock), "{text}");
        }
        let clean = Superblock { state: State::Clean, ..example() };
        assert_eq!(Superblock::decode(&clean.encode()), Ok(clean));
    }

    /// The page lists every byte that is not zero, as `offset: bytes`.
    #[test]
    fn page_and_code_have_the_same_bytes() {
        let (_, after) = PAGE.split_once("## Test vector").expect("the page has a test vector");
        let (_, block) = after.split_once("```text\n").expect("the vector is a block");
        let (block, _) = block.split_once("```").expect("the block ends");
        let mut expected = [0; SECTOR_SIZE];
        for line in block.lines() {
            let (offset, bytes) = line.split_once(": ").expect("offset: bytes");
            let bytes: Vec<u8> =
                bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
            put(&mut expected, offset.parse().unwrap(), &bytes);
        }
        let encoded = example().encode();
        let lines = |bytes: &[u8]| -> Vec<String> {
            let rows = bytes.chunks(16).enumerate().filter(|(_, row)| row.iter().any(|&b| b != 0));
            rows.map(|(at, row)| format!("{}: {row:02x?}", at * 16)).collect()
        };
        assert_eq!(lines(&encoded), lines(&expected));
        assert_eq!(Superblock::decode(&expected), Ok(example()));
    }

    #[test]
    fn flip_of_any_bit_is_detected() {
        let good = example().encode();
        for byte in 0..SECTOR_SIZE {
            for bit in 0..8 {
                let mut bytes = good;
                bytes[byte] ^= 1 << bit;
                assert!(Superblock::decode(&bytes).is_err(), "bit {bit} of byte {byte}");
            }
        }
    }

    #[test]
    fn impossible_fields_are_refused_in_one_sentence() {
        let check = |at: usize, value: &[u8], sentence: &str| {
            let mut bytes = example().encode();
            put(&mut bytes, at, value);
            seal(&mut bytes);
            assert_eq!(Superblock::decode(&bytes).unwrap_err().to_string(), sentence);
        };
        check(at::MAGIC, b"L", "there is no superblock");
        check(at::VERSION, &[2], "the superblock is of version 2, this program reads 1");
        check(
            at::CODE_VERSION,
            &[9],
            "the array's codewords are of version 9, this program knows 1",
        );
        check(at::FAMILY, &[7], "the superblock cannot have 7 as its family");
        check(at::PARITY, &[2], "the superblock cannot have 2 as its parity");
        check(at::STATE, &[2], "the superblock cannot have 2 as its state");
        check(at::DRIVE, &[6], "the superblock cannot have 6 as its drive");
        check(at::LOST, &[64], "the superblock cannot have 64 as its set of lost drives");
        check(at::LOST, &[16], "the superblock cannot have 16 as its set of lost drives");
        check(
            at::EXPANSION,
            &[3],
            "the superblock describes no array: a chunk of 8KiB is 2 sectors, which e=3 sectors do not divide",
        );
        check(
            at::GENERATION,
            &[0xFF; 8],
            "the superblock cannot have 18446744073709551615 as its generation",
        );
        check(at::DRIVE_SIZE, &[1, 0, 0], "the superblock cannot have 1 as its drive size");
        check(at::DATA_START, &[0, 0], "the superblock cannot have 0 as its start of data");
        check(
            at::SYNCED,
            &[0, 0, 3],
            "the superblock cannot have 196608 as its number of stripes in sync",
        );
        let short = Superblock::decode(&[0; 512]).unwrap_err().to_string();
        assert_eq!(short, "a superblock has 4096 bytes, got 512");
    }

    /// Whatever the bytes, the answer is a superblock that encodes to itself or an error. The
    /// checksum is made right, or nothing behind it would ever be reached.
    #[test]
    fn any_bytes_are_decoded_or_refused() {
        let mut decoded = 0;
        for seed in 0..20_000 {
            let mut rng = Streams::new(seed).stream("superblock");
            let mut bytes = example().encode();
            for _ in 0..=rng.below(6) {
                // The fields, far more often than the zeroes after them.
                let span = if rng.below(8) == 0 { 4092 } else { 96 };
                let at = rng.below(span) as usize;
                bytes[at] = if rng.below(2) == 0 { rng.below(256) } else { rng.below(8) } as u8;
            }
            seal(&mut bytes);
            if let Ok(superblock) = Superblock::decode(&bytes) {
                decoded += 1;
                let again = Superblock::decode(&superblock.encode());
                assert_eq!(again, Ok(superblock), "seed {seed}");
                let layout = Layout::new(superblock.spec, superblock.drive_size);
                assert!(layout.size() > Sectors::ZERO, "seed {seed}");
            }
        }
        assert!(decoded > 1_000, "only {decoded} of 20000 got past the checks");
    }

    #[test]
    fn uuid_is_written_as_everybody_writes_it() {
        assert_eq!(example().uuid.to_string(), "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    }
}
