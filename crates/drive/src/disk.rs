//! The disk proper: what a command does to arm, platter and memory, and when that is over.
//!
//! It knows blocks, not sectors, and no failures: the drive around it says how many revolutions a
//! read spends on retries, and by how much its end is late.

use std::ops::Range;
use std::sync::Arc;

use levelhead_units::{Instant, Nanos};

use crate::Profile;
use crate::geometry::Geometry;
use crate::mechanics::{Arm, Mechanics, Pass};
use crate::queue::Choice;

/// What a command asks of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Read these blocks, with so many revolutions of retries at the end.
    Read { blocks: Range<u64>, rotations: u32 },
    /// Write these blocks.
    Write { blocks: Range<u64> },
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
    /// When the last command ended.
    free: Instant,
    /// The kind of the last command.
    last: Pass,
}

impl Disk {
    /// A disk of this make at rest, with its arm over the first cylinder and its platter at that
    /// phase at time zero.
    pub(crate) fn new(profile: &Profile, phase: u64) -> Self {
        Self {
            geometry: profile.geometry(),
            mechanics: profile.mechanics(phase),
            arm: Arm::default(),
            free: Instant::ZERO,
            last: Pass::Read,
        }
    }

    /// When the last command ended.
    pub(crate) fn free(&self) -> Instant {
        self.free
    }

    /// From where the next command is chosen.
    pub(crate) fn choice(&self) -> Choice<'_> {
        let Self { mechanics, arm, free, last, .. } = self;
        Choice { mechanics, free: *free, arm: *arm, last: *last }
    }

    /// Does the work of a command that begins at `start`, when the last one is over.
    pub(crate) fn serve(&mut self, start: Instant, work: Work) -> Served {
        match work {
            Work::Read { blocks, rotations } => self.read(start, blocks, rotations),
            Work::Write { blocks } => self.write(start, blocks),
            Work::Nothing => {
                let end = start + self.mechanics.overheads.in_cache(Pass::Write, self.last);
                Served { first_pass: end, end }
            }
        }
    }

    /// The command served last is over at `ended`.
    pub(crate) fn finish(&mut self, ended: Instant) {
        self.free = ended;
    }

    fn read(&mut self, start: Instant, blocks: Range<u64>, rotations: u32) -> Served {
        let moving = start + self.mechanics.overheads.on_medium(Pass::Read, self.last);
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
        let service =
            self.mechanics.serve(&self.geometry, moving, self.arm, blocks, Pass::Write, 0);
        (self.arm, self.last) = (service.arm, Pass::Write);
        Served { first_pass: service.end, end: service.end }
    }
}
