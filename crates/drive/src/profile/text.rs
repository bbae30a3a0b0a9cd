//! The text of a profile, and what it must hold to.

use std::sync::Arc;

use levelhead_units::{Nanos, SECTOR_SIZE};
use serde::Deserialize;

use super::limits::{CYLINDERS_MAX, TIME_MAX, time, time_up_to, within};
use super::seek::TypedSeek;
use super::{Profile, ProfileError};
use crate::cache::CacheShape;
use crate::geometry::{Geometry, Zone};
use crate::mechanics::{BLOCKS_PER_TRACK_MAX, Overhead, Overheads, RPM_MAX};

const HEADS_MAX: u32 = 255;

/// The longest time that a drive may be idle before it writes what is in its memory: a day, so that in
/// practice it writes at a flush only.
const DELAY_MAX: Nanos = Nanos::from_secs(86_400);
const SEGMENTS_MAX: u32 = 4_096;
/// A gigabyte of the smallest blocks.
const SEGMENT_BLOCKS_MAX: u32 = 1 << 21;
const WRITE_BLOCKS_MAX: u32 = 1 << 21;
const WRITE_SEGMENTS_MAX: u32 = 1_024;
/// In megabytes a second: from less than any drive to more than any bus.
const BUS_RATES: std::ops::RangeInclusive<f64> = 0.01..=100_000.0;

// A zone's blocks on one cylinder are counted in 32 bits.
const _: () = assert!(BLOCKS_PER_TRACK_MAX.checked_mul(HEADS_MAX).is_some());

