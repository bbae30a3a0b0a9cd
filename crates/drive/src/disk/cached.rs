//! How reads and writes use the drive's memory.
//!
//! ```text
//! read    all there                         hit overhead, bus
//!         begun, and the arm goes on with it   wait until the arm has passed the last block
//!         begun, and the arm has left       from the medium, but only the rest
//!         not there                         from the medium, into the segment used longest ago
//! write   cached, with room                 hit overhead, bus; written back when the drive idles
//!         cached, without                   the same, after as much is written back as needed
//!         durable (FUA)                     to the medium, past the memory
//! flush   everything to the medium
//! ```
//!
//! Waiting writes go to the medium inwards from where the arm was last, then from the outermost on
//! (C-LOOK over blocks), and at most a segment at a time: when, says `idle`.

use std::ops::Range;

use levelhead_units::Instant;

use super::{Disk, Served};
use crate::cache::{Ahead, Cache, Class};
use crate::mechanics::{Arm, Pass, Stretch};

impl Disk {
    /// What the medium does not have at `now` although the drive took it, lowest first.
    ///
    /// The disk has caught up with that time.
    pub(crate) fn unwritten(&self, now: Instant) -> Vec<Range<u64>> {
        let Some(writes) = self.cache.as_ref().and_then(|cache| cache.writes.as_ref()) else {
            return Vec::new();
        };
        let mut all = writes.dirty.clone();
        for (blocks, end) in &writes.under_way {
            if *end > now {
                all.insert(blocks.clone());
            }
        }
        all.runs().to_vec()
    }

    /// Those of `blocks` that wait in memory for the medium, lowest first.
    pub(crate) fn waiting(&self, blocks: &Range<u64>) -> Vec<Range<u64>> {
        let mut waiting = Vec::new();
        let mut rest = blocks.clone();
        while !rest.is_empty()
            && let Some(run) = self.overlapping_dirty(&rest)
        {
            let part = run.start.max(rest.start)..run.end.min(rest.end);
            rest.start = part.end;
            waiting.push(part);
        }
        waiting
    }

    /// Whether a read of these blocks begins in memory.
    #[cfg(test)]
    pub(crate) fn is_near(&mut self, now: Instant, blocks: &Range<u64>) -> bool {
        self.follow_ahead(now);
        self.cache.as_ref().is_some_and(|cache| cache.is_near(blocks, true))
    }

    /// Stops reading ahead at `now`, as if a command had needed the arm.
    #[cfg(test)]
    pub(crate) fn hold_still(&mut self, now: Instant) {
        self.arm = self.stop_ahead(now);
    }

    /// The memory loses its power at `now`, and what it held.
    pub(crate) fn forget_all(&mut self, now: Instant) {
        self.arm = self.stop_ahead(now);
        if let Some(cache) = &mut self.cache {
            *cache = cache.emptied();
        }
        self.idle.forget_all();
        (self.in_service, self.writing) = (None, None);
        (self.free, self.ended) = (now, now);
    }

