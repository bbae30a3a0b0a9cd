//! A make's figures, for those who want to look at it.

use levelhead_units::{Extent, Lba, Nanos, Sectors};

use crate::Profile;

/// A zone: tracks of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneFigures {
    /// Its whole sectors.
    pub extent: Extent,
    /// The cylinder it begins with, counted from the outermost.
    pub cylinder: u32,
    /// The drive's own blocks on a track of it.
    pub blocks_per_track: u32,
}

impl Profile {
    /// How many heads it has.
    pub fn heads(&self) -> u32 {
        self.geometry().heads()
    }

    /// How many cylinders it has, those without data in between included.
    pub fn cylinders(&self) -> u32 {
        let geometry = self.geometry();
        geometry.position(geometry.end() - 1).cylinder + 1
    }

    /// Its zones, outermost first. One that holds no whole sector is left out.
    pub fn zones(&self) -> Vec<ZoneFigures> {
        let geometry = self.geometry();
        let (size, blocks_per_sector) = (geometry.size().get(), geometry.blocks_per_sector());
        geometry
            .zones()
            .filter_map(|(first, after, blocks_per_track, cylinder)| {
                let (first, after) = (first.div_ceil(blocks_per_sector), after / blocks_per_sector);
                let after = after.min(size);
                let extent = Extent::new(Lba::new(first), Sectors::new(after.checked_sub(first)?));
                (after > first).then_some(ZoneFigures { extent, cylinder, blocks_per_track })
            })
            .collect()
    }

    /// The time of a seek over `cylinders` cylinders before a read; none if no two cylinders of the drive
    /// are that far apart.
    pub fn seek(&self, cylinders: u32) -> Option<Nanos> {
        let is_there = cylinders < self.cylinders();
        is_there.then(|| Nanos::new(self.mechanics(0).seek[cylinders as usize].into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_a_drive_of_a_few_sectors_and_some_blocks_more_are_whole() {
        let text = "name = \"few\"\nblock_size = 512\nrpm = 6000\nheads = 1\noverhead = \"0ms\"\n\
                    head_switch = \"0ms\"\nwrite_settle = \"0ms\"\n[seek]\npoints = [[1, \"1ms\"]]\n\
                    [[zone]]\ncylinders = 1\nblocks_per_track = 23\ntrack_skew = 0\n\
                    cylinder_skew = 0\n";
        let zones = Profile::parse(text).unwrap().zones();
        assert_eq!(zones[0].extent, Extent::new(Lba::ZERO, Sectors::new(2)));
    }

    #[test]
    fn zones_cover_the_drive_and_seeks_reach_over_it() {
        for name in Profile::names() {
            let profile = Profile::shipped(name).unwrap();
            let zones = profile.zones();
            let sectors: u64 = zones.iter().map(|zone| zone.extent.sectors.get()).sum();
            // A sector across a boundary of zones belongs to neither.
            let missing = profile.size().get() - sectors;
            assert!(missing <= zones.len() as u64, "{name}: {missing} sectors are missing");
            assert!(zones.is_sorted_by_key(|zone| zone.cylinder), "{name}");
            assert_eq!(profile.seek(0), Some(Nanos::ZERO), "{name}");
            assert!(
                profile.seek(profile.cylinders() - 1).unwrap() > Nanos::from_millis(5),
                "{name}"
            );
            assert_eq!(profile.seek(profile.cylinders()), None, "{name}");
            assert!((1..=18).contains(&profile.heads()), "{name}");
        }
    }
}