/// A profile as it is typed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Typed {
    name: String,
    block_size: u32,
    blocks: Option<u64>,
    rpm: u32,
    heads: u32,
    overhead: TypedOverheads,
    head_switch: String,
    write_settle: String,
    bus_rate: Option<String>,
    cache: Option<TypedCache>,
    seek: TypedSeek,
    seek_write: Option<TypedSeek>,
    zone: Vec<TypedZone>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a time, as in \"0.2ms\", or a table with read and write and perhaps \
                 read_hit and write_hit"
)]
enum TypedOverheads {
    Same(String),
    Each(TypedOverheadTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedOverheadTable {
    read: TypedOverhead,
    write: TypedOverhead,
    read_hit: Option<TypedOverhead>,
    write_hit: Option<TypedOverhead>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a time, as in \"0.2ms\", or two")]
enum TypedOverhead {
    Always(String),
    After(String, String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedCache {
    segments: u32,
    segment_blocks: u32,
    read_ahead_blocks: Option<u32>,
    #[serde(default)]
    read_ahead_after: u32,
    read_ahead_on_hit: Option<bool>,
    read_ahead_over_requested: Option<bool>,
    #[serde(default)]
    read_ahead_on_track: bool,
    #[serde(default)]
    write_blocks: u32,
    write_segments: Option<u32>,
    write_delay: Option<String>,
    flush_overhead: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedZone {
    cylinders: u32,
    blocks_per_track: u32,
    track_skew: u32,
    cylinder_skew: u32,
    #[serde(default)]
    gap: u32,
    #[serde(default)]
    front: u32,
    #[serde(default)]
    spares: u32,
    #[serde(default)]
    spare_cylinders: u32,
    #[serde(default)]
    slips: Vec<u32>,
}

impl Typed {
    pub(super) fn check(self) -> Result<Profile, ProfileError> {
        if self.name.is_empty() {
            return Err(ProfileError::new("name", "is empty"));
        }
        if self.block_size != 512 && self.block_size != 4096 {
            let problem = format!("is {}: expected 512 or 4096", self.block_size);
            return Err(ProfileError::new("block_size", problem));
        }
        within("rpm", self.rpm, 1, RPM_MAX)?;
        within("heads", self.heads, 1, HEADS_MAX)?;
        within("the number of zones", self.zone.len() as u32, 1, CYLINDERS_MAX)?;
        let (mut cylinders, mut blocks) = (0_u32, 0);
        let mut zones = Vec::with_capacity(self.zone.len());
        for (at, zone) in self.zone.into_iter().enumerate() {
            let zone = zone.check(&format!("zone[{at}]"))?;
            cylinders = cylinders.saturating_add(zone.gap).saturating_add(zone.cylinder_count);
            let data = zone.data(self.heads).ok_or_else(|| {
                let problem =
                    "has no room for its front, its spares, or its slips among the spares";
                ProfileError::new(format!("zone[{at}]"), problem)
            })?;
            // So many that they do not fit have too many cylinders.
            blocks = u64::saturating_add(blocks, data);
            zones.push(zone);
        }
        within("the cylinders of all zones", cylinders, 1, CYLINDERS_MAX)?;
        let sector = (SECTOR_SIZE as u32 / self.block_size).into();
        if blocks < sector {
            let problem = format!("hold {blocks} blocks: expected a sector at least, {sector}");
            return Err(ProfileError::new("all zones together", problem));
        }
        if let Some(used) = self.blocks
            && !(8..=blocks).contains(&used)
        {
            let problem = format!("is {used}: expected 8 to {blocks}, all that the zones have");
            return Err(ProfileError::new("blocks", problem));
        }
        let seek = self.seek.table("seek", cylinders)?;
        let seek_write = match &self.seek_write {
            None => Arc::clone(&seek),
            Some(typed) => typed.table("seek_write", cylinders)?,
        };
        Ok(Profile {
            geometry: Arc::new(Geometry::new(self.block_size, self.heads, &zones, self.blocks)),
            rpm: self.rpm,
            overheads: self.overhead.check()?,
            head_switch: time("head_switch", &self.head_switch)?,
            write_settle: time("write_settle", &self.write_settle)?,
            bus_block: bus_block(self.bus_rate.as_deref(), self.block_size)?,
            cache: self.cache.map(|typed| typed.check(self.block_size)).transpose()?,
            seek,
            seek_write,
            name: self.name,
        })
    }
}

impl TypedZone {
    fn check(self, key: &str) -> Result<Zone, ProfileError> {
        let key = |name: &str| format!("{key}.{name}");
        let track = self.blocks_per_track;
        within(&key("cylinders"), self.cylinders, 1, CYLINDERS_MAX)?;
        within(&key("blocks_per_track"), track, 8, BLOCKS_PER_TRACK_MAX)?;
        within(&key("track_skew"), self.track_skew, 0, track - 1)?;
        within(&key("cylinder_skew"), self.cylinder_skew, 0, track - 1)?;
        within(&key("gap"), self.gap, 0, CYLINDERS_MAX)?;
        if self.front > 0 && self.spare_cylinders > 0 {
            let problem = "is a range of a zone with a front: give one or the other";
            return Err(ProfileError::new(key("spare_cylinders"), problem));
        }
        if !self.slips.is_sorted_by(|one, next| one < next) {
            return Err(ProfileError::new(key("slips"), "must rise"));
        }
        Ok(Zone {
            gap: self.gap,
            cylinder_count: self.cylinders,
            blocks_per_track: self.blocks_per_track,
            track_skew: self.track_skew,
            cylinder_skew: self.cylinder_skew,
            front: self.front,
            spares: self.spares,
            spare_cylinders: self.spare_cylinders,
            slips: self.slips,
        })
    }
}

impl TypedCache {
    fn check(&self, block_size: u32) -> Result<CacheShape, ProfileError> {
        within("cache.segments", self.segments, 1, SEGMENTS_MAX)?;
        within("cache.segment_blocks", self.segment_blocks, 8, SEGMENT_BLOCKS_MAX)?;
        let read_ahead_blocks = self.read_ahead_blocks.unwrap_or(self.segment_blocks);
        within("cache.read_ahead_blocks", read_ahead_blocks, 0, self.segment_blocks)?;
        let write_least = SECTOR_SIZE as u32 / block_size;
        if self.write_blocks > 0 {
            within("cache.write_blocks", self.write_blocks, write_least, WRITE_BLOCKS_MAX)?;
        }
        let write_segments = self.write_segments.unwrap_or(WRITE_SEGMENTS_MAX);
        within("cache.write_segments", write_segments, 1, WRITE_SEGMENTS_MAX)?;
        let delay = |most, key, text: &Option<String>| {
            text.as_ref().map_or(Ok(Nanos::ZERO), |text| time_up_to(most, key, text))
        };
        Ok(CacheShape {
            segments: self.segments,
            segment_blocks: self.segment_blocks.into(),
            read_ahead_blocks: read_ahead_blocks.into(),
            read_ahead_after: self.read_ahead_after,
            read_ahead_over_requested: self.read_ahead_over_requested.unwrap_or(true),
            read_ahead_on_track: self.read_ahead_on_track,
            read_ahead_on_hit: self.read_ahead_on_hit.unwrap_or(true),
            write_blocks: self.write_blocks.into(),
            write_segments,
            write_delay: delay(DELAY_MAX, "cache.write_delay", &self.write_delay)?,
            flush_overhead: delay(TIME_MAX, "cache.flush_overhead", &self.flush_overhead)?,
        })
    }
}

impl TypedOverheads {
    fn check(&self) -> Result<Overheads, ProfileError> {
        match self {
            Self::Same(text) => {
                let same = Overhead::always(time("overhead", text)?);
                Ok(Overheads { read: same, read_hit: same, write: same, write_hit: same })
            }
            Self::Each(table) => {
                let read = table.read.check("overhead.read")?;
                let write = table.write.check("overhead.write")?;
                let hit = |typed: &Option<TypedOverhead>, key, otherwise| {
                    typed.as_ref().map_or(Ok(otherwise), |typed| typed.check(key))
                };
                let read_hit = hit(&table.read_hit, "overhead.read_hit", read)?;
                let write_hit = hit(&table.write_hit, "overhead.write_hit", write)?;
                Ok(Overheads { read, read_hit, write, write_hit })
            }
        }
    }
}

impl TypedOverhead {
    fn check(&self, key: &str) -> Result<Overhead, ProfileError> {
        match self {
            Self::Always(text) => Ok(Overhead::always(time(key, text)?)),
            Self::After(read, write) => {
                Ok(Overhead { after_read: time(key, read)?, after_write: time(key, write)? })
            }
        }
    }
}

/// What a block takes at that rate, in picoseconds.
fn bus_block(rate: Option<&str>, block_size: u32) -> Result<u64, ProfileError> {
    let Some(text) = rate else { return Ok(0) };
    let rate = text.strip_suffix("MB/s").and_then(|number| number.trim_end().parse::<f64>().ok());
    let Some(rate) = rate.filter(|rate| BUS_RATES.contains(rate)) else {
        let (least, most) = (BUS_RATES.start(), BUS_RATES.end());
        let problem = format!("is '{text}': expected {least} to {most} MB/s, as in 550MB/s");
        return Err(ProfileError::new("bus_rate", problem));
    };
    Ok((f64::from(block_size) * 1e6 / rate).round() as u64)
}
