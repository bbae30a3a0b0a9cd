//! The memory inside the drive: what a make has, and what one drive keeps in it.
//!
//! - `segments`: what was read;
//! - `ahead`: what is being read without being asked for;
//! - `dirty`: what was written and waits for the medium.
//!
//! How commands use it stands in `disk::cached`.

use std::ops::Range;

use levelhead_units::{Instant, Nanos};

pub(crate) use self::ahead::Ahead;
pub(crate) use self::dirty::Dirty;
pub(crate) use self::segments::Segments;
use crate::CacheMode;
use crate::geometry::Geometry;

mod ahead;
mod dirty;
mod segments;

/// What a make has in memory and does with it. Sizes are in the drive's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheShape {
    /// How many streams it keeps apart.
    pub(crate) segments: u32,
    /// How much one segment holds.
    pub(crate) segment_blocks: u64,
    /// How far the drive reads on after a read.
    pub(crate) read_ahead_blocks: u64,
    /// How many reads must have followed one another before it does.
    pub(crate) read_ahead_after: u32,
    /// Whether a read from the cache moves the end of read-ahead on.
    pub(crate) read_ahead_on_hit: bool,
    /// Whether it stops at the end of a track.
    pub(crate) read_ahead_on_track: bool,
    /// Whether what is read ahead may push out what was asked for.
    pub(crate) read_ahead_over_requested: bool,
    /// How much may wait for the medium; 0 for a make that writes nothing back.
    pub(crate) write_blocks: u64,
    /// In how many runs of blocks.
    pub(crate) write_segments: u32,
    /// How long the drive idles before it writes back.
    pub(crate) write_delay: Nanos,
    /// What a flush takes besides the writes, if there are any.
    pub(crate) flush_overhead: Nanos,
}

impl CacheShape {
    /// Up to where the drive reads on after a read that ended at `end`, into a segment that begins at
    /// `start`; never before `end`.
    pub(crate) fn ahead_limit(&self, geometry: &Geometry, start: u64, end: u64) -> u64 {
        let mut limit = (end + self.read_ahead_blocks).min(geometry.end());
        if !self.read_ahead_over_requested {
            limit = limit.min(start + self.segment_blocks);
        }
        if self.read_ahead_on_track {
            let last = geometry.position(end - 1);
            limit = limit.min(end - 1 + u64::from(last.run));
        }
        limit.max(end)
    }
}

/// What one drive keeps.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    pub(crate) shape: CacheShape,
    pub(crate) segments: Segments,
    pub(crate) ahead: Option<Ahead>,
    /// Absent unless the drive writes back.
    pub(crate) writes: Option<Writes>,
}

/// What has not reached the medium.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes {
    pub(crate) dirty: Dirty,
    /// What is being written, and when that is over: looked at again as time goes by.
    pub(crate) under_way: Vec<(Range<u64>, Instant)>,
}

impl Cache {
    /// The empty memory of a drive that uses it like that.
    pub(crate) fn new(shape: CacheShape, mode: CacheMode) -> Option<Self> {
        let writes = match mode {
            CacheMode::Off => return None,
            CacheMode::Read => None,
            CacheMode::WriteBack => Some(Writes::default()),
        };
        let segments = Segments::new(shape.segments, shape.segment_blocks);
        Some(Self { shape, segments, ahead: None, writes })
    }

    /// The same memory with nothing in it.
    pub(crate) fn emptied(&self) -> Self {
        let segments = Segments::new(self.shape.segments, self.shape.segment_blocks);
        let writes = self.writes.as_ref().map(|_| Writes::default());
        Self { shape: self.shape, segments, ahead: None, writes }
    }

    /// Whether a command for these blocks begins without moving the arm: a read whose first block is
    /// there or about to be, a write that fits.
    pub(crate) fn is_near(&self, blocks: &Range<u64>, is_read: bool) -> bool {
        match &self.writes {
            _ if is_read => {
                self.segments.find(blocks.start).is_some_and(|idx| {
                    blocks.start < self.segments.blocks(idx).end
                        || self.ahead.is_some_and(|ahead| ahead.segment == idx)
                }) || self.writes.as_ref().is_some_and(|writes| writes.dirty.covers(blocks))
            }
            Some(writes) => writes.has_room(blocks, &self.shape),
            None => false,
        }
    }
}

impl Writes {
    /// Whether these blocks can wait too.
    pub(crate) fn has_room(&self, blocks: &Range<u64>, shape: &CacheShape) -> bool {
        let (waiting, runs) = self.dirty.size();
        waiting + (blocks.end - blocks.start) <= shape.write_blocks
            && runs < shape.write_segments as usize
    }
}
