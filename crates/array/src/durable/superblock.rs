//! The superblock: what every member of an array says about the array and about itself.
//!
//! `docs/formats/superblock.md` is the normative text; the tables there and the constants here name
//! the same bytes. One superblock is one sector. Every member has two copies, in its first and in its
//! last sector, written one after the other, so that a torn write leaves the other one.
//!
//! What all members say alike is the [`Book`]; what each says of itself is its [`Own`] part. Only a sector
//! that passed every check becomes a [`Superblock`]: code that holds one may index with what it says.
//!
//! # What it leaves out
//!
//! How an array is served (window, host order, policy) is the server's choice and is not stored.

mod error;

use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, SECTOR_SIZE, Sectors};

pub use self::error::SuperblockError;
use super::damaged::{DAMAGED_PLACE, SECTORS_MAX};
use super::membership::{MEMBERSHIP_BYTES, Member, Membership, not_present};
pub use super::own::Own;
use super::reserve::{JOURNAL_PIECE_MIN, RESERVED_MAX, Reserved, Use, takes_codewords};
pub use super::uuid::Uuid;
use super::wishes::{WISHES_BYTES, Wishes};
use crate::fields::{array_at, put, u32_at, u64_at};
use crate::shape::{DriveCounts, Family, Layout, Parity, Spec};

/// The first bytes of every superblock.
const MAGIC: [u8; 16] = *b"levelhead array\0";

/// The version of the layout below.
const VERSION: u32 = 2;

/// The version of `docs/formats/codeword.md` that redundancy follows.
const CODE_VERSION: u32 = 1;

/// The most drives of an array.
const DRIVES_MAX: usize = DriveIdx::MAX as usize;

/// No member has more sectors: 2^52 bytes, 4 PiB.
pub const DRIVE_SECTORS_MAX: u64 = 1 << 40;

const _: () = assert!(SECTORS_MAX == DRIVE_SECTORS_MAX);

/// The feature of an array that keeps a journal: who does not know it must not use the array.
const JOURNAL_FEATURE: u64 = 1;

/// The feature of an array whose members have a place for the list of damaged sectors: a program that does not know
/// it would give clients what that list says cannot be had.
const DAMAGED_FEATURE: u64 = 2;

/// The feature of an array whose journal only announces writes of whole codewords.
const INTENTS_FEATURE: u64 = 1 << 4;

/// The feature of an array one of whose drives is being filled: who does not know it would write past that drive, and
/// leave what the drive is said to hold as it was.
const FILLING_FEATURE: u64 = 1 << 2;

/// The feature of an array that keeps a map of what a drive has missed: who does not know it would write without marking
/// that.
const MISSED_FEATURE: u64 = 1 << 5;

/// The feature of an array whose journal lies on drives of its own: who does not know it would look for rings on drives
/// that have none.
const APART_FEATURE: u64 = 1 << 6;

/// All features without which an array must not be used.
const KNOWN_FEATURES: u64 = JOURNAL_FEATURE
    | DAMAGED_FEATURE
    | FILLING_FEATURE
    | INTENTS_FEATURE
    | MISSED_FEATURE
    | APART_FEATURE;

/// The compatible feature of an array of whose own work operators have said something: what is lost where a program does not
/// know it is what they have said.
const WISHES_FEATURE: u64 = 1;

/// Bytes of a reserved place: its first sector, its sectors, its use, two zeroes.
const RESERVED_BYTES: usize = 16;

/// Where each field begins. The numbers are little-endian.
mod at {
    use super::{
        DRIVES_MAX, MEMBERSHIP_BYTES, RESERVED_BYTES, RESERVED_MAX, SECTOR_SIZE, WISHES_BYTES,
    };

