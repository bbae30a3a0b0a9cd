//! Regions of a drive, some stripes side by side each, with one bit a region: what a drive lacks.

use std::ops::Range;

/// The most regions of a drive: 15 sectors of bits, regions of 64 MiB on a drive of 18 TB.
pub const REGIONS_MAX: u64 = 15 * 4_096 * 8;

/// How a drive's stripes are cut into regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// A region has two to the power of this many stripes.
    pub shift: u8,
    /// How many regions there are.
    pub regions: u64,
}

impl Grid {
    /// A drive with this many stripes, in regions of at least `least` stripes.
    pub(crate) fn new(stripes: u64, least: u64) -> Self {
        let fits = |shift: &u8| 1_u64 << shift >= least && ((stripes - 1) >> shift) < REGIONS_MAX;
        let shift = (0..63).find(fits).expect("one region always fits");
        Self { shift, regions: ((stripes - 1) >> shift) + 1 }
    }

    /// The same with regions of two to the power of `shift` stripes, if that is possible.
    pub(super) fn of(stripes: u64, shift: u8) -> Option<Self> {
        if shift >= 63 || stripes == 0 {
            return None;
        }
        let regions = ((stripes - 1) >> shift) + 1;
        (regions <= REGIONS_MAX).then_some(Self { shift, regions })
    }

    /// The region that a stripe is in.
    pub(crate) fn region(self, stripe: u64) -> u64 {
        stripe >> self.shift
    }

    /// How many words of 64 bits its bits take.
    pub(super) fn words(self) -> usize {
        self.regions.div_ceil(64) as usize
    }
}

/// Some of a drive's regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    grid: Grid,
    words: Vec<u64>,
}

impl Regions {
    /// None of them.
    pub fn none(grid: Grid) -> Self {
        Self { grid, words: vec![0; grid.words()] }
    }

    /// Those whose bits are set; nothing if there are bits behind the last region, or too few.
    pub(super) fn of(grid: Grid, words: Vec<u64>) -> Option<Self> {
        let used = grid.regions % 64;
        let is_behind = |last: &u64| used > 0 && last >> used != 0;
        let is_good = words.len() == grid.words() && !words.last().is_some_and(is_behind);
        is_good.then_some(Self { grid, words })
    }

    /// How the drive is cut into them.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The bits, of the first region first.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Whether the region of a stripe is one of them.
    pub fn has(&self, stripe: u64) -> bool {
        self.has_region(self.grid.region(stripe))
    }

    fn has_region(&self, region: u64) -> bool {
        self.words[region as usize / 64] & (1 << (region % 64)) != 0
    }

    /// Adds the region of a stripe; returns whether it is new.
    pub(crate) fn add(&mut self, stripe: u64) -> bool {
        self.add_region(self.grid.region(stripe))
    }

    fn add_region(&mut self, region: u64) -> bool {
        let (word, bit) = (&mut self.words[region as usize / 64], 1 << (region % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Adds the regions of these stripes; returns whether one of them is new.
    pub(crate) fn add_all(&mut self, stripes: Range<u64>) -> bool {
        if stripes.is_empty() {
            return false;
        }
        let (first, last) = (self.grid.region(stripes.start), self.grid.region(stripes.end - 1));
        (first..=last).fold(false, |is_new, region| self.add_region(region) | is_new)
    }

    /// Adds all.
    pub(crate) fn fill(&mut self) {
        for region in 0..self.grid.regions {
            self.add_region(region);
        }
    }

    /// The first stripe from `from` on whose region is one of them.
    pub(crate) fn next(&self, from: u64) -> Option<u64> {
        let first = self.grid.region(from);
        let region = self.next_region(first, true)?;
        Some(if region == first { from } else { region << self.grid.shift })
    }

    /// The end of the stripes side by side from `from` on whose regions are some of them; nothing where that is the end of
    /// the drive.
    pub(crate) fn end_of_run(&self, from: u64) -> Option<u64> {
        Some(self.next_region(self.grid.region(from), false)? << self.grid.shift)
    }

    /// How many there are, those before the region of `from` aside.
    pub(crate) fn count_from(&self, from: u64) -> u64 {
        let first = self.grid.region(from);
        let before = (first % 64) as u32;
        let words = self.words.iter().skip(first as usize / 64);
        let counts = words.zip(0..).map(|(word, at)| match at {
            0 => (word >> before).count_ones(),
            _ => word.count_ones(),
        });
        counts.map(u64::from).sum()
    }

    /// The first region from `from` on that is one of them, or is none.
    fn next_region(&self, from: u64, is_one: bool) -> Option<u64> {
        let mut at = from;
        while at < self.grid.regions {
            let word = self.words[at as usize / 64];
            let word = if is_one { word } else { !word } >> (at % 64);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return Some(found).filter(|&found| found < self.grid.regions);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_found_counted_and_kept_in_their_bounds() {
        let mut some = Regions::none(Grid::new(1_000, 4));
        assert_eq!(some.grid(), Grid { shift: 2, regions: 250 });
        assert_eq!((some.next(0), some.count_from(0)), (None, 0));
        assert!(some.add_all(17..40) && !some.add(39) && some.add(999));
        assert_eq!((some.next(0), some.next(18), some.next(40)), (Some(16), Some(18), Some(996)));
        assert_eq!((some.end_of_run(17), some.end_of_run(996)), (Some(40), None));
        assert_eq!((some.count_from(0), some.count_from(20), some.count_from(40)), (7, 6, 1));
        assert!(!some.add_all(5..5) && !some.has(15) && some.has(16));
        some.fill();
        assert_eq!((some.count_from(0), some.end_of_run(0)), (250, None));
        assert_eq!(Regions::of(some.grid(), some.words().to_vec()), Some(some.clone()));
        assert_eq!(Regions::of(some.grid(), vec![u64::MAX; 4]), None, "bits behind the last");
        assert_eq!(Regions::of(some.grid(), vec![0; 3]), None, "a word too few");
    }

    #[test]
    fn large_drive_has_larger_regions() {
        let stripes = 18_000_000_000_000 / 65_536;
        let grid = Grid::new(stripes, 32);
        assert!(grid.regions <= REGIONS_MAX && grid.shift == 10, "{grid:?}");
        assert_eq!(Grid::of(stripes, grid.shift), Some(grid));
        assert_eq!(Grid::of(stripes, 1), None);
        assert_eq!(Grid::new(1, 1), Grid { shift: 0, regions: 1 });
    }
}
