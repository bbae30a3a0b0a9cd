//! Reading ahead: after a read the drive goes on with the blocks that follow, until another command
//! needs the arm or the segment is as full as the make allows.
//!
//! Nothing happens while it does so: how far it has come follows from the time, track by track, when
//! the drive is asked. What was computed for a track that has been read is not computed again.

use std::ops::Range;

use levelhead_units::{Instant, Nanos};

use super::segments::SegmentIdx;
use crate::geometry::Geometry;
use crate::mechanics::{Arm, Mechanics};

/// The reading under way, or at its end with the arm still there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// The segment that it fills.
    pub(crate) segment: SegmentIdx,
    /// All before `next` was read by `since`, when the arm was there.
    since: Instant,
    arm: Arm,
    next: u64,
    /// Where it ends.
    limit: u64,
}

impl Ahead {
    /// The arm is free at `since` and goes on with `next`, up to `limit`.
    pub(crate) fn new(
        segment: SegmentIdx,
        since: Instant,
        arm: Arm,
        next: u64,
        limit: u64,
    ) -> Self {
        Self { segment, since, arm, next, limit }
    }

    /// Up to where everything has been read by `now`, and where the arm is then.
    pub(crate) fn progress(
        &mut self,
        mechanics: &Mechanics,
        geometry: &Geometry,
        now: Instant,
    ) -> (u64, Arm) {
        while self.next < self.limit {
            let position = geometry.position(self.next);
            let track_end = self.next + u64::from(position.run).min(self.limit - self.next);
            let (reached, arm, end) =
                mechanics.read_on(self.since, self.arm, &position, track_end - self.next);
            if end > now {
                if reached > now {
                    return (self.next, self.arm);
                }
                return (self.next + mechanics.passed(reached, now, &position), arm);
            }
            *self = Self { since: end, arm, next: track_end, ..*self };
        }
        (self.next, self.arm)
    }

    /// When everything before `block` has been read. It must not be past the limit.
    pub(crate) fn when(&self, mechanics: &Mechanics, geometry: &Geometry, block: u64) -> Instant {
        assert!(block <= self.limit);
        let mut ahead = *self;
        while ahead.next < block {
            let position = geometry.position(ahead.next);
            let next = ahead.next + u64::from(position.run).min(block - ahead.next);
            let (_, arm, end) =
                mechanics.read_on(ahead.since, ahead.arm, &position, next - ahead.next);
            ahead = Self { since: end, arm, next, ..ahead };
        }
        ahead.since
    }

    /// When it is at its end.
    pub(crate) fn done_at(&self, mechanics: &Mechanics, geometry: &Geometry) -> Instant {
        self.when(mechanics, geometry, self.limit)
    }

    /// Whether it is to read some of these blocks.
    pub(crate) fn reads(&self, blocks: &Range<u64>) -> bool {
        self.next < blocks.end && blocks.start < self.limit
    }

    /// It goes on to `limit`, if that is further. If it had stopped, it begins again now.
    pub(crate) fn extend(&mut self, now: Instant, limit: u64) {
        if self.next == self.limit {
            self.since = self.since.max(now);
        }
        self.limit = self.limit.max(limit);
    }

    /// It was held up for the time `by`.
    pub(crate) fn delay(&mut self, by: Nanos) {
        self.since = self.since + by;
    }
}
