//! Maps of what drives have missed, as they lie on the other drives: for each of these one bit for every region of its
//! stripes.
//!
//! `docs/formats/missed.md` is the normative text. A map has a *head* and *pages* of bits, a sector each. Bits are only ever
//! set while a map is kept, so that of several copies all together are right, and never one too few.

use std::collections::BTreeSet;
use std::fmt;

use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

use super::uuid::Uuid;
use crate::fields::{array_at, put};

/// The first bytes of every page.
const MAGIC: [u8; 16] = *b"levelhead missed";

/// The version of the layout below.
const VERSION: u32 = 1;

/// Sectors of a map: its head and its pages.
pub const MAP_SECTORS: u64 = 16;

/// The most maps that a member has a place for.
const MAPS_MAX: u64 = 8;

/// Pages of bits.
pub(crate) const PAGES: usize = MAP_SECTORS as usize - 1;

/// Where each field begins. The numbers are little-endian.
mod at {
    use super::SECTOR_SIZE;

    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 16;
    pub(super) const DRIVE: usize = 20;
    pub(super) const SHIFT: usize = 21;
    pub(super) const NUMBER: usize = 22;
    pub(super) const SINCE: usize = 24;
    pub(super) const ARRAY: usize = 32;
    pub(super) const HOLDER: usize = 48;
    pub(super) const REGIONS: usize = 64;
    pub(super) const BITS: usize = 72;
    pub(super) const CHECKSUM: usize = SECTOR_SIZE - 4;
}

/// 64-bit words of a page.
pub(crate) const WORDS_IN_PAGE: usize = (at::CHECKSUM - at::BITS) / 8;

/// Regions of a page.
const REGIONS_IN_PAGE: u64 = WORDS_IN_PAGE as u64 * 64;

/// The most regions of a map.
pub const REGIONS_MAX: u64 = REGIONS_IN_PAGE * PAGES as u64;

const _: () = assert!(at::BITS + WORDS_IN_PAGE * 8 <= at::CHECKSUM);

/// One sector of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Which array.
    pub array: Uuid,
    /// The member that it lies on.
    pub holder: Uuid,
    /// Which map.
    pub key: MapKey,
    /// 0 for the head, which has no bits.
    pub number: u8,
    /// The bits, of the first region first, as many words as a page has; of the head one word: the newest generation that
    /// the drive may have a record of, from before it was lost last; it may have been back meanwhile.
    pub words: Vec<u64>,
}

/// What tells a map from others of its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapKey {
    /// The place of the drive that has missed something.
    pub drive: DriveIdx,
    /// The generation that the array had when it began to do without the drive.
    pub since: u64,
    /// A region has two to the power of this many stripes.
    pub shift: u8,
    /// How many regions there are.
    pub regions: u64,
}

impl MapKey {
    /// A map for a drive with this many stripes, in regions of at least `least` stripes.
    pub(crate) fn new(drive: DriveIdx, since: u64, stripes: u64, least: u64) -> Self {
        let fits = |shift: &u8| 1_u64 << shift >= least && ((stripes - 1) >> shift) < REGIONS_MAX;
        let shift = (0..63).find(fits).expect("one region always fits");
        Self { drive, since, shift, regions: ((stripes - 1) >> shift) + 1 }
    }

    /// Whether it is a map of a drive with this many stripes.
    fn is_of(self, stripes: u64) -> bool {
        self.shift < 63
            && self.regions <= REGIONS_MAX
            && stripes > 0
            && self.regions == ((stripes - 1) >> self.shift) + 1
    }

    /// The region that a stripe is in.
    pub(crate) fn region(self, stripe: u64) -> u64 {
        stripe >> self.shift
    }

    /// How many words its bits take.
    pub(crate) fn words(self) -> usize {
        self.regions.div_ceil(64) as usize
    }

    /// How many pages.
    pub(crate) fn pages(self) -> usize {
        self.words().div_ceil(WORDS_IN_PAGE)
    }
}

/// What was found in a sector of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageCopy {
    /// No page.
    Nothing,
    /// The drive does not give it, or it cannot be understood.
    Unreadable,
    /// A page.
    Read(Box<Page>),
}

