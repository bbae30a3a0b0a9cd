//! Where a block lies: zones, cylinders, heads, tracks, and the angle at which it passes the head.
//!
//! Blocks are numbered along a track, then head by head through a cylinder, then cylinder by
//! cylinder inwards. Zones differ in blocks per track. Each next track is turned a little (its
//! *skew*), so that its first block arrives just after the drive has switched to it.
//!
//! A position's *slot* is its angle in blocks of its own track:
//!
//! ```text
//! slot = ((head + (heads - 1) * c) * track_skew + c * cylinder_skew + block) mod blocks_per_track
//! ```
//!
//! where `c` counts the cylinders of the zone: `heads - 1` skews of a track and one of a cylinder
//! for each. This is the layout `G1` of DiskSim.
//!
//! # Spare blocks
//!
//! Not every block of the medium holds data. A zone may begin with unused blocks; it is cut into
//! *ranges* of cylinders (usually one range, the whole zone), each of which ends with spare blocks;
//! and the factory skips bad blocks by *slipping*: everything that follows in the range moves on by
//! one, into the spares. The angle of a slipped block is lost, nothing else.
//!
//! ```text
//! | front | data .. x data .. x data ..... | spares |    x: slipped, out of the spares
//! ```

use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

/// A run of cylinders whose tracks are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Zone {
    /// How many cylinders before it hold no data.
    pub(crate) gap: u32,
    /// How many cylinders.
    pub(crate) cylinder_count: u32,
    /// Blocks on one track.
    pub(crate) blocks_per_track: u32,
    /// How far a track is turned against the one before it in its cylinder, in blocks.
    pub(crate) track_skew: u32,
    /// How far a cylinder's first track is turned against the track before it, in blocks.
    pub(crate) cylinder_skew: u32,
    /// How many blocks at its beginning hold no data.
    pub(crate) front: u32,
    /// How many blocks at the end of every whole range are spare, slipped ones included.
    pub(crate) spares: u32,
    /// How many cylinders make a range; 0 stands for all of the zone.
    pub(crate) spare_cylinders: u32,
    /// The slipped blocks, by their numbers on the medium from the zone's first, rising.
    pub(crate) slips: Vec<u32>,
}

/// The position of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPosition {
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
    /// How many blocks follow each other on the track from here on, this one included.
    pub(crate) run: u32,
}

/// The map from blocks to positions.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    zones: Vec<Bounds>,
    heads: u32,
    blocks_per_sector: u64,
    block_count: u64,
}

/// A zone and where it begins.
#[derive(Clone, Debug)]
struct Bounds {
    blocks_per_track: u32,
    track_skew: u32,
    cylinder_skew: u32,
    cylinder_first: u32,
    /// The first data block, and the one after the last.
    block_first: u64,
    block_end: u64,
    /// How many blocks of the medium before the first data block.
    front: u64,
    sparing: Option<Sparing>,
}

/// Where a zone's data blocks are not simply one after the other.
#[derive(Clone, Debug)]
struct Sparing {
    /// Data blocks in a range, and blocks of the medium.
    range_data: u64,
    range_blocks: u64,
    slips: Vec<Slip>,
}

/// One slipped block.
#[derive(Clone, Copy, Debug)]
struct Slip {
    /// Its range.
    range: u64,
    /// The data block of the range that would lie there: this one and all later ones move on.
    at: u64,
}

