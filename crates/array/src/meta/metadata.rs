//! The metadata: how an array stands, as every one of its members has it.
//!
//! `docs/formats/metadata.md` is the normative text; the tables there and the constants here name the same bytes. The
//! metadata is written as a whole, one *generation* each time, into two slots of every member in turns, so that a write that
//! is cut off leaves the other one. It has a header of one sector, then the damaged sectors, then what each member lacks.

use std::fmt;
use std::sync::Arc;

use levelhead_units::{DriveSet, Extent, Lba, SECTOR_SIZE, Sectors};

use super::damaged::{DamagedList, RANGE_BYTES, RANGES_MAX};
use super::membership::{Generation, Member, MemberId, Membership, not_present};
use super::regions::{Grid, Regions};
use super::reserve::SLOT;
pub use super::shape::Logs;
use super::shape::{SHAPE_BYTES, Shape};
use super::superblock::Superblock;
use super::uuid::Uuid;
use super::wishes::{WISHES_BYTES, Wishes};
use crate::fields::{array_at, put, u32_at, u64_at};
use crate::shape::{Layout, Spec};

pub(super) const MAGIC: [u8; 16] = *b"levelhead meta\0\0";

/// The version of the layout below.
const VERSION: u32 = 1;

/// The most members of an array.
const MEMBERS_MAX: usize = 64;

/// The most members of which it is known what they lack.
pub(crate) const LACKS_MAX: usize = 7;

/// The most generations that a member may be ahead of those that are committed.
pub(crate) const LEAD_MAX: u64 = 8;

/// The first generation of a run is this much further than the one that was found, so that none of it is one that the run
/// before may have given to a member that is not there.
pub(crate) const RUN: u64 = 16;

const _: () = assert!(LEAD_MAX < RUN);

/// Bytes of a member: its identity, how often it came back, its grid, how the array stands with it, the newest generation
/// that it has stored, the newest one that it may have.
const MEMBER_BYTES: usize = 56;

/// Where each field of the header begins. The numbers are little-endian.
mod at {
    use super::{MEMBER_BYTES, MEMBERS_MAX, SECTOR_SIZE, SHAPE_BYTES, WISHES_BYTES};

    pub(super) const VERSION: usize = 16;
    pub(super) const COUNT: usize = 20;
    pub(super) const GENERATION: usize = 24;
    pub(super) const ARRAY: usize = 32;
    pub(super) const HOLDER: usize = 48;
    pub(super) const HOLDER_SEATING: usize = 64;
    pub(super) const BODY_SUM: usize = 68;
    pub(super) const RUN: usize = 72;
    pub(super) const BASE: usize = 88;
    pub(super) const SHAPE: usize = 96;
    pub(super) const SYNCED: usize = SHAPE + SHAPE_BYTES;
    pub(super) const SYNCED_LAST: usize = SYNCED + 8;
    pub(super) const JOURNAL: usize = SYNCED_LAST + 8;
    pub(super) const LOGS: usize = JOURNAL + 8;
    pub(super) const STATE: usize = LOGS + 1;
    pub(super) const FORCED: usize = STATE + 1;
    pub(super) const WIDENED: usize = FORCED + 1;
    pub(super) const WISHES: usize = 152;
    pub(super) const MEMBERS: usize = 256;
    pub(super) const CHECKSUM: usize = SECTOR_SIZE - 4;
    const _: () = assert!(WIDENED < WISHES && WISHES + WISHES_BYTES <= MEMBERS);
    const _: () = assert!(MEMBERS + MEMBERS_MAX * MEMBER_BYTES <= CHECKSUM);
}

/// Whether the array was stopped cleanly.
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

/// How an array stands. See the page for the meaning of each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Counts changes; the highest one is right.
    pub generation: Generation,
    /// Which array.
    pub array: Uuid,
    /// Which run of a server wrote this; zeroes before the first one.
    pub run: Uuid,
    /// The generation that this run began with.
    pub base: Generation,
    /// The array's shape.
    pub spec: Spec,
    /// Sectors of every member that hold the array's data and redundancy.
    pub drive_size: Sectors,
    /// Whether the array was stopped cleanly.
    pub state: State,
    /// Whether it was ever made to go on.
    pub forced: Forced,
    /// Redundancy of stripes below this number is valid, if the state is clean.
    pub synced: u64,
    /// What `synced` was when that was last known.
    pub synced_last: u64,
    /// Its journal; nothing where none is kept.
    pub journal: Option<Kept>,
    /// What operators have said of the array's own work.
    pub wishes: Wishes,
    /// The places of the array, in order.
    pub members: Vec<Member>,
    /// The sectors that are damaged.
    pub damaged: DamagedList,
}