/// Why a sector is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
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

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not a map of what a drive has missed"),
            Self::Checksum => f.write_str("the map of what a drive has missed is torn"),
            Self::Version { version } => write!(
                f,
                "the map of what a drive has missed is of version {version}, this program reads {VERSION}"
            ),
            Self::Contents => f.write_str("the map of what a drive has missed says what cannot be"),
        }
    }
}

impl std::error::Error for PageError {}

impl Page {
    /// The sector as it is on the drive.
    ///
    /// Panics if it has more words than a page.
    pub fn encode(&self) -> [u8; SECTOR_SIZE] {
        let Self { array, holder, key, number, words } = self;
        assert!(words.len() <= WORDS_IN_PAGE, "{} words are too many for a page", words.len());
        let mut bytes = [0; SECTOR_SIZE];
        put(&mut bytes, at::MAGIC, &MAGIC);
        put(&mut bytes, at::VERSION, &VERSION.to_le_bytes());
        bytes[at::DRIVE] = key.drive.as_usize() as u8;
        bytes[at::SHIFT] = key.shift;
        bytes[at::NUMBER] = *number;
        put(&mut bytes, at::SINCE, &key.since.to_le_bytes());
        put(&mut bytes, at::ARRAY, &array.0);
        put(&mut bytes, at::HOLDER, &holder.0);
        put(&mut bytes, at::REGIONS, &key.regions.to_le_bytes());
        for (word, at) in words.iter().zip((at::BITS..).step_by(8)) {
            put(&mut bytes, at, &word.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
        put(&mut bytes, at::CHECKSUM, &checksum.to_le_bytes());
        bytes
    }

    /// The page that a sector holds.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        if bytes.len() != SECTOR_SIZE || bytes[at::MAGIC..][..MAGIC.len()] != MAGIC {
            return Err(PageError::Absent);
        }
        let checksum = u32::from_le_bytes(array_at(bytes, at::CHECKSUM));
        if crc32c::crc32c(&bytes[..at::CHECKSUM]) != checksum {
            return Err(PageError::Checksum);
        }
        let version = u32::from_le_bytes(array_at(bytes, at::VERSION));
        if version != VERSION {
            return Err(PageError::Version { version });
        }
        let (drive, number) = (bytes[at::DRIVE], bytes[at::NUMBER]);
        if drive >= DriveIdx::MAX || usize::from(number) > PAGES {
            return Err(PageError::Contents);
        }
        let words = if number == 0 { 1 } else { WORDS_IN_PAGE };
        let word = |at: usize| u64::from_le_bytes(array_at(bytes, at::BITS + 8 * at));
        let page = Self {
            array: Uuid(array_at(bytes, at::ARRAY)),
            holder: Uuid(array_at(bytes, at::HOLDER)),
            key: MapKey {
                drive: DriveIdx::new(drive),
                since: u64::from_le_bytes(array_at(bytes, at::SINCE)),
                shift: bytes[at::SHIFT],
                regions: u64::from_le_bytes(array_at(bytes, at::REGIONS)),
            },
            number,
            words: (0..words).map(word).collect(),
        };
        // What no field names is zero.
        (page.encode() == bytes).then_some(page).ok_or(PageError::Contents)
    }
}

/// A map that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMap {
    /// Which.
    pub key: MapKey,
    /// In which of the slots for maps it lies, on every member alike.
    pub slot: usize,
    /// The newest generation that the drive may have a record of, from before it was lost last.
    pub last: u64,
    /// Its bits.
    pub words: Vec<u64>,
}

/// A head that was found.
#[derive(Clone, Copy, Debug)]
struct Head {
    slot: usize,
    key: MapKey,
    last: u64,
}

/// What one member has of maps.
#[derive(Clone, Debug)]
pub(crate) struct MapsOn<'a> {
    /// Its place in the array.
    pub(crate) drive: DriveIdx,
    pub(crate) member: Uuid,
    pub(crate) pages: &'a [PageCopy],
}