    pub(super) fn read_cached(&mut self, start: Instant, blocks: Range<u64>) -> Served {
        let mut start = start;
        let last = self.last;
        self.last = Pass::Read;
        self.count(Class::Read);
        let overhead = self.mechanics.overheads.in_cache(Pass::Read, last);
        let bus = self.mechanics.bus_floor(blocks.end - blocks.start);
        let hit = start + overhead + bus;
        self.follow_ahead(start);
        if let Some(writes) = &self.cache_mut().writes
            && writes.dirty.covers(&blocks)
        {
            return Served { is_hit: true, first_pass: hit, end: hit };
        }
        let (mechanics, geometry) = (&self.mechanics, &self.geometry);
        let cache = self.cache.as_mut().expect("only a drive with a cache comes here");
        let shape = cache.shape;
        let begun = cache.kept.find(blocks.start);
        if let Some(idx) = begun {
            let held = cache.kept.blocks(idx);
            let limit = shape.ahead_limit(geometry, held.start, blocks.end);
            let ahead = cache.ahead.as_mut().filter(|ahead| ahead.segment == idx);
            if blocks.end <= held.end {
                cache.kept.follow(idx);
                if !shape.read_ahead_on_hit {
                    self.arm = self.stop_ahead(start);
                } else if let Some(ahead) = ahead {
                    ahead.extend(start, limit);
                }
                return Served { is_hit: true, first_pass: hit, end: hit };
            }
            if let Some(ahead) = ahead.filter(|_| blocks.end <= limit) {
                ahead.extend(start + overhead, limit);
                let read = ahead.when(mechanics, geometry, blocks.end);
                cache.kept.follow(idx);
                let end = hit.max(read);
                return Served { is_hit: true, first_pass: end, end };
            }
        }
        if cache.kept.covers(&blocks) {
            cache.kept.touch(&blocks);
            return Served { is_hit: true, first_pass: hit, end: hit };
        }
        // What waits for the medium must be there before it is read from it.
        while let Some(run) = self.overlapping_dirty(&blocks) {
            start = self.write_back_run(start, run);
        }
        let moving = start + self.mechanics.overheads.on_medium(Pass::Read, last);
        let arm = self.stop_ahead(start);
        let cache = self.cache.as_mut().expect("as above");
        let (idx, first) = match begun {
            Some(idx) => {
                let held = cache.kept.blocks(idx);
                if !shape.read_ahead_over_requested
                    && held.start + shape.segment_blocks <= blocks.end
                {
                    cache.kept.restart(idx, held.end);
                }
                cache.kept.follow(idx);
                (idx, held.end)
            }
            None => (cache.kept.replace(blocks.clone()), blocks.start),
        };
        cache.kept.grow(idx, blocks.end);
        let service =
            self.mechanics.serve(&self.geometry, moving, arm, first..blocks.end, Pass::Read, 0);
        self.arm = service.arm;
        self.at = blocks.end;
        if cache.kept.followers(idx) >= shape.read_ahead_after {
            let held = cache.kept.blocks(idx);
            let limit = shape.ahead_limit(&self.geometry, held.start, blocks.end);
            cache.ahead = Some(Ahead::new(idx, service.end, service.arm, blocks.end, limit));
            self.is_ahead_new = true;
        }
        let end = service.end.max(service.positioned + bus);
        Served { is_hit: false, first_pass: end, end }
    }

    /// A read past the memory, which neither answers it nor keeps what it brings.
    pub(super) fn read_medium(
        &mut self,
        start: Instant,
        stretch: Stretch,
        rotations: u32,
    ) -> Served {
        let mut start = start;
        while let Some(run) = self.overlapping_dirty(&stretch.blocks) {
            start = self.write_back_run(start, run);
        }
        self.read(start, stretch, rotations)
    }

    /// The end of a write into memory, if there is one and it may wait there.
    pub(super) fn write_cached(
        &mut self,
        start: Instant,
        blocks: &Range<u64>,
        is_durable: bool,
    ) -> Option<Served> {
        self.follow_ahead(start);
        let cache = self.cache.as_ref()?;
        // What goes on filling a segment would bring back what the segment is to forget.
        let fills_it = cache.ahead.as_ref().is_some_and(|ahead| {
            let held = cache.kept.blocks(ahead.segment);
            ahead.reads(blocks) || (held.start < blocks.end && blocks.start < held.end)
        });
        if fills_it {
            self.arm = self.stop_ahead(start);
        }
        let cache = self.cache.as_mut()?;
        cache.kept.forget(blocks);
        let shape = cache.shape;
        let writes = cache.writes.as_mut()?;
        writes.dirty.remove(blocks);
        if is_durable || blocks.end - blocks.start > shape.write_blocks {
            return None;
        }
        let mut start = start;
        while let Some(writes) = self.cache.as_ref().and_then(|cache| cache.writes.as_ref())
            && !writes.has_room(blocks, &shape)
        {
            start = self.write_back(start);
        }
        let writes = self.cache_mut().writes.as_mut().expect("as above");
        writes.dirty.insert(blocks.clone());
        let overhead = self.mechanics.overheads.in_cache(Pass::Write, self.last);
        let end = start + overhead + self.mechanics.bus_floor(blocks.end - blocks.start);
        self.last = Pass::Write;
        Some(Served { is_hit: true, first_pass: end, end })
    }

