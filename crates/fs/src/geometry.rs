//! Where everything lies on the disk.
//!
//! ```text
//!   | group 0            | group 1            | ..             | group n-1     |
//!
//!   group:  | superblock or nothing | bitmaps and sums: near copies | far copies of its fellow's | files and their metadata |
//!           0                       1
//! ```
//!
//! A *unit* is one sector of metadata in several copies: its *lead*, copies right behind it, and one in another group, its
//! *fellow*: a run of bad sectors never takes all of them.
//!
//! Bitmaps and sums are *fixed*: their place follows from the group. All other units are found through a bitmap; the far copy of one
//! lies in the fellow at the same offset, so that a pointer names the lead alone.
//!
//! # Invariants
//!
//! - GE1. The copies of a unit, and those of any two units, never overlap.
//! - GE2. No fixed place is beyond the end of its group.

use levelhead_units::{Extent, Lba, Sectors};

use crate::format::unit::BODY;

/// Sectors that one sector of a bitmap speaks of.
pub const BITS: u64 = BODY as u64 * 8;

/// Sectors that one sector of sums speaks of.
pub const SUMS: u64 = BODY as u64 / 4;

/// The fewest groups: the superblock has three copies far apart.
pub const GROUPS_MIN: u64 = 4;

/// The size of a group, unless the disk is small: 1 GiB.
pub const GROUP_SECTORS: u64 = 1 << 18;

/// The smallest group: 4 MiB.
pub const GROUP_SECTORS_MIN: u64 = 1 << 10;

/// The most copies of a unit.
pub const COPIES_MAX: u8 = 4;

/// The journal is a 64th of the disk, 1 MiB at least,
const JOURNAL_SHARE: u64 = 64;
const JOURNAL_MIN: u64 = 256;

/// and 128 MiB at most.
const JOURNAL_MAX: u64 = 1 << 15;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Sectors of the disk that the filesystem uses.
    pub sectors: u64,
    /// Sectors of a group; the last one may have fewer.
    pub group_sectors: u64,
    /// Copies of each unit, from 1 to 4.
    pub copies: u8,
}

/// A group of sectors that has its own bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupIdx(pub u64);

impl Geometry {
    /// That of a disk, or nothing if the disk is too small ([`Geometry::SECTORS_MIN`]).
    pub fn of_disk(sectors: Sectors, copies: u8) -> Option<Self> {
        assert!((1..=COPIES_MAX).contains(&copies), "{copies} copies");
        if sectors < Self::SECTORS_MIN {
            return None;
        }
        let even = sectors.get() / GROUPS_MIN;
        let group_sectors = GROUP_SECTORS.min(even);
        let mut geometry = Self { sectors: sectors.get(), group_sectors, copies };
        let rest = sectors.get() % group_sectors;
        // A last group that is hardly more than its fixed places is of no use.
        if rest < 2 * geometry.fixed_end() || rest < GROUP_SECTORS_MIN {
            geometry.sectors -= rest;
        }
        Some(geometry)
    }

    /// The smallest disk: 16 MiB.
    pub const SECTORS_MIN: Sectors = Sectors::new(GROUPS_MIN * GROUP_SECTORS_MIN);

    /// Whether the numbers, as they were read, are those of a disk.
    pub fn is_sane(&self) -> bool {
        let Self { sectors, group_sectors, copies } = *self;
        let is_large = (GROUP_SECTORS_MIN..=GROUP_SECTORS).contains(&group_sectors);
        let has_groups = is_large && sectors / group_sectors >= GROUPS_MIN && sectors < 1 << 48;
        if !has_groups || !(1..=COPIES_MAX).contains(&copies) {
            return false;
        }
        let rest = sectors % group_sectors;
        rest == 0 || rest >= 2 * self.fixed_end()
    }

    /// How many groups there are.
    pub fn groups(&self) -> u64 {
        self.sectors.div_ceil(self.group_sectors)
    }

