//! What a member keeps for the array itself, and where the data lies around it.
//!
//! ```text
//!   0    1            128          255  256                                          n-256      n-1
//!   +----+------------+------------+----+--------+---+--------+---+--------- .. --+------+------+----+
//!   | sb | metadata A | metadata B | sb |  data  | J |  data  | J |          data |unused| free | sb |
//!   +----+------------+------------+----+--------+---+--------+---+--------- .. --+------+------+----+
//! ```
//!
//! The journal (J) lies in pieces over the whole drive, so that one of them is near whatever the drive does.
//! It is a 64th of the smallest member, at least 256 KiB and at most 64 MiB, but never more than a quarter of what
//! the superblocks and the metadata leave; in at most 16 pieces of at least 256 KiB, or in one. A member with less than
//! 64 KiB for it has none.
//!
//! A drive that is for the journal alone has the same places at both ends and pieces of at most 8 MiB between them: as
//! much as all members together would have, at most 512 MiB. Then no other member has any.

use levelhead_units::{Extent, Lba, Sectors};

use crate::shape::{Area, Spec};

/// Sectors before the data, for two superblocks and the metadata between them.
pub const HEAD: Sectors = Sectors::new(256);

/// Sectors behind the data, with the third superblock in the last.
pub const TAIL: Sectors = Sectors::new(256);

/// Where the copies of the superblock lie that are before the data.
pub(super) const COPIES: [Lba; 2] = [Lba::ZERO, Lba::new(HEAD.get() - 1)];

/// Sectors of one of the two slots for the metadata.
pub(super) const SLOT: Sectors = Sectors::new(127);

pub(super) const METADATA: Extent = Extent::new(Lba::new(1), Sectors::new(2 * SLOT.get()));

/// The largest journal: 64 MiB.
const JOURNAL_MAX: Sectors = Sectors::new(16_384);

/// The journal's share of a member, as a divisor.
const JOURNAL_SHARE: u64 = 64;

/// The least piece of a journal that is in several: 256 KiB.
const PIECE_MIN: Sectors = Sectors::new(64);

/// The least piece of a journal that a program may be given: two marks, and a record of one sector.
pub(crate) const JOURNAL_PIECE_MIN: Sectors = Sectors::new(4);

/// The share of a member that its lists of checksums take, as a divisor,
const LIST_SHARE: u64 = 2_048;

/// the least, 32 KiB, and the most, 16 MiB. Half of it is one list: of the most, of 686,080 sectors.
const LIST_SECTORS: [u64; 2] = [8, 4_096];

/// Sectors of every piece that are for marks.
pub(crate) const JOURNAL_MARKS: u64 = 2;

/// The least journal: 64 KiB.
const JOURNAL_MIN: Sectors = Sectors::new(16);

const PIECES_MAX: u64 = 16;

/// The largest piece of a drive that is for the journal alone: 8 MiB. What comes after a crash reads them one by one.
const APART_PIECE_MAX: u64 = 2_048;

/// The most pieces of such a drive.
const APART_PIECES_MAX: u64 = 64;

/// The most places that a member reserves.
pub const RESERVED_MAX: usize = 96;

const _: () = assert!(PIECES_MAX as usize + 6 <= RESERVED_MAX);
const _: () = assert!(APART_PIECES_MAX as usize + 7 <= RESERVED_MAX);
const _: () = assert!(METADATA.lba.get() + METADATA.sectors.get() == COPIES[1].get());

/// What a reserved place is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A copy of the superblock.
    Superblock,
    /// A piece of the journal.
    Journal,
    /// Nothing yet.
    Free,
    /// The metadata, in two slots.
    Metadata,
    /// The list of checksums that tag sectors do not have yet, in two slots.
    List,
}

impl Use {
    const ALL: [(Self, u16); 5] = [
        (Self::Superblock, 1),
        (Self::Journal, 2),
        (Self::Free, 4),
        (Self::Metadata, 6),
        (Self::List, 8),
    ];

    pub(super) fn code(self) -> u16 {
        let found = Self::ALL.iter().find(|(of, _)| *of == self);
        found.map(|(_, code)| *code).expect("the table has all")
    }

    pub(super) fn of(code: u16) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == code).map(|(of, _)| *of)
    }
}

