//! The disk proper: what a command does to arm, platter and memory, and when that is over.
//!
//! It knows blocks, not sectors, and no failures: the drive around it says how many revolutions a
//! read spends on retries, and by how much its end is late.

use std::ops::Range;
use std::sync::Arc;

use levelhead_units::{Instant, Nanos};

use crate::cache::Cache;
use crate::geometry::Geometry;
use crate::mechanics::{Arm, Mechanics, Pass};
use crate::queue::Choice;
use crate::{CacheMode, Profile};

mod cached;

/// What a command asks of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Read these blocks, from memory or the medium.
    Read { blocks: Range<u64> },
    /// Read these blocks from the medium, where some of them fail, with `rotations` revolutions of
    /// retries at the end.
    ReadHard { blocks: Range<u64>, rotations: u32 },
    /// Read these blocks from the medium, once what waits for them in memory is there, with `rotations` revolutions
    /// of retries at the end.
    ReadMedium { blocks: Range<u64>, rotations: u32 },
    /// Write these blocks; a durable write ends on the medium.
    Write { blocks: Range<u64>, is_durable: bool },
    /// Bring all that was written to the medium.
    Flush,
    /// Only the controller's part.
    Nothing,
}

/// When a command's parts end, if nothing holds it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// The first pass, its bytes delivered.
    pub(crate) first_pass: Instant,
    /// The last retry.
    pub(crate) end: Instant,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) mechanics: Mechanics,
    /// Where the arm is once the command in service is over.
    arm: Arm,
    /// The block after the last one that was read or written there.
    at: u64,
    /// When the disk is free for a command.
    free: Instant,
    /// When the last command ended.
    ended: Instant,
    /// The kind of the last command.
    last: Pass,
    /// When the command in service will end if nothing holds it up.
    in_service: Option<Instant>,
    cache: Option<Cache>,
    /// Whether the reading ahead began with the command in service.
    is_ahead_new: bool,
}

impl Disk {
    /// A disk of this make at rest, with its arm over the first cylinder and its platter at that
    /// phase at time zero.
    pub(crate) fn new(profile: &Profile, cache: CacheMode, phase: u64) -> Self {
        Self {
            geometry: profile.geometry(),
            mechanics: profile.mechanics(phase),
            arm: Arm::default(),
            at: 0,
            free: Instant::ZERO,
            ended: Instant::ZERO,
            last: Pass::Read,
            in_service: None,
            cache: profile.cache().and_then(|shape| Cache::new(shape, cache)),
            is_ahead_new: false,
        }
    }

    /// When it is free for a command: the last one is over, and what it did on its own since.
    pub(crate) fn free(&self) -> Instant {
        self.free
    }

    /// When it is done with what it has begun on its own, if it has since the last command.
    pub(crate) fn busy_until(&self) -> Option<Instant> {
        (self.free > self.ended).then_some(self.free)
    }

    /// From where a command is chosen at `at`, or when the disk is free.
    pub(crate) fn choice(&self, at: Instant) -> Choice<'_> {
        let Self { mechanics, cache, free, last, .. } = self;
        let arm = self.arm_at(at.max(*free));
        Choice { mechanics, free: *free, arm, last: *last, cache: cache.as_ref() }
    }

    /// Does the work of a command that begins at `start`, when the last one is over.
    pub(crate) fn serve(&mut self, start: Instant, work: Work) -> Served {
        let served = match work {
            Work::Read { blocks } if self.cache.is_some() => self.read_cached(start, blocks),
            Work::Read { blocks } => self.read(start, blocks, 0),
            Work::ReadHard { blocks, rotations } => self.read(start, blocks, rotations),
            Work::ReadMedium { blocks, rotations } => self.read_medium(start, blocks, rotations),
            Work::Write { blocks, is_durable } => self
                .write_cached(start, &blocks, is_durable)
                .unwrap_or_else(|| self.write(start, blocks)),
            Work::Flush => self.flush(start),
            Work::Nothing => {
                let end = start + self.mechanics.overheads.in_cache(Pass::Write, self.last);
                Served { first_pass: end, end }
            }
        };
        self.in_service = Some(served.end);
        served
    }

    /// The command served last is over at `ended`.
    pub(crate) fn finish(&mut self, ended: Instant) {
        let expected = self.in_service.take().unwrap_or(ended);
        // The platter has turned on meanwhile: the reading ahead begins where it is then.
        if let Some(cache) = &mut self.cache
            && let Some(ahead) = &mut cache.ahead
            && std::mem::take(&mut self.is_ahead_new)
        {
            ahead.delay(ended.saturating_since(expected));
        }
        (self.free, self.ended) = (ended, ended);
    }

    fn read(&mut self, start: Instant, blocks: Range<u64>, rotations: u32) -> Served {
        let moving = start + self.mechanics.overheads.on_medium(Pass::Read, self.last);
        self.arm = self.stop_ahead(start);
        self.at = blocks.end;
        let bus = self.mechanics.bus_floor(blocks.end - blocks.start);
        let service =
            self.mechanics.serve(&self.geometry, moving, self.arm, blocks, Pass::Read, rotations);
        (self.arm, self.last) = (service.arm, Pass::Read);
        // Bytes leave as they are read.
        let first_pass = service.first_pass.max(service.positioned + bus);
        let retries: Nanos = service.end - service.first_pass;
        Served { first_pass, end: first_pass + retries }
    }

    fn write(&mut self, start: Instant, blocks: Range<u64>) -> Served {
        // The bytes come while the arm moves.
        let moving = start + self.mechanics.overheads.on_medium(Pass::Write, self.last);
        self.arm = self.stop_ahead(start);
        self.at = blocks.end;
        let service =
            self.mechanics.serve(&self.geometry, moving, self.arm, blocks, Pass::Write, 0);
        (self.arm, self.last) = (service.arm, Pass::Write);
        Served { first_pass: service.end, end: service.end }
    }
}
