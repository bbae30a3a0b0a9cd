//! Where sectors lie, as far as rates and a rotation say: zones of equal tracks, and an assumed number
//! of heads.

use levelhead_units::{SECTOR_SIZE, Sectors};

use super::facts::Rate;

/// Profiles count in the smallest blocks, so that a track's length is as fine as it can be.
pub(super) const BLOCK_SIZE: u64 = 512;
const BLOCKS_PER_SECTOR: u64 = SECTOR_SIZE as u64 / BLOCK_SIZE;
/// The most cylinders that a profile gets, as many as real drives have; the number of tracks in a cylinder
/// is chosen so that there are no more.
const CYLINDERS_MAX: u64 = 330_000;
/// The limits of a profile.
const BLOCKS_PER_TRACK: std::ops::RangeInclusive<f64> = 8.0..=65_535.0;
const HEADS_MAX: u64 = 255;

/// A zone: cylinders from `cylinder` on, sectors from `lba` on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Zone {
    pub(super) lba: u64,
    pub(super) cylinder: u64,
    pub(super) cylinders: u64,
    pub(super) blocks_per_track: u64,
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) heads: u64,
    pub(super) zones: Vec<Zone>,
    lengths: Vec<u64>,
    size: u64,
}

impl Layout {
    /// The layout whose tracks take a revolution and the skew, at the rates measured. A zone reaches
    /// half way to the next place.
    pub(super) fn new(size: Sectors, rates: &[Rate], rotation: f64, skew: f64) -> Self {
        let size = size.get();
        let track = |rate: &Rate| {
            let bytes = rate.bytes_per_s * rotation * (1.0 + skew);
            let blocks = (bytes / BLOCK_SIZE as f64).round();
            blocks.clamp(*BLOCKS_PER_TRACK.start(), *BLOCKS_PER_TRACK.end()) as u64
        };
        let begin = |at: usize| match at {
            0 => 0,
            at if at == rates.len() => size,
            at => rates[at - 1].lba.get().midpoint(rates[at].lba.get()),
        };
        let blocks = |at: usize| (begin(at + 1) - begin(at)) * BLOCKS_PER_SECTOR;
        let tracks: u64 = (0..rates.len()).map(|at| blocks(at).div_ceil(track(&rates[at]))).sum();
        let heads = tracks.div_ceil(CYLINDERS_MAX).clamp(1, HEADS_MAX);
        let (mut lba, mut cylinder) = (0, 0);
        let mut zones = Vec::with_capacity(rates.len());
        for (at, rate) in rates.iter().enumerate() {
            let blocks_per_track = track(rate);
            let cylinders = blocks(at).div_ceil(blocks_per_track * heads).max(1);
            zones.push(Zone { lba, cylinder, cylinders, blocks_per_track });
            cylinder += cylinders;
            lba += cylinders * blocks_per_track * heads / BLOCKS_PER_SECTOR;
        }
        Self { heads, zones, lengths: lengths(cylinder), size }
    }

    /// How many cylinders.
    pub(super) fn cylinders(&self) -> u64 {
        self.zones.last().map_or(0, |zone| zone.cylinder + zone.cylinders)
    }

    /// The lengths of seeks to measure, from one cylinder to nearly the whole stroke: rising, but for those that were put
    /// in between.
    pub(super) fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// Has one more length measured, as number `at`.
    pub(super) fn put_in(&mut self, at: usize, length: u64) {
        self.lengths.insert(at, length);
    }

    /// Sectors of a track of this cylinder.
    pub(super) fn track_sectors(&self, cylinder: u64) -> f64 {
        let after = self.zones.partition_point(|zone| zone.cylinder <= cylinder);
        self.zones[after - 1].blocks_per_track as f64 / BLOCKS_PER_SECTOR as f64
    }

    /// The first sector of a cylinder, and how many it has.
    pub(super) fn cylinder(&self, cylinder: u64) -> (u64, u64) {
        let after = self.zones.partition_point(|zone| zone.cylinder <= cylinder);
        let zone = self.zones[after - 1];
        let sectors = (zone.blocks_per_track * self.heads / BLOCKS_PER_SECTOR).max(1);
        let lba = zone.lba
            + (cylinder - zone.cylinder) * zone.blocks_per_track * self.heads / BLOCKS_PER_SECTOR;
        // The last zone's last cylinders may reach past the end.
        (lba.min(self.size.saturating_sub(sectors)), sectors.min(self.size))
    }
}

/// One cylinder, four times as many and so on, and from a sixty-fourth of the stroke parts of it; not the
/// whole, because there are only two cylinders so far apart.
fn lengths(cylinders: u64) -> Vec<u64> {
    let stroke = cylinders.saturating_sub(1).max(1);
    let parts = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 56, 60].map(|part| stroke * part / 64);
    let short = std::iter::successors(Some(1), |length| Some(length * 4));
    let mut lengths: Vec<u64> = short
        .take_while(|length| *length < stroke / 64)
        .chain([1])
        .chain(parts)
        .filter(|length| *length > 0)
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}