/// Finds the maps of these drives. `is_left` says whether something that was safe on enough drives is left after the loss
/// of what a set of drives has.
pub(crate) fn find_maps(
    array: Uuid,
    stripes: u64,
    drives: impl Iterator<Item = DriveIdx>,
    members: &[MapsOn<'_>],
    is_left: impl Fn(&[DriveIdx]) -> bool,
) -> Vec<FoundMap> {
    let size = MAP_SECTORS as usize;
    let unreadable = |is_meant: &dyn Fn(usize) -> bool| -> Vec<DriveIdx> {
        let has_one = |on: &&MapsOn<'_>| {
            let mut pages = on.pages.iter().enumerate();
            pages.any(|(at, page)| is_meant(at) && *page == PageCopy::Unreadable)
        };
        members.iter().filter(has_one).map(|on| on.drive).collect()
    };
    if !is_left(&unreadable(&|at| at.is_multiple_of(size))) {
        return Vec::new(); // A newer head may be among them.
    }
    let page_of = |on: &MapsOn<'_>, at: usize| match on.pages.get(at) {
        Some(PageCopy::Read(page)) if page.array == array && page.holder == on.member => {
            (usize::from(page.number) == at % size).then(|| (**page).clone())
        }
        _ => None,
    };
    let slots = members.iter().map(|on| on.pages.len() / size).max().unwrap_or(0);
    let find = |drive: DriveIdx| {
        let heads = members.iter().flat_map(|on| {
            (0..slots).filter_map(move |slot| {
                let Page { key, words, .. } = page_of(on, slot * size)?;
                Some(Head { slot, key, last: *words.first()? })
            })
        });
        let own = heads.filter(|head| head.key.drive == drive && head.key.is_of(stripes));
        let own: Vec<Head> = own.collect();
        let newest = own.iter().max_by_key(|head| (head.key.since, head.last))?;
        let &Head { slot, key, last } = newest;
        // A run that was cut off before the books named its map may have begun the same one elsewhere.
        let alike: BTreeSet<usize> =
            own.iter().filter(|head| head.key == key).map(|head| head.slot).collect();
        let mut words = vec![0; key.words()];
        for (page, words) in (1..).zip(words.chunks_mut(WORDS_IN_PAGE)) {
            for at in alike.iter().map(|slot| slot * size + page) {
                if !is_left(&unreadable(&|other| other == at)) {
                    words.fill(u64::MAX); // Anything may have been missed there.
                }
                let copies = members.iter().filter_map(|on| page_of(on, at));
                for copy in copies.filter(|copy| copy.key == key) {
                    words.iter_mut().zip(copy.words).for_each(|(word, found)| *word |= found);
                }
            }
        }
        Some(FoundMap { key, slot, last, words })
    };
    drives.filter_map(find).collect()
}

/// How many maps a place for them takes.
pub(crate) fn slots_of(place: Extent) -> usize {
    (place.sectors.get() / MAP_SECTORS).min(MAPS_MAX) as usize
}

/// Where a page lies in a place for maps.
pub(crate) fn place_of(place: Extent, slot: usize, number: usize) -> Lba {
    place.lba + Sectors::new(slot as u64 * MAP_SECTORS + number as u64)
}

/// What a member's place for maps holds. `read` gives sectors of the member, if it can.
pub(super) fn find(
    place: Option<Extent>,
    mut read: impl FnMut(Extent) -> Option<Vec<u8>>,
) -> Vec<PageCopy> {
    let Some(place) = place else { return Vec::new() };
    let sectors = Sectors::new(slots_of(place) as u64 * MAP_SECTORS);
    let all = read(Extent::new(place.lba, sectors));
    let decode = |at: u64| {
        let one = match &all {
            Some(all) => Some(all[at as usize * SECTOR_SIZE..][..SECTOR_SIZE].to_vec()),
            None => read(Extent::new(place.lba + Sectors::new(at), Sectors::new(1))),
        };
        match one.as_deref().map(Page::decode) {
            None
            | Some(Err(PageError::Checksum | PageError::Version { .. } | PageError::Contents)) => {
                PageCopy::Unreadable
            }
            Some(Err(PageError::Absent)) => PageCopy::Nothing,
            Some(Ok(page)) => PageCopy::Read(Box::new(page)),
        }
    };
    (0..sectors.get()).map(decode).collect()
}

#[cfg(test)]
mod tests;