/// A place that the layout steps over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Where.
    pub extent: Extent,
    /// What for.
    pub purpose: Use,
}

/// How the members of a new array are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// Sectors of every member that hold data and redundancy.
    pub drive_size: Sectors,
    /// Where these lie, on every member alike.
    pub area: Area,
    /// The smallest member's size.
    smallest: Sectors,
    common: Vec<Reserved>,
}

impl Division {
    /// The least member of an array of this shape.
    pub fn member_min(spec: &Spec) -> Sectors {
        let [list, _] = LIST_SECTORS;
        let list = if spec.has_checksums() { Sectors::new(list) } else { Sectors::ZERO };
        HEAD + list + least(spec) + TAIL
    }

    /// The division of members of which the smallest has `smallest` sectors; nothing if that is less than
    /// [`Division::member_min`].
    pub fn of(spec: &Spec, smallest: Sectors) -> Option<Self> {
        if smallest < Self::member_min(spec) {
            return None;
        }
        let list = if spec.has_checksums() { list_of(smallest) } else { Sectors::ZERO };
        let room = smallest - HEAD - list - TAIL;
        let journal = Sectors::new(smallest.get() / JOURNAL_SHARE).min(JOURNAL_MAX);
        let journal = journal.max(PIECE_MIN).min(Sectors::new((room - least(spec)).get() / 4));
        let is_apart = spec.journals() > 0;
        let has_journal = spec.redundant() > 0 && journal >= JOURNAL_MIN && !is_apart;
        let most = if has_journal { PIECES_MAX } else { 0 };
        let count = (journal.get() / PIECE_MIN.get()).clamp(u64::from(has_journal), most);
        let piece = journal.get().checked_div(count).unwrap_or(0);
        let is_enough = takes_codewords(Sectors::new(piece), spec);
        let (count, piece) = if is_enough { (count, piece) } else { (0, 0) };
        let groups = spec.tag_groups();
        let data = Sectors::new(room.get() - count * piece);
        let data = groups.map_or(data, |groups| groups.without_tags(data));
        let chunks = data.get() / spec.chunk().get();
        let drive_size = spec.chunk() * chunks;
        let unit = groups.map_or(spec.chunk(), |groups| groups.unit(spec.chunk()));
        let units = drive_size.get() / unit.get();
        let mut common = head();
        let first = Lba::ZERO + HEAD + list;
        if list > Sectors::ZERO {
            common.push(reserved(Extent::new(Lba::ZERO + HEAD, list), Use::List));
        }
        for at in 0..count {
            // In the middle of every one of `count` equal shares of the data.
            let before = unit * (units * (2 * at + 1) / (2 * count));
            let before = groups.map_or(before, |groups| groups.with_tags(before));
            let lba = first + before + Sectors::new(at * piece);
            common.push(reserved(Extent::new(lba, Sectors::new(piece)), Use::Journal));
        }
        let extents: Vec<Extent> = common.iter().map(|place| place.extent).collect();
        let end = Lba::ZERO + (smallest - TAIL);
        let area = Area::around(&extents, drive_size, end, groups).expect("it was computed to fit");
        Some(Self { drive_size, area, smallest, common })
    }

    /// Sectors of every member that hold the journal.
    pub fn journal(&self) -> Sectors {
        journal_of(&self.common)
    }

    /// All places that a member of this size reserves, in order.
    ///
    /// Panics if the member is smaller than the smallest one that the division was made for.
    pub fn reserved(&self, member: Sectors) -> Vec<Reserved> {
        assert!(member >= self.smallest, "{} sectors are too few", member.get());
        self.common.iter().copied().chain(tail(member)).collect()
    }
}

/// How the drives are divided that are for the journal alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The smallest of them.
    smallest: Sectors,
    common: Vec<Reserved>,
}

impl Apart {
    /// The least such drive of an array of this shape: its journal has 1 MiB.
    pub const MEMBER_MIN: Sectors =
        Sectors::new(HEAD.get() + PIECES_MAX * PIECE_MIN.get() / 4 + TAIL.get());

