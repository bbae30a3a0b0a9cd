//! Which sectors of the drives are damaged: what they held can be had neither from the drive nor from redundancy.
//!
//! `docs/formats/damaged.md` is the normative text; the tables there and the constants here name the same bytes.
//! Every member keeps a copy of the list for all drives, in two slots that are written in turns.
//!
//! A sector on the list is never given to a client, and never computed, until it is written again. Redundancy counts
//! data on the list as zeroes, so that it protects the rest of the codeword: who puts data on the list sees to that,
//! or puts the codeword's redundant sectors on it as well, which are then not used until they are computed anew.
//!
//! The list has a bound: when it is full, the two ranges of one drive that lie nearest to each other become one, so
//! that reads of what lies between fail as well. It never forgets a sector.

use std::collections::BTreeMap;
use std::fmt;

use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

use super::uuid::Uuid;
use crate::fields::{array_at, put, u32_at, u64_at};
use crate::shape::Cell;

/// Sectors of every member that the list takes.
pub const DAMAGED_PLACE: Sectors = Sectors::new(128);

/// The most ranges on the list.
pub const RANGES_MAX: usize = (SLOT.get() as usize - 1) * RANGES_IN_SECTOR;

/// Sectors of one of the two slots: a header, and the ranges behind it.
const SLOT: Sectors = Sectors::new(DAMAGED_PLACE.get() / 2);

const RANGE_BYTES: usize = 16;
const RANGES_IN_SECTOR: usize = SECTOR_SIZE / RANGE_BYTES;

/// No sector lies beyond: as many as no drive has.
pub(super) const SECTORS_MAX: u64 = 1 << 40;

const MAGIC: [u8; 16] = *b"levelhead damage";

/// The version of the layout below.
const VERSION: u32 = 1;

/// Where each field of the header begins. The numbers are little-endian.
mod at {
    use super::SECTOR_SIZE;

    pub(super) const VERSION: usize = 16;
    pub(super) const COUNT: usize = 20;
    pub(super) const GENERATION: usize = 24;
    pub(super) const ARRAY: usize = 32;
    pub(super) const MEMBER: usize = 48;
    pub(super) const RANGES_SUM: usize = 64;
    pub(super) const WIDENED: usize = 68;
    pub(super) const END: usize = 69;
    pub(super) const CHECKSUM: usize = SECTOR_SIZE - 4;
}

/// A range of sectors of one drive, as the layout counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedRange {
    /// The drive.
    pub drive: DriveIdx,
    /// Its sectors.
    pub extent: Extent,
}

/// The sectors that are damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamagedList {
    /// The length of each range by where it begins; ranges of a drive neither overlap nor touch.
    ranges: BTreeMap<Cell, Sectors>,
    /// Whether ranges were made one although what lies between is not damaged.
    is_widened: bool,
}

impl DamagedList {
    /// Whether nothing is damaged.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, by drive and by address.
    pub fn ranges(&self) -> impl Iterator<Item = DamagedRange> {
        self.ranges.iter().map(|(&first, &sectors)| range(first, sectors))
    }

    /// How many sectors are on it.
    pub fn sectors(&self) -> Sectors {
        self.ranges.values().copied().sum()
    }

    /// Whether it was full once, so that there are sectors on it that were not damaged.
    pub fn is_widened(&self) -> bool {
        self.is_widened
    }

    /// Whether a sector is on it.
    pub fn covers(&self, cell: Cell) -> bool {
        self.range_at(cell).is_some()
    }

    /// The range that a sector lies in.
    pub fn range_at(&self, cell: Cell) -> Option<DamagedRange> {
        let (&first, &sectors) = self.ranges.range(..=cell).next_back()?;
        let is_in = first.drive == cell.drive && cell.lba < first.lba + sectors;
        is_in.then(|| range(first, sectors))
    }

    /// Puts sectors on it. Returns whether that changes it.
    ///
    /// Panics if the extent is empty.
    pub fn add(&mut self, drive: DriveIdx, extent: Extent) -> bool {
        self.add_within(drive, extent, RANGES_MAX)
    }

    fn add_within(&mut self, drive: DriveIdx, extent: Extent, most: usize) -> bool {
        assert!(extent.sectors > Sectors::ZERO, "drive {drive}: an empty range");
        let first = Cell { drive, lba: extent.lba };
        let known = self.range_at(first);
        if known.is_some_and(|known| known.extent.end() >= extent.end()) {
            return false;
        }
        let (mut start, mut end) = (extent.lba, extent.end());
        // Every range that overlaps or touches.
        while let Some((&other, &sectors)) =
            self.ranges.range(..=Cell { drive, lba: end }).next_back()
            && other.drive == drive
            && other.lba + sectors >= start
        {
            self.ranges.remove(&other);
            (start, end) = (start.min(other.lba), end.max(other.lba + sectors));
        }
        self.ranges.insert(Cell { drive, lba: start }, end - start);
        while self.ranges.len() > most && self.widen(None) {}
        true
    }