impl Geometry {
    /// The layout of `zones`, outermost first, under `heads` heads, in blocks of `block_size` bytes,
    /// of which the first `block_count` are used, if that is given.
    ///
    /// Every zone must have room for its front, its spares and its slips: [`Zone::data`].
    pub(crate) fn new(
        block_size: u32,
        heads: u32,
        zones: &[Zone],
        block_count: Option<u64>,
    ) -> Self {
        assert!(block_size == 512 || block_size as usize == SECTOR_SIZE);
        assert!(heads > 0);
        let (mut cylinder, mut blocks) = (0, 0);
        let zones = zones
            .iter()
            .map(|zone| {
                let bounds = Bounds {
                    blocks_per_track: zone.blocks_per_track,
                    track_skew: zone.track_skew,
                    cylinder_skew: zone.cylinder_skew,
                    cylinder_first: cylinder + zone.gap,
                    block_first: blocks,
                    block_end: blocks + zone.data(heads).expect("the zone holds data"),
                    front: zone.front.into(),
                    sparing: zone.sparing(heads),
                };
                cylinder += zone.gap + zone.cylinder_count;
                blocks = bounds.block_end;
                bounds
            })
            .collect();
        let block_count = block_count.unwrap_or(blocks);
        assert!(block_count <= blocks);
        let blocks_per_sector = SECTOR_SIZE as u64 / u64::from(block_size);
        Self { zones, heads, blocks_per_sector, block_count }
    }

    pub(crate) fn heads(&self) -> u32 {
        self.heads
    }

    pub(crate) fn blocks_per_sector(&self) -> u64 {
        self.blocks_per_sector
    }

    /// First block, block after the last, blocks on a track and first cylinder of each zone, outermost
    /// first.
    pub(crate) fn zones(&self) -> impl Iterator<Item = (u64, u64, u32, u32)> + '_ {
        self.zones.iter().map(|zone| {
            (zone.block_first, zone.block_end, zone.blocks_per_track, zone.cylinder_first)
        })
    }

    /// The share of a revolution in which a block passes under the head, on average over all of them, with its share of the
    /// skew behind each track.
    pub(crate) fn turns_per_block(&self) -> f64 {
        let turns = |zone: &Bounds| {
            let (blocks, heads) = (f64::from(zone.blocks_per_track), f64::from(self.heads));
            let skews = (heads - 1.0) * f64::from(zone.track_skew) + f64::from(zone.cylinder_skew);
            let of_zone = (zone.block_end - zone.block_first) as f64;
            of_zone / blocks * (1.0 + skews / heads / blocks)
        };
        let all: u64 = self.zones.iter().map(|zone| zone.block_end - zone.block_first).sum();
        self.zones.iter().map(turns).sum::<f64>() / all as f64
    }

    /// How many whole sectors there are.
    pub(crate) fn size(&self) -> Sectors {
        Sectors::new(self.end() / self.blocks_per_sector)
    }

    /// The number after the last block.
    pub(crate) fn end(&self) -> u64 {
        self.block_count
    }

    /// The first block of `extent` and the one after its last.
    pub(crate) fn blocks(&self, extent: Extent) -> std::ops::Range<u64> {
        extent.lba.get() * self.blocks_per_sector..extent.end().get() * self.blocks_per_sector
    }

    /// The sectors that these blocks touch.
    pub(crate) fn extent(&self, blocks: &std::ops::Range<u64>) -> Extent {
        let first = blocks.start / self.blocks_per_sector;
        let end = blocks.end.div_ceil(self.blocks_per_sector);
        Extent::new(Lba::new(first), Sectors::new(end - first))
    }

    /// Where `block` lies.
    pub(crate) fn position(&self, block: u64) -> BlockPosition {
        assert!(block < self.block_count, "block {block} of {}", self.block_count);
        let after = self.zones.partition_point(|bounds| bounds.block_first <= block);
        let zone = &self.zones[after - 1];
        let (offset, run) = match &zone.sparing {
            None => (block - zone.block_first, u64::MAX),
            Some(sparing) => sparing.find(block - zone.block_first),
        };
        let (per_track, heads) = (u64::from(zone.blocks_per_track), u64::from(self.heads));
        let offset = zone.front + offset;
        let (track, on_track) = (offset / per_track, offset % per_track);
        let (cylinder, head) = (track / heads, track % heads);
        let turned = (head + (heads - 1) * cylinder) * u64::from(zone.track_skew)
            + cylinder * u64::from(zone.cylinder_skew);
        let run = run.min(per_track - on_track).min(zone.block_end - block);
        // Everything below is smaller than a count of the zone that is 32 bits wide.
        BlockPosition {
            cylinder: zone.cylinder_first + cylinder as u32,
            head: head as u32,
            block: on_track as u32,
            slot: ((turned + on_track) % per_track) as u32,
            blocks_per_track: zone.blocks_per_track,
            run: run as u32,
        }
    }
}

