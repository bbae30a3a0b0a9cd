//! The disk proper: what a command does to arm, platter and memory, and when that is over.
//!
//! It knows blocks, not sectors, and no failures: the drive around it says how many revolutions a
//! read spends on retries, and by how much its end is late.

use std::ops::Range;
use std::sync::Arc;

use levelhead_units::{Instant, Nanos, SECTOR_SIZE};

use crate::cache::{Cache, Class, Write};
use crate::geometry::Geometry;
use crate::mechanics::{Arm, Mechanics, Pass, Stretch};
use crate::queue::Choice;
use crate::{Profile, Settings};

mod cached;
mod idle;

pub(crate) use idle::{Alone, IdleWork};

/// What a command asks of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Read these blocks, from memory or the medium.
    Read(Stretch),
    /// Read these blocks from the medium, where some of them fail, with `rotations` revolutions of
    /// retries at the end.
    ReadHard { stretch: Stretch, rotations: u32 },
    /// Read these blocks from the medium, once what waits for them in memory is there, with `rotations` revolutions
    /// of retries at the end.
    ReadMedium { stretch: Stretch, rotations: u32 },
    /// Write these blocks.
    Write(Write),
    /// Bring all that was written to the medium.
    Flush,
    /// Only the controller's part.
    Nothing,
}

/// When a command's parts end, if nothing holds it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// Whether memory had it, or was about to.
    pub(crate) is_hit: bool,
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
    /// What it does when it is idle.
    pub(crate) idle: IdleWork,
    /// The write in service that will wait for its verification.
    writing: Option<Write>,
}

impl Disk {
    /// A disk of this make at rest, with its arm over the first cylinder and its platter at that
    /// phase at time zero.
    pub(crate) fn new(profile: &Profile, settings: &Settings, phase: u64) -> Self {
        let (geometry, mechanics) = (profile.geometry(), profile.mechanics(phase));
        let block_size = SECTOR_SIZE as u64 / geometry.blocks_per_sector();
        let Settings { cache, retention, verify, .. } = *settings;
        let cache =
            profile.cache().and_then(|shape| Cache::new(shape, cache, retention, block_size));
        let idle = IdleWork::new(verify, block_size, &mechanics);
        Self {
            geometry,
            mechanics,
            arm: Arm::default(),
            at: 0,
            free: Instant::ZERO,
            ended: Instant::ZERO,
            last: Pass::Read,
            in_service: None,
            cache,
            is_ahead_new: false,
            idle,
            writing: None,
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
            Work::Read(stretch) if self.cache.is_some() => self.read_cached(start, stretch.blocks),
            Work::Read(stretch) => self.read(start, stretch, 0),
            Work::ReadHard { stretch, rotations } => self.read(start, stretch, rotations),
            Work::ReadMedium { stretch, rotations } => self.read_medium(start, stretch, rotations),
            Work::Write(write) => self.write_kept(start, write),
            Work::Flush => self.flush(start),
            Work::Nothing => {
                let end = start + self.mechanics.overheads.in_cache(Pass::Write, self.last);
                Served { is_hit: true, first_pass: end, end }
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
        if let Some(writes) = self.cache.as_mut().and_then(|cache| cache.writes.as_mut()) {
            writes.under_way.retain(|&(_, end)| end > ended);
        }
        (self.free, self.ended) = (ended, ended);
        self.keep(ended);
    }

    fn read(&mut self, start: Instant, stretch: Stretch, rotations: u32) -> Served {
        let blocks = &stretch.blocks;
        self.count(Class::Read);
        let moving = start + self.mechanics.overheads.on_medium(Pass::Read, self.last);
        self.arm = self.stop_ahead(start);
        self.at = blocks.end;
        let bus = self.mechanics.bus_floor(blocks.end - blocks.start);
        let service =
            self.mechanics.serve(&self.geometry, moving, self.arm, stretch, Pass::Read, rotations);
        (self.arm, self.last) = (service.arm, Pass::Read);
        // Bytes leave as they are read.
        let first_pass = service.first_pass.max(service.positioned + bus);
        let retries: Nanos = service.end - service.first_pass;
        Served { is_hit: false, first_pass, end: first_pass + retries }
    }

    /// A write, and what is kept of it.
    fn write_kept(&mut self, start: Instant, write: Write) -> Served {
        self.count(Class::Write);
        let waits = self.idle.verifies();
        // What has made room by now was not this write.
        self.follow_ahead(start);
        self.let_go();
        if let Some(unverified) = &mut self.idle.unverified {
            let dirty = self.cache.as_ref().and_then(Cache::dirty);
            unverified.supersede(&self.geometry, dirty, &write.blocks);
        }
        let Write { blocks, is_durable, read_backs, .. } = write.clone();
        let served = self.write_cached(start, &blocks, is_durable);
        if let Some(list) = self.cache.as_mut().and_then(|cache| cache.kept.list()) {
            list.keep_write(blocks.clone(), waits);
        }
        self.writing = Some(write);
        served.unwrap_or_else(|| self.write(start, blocks, read_backs))
    }

    fn count(&mut self, class: Class) {
        if let Some(cache) = &mut self.cache {
            cache.kept.count(class);
        }
    }

    fn write(&mut self, start: Instant, blocks: Range<u64>, read_backs: u32) -> Served {
        // The bytes come while the arm moves.
        let moving = start + self.mechanics.overheads.on_medium(Pass::Write, self.last);
        self.arm = self.stop_ahead(start);
        self.at = blocks.end;
        let service =
            self.mechanics.serve(&self.geometry, moving, self.arm, blocks.clone(), Pass::Write, 0);
        (self.arm, self.last) = (service.arm, Pass::Write);
        let mut end = service.end;
        for at in 0..read_backs {
            // What differed was written again before.
            let passes = if at == 0 { &[Pass::Read][..] } else { &[Pass::Write, Pass::Read] };
            for &pass in passes {
                end = self.pass_over(end, self.arm, &blocks, pass);
            }
        }
        Served { is_hit: false, first_pass: end, end }
    }

    /// A pass over `blocks` without a command, from `start` on; when that is over.
    fn pass_over(&mut self, start: Instant, arm: Arm, blocks: &Range<u64>, pass: Pass) -> Instant {
        let service = self.mechanics.serve(&self.geometry, start, arm, blocks.clone(), pass, 0);
        (self.arm, self.at) = (service.arm, blocks.end);
        service.end
    }
}