    /// All of a group.
    pub fn group(&self, group: GroupIdx) -> Extent {
        assert!(group.0 < self.groups(), "{group:?} of {}", self.groups());
        let first = group.0 * self.group_sectors;
        let sectors = self.group_sectors.min(self.sectors - first);
        Extent::new(Lba::new(first), Sectors::new(sectors))
    }

    /// The group of a sector.
    pub fn group_of(&self, lba: Lba) -> GroupIdx {
        assert!(lba.get() < self.sectors, "{lba:?} of {}", self.sectors);
        GroupIdx(lba.get() / self.group_sectors)
    }

    /// Its place in the group.
    pub fn offset(&self, lba: Lba) -> u64 {
        lba.get() % self.group_sectors
    }

    /// The group that has the far copies of this one's units.
    pub fn fellow(&self, group: GroupIdx) -> GroupIdx {
        GroupIdx((group.0 + self.groups() / 2) % self.groups())
    }

    /// The groups from one on in the order in which files fill them: after each comes its fellow, so that of those that are not full yet
    /// pairs are left, in which units find room.
    pub fn fill_order(&self, first: GroupIdx) -> impl Iterator<Item = GroupIdx> + use<> {
        let (groups, half) = (self.groups(), self.groups() / 2);
        (0..groups).map(move |step| {
            let on = if groups % 2 == 1 { step * half } else { step / 2 + step % 2 * half };
            GroupIdx((first.0 + on) % groups)
        })
    }

    /// Offsets of each group, a thirty-second of it, that files take last: a unit needs the same place in a group and in its fellow, and
    /// files that fill one group after the other would leave none.
    pub fn unit_zone(&self) -> std::ops::Range<u64> {
        let from = self.fixed_end() + self.journal().sectors.get();
        from..from + (self.group_sectors / 32).max(32)
    }

    /// Whether a sector may hold metadata at all.
    pub fn may_lead(&self, lba: Lba) -> bool {
        if lba.get() >= self.sectors {
            return false;
        }
        let (group, offset) = (self.group_of(lba), self.offset(lba));
        let own = self.group(group).sectors.get();
        let is_fixed = offset >= 1 && offset < 1 + self.fixed_units() * self.near();
        let fellow = self.group(self.fellow(group)).sectors.get();
        let is_free = offset >= self.fixed_end() && offset + self.near() <= own && offset < fellow;
        (is_fixed && (offset - 1).is_multiple_of(self.near())) || is_free
    }

    /// Whether the units of the summary may lie from a sector on: all of them in one group.
    pub fn may_lead_summary(&self, first: Lba) -> bool {
        // Of each group it has four bytes, as sums have of each sector.
        let more = (self.groups().div_ceil(SUMS) - 1) * self.near();
        let last = Lba::new(first.get().saturating_add(more));
        self.may_lead(first) && self.may_lead(last) && self.group_of(first) == self.group_of(last)
    }

    /// Copies that lie side by side, the lead among them.
    pub fn near(&self) -> u64 {
        u64::from(self.copies - 1).max(1)
    }

    /// Whether there is one far away.
    pub fn has_far(&self) -> bool {
        self.copies > 1
    }

    fn bitmap_units(&self) -> u64 {
        self.group_sectors.div_ceil(BITS)
    }

    fn sums_units(&self) -> u64 {
        self.group_sectors.div_ceil(SUMS)
    }

    /// Units of a group whose place is fixed.
    pub fn fixed_units(&self) -> u64 {
        self.bitmap_units() + self.sums_units()
    }

    /// Where what is not fixed begins in a group.
    pub fn fixed_end(&self) -> u64 {
        1 + self.fixed_units() * (self.near() + u64::from(self.has_far()))
    }

    /// The lead of the bitmap that speaks of a sector.
    pub fn bitmap_of(&self, lba: Lba) -> Lba {
        self.fixed(self.group_of(lba), self.offset(lba) / BITS)
    }

    /// The first sector that the bitmap with this lead speaks of, counted in its group, and how many follow.
    pub fn bits_of(&self, group: GroupIdx, bitmap: u64) -> std::ops::Range<u64> {
        let from = bitmap * BITS;
        from..self.group(group).sectors.get().min(from + BITS)
    }

