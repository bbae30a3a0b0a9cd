//! A record of the journal: what one member keeps of one transaction until that is in place everywhere.
//!
//! `docs/formats/journal.md` is the normative text; the tables there and the constants here name the same
//! bytes. A record is one sector, the header, and behind it the sectors that the transaction gives to one
//! drive, the payload. A mark is a header without payload: it says which transactions are committed and which
//! are over.
//!
//! Every record says both, `committed` and `retired`, so that a busy journal needs no marks.
//!
//! A header names the very place where it lies. What a client writes may look like a header, and may even be a
//! copy of one, but it never lies where it says, unless what lay there before was over and may be ignored.

use std::fmt;

use levelhead_block::SectorSet;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, SECTOR_SIZE, Sectors};

use crate::fields::{array_at, u16_at, u32_at, u64_at};
use crate::meta::membership::MemberId;
use crate::meta::superblock::Uuid;

/// The first bytes of every header.
const MAGIC: [u8; 16] = *b"levelhead redo\0\0";

/// The version of the layout below.
const VERSION: u32 = 2;

/// Bytes of a run: its first sector, its sectors, its drive, whether the payload has it, two zeroes.
const RUN_BYTES: usize = 16;

/// Bytes of the checksum of a sector.
const SUM_BYTES: usize = 4;

/// Bytes of the name of a transaction that was dropped.
const DROP_BYTES: usize = 8;

/// Where each field begins. The numbers are little-endian.
mod at {
    use super::SECTOR_SIZE;

    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 16;
    pub(super) const KIND: usize = 20;
    pub(super) const DRIVE: usize = 21;
    pub(super) const RUNS: usize = 22;
    pub(super) const SUMS: usize = 24;
    pub(super) const DROPS: usize = 26;
    pub(super) const ARRAY: usize = 32;
    pub(super) const MEMBER: usize = 48;
    pub(super) const PLACE: usize = 64;
    pub(super) const ID: usize = 72;
    pub(super) const COMMITTED: usize = 80;
    pub(super) const RETIRED: usize = 88;
    pub(super) const PARTICIPANTS: usize = 96;
    pub(super) const SEATING: usize = 104;
    pub(super) const GAPS: usize = 108;
    /// The first byte of the lists.
    pub(super) const LISTS: usize = 128;
    pub(super) const CHECKSUM: usize = SECTOR_SIZE - 4;
}

/// Bytes that a header has for its lists.
const LISTS_BYTES: usize = at::CHECKSUM - at::LISTS;

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It holds what a transaction gives to one drive.
    Payload,
    /// It holds nothing; its watermarks count.
    Mark,
    /// It says that whole codewords are being written in place, and holds nothing of them but their checksums.
    Intent,
}

/// Neighbouring sectors of one drive that a transaction changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangedRun {
    /// Which drive.
    pub drive: DriveIdx,
    /// Which of its sectors, as the layout counts them.
    pub extent: Extent,
    /// Whether the record's payload has them.
    pub is_here: bool,
}

/// Which ring a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingName {
    /// Of which array.
    pub array: Uuid,
    /// On which of its members, and since which seating of it.
    pub member: MemberId,
}

/// What a header says, except for the checksums of sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Whose ring it lies on.
    pub ring: RingName,
    /// The sector of the member where the header lies.
    pub place: Lba,
    /// What it is for.
    pub kind: Kind,
    /// Which transaction it belongs to; 0 of a mark.
    pub id: u64,
    /// The drive that the payload is for; of a mark or an intent the one that it lies on.
    pub drive: DriveIdx,
    /// All drives for which the transaction has a record; of an intent those on whose rings it has one.
    pub participants: DriveSet,
    /// All that the transaction changes, in order, on all drives.
    pub runs: Vec<ChangedRun>,
    /// Every transaction up to this one is committed.
    pub committed: u64,
    /// Every transaction below this one is in place for good.
    pub retired: u64,
    /// Transactions that were found uncommitted after a crash, and count as never begun.
    pub dropped: Vec<u64>,
    /// Of a mark whether sectors of its ring could not be read when a recovery wrote it: records were written over them since,
    /// so that what the ring lacks proves nothing.
    pub has_gaps: bool,
}

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// What its header says.
    pub record: Record,
    /// The checksum of every sector that the transaction changes, in the order of the runs.
    pub sums: Vec<u32>,
    /// Whether the payload is what was written.
    pub is_whole: bool,
}

/// Why a sector is no header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// It does not begin like one, or is not one sector.
    Absent,
    /// It is of another version of the layout.
    Version(u32),
    /// Its bytes are not those that were written.
    Checksum,
    /// A field has a value that cannot be.
    Field(&'static str),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not a record of a journal"),
            Self::Version(version) => {
                write!(f, "the record is of version {version}, this program reads {VERSION}")
            }
            Self::Checksum => f.write_str("the record is damaged: its checksum does not match"),
            Self::Field(name) => write!(f, "the record says of its {name} what cannot be"),
        }
    }
}

impl std::error::Error for RecordError {}

