//! The sectors of a drive that hold the array's data, and how they are counted.
//!
//! The array counts sectors of a drive from 0 to the end of its data without a gap; the drive has them in
//! *runs*, with the array's own places (superblocks, metadata, journal) between them.
//!
//! ```text
//!   the array's count      0 ............ 99 100 .......... 199
//!                          |  first run    | |  second run   |
//!   the drive's sectors   256 ......... 355  372 ......... 471
//!                                            ^ 16 sectors of the journal before it
//! ```
//!
//! Where sectors have checksums, data lies in *groups* with a *tag sector* in the middle of each, which has the checksums of its
//! group. Tag sectors are not counted either: they follow from the numbers of the sectors, and no list names them.
//!
//! ```text
//!   the array's count      0 .. 31       32 .. 63   64 .. 95       96 .. 127
//!   the drive's sectors  256 .. 287 288 289 .. 320 321 .. 352 353 354 .. 385
//!                                   ^ tag sector of group 0   ^ tag sector of group 1
//! ```
//!
//! # Invariants
//!
//! - E1. Runs do not overlap, and lie on the drive in the order in which they are counted.
//! - E2. Where the array is cut into chunks, no chunk lies in two runs: their lengths are multiples of it. Nor does a group.

use levelhead_units::{Extent, Lba, Sectors};

/// No member has more sectors: 2^52 bytes, 4 PiB.
pub const DRIVE_SECTORS_MAX: u64 = 1 << 40;

/// The most sectors of data in a group.
const GROUP_MAX: u64 = 64;

/// How the data of a drive is cut into groups with a tag sector each. The last group of the data may be shorter; its tag sector
/// lies as far behind its first sector, or at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Sectors of data in each.
    data: u64,
    /// Those of them that lie before the tag sector.
    before: u64,
}

impl Groups {
    /// The groups of an array with chunks of this size: as many whole chunks as 64 sectors have room for, with the tag sector
    /// between two of them, or 64 sectors of a larger chunk.
    pub fn of_chunk(chunk: Sectors) -> Self {
        let chunk = chunk.get();
        let each = if chunk > GROUP_MAX { GROUP_MAX / 2 } else { chunk };
        let count = GROUP_MAX / each;
        Self { data: count * each, before: count.div_ceil(2) * each }
    }

    /// Sectors of data in each.
    pub fn data(&self) -> Sectors {
        Sectors::new(self.data)
    }

    /// Those of them that lie before the tag sector.
    pub fn before(&self) -> Sectors {
        Sectors::new(self.before)
    }

    /// The least number of sectors that are whole groups and whole chunks of this size.
    pub fn unit(&self, chunk: Sectors) -> Sectors {
        let mut unit = chunk;
        while !unit.get().is_multiple_of(self.data) {
            unit += chunk;
        }
        unit
    }

    /// Sectors that this number of sectors of data take with their tag sectors.
    pub fn with_tags(&self, sectors: Sectors) -> Sectors {
        sectors + Sectors::new(sectors.get().div_ceil(self.data))
    }

    /// The most sectors of data that have room with their tag sectors.
    pub(crate) fn without_tags(&self, room: Sectors) -> Sectors {
        let (whole, rest) = (room.get() / (self.data + 1), room.get() % (self.data + 1));
        Sectors::new(whole * self.data + rest.saturating_sub(1))
    }
}

/// A tag sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagPlace {
    /// The number of its group on the drive.
    pub group: u64,
    /// Where it lies on the drive.
    pub lba: Lba,
    /// The sectors of data that it is for, as the array counts them.
    pub covers: Extent,
}

/// Sectors that the array counts one after the other and that lie so on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// As the array counts them.
    pub counted: Extent,
    /// Where the first of them lies on the drive.
    pub lba: Lba,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    runs: Vec<Run>,
    groups: Option<Groups>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// The array's count of its first sector.
    first: Lba,
    /// How many sectors the array counts.
    counted: Sectors,
    /// Where it lies on the drive, with its tag sectors.
    extent: Extent,
}

impl Area {
    /// One run without tag sectors.
    pub fn plain(extent: Extent) -> Self {
        Self::filling(extent, None)
    }

