//! What of a drive another one holds that is being given a copy, while the array goes on with the drive.
//!
//! ```text
//!                          a write is submitted there, or ends there
//!             +--------------------------------------------------------------+
//!             v                                                              |
//!   region: behind --> open: being read and written --> held: writes go to both drives
//! ```
//!
//! A *region* is some stripes side by side, as in what drives lack.
//!
//! # Invariants
//!
//! - CO1. A region that is neither behind nor open holds on the coming drive what the drive would give, but for what is
//!   inside one of them.
//! - CO2. A write marks its region when it goes out to the drive, and again when it has ended there: what was read of the
//!   region meanwhile may be of before. One to a region that is held goes to the coming drive as well, and marks nothing.
//! - CO3. Two writes of the same sectors are never inside the coming drive together.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use levelhead_block::BufId;
use levelhead_units::{DriveIdx, Extent, Instant, Sectors};

use crate::action::Submit;
use crate::meta::regions::Grid;
use crate::names::SubId;
use crate::shape::{Cell, Layout};

/// Writes of the array that are inside the coming drive at most; others mark their regions.
const TWINS_MAX: usize = 64;

/// Their sectors at most, 32 MiB: they keep them in memory after the answer.
const TWIN_SECTORS_MAX: u64 = 8 << 10;

/// This number of regions is little, or an eighth of all where that is less.
const FEW: u64 = 16;

/// One region of this number is a small share.
const SHARE: u64 = 100;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    pub(crate) drive: DriveIdx,
    /// How long a region is, and how many there are.
    grid: Grid,
    behind: Bits,
    /// Those of the regions behind that the drive did not give as a whole.
    unread: Bits,
    open: Vec<u64>,
    /// Writes inside the drive that went to the coming one as well.
    mirrored: BTreeMap<SubId, Extent>,
    /// What is inside the coming drive.
    pub(crate) inside: BTreeMap<SubId, Coming>,
    /// Whether writes mark when they end (CO2).
    marks_ends: bool,
}

/// A command inside the coming drive.
#[derive(Clone, Debug)]
pub(crate) struct Coming {
    pub(crate) since: Instant,
    pub(crate) what: What,
    /// The command itself, as the drive gets it.
    pub(crate) submit: Submit,
    /// When it is sent again, if the drive has refused it.
    pub(crate) again_at: Option<Instant>,
    /// What it is written from.
    pub(crate) bufs: Vec<BufId>,
}

/// What it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It takes an older superblock off the drive.
    Wipe,
    /// It brings what was read.
    Copy,
    /// It is a write of the array to these sectors, as the layout counts them.
    Twin(Extent),
    /// It is the list of checksums that its tag sectors lack.
    List,
    /// It makes all before it safe.
    Flush,
}

/// What becomes of a write to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// Its regions are behind.
    Marked,
    /// It goes to the coming drive, too.
    Both,
}

impl Copied {
    /// Nothing is copied yet.
    pub(crate) fn new(drive: DriveIdx, grid: Grid, marks_ends: bool) -> Self {
        Self {
            drive,
            behind: Bits::new(grid.regions, true),
            unread: Bits::new(grid.regions, false),
            open: Vec::new(),
            mirrored: BTreeMap::new(),
            inside: BTreeMap::new(),
            grid,
            marks_ends,
        }
    }

    /// How many regions there are.
    pub(crate) fn regions(&self) -> u64 {
        self.grid.regions
    }

    /// How many of them are behind or open.
    pub(crate) fn left(&self) -> u64 {
        self.behind.count()
            + self.open.iter().filter(|&&region| !self.behind.has(region)).count() as u64
    }

    /// How many of those behind can be copied: not those that the drive does not give.
    pub(crate) fn to_do(&self) -> u64 {
        self.behind.count() - self.unread.count()
    }

    /// Whether little is to be copied yet: it is given to the drive when it has its place.
    pub(crate) fn is_little(&self) -> bool {
        self.to_do() <= FEW.min(self.regions() / 8)
    }

    /// Whether that is a small part of the drive.
    pub(crate) fn is_small_share(&self) -> bool {
        self.to_do() <= self.regions() / SHARE
    }

    /// The stripes of a region.
    pub(crate) fn stripes(&self, layout: &Layout, region: u64) -> Range<u64> {
        let first = region << self.grid.shift;
        first..layout.stripes().min((region + 1) << self.grid.shift)
    }

    /// The regions that are behind.
    pub(crate) fn behind(&self) -> impl Iterator<Item = u64> {
        (0..self.grid.regions).filter(|&region| self.behind.has(region))
    }

