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
//! # Invariants
//!
//! - E1. Runs do not overlap, and lie on the drive in the order in which they are counted.
//! - E2. Where the array is cut into chunks, no chunk lies in two runs: their lengths are multiples of it.

use levelhead_units::{Extent, Lba, Sectors};

/// No member has more sectors: 2^52 bytes, 4 PiB.
pub const DRIVE_SECTORS_MAX: u64 = 1 << 40;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    runs: Vec<Run>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// The array's count of its first sector.
    first: Lba,
    /// Where it lies on the drive.
    extent: Extent,
}

impl Area {
    /// One run.
    pub fn plain(extent: Extent) -> Self {
        Self { runs: vec![Run { first: Lba::ZERO, extent }] }
    }

    /// The first `size` sectors of a drive that none of `reserved` covers; nothing if its places overlap,
    /// are not in order, or leave fewer sectors before `end`.
    pub fn around(reserved: &[Extent], size: Sectors, end: Lba) -> Option<Self> {
        let mut runs = Vec::new();
        let (mut counted, mut at) = (Sectors::ZERO, Lba::ZERO);
        let behind = Extent::new(end, Sectors::ZERO);
        for place in reserved.iter().chain(std::iter::once(&behind)) {
            if place.lba < at || place.end() > end {
                return None;
            }
            let sectors = (place.lba - at).min(size - counted);
            if sectors > Sectors::ZERO {
                runs.push(Run { first: Lba::ZERO + counted, extent: Extent::new(at, sectors) });
                counted += sectors;
            }
            at = place.end();
        }
        (counted == size && size > Sectors::ZERO).then_some(Self { runs })
    }

    /// How many sectors it has.
    pub fn size(&self) -> Sectors {
        let last = self.runs.last().expect("an area has a run");
        last.first - Lba::ZERO + last.extent.sectors
    }

    /// The runs as they lie on the drive, in order.
    pub fn runs(&self) -> impl Iterator<Item = Extent> {
        self.runs.iter().map(|run| run.extent)
    }

    /// Whether what ends before sector `end` and what begins at sector `start` may be one command: no place
    /// of the array's own lies between them. `start` is not before `end`.
    pub fn are_neighbours(&self, end: Lba, start: Lba) -> bool {
        // Almost every area has few runs, and studies have one.
        self.runs.len() == 1
            || !self
                .runs
                .iter()
                .any(|run| run.first > Lba::ZERO && (end..=start).contains(&run.first))
    }

    /// Where an extent of the array's count lies on the drive.
    ///
    /// Panics unless it lies in one run.
    pub fn on_drive(&self, extent: Extent) -> Extent {
        let run = self.run(extent.lba).unwrap_or_else(|| panic!("{extent:?} is past the area"));
        let offset = extent.lba - run.first;
        assert!(offset + extent.sectors <= run.extent.sectors, "E2: {extent:?} lies in two runs");
        Extent::new(run.extent.lba + offset, extent.sectors)
    }

    /// The first sectors of an extent, up to the end of the run that it begins in.
    pub(crate) fn in_run(&self, extent: Extent) -> Extent {
        let run = self.run(extent.lba).unwrap_or_else(|| panic!("{extent:?} is past the area"));
        let left = run.extent.sectors - (extent.lba - run.first);
        Extent::new(extent.lba, extent.sectors.min(left))
    }

    /// The first sector of the array's count that lies at a sector of the drive or behind it; the last one's end if none
    /// does.
    pub fn count_at(&self, lba: Lba) -> Lba {
        let behind = self.runs.iter().find(|run| lba < run.extent.end());
        behind.map_or(Lba::ZERO + self.size(), |run| {
            run.first + (lba.max(run.extent.lba) - run.extent.lba)
        })
    }

    fn run(&self, lba: Lba) -> Option<&Run> {
        let after = self.runs.partition_point(|run| run.first <= lba);
        self.runs[..after].last().filter(|_| lba < Lba::ZERO + self.size())
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
        let area = Area::around(&reserved, Sectors::new(200), Lba::new(901)).unwrap();
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
        let area = Area::around(&reserved, Sectors::new(25), Lba::new(40)).unwrap();
        let mut places: Vec<Lba> = (0..25).map(|lba| area.on_drive(extent(lba, 1)).lba).collect();
        assert!(places.is_sorted());
        places.dedup();
        assert_eq!(places.len(), 25);
        assert!(places.iter().all(|&lba| reserved.iter().all(|place| !place.contains(lba))));
    }

    #[test]
    fn what_does_not_fit_is_no_area() {
        let fits = |reserved: &[Extent], size| {
            Area::around(reserved, Sectors::new(size), Lba::new(40)).is_some()
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
        let area = Area::around(&[extent(5, 1)], Sectors::new(10), Lba::new(40)).unwrap();
        area.on_drive(extent(4, 2));
    }
}