    /// One run with as many sectors as have room there with their tag sectors.
    ///
    /// Panics if none has.
    pub fn filling(extent: Extent, groups: Option<Groups>) -> Self {
        let counted = groups.map_or(extent.sectors, |groups| groups.without_tags(extent.sectors));
        assert!(counted > Sectors::ZERO, "{extent:?} is too small for a tag sector");
        let run = Run {
            first: Lba::ZERO,
            counted,
            extent: Extent::new(
                extent.lba,
                groups.map_or(counted, |groups| groups.with_tags(counted)),
            ),
        };
        Self { runs: vec![run], groups }
    }

    /// The first `size` sectors of a drive that none of `reserved` covers, with their tag sectors between them; nothing if
    /// its places overlap, are not in order, or leave fewer sectors before `end`.
    pub fn around(
        reserved: &[Extent],
        size: Sectors,
        end: Lba,
        groups: Option<Groups>,
    ) -> Option<Self> {
        let mut runs = Vec::new();
        let (mut counted, mut at) = (Sectors::ZERO, Lba::ZERO);
        let behind = Extent::new(end, Sectors::ZERO);
        for place in reserved.iter().chain(std::iter::once(&behind)) {
            if place.lba < at || place.end() > end {
                return None;
            }
            let (room, left) = (place.lba - at, size - counted);
            let sectors = groups.map_or(room, |groups| groups.without_tags(room)).min(left);
            let taken = groups.map_or(sectors, |groups| groups.with_tags(sectors));
            if sectors > Sectors::ZERO {
                let first = Lba::ZERO + counted;
                runs.push(Run { first, counted: sectors, extent: Extent::new(at, taken) });
                counted += sectors;
            }
            at = place.end();
        }
        (counted == size && size > Sectors::ZERO).then_some(Self { runs, groups })
    }

    /// How many sectors it has, tag sectors not counted.
    pub fn size(&self) -> Sectors {
        let last = self.runs.last().expect("an area has a run");
        last.first - Lba::ZERO + last.counted
    }

    /// How its data is cut into groups with tag sectors, if it is.
    pub fn groups(&self) -> Option<Groups> {
        self.groups
    }

    /// The runs as they lie on the drive, in order, with their tag sectors.
    pub fn runs(&self) -> impl Iterator<Item = Extent> {
        self.runs.iter().map(|run| run.extent)
    }

    /// Whether neither a chunk of this size nor a group lies in two runs (E2).
    pub(crate) fn is_cut_between(&self, chunk: Sectors) -> bool {
        let group = self.groups.map_or(1, |groups| groups.data);
        let (_, all_but_last) = self.runs.split_last().expect("an area has a run");
        let is_whole = |run: &Run, of: u64| run.counted.get().is_multiple_of(of);
        self.runs.iter().all(|run| is_whole(run, chunk.get()))
            && all_but_last.iter().all(|run| is_whole(run, group))
    }

    /// Whether what ends before sector `end` and what begins at sector `start` may be one write: no place of the array's own
    /// lies between them, and no tag sector. `start` is not before `end`.
    pub fn are_neighbours(&self, end: Lba, start: Lba) -> bool {
        self.may_pass(end, start) && !self.is_tag_between(end, start)
    }

    fn is_tag_between(&self, end: Lba, start: Lba) -> bool {
        if self.groups.is_none() || end == Lba::ZERO || start >= Lba::ZERO + self.size() {
            return false;
        }
        let last = Lba::new(end.get() - 1);
        self.at(start) - self.at(last) > start - last
    }

    /// The same of one read, which may bring tag sectors.
    pub fn may_pass(&self, end: Lba, start: Lba) -> bool {
        // Almost every area has few runs, and studies have one.
        self.runs.len() == 1
            || !self
                .runs
                .iter()
                .any(|run| run.first > Lba::ZERO && (end..=start).contains(&run.first))
    }

    /// Where an extent of the array's count lies on the drive, with the tag sectors between its sectors.
    ///
    /// Panics unless it lies in one run.
    pub fn on_drive(&self, extent: Extent) -> Extent {
        let run = self.run_of(extent.lba);
        let offset = extent.lba - run.first;
        assert!(offset + extent.sectors <= run.counted, "E2: {extent:?} lies in two runs");
        let first = self.at_in(run, offset);
        if extent.sectors <= Sectors::new(1) {
            return Extent::new(first, extent.sectors);
        }
        let last = self.at_in(run, offset + (extent.sectors - Sectors::new(1)));
        Extent::new(first, last - first + Sectors::new(1))
    }

