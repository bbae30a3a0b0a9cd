//! Where a block lies: zones, cylinders, heads, tracks, and the angle at which it passes the head.
//!
//! Blocks are numbered along a track, then head by head through a cylinder, then cylinder by
//! cylinder inwards. Zones differ in blocks per track. Each next track is turned a little (its
//! *skew*), so that its first block arrives just after the drive has switched to it.
//!
//! A place's *slot* is its angle in blocks of its own track:
//!
//! ```text
//! slot = ((head + (heads - 1) * c) * track_skew + c * cylinder_skew + block) mod blocks_per_track
//! ```
//!
//! where `c` counts the cylinders of the zone: `heads - 1` skews of a track and one of a cylinder
//! for each. This is the layout `G1` of DiskSim without defects; there are no spare blocks.

use levelhead_units::{Extent, SECTOR_SIZE, Sectors};

/// A run of cylinders whose tracks are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    /// How many cylinders.
    pub(crate) cylinder_count: u32,
    /// Blocks on one track.
    pub(crate) blocks_per_track: u32,
    /// How far a track is turned against the one before it in its cylinder, in blocks.
    pub(crate) track_skew: u32,
    /// How far a cylinder's first track is turned against the track before it, in blocks.
    pub(crate) cylinder_skew: u32,
}

/// The place of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its cylinder, counted from the outermost.
    pub(crate) cylinder: u32,
    /// Its head.
    pub(crate) head: u32,
    /// Its number on its track.
    pub(crate) block: u32,
    /// Its angle: slot number `slot` of `blocks_per_track`.
    pub(crate) slot: u32,
    /// How many blocks its track has.
    pub(crate) blocks_per_track: u32,
}

/// The map from blocks to places.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    zones: Vec<Bounds>,
    heads: u32,
    blocks_per_sector: u64,
    block_count: u64,
}

/// A zone and where it begins.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    zone: Zone,
    cylinder_first: u32,
    block_first: u64,
}

impl Geometry {
    /// The layout of `zones`, outermost first, under `heads` heads, in blocks of `block_size` bytes.
    pub(crate) fn new(block_size: u32, heads: u32, zones: &[Zone]) -> Self {
        assert!(block_size == 512 || block_size as usize == SECTOR_SIZE);
        assert!(heads > 0);
        let (mut cylinder_count, mut block_count) = (0, 0);
        let zones = zones
            .iter()
            .map(|&zone| {
                let bounds =
                    Bounds { zone, cylinder_first: cylinder_count, block_first: block_count };
                cylinder_count += zone.cylinder_count;
                block_count +=
                    u64::from(zone.cylinder_count) * u64::from(zone.blocks_per_track * heads);
                bounds
            })
            .collect();
        let blocks_per_sector = SECTOR_SIZE as u64 / u64::from(block_size);
        Self { zones, heads, blocks_per_sector, block_count }
    }

    /// How many whole sectors there are.
    pub(crate) fn size(&self) -> Sectors {
        Sectors::new(self.block_count / self.blocks_per_sector)
    }

    /// The first block of `extent` and the one after its last.
    pub(crate) fn blocks(&self, extent: Extent) -> std::ops::Range<u64> {
        extent.lba.get() * self.blocks_per_sector..extent.end().get() * self.blocks_per_sector
    }

    /// Where `block` lies.
    pub(crate) fn place(&self, block: u64) -> Place {
        assert!(block < self.block_count, "block {block} of {}", self.block_count);
        let after = self.zones.partition_point(|bounds| bounds.block_first <= block);
        let Bounds { zone, cylinder_first, block_first } = self.zones[after - 1];
        let (per_track, heads) = (u64::from(zone.blocks_per_track), u64::from(self.heads));
        let (track, on_track) =
            ((block - block_first) / per_track, (block - block_first) % per_track);
        let (cylinder, head) = (track / heads, track % heads);
        let turned = (head + (heads - 1) * cylinder) * u64::from(zone.track_skew)
            + cylinder * u64::from(zone.cylinder_skew);
        // Everything below is smaller than a count of the zone that is 32 bits wide.
        Place {
            cylinder: cylinder_first + cylinder as u32,
            head: head as u32,
            block: on_track as u32,
            slot: ((turned + on_track) % per_track) as u32,
            blocks_per_track: zone.blocks_per_track,
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Lba;

    use super::*;

    fn tiny() -> Geometry {
        let outer =
            Zone { cylinder_count: 3, blocks_per_track: 10, track_skew: 3, cylinder_skew: 4 };
        let inner =
            Zone { cylinder_count: 2, blocks_per_track: 7, track_skew: 2, cylinder_skew: 0 };
        Geometry::new(4096, 2, &[outer, inner])
    }

    #[test]
    fn every_block_has_a_place_and_every_place_a_block() {
        let geometry = tiny();
        assert_eq!(geometry.size(), Sectors::new(3 * 2 * 10 + 2 * 2 * 7));
        let mut slots: Vec<(u32, u32, u32)> = Vec::new();
        for block in 0..geometry.size().get() {
            let place = geometry.place(block);
            assert_eq!(place.blocks_per_track, if place.cylinder < 3 { 10 } else { 7 });
            slots.push((place.cylinder, place.head, place.slot));
        }
        slots.sort_unstable();
        let all: Vec<(u32, u32, u32)> = (0..5)
            .flat_map(|cylinder| (0..2).map(move |head| (cylinder, head)))
            .flat_map(|(cylinder, head)| {
                (0..if cylinder < 3 { 10 } else { 7 }).map(move |slot| (cylinder, head, slot))
            })
            .collect();
        assert_eq!(slots, all);
    }

    #[test]
    fn angles_are_those_of_the_formula() {
        let geometry = tiny();
        let place = |cylinder, head, block, slot, blocks_per_track| Place {
            cylinder,
            head,
            block,
            slot,
            blocks_per_track,
        };
        assert_eq!(geometry.place(0), place(0, 0, 0, 0, 10));
        // The second head of the first cylinder is turned by one track skew.
        assert_eq!(geometry.place(10), place(0, 1, 0, 3, 10));
        // The second cylinder: one track skew and one cylinder skew, block 9: 3 + 4 + 9 = 16.
        assert_eq!(geometry.place(29), place(1, 0, 9, 6, 10));
        // The inner zone counts its own cylinders: (1 + 1 * 1) * 2 + 0 + 2 = 6.
        assert_eq!(geometry.place(60 + 14 + 7 + 2), place(4, 1, 2, 6, 7));
    }

    #[test]
    fn a_sector_of_small_blocks_is_eight_of_them() {
        let zone =
            Zone { cylinder_count: 1, blocks_per_track: 100, track_skew: 0, cylinder_skew: 0 };
        let geometry = Geometry::new(512, 1, &[zone]);
        assert_eq!(geometry.size(), Sectors::new(12));
        assert_eq!(geometry.blocks(Extent::new(Lba::new(2), Sectors::new(3))), 16..40);
    }
}
