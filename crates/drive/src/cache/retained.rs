//! What was read and written, as a list of segments: which of them makes room follows from a policy.
//!
//! ```text
//!  LRU end                                   MRU end
//!  [ write ][ read ][ verified write ] .. [ read ][ write ]
//!    |  makes room first                      ^ what is new enters here
//! ```
//!
//! A segment is one run of blocks and takes whole units of 16 KiB. A class of segments, those of reads or
//! those of writes, never holds a block twice; a block may be in one of each, and the write's is newer or the same.
//!
//! # Invariants
//!
//! - RT1. The segments take no more units than the memory has.
//! - RT2. The segment of the write in service makes room for nothing.
//! - RT3. Every waiting write whose segment made room is named once, by [`Retained::take_evicted`].
//!
//! # References
//!
//! - `[IRAW08]` section 5.3: the list and its policies.

use std::collections::BTreeMap;
use std::ops::Range;

use super::segments::SegmentIdx;
use crate::settings::UNIT;
use crate::{Placing, Retention};

/// How many requests the share of reads looks back over.
const MIX_REQUESTS: f64 = 256.0;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Retained {
    placing: Placing,
    /// Blocks in a unit.
    unit: u64,
    /// Units of memory: for everything, or by class if each has its own.
    capacity: [u64; 2],
    /// The longest run of a stream of reads, in blocks.
    run_max: u64,
    segments: BTreeMap<u64, Segment>,
    /// The segments of each class by their first block.
    starts: [BTreeMap<u64, u64>; 2],
    /// The segments of each class from the LRU end on.
    order: [BTreeMap<Rank, u64>; 2],
    /// Units taken by each class.
    used: [u64; 2],
    /// The ranks beyond both ends of the list.
    ends: Range<i64>,
    serial_last: u64,
    /// The share of reads in the recent requests.
    reads_share: f64,
    in_service: Option<u64>,
    evicted: Vec<Range<u64>>,
}

/// A segment's place in the list. Parts of one segment that was cut have its place together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    place: i64,
    serial: u64,
}

/// Whose bytes a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Read,
    Write,
}

#[derive(Clone, Debug)]
struct Segment {
    class: Class,
    blocks: Range<u64>,
    rank: Rank,
    /// How many reads have followed its first.
    followers: u32,
    /// Whether it holds a write that has not been verified and may yet be.
    waits: bool,
}

impl Retained {
    /// An empty memory for blocks of `block_size` bytes whose runs of reads have at most `run_max` blocks.
    pub(crate) fn new(retention: Retention, block_size: u64, run_max: u64) -> Self {
        let units = |memory: levelhead_units::Bytes| memory.get() / UNIT.get();
        let unit = UNIT.get() / block_size;
        let capacity = [units(retention.memory), units(retention.writes)];
        Self {
            placing: retention.placing,
            unit,
            capacity,
            run_max: run_max.min(capacity[0].saturating_mul(unit)),
            segments: BTreeMap::new(),
            starts: Default::default(),
            order: Default::default(),
            used: [0; 2],
            ends: 0..0,
            serial_last: 0,
            reads_share: 0.5,
            in_service: None,
            evicted: Vec::new(),
        }
    }

    /// A request of this class has come to be served.
    pub(crate) fn count(&mut self, class: Class) {
        let is_read = if class == Class::Read { 1.0 } else { 0.0 };
        self.reads_share += (is_read - self.reads_share) / MIX_REQUESTS;
    }

    /// Whether every one of `blocks` is held, by whatever segments.
    pub(crate) fn covers(&self, blocks: &Range<u64>) -> bool {
        let mut next = blocks.start;
        while next < blocks.end {
            let end = [Class::Read, Class::Write]
                .into_iter()
                .filter_map(|class| self.holding(class, next))
                .map(|serial| self.segments[&serial].blocks.end)
                .max();
            let Some(end) = end else { return false };
            next = end;
        }
        true
    }