    /// The same with the tag sector between it and what is counted next, or to the end of the run: all such extents together are the
    /// whole area.
    pub(crate) fn on_drive_to_next(&self, extent: Extent) -> Extent {
        let on_drive = self.on_drive(extent);
        let run = self.run_of(extent.lba);
        let offset = (extent.lba - run.first) + extent.sectors;
        let end = match offset < run.counted {
            true => self.at_in(run, offset),
            false => run.extent.end(),
        };
        Extent::new(on_drive.lba, end - on_drive.lba)
    }

    /// The pieces of the drive that an extent of the array's count lies in, without tag sectors.
    ///
    /// Panics unless it lies in one run.
    pub fn pieces(&self, extent: Extent) -> Vec<Stretch> {
        let on_drive = self.on_drive(extent);
        if on_drive.sectors == extent.sectors {
            return vec![Stretch { counted: extent, lba: on_drive.lba }];
        }
        let mut pieces = Vec::new();
        let mut at = extent.lba;
        while at < extent.end() {
            let tag = self.tag_of(at).expect("there is a tag sector between");
            let lba = self.at(at);
            let end = if lba < tag.lba { at + (tag.lba - lba) } else { tag.covers.end() };
            // Up to the next tag sector: the first part of the next group follows without a gap.
            let end = if lba < tag.lba { end } else { self.next_tag_after(tag, extent.end()) };
            let end = end.min(extent.end());
            pieces.push(Stretch { counted: Extent::new(at, end - at), lba });
            at = end;
        }
        pieces
    }

    /// The tag sector of a sector, where there are tag sectors.
    ///
    /// Panics if the area ends before it.
    pub fn tag_of(&self, lba: Lba) -> Option<TagPlace> {
        let groups = self.groups?;
        let run = self.run_of(lba);
        let offset = (lba - run.first).get();
        let first = offset - offset % groups.data;
        let sectors = groups.data.min(run.counted.get() - first);
        let place = first + first / groups.data + groups.before.min(sectors);
        Some(TagPlace {
            group: (run.first - Lba::ZERO).get() / groups.data + first / groups.data,
            lba: run.extent.lba + Sectors::new(place),
            covers: Extent::new(run.first + Sectors::new(first), Sectors::new(sectors)),
        })
    }

    /// The first sectors of an extent, up to the end of the run that it begins in.
    pub(crate) fn in_run(&self, extent: Extent) -> Extent {
        let run = self.run_of(extent.lba);
        let left = run.counted - (extent.lba - run.first);
        Extent::new(extent.lba, extent.sectors.min(left))
    }

    /// The first sector of the array's count that lies at a sector of the drive or behind it; the last one's end if none
    /// does.
    pub fn count_at(&self, lba: Lba) -> Lba {
        let Some(run) = self.runs.iter().find(|run| lba < run.extent.end()) else {
            return Lba::ZERO + self.size();
        };
        let offset = lba.max(run.extent.lba) - run.extent.lba;
        let Some(groups) = self.groups else { return run.first + offset };
        let (group, inside) = (offset.get() / (groups.data + 1), offset.get() % (groups.data + 1));
        let first = group * groups.data;
        let before = groups.before.min(run.counted.get() - first);
        let passed = inside - u64::from(inside > before);
        run.first + Sectors::new(first + passed).min(run.counted)
    }

    /// Where a sector lies on the drive.
    fn at(&self, lba: Lba) -> Lba {
        let run = self.run_of(lba);
        self.at_in(run, lba - run.first)
    }

    fn at_in(&self, run: &Run, offset: Sectors) -> Lba {
        let tags = self.groups.map_or(0, |Groups { data, before }| {
            // In a last group that has no more sectors than lie before the tag sector, that is behind them.
            offset.get() / data + u64::from(offset.get() % data >= before)
        });
        run.extent.lba + offset + Sectors::new(tags)
    }

    /// The first sector behind the tag sector of the group after this one, or `end` if that comes first.
    fn next_tag_after(&self, tag: TagPlace, end: Lba) -> Lba {
        let next = tag.covers.end();
        if next >= end {
            return end;
        }
        let next = self.tag_of(next).expect("there are tag sectors");
        next.covers.lba + (next.lba - self.at(next.covers.lba))
    }