    /// The next region from this one on that can be copied now.
    pub(crate) fn next(&self, layout: &Layout, from: u64) -> Option<u64> {
        let twins: Vec<RangeInclusive<u64>> =
            self.twins().map(|extent| self.regions_of(layout, extent)).collect();
        let mut at = from;
        loop {
            let region = self.behind.next_without(&self.unread, at)?;
            if !twins.iter().any(|twin| twin.contains(&region)) {
                return Some(region);
            }
            at = region + 1;
        }
    }

    /// A region is read from now on.
    pub(crate) fn begin(&mut self, layout: &Layout, region: u64) {
        // What is inside the drive may land after the read, so its end marks (CO2).
        let mirrored = std::mem::take(&mut self.mirrored);
        let is_elsewhere =
            |(_, extent): &(SubId, Extent)| !self.regions_of(layout, *extent).contains(&region);
        self.mirrored = mirrored.into_iter().filter(is_elsewhere).collect();
        self.behind.set(region, false);
        self.open.push(region);
    }

    /// All of a region was copied, but for what was marked meanwhile.
    pub(crate) fn end(&mut self, region: u64) {
        self.open.retain(|&open| open != region);
    }

    /// The drive did not give all of a region.
    pub(crate) fn note_unread(&mut self, region: u64) {
        self.behind.set(region, true);
        self.unread.set(region, true);
    }

    /// A write of these sectors goes out to the drive.
    pub(crate) fn note_submitted(&mut self, layout: &Layout, sub: SubId, extent: Extent) -> Course {
        let mut regions = self.regions_of(layout, extent);
        let is_held =
            regions.all(|region| !self.behind.has(region) && !self.open.contains(&region));
        let is_free = self.twins().all(|twin| are_apart(twin, extent)); // CO3
        let sectors: u64 = self.twins().map(|twin| twin.sectors.get()).sum();
        let is_room =
            self.twins().count() < TWINS_MAX && sectors + extent.sectors.get() <= TWIN_SECTORS_MAX;
        if is_held && is_free && is_room {
            self.mirrored.insert(sub, extent);
            return Course::Both;
        }
        self.mark(layout, extent);
        Course::Marked
    }

    /// It has ended there.
    pub(crate) fn note_ended(
        &mut self,
        layout: &Layout,
        sub: SubId,
        extent: Extent,
        is_good: bool,
    ) {
        let is_held = self.mirrored.remove(&sub).is_some() && is_good;
        if !is_held && self.marks_ends {
            self.mark(layout, extent);
        }
    }

    /// The drive may hold something else in these sectors than the coming one.
    pub(crate) fn mark(&mut self, layout: &Layout, extent: Extent) {
        for region in self.regions_of(layout, extent) {
            self.behind.set(region, true);
            // It may be what makes the sector readable again.
            self.unread.set(region, false);
        }
    }

    /// The drive is lost: what was under way is behind.
    pub(crate) fn note_lost(&mut self, layout: &Layout) {
        for region in std::mem::take(&mut self.open) {
            self.behind.set(region, true);
        }
        let twins: Vec<Extent> = self.twins().collect();
        twins.into_iter().for_each(|extent| self.mark(layout, extent));
    }

    fn twins(&self) -> impl Iterator<Item = Extent> {
        self.inside.values().filter_map(|coming| match coming.what {
            What::Twin(extent) => Some(extent),
            What::Wipe | What::Copy | What::List | What::Flush => None,
        })
    }

    fn regions_of(&self, layout: &Layout, extent: Extent) -> RangeInclusive<u64> {
        let drive = self.drive;
        let last = extent.lba + (extent.sectors - Sectors::new(1));
        let region = |lba| self.grid.region(layout.symbol(Cell { drive, lba }).0.stripe);
        region(extent.lba)..=region(last)
    }
}

fn are_apart(one: Extent, other: Extent) -> bool {
    one.end() <= other.lba || other.end() <= one.lba
}

/// A bit for each region.
#[derive(Clone, Debug)]
struct Bits {
    words: Vec<u64>,
    count: u64,
}

impl Bits {
    fn new(regions: u64, bit: bool) -> Self {
        let mut words = vec![if bit { u64::MAX } else { 0 }; regions.div_ceil(64) as usize];
        if let (Some(last), used @ 1..) = (words.last_mut(), regions % 64) {
            *last &= (1 << used) - 1;
        }
        Self { words, count: if bit { regions } else { 0 } }
    }

    fn has(&self, at: u64) -> bool {
        self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }

    fn set(&mut self, at: u64, bit: bool) {
        if self.has(at) != bit {
            self.words[at as usize / 64] ^= 1 << (at % 64);
            self.count = if bit { self.count + 1 } else { self.count - 1 };
        }
    }

    fn count(&self) -> u64 {
        self.count
    }