impl Metadata {
    /// How many stripes the array has.
    pub fn stripes(&self) -> u64 {
        Layout::new(self.spec, self.drive_size).stripes()
    }

    /// Whether all data can be had from the drives that are present.
    pub(crate) fn can_do_without_absent(&self) -> bool {
        self.spec.survives(not_present(&self.members))
    }

    /// Whether some drive with a copy of this is left, whatever loss the layout survives.
    pub fn is_on_enough(&self, copies: DriveSet) -> bool {
        self.spec.is_enough(not_present(&self.members).or(copies))
    }

    /// How many sectors it takes: at most a slot.
    pub fn sectors(&self) -> Sectors {
        Sectors::new(1) + self.body_sectors()
    }

    fn body_sectors(&self) -> Sectors {
        let lacks = self.members.iter().filter_map(|member| member.lacks.as_ref());
        let lacks: u64 = lacks.map(|lacks| sectors_of(lacks.words().len() * 8)).sum();
        Sectors::new(sectors_of(self.damaged.ranges().count() * RANGE_BYTES) + lacks)
    }

    /// What is wrong with it, although each field may be so by itself.
    fn check(&self) -> Result<(), MetadataError> {
        let stripes = self.stripes();
        let limit = |is_good: bool, what| is_good.then_some(()).ok_or(MetadataError::Field(what));
        // One a nanosecond would take three hundred years.
        limit(self.generation.0 <= 1 << 63 && self.base <= self.generation, "generation")?;
        limit(self.synced.max(self.synced_last) <= stripes, "stripes in sync")?;
        let first = self.journal.map_or(1, |kept| kept.first);
        limit((1..=1 << 62).contains(&first), "first transaction")?;
        limit(self.journal.is_some() || self.spec.journals() == 0, "journal")?;
        limit(self.can_do_without_absent(), "drives that are not present")?;
        let is_good = |member: &Member| match member.membership {
            Membership::Present | Membership::Spare => member.lacks.is_none(),
            Membership::Filling { to } => to <= stripes,
            Membership::Missing | Membership::Lost { .. } => true,
        };
        limit(self.members.iter().all(is_good), "drives")?;
        let is_past =
            |member: &Member| member.stored <= member.given && member.given <= self.generation;
        limit(self.members.iter().all(is_past), "generations that drives have")?;
        let known = self.members.iter().filter(|member| member.lacks.is_some()).count();
        limit(known <= LACKS_MAX && (known == 0 || self.journal.is_some()), "regions")
    }
}

/// The metadata as one member has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inscription {
    /// What it says.
    pub metadata: Arc<Metadata>,
    /// The member that it lies on.
    pub holder: MemberId,
}

/// Who has written a slot, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Author {
    /// The array.
    pub array: Uuid,
    /// The member that the slot lies on.
    pub holder: Uuid,
    /// The run of a server.
    pub run: Uuid,
    /// The generation.
    pub generation: Generation,
    /// How many sectors it takes.
    pub sectors: Sectors,
}

/// Why a slot holds no metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataError {
    /// It does not begin like it.
    Absent,
    /// Its bytes are not those that were written.
    Checksum,
    /// It is of another version of the layout.
    Version {
        /// The version it names.
        version: u32,
    },
    /// It says what cannot be.
    Field(&'static str),
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not the metadata of an array"),
            Self::Checksum => f.write_str("the metadata is torn"),
            Self::Version { version } => {
                write!(f, "the metadata is of version {version}, this program reads {VERSION}")
            }
            Self::Field(name) => write!(f, "the metadata says of its {name} what cannot be"),
        }
    }
}

impl std::error::Error for MetadataError {}