    fn run_of(&self, lba: Lba) -> &Run {
        let after = self.runs.partition_point(|run| run.first <= lba);
        let run = self.runs[..after].last().filter(|_| lba < Lba::ZERO + self.size());
        run.unwrap_or_else(|| panic!("sector {} is past the area", lba.get()))
    }
}

#[cfg(test)]
mod tests {
    use levelhead_testkit::extent;

    use super::*;

    /// The picture of the module.
    #[test]
    fn places_of_the_array_are_stepped_over() {
        let reserved = [extent(0, 256), extent(356, 16), extent(900, 1)];
        let area = Area::around(&reserved, Sectors::new(200), Lba::new(901), None).unwrap();
        assert_eq!(area.size(), Sectors::new(200));
        assert_eq!(area.on_drive(extent(99, 1)), extent(355, 1));
        assert_eq!(area.in_run(extent(90, 30)), extent(90, 10));
        assert_eq!(area.in_run(extent(100, 30)), extent(100, 30));
        assert_eq!(area.on_drive(extent(100, 100)), extent(372, 100));
        let are_neighbours = |end, start| area.are_neighbours(Lba::new(end), Lba::new(start));
        let cut: Vec<u64> = (1..200).filter(|&lba| !are_neighbours(lba, lba)).collect();
        assert_eq!(cut, [100]);
        assert!(!are_neighbours(99, 101) && are_neighbours(101, 105) && are_neighbours(90, 99));
        assert_eq!(area.runs().collect::<Vec<_>>(), [extent(256, 100), extent(372, 100)]);
    }

    #[test]
    fn every_sector_has_a_place_of_its_own_outside_what_is_reserved() {
        let reserved = [extent(0, 3), extent(5, 2), extent(7, 1), extent(20, 4), extent(39, 1)];
        let area = Area::around(&reserved, Sectors::new(25), Lba::new(40), None).unwrap();
        let mut places: Vec<Lba> = (0..25).map(|lba| area.on_drive(extent(lba, 1)).lba).collect();
        assert!(places.is_sorted());
        places.dedup();
        assert_eq!(places.len(), 25);
        assert!(places.iter().all(|&lba| reserved.iter().all(|place| !place.contains(lba))));
    }

    #[test]
    fn what_does_not_fit_is_no_area() {
        let fits = |reserved: &[Extent], size| {
            Area::around(reserved, Sectors::new(size), Lba::new(40), None).is_some()
        };
        assert!(fits(&[extent(0, 8)], 32));
        assert!(!fits(&[extent(0, 8)], 33), "too large");
        assert!(!fits(&[extent(0, 8)], 0), "nothing");
        assert!(!fits(&[extent(0, 8), extent(7, 2)], 3), "overlap");
        assert!(!fits(&[extent(9, 8), extent(0, 2)], 3), "out of order");
        assert!(!fits(&[extent(39, 2)], 3), "past the end");
    }

    #[test]
    #[should_panic(expected = "E2")]
    fn what_lies_in_two_runs_has_no_place() {
        let area = Area::around(&[extent(5, 1)], Sectors::new(10), Lba::new(40), None).unwrap();
        area.on_drive(extent(4, 2));
    }

    fn with_tags(reserved: &[Extent], size: u64, chunk: u64) -> Area {
        let groups = Groups::of_chunk(Sectors::new(chunk));
        Area::around(reserved, Sectors::new(size), Lba::new(4_000), Some(groups)).unwrap()
    }

    /// The second picture of the module.
    #[test]
    fn tag_sector_lies_in_the_middle_of_its_group() {
        let area = with_tags(&[extent(0, 256)], 128, 16);
        assert_eq!(area.on_drive(extent(0, 128)), extent(256, 130));
        assert_eq!(area.on_drive(extent(32, 1)), extent(289, 1));
        let pieces: Vec<(Extent, u64)> =
            area.pieces(extent(30, 70)).iter().map(|at| (at.counted, at.lba.get())).collect();
        assert_eq!(pieces, [(extent(30, 2), 286), (extent(32, 64), 289), (extent(96, 4), 354)]);
        let tag = area.tag_of(Lba::new(70)).unwrap();
        assert_eq!(tag, TagPlace { group: 1, lba: Lba::new(353), covers: extent(64, 64) });
        let are_neighbours = |end, start| area.are_neighbours(Lba::new(end), Lba::new(start));
        let cut: Vec<u64> = (1..128).filter(|&lba| !are_neighbours(lba, lba)).collect();
        assert_eq!(cut, [32, 96]);
        assert!(area.may_pass(Lba::new(32), Lba::new(32)));
    }