impl Zone {
    /// How many data blocks it has under `heads` heads, if its spares leave any and have room for
    /// its slips.
    pub(crate) fn data(&self, heads: u32) -> Option<u64> {
        let blocks = u64::from(self.cylinder_count) * self.blocks_per_cylinder(heads);
        let ranges = self.cylinder_count / self.range_cylinders();
        let range_blocks = u64::from(self.range_cylinders()) * self.blocks_per_cylinder(heads);
        let in_last = blocks - u64::from(ranges) * range_blocks;
        let range = |slip: u32| u64::from(slip - self.front) / range_blocks;
        let is_roomy = self.slips.iter().all(|&slip| slip >= self.front)
            && self.slips.iter().all(|&slip| {
                let spares = if range(slip) < ranges.into() { self.spares } else { 0 };
                let alike = self.slips.iter().filter(|&&other| range(other) == range(slip));
                alike.count() as u64 <= spares.into()
            });
        let smallest = if in_last > 0 { range_blocks.min(in_last) } else { range_blocks };
        let fits = u64::from(self.front) + u64::from(self.spares) < smallest;
        (is_roomy && fits)
            .then(|| blocks - u64::from(self.front) - u64::from(ranges) * u64::from(self.spares))
    }

    fn blocks_per_cylinder(&self, heads: u32) -> u64 {
        u64::from(self.blocks_per_track * heads)
    }

    fn range_cylinders(&self) -> u32 {
        match self.spare_cylinders {
            0 => self.cylinder_count,
            some => some.min(self.cylinder_count),
        }
    }

    fn sparing(&self, heads: u32) -> Option<Sparing> {
        if self.spares == 0 {
            return None;
        }
        let range_blocks = u64::from(self.range_cylinders()) * self.blocks_per_cylinder(heads);
        let mut slips: Vec<Slip> = Vec::with_capacity(self.slips.len());
        for &slip in &self.slips {
            let on_medium = u64::from(slip - self.front);
            let range = on_medium / range_blocks;
            let earlier = slips.iter().filter(|slip| slip.range == range).count() as u64;
            slips.push(Slip { range, at: on_medium % range_blocks - earlier });
        }
        Some(Sparing { range_data: range_blocks - u64::from(self.spares), range_blocks, slips })
    }
}

