//! What was read, kept in a few segments: one for each stream that the drive can follow.
//!
//! A segment is one run of blocks. It grows at its end, by reads and by reading ahead, and forgets
//! its beginning when it is full. The segment used longest ago makes room for a new stream.

use std::ops::Range;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    capacity: u64,
    slots: Vec<Segment>,
    clock: u64,
}

#[derive(Clone, Debug)]
struct Segment {
    blocks: Range<u64>,
    /// How many reads have followed its first.
    followers: u32,
    used: u64,
}

/// A segment's place among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentIdx(pub(super) u64);

impl SegmentIdx {
    fn at(self) -> usize {
        self.0 as usize
    }
}

impl Segments {
    /// `count` empty segments of `capacity` blocks each.
    pub(crate) fn new(count: u32, capacity: u64) -> Self {
        let empty = Segment { blocks: 0..0, followers: 0, used: 0 };
        Self { capacity, slots: vec![empty; count as usize], clock: 0 }
    }

    /// The segment that holds `block`, or that ends just before it. One that holds it goes first.
    pub(crate) fn find(&self, block: u64) -> Option<SegmentIdx> {
        let held = self.slots.iter().position(|slot| slot.blocks.contains(&block));
        let ends_there = |slot: &Segment| !slot.blocks.is_empty() && slot.blocks.end == block;
        held.or_else(|| self.slots.iter().position(ends_there)).map(|at| SegmentIdx(at as u64))
    }

    /// What a segment holds.
    pub(crate) fn blocks(&self, idx: SegmentIdx) -> Range<u64> {
        self.slots[idx.at()].blocks.clone()
    }

    /// How many reads have followed the one that began the segment.
    pub(crate) fn followers(&self, idx: SegmentIdx) -> u32 {
        self.slots[idx.at()].followers
    }

    /// Another read has begun in the segment.
    pub(crate) fn follow(&mut self, idx: SegmentIdx) {
        self.clock += 1;
        let slot = &mut self.slots[idx.at()];
        slot.used = self.clock;
        slot.followers = slot.followers.saturating_add(1);
    }

    /// The segment goes on to `end`, which it may reach already.
    pub(crate) fn grow(&mut self, idx: SegmentIdx, end: u64) {
        let held = &mut self.slots[idx.at()].blocks;
        held.end = held.end.max(end);
        held.start = held.start.max(held.end.saturating_sub(self.capacity));
    }

    /// The segment begins anew at `first`, in the same stream.
    pub(crate) fn restart(&mut self, idx: SegmentIdx, first: u64) {
        self.slots[idx.at()].blocks = first..first;
    }

    /// Another stream takes the segment used longest ago, and begins with `blocks`.
    pub(crate) fn replace(&mut self, blocks: Range<u64>) -> SegmentIdx {
        let oldest = self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.used);
        let idx = SegmentIdx(oldest.map_or(0, |(at, _)| at) as u64);
        self.clock += 1;
        let empty = blocks.start..blocks.start;
        self.slots[idx.at()] = Segment { blocks: empty, followers: 0, used: self.clock };
        self.grow(idx, blocks.end);
        idx
    }

    /// What lies on the medium at `blocks` has changed: no segment holds it any more. A segment that
    /// held some of it keeps what came before.
    pub(crate) fn forget(&mut self, blocks: &Range<u64>) {
        for held in self.slots.iter_mut().map(|slot| &mut slot.blocks) {
            if held.start < blocks.end && blocks.start < held.end {
                held.end = blocks.start.max(held.start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_grow_and_forget_their_beginning() {
        let mut segments = Segments::new(2, 10);
        let idx = segments.replace(100..104);
        assert_eq!(segments.blocks(idx), 100..104);
        segments.grow(idx, 108);
        assert_eq!(segments.blocks(idx), 100..108);
        segments.grow(idx, 115);
        assert_eq!(segments.blocks(idx), 105..115);
        segments.grow(idx, 110);
        assert_eq!(segments.blocks(idx), 105..115);
        // A read longer than a segment leaves its end.
        let idx = segments.replace(200..250);
        assert_eq!(segments.blocks(idx), 240..250);
    }

    #[test]
    fn a_block_is_found_inside_before_at_the_end() {
        let mut segments = Segments::new(3, 10);
        let first = segments.replace(100..104);
        let second = segments.replace(104..108);
        assert_eq!(segments.find(99), None);
        assert_eq!(segments.find(103), Some(first));
        assert_eq!(segments.find(104), Some(second));
        assert_eq!(segments.find(108), Some(second));
        assert_eq!(segments.find(109), None);
    }

    #[test]
    fn the_stream_used_longest_ago_makes_room() {
        let mut segments = Segments::new(2, 10);
        let first = segments.replace(100..104);
        segments.replace(200..204);
        segments.follow(first);
        segments.replace(300..304);
        assert_eq!(
            [100, 200, 300].map(|block| segments.find(block).is_some()),
            [true, false, true]
        );
    }

    #[test]
    fn what_is_written_is_forgotten() {
        let mut segments = Segments::new(1, 10);
        let idx = segments.replace(100..110);
        segments.forget(&(110..120));
        segments.forget(&(90..100));
        assert_eq!(segments.blocks(idx), 100..110);
        segments.forget(&(104..106));
        assert_eq!(segments.blocks(idx), 100..104);
        segments.forget(&(90..101));
        assert_eq!(segments.find(100), None);
    }
}