    /// The first bit from `from` on that is set here and not there.
    fn next_without(&self, others: &Self, from: u64) -> Option<u64> {
        let mut kept = u64::MAX << (from % 64);
        for at in from as usize / 64..self.words.len() {
            let word = self.words[at] & !others.words[at] & kept;
            if word != 0 {
                return Some(at as u64 * 64 + u64::from(word.trailing_zeros()));
            }
            kept = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::{Command, Durability, ZeroTail};
    use levelhead_units::Lba;

    use super::*;
    use crate::action::Segments;

    /// More regions than a word has bits; each has one stripe.
    const REGIONS: u64 = 100;

    /// Sectors of the drive; each region has one.
    fn sectors(lba: u64, count: u64) -> Extent {
        Extent::new(Lba::new(lba), Sectors::new(count))
    }

    /// A copy of which every region is held.
    fn copied(marks_ends: bool) -> (Copied, Layout) {
        let layout = Layout::new("raid1:2,chunk=4KiB".parse().unwrap(), Sectors::new(REGIONS));
        let grid = Grid::new(REGIONS, 1);
        let mut copied = Copied::new(DriveIdx::new(1), grid, marks_ends);
        for region in 0..REGIONS {
            assert_eq!(copied.next(&layout, 0), Some(region));
            copied.begin(&layout, region);
            assert_eq!((copied.left(), copied.to_do()), (REGIONS - region, REGIONS - region - 1));
            copied.end(region);
        }
        (copied, layout)
    }

    /// The coming drive has a write of the array inside it.
    fn enter(copied: &mut Copied, sub: u64, extent: Extent) {
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        let command = Command::Write { extent, durability, zero_tail };
        let (sub, segments) = (SubId(sub), Segments::NONE);
        let submit = Submit { drive: copied.drive, sub, command, segments, origin: 0 };
        let (since, what) = (Instant::ZERO, What::Twin(extent));
        let coming = Coming { since, what, submit, again_at: None, bufs: Vec::new() };
        copied.inside.insert(sub, coming);
    }

    /// CO2.
    #[test]
    fn write_to_a_region_that_is_held_marks_it_unless_it_has_ended_well_on_both_drives() {
        for (marks_ends, is_good, is_known, is_marked) in [
            (true, true, true, false),
            (true, false, true, true),
            (true, true, false, true),
            (false, false, true, false),
        ] {
            let (mut copied, layout) = copied(marks_ends);
            let own = sectors(70, 2);
            assert_eq!(copied.note_submitted(&layout, SubId(1), own), Course::Both);
            let sub = if is_known { SubId(1) } else { SubId(2) };
            copied.note_ended(&layout, sub, own, is_good);
            let marked: Vec<u64> = copied.behind().collect();
            assert_eq!(marked, if is_marked { vec![70, 71] } else { vec![] }, "{marks_ends}");
            assert_eq!(copied.left(), marked.len() as u64);
        }
    }

    #[test]
    fn write_to_a_region_that_is_being_copied_marks_it() {
        let (mut copied, layout) = copied(true);
        assert_eq!(copied.note_submitted(&layout, SubId(1), sectors(5, 1)), Course::Both);
        copied.mark(&layout, sectors(5, 1));
        copied.begin(&layout, 5);
        assert_eq!(copied.note_submitted(&layout, SubId(2), sectors(4, 2)), Course::Marked);
        copied.end(5);
        copied.note_ended(&layout, SubId(1), sectors(5, 1), true);
        assert_eq!(copied.behind().collect::<Vec<_>>(), [4, 5], "it was inside when 5 was read");
    }

    /// CO3, and the bound of their memory.
    #[test]
    fn at_most_64_writes_are_inside_the_coming_drive_and_none_over_another() {
        let (mut copied, layout) = copied(true);
        for sub in 0..TWINS_MAX as u64 {
            assert_eq!(copied.note_submitted(&layout, SubId(sub), sectors(sub, 1)), Course::Both);
            enter(&mut copied, sub, sectors(sub, 1));
            let over = copied.note_submitted(&layout, SubId(99), sectors(sub, 1));
            assert_eq!(over, Course::Marked, "{sub} is inside");
        }
        assert_eq!(copied.note_submitted(&layout, SubId(100), sectors(99, 1)), Course::Marked);
        assert_eq!(
            copied.next(&layout, 0),
            Some(99),
            "regions with a write inside are not copied now"
        );
        copied.inside.pop_first();
        assert_eq!(copied.note_submitted(&layout, SubId(101), sectors(98, 1)), Course::Both);
    }

    #[test]
    fn regions_under_way_when_the_drive_is_lost_are_behind() {
        let (mut copied, layout) = copied(true);
        copied.mark(&layout, sectors(8, 1));
        copied.begin(&layout, 8);
        enter(&mut copied, 1, sectors(80, 2));
        copied.note_unread(3);
        copied.note_lost(&layout);
        assert_eq!(copied.behind().collect::<Vec<_>>(), [3, 8, 80, 81]);
        assert_eq!((copied.left(), copied.to_do()), (4, 3));
    }
}
