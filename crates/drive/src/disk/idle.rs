//! What the disk does on its own when no command is there: one choice.
//!
//! ```text
//!   command ends --- idle --- begins something --- ends --- begins something .. --- command comes
//!                  write back:  after the make's write delay, before all else
//!                  read ahead:  at once, as far as the make goes; a part at a time
//!                  verify:      after the idle wait, when reading ahead is over
//! ```
//!
//! The next verification is that of the part that can be reached soonest (SPTF over all parts that wait for it and are on
//! the medium). Nothing that has begun is interrupted: a command that comes waits for its end. What is read ahead has no
//! end to wait for.
//!
//! None of this is an event for a clock: it is computed when the next command or question comes, from the
//! times at which it must have happened. Only a runtime that keeps bytes, where a difference is expected, asks before.
//!
//! # Invariants
//!
//! - ID1. Nothing begins at or after the time at which a command comes.
//! - ID2. When and in which order things are done does not depend on when the disk is asked.
//! - ID3. A late start ends when one at once would: the latency is waited out before the seek.
//!
//! # References
//!
//! - `[IRAW08]` sections 3 and 5.2: the idle wait, SPTF in the background, no interruption.

use std::ops::Range;
use std::sync::Arc;

use levelhead_units::{Instant, Nanos};

use super::Disk;
use crate::cache::{BytesGone, Cache, End, Form, Part, Unverified};
use crate::mechanics::{Arm, Mechanics, Pass};
use crate::{IdleVerify, Verify, VerifyStart};

/// What a disk does on its own besides reading ahead and writing back.
#[derive(Debug)]
pub(crate) struct IdleWork {
    how: Option<IdleVerify>,
    pub(crate) unverified: Option<Unverified>,
    /// The least time that a seek over this number of cylinders or more takes.
    seek_least: Arc<[u32]>,
    under_way: Option<UnderWay>,
    /// The last time that the disk was busy with a verification.
    busy: Range<Instant>,
    /// Parts of which the bytes are gone, until the drive has heard of it.
    bytes_gone: Vec<BytesGone>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    start: u64,
    pass: Pass,
    end: Instant,
}

/// Something that the disk has done on its own, of which the drive makes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// This part has been read back.
    ReadBack(Part, Instant),
    /// This part has been written again.
    WrittenAgain(Part),
}

/// What is next, and when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    WriteBack,
    /// The part that begins there.
    Verify(u64),
}

impl IdleWork {
    pub(super) fn new(verify: Verify, block_size: u64, mechanics: &Mechanics) -> Self {
        let how = match verify {
            Verify::Off | Verify::Raw => None,
            Verify::Idle(idle) => Some(idle),
        };
        let mut seek_least: Vec<u32> = Vec::new();
        if how.is_some() {
            // A measured curve may fall here and there.
            let both = mechanics.seek.iter().zip(mechanics.seek_write.iter());
            seek_least = both.map(|(read, write)| *read.min(write)).collect();
            for at in (1..seek_least.len()).rev() {
                seek_least[at - 1] = seek_least[at - 1].min(seek_least[at]);
            }
        }
        Self {
            how,
            unverified: how.map(|idle| Unverified::new(idle.sums.get(), block_size)),
            seek_least: seek_least.into(),
            under_way: None,
            busy: Instant::ZERO..Instant::ZERO,
            bytes_gone: Vec::new(),
        }
    }

    /// The power fails: nothing waits any longer.
    pub(super) fn forget_all(&mut self) {
        (self.under_way, self.busy) = (None, Instant::ZERO..Instant::ZERO);
        if let Some(unverified) = &mut self.unverified {
            self.bytes_gone.extend(unverified.forget_all());
        }
    }

    /// Whether writes wait for their verification.
    pub(super) fn verifies(&self) -> bool {
        self.how.is_some()
    }

    /// What is left at `at` of the verification during which that time lies, if it lies in one.
    pub(crate) fn left_at(&self, at: Instant) -> Option<Nanos> {
        (self.busy.start < at && at < self.busy.end).then(|| self.busy.end - at)
    }

    /// The parts of which the bytes have gone since the last call.
    pub(crate) fn take_bytes_gone(&mut self) -> Vec<BytesGone> {
        std::mem::take(&mut self.bytes_gone)
    }
}

impl Disk {
    /// The next thing that the disk has done on its own by `now`, of those that began before `came`: when the first
    /// command came that waits, or `now` if none does. To be called until there is none.
    pub(crate) fn catch_up(&mut self, came: Instant, now: Instant) -> Option<Alone> {
        if self.in_service.is_some() {
            return None;
        }
        loop {
            if let Some(UnderWay { start, pass, end }) = self.idle.under_way {
                if end > now {
                    return None;
                }
                self.idle.under_way = None;
                let unverified = self.idle.unverified.as_mut().expect("a part was under way");
                if let Some(part) = unverified.part(start).cloned() {
                    return Some(match pass {
                        Pass::Read => Alone::ReadBack(part, end),
                        Pass::Write => {
                            unverified.repaired(start);
                            Alone::WrittenAgain(part)
                        }
                    });
                }
            }
            let next = self.next_alone(came).filter(|(begin, _)| *begin < came);
            let Some((begin, next)) = next else {
                if let Some(writes) = self.cache.as_mut().and_then(|cache| cache.writes.as_mut()) {
                    writes.under_way.retain(|&(_, end)| end > now);
                }
                return None;
            };
            match next {
                Next::WriteBack => {
                    self.free = self.write_back(begin);
                    self.let_go();
                }
                Next::Verify(start) => {
                    // What is read ahead until then may need the room of the very part that was chosen.
                    self.follow_ahead(begin);
                    if !self.let_go() {
                        self.verify(begin, start);
                    }
                }
            }
        }
    }