impl Sparing {
    /// Where on the medium a data block of the zone lies, counted from the zone's front, and how
    /// many blocks follow it without a gap.
    fn find(&self, block: u64) -> (u64, u64) {
        let (range, at) = (block / self.range_data, block % self.range_data);
        let first = self.slips.partition_point(|slip| slip.range < range);
        let later = self.slips.partition_point(|slip| (slip.range, slip.at) <= (range, at));
        let next = self.slips.get(later).filter(|slip| slip.range == range);
        let end = next.map_or(self.range_data, |slip| slip.at);
        (range * self.range_blocks + at + (later - first) as u64, end - at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny() -> Geometry {
        let outer = Zone {
            cylinder_count: 3,
            blocks_per_track: 10,
            track_skew: 3,
            cylinder_skew: 4,
            ..Zone::default()
        };
        let inner =
            Zone { cylinder_count: 2, blocks_per_track: 7, track_skew: 2, ..Zone::default() };
        Geometry::new(4096, 2, &[outer, inner], None)
    }

    #[test]
    fn every_block_has_a_position_and_every_position_a_block() {
        let geometry = tiny();
        assert_eq!(geometry.size(), Sectors::new(3 * 2 * 10 + 2 * 2 * 7));
        let mut slots: Vec<(u32, u32, u32)> = Vec::new();
        for block in 0..geometry.size().get() {
            let position = geometry.position(block);
            assert_eq!(position.blocks_per_track, if position.cylinder < 3 { 10 } else { 7 });
            slots.push((position.cylinder, position.head, position.slot));
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
        let position = |cylinder, head, block, slot, blocks_per_track| {
            let run = blocks_per_track - block;
            BlockPosition { cylinder, head, block, slot, blocks_per_track, run }
        };
        assert_eq!(geometry.position(0), position(0, 0, 0, 0, 10));
        // The second head of the first cylinder is turned by one track skew.
        assert_eq!(geometry.position(10), position(0, 1, 0, 3, 10));
        // The second cylinder: one track skew and one cylinder skew, block 9: 3 + 4 + 9 = 16.
        assert_eq!(geometry.position(29), position(1, 0, 9, 6, 10));
        // The inner zone counts its own cylinders: (1 + 1 * 1) * 2 + 0 + 2 = 6.
        assert_eq!(geometry.position(60 + 14 + 7 + 2), position(4, 1, 2, 6, 7));
    }

    #[test]
    fn a_sector_of_small_blocks_is_eight_of_them() {
        let zone = Zone { cylinder_count: 1, blocks_per_track: 100, ..Zone::default() };
        let geometry = Geometry::new(512, 1, std::slice::from_ref(&zone), None);
        assert_eq!(geometry.size(), Sectors::new(12));
        assert_eq!(Geometry::new(512, 1, &[zone], Some(90)).size(), Sectors::new(11));
        assert_eq!(geometry.blocks(Extent::new(Lba::new(2), Sectors::new(3))), 16..40);
    }

    /// Two heads, six cylinders of 2 times 10 blocks, after a gap of one; ranges of two cylinders,
    /// each with 3 spares; blocks 4 and 5 slipped, and 45.
    fn spared() -> Zone {
        Zone {
            gap: 1,
            cylinder_count: 6,
            blocks_per_track: 10,
            front: 0,
            spares: 3,
            spare_cylinders: 2,
            slips: vec![4, 5, 45],
            ..Zone::default()
        }
    }

    #[test]
    fn data_steps_over_slipped_blocks_into_the_spares() {
        let zone = spared();
        assert_eq!(zone.data(2), Some(3 * (40 - 3)));
        let geometry = Geometry::new(4096, 2, std::slice::from_ref(&zone), None);
        // What the definition says: all blocks but the slipped ones and the last of each range.
        let data = (0..120_u64).filter(|&block| !zone.slips.contains(&(block as u32)));
        let mut left = [37; 3];
        let data: Vec<u64> = data
            .filter(|block| {
                let left = &mut left[(block / 40) as usize];
                let is_data = *left > 0;
                *left -= i32::from(is_data);
                is_data
            })
            .collect();
        assert_eq!(data.len() as u64, geometry.end());
        for (block, &on_medium) in data.iter().enumerate() {
            let position = geometry.position(block as u64);
            let found =
                u64::from((position.cylinder - 1) * 20 + position.head * 10 + position.block);
            assert_eq!(found, on_medium, "block {block}");
            let run = (0..data.len() - block)
                .take_while(|&on| data[block + on] == on_medium + on as u64)
                .count();
            assert_eq!(u64::from(position.run), run.min(10 - position.block as usize) as u64);
        }
    }

    #[test]
    fn unused_blocks_at_the_front_come_before_the_first_block() {
        let zone = Zone { front: 23, spares: 1, spare_cylinders: 0, slips: vec![30], ..spared() };
        assert_eq!(zone.data(2), Some(120 - 23 - 1));
        let geometry = Geometry::new(4096, 2, &[zone], None);
        let at = |block| {
            let position = geometry.position(block);
            (position.cylinder, position.head, position.block)
        };
        assert_eq!((at(0), at(6), at(7)), ((2, 0, 3), (2, 0, 9), (2, 1, 1)));
        assert_eq!(at(95), (6, 1, 9));
    }

    #[test]
    fn slips_need_spares_in_their_own_range() {
        assert_eq!(Zone { spares: 1, ..spared() }.data(2), None);
        assert_eq!(Zone { spares: 2, ..spared() }.data(2), Some(3 * 38));
        assert_eq!(Zone { spares: 40, ..spared() }.data(2), None);
        assert_eq!(Zone { slips: vec![3], front: 5, ..spared() }.data(2), None);
    }
}