    /// The leads of a group's bitmaps.
    pub fn bitmaps(&self, group: GroupIdx) -> impl Iterator<Item = Lba> {
        (0..self.bitmap_units()).map(move |at| self.fixed(group, at))
    }

    /// The lead of the sums that have that of a sector, and its place among them.
    pub fn sum_of(&self, lba: Lba) -> SumPlace {
        let offset = self.offset(lba);
        let lead = self.fixed(self.group_of(lba), self.bitmap_units() + offset / SUMS);
        SumPlace { lead, at: (offset % SUMS) as usize }
    }

    /// Whether a lead is that of a bitmap or of sums: their places are never taken for anything else.
    pub fn is_fixed(&self, lead: Lba) -> bool {
        self.offset(lead) < self.fixed_end()
    }

    /// How many units with fixed places there are from this lead on, itself included; 0 if its place is not fixed.
    pub fn fixed_from(&self, lead: Lba) -> u64 {
        match self.is_fixed(lead) {
            true => self.fixed_units().saturating_sub((self.offset(lead) - 1) / self.near()),
            false => 0,
        }
    }

    fn fixed(&self, group: GroupIdx, unit: u64) -> Lba {
        assert!(unit < self.fixed_units(), "GE2: {unit}");
        self.group(group).lba + Sectors::new(1 + unit * self.near())
    }

    /// Where the copies of a unit lie, the lead first.
    ///
    /// Panics unless the sector may lead ([`Geometry::may_lead`]).
    pub fn copies_of(&self, lead: Lba) -> Vec<Lba> {
        assert!(self.may_lead(lead), "{lead:?} leads no unit");
        let mut copies: Vec<Lba> = (0..self.near()).map(|at| lead + Sectors::new(at)).collect();
        if self.has_far() {
            let offset = self.offset(lead);
            let fellow = self.group(self.fellow(self.group_of(lead))).lba;
            let fixed = self.fixed_units() * self.near();
            let far = match offset < self.fixed_end() {
                true => 1 + fixed + (offset - 1) / self.near(),
                false => offset,
            };
            copies.push(fellow + Sectors::new(far));
        }
        copies
    }

    /// The sectors of a unit: its near copies, and the far one.
    ///
    /// Panics unless the sector may lead ([`Geometry::may_lead`]).
    pub fn unit_extents(&self, lead: Lba) -> Vec<Extent> {
        let mut extents = vec![Extent::new(lead, Sectors::new(self.near()))];
        if self.has_far() {
            let far = *self.copies_of(lead).last().expect("a unit has copies");
            extents.push(Extent::new(far, Sectors::new(1)));
        }
        extents
    }

    /// Where the superblock lies.
    pub fn superblocks(&self) -> [Lba; 3] {
        let groups = self.groups();
        [0, groups / 2, groups - 1].map(|group| self.group(GroupIdx(group)).lba)
    }

    /// Where the journal lies: behind the fixed places of the group after the middle one's.
    pub fn journal(&self) -> Extent {
        let wanted = (self.sectors / JOURNAL_SHARE).clamp(JOURNAL_MIN, JOURNAL_MAX);
        let group = self.group(GroupIdx(self.groups() / 2));
        let most = (group.sectors.get() - self.fixed_end()) / 2;
        let first = group.lba + Sectors::new(self.fixed_end());
        Extent::new(first, Sectors::new(wanted.min(most)))
    }
}