    /// The division of drives of which the smallest has `smallest` sectors; nothing if that is less than
    /// [`Apart::MEMBER_MIN`], or a codeword is too large for it.
    pub fn of(spec: &Spec, smallest: Sectors) -> Option<Self> {
        if smallest < Self::MEMBER_MIN {
            return None;
        }
        let room = (smallest - HEAD - TAIL).get();
        let most =
            (JOURNAL_MAX.get() * spec.drives() as u64).min(APART_PIECE_MAX * APART_PIECES_MAX);
        let count = room.min(most).div_ceil(APART_PIECE_MAX).max(1);
        let piece = room.min(most) / count;
        if !takes_codewords(Sectors::new(piece), spec) {
            return None;
        }
        let mut common = head();
        common.extend((0..count).map(|at| Reserved {
            extent: Extent::new(Lba::ZERO + HEAD + Sectors::new(at * piece), Sectors::new(piece)),
            purpose: Use::Journal,
        }));
        Some(Self { smallest, common })
    }

    /// Sectors of each of them that hold the journal.
    pub fn journal(&self) -> Sectors {
        journal_of(&self.common)
    }

    /// All places that a drive of this size reserves, in order.
    ///
    /// Panics if it is smaller than the smallest one that the division was made for.
    pub fn reserved(&self, member: Sectors) -> Vec<Reserved> {
        assert!(member >= self.smallest, "{} sectors are too few", member.get());
        self.common.iter().copied().chain(tail(member)).collect()
    }
}

/// The least data of a member, with its tag sectors.
fn least(spec: &Spec) -> Sectors {
    spec.tag_groups().map_or(spec.chunk(), |groups| groups.with_tags(spec.chunk()))
}

/// The sectors for the lists of checksums of members of which the smallest has this size.
fn list_of(smallest: Sectors) -> Sectors {
    let [least, most] = LIST_SECTORS;
    // Two slots of the same size.
    Sectors::new((smallest.get() / LIST_SHARE).clamp(least, most) / 2 * 2)
}

fn journal_of(places: &[Reserved]) -> Sectors {
    let pieces = places.iter().filter(|place| place.purpose == Use::Journal);
    pieces.map(|place| place.extent.sectors).sum()
}

/// The places before the data of a member.
pub(super) fn head() -> Vec<Reserved> {
    let copy = |lba| reserved(Extent::new(lba, Sectors::new(1)), Use::Superblock);
    vec![copy(COPIES[0]), reserved(METADATA, Use::Metadata), copy(COPIES[1])]
}

/// The places behind the data of a member of this size.
pub(crate) fn tail(member: Sectors) -> [Reserved; 2] {
    let (first, last) = (member - TAIL, member - Sectors::new(1));
    let free = Extent::new(Lba::ZERO + first, last - first);
    let copy = Extent::new(Lba::ZERO + last, Sectors::new(1));
    [reserved(free, Use::Free), reserved(copy, Use::Superblock)]
}

const fn reserved(extent: Extent, purpose: Use) -> Reserved {
    Reserved { extent, purpose }
}

