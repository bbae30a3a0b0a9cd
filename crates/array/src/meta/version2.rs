//! Version 2 of an array's superblock and bad-sector list, as earlier builds wrote them: to convert an array that was stopped
//! cleanly, and back.
//!
//! ```text
//!   version 2   identity and state in one superblock: sector 0, and the last; the list in two slots 256 sectors before the end
//!   version 3   identity in the superblock: sectors 0 and 255, and the last; state and list in the metadata, sectors 1 to 254
//! ```
//!
//! The data and the journal lie in the same places. `docs/formats/superblock.md` has the bytes.
//!
//! # Invariants
//!
//! - V1. What is decoded says exactly what its bytes say: encoding it again gives these bytes. Whatever has no place in today's
//!   metadata is refused by that.
//! - V2. What is decoded passes the checks of today's superblock and metadata.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

use super::damaged::{DamagedList, RANGE_BYTES, RANGES_MAX};
use super::membership::{Generation, Member, MemberId, Membership};
use super::metadata::{self, Forced, Inscription, Kept, Logs, Metadata, MetadataError, State};
use super::own::Own;
use super::reserve::{HEAD, RESERVED_MAX, Reserved, TAIL, Use, head, tail};
use super::shape::{SHAPE_BYTES, Shape};
use super::superblock::{self, Superblock, SuperblockError};
use super::uuid::Uuid;
use super::wishes::Wishes;
use crate::fields::{array_at, put, u32_at, u64_at};
use crate::shape::{DRIVE_SECTORS_MAX, Layout, Spec};

const VERSION: u32 = 2;
const CODE_VERSION: u32 = 1;

const JOURNAL: u64 = 1;
const DAMAGED: u64 = 1 << 1;
const FILLING: u64 = 1 << 2;
const INTENTS: u64 = 1 << 4;
const MISSED: u64 = 1 << 5;
const APART: u64 = 1 << 6;
const KNOWN: u64 = JOURNAL | DAMAGED | FILLING | INTENTS | MISSED | APART;
/// The compatible feature: operator settings.
const WISHES: u64 = 1;

/// Where each field of the superblock begins. The numbers are little-endian.
mod at {
    pub(super) const VERSION: usize = 16;
    pub(super) const CODE_VERSION: usize = 20;
    pub(super) const COMPATIBLE: usize = 24;
    pub(super) const READ_ONLY: usize = 32;
    pub(super) const INCOMPATIBLE: usize = 40;
    pub(super) const GENERATION: usize = 48;
    pub(super) const ARRAY: usize = 56;
    pub(super) const MEMBER: usize = 72;
    pub(super) const RUN: usize = 88;
    pub(super) const DRIVE: usize = 104;
    pub(super) const STATE: usize = 117;
    pub(super) const FORCED: usize = 118;
    pub(super) const RESERVED_COUNT: usize = 119;
    pub(super) const MEMBER_SIZE: usize = 128;
    pub(super) const SYNCED: usize = 136;
    pub(super) const SYNCED_LAST: usize = 144;
    pub(super) const JOURNAL: usize = 152;
    pub(super) const WISHES: usize = 176;
    pub(super) const MEMBERSHIPS: usize = 256;
    pub(super) const UUIDS: usize = 1_280;
    pub(super) const RESERVED: usize = 2_304;
    pub(super) const CHECKSUM: usize = super::SECTOR_SIZE - 4;
}

/// Where the bytes of a shape lie: in today's 24, in a superblock of version 2, and how many they are.
const SHAPE: [(usize, usize, usize); 7] =
    [(0, 105, 3), (3, 116, 1), (4, 160, 1), (5, 161, 1), (8, 108, 4), (12, 112, 4), (16, 120, 8)];

/// Reserved places before the data, and behind it: first sector, sectors, use. Those behind it count from their beginning.
const PLACES_BEFORE: [(u64, u64, u16); 4] = [(0, 1, 1), (1, 63, 4), (64, 128, 3), (192, 64, 4)];
const PLACES_BEHIND: [(u64, u64, u16); 3] = [(0, 128, 5), (128, 127, 4), (255, 1, 1)];

/// The use of a place that a superblock of version 2 has for a piece of the journal.
const JOURNAL_USE: u16 = 2;

const RESERVED_BYTES: usize = 16;

/// The most pieces of a journal that there is room for beside the other places.
const PIECES_MAX: usize = RESERVED_MAX - PLACES_BEFORE.len() - PLACES_BEHIND.len();