/// Where the sum of a sector lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumPlace {
    /// The unit's lead.
    pub lead: Lba,
    /// Its place among the unit's sums.
    pub at: usize,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn copies_never_overlap_and_lie_far_apart() {
        for sectors in [4_096, 5_000, 9_999, 70_000] {
            for copies in 1..=COPIES_MAX {
                let geometry = Geometry::of_disk(Sectors::new(sectors), copies).unwrap();
                assert!(geometry.is_sane());
                let mut taken: BTreeSet<u64> =
                    geometry.superblocks().map(Lba::get).into_iter().collect();
                assert_eq!(taken.len(), 3);
                for group in (0..geometry.groups()).map(GroupIdx) {
                    for unit in 0..geometry.fixed_units() {
                        let all = geometry.copies_of(geometry.fixed(group, unit));
                        assert_eq!(all.len(), usize::from(copies));
                        for lba in all {
                            assert!(lba.get() < geometry.sectors, "GE2");
                            assert!(taken.insert(lba.get()), "GE1: {lba:?}");
                        }
                    }
                    let free = geometry.group(group).lba + Sectors::new(geometry.fixed_end());
                    let all = geometry.copies_of(free);
                    assert_eq!(all.len(), usize::from(copies));
                    assert!(all.iter().all(|lba| !taken.contains(&lba.get())), "GE1");
                    let far = all.last().unwrap().get().abs_diff(free.get());
                    assert!(copies == 1 || far >= geometry.group_sectors, "{far}");
                }
                let journal = geometry.journal();
                assert!(journal.iter().all(|lba| !taken.contains(&lba.get())));
                assert!(journal.sectors >= Sectors::new(JOURNAL_MIN), "{journal:?}");
            }
        }
    }

    #[test]
    fn files_fill_every_group_once_and_leave_pairs() {
        for sectors in [9_000, 11_250, 13_500, 2_000_000] {
            let geometry = Geometry::of_disk(Sectors::new(sectors), 3).unwrap();
            let first = GroupIdx(geometry.groups() - 1);
            let order: Vec<GroupIdx> = geometry.fill_order(first).collect();
            let all: BTreeSet<u64> = order.iter().map(|group| group.0).collect();
            assert_eq!((order[0], all.len() as u64), (first, geometry.groups()));
            for count in 2..=order.len() {
                let left = &order[order.len() - count..];
                assert!(left.iter().any(|&group| left.contains(&geometry.fellow(group))));
            }
        }
    }

    #[test]
    fn every_sector_has_a_bit_and_a_sum_of_its_own() {
        let geometry = Geometry::of_disk(Sectors::new(4 * 33_000 + 17), 3).unwrap();
        assert_eq!((geometry.groups(), geometry.sectors), (4, 4 * 33_004));
        let mut seen = BTreeSet::new();
        for lba in (0..geometry.sectors).map(Lba::new) {
            let SumPlace { lead, at } = geometry.sum_of(lba);
            assert!((at as u64) < SUMS && geometry.may_lead(lead));
            assert!(seen.insert((lead, at)), "{lba:?}");
            assert!(geometry.may_lead(geometry.bitmap_of(lba)));
        }
        let bits: u64 = (0..geometry.groups())
            .flat_map(|group| (0..2).map(move |bitmap| (GroupIdx(group), bitmap)))
            .map(|(group, bitmap)| geometry.bits_of(group, bitmap))
            .map(|range| range.end - range.start)
            .sum();
        assert_eq!(bits, geometry.sectors);
    }

    #[test]
    fn summary_lies_in_one_group() {
        let large = Geometry::of_disk(Sectors::new(1009 << 18), 3).unwrap();
        let small = Geometry { sectors: 1008 << 18, ..large };
        let end = large.group(GroupIdx(0)).end().get();
        for (geometry, first, may) in [
            (small, end - 2, true),
            (large, end - 2, false),
            (large, end - 4, true),
            (large, large.sectors - 2, false),
            (large, u64::MAX, false),
            (large, 0, false),
        ] {
            assert_eq!(geometry.may_lead_summary(Lba::new(first)), may, "{first}");
        }
    }

    #[test]
    fn disk_that_is_too_small_has_none_and_a_tail_that_is_too_short_is_left_out() {
        assert!(Geometry::of_disk(Sectors::new(4_095), 3).is_none());
        let large = Geometry::of_disk(Sectors::new(15 * (1 << 28) + 100), 3).unwrap();
        assert_eq!((large.groups(), large.sectors), (15 << 10, 15 << 28));
    }
}
