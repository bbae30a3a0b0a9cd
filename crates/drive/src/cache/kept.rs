//! What was read, and perhaps what was written: as a few streams, or as a list with a retention policy.

use std::ops::Range;

use super::retained::{Class, Retained};
use super::segments::{SegmentIdx, Segments};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// A fixed number of segments, for reads alone.
    Streams(Segments),
    /// Segments of any size, for reads and writes.
    List(Box<Retained>),
}

impl Kept {
    /// The list, if it is one.
    pub(crate) fn list(&mut self) -> Option<&mut Retained> {
        match self {
            Self::Streams(_) => None,
            Self::List(list) => Some(list),
        }
    }

    /// A request has come to be served.
    pub(crate) fn count(&mut self, class: Class) {
        if let Self::List(list) = self {
            list.count(class);
        }
    }

    /// Whether every one of `blocks` is held by segments together. A stream stands alone.
    pub(crate) fn covers(&self, blocks: &Range<u64>) -> bool {
        match self {
            Self::Streams(_) => false,
            Self::List(list) => list.covers(blocks),
        }
    }

    /// A read has been answered from segments together.
    pub(crate) fn touch(&mut self, blocks: &Range<u64>) {
        if let Self::List(list) = self {
            list.touch(blocks);
        }
    }

    /// The segment of reads that holds `block`, or that ends just before it. One that holds it goes first.
    pub(crate) fn find(&self, block: u64) -> Option<SegmentIdx> {
        match self {
            Self::Streams(streams) => streams.find(block),
            Self::List(list) => list.find(block),
        }
    }

    /// What a segment holds.
    pub(crate) fn blocks(&self, idx: SegmentIdx) -> Range<u64> {
        match self {
            Self::Streams(streams) => streams.blocks(idx),
            Self::List(list) => list.blocks(idx),
        }
    }

    /// How many reads have followed the one that began the segment.
    pub(crate) fn followers(&self, idx: SegmentIdx) -> u32 {
        match self {
            Self::Streams(streams) => streams.followers(idx),
            Self::List(list) => list.followers(idx),
        }
    }

    /// Another read has begun in the segment.
    pub(crate) fn follow(&mut self, idx: SegmentIdx) {
        match self {
            Self::Streams(streams) => streams.follow(idx),
            Self::List(list) => list.follow(idx),
        }
    }

    /// The segment goes on to `end`, which it may reach already.
    pub(crate) fn grow(&mut self, idx: SegmentIdx, end: u64) {
        match self {
            Self::Streams(streams) => streams.grow(idx, end),
            Self::List(list) => list.grow(idx, end),
        }
    }

    /// The segment begins anew at `first`, in the same stream.
    pub(crate) fn restart(&mut self, idx: SegmentIdx, first: u64) {
        match self {
            Self::Streams(streams) => streams.restart(idx, first),
            Self::List(list) => list.restart(idx, first),
        }
    }

    /// Another stream begins with `blocks`.
    pub(crate) fn replace(&mut self, blocks: Range<u64>) -> SegmentIdx {
        match self {
            Self::Streams(streams) => streams.replace(blocks),
            Self::List(list) => list.replace(blocks),
        }
    }

    /// What lies on the medium at `blocks` has changed: no segment holds it any more.
    pub(crate) fn forget(&mut self, blocks: &Range<u64>) {
        match self {
            Self::Streams(streams) => streams.forget(blocks),
            Self::List(list) => list.forget(blocks),
        }
    }
}