    pub(super) const MAGIC: usize = 0;
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
    pub(super) const FAMILY: usize = 105;
    pub(super) const DATA: usize = 106;
    pub(super) const REDUNDANT: usize = 107;
    pub(super) const EXPANSION: usize = 108;
    pub(super) const CHUNK: usize = 112;
    pub(super) const PARITY: usize = 116;
    pub(super) const STATE: usize = 117;
    pub(super) const FORCED: usize = 118;
    pub(super) const RESERVED_COUNT: usize = 119;
    pub(super) const DRIVE_SIZE: usize = 120;
    pub(super) const MEMBER_SIZE: usize = 128;
    pub(super) const SYNCED: usize = 136;
    pub(super) const SYNCED_LAST: usize = 144;
    pub(super) const JOURNAL: usize = 152;
    pub(super) const DRIVE_COUNT: usize = 160;
    pub(super) const JOURNAL_COUNT: usize = 161;
    pub(super) const MISSED: usize = 168;
    pub(super) const WISHES: usize = 176;
    /// The first byte that no field names.
    pub(super) const END: usize = WISHES + WISHES_BYTES;
    pub(super) const MEMBERSHIPS: usize = 256;
    pub(super) const UUIDS: usize = MEMBERSHIPS + DRIVES_MAX * MEMBERSHIP_BYTES;
    pub(super) const RESERVED: usize = UUIDS + DRIVES_MAX * 16;
    pub(super) const CHECKSUM: usize = SECTOR_SIZE - 4;
    const _: () = assert!(RESERVED + RESERVED_MAX * RESERVED_BYTES <= CHECKSUM);
    const _: () = assert!(END <= MEMBERSHIPS && DRIVES_MAX == 64);
}

/// Whether the array was stopped in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The array was stopped after its last write had ended and had been flushed.
    Clean,
    /// The array is open for writing, or was when everything stopped.
    Dirty,
}

/// Whether an operator has had the array go on where data may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// Never since the last full check.
    No,
    /// At least once.
    Yes,
}

/// The journal that an array keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The first transaction that may not be over.
    pub first: u64,
    /// What is in it.
    pub logs: Logs,
}

/// Of which writes a journal has the contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logs {
    /// Of all.
    All,
    /// Of those that change parts of codewords. Others it may only announce.
    Parts,
}

/// What all members of an array say alike. See the page for the meaning of each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Book {
    /// Counts changes of the array's state; the member with the highest one is right.
    pub generation: u64,
    /// Which array.
    pub array: Uuid,
    /// Which run of a server wrote this; zeroes before the first one.
    pub run: Uuid,
    /// The array's shape.
    pub spec: Spec,
    /// Sectors of every member that hold the array's data and redundancy.
    pub drive_size: Sectors,
    /// Whether the array was stopped in good order.
    pub state: State,
    /// Whether it was ever made to go on.
    pub forced: Forced,
    /// Redundancy of stripes below this number is valid, if the state is clean.
    pub synced: u64,
    /// What `synced` was when the array was last known to be in good order.
    pub synced_last: u64,
    /// Its journal; nothing where none is kept.
    pub journal: Option<Kept>,
    /// Drives that are not present and of which it is known, on maps, what they have missed.
    pub missed: DriveSet,
    /// What operators have said of the array's own work.
    pub wishes: Wishes,
    /// The places of the array, in order.
    pub members: Vec<Member>,
}

/// One member's superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// What it says of the array.
    pub book: Book,
    /// What it says of itself.
    pub own: Own,
    /// Features, unknown to this program, of an array that it may read and must not write, as bits.
    pub read_only: u64,
}

impl Book {
    /// How many stripes the array has.
    pub fn stripes(&self) -> u64 {
        Layout::new(self.spec, self.drive_size).stripes()
    }

    /// Whether some drive with a copy of this is left, whatever loss the layout survives.
    pub fn is_on_enough(&self, copies: DriveSet) -> bool {
        !self.spec.survives(not_present(&self.members).or(copies))
    }
}

/// Where to look for the copies of a superblock on a member of `size` sectors of which nothing is known.
///
/// Panics if it has no sector.
pub fn copies_of_unknown(size: Sectors) -> [Lba; 2] {
    assert!(size > Sectors::ZERO);
    [Lba::ZERO, Lba::ZERO + (size - Sectors::new(1))]
}

impl Superblock {
    /// The member's identity.
    pub fn member(&self) -> Uuid {
        self.book.members[self.own.drive.as_usize()].uuid
    }