/// Whether a piece of a journal has room for the records of two codewords: that of one drive, or those of all where
/// they lie on the same ring.
pub(crate) fn takes_codewords(piece: Sectors, spec: &Spec) -> bool {
    let record = 1 + spec.expansion() as u64;
    let record = if spec.journals() > 0 { record * spec.width() as u64 } else { record };
    piece.get() >= JOURNAL_MARKS + 2 * record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_from_the_least_on_is_divided_with_checksums() {
        for chunk in ["4KiB", "64KiB", "160KiB", "512KiB", "64MiB"] {
            let spec: Spec = format!("raid5:2+1,chunk={chunk},checksums").parse().unwrap();
            let least = Division::member_min(&spec).get();
            for size in (least..least + 400).chain((1..40).map(|times| least + times * 997)) {
                let division = Division::of(&spec, Sectors::new(size)).expect("it is large enough");
                assert!(division.drive_size >= spec.chunk(), "{chunk}: {size}");
            }
            assert!(Division::of(&spec, Sectors::new(least - 1)).is_none());
        }
    }

    fn spec() -> Spec {
        "raid5:5+1,chunk=64KiB".parse().unwrap()
    }

    fn journal(division: &Division, member: u64) -> Vec<u64> {
        let places = division.reserved(Sectors::new(member)).into_iter();
        let pieces = places.filter(|place| place.purpose == Use::Journal);
        pieces.map(|place| place.extent.sectors.get()).collect()
    }

    #[test]
    fn journal_of_a_large_member_has_16_pieces_over_the_whole_drive() {
        let size = 500_000_000;
        let division = Division::of(&spec(), Sectors::new(size)).unwrap();
        assert_eq!(journal(&division, size), [1_024; 16]);
        let runs: Vec<u64> = division.area.runs().map(|run| run.sectors.get()).collect();
        assert_eq!(runs.len(), 17);
        assert!(runs.iter().all(|run| run.is_multiple_of(16)), "E2: whole chunks");
        let share = size as f64 / 16.0;
        assert!(runs[1..16].iter().all(|&run| (run as f64 / share - 1.0).abs() < 0.01));
        let unused = size - 512 - 16_384 - division.drive_size.get();
        assert!(unused < 16, "{unused} sectors are not used");
    }

    #[test]
    fn a_journal_on_drives_of_its_own_takes_what_all_members_would_have() {
        let spec = spec().with_journals(2).unwrap();
        for (size, pieces, each) in
            [(768, 1, 256), (10_000, 5, 1_897), (1 << 20, 48, 2_048), (1 << 30, 48, 2_048)]
        {
            let apart = Apart::of(&spec, Sectors::new(size)).unwrap();
            assert_eq!(apart.journal(), Sectors::new(pieces * each), "{size}");
            let places = apart.reserved(Sectors::new(size + 9));
            let rings = places.iter().filter(|place| place.purpose == Use::Journal);
            assert!(rings.clone().all(|place| place.extent.sectors.get() == each), "{size}");
            assert_eq!(rings.count() as u64, pieces, "{size}");
            let is_in_order =
                places.windows(2).all(|pair| pair[0].extent.end() <= pair[1].extent.lba);
            assert!(is_in_order && places.last().unwrap().extent.end() == Lba::new(size + 9));
            let others = Division::of(&spec, Sectors::new(500_000_000)).unwrap();
            assert_eq!(others.journal(), Sectors::ZERO, "only these have it");
        }
        assert_eq!(Apart::of(&spec, Apart::MEMBER_MIN - Sectors::new(1)), None);
    }

    /// Two marks, and twice a header with the sectors of a codeword: of one drive, or of all where they lie on the same ring.
    #[test]
    fn a_piece_takes_codewords_if_it_has_room_for_the_records_of_two() {
        for (text, journals, least) in [
            ("raid5:5+1,chunk=64KiB", 0, 6),
            ("eraid:5+1,e=2,chunk=8KiB", 0, 8),
            ("eraid:5+1,e=4,chunk=16KiB", 0, 12),
            ("raid5:5+1,chunk=64KiB", 2, 26),
            ("eraid:5+1,e=4,chunk=16KiB", 2, 62),
        ] {
            let spec: Spec = text.parse().unwrap();
            let spec = if journals > 0 { spec.with_journals(journals).unwrap() } else { spec };
            let takes = [least - 1, least].map(|piece| takes_codewords(Sectors::new(piece), &spec));
            assert_eq!(takes, [false, true], "{text}, {journals} drives with the journal");
        }
    }

    #[test]
    fn members_of_every_size_are_divided_without_overlap() {
        let least = Division::member_min(&spec()).get();
        assert_eq!(Division::of(&spec(), Sectors::new(least - 1)), None);
        for size in (least..least + 3_000).chain([100_000, 1 << 20, (1 << 30) - 7]) {
            let division = Division::of(&spec(), Sectors::new(size)).unwrap();
            assert!(division.drive_size >= spec().chunk(), "{size}");
            let member = size + size % 5;
            let places = division.reserved(Sectors::new(member));
            let mut all: Vec<Extent> = places.iter().map(|place| place.extent).collect();
            assert!(all.is_sorted_by_key(|place| place.lba), "{size}");
            all.extend(division.area.runs());
            all.sort_by_key(|place| place.lba);
            assert!(all.windows(2).all(|pair| pair[0].end() <= pair[1].lba), "{size}");
            assert_eq!(all.last().unwrap().end(), Lba::new(member), "{size}");
        }
    }
}
