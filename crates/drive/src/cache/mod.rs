//! The memory inside the drive.

use levelhead_units::Nanos;

/// What a make has in memory and does with it. Sizes are in the drive's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheShape {
    /// How many streams it keeps apart.
    pub(crate) segments: u32,
    /// How much one segment holds.
    pub(crate) segment_blocks: u64,
    /// How far the drive reads on after a read.
    pub(crate) read_ahead_blocks: u64,
    /// Whether a read from the cache moves the end of read-ahead on.
    pub(crate) read_ahead_on_hit: bool,
    /// How much may wait for the medium; 0 for a make that writes nothing back.
    pub(crate) write_blocks: u64,
    /// How long the drive idles before it writes back.
    pub(crate) write_delay: Nanos,
    /// What a flush takes besides the writes, if there are any.
    pub(crate) flush_overhead: Nanos,
}
