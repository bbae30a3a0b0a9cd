//! The memory inside the drive: what a make has, and what one drive keeps in it.
//!
//! - `kept`: what was read, and perhaps what was written: in `segments`, which are streams of reads, or in
//!   `retained`, a list with a retention policy;
//! - `ahead`: what is being read without being asked for;
//! - `dirty`: what was written and waits for the medium;
//! - `unverified`: what is on the medium and waits to be read back.
//!
//! How commands use it stands in `disk::cached`.

use std::ops::Range;

use levelhead_block::ZeroTail;
use levelhead_units::{Instant, Nanos};

pub(crate) use self::ahead::Ahead;
pub(crate) use self::dirty::Dirty;
pub(crate) use self::kept::Kept;
pub(crate) use self::retained::{Class, Retained};
pub(crate) use self::segments::Segments;
pub(crate) use self::unverified::{BytesGone, End, Form, Part, REPAIRS_MAX, Unverified};
use crate::geometry::Geometry;
use crate::{CacheMode, Retention};

mod ahead;
mod dirty;
mod kept;
mod retained;
mod segments;
mod unverified;

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
    pub(crate) kept: Kept,
    /// The same with nothing in it.
    empty: Box<Kept>,
    pub(crate) ahead: Option<Ahead>,
    /// Absent unless the drive writes back.
    pub(crate) writes: Option<Writes>,
}

/// A write of blocks, as a command asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) blocks: Range<u64>,
    /// Whether it ends on the medium.
    pub(crate) is_durable: bool,
    /// How often it is read back within the command, and written again before all but the first time.
    pub(crate) read_backs: u32,
    /// The command's name.
    pub(crate) id: u64,
    /// On whose behalf it runs.
    pub(crate) origin: u64,
    /// What is known of the ends of its sectors.
    pub(crate) zero_tail: ZeroTail,
}

/// What has not reached the medium.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes {
    pub(crate) dirty: Dirty,
    /// What is being written, and when that is over: looked at again as time goes by.
    pub(crate) under_way: Vec<(Range<u64>, Instant)>,
}

impl Cache {
    /// The empty memory of a drive that uses it like that; without `retention`, as its make does.
    pub(crate) fn new(
        shape: CacheShape,
        mode: CacheMode,
        retention: Option<Retention>,
        block_size: u64,
    ) -> Option<Self> {
        let writes = match mode {
            CacheMode::Off => return None,
            CacheMode::Read => None,
            CacheMode::WriteBack => Some(Writes::default()),
        };
        let kept = match retention {
            None => Kept::Streams(Segments::new(shape.segments, shape.segment_blocks)),
            Some(retention) => {
                Kept::List(Box::new(Retained::new(retention, block_size, shape.segment_blocks)))
            }
        };
        let empty = Box::new(kept.clone());
        Some(Self { shape, kept, empty, ahead: None, writes })
    }

    /// The same memory with nothing in it.
    pub(crate) fn emptied(&self) -> Self {
        let writes = self.writes.as_ref().map(|_| Writes::default());
        let (kept, empty) = ((*self.empty).clone(), self.empty.clone());
        Self { shape: self.shape, kept, empty, ahead: None, writes }
    }

    /// What waits for the medium; nothing unless the drive writes back.
    pub(crate) fn dirty(&self) -> Option<&Dirty> {
        self.writes.as_ref().map(|writes| &writes.dirty)
    }

    /// Whether a command for these blocks begins without moving the arm: a read whose first block is
    /// there or about to be, a write that fits.
    pub(crate) fn is_near(&self, blocks: &Range<u64>, is_read: bool) -> bool {
        match &self.writes {
            _ if is_read => {
                self.kept.find(blocks.start).is_some_and(|idx| {
                    blocks.start < self.kept.blocks(idx).end
                        || self.ahead.is_some_and(|ahead| ahead.segment == idx)
                }) || self.kept.covers(blocks)
                    || self.writes.as_ref().is_some_and(|writes| writes.dirty.covers(blocks))
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