/// Sectors of one of the two slots for the list.
const LIST_SLOT: Sectors = Sectors::new(64);

const LIST_MAGIC: [u8; 16] = *b"levelhead damage";

/// The version of the list's layout.
const LIST_VERSION: u32 = 1;

/// The most ranges of a list of version 2.
const LIST_RANGES_MAX: usize = (LIST_SLOT.get() as usize - 1) * SECTOR_SIZE / RANGE_BYTES;

/// What a member of an array says that was stopped cleanly while all its members were present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Old {
    /// How the array stands, but for its bad-sector list: all members have this generation, and none has come back.
    pub metadata: Metadata,
    /// What the member says of itself, with today's reserved places.
    pub own: Own,
}

/// Which array a superblock of version 2 is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Which array.
    pub array: Uuid,
    /// The array's shape.
    pub spec: Spec,
    /// The member's size when it became one.
    pub size: Sectors,
}

/// The bad-sector list as a member has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Counts its changes; the highest one is right.
    pub generation: u64,
    /// What it says.
    pub damaged: DamagedList,
}

/// Why something is not converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version2Error {
    /// The array was not stopped cleanly.
    Unclean,
    /// A member is not present: missing, failed, rebuilding, or a spare.
    NotPresent {
        /// Its place.
        drive: DriveIdx,
    },
    /// The superblock, of either version, cannot be.
    Superblock(SuperblockError),
    /// The metadata that it would become, or the bad-sector list of version 2, cannot be.
    Metadata(MetadataError),
}