impl Inscription {
    /// The bytes of its slot as far as they mean something: whole sectors.
    ///
    /// Panics if the array has more members, or they lack more, than there is room for.
    pub fn encode(&self) -> Vec<u8> {
        let Self { metadata, holder } = self;
        assert!(metadata.members.len() == metadata.spec.members() && metadata.sectors() <= SLOT);
        let mut bytes = vec![0; metadata.sectors().get() as usize * SECTOR_SIZE];
        let (header, body) = bytes.split_at_mut(SECTOR_SIZE);
        let ranges = metadata.damaged.encode();
        put(body, 0, &ranges);
        let mut end = sectors_of(ranges.len()) as usize * SECTOR_SIZE;
        put(header, 0, &MAGIC);
        put(header, at::VERSION, &VERSION.to_le_bytes());
        put(header, at::COUNT, &((ranges.len() / RANGE_BYTES) as u32).to_le_bytes());
        put(header, at::GENERATION, &metadata.generation.0.to_le_bytes());
        put(header, at::ARRAY, &metadata.array.0);
        put(header, at::HOLDER, &holder.uuid.0);
        put(header, at::HOLDER_SEATING, &holder.seating.to_le_bytes());
        put(header, at::RUN, &metadata.run.0);
        put(header, at::BASE, &metadata.base.0.to_le_bytes());
        let shape = Shape { spec: metadata.spec, drive_size: metadata.drive_size };
        put(header, at::SHAPE, &shape.encode());
        put(header, at::SYNCED, &metadata.synced.to_le_bytes());
        put(header, at::SYNCED_LAST, &metadata.synced_last.to_le_bytes());
        put(header, at::JOURNAL, &metadata.journal.map_or(0, |kept| kept.first).to_le_bytes());
        header[at::LOGS] = match metadata.journal.map(|kept| kept.logs) {
            None => 0,
            Some(Logs::All) => 1,
            Some(Logs::Parts) => 2,
        };
        header[at::STATE] = u8::from(metadata.state == State::Dirty);
        header[at::FORCED] = u8::from(metadata.forced == Forced::Yes);
        header[at::WIDENED] = u8::from(metadata.damaged.is_widened());
        put(header, at::WISHES, &metadata.wishes.encode());
        for (place, member) in metadata.members.iter().enumerate() {
            let into = &mut header[at::MEMBERS + place * MEMBER_BYTES..][..MEMBER_BYTES];
            put(into, 0, &member.id.uuid.0);
            put(into, 16, &member.id.seating.to_le_bytes());
            put(into, 24, &member.membership.encode());
            put(into, 40, &member.stored.0.to_le_bytes());
            put(into, 48, &member.given.0.to_le_bytes());
            let Some(lacks) = &member.lacks else { continue };
            into[20] = lacks.grid().shift + 1;
            for (word, into) in lacks.words().iter().zip(body[end..].chunks_exact_mut(8)) {
                put(into, 0, &word.to_le_bytes());
            }
            end += sectors_of(lacks.words().len() * 8) as usize * SECTOR_SIZE;
        }
        put(header, at::BODY_SUM, &crc32c::crc32c(body).to_le_bytes());
        let checksum = crc32c::crc32c(&header[..at::CHECKSUM]);
        put(header, at::CHECKSUM, &checksum.to_le_bytes());
        bytes
    }

    /// The metadata that the bytes of a slot hold. `read` gives sectors of the slot, counted from its first one; it is
    /// asked for the header, and then for what that says.
    pub fn decode<E>(
        mut read: impl FnMut(Extent) -> Result<Vec<u8>, E>,
    ) -> Result<Result<Self, MetadataError>, E> {
        let header = read(Extent::new(Lba::ZERO, Sectors::new(1)))?;
        let layout = match BodyLayout::of(&header) {
            Ok(layout) => layout,
            Err(error) => return Ok(Err(error)),
        };
        let body = match layout.sectors() {
            Sectors::ZERO => Vec::new(),
            sectors => read(Extent::new(Lba::new(1), sectors))?,
        };
        Ok(Self::of(&header, &body, &layout))
    }