    /// The sector as it is on the drive.
    ///
    /// Panics unless there is a place for every drive of the array.
    pub fn encode(&self) -> [u8; SECTOR_SIZE] {
        let Self { book, own, read_only } = self;
        assert_eq!(book.members.len(), book.spec.members());
        assert!(own.reserved.len() <= RESERVED_MAX);
        let mut bytes = [0; SECTOR_SIZE];
        put(&mut bytes, at::MAGIC, &MAGIC);
        put(&mut bytes, at::VERSION, &VERSION.to_le_bytes());
        put(&mut bytes, at::CODE_VERSION, &CODE_VERSION.to_le_bytes());
        put(&mut bytes, at::READ_ONLY, &read_only.to_le_bytes());
        let damaged = if own.damaged().is_some() { DAMAGED_FEATURE } else { 0 };
        let features = features_of(book) | damaged;
        if let Some(Kept { first, .. }) = book.journal {
            put(&mut bytes, at::JOURNAL, &first.to_le_bytes());
        }
        put(&mut bytes, at::INCOMPATIBLE, &features.to_le_bytes());
        if book.wishes != Wishes::default() {
            put(&mut bytes, at::COMPATIBLE, &WISHES_FEATURE.to_le_bytes());
            put(&mut bytes, at::WISHES, &book.wishes.encode());
        }
        put(&mut bytes, at::GENERATION, &book.generation.to_le_bytes());
        put(&mut bytes, at::ARRAY, &book.array.0);
        put(&mut bytes, at::MEMBER, &self.member().0);
        put(&mut bytes, at::RUN, &book.run.0);
        // All of these are small in every valid spec.
        bytes[at::DRIVE] = own.drive.as_usize() as u8;
        bytes[at::FAMILY] = family_code(book.spec.family());
        bytes[at::DATA] = book.spec.data() as u8;
        bytes[at::REDUNDANT] = book.spec.redundant() as u8;
        let is_whole = book.spec.width() == book.spec.drives();
        bytes[at::DRIVE_COUNT] = if is_whole { 0 } else { book.spec.drives() as u8 };
        bytes[at::JOURNAL_COUNT] = book.spec.journals() as u8;
        put(&mut bytes, at::EXPANSION, &(book.spec.expansion() as u32).to_le_bytes());
        put(&mut bytes, at::CHUNK, &(book.spec.chunk().get() as u32).to_le_bytes());
        bytes[at::PARITY] = match book.spec.parity() {
            Parity::Fixed => 0,
            Parity::Rotating => 1,
        };
        bytes[at::STATE] = match book.state {
            State::Clean => 0,
            State::Dirty => 1,
        };
        bytes[at::FORCED] = match book.forced {
            Forced::No => 0,
            Forced::Yes => 1,
        };
        bytes[at::RESERVED_COUNT] = own.reserved.len() as u8;
        put(&mut bytes, at::DRIVE_SIZE, &book.drive_size.get().to_le_bytes());
        put(&mut bytes, at::MEMBER_SIZE, &own.size.get().to_le_bytes());
        put(&mut bytes, at::SYNCED, &book.synced.to_le_bytes());
        put(&mut bytes, at::SYNCED_LAST, &book.synced_last.to_le_bytes());
        put(&mut bytes, at::MISSED, &bits_of(book.missed).to_le_bytes());
        for (place, member) in book.members.iter().enumerate() {
            let membership = member.membership.encode();
            put(&mut bytes, at::MEMBERSHIPS + place * MEMBERSHIP_BYTES, &membership);
            put(&mut bytes, at::UUIDS + place * 16, &member.uuid.0);
        }
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
        let unknown = u64_at(bytes, at::INCOMPATIBLE) & !KNOWN_FEATURES;
        if unknown != 0 {
            return Err(SuperblockError::Features { bits: unknown });
        }
        let code_version = u32_at(bytes, at::CODE_VERSION);
        if code_version != CODE_VERSION {
            return Err(SuperblockError::CodeVersion { version: code_version });
        }
        let book = book_of(bytes)?;
        let own = own_of(bytes, &book)?;
        let superblock = Self { book, own, read_only: u64_at(bytes, at::READ_ONLY) };
        if array_at(bytes, at::MEMBER) != superblock.member().0 {
            return Err(field("identity of the member", u64_at(bytes, at::MEMBER)));
        }
        superblock.check_unnamed(bytes)?;
        Ok(superblock)
    }

    /// Whether every byte that no field names is zero: where no feature is in use that this program does
    /// not know, whatever is there was written by no program.
    fn check_unnamed(&self, bytes: &[u8]) -> Result<(), SuperblockError> {
        if u64_at(bytes, at::COMPATIBLE) & !WISHES_FEATURE != 0 || self.read_only != 0 {
            return Ok(());
        }
        let expected = self.encode();
        match bytes.iter().zip(&expected).position(|(found, named)| found != named) {
            Some(offset) => Err(SuperblockError::Unnamed { offset }),
            None => Ok(()),
        }
    }
}