    /// When the next thing ends that it does on its own; nothing if it has nothing to do, or if a command is
    /// in service.
    pub(crate) fn alone_until(&self) -> Option<Instant> {
        if self.in_service.is_some() {
            return None;
        }
        if let Some(under_way) = self.idle.under_way {
            return Some(under_way.end);
        }
        // An end of anything that begins then is later than that by at least this.
        let next = self.next_alone(Instant::from_nanos(u64::MAX));
        next.map(|(begin, _)| begin + Nanos::new(1))
    }

    /// The part that begins at `start` is what was written, or is not waited for any longer.
    pub(crate) fn settle(&mut self, start: u64, end: End) {
        if let Some(unverified) = &mut self.idle.unverified {
            unverified.finish(start, end);
        }
        if let Some(list) = self.cache.as_mut().and_then(|cache| cache.kept.list()) {
            list.settle(start);
        }
    }

    /// The command in service is over at `ended`: a write waits from now on, and what made room for it or for
    /// what was read does not.
    pub(super) fn keep(&mut self, ended: Instant) {
        if let Some(write) = self.writing.take()
            && let Some(unverified) = &mut self.idle.unverified
        {
            let dirty = self.cache.as_ref().and_then(Cache::dirty);
            unverified.put(&self.geometry, dirty, write, ended);
        }
        if let Some(list) = self.cache.as_mut().and_then(|cache| cache.kept.list()) {
            list.complete_write();
        }
        self.let_go();
        if let Some(unverified) = &mut self.idle.unverified {
            unverified.measure();
        }
    }

    /// What has made room in memory does not wait with its bytes any more. Whether anything has.
    pub(super) fn let_go(&mut self) -> bool {
        let Some(list) = self.cache.as_mut().and_then(|cache| cache.kept.list()) else {
            return false;
        };
        let evicted = list.take_evicted();
        let Some(unverified) = &mut self.idle.unverified else { return false };
        for blocks in &evicted {
            self.idle.bytes_gone.extend(unverified.lose_bytes(blocks.start));
        }
        !evicted.is_empty()
    }

    /// What the disk does next on its own, and when it begins that, if it could before `came`.
    fn next_alone(&self, came: Instant) -> Option<(Instant, Next)> {
        let writes_back = self.cache.as_ref().and_then(|cache| {
            let writes = cache.writes.as_ref().filter(|writes| !writes.dirty.is_empty());
            writes.map(|_| self.free.max(self.ended + cache.shape.write_delay))
        });
        // What is written back first needs no choice of what is verified then.
        let verifies = self.next_verification(writes_back.map_or(came, |at| came.min(at)));
        match (writes_back, verifies) {
            (Some(at), Some((begin, _))) if at <= begin => Some((at, Next::WriteBack)),
            (_, Some((begin, start))) => Some((begin, Next::Verify(start))),
            (Some(at), None) => Some((at, Next::WriteBack)),
            (None, None) => None,
        }
    }

    /// The next part to be read back, or written again, and when the disk begins with that.
    fn next_verification(&self, came: Instant) -> Option<(Instant, u64)> {
        let how = self.idle.how?;
        let unverified = self.idle.unverified.as_ref().filter(|waiting| !waiting.is_empty())?;
        let mut at = self.free.max(self.ended + how.wait);
        if let Some(cache) = &self.cache
            && let Some(ahead) = &cache.ahead
        {
            at = at.max(ahead.done_at(&self.mechanics, &self.geometry));
        }
        if at >= came {
            return None;
        }
        let arm = self.arm_at(at);
        let (part, latency) = self.soonest(unverified, at, arm)?;
        let begin = match how.start {
            VerifyStart::AtOnce => at,
            VerifyStart::Late => at + latency,
        };
        Some((begin, part))
    }

    /// The first block of the part that the arm can be over soonest, and the latency of that.
    fn soonest(&self, unverified: &Unverified, at: Instant, arm: Arm) -> Option<(u64, Nanos)> {
        let mut best: Option<(Nanos, u64, Nanos)> = None;
        let (inwards, outwards) = unverified.near(arm.cylinder);
        let mut consider = |part: &Part| {
            let position = self.geometry.position(part.blocks.start);
            let distance = arm.cylinder.abs_diff(position.cylinder) as usize;
            let least = Nanos::new(self.idle.seek_least[distance].into());
            if best.is_some_and(|(soonest, ..)| soonest <= least) {
                return false;
            }
            let reach = self.mechanics.reach(arm, &position, pass_of(part));
            let latency = self.mechanics.latency_floor(at + reach, &position);
            let key = (reach + latency, part.blocks.start, latency);
            if best.is_none_or(|best| key < best) {
                best = Some(key);
            }
            true
        };
        for part in inwards {
            if !consider(part) {
                break;
            }
        }
        for part in outwards {
            if !consider(part) {
                break;
            }
        }
        best.map(|(_, start, latency)| (start, latency))
    }

