//! A make's figures, for those who want to look at it.

use levelhead_units::{Extent, Lba, Nanos, Sectors};

use crate::Profile;

/// Places of a drive, evenly apart, that stand for all of them.
const PLACES: u64 = 512;

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

/// Mean times of a read of one sector at a random place, by a drive that has nothing else to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomRead {
    /// Before anything moves.
    pub overhead: Nanos,
    /// From the place of one read to that of the next.
    pub seek: Nanos,
    /// Half a revolution.
    pub latency: Nanos,
    /// In which a sector passes under the head, with its share of the turn from track to track.
    pub sector: Nanos,
}

impl RandomRead {
    /// The whole read.
    pub fn total(&self) -> Nanos {
        self.overhead + self.seek + self.latency + self.sector
    }
}

impl Profile {
    /// Mean times of a random read.
    pub fn random_read(&self) -> RandomRead {
        let (geometry, mechanics) = (self.geometry(), self.mechanics(0));
        let place = |at: u64| geometry.position(geometry.end() * at / PLACES).cylinder;
        let cylinders: Vec<u32> = (0..PLACES).map(place).collect();
        let pairs = cylinders.iter().flat_map(|one| cylinders.iter().map(|two| one.abs_diff(*two)));
        let seek: u64 = pairs.map(|length| u64::from(mechanics.seek[length as usize])).sum();
        let rotation = self.rotation();
        let passing = rotation.get() as f64
            * geometry.turns_per_block()
            * geometry.blocks_per_sector() as f64;
        RandomRead {
            overhead: mechanics.overheads.read.after_read,
            seek: Nanos::new(seek / (PLACES * PLACES)),
            latency: Nanos::new(rotation.get() / 2),
            sector: Nanos::new(passing.round() as u64),
        }
    }

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
    fn a_random_read_takes_the_mean_of_its_parts() {
        // Ten cylinders of a track of 520 sectors: 11 ms for a revolution of 10 ms and a skew of a tenth of it, and
        // seeks of 1 ms for each cylinder, over 3.3 of them on average: (10 * 10 - 1) / (3 * 10).
        let points: Vec<String> = (1..10).map(|d| format!("[{d}, \"{d}ms\"]")).collect();
        let text = format!(
            "name = \"few\"\nblock_size = 4096\nrpm = 6000\nheads = 1\noverhead = \"0.5ms\"\n\
             head_switch = \"0ms\"\nwrite_settle = \"0ms\"\n[seek]\npoints = [{}]\n[[zone]]\n\
             cylinders = 10\nblocks_per_track = 520\ntrack_skew = 0\ncylinder_skew = 52\n",
            points.join(", ")
        );
        let read = Profile::parse(&text).unwrap().random_read();
        assert_eq!(read.overhead, Nanos::from_micros(500));
        assert_eq!(read.latency, Nanos::from_millis(5));
        assert_eq!(read.sector, Nanos::new(21_154), "11 ms of 520 sectors");
        assert!(read.seek.as_millis_f64() > 3.28 && read.seek.as_millis_f64() < 3.32, "{read:?}");
        assert_eq!(read.total(), read.overhead + read.seek + read.latency + read.sector);
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