/// The features without which a book's array must not be used, as bits.
fn features_of(book: &Book) -> u64 {
    let is_filling = |member: &Member| matches!(member.membership, Membership::Filling { .. });
    let journal = match book.journal {
        None => 0,
        Some(Kept { logs: Logs::All, .. }) => JOURNAL_FEATURE,
        Some(Kept { logs: Logs::Parts, .. }) => JOURNAL_FEATURE | INTENTS_FEATURE,
    };
    let filling = if book.members.iter().any(is_filling) { FILLING_FEATURE } else { 0 };
    let missed = if book.missed.is_empty() { 0 } else { MISSED_FEATURE };
    let apart = if book.spec.journals() > 0 { APART_FEATURE } else { 0 };
    journal | filling | missed | apart
}

fn book_of(bytes: &[u8]) -> Result<Book, SuperblockError> {
    let spec = spec_of(bytes)?;
    let state = match bytes[at::STATE] {
        0 => State::Clean,
        1 => State::Dirty,
        other => return Err(field("state", other.into())),
    };
    let forced = match bytes[at::FORCED] {
        0 => Forced::No,
        1 => Forced::Yes,
        other => return Err(field("mark of what was forced", other.into())),
    };
    let members = (0..spec.members()).map(|place| {
        let membership = array_at(bytes, at::MEMBERSHIPS + place * MEMBERSHIP_BYTES);
        let membership = Membership::decode(membership)
            .ok_or(field("state of a drive", membership[0].into()))?;
        Ok(Member { uuid: Uuid(array_at(bytes, at::UUIDS + place * 16)), membership })
    });
    let features = u64_at(bytes, at::INCOMPATIBLE);
    let logs = if features & INTENTS_FEATURE != 0 { Logs::Parts } else { Logs::All };
    let kept = Kept { first: u64_at(bytes, at::JOURNAL), logs };
    let mut book = Book {
        generation: u64_at(bytes, at::GENERATION),
        array: Uuid(array_at(bytes, at::ARRAY)),
        run: Uuid(array_at(bytes, at::RUN)),
        spec,
        drive_size: Sectors::new(u64_at(bytes, at::DRIVE_SIZE)),
        state,
        forced,
        synced: u64_at(bytes, at::SYNCED),
        synced_last: u64_at(bytes, at::SYNCED_LAST),
        journal: (features & JOURNAL_FEATURE != 0).then_some(kept),
        missed: drives_of(u64_at(bytes, at::MISSED)),
        wishes: Wishes::default(),
        members: members.collect::<Result<_, SuperblockError>>()?,
    };
    // One a nanosecond would take three hundred years.
    if book.generation > 1 << 63 {
        return Err(field("generation", book.generation));
    }
    if let Some(kept) = book.journal.filter(|kept| !(1..=1 << 62).contains(&kept.first)) {
        return Err(field("first transaction", kept.first));
    }
    if book.journal.is_none() && features & (INTENTS_FEATURE | APART_FEATURE) != 0 {
        return Err(field("features", features));
    }
    let size = book.drive_size.get();
    if size > DRIVE_SECTORS_MAX || book.stripes() == 0 {
        return Err(field("drive size", size));
    }
    if u64_at(bytes, at::COMPATIBLE) & WISHES_FEATURE != 0 {
        let wishes = Wishes::decode(array_at(bytes, at::WISHES), book.stripes());
        book.wishes = wishes.map_err(|no| field(no.name, no.value))?;
    }
    for synced in [book.synced, book.synced_last] {
        if synced > book.stripes() {
            return Err(field("number of stripes in sync", synced));
        }
    }
    for member in &book.members {
        if let Membership::Filling { to } = member.membership
            && to > book.stripes()
        {
            return Err(field("number of stripes that a drive is filled to", to));
        }
    }
    if features_of(&book) != features & !DAMAGED_FEATURE {
        return Err(field("features", features));
    }
    let away = not_present(&book.members);
    if !book.spec.survives(away) {
        return Err(field("number of drives that are not present", away.len().into()));
    }
    let has_maps = !book.missed.is_empty();
    if !book.missed.without(away).is_empty() || (has_maps && book.journal.is_none()) {
        return Err(field("set of drives with a map", bits_of(book.missed)));
    }
    Ok(book)
}