    /// A read of `blocks` has been answered from the segments that hold them.
    pub(crate) fn touch(&mut self, blocks: &Range<u64>) {
        for class in [Class::Read, Class::Write] {
            for serial in self.overlapping(class, blocks) {
                self.use_again(serial);
            }
        }
    }

    /// The segment of reads that holds `block`, or that ends just before it.
    pub(crate) fn find(&self, block: u64) -> Option<SegmentIdx> {
        let held = self.holding(Class::Read, block);
        let before = || {
            let (_, &serial) = self.starts[0].range(..block).next_back()?;
            (self.segments[&serial].blocks.end == block).then_some(serial)
        };
        held.or_else(before).map(SegmentIdx)
    }

    /// What a segment holds; nothing once it has made room.
    pub(crate) fn blocks(&self, idx: SegmentIdx) -> Range<u64> {
        self.segments.get(&idx.0).map_or(0..0, |segment| segment.blocks.clone())
    }

    /// How many reads have followed the one that began the segment.
    pub(crate) fn followers(&self, idx: SegmentIdx) -> u32 {
        self.segments.get(&idx.0).map_or(0, |segment| segment.followers)
    }

    /// Another read has begun in the segment.
    pub(crate) fn follow(&mut self, idx: SegmentIdx) {
        if let Some(segment) = self.segments.get_mut(&idx.0) {
            segment.followers = segment.followers.saturating_add(1);
            self.use_again(idx.0);
        }
    }

    /// The segment of reads goes on to `end`, which it may reach already.
    pub(crate) fn grow(&mut self, idx: SegmentIdx, end: u64) {
        let Some(segment) = self.segments.get(&idx.0) else { return };
        let held = segment.blocks.clone();
        if end <= held.end {
            return;
        }
        self.cut(Class::Read, &(held.end..end));
        // What it ran into may have been its own beginning, and room for it may have been.
        if !self.segments.contains_key(&idx.0) {
            return;
        }
        let start = held.start.max(end.saturating_sub(self.run_max));
        self.reshape(idx.0, start..end);
        self.make_room(Some(idx.0));
    }

    /// The segment begins anew at `first`, in the same stream.
    pub(crate) fn restart(&mut self, idx: SegmentIdx, first: u64) {
        if self.segments.contains_key(&idx.0) {
            self.reshape(idx.0, first..first);
        }
    }

    /// A new stream of reads begins with `blocks`.
    pub(crate) fn replace(&mut self, blocks: Range<u64>) -> SegmentIdx {
        let start = blocks.start.max(blocks.end.saturating_sub(self.run_max));
        self.cut(Class::Read, &blocks);
        let serial = self.insert(Class::Read, start..blocks.end);
        self.make_room(Some(serial));
        SegmentIdx(serial)
    }

    /// What lies on the medium at `blocks` has changed: no segment holds it any more.
    pub(crate) fn forget(&mut self, blocks: &Range<u64>) {
        self.cut(Class::Read, blocks);
        self.cut(Class::Write, blocks);
        self.make_room(None);
    }

    /// A write of `blocks` begins, which waits for its verification afterwards or does not; nothing else holds them.
    /// Without room for it nothing of it is kept.
    pub(crate) fn keep_write(&mut self, blocks: Range<u64>, waits: bool) {
        let most = self.capacity[usize::from(self.placing == Placing::Dedicated)];
        if self.units(&blocks) > most {
            self.evicted.extend(waits.then_some(blocks));
            return;
        }
        let serial = self.insert(Class::Write, blocks);
        self.in_service = Some(serial);
        self.segments.get_mut(&serial).expect("just put in").waits = waits;
        self.make_room(Some(serial));
    }

    /// The write in service is over.
    pub(crate) fn complete_write(&mut self) {
        if let Some(serial) = self.in_service.take()
            && self.placing == Placing::MruLru
            && self.segments.contains_key(&serial)
        {
            self.use_first(serial);
        }
    }