    /// Makes the two ranges of one drive one that lie nearest to each other; those with this sector between them only where
    /// there are no others.
    fn widen(&mut self, spared: Option<Cell>) -> bool {
        let ranges = self.ranges.iter().zip(self.ranges.keys().skip(1));
        let pairs = ranges.filter(|((first, _), next)| first.drive == next.drive);
        let nearest = pairs.min_by_key(|&((first, &sectors), next)| {
            let is_spared = spared.is_some_and(|cell| *first < cell && cell < *next);
            (is_spared, next.lba - (first.lba + sectors))
        });
        let Some(((&first, _), &next)) = nearest else { return false };
        let sectors = self.ranges.remove(&next).expect("it was found above");
        self.ranges.insert(first, next.lba + sectors - first.lba);
        self.is_widened = true;
        true
    }

    /// Takes a sector off it, which was written. Returns whether it was on it.
    pub fn remove(&mut self, cell: Cell) -> bool {
        self.remove_within(cell, RANGES_MAX)
    }

    fn remove_within(&mut self, cell: Cell, most: usize) -> bool {
        let Some(DamagedRange { drive, extent }) = self.range_at(cell) else { return false };
        let (before, next) = (cell.lba - extent.lba, cell.lba + Sectors::new(1));
        self.ranges.remove(&Cell { drive, lba: extent.lba });
        if before > Sectors::ZERO {
            self.ranges.insert(Cell { drive, lba: extent.lba }, before);
        }
        if next < extent.end() {
            self.ranges.insert(Cell { drive, lba: next }, extent.end() - next);
        }
        // A range that is cut in two is one more. Its halves are the nearest of all: were they made one, what was written would
        // stay on the list however often it is written.
        while self.ranges.len() > most && self.widen(Some(cell)) {}
        self.is_widened &= !self.is_empty();
        true
    }
}

fn range(first: Cell, sectors: Sectors) -> DamagedRange {
    DamagedRange { drive: first.drive, extent: Extent::new(first.lba, sectors) }
}

/// The list as it is in one slot of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Which array.
    pub array: Uuid,
    /// The member that it lies on.
    pub member: Uuid,
    /// Counts changes of the list; the highest one is right.
    pub generation: u64,
    /// What it says.
    pub list: DamagedList,
}

/// Why a slot holds no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingError {
    /// It does not begin like one.
    Absent,
    /// Its bytes are not those that were written.
    Checksum,
    /// It is of another version of the layout.
    Version {
        /// The version it names.
        version: u32,
    },
    /// It says what cannot be.
    Contents,
}

impl fmt::Display for ListingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not a list of damaged sectors"),
            Self::Checksum => f.write_str("the list of damaged sectors is torn"),
            Self::Version { version } => write!(
                f,
                "the list of damaged sectors is of version {version}, this program reads {VERSION}"
            ),
            Self::Contents => f.write_str("the list of damaged sectors says what cannot be"),
        }
    }
}

impl std::error::Error for ListingError {}

/// What was found in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListCopy {
    /// No list, or one that was cut off when it was written.
    Nothing,
    /// The drive does not give it, it cannot be understood, or it is not what was written.
    Unreadable,
    /// A whole list.
    Read(Box<Listing>),
}

impl Listing {
    /// How many sectors it takes.
    pub fn sectors(&self) -> Sectors {
        Sectors::new(1) + range_sectors(self.list.ranges.len())
    }