fn own_of(bytes: &[u8], book: &Book) -> Result<Own, SuperblockError> {
    let drive = bytes[at::DRIVE];
    if usize::from(drive) >= book.spec.members() {
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
    let own = Own { drive: DriveIdx::new(drive), size: Sectors::new(size), reserved };
    let copies = own.reserved.iter().filter(|place| place.purpose == Use::Superblock);
    let are_good = copies.clone().all(|place| place.extent.sectors == Sectors::new(1));
    if copies.count() != 2 || !are_good {
        return Err(field("number of places for superblocks", count.into()));
    }
    let mut lists = own.reserved.iter().filter(|place| place.purpose == Use::Damaged);
    let list = lists.next().map(|place| place.extent.sectors);
    let has_feature = u64_at(bytes, at::INCOMPATIBLE) & DAMAGED_FEATURE != 0;
    let is_good = list.is_none_or(|sectors| sectors == DAMAGED_PLACE) && lists.next().is_none();
    if !is_good || list.is_some() != has_feature {
        return Err(field("number of places for lists of damaged sectors", count.into()));
    }
    let has_data = book.spec.data_drives().contains(own.drive);
    if has_data {
        let area = own.area(book.drive_size).ok_or(field("size of the member", size))?;
        let chunk = book.spec.chunk().get();
        // No chunk lies in two runs.
        if area.runs().any(|run| !run.sectors.get().is_multiple_of(chunk)) {
            return Err(field("drive size", book.drive_size.get()));
        }
    } else if !own.is_in_order() {
        return Err(field("size of the member", size));
    }
    let pieces = own.journal();
    let are_large = pieces.iter().all(|piece| piece.sectors >= JOURNAL_PIECE_MIN);
    let takes_all = pieces.iter().any(|piece| takes_codewords(piece.sectors, &book.spec));
    let has_ring = book.spec.ring_drives().contains(own.drive);
    let is_wrong = if has_ring { !(are_large && takes_all) } else { !pieces.is_empty() };
    if book.journal.is_some() && is_wrong {
        return Err(field("number of places for a journal", count.into()));
    }
    // A member that the array does without is never written to, so none says that of itself.
    match book.members[own.drive.as_usize()].membership {
        Membership::Present | Membership::Filling { .. } | Membership::Spare => Ok(own),
        Membership::Missing { .. } | Membership::Lost { .. } => Err(field("drive", drive.into())),
    }
}

fn spec_of(bytes: &[u8]) -> Result<Spec, SuperblockError> {
    let family = match bytes[at::FAMILY] {
        0 => Family::Raid0,
        1 => Family::Raid1,
        10 => Family::Raid10,
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
    let (data, redundant) = (bytes[at::DATA].into(), bytes[at::REDUNDANT].into());
    let drives = match bytes[at::DRIVE_COUNT] {
        0 => data + redundant,
        count => count.into(),
    };
    let drives = DriveCounts { drives, data, redundant };
    let chunk = Sectors::new(u32_at(bytes, at::CHUNK).into());
    Spec::new(family, drives, u32_at(bytes, at::EXPANSION), chunk, parity)
        .and_then(|spec| spec.with_journals(bytes[at::JOURNAL_COUNT].into()))
        .map_err(SuperblockError::Spec)
}

const fn family_code(family: Family) -> u8 {
    match family {
        Family::Raid0 => 0,
        Family::Raid1 => 1,
        Family::Raid10 => 10,
        Family::Raid4 => 4,
        Family::Raid5 => 5,
        Family::Raid6 => 6,
        Family::Eraid => b'e',
    }
}

const fn field(name: &'static str, value: u64) -> SuperblockError {
    SuperblockError::Field { name, value }
}

/// A set of drives as a bit for each place.
fn bits_of(drives: DriveSet) -> u64 {
    drives.iter().fold(0, |bits, drive| bits | 1 << drive.as_usize())
}

fn drives_of(bits: u64) -> DriveSet {
    (0..DRIVES_MAX).filter(|at| bits & 1 << at != 0).map(DriveIdx::from_usize).collect()
}

#[cfg(test)]
mod tests;