    fn verify(&mut self, begin: Instant, start: u64) {
        let part = self.idle.unverified.as_ref().and_then(|waiting| waiting.part(start));
        let part = part.expect("it was chosen among those that wait");
        let (blocks, pass) = (part.blocks.clone(), pass_of(part));
        let arm = self.stop_ahead(begin);
        let end = self.pass_over(begin, arm, &blocks, pass);
        self.idle.busy = begin..end;
        self.idle.under_way = Some(UnderWay { start, pass, end });
        self.free = end;
    }
}

/// Whether a part is read next, or written again.
fn pass_of(part: &Part) -> Pass {
    if part.is_wrong && part.form == Form::Bytes { Pass::Write } else { Pass::Read }
}

#[cfg(test)]
mod tests {
    use levelhead_block::ZeroTail;
    use levelhead_stats::Streams;

    use super::*;
    use crate::cache::Write;
    use crate::disk::Work;
    use crate::{CacheMode, Placing, Profile, Retention, Settings};

    /// A disk that is never idle writes back all the same, to make room.
    #[test]
    fn what_has_reached_the_medium_is_not_kept_as_under_way() {
        let profile = Profile::shipped("nearline-2tb").expect("it is shipped");
        let settings = Settings { queue_depth: 1, cache: CacheMode::WriteBack, ..Settings::PLAIN };
        let mut disk = Disk::new(&profile, &settings, 0);
        let (mut now, mut most) = (Instant::ZERO, 0);
        for id in 0..5_000 {
            let blocks = id * 1_000..id * 1_000 + 8;
            let (is_durable, read_backs, zero_tail) = (false, 0, ZeroTail::None);
            let write = Write { blocks, is_durable, read_backs, id, origin: id, zero_tail };
            now = disk.serve(now, Work::Write(write)).end;
            disk.finish(now);
            let writes = disk.cache.as_ref().and_then(|cache| cache.writes.as_ref());
            most = most.max(writes.expect("it writes back").under_way.len());
        }
        assert!(most <= 1, "{most}");
    }

    /// UV4, against the definition.
    #[test]
    fn only_what_is_on_the_medium_is_looked_at() {
        let profile = Profile::shipped("nearline-2tb").expect("it is shipped");
        let settings = Settings {
            queue_depth: 1,
            cache: CacheMode::WriteBack,
            retention: profile.memory().map(|memory| Retention::new(Placing::MruMru, memory)),
            verify: Verify::IDLE,
            ..Settings::PLAIN
        };
        let (mut dirty_most, mut clean_most) = (0, 0);
        for seed in 0..40 {
            let mut rng = Streams::new(seed).stream("idle");
            let mut disk = Disk::new(&profile, &settings, 0);
            let mut now = Instant::ZERO;
            for id in 0..400 {
                let start = rng.below(2_000);
                let blocks = start..start + 1 + rng.below(40);
                let (is_durable, read_backs, origin) = (rng.below(4) == 0, 0, id);
                let work = match rng.below(8) {
                    0 => Work::Flush,
                    1 => Work::Read(blocks.into()),
                    _ => {
                        let zero_tail = ZeroTail::None;
                        let write = Write { blocks, is_durable, read_backs, id, origin, zero_tail };
                        Work::Write(write)
                    }
                };
                now = disk.serve(now.max(disk.free()), work).end;
                disk.finish(now);
                let pause = [0, 3, 300][rng.below(3) as usize];
                now = now + Nanos::from_millis(rng.below(1 + pause));
                while let Some(done) = disk.catch_up(now, now) {
                    if let Alone::ReadBack(part, at) = done {
                        disk.settle(part.blocks.start, End::Verified(at));
                    }
                }
                let unverified = disk.idle.unverified.as_ref().expect("it verifies");
                let dirty = disk.cache.as_ref().and_then(Cache::dirty).expect("it writes back");
                let is_clean = |part: &&Part| dirty.overlapping(&part.blocks).is_none();
                let all = || unverified.overlapping(&(0..u64::MAX));
                let (mut near, outwards) = unverified.near(0);
                assert!(all().filter(is_clean).eq(near.by_ref()), "seed {seed}, {id}");
                assert_eq!(outwards.count(), 0);
                let clean = all().filter(is_clean).count();
                clean_most = clean_most.max(clean);
                dirty_most = dirty_most.max(all().count() - clean);
            }
        }
        assert!(clean_most > 10, "{clean_most}");
        assert!(dirty_most > 10, "{dirty_most}");
    }
}