    /// The waiting write that begins at `start` has been verified or given up: its room is the next to be used, unless
    /// the policy is to move nothing.
    pub(crate) fn settle(&mut self, start: u64) {
        if let Some(&serial) = self.starts[1].get(&start) {
            self.segments.get_mut(&serial).expect("it is listed").waits = false;
            if self.placing != Placing::Stay {
                self.use_first(serial);
            }
        }
    }

    /// The waiting writes that made room since the last call.
    pub(crate) fn take_evicted(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.evicted)
    }

    /// The segment of this class that holds `block`.
    fn holding(&self, class: Class, block: u64) -> Option<u64> {
        let (_, &serial) = self.starts[class as usize].range(..=block).next_back()?;
        (block < self.segments[&serial].blocks.end).then_some(serial)
    }

    fn overlapping(&self, class: Class, blocks: &Range<u64>) -> Vec<u64> {
        let first = self.holding(class, blocks.start);
        let later = self.starts[class as usize].range(blocks.clone()).map(|(_, &serial)| serial);
        let mut all: Vec<u64> = first.into_iter().chain(later).collect();
        all.dedup();
        all
    }

    fn units(&self, blocks: &Range<u64>) -> u64 {
        (blocks.end - blocks.start).div_ceil(self.unit)
    }

    /// A new segment at the MRU end.
    fn insert(&mut self, class: Class, blocks: Range<u64>) -> u64 {
        self.serial_last += 1;
        let serial = self.serial_last;
        self.ends.end += 1;
        let rank = Rank { place: self.ends.end, serial };
        self.put(serial, Segment { class, blocks, rank, followers: 0, waits: false });
        serial
    }

    fn put(&mut self, serial: u64, segment: Segment) {
        let at = segment.class as usize;
        self.used[at] += self.units(&segment.blocks);
        if !segment.blocks.is_empty() {
            self.starts[at].insert(segment.blocks.start, serial);
        }
        self.order[at].insert(segment.rank, serial);
        self.segments.insert(serial, segment);
    }

    fn take(&mut self, serial: u64) -> Segment {
        let segment = self.segments.remove(&serial).expect("a segment that is there");
        let at = segment.class as usize;
        self.used[at] -= self.units(&segment.blocks);
        if !segment.blocks.is_empty() {
            self.starts[at].remove(&segment.blocks.start);
        }
        self.order[at].remove(&segment.rank);
        segment
    }

    fn reshape(&mut self, serial: u64, blocks: Range<u64>) {
        let segment = self.take(serial);
        self.put(serial, Segment { blocks, ..segment });
    }

    fn move_to(&mut self, serial: u64, place: i64) {
        let segment = self.take(serial);
        self.put(serial, Segment { rank: Rank { place, serial }, ..segment });
    }

    /// A read has been answered from it.
    fn use_again(&mut self, serial: u64) {
        if self.placing != Placing::Stay {
            self.ends.end += 1;
            self.move_to(serial, self.ends.end);
        }
    }

    /// It goes to the LRU end.
    fn use_first(&mut self, serial: u64) {
        self.ends.start -= 1;
        self.move_to(serial, self.ends.start);
    }

    /// No segment of this class holds any of `blocks`; what is left of one that did keeps its place.
    fn cut(&mut self, class: Class, blocks: &Range<u64>) {
        if blocks.is_empty() {
            return;
        }
        for serial in self.overlapping(class, blocks) {
            let segment = self.take(serial);
            let Segment { blocks: held, rank, .. } = segment.clone();
            // The part in front goes on as the segment that others know.
            let after = blocks.end.max(held.start)..held.end;
            if held.start < blocks.start {
                self.put(serial, Segment { blocks: held.start..blocks.start, ..segment.clone() });
            }
            if after.start < after.end {
                self.serial_last += 1;
                let rank = Rank { serial: self.serial_last, ..rank };
                self.put(self.serial_last, Segment { blocks: after, rank, ..segment });
            }
        }
    }

    /// Lets segments go until the others fit (RT1), but neither `kept` nor that of the write in service.
    fn make_room(&mut self, kept: Option<u64>) {
        while let Some(class) = self.giving_way() {
            let others = [class, if class == Class::Read { Class::Write } else { Class::Read }];
            let count = if self.placing == Placing::Dedicated { 1 } else { 2 };
            let victims = others[..count].iter().map(|&class| self.victim(class, kept));
            let victim = match self.placing {
                Placing::MruLru | Placing::MruMru | Placing::Stay => victims.flatten().min(),
                Placing::Adaptive | Placing::Dedicated => victims.flatten().next(),
            };
            // What is left is the newest segment, and that one fits.
            let Some(Rank { serial, .. }) = victim else { return };
            let segment = self.take(serial);
            self.evicted.extend(segment.waits.then_some(segment.blocks));
        }
    }

    /// The class of which a segment must go, if one must.
    fn giving_way(&self) -> Option<Class> {
        let [reads, writes] = self.used;
        if self.placing == Placing::Dedicated {
            return match (reads > self.capacity[0], writes > self.capacity[1]) {
                (true, _) => Some(Class::Read),
                (false, true) => Some(Class::Write),
                (false, false) => None,
            };
        }
        let is_reads = reads as f64 > self.reads_share * self.capacity[0] as f64;
        let class = if is_reads { Class::Read } else { Class::Write };
        (reads + writes > self.capacity[0]).then_some(class)
    }

    /// The first segment of a class from the LRU end on that may go.
    fn victim(&self, class: Class, kept: Option<u64>) -> Option<Rank> {
        let is_held = |serial: u64| Some(serial) == kept || Some(serial) == self.in_service;
        let free = self.order[class as usize].iter().find(|&(_, &serial)| !is_held(serial));
        free.map(|(rank, _)| *rank)
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;
    use levelhead_units::Bytes;

    use super::*;

    /// Blocks of 4 KiB, four in a unit.
    fn memory(placing: Placing, units: u64) -> Retained {
        let retention = Retention::new(placing, Bytes::new(units * UNIT.get()));
        Retained::new(retention, 4096, 1 << 20)
    }

    fn write(retained: &mut Retained, blocks: Range<u64>) {
        retained.forget(&blocks);
        retained.keep_write(blocks, true);
        retained.complete_write();
    }

    fn held(retained: &Retained, starts: &[u64]) -> Vec<bool> {
        starts.iter().map(|&start| retained.covers(&(start..start + 1))).collect()
    }

    #[test]
    fn policy_says_what_makes_room() {
        // Writes at 0, 10; reads at 20, 30, then 20 again; then a write at 40 needs room for one.
        for (placing, gone) in [
            (Placing::MruLru, 10),
            (Placing::MruMru, 0),
            (Placing::Stay, 0),
            (Placing::Dedicated, 0),
        ] {
            let units = if placing == Placing::Dedicated { 2 } else { 4 };
            let mut retained = memory(placing, units);
            write(&mut retained, 0..4);
            write(&mut retained, 10..14);
            retained.replace(20..24);
            retained.replace(30..34);
            retained.touch(&(20..24));
            assert_eq!(retained.take_evicted(), [], "{placing:?}");
            write(&mut retained, 40..44);
            assert_eq!(retained.take_evicted(), vec![gone..gone + 4], "{placing:?}");
        }
    }

    #[test]
    fn hits_move_segments_but_for_one_policy() {
        for (placing, left) in [(Placing::MruMru, [true, false]), (Placing::Stay, [false, true])] {
            let mut retained = memory(placing, 2);
            retained.replace(20..24);
            retained.replace(30..34);
            retained.touch(&(20..24));
            retained.replace(40..44);
            assert_eq!(held(&retained, &[20, 30]), left, "{placing:?}");
        }
    }

    #[test]
    fn class_above_its_share_gives_way() {
        let mut retained = memory(Placing::Adaptive, 4);
        for _ in 0..10_000 {
            retained.count(Class::Write);
        }
        for start in [0, 10] {
            retained.replace(start..start + 4);
        }
        for start in [20, 30, 40, 50] {
            write(&mut retained, start..start + 4);
        }
        assert_eq!(held(&retained, &[0, 10, 20, 50]), [false, false, true, true]);
        for _ in 0..10_000 {
            retained.count(Class::Read);
        }
        retained.replace(60..64);
        assert_eq!(held(&retained, &[20, 30, 60]), [false, true, true], "the oldest write");
    }

    #[test]
    fn what_was_verified_makes_room_first_where_anything_moves() {
        for (placing, left) in [
            (Placing::MruMru, [true, false, true, true]),
            (Placing::Stay, [false, true, true, true]),
        ] {
            let mut retained = memory(placing, 3);
            for start in [0, 10, 20] {
                write(&mut retained, start..start + 4);
            }
            retained.settle(10);
            write(&mut retained, 30..34);
            assert_eq!(held(&retained, &[0, 10, 20, 30]), left, "{placing:?}");
            let waited = usize::from(placing == Placing::Stay);
            assert_eq!(retained.take_evicted().len(), waited, "what was verified does not wait");
        }
    }

    #[test]
    fn write_larger_than_the_memory_is_not_kept() {
        let mut retained = memory(Placing::MruMru, 2);
        write(&mut retained, 0..9);
        assert_eq!(retained.take_evicted(), vec![0..9]);
        assert!(!retained.covers(&(0..1)));
    }

    /// Against one flag a block and class, and with RT1 and RT3 after every step.
    #[test]
    fn segments_hold_what_blocks_alone_would() {
        for seed in 0..200 {
            let mut rng = Streams::new(seed).stream("retained");
            let placing = Placing::ALL[rng.below(5) as usize].0;
            // So large that nothing makes room, or so small that much does.
            let is_large = rng.below(2) == 0;
            let mut retained = memory(placing, if is_large { 1 << 20 } else { 6 });
            let mut model = [[false; 80]; 2];
            let mut waiting = [false; 80];
            for step in 0..120 {
                let start = rng.below(60);
                let blocks = start..start + 1 + rng.below(12);
                let range = start as usize..blocks.end as usize;
                if rng.below(2) == 0 {
                    write(&mut retained, blocks.clone());
                    model[0][range.clone()].fill(false);
                    model[1][range.clone()].fill(true);
                    waiting[range].fill(true);
                } else if retained.covers(&blocks) {
                    retained.touch(&blocks);
                } else if let Some(idx) = retained.find(start) {
                    let from = retained.blocks(idx).end;
                    retained.grow(idx, blocks.end);
                    model[0][from.min(blocks.end) as usize..range.end].fill(true);
                } else {
                    retained.replace(blocks);
                    model[0][range].fill(true);
                }
                for evicted in retained.take_evicted() {
                    assert!(!is_large);
                    for block in evicted {
                        assert!(std::mem::take(&mut waiting[block as usize]), "RT3");
                    }
                }
                if is_large {
                    let expected = (0..80).map(|at| model[0][at] || model[1][at]);
                    let held = (0..80).map(|at| retained.covers(&(at..at + 1)));
                    assert!(held.eq(expected), "seed {seed}, step {step}, {placing:?}");
                } else {
                    let [reads, writes] = retained.used;
                    let most = if placing == Placing::Dedicated { 12 } else { 6 };
                    assert!(reads + writes <= most, "RT1: seed {seed}, {placing:?}");
                }
                let units = |class: Class| {
                    let of = retained.segments.values().filter(|one| one.class == class);
                    of.map(|one| retained.units(&one.blocks)).sum::<u64>()
                };
                assert_eq!([units(Class::Read), units(Class::Write)], retained.used);
            }
        }
    }
}