impl Record {
    /// Whether a header has room for a transaction with this number of runs and of sectors.
    pub(crate) fn has_room(runs: usize, sectors: usize) -> bool {
        runs * RUN_BYTES + sectors * SUM_BYTES <= LISTS_BYTES
    }

    /// The most transactions that a mark names as dropped.
    pub(crate) const DROPPED_MAX: usize = LISTS_BYTES / DROP_BYTES;

    /// Sectors of the payload.
    pub fn payload(&self) -> Sectors {
        self.runs.iter().filter(|run| run.is_here).map(|run| run.extent.sectors).sum()
    }

    /// The header as it is on the drive. `sums` has the checksum of every sector of the runs.
    ///
    /// Panics unless it has one a sector and they fit.
    pub fn encode(&self, sums: &[u32]) -> [u8; SECTOR_SIZE] {
        let mut bytes = [0; SECTOR_SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..][..value.len()].copy_from_slice(value);
        put(at::MAGIC, &MAGIC);
        put(at::VERSION, &VERSION.to_le_bytes());
        put(at::KIND, &[kind_code(self.kind), self.drive.as_usize() as u8]);
        // All of these are bounded by the room in a sector.
        put(at::RUNS, &(self.runs.len() as u16).to_le_bytes());
        put(at::SUMS, &(sums.len() as u16).to_le_bytes());
        put(at::DROPS, &(self.dropped.len() as u16).to_le_bytes());
        put(at::ARRAY, &self.ring.array.0);
        put(at::MEMBER, &self.ring.member.uuid.0);
        put(at::SEATING, &self.ring.member.seating.to_le_bytes());
        put(at::GAPS, &[u8::from(self.has_gaps)]);
        put(at::PLACE, &self.place.get().to_le_bytes());
        put(at::ID, &self.id.to_le_bytes());
        put(at::COMMITTED, &self.committed.to_le_bytes());
        put(at::RETIRED, &self.retired.to_le_bytes());
        put(at::PARTICIPANTS, &self.participants.to_bits().to_le_bytes());
        let mut at = at::LISTS;
        let mut sectors = 0;
        for ChangedRun { drive, extent, is_here } in &self.runs {
            put(at, &extent.lba.get().to_le_bytes());
            put(at + 8, &(extent.sectors.get() as u32).to_le_bytes());
            put(at + 12, &[drive.as_usize() as u8, u8::from(*is_here)]);
            at += RUN_BYTES;
            sectors += extent.sectors.as_usize();
        }
        assert_eq!(sectors, sums.len(), "one checksum a sector");
        for sum in sums {
            put(at, &sum.to_le_bytes());
            at += SUM_BYTES;
        }
        for id in &self.dropped {
            put(at, &id.to_le_bytes());
            at += DROP_BYTES;
        }
        assert!(at <= at::CHECKSUM, "{} runs and {sectors} sectors do not fit", self.runs.len());
        let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
        bytes[at::CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header that a sector holds, and the checksums in it.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Vec<u32>), RecordError> {
        if bytes.len() != SECTOR_SIZE || bytes[at::MAGIC..][..MAGIC.len()] != MAGIC {
            return Err(RecordError::Absent);
        }
        if crc32c::crc32c(&bytes[..at::CHECKSUM]) != u32_at(bytes, at::CHECKSUM) {
            return Err(RecordError::Checksum);
        }
        let version = u32_at(bytes, at::VERSION);
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let kind = kind_of(bytes[at::KIND]).ok_or(RecordError::Field("kind"))?;
        let counts = [at::RUNS, at::SUMS, at::DROPS].map(|at| usize::from(u16_at(bytes, at)));
        let [runs, sums, drops] = counts;
        if runs * RUN_BYTES + sums * SUM_BYTES + drops * DROP_BYTES > LISTS_BYTES {
            return Err(RecordError::Field("lists"));
        }
        let first_sum = at::LISTS + runs * RUN_BYTES;
        let first_drop = first_sum + sums * SUM_BYTES;
        let run = |idx| run_of(bytes, at::LISTS + idx * RUN_BYTES);
        let record = Self {
            ring: RingName {
                array: Uuid(array_at(bytes, at::ARRAY)),
                member: MemberId {
                    uuid: Uuid(array_at(bytes, at::MEMBER)),
                    seating: u32_at(bytes, at::SEATING),
                },
            },
            place: lba_of(u64_at(bytes, at::PLACE))?,
            kind,
            id: u64_at(bytes, at::ID),
            drive: drive_of(bytes[at::DRIVE])?,
            participants: DriveSet::from_bits(u64_at(bytes, at::PARTICIPANTS)),
            runs: (0..runs).map(run).collect::<Result<_, _>>()?,
            committed: u64_at(bytes, at::COMMITTED),
            retired: u64_at(bytes, at::RETIRED),
            dropped: (0..drops).map(|idx| u64_at(bytes, first_drop + idx * DROP_BYTES)).collect(),
            has_gaps: bytes[at::GAPS] != 0,
        };
        let sums: Vec<u32> =
            (0..sums).map(|idx| u32_at(bytes, first_sum + idx * SUM_BYTES)).collect();
        record.check(sums.len())?;
        if record.encode(&sums)[..] != *bytes {
            return Err(RecordError::Field("unnamed bytes"));
        }
        Ok((record, sums))
    }

    /// Whether what it says is possible, in any array.
    fn check(&self, sums: usize) -> Result<(), RecordError> {
        let sectors: u64 = self.runs.iter().map(|run| run.extent.sectors.get()).sum();
        if sectors != sums as u64 {
            return Err(RecordError::Field("checksums"));
        }
        let follows = |pair: &[ChangedRun]| {
            let [left, right] = [pair[0], pair[1]];
            left.drive < right.drive
                || (left.drive == right.drive && left.extent.end() <= right.extent.lba)
        };
        let is_foreign = self.runs.iter().any(|run| run.is_here && run.drive != self.drive);
        if is_foreign || !self.runs.windows(2).all(follows) {
            return Err(RecordError::Field("runs"));
        }
        // One an atom of time would not get there.
        if [self.id, self.committed, self.retired].into_iter().any(|number| number > 1 << 62) {
            return Err(RecordError::Field("transaction"));
        }
        if self.has_gaps && self.kind != Kind::Mark {
            return Err(RecordError::Field("gaps"));
        }
        let is_empty = self.payload() == Sectors::ZERO;
        match self.kind {
            Kind::Payload if is_empty || !self.participants.contains(self.drive) => {
                Err(RecordError::Field("payload"))
            }
            Kind::Mark if !self.runs.is_empty() || self.id != 0 => Err(RecordError::Field("mark")),
            Kind::Intent
                if !is_empty || self.runs.is_empty() || !self.participants.contains(self.drive) =>
            {
                Err(RecordError::Field("intent"))
            }
            Kind::Payload | Kind::Mark | Kind::Intent => Ok(()),
        }
    }
}

/// The checksum of every sector of these bytes, which are whole sectors.
pub fn checksums<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u32> {
    pieces.flat_map(|piece| piece.chunks_exact(SECTOR_SIZE)).map(crc32c::crc32c).collect()
}

/// The records in sectors of a ring that were read, `first` being the address of the first of them.
/// `unreadable` are those that the drive did not give.
pub fn examine(
    bytes: &[u8],
    first: Lba,
    unreadable: &SectorSet,
    ring: RingName,
) -> Vec<FoundRecord> {
    let sectors: Vec<&[u8]> = bytes.chunks_exact(SECTOR_SIZE).collect();
    let mut found = Vec::new();
    for (at, sector) in sectors.iter().enumerate() {
        if unreadable.contains(at as u32) {
            continue;
        }
        let Ok((record, sums)) = Record::decode(sector) else { continue };
        if record.ring != ring || record.place != first + Sectors::new(at as u64) {
            continue;
        }
        let is_whole = own_sums(&record, &sums).zip(at + 1..).all(|(sum, at)| {
            let is_read = !unreadable.contains(at as u32);
            is_read && sectors.get(at).is_some_and(|sector| crc32c::crc32c(sector) == sum)
        });
        found.push(FoundRecord { record, sums, is_whole });
    }
    found
}

/// The checksums of the payload's sectors.
fn own_sums(record: &Record, sums: &[u32]) -> impl Iterator<Item = u32> {
    let here = record
        .runs
        .iter()
        .flat_map(|run| std::iter::repeat_n(run.is_here, run.extent.sectors.as_usize()));
    here.zip(sums).filter(|(is_here, _)| *is_here).map(|(_, &sum)| sum)
}

fn run_of(bytes: &[u8], at: usize) -> Result<ChangedRun, RecordError> {
    let lba = lba_of(u64_at(bytes, at))?;
    let sectors = Sectors::new(u32_at(bytes, at + 8).into());
    if sectors == Sectors::ZERO {
        return Err(RecordError::Field("runs"));
    }
    let is_here = match bytes[at + 13] {
        0 => false,
        1 => true,
        _ => return Err(RecordError::Field("runs")),
    };
    Ok(ChangedRun { drive: drive_of(bytes[at + 12])?, extent: Extent::new(lba, sectors), is_here })
}

fn lba_of(number: u64) -> Result<Lba, RecordError> {
    let is_possible = number <= crate::shape::DRIVE_SECTORS_MAX;
    is_possible.then(|| Lba::new(number)).ok_or(RecordError::Field("addresses"))
}

fn drive_of(number: u8) -> Result<DriveIdx, RecordError> {
    let is_possible = usize::from(number) < DriveIdx::MAX as usize;
    is_possible.then(|| DriveIdx::new(number)).ok_or(RecordError::Field("drive"))
}

const fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Payload => 1,
        Kind::Mark => 2,
        Kind::Intent => 3,
    }
}

const fn kind_of(code: u8) -> Option<Kind> {
    match code {
        1 => Some(Kind::Payload),
        2 => Some(Kind::Mark),
        3 => Some(Kind::Intent),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