    /// The bytes of its slot as far as they mean something: whole sectors.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.sectors().get() as usize * SECTOR_SIZE];
        let (header, ranges) = bytes.split_at_mut(SECTOR_SIZE);
        for (range, into) in self.list.ranges().zip(ranges.chunks_exact_mut(RANGE_BYTES)) {
            put(into, 0, &range.extent.lba.get().to_le_bytes());
            // No drive has more sectors than fit into five bytes.
            put(into, 8, &range.extent.sectors.get().to_le_bytes()[..5]);
            into[13] = range.drive.as_usize() as u8;
        }
        put(header, 0, &MAGIC);
        put(header, at::VERSION, &VERSION.to_le_bytes());
        put(header, at::COUNT, &(self.list.ranges.len() as u32).to_le_bytes());
        put(header, at::GENERATION, &self.generation.to_le_bytes());
        put(header, at::ARRAY, &self.array.0);
        put(header, at::MEMBER, &self.member.0);
        put(header, at::RANGES_SUM, &crc32c::crc32c(ranges).to_le_bytes());
        header[at::WIDENED] = u8::from(self.list.is_widened);
        let checksum = crc32c::crc32c(&header[..at::CHECKSUM]);
        put(header, at::CHECKSUM, &checksum.to_le_bytes());
        bytes
    }

    /// The list that the bytes of a slot hold. `read` gives sectors of the slot, counted from its first one; it is
    /// asked for the header, and then for what that says.
    pub fn decode<E>(
        mut read: impl FnMut(Extent) -> Result<Vec<u8>, E>,
    ) -> Result<Result<Self, ListingError>, E> {
        let header = read(Extent::new(Lba::ZERO, Sectors::new(1)))?;
        let count = match check_header(&header) {
            Ok(count) => count,
            Err(error) => return Ok(Err(error)),
        };
        let ranges = match count {
            0 => Vec::new(),
            count => read(Extent::new(Lba::new(1), range_sectors(count)))?,
        };
        Ok(Self::of(&header, &ranges, count))
    }

    fn of(header: &[u8], ranges: &[u8], count: usize) -> Result<Self, ListingError> {
        if crc32c::crc32c(ranges) != u32_at(header, at::RANGES_SUM) {
            return Err(ListingError::Checksum);
        }
        let mut list =
            DamagedList { is_widened: header[at::WIDENED] == 1, ..DamagedList::default() };
        for bytes in ranges.chunks_exact(RANGE_BYTES).take(count) {
            let mut sectors = [0; 8];
            sectors[..5].copy_from_slice(&bytes[8..13]);
            let (lba, sectors) = (u64_at(bytes, 0), u64::from_le_bytes(sectors));
            let is_good = bytes[13] < DriveIdx::MAX
                && sectors > 0
                && lba <= SECTORS_MAX
                && lba + sectors <= SECTORS_MAX;
            if !is_good {
                return Err(ListingError::Contents);
            }
            let first = Cell { drive: DriveIdx::new(bytes[13]), lba: Lba::new(lba) };
            // In order, and with something between two of one drive.
            let is_behind = list.ranges.last_key_value().is_none_or(|(last, length)| {
                *last < first && (last.drive != first.drive || last.lba + *length < first.lba)
            });
            if !is_behind {
                return Err(ListingError::Contents);
            }
            list.ranges.insert(first, Sectors::new(sectors));
        }
        let listing = Self {
            array: Uuid(array_at(header, at::ARRAY)),
            member: Uuid(array_at(header, at::MEMBER)),
            generation: u64_at(header, at::GENERATION),
            list,
        };
        // What no field names is zero.
        let expected = listing.encode();
        let is_whole = expected[..SECTOR_SIZE] == *header && expected[SECTOR_SIZE..] == *ranges;
        is_whole.then_some(listing).ok_or(ListingError::Contents)
    }
}

/// How many ranges a header says that there are.
fn check_header(header: &[u8]) -> Result<usize, ListingError> {
    if header.len() != SECTOR_SIZE || header[..MAGIC.len()] != MAGIC {
        return Err(ListingError::Absent);
    }
    if crc32c::crc32c(&header[..at::CHECKSUM]) != u32_at(header, at::CHECKSUM) {
        return Err(ListingError::Checksum);
    }
    let version = u32_at(header, at::VERSION);
    if version != VERSION {
        return Err(ListingError::Version { version });
    }
    let count = u32_at(header, at::COUNT) as usize;
    let is_good = count <= RANGES_MAX && header[at::WIDENED] <= 1;
    let generation = u64_at(header, at::GENERATION);
    if !is_good || generation > 1 << 63 || header[at::END..at::CHECKSUM].iter().any(|&b| b != 0) {
        return Err(ListingError::Contents);
    }
    Ok(count)
}

/// Where the slots of a member's place lie.
pub(crate) fn slots(place: Extent) -> [Lba; 2] {
    assert_eq!(place.sectors, DAMAGED_PLACE);
    [place.lba, place.lba + SLOT]
}

/// What the two slots of a member's place hold. `read` gives sectors of the member, as it counts them, if it can.
pub(super) fn find(
    place: Option<Extent>,
    mut read: impl FnMut(Extent) -> Option<Vec<u8>>,
) -> [ListCopy; 2] {
    let Some(place) = place else { return [ListCopy::Nothing, ListCopy::Nothing] };
    // Nothing for one whose checksum is wrong.
    let copies = slots(place).map(|slot| {
        let at = |extent: Extent| Extent::new(slot + (extent.lba - Lba::ZERO), extent.sectors);
        match Listing::decode(|extent| read(at(extent)).ok_or(())) {
            Err(()) => Some(ListCopy::Unreadable),
            Ok(Ok(listing)) => Some(ListCopy::Read(Box::new(listing))),
            Ok(Err(ListingError::Absent)) => Some(ListCopy::Nothing),
            Ok(Err(ListingError::Checksum)) => None,
            Ok(Err(ListingError::Version { .. } | ListingError::Contents)) => {
                Some(ListCopy::Unreadable)
            }
        }
    });
    // The second slot is written while the first one holds a list (Y3 of the copies), so that no two are cut off.
    let is_rot = copies.iter().all(Option::is_none);
    let torn = if is_rot { ListCopy::Unreadable } else { ListCopy::Nothing };
    copies.map(|copy| copy.unwrap_or_else(|| torn.clone()))
}

fn range_sectors(count: usize) -> Sectors {
    Sectors::new(count.div_ceil(RANGES_IN_SECTOR) as u64)
}

#[cfg(test)]
mod tests;