    #[test]
    fn groups_have_whole_chunks_or_cut_large_ones() {
        let of = |chunk| {
            let Groups { data, before } = Groups::of_chunk(Sectors::new(chunk));
            (data, before)
        };
        assert_eq!(
            [1, 3, 16, 20, 40, 64].map(of),
            [(64, 32), (63, 33), (64, 32), (60, 40), (40, 40), (64, 64)]
        );
        assert_eq!([65, 16_384].map(of), [(64, 32); 2]);
    }

    /// Side by side, in steps of any size, they are all of the area.
    #[test]
    fn extents_up_to_what_comes_next_leave_nothing_out() {
        for (chunk, size) in [(1, 200), (3, 63), (16, 400), (20, 140), (40, 160), (64, 130)] {
            let groups = Groups::of_chunk(Sectors::new(chunk)).data;
            let area = with_tags(&[extent(0, 7), extent(7 + 2 * (groups + 1), 3)], size, chunk);
            for step in [1, 7, 16, 32, 33, 64] {
                let (mut lba, mut end) = (Lba::ZERO, None);
                let mut sectors = Sectors::ZERO;
                while lba < Lba::ZERO + area.size() {
                    let left = Lba::ZERO + area.size() - lba;
                    let next = area.in_run(Extent::new(lba, Sectors::new(step).min(left)));
                    let there = area.on_drive_to_next(next);
                    assert!(end.is_none_or(|end| end <= there.lba), "{chunk} {step}: {lba:?}");
                    (end, sectors) = (Some(there.end()), sectors + there.sectors);
                    lba = next.end();
                }
                let all: Sectors = area.runs().map(|run| run.sectors).sum();
                assert_eq!(sectors, all, "{chunk} {step}");
            }
        }
    }

    /// Each sector has a place, tag sectors have others, and all that is asked of a place says the same.
    #[test]
    fn sectors_and_tag_sectors_have_places_of_their_own() {
        for (chunk, size) in [(1, 200), (3, 63), (16, 400), (20, 140), (64, 130), (100, 500)] {
            let groups = Groups::of_chunk(Sectors::new(chunk)).data;
            // One run of two groups, and one with the rest.
            let reserved = [extent(0, 7), extent(7 + 2 * (groups + 1), 3)];
            let area = with_tags(&reserved, size, chunk);
            let mut used = std::collections::BTreeSet::new();
            for lba in (0..size).map(Lba::new) {
                let place = area.on_drive(Extent::new(lba, Sectors::new(1))).lba;
                assert!(used.insert(place), "{chunk}: {lba:?}");
                assert_eq!(area.count_at(place), lba);
                let tag = area.tag_of(lba).unwrap();
                assert!(tag.covers.contains(lba));
                assert_eq!(tag.group, lba.get() / groups, "{chunk}: {lba:?}");
                let first = area.on_drive(Extent::new(tag.covers.lba, tag.covers.sectors));
                assert!(tag.lba >= first.lba && tag.lba <= first.end(), "{chunk}: {tag:?}");
            }
            let tags = (0..size).map(|lba| area.tag_of(Lba::new(lba)).unwrap().lba);
            let tags: std::collections::BTreeSet<Lba> = tags.collect();
            assert_eq!(tags.len() as u64, size.div_ceil(groups));
            assert!(tags.is_disjoint(&used));
            let inside = |lba: &Lba| {
                area.runs().any(|run| run.contains(Extent::new(*lba, Sectors::new(1)).lba))
            };
            assert!(tags.iter().chain(&used).all(inside), "{chunk}");
            let runs: u64 = area.runs().map(|run| run.sectors.get()).sum();
            assert_eq!(runs as usize, tags.len() + used.len());
            for lba in (0..size - 1).map(Lba::new) {
                let [one, two] = [lba, lba + Sectors::new(1)]
                    .map(|lba| area.on_drive(Extent::new(lba, Sectors::new(1))).lba);
                assert_eq!(
                    area.are_neighbours(lba + Sectors::new(1), lba + Sectors::new(1)),
                    one + Sectors::new(1) == two
                );
            }
        }
    }
}