    /// Who has written a slot that begins like this: the first sector alone, or more. Of what is there to its end, all is checked.
    pub fn author_of(bytes: &[u8]) -> Result<Author, MetadataError> {
        let header = bytes.get(..SECTOR_SIZE).ok_or(MetadataError::Absent)?;
        let layout = BodyLayout::of(header)?;
        let sectors = Sectors::new(1) + layout.sectors();
        if let Some(body) = bytes.get(SECTOR_SIZE..sectors.get() as usize * SECTOR_SIZE) {
            Self::of(header, body, &layout)?;
        }
        Ok(Author {
            array: Uuid(array_at(header, at::ARRAY)),
            holder: Uuid(array_at(header, at::HOLDER)),
            run: Uuid(array_at(header, at::RUN)),
            generation: Generation(u64_at(header, at::GENERATION)),
            sectors,
        })
    }

    fn of(header: &[u8], body: &[u8], layout: &BodyLayout) -> Result<Self, MetadataError> {
        let is_read = body.len() == layout.sectors().get() as usize * SECTOR_SIZE;
        if !is_read || crc32c::crc32c(body) != u32_at(header, at::BODY_SUM) {
            return Err(MetadataError::Checksum);
        }
        let Shape { spec, drive_size } = layout.shape;
        let (ranges, mut rest) = body.split_at(layout.range_sectors() as usize * SECTOR_SIZE);
        let damaged = DamagedList::decode(
            &ranges[..layout.ranges * RANGE_BYTES],
            header[at::WIDENED] == 1,
            spec.drives(),
            drive_size,
        );
        let mut members = Vec::new();
        for (place, grid) in layout.grids.iter().enumerate() {
            let bytes = &header[at::MEMBERS + place * MEMBER_BYTES..][..MEMBER_BYTES];
            let lacks = match grid {
                None => None,
                &Some(grid) => {
                    let words = rest.chunks_exact(8).take(grid.words()).map(|word| u64_at(word, 0));
                    let lacks = Regions::of(grid, words.collect());
                    rest = &rest[sectors_of(grid.words() * 8) as usize * SECTOR_SIZE..];
                    Some(lacks.ok_or(MetadataError::Field("regions"))?)
                }
            };
            let membership = array_at(bytes, 24);
            members.push(Member {
                id: MemberId { uuid: Uuid(array_at(bytes, 0)), seating: u32_at(bytes, 16) },
                membership: Membership::decode(membership).ok_or(MetadataError::Field("drives"))?,
                stored: Generation(u64_at(bytes, 40)),
                given: Generation(u64_at(bytes, 48)),
                lacks,
            });
        }
        let stripes = Layout::new(spec, drive_size).stripes();
        let wishes = Wishes::decode(array_at(header, at::WISHES), stripes);
        let logs = match header[at::LOGS] {
            0 => None,
            1 => Some(Logs::All),
            2 => Some(Logs::Parts),
            _ => return Err(MetadataError::Field("journal")),
        };
        let metadata = Metadata {
            generation: Generation(u64_at(header, at::GENERATION)),
            array: Uuid(array_at(header, at::ARRAY)),
            run: Uuid(array_at(header, at::RUN)),
            base: Generation(u64_at(header, at::BASE)),
            spec,
            drive_size,
            state: if header[at::STATE] == 0 { State::Clean } else { State::Dirty },
            forced: if header[at::FORCED] == 0 { Forced::No } else { Forced::Yes },
            synced: u64_at(header, at::SYNCED),
            synced_last: u64_at(header, at::SYNCED_LAST),
            journal: logs.map(|logs| Kept { first: u64_at(header, at::JOURNAL), logs }),
            wishes: wishes.map_err(|no| MetadataError::Field(no.name))?,
            members,
            damaged: damaged.ok_or(MetadataError::Field("damaged sectors"))?,
        };
        metadata.check()?;
        let seating = u32_at(header, at::HOLDER_SEATING);
        let holder = MemberId { uuid: Uuid(array_at(header, at::HOLDER)), seating };
        let inscription = Self { metadata: Arc::new(metadata), holder };
        // What no field names is zero.
        let expected = inscription.encode();
        let is_whole = expected[..SECTOR_SIZE] == *header && expected[SECTOR_SIZE..] == *body;
        is_whole.then_some(inscription).ok_or(MetadataError::Field("unnamed bytes"))
    }
}