    /// Everything to the medium.
    pub(super) fn flush(&mut self, start: Instant) -> Served {
        let mut end = start + self.mechanics.overheads.in_cache(Pass::Write, self.last);
        let mut is_first = true;
        while let Some(cache) = &self.cache
            && let Some(writes) = &cache.writes
            && !writes.dirty.is_empty()
        {
            if is_first {
                end = end + cache.shape.flush_overhead;
                is_first = false;
            }
            end = self.write_back(end);
        }
        Served { is_hit: false, first_pass: end, end }
    }

    /// The arm is needed elsewhere at `at`; where it is then.
    pub(super) fn stop_ahead(&mut self, at: Instant) -> Arm {
        self.follow_ahead(at);
        if let Some(cache) = &mut self.cache
            && let Some(mut ahead) = cache.ahead.take()
        {
            let (read, arm) = ahead.progress(&self.mechanics, &self.geometry, at);
            self.at = read;
            return arm;
        }
        self.arm
    }

    /// Where the arm is at `at`, whatever it does on its own.
    pub(super) fn arm_at(&self, at: Instant) -> Arm {
        match self.cache.as_ref().and_then(|cache| cache.ahead) {
            Some(mut ahead) => ahead.progress(&self.mechanics, &self.geometry, at).1,
            None => self.arm,
        }
    }

    /// Puts what was read ahead by `now` into its segment.
    pub(super) fn follow_ahead(&mut self, now: Instant) {
        if let Some(cache) = &mut self.cache
            && let Some(ahead) = &mut cache.ahead
        {
            let (read, _) = ahead.progress(&self.mechanics, &self.geometry, now);
            cache.kept.grow(ahead.segment, read);
        }
    }

    fn overlapping_dirty(&self, blocks: &Range<u64>) -> Option<Range<u64>> {
        self.cache.as_ref()?.writes.as_ref()?.dirty.overlapping(blocks)
    }

    /// Writes the next waiting run, or a segment of it, from `start` on; when that is over.
    pub(super) fn write_back(&mut self, start: Instant) -> Instant {
        let writes = self.cache.as_ref().and_then(|cache| cache.writes.as_ref());
        let next = writes.and_then(|writes| writes.dirty.next_from(self.at));
        next.map_or(start, |run| self.write_back_run(start, run))
    }

    fn write_back_run(&mut self, start: Instant, run: Range<u64>) -> Instant {
        let arm = self.stop_ahead(start);
        let cache = self.cache_mut();
        let run = run.start..run.end.min(run.start + cache.shape.segment_blocks);
        let writes = cache.writes.as_mut().expect("something waits");
        writes.dirty.remove(&run);
        let service = self.mechanics.serve(&self.geometry, start, arm, run.clone(), Pass::Write, 0);
        self.arm = service.arm;
        self.at = run.end;
        let writes = self.cache_mut().writes.as_mut().expect("as above");
        writes.under_way.push((run.clone(), service.end));
        if let Some(unverified) = &mut self.idle.unverified
            && let Some(dirty) = self.cache.as_ref().and_then(Cache::dirty)
        {
            unverified.reach_medium(&run, dirty);
        }
        service.end
    }

    fn cache_mut(&mut self) -> &mut Cache {
        self.cache.as_mut().expect("only a drive with a cache comes here")
    }
}
