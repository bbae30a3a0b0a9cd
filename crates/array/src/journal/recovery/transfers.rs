//! The commands of a step of a recovery, and the buffers that it holds.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::{BufId, Command, Durability, Effort, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, Extent, Instant, Sectors};

use super::{At, Space};
use crate::action::append;
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::log::contents::Stored;
use crate::names::SubId;

/// The most sectors that are read or written at a time, of all drives together: 32 MiB.
pub(super) const BATCH: u64 = 1 << 13;

/// The most sectors of one command: 1 MiB.
const COMMAND_MAX: u64 = 256;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfers {
    /// Commands that drives have not ended.
    inside: BTreeMap<SubId, Inside>,
    /// What was read in this step.
    filled: Vec<Filled>,
    /// Where each sector of it is.
    had: BTreeMap<At, Place>,
    /// Buffers that are released at the end of the step.
    bufs: Vec<BufId>,
}

#[derive(Clone, Copy, Debug)]
struct Inside {
    drive: DriveIdx,
    /// What it reads; nothing of a write or a flush.
    reads: Option<At>,
}

/// A command to a drive.
#[derive(Clone, Debug)]
struct Asked {
    drive: DriveIdx,
    space: Space,
    command: Command,
    segments: Vec<Segment>,
    reads: Option<At>,
}

/// Neighbouring sectors that are written in place together.
#[derive(Clone, Debug)]
struct PlaceRun {
    drive: DriveIdx,
    extent: Extent,
    segments: Vec<Segment>,
}

/// A buffer that was filled from there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub(super) buf: BufId,
    pub(super) at: At,
}

impl Transfers {
    /// Whether drives have ended all commands.
    pub(super) fn is_quiet(&self) -> bool {
        self.inside.is_empty()
    }

    /// A drive ends nothing any more.
    pub(super) fn lose(&mut self, drive: DriveIdx) {
        self.inside.retain(|_, inside| inside.drive != drive);
    }

    /// A drive has ended a command: what it has read.
    pub(super) fn end(
        &mut self,
        core: &mut Core,
        sub: SubId,
        buf: Option<BufId>,
    ) -> Option<Filled> {
        let Some(Inside { reads, .. }) = self.inside.remove(&sub) else {
            buf.into_iter().for_each(|buf| core.out.release(buf));
            return None;
        };
        let filled = Filled { buf: buf?, at: reads? };
        self.bufs.push(filled.buf);
        self.filled.push(filled);
        Some(filled)
    }

    /// A sector was read to there.
    pub(super) fn keep(&mut self, one: At, place: Place) {
        self.had.insert(one, place);
    }

    /// Where a sector is that was read, if it was given.
    pub(super) fn place_of(&self, one: At) -> Option<Place> {
        self.had.get(&one).copied()
    }

    /// The sectors that were read.
    pub(super) fn had(&self) -> impl Iterator<Item = At> {
        self.had.keys().copied()
    }

    pub(super) fn take_filled(&mut self) -> Vec<Filled> {
        std::mem::take(&mut self.filled)
    }

    /// A buffer until the end of the step.
    pub(super) fn acquire(&mut self, core: &mut Core, sectors: Sectors) -> BufId {
        let buf = core.out.acquire(sectors);
        self.bufs.push(buf);
        buf
    }

    /// The step ends.
    pub(super) fn release(&mut self, core: &mut Core) {
        self.had.clear();
        self.filled.clear();
        self.bufs.drain(..).for_each(|buf| core.out.release(buf));
    }

    pub(super) fn read(&mut self, core: &mut Core, now: Instant, at: At) {
        let place = Place { buf: core.out.name_buf(), sector: 0 };
        let extent = Extent::new(at.lba, at.sectors);
        let command = Command::Read { extent, effort: Effort::Full };
        let segments = vec![Segment { place, sectors: at.sectors.get() as u32 }];
        let (drive, space, reads) = (at.drive, at.space, Some(at));
        self.ask(core, now, Asked { drive, space, command, segments, reads });
    }

    /// Reads sectors, neighbours together.
    pub(super) fn fetch(&mut self, core: &mut Core, now: Instant, wanted: &BTreeSet<At>) {
        let mut runs: Vec<At> = Vec::new();
        for &at in wanted {
            let goes_on = runs.last().is_some_and(|run| {
                let is_next = run.drive == at.drive && run.space == at.space && run.end() == at.lba;
                let is_whole = at.space == Space::Drive || core.area().may_pass(at.lba, at.lba);
                is_next && is_whole && run.sectors.get() < COMMAND_MAX
            });
            match runs.last_mut() {
                Some(run) if goes_on => run.sectors += Sectors::new(1),
                Some(_) | None => runs.push(at),
            }
        }
        runs.into_iter().for_each(|run| self.read(core, now, run));
    }

    /// Writes all of a buffer to there.
    pub(super) fn write(
        &mut self,
        core: &mut Core,
        now: Instant,
        at: At,
        buf: BufId,
        durability: Durability,
    ) {
        let At { drive, space, lba, sectors } = at;
        let (extent, zero_tail) = (Extent::new(lba, sectors), ZeroTail::None);
        let command = Command::Write { extent, durability, zero_tail };
        let place = Place { buf, sector: 0 };
        let segments = vec![Segment { place, sectors: sectors.get() as u32 }];
        self.ask(core, now, Asked { drive, space, command, segments, reads: None });
    }

    /// Writes sectors in place, neighbours together.
    pub(super) fn write_in_place(
        &mut self,
        core: &mut Core,
        now: Instant,
        mut placed: Vec<Stored>,
    ) {
        placed.sort_by_key(|stored| stored.cell);
        let mut runs: Vec<PlaceRun> = Vec::new();
        for Stored { cell: to, place } in placed {
            match runs.last_mut() {
                Some(run)
                    if run.drive == to.drive
                        && run.extent.end() == to.lba
                        && core.area().are_neighbours(to.lba, to.lba)
                        && run.extent.sectors.get() < COMMAND_MAX =>
                {
                    run.extent.sectors += Sectors::new(1);
                    append(&mut run.segments, place);
                }
                Some(_) | None => {
                    let extent = Extent::new(to.lba, Sectors::new(1));
                    let segments = vec![Segment { place, sectors: 1 }];
                    runs.push(PlaceRun { drive: to.drive, extent, segments });
                }
            }
        }
        for PlaceRun { drive, extent, segments } in runs {
            let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
            let command = Command::Write { extent, durability, zero_tail };
            let space = Space::Layout;
            self.ask(core, now, Asked { drive, space, command, segments, reads: None });
        }
    }

    /// Flushes all drives that are there.
    pub(super) fn flush(&mut self, core: &mut Core, now: Instant) {
        for drive in core.drives.reachable().iter() {
            let (space, command, segments) = (Space::Layout, Command::Flush, Vec::new());
            self.ask(core, now, Asked { drive, space, command, segments, reads: None });
        }
    }

    fn ask(&mut self, core: &mut Core, now: Instant, asked: Asked) {
        let Asked { drive, space, command, segments, reads } = asked;
        let purpose = match space {
            Space::Drive => Purpose::Ring,
            Space::Layout => Purpose::Place,
        };
        let origin = core.own_origin();
        let (end, fate, since) = (End::Tail, Fate::Certain, None);
        let segments = segments.into();
        let enqueued = Enqueue { purpose, drive, command, segments, origin, end, fate, since };
        let sub = core.enqueue(now, enqueued);
        self.inside.insert(sub, Inside { drive, reads });
    }
}