/// What a header says of the sectors behind it.
struct BodyLayout {
    shape: Shape,
    ranges: usize,
    /// Of every member, if it is known what it lacks.
    grids: Vec<Option<Grid>>,
}

impl BodyLayout {
    fn of(header: &[u8]) -> Result<Self, MetadataError> {
        if header.len() != SECTOR_SIZE || header[..MAGIC.len()] != MAGIC {
            return Err(MetadataError::Absent);
        }
        if crc32c::crc32c(&header[..at::CHECKSUM]) != u32_at(header, at::CHECKSUM) {
            return Err(MetadataError::Checksum);
        }
        let version = u32_at(header, at::VERSION);
        if version != VERSION {
            return Err(MetadataError::Version { version });
        }
        let shape = Shape::decode(array_at(header, at::SHAPE));
        let shape = shape.map_err(|_| MetadataError::Field("shape"))?;
        let stripes = Layout::new(shape.spec, shape.drive_size).stripes();
        let grid = |place: usize| match header[at::MEMBERS + place * MEMBER_BYTES + 20] {
            0 => Ok(None),
            shift => Grid::of(stripes, shift - 1).map(Some).ok_or(MetadataError::Field("regions")),
        };
        let layout = Self {
            shape,
            ranges: u32_at(header, at::COUNT) as usize,
            grids: (0..shape.spec.members()).map(grid).collect::<Result<_, _>>()?,
        };
        let is_bounded = layout.ranges <= RANGES_MAX && layout.sectors() < SLOT;
        is_bounded.then_some(layout).ok_or(MetadataError::Field("lists"))
    }

    fn range_sectors(&self) -> u64 {
        sectors_of(self.ranges * RANGE_BYTES)
    }

    fn sectors(&self) -> Sectors {
        let grids = self.grids.iter().flatten();
        let grids: u64 = grids.map(|grid| sectors_of(grid.words() * 8)).sum();
        Sectors::new(self.range_sectors() + grids)
    }
}

fn sectors_of(bytes: usize) -> u64 {
    bytes.div_ceil(SECTOR_SIZE) as u64
}

/// What was found in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// No metadata of this member, or some whose write was cut off.
    Nothing,
    /// The drive does not give it, it cannot be understood, or it is not what was written.
    Unreadable,
    /// Metadata.
    Read(Arc<Metadata>),
}

/// What the two slots of a member hold. `read` gives sectors of the member, if it can.
pub(super) fn find(
    superblock: &Superblock,
    mut read: impl FnMut(Extent) -> Option<Vec<u8>>,
) -> [Slot; 2] {
    // Nothing for one whose checksum is wrong.
    let slots = superblock.own.slots().map(|slot| {
        let at = |extent: Extent| Extent::new(slot.lba + (extent.lba - Lba::ZERO), extent.sectors);
        match Inscription::decode(|extent| read(at(extent)).ok_or(())) {
            Err(()) => Some(Slot::Unreadable),
            Ok(Ok(Inscription { metadata, holder })) => {
                let Superblock { array, member, spec, drive_size, logs, .. } = superblock;
                let is_own = metadata.array == *array && holder.uuid == *member;
                let kept = metadata.journal.map(|kept| kept.logs);
                let fits =
                    (metadata.spec, metadata.drive_size, kept) == (*spec, *drive_size, *logs);
                // What was there before it became a member says nothing.
                Some(match (is_own, fits) {
                    (true, true) => Slot::Read(metadata),
                    (true, false) => Slot::Unreadable,
                    (false, _) => Slot::Nothing,
                })
            }
            Ok(Err(MetadataError::Absent)) => Some(Slot::Nothing),
            Ok(Err(MetadataError::Checksum)) => None,
            Ok(Err(MetadataError::Version { .. } | MetadataError::Field(_))) => {
                Some(Slot::Unreadable)
            }
        }
    });
    // One slot is written while the other one holds metadata (G3 of the store), so that no two are cut off.
    let is_rot = slots.iter().all(Option::is_none);
    let torn = if is_rot { Slot::Unreadable } else { Slot::Nothing };
    slots.map(|slot| slot.unwrap_or(torn.clone()))
}

#[cfg(test)]
mod tests;