impl fmt::Display for Version2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclean => f.write_str(
                "the array was not stopped cleanly: start it with the build that it was last used with, and stop it",
            ),
            Self::NotPresent { drive } => write!(
                f,
                "drive {drive} is not present: first let the build that it was last used with replace or rebuild it"
            ),
            Self::Superblock(error) => error.fmt(f),
            Self::Metadata(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Version2Error {}

impl From<SuperblockError> for Version2Error {
    fn from(error: SuperblockError) -> Self {
        Self::Superblock(error)
    }
}

impl From<MetadataError> for Version2Error {
    fn from(error: MetadataError) -> Self {
        Self::Metadata(error)
    }
}

const fn field(name: &'static str, value: u64) -> Version2Error {
    Version2Error::Superblock(SuperblockError::Field { name, value })
}

/// Which array a sector is a superblock of version 2 of, whatever state that array is in.
///
/// # Errors
///
/// It is no such superblock, or damaged.
pub fn identity(sector: &[u8]) -> Result<Identity, Version2Error> {
    let Shape { spec, .. } = shape_of(sector)?;
    let size = Sectors::new(u64_at(sector, at::MEMBER_SIZE));
    if !(HEAD + TAIL..=Sectors::new(DRIVE_SECTORS_MAX)).contains(&size) {
        return Err(field("size of the member", size.get()));
    }
    Ok(Identity { array: Uuid(array_at(sector, at::ARRAY)), spec, size })
}

fn shape_of(sector: &[u8]) -> Result<Shape, Version2Error> {
    if sector.len() != SECTOR_SIZE || !sector.starts_with(&superblock::MAGIC) {
        return Err(SuperblockError::Absent.into());
    }
    let stored = u32_at(sector, at::CHECKSUM);
    let computed = crc32c::crc32c(&sector[..at::CHECKSUM]);
    if stored != computed {
        return Err(SuperblockError::Checksum { stored, computed }.into());
    }
    let version = u32_at(sector, at::VERSION);
    if version != VERSION {
        return Err(SuperblockError::Version { version }.into());
    }
    let mut shape = [0; SHAPE_BYTES];
    for (today, then, bytes) in SHAPE {
        put(&mut shape, today, &sector[then..then + bytes]);
    }
    Shape::decode(shape).map_err(|no| SuperblockError::from(no).into())
}

/// What a sector with a superblock of version 2 says.
///
/// # Errors
///
/// It is none, or says something that is not converted.
pub fn decode(sector: &[u8]) -> Result<Old, Version2Error> {
    let Identity { array, spec, size } = identity(sector)?;
    let Shape { drive_size, .. } = shape_of(sector)?;
    let features = u64_at(sector, at::INCOMPATIBLE);
    let unknown = (features & !KNOWN)
        | (u64_at(sector, at::COMPATIBLE) & !WISHES)
        | u64_at(sector, at::READ_ONLY);
    if unknown != 0 {
        return Err(SuperblockError::Features { bits: unknown }.into());
    }
    if sector[at::STATE] != 0 {
        return Err(Version2Error::Unclean);
    }
    let places = 0..spec.members();
    if let Some(away) = places.clone().find(|place| sector[at::MEMBERSHIPS + place * 16] != 0) {
        return Err(Version2Error::NotPresent { drive: DriveIdx::from_usize(away) });
    }
    let logs = if features & INTENTS != 0 { Logs::Parts } else { Logs::All };
    let kept = Kept { first: u64_at(sector, at::JOURNAL), logs };
    let stripes = Layout::new(spec, drive_size).stripes();
    let wishes = Wishes::decode(array_at(sector, at::WISHES), stripes);
    let generation = Generation(u64_at(sector, at::GENERATION));
    let member = |place: usize| Member {
        stored: generation,
        given: generation,
        ..Member::new(Uuid(array_at(sector, at::UUIDS + place * 16)), Membership::Present)
    };
    let metadata = Metadata {
        generation,
        array,
        run: Uuid(array_at(sector, at::RUN)),
        base: Generation::NONE,
        spec,
        drive_size,
        state: State::Clean,
        forced: if sector[at::FORCED] == 0 { Forced::No } else { Forced::Yes },
        synced: u64_at(sector, at::SYNCED),
        synced_last: u64_at(sector, at::SYNCED_LAST),
        journal: (features & JOURNAL != 0).then_some(kept),
        wishes: wishes.map_err(|no| field(no.name, no.value))?,
        members: places.map(member).collect(),
        damaged: DamagedList::default(),
    };
    let drive = usize::from(sector[at::DRIVE]);
    if drive >= spec.members() {
        return Err(field("drive", drive as u64));
    }
    let reserved = today(&pieces_of(sector)?, size);
    let old = Old { metadata, own: Own { drive: DriveIdx::from_usize(drive), size, reserved } };
    let expected = encode(&old)?;
    if let Some(offset) = sector.iter().zip(&expected).position(|(found, named)| found != named) {
        return Err(SuperblockError::Unnamed { offset }.into()); // V1
    }
    old.check()?;
    Ok(old)
}

/// The pieces of the journal, as a superblock of version 2 has them among its reserved places.
fn pieces_of(sector: &[u8]) -> Result<Vec<Extent>, Version2Error> {
    let count = usize::from(sector[at::RESERVED_COUNT]);
    if count > RESERVED_MAX {
        return Err(field("number of reserved places", count as u64));
    }
    let places = sector[at::RESERVED..].chunks_exact(RESERVED_BYTES).take(count);
    let pieces = places.filter(|place| u16::from_le_bytes(array_at(place, 12)) == JOURNAL_USE);
    let piece = |place: &[u8]| match u64_at(place, 0) {
        lba if lba > DRIVE_SECTORS_MAX => Err(field("reserved place", lba)),
        lba => Ok(Extent::new(Lba::new(lba), Sectors::new(u32_at(place, 8).into()))),
    };
    pieces.map(piece).collect()
}

/// Today's places of a member of this size, which has both ends.
fn today(pieces: &[Extent], size: Sectors) -> Vec<Reserved> {
    let pieces = pieces.iter().map(|&extent| Reserved { extent, purpose: Use::Journal });
    head().into_iter().chain(pieces).chain(tail(size)).collect()
}

impl Old {
    /// Today's superblock of the member.
    pub fn superblock(&self) -> Superblock {
        let Self { metadata, own } = self;
        Superblock {
            array: metadata.array,
            member: self.member().uuid,
            spec: metadata.spec,
            drive_size: metadata.drive_size,
            logs: metadata.journal.map(|kept| kept.logs),
            own: own.clone(),
            read_only: 0,
        }
    }

    /// Who the member is.
    ///
    /// Panics if the array does not have its place, as only one can say that passed no check.
    pub fn member(&self) -> MemberId {
        self.metadata.members[self.own.drive.as_usize()].id
    }

    /// V2.
    fn check(&self) -> Result<(), Version2Error> {
        let superblock = self.superblock();
        let again = Superblock::decode(&superblock.encode())?;
        let holder = self.member();
        let inscription = Inscription { metadata: Arc::new(self.metadata.clone()), holder };
        let header = inscription.encode();
        let Ok(known) = Inscription::decode(|_| Ok::<_, Infallible>(header.clone()));
        let is_same = again == superblock && known? == inscription;
        is_same.then_some(()).ok_or(MetadataError::Field("contents").into())
    }
}

/// Whether an array in this state can be converted.
///
/// # Errors
///
/// It was not stopped cleanly, or a member is not present.
pub fn check_state(metadata: &Metadata) -> Result<(), Version2Error> {
    if metadata.state != State::Clean {
        return Err(Version2Error::Unclean);
    }
    match metadata.members.iter().position(|member| !member.is_present()) {
        Some(away) => Err(Version2Error::NotPresent { drive: DriveIdx::from_usize(away) }),
        None => Ok(()),
    }
}

/// The superblock of version 2 of a member, with every member's identity; its bad-sector list has a place of its own.
///
/// # Errors
///
/// The array was not stopped cleanly, a member is not present, or the member's reserved places are not where version 2 has its own.
pub fn encode(old: &Old) -> Result<[u8; SECTOR_SIZE], Version2Error> {
    let Old { metadata, own } = old;
    check_state(metadata)?;
    let pieces = own.journal();
    let has_ends = own.size >= HEAD + TAIL && pieces.len() <= PIECES_MAX;
    if !has_ends || own.reserved != today(&pieces, own.size) {
        return Err(field("number of reserved places", own.reserved.len() as u64));
    }
    let mut bytes = [0; SECTOR_SIZE];
    let mut number = |at, number: u64| put(&mut bytes, at, &number.to_le_bytes());
    let journal = match metadata.journal.map(|kept| kept.logs) {
        None => 0,
        Some(Logs::All) => JOURNAL,
        Some(Logs::Parts) => JOURNAL | INTENTS,
    };
    let apart = if metadata.spec.journals() > 0 { APART } else { 0 };
    let has_wishes = metadata.wishes != Wishes::default();
    number(at::COMPATIBLE, if has_wishes { WISHES } else { 0 });
    number(at::INCOMPATIBLE, journal | apart | DAMAGED);
    number(at::GENERATION, metadata.generation.0);
    number(at::MEMBER_SIZE, own.size.get());
    number(at::SYNCED, metadata.synced);
    number(at::SYNCED_LAST, metadata.synced_last);
    number(at::JOURNAL, metadata.journal.map_or(0, |kept| kept.first));
    put(&mut bytes, 0, &superblock::MAGIC);
    put(&mut bytes, at::VERSION, &VERSION.to_le_bytes());
    put(&mut bytes, at::CODE_VERSION, &CODE_VERSION.to_le_bytes());
    put(&mut bytes, at::ARRAY, &metadata.array.0);
    put(&mut bytes, at::MEMBER, &old.member().uuid.0);
    put(&mut bytes, at::RUN, &metadata.run.0);
    put(&mut bytes, at::WISHES, &metadata.wishes.encode());
    let shape = Shape { spec: metadata.spec, drive_size: metadata.drive_size }.encode();
    for (today, then, length) in SHAPE {
        put(&mut bytes, then, &shape[today..today + length]);
    }
    bytes[at::DRIVE] = own.drive.as_usize() as u8;
    bytes[at::FORCED] = u8::from(metadata.forced == Forced::Yes);
    for (place, member) in metadata.members.iter().enumerate() {
        put(&mut bytes, at::UUIDS + place * 16, &member.id.uuid.0);
    }
    let behind = (own.size - TAIL).get();
    let pieces = pieces.iter().map(|at| (at.lba.get(), at.sectors.get(), JOURNAL_USE));
    let behind = PLACES_BEHIND.map(|(lba, sectors, code)| (behind + lba, sectors, code));
    let places = PLACES_BEFORE.into_iter().chain(pieces).chain(behind);
    for ((lba, sectors, code), start) in places.zip((at::RESERVED..).step_by(RESERVED_BYTES)) {
        put(&mut bytes, start, &lba.to_le_bytes());
        put(&mut bytes, start + 8, &(sectors as u32).to_le_bytes());
        put(&mut bytes, start + 12, &code.to_le_bytes());
        bytes[at::RESERVED_COUNT] += 1;
    }
    let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
    put(&mut bytes, at::CHECKSUM, &checksum.to_le_bytes());
    Ok(bytes)
}

/// Where a member of this size has its two slots for the list.
///
/// Panics if it is smaller than 256 sectors.
pub fn list_slots(size: Sectors) -> [Extent; 2] {
    let first = Lba::ZERO + (size - TAIL);
    [first, first + LIST_SLOT].map(|lba| Extent::new(lba, LIST_SLOT))
}

/// Whether a sector begins like a slot with a list of version 2.
pub fn is_list(sector: &[u8]) -> bool {
    sector.starts_with(&LIST_MAGIC)
}

/// Whether a sector begins like metadata, or is a superblock of version 3: version 2 has neither.
pub fn is_of_version_3(sector: &[u8]) -> bool {
    sector.starts_with(&metadata::MAGIC) || Superblock::decode(sector).is_ok()
}

/// The bytes of a slot with this list, as far as they mean something: whole sectors.
///
/// Panics if it has more than 16,128 ranges, which no list that was read or is kept has.
pub fn encode_list(list: &List, array: Uuid, member: Uuid) -> Vec<u8> {
    let mut ranges = list.damaged.encode();
    let count = ranges.len() / RANGE_BYTES;
    assert!(count <= LIST_RANGES_MAX, "{count} ranges");
    ranges.resize(ranges.len().next_multiple_of(SECTOR_SIZE), 0);
    let mut bytes = vec![0; SECTOR_SIZE];
    put(&mut bytes, 0, &LIST_MAGIC);
    put(&mut bytes, 16, &LIST_VERSION.to_le_bytes());
    put(&mut bytes, 20, &(count as u32).to_le_bytes());
    put(&mut bytes, 24, &list.generation.to_le_bytes());
    put(&mut bytes, 32, &array.0);
    put(&mut bytes, 48, &member.0);
    put(&mut bytes, 64, &crc32c::crc32c(&ranges).to_le_bytes());
    bytes[68] = u8::from(list.damaged.is_widened());
    let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
    put(&mut bytes, at::CHECKSUM, &checksum.to_le_bytes());
    bytes.extend(ranges);
    bytes
}

/// The newer of the lists that the two slots of a member hold, all 64 sectors each; nothing if none of them has one of this
/// array and member. A slot with a wrong checksum was cut off and counts as empty, unless both are like that.
///
/// # Errors
///
/// A slot holds what cannot be, or both were cut off.
pub fn decode_lists(
    slots: [&[u8]; 2],
    metadata: &Metadata,
    member: Uuid,
) -> Result<Option<List>, Version2Error> {
    let lists = slots.map(|slot| decode_list(slot, metadata, member));
    let is_torn = |list: &Result<_, MetadataError>| *list == Err(MetadataError::Checksum);
    if lists.iter().all(is_torn) {
        return Err(MetadataError::Checksum.into());
    }
    let [first, second] = lists.map(|list| if is_torn(&list) { Ok(None) } else { list });
    Ok([first?, second?].into_iter().flatten().max_by_key(|list| list.generation))
}

/// The list that one slot holds.
fn decode_list(
    slot: &[u8],
    metadata: &Metadata,
    member: Uuid,
) -> Result<Option<List>, MetadataError> {
    if slot.len() < SECTOR_SIZE || !is_list(slot) {
        return Ok(None);
    }
    let (header, ranges) = slot.split_at(SECTOR_SIZE);
    if u32_at(header, at::CHECKSUM) != crc32c::crc32c(&header[..at::CHECKSUM]) {
        return Err(MetadataError::Checksum);
    }
    let version = u32_at(header, 16);
    if version != LIST_VERSION {
        return Err(MetadataError::Version { version });
    }
    let impossible = MetadataError::Field("damaged sectors");
    let count = Some(u32_at(header, 20) as usize).filter(|&count| count <= LIST_RANGES_MAX);
    let bytes = count.ok_or(impossible)? * RANGE_BYTES;
    let sectors = ranges.get(..bytes.next_multiple_of(SECTOR_SIZE)).ok_or(impossible)?;
    if u32_at(header, 64) != crc32c::crc32c(sectors) {
        return Err(MetadataError::Checksum);
    }
    if (Uuid(array_at(header, 32)), Uuid(array_at(header, 48))) != (metadata.array, member) {
        return Ok(None);
    }
    let (drives, size) = (metadata.spec.drives(), metadata.drive_size);
    let damaged = DamagedList::decode(&sectors[..bytes], header[68] == 1, drives, size);
    let mut list = List { generation: u64_at(header, 24), damaged: damaged.ok_or(impossible)? };
    if !slot.starts_with(&encode_list(&list, metadata.array, member)) {
        return Err(MetadataError::Field("unnamed bytes")); // V1
    }
    if list.damaged.ranges().count() > RANGES_MAX {
        let mut fewer = DamagedList::default();
        for range in list.damaged.ranges() {
            fewer.add(range.drive, range.extent);
        }
        list.damaged = fewer;
    }
    Ok(Some(list))
}

#[cfg(test)]
mod tests;
