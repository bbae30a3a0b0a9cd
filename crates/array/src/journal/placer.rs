//! Writes in place: for each drive the sectors that are on their way there, and what a flush has still to make safe.
//!
//! Places are written beside what clients ask: while a drive has nothing else to do, and in any case
//! once many wait for it. A flush of the drive makes them safe, many at a time.

use std::collections::BTreeSet;

use levelhead_block::Segment;
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos, Sectors};

use super::unplaced::{Pick, Unplaced};
use crate::action::SubId;
use crate::ops::read::append;
use crate::shape::Area;

/// The most sectors that wait for their places on one drive: after a crash they are written in a few seconds.
pub(crate) const BACKLOG_MAX: usize = 1_000;

/// A drive that clients keep busy gets one command for every 128 sectors that wait for their places.
const PRESSING: usize = 128;

/// The most commands that write places on one drive at a time.
const COMMANDS_MAX: usize = 64;

/// The most sectors of one such command: 1 MiB.
const COMMAND_MAX: u64 = 256;

/// A drive is flushed when this number of sectors is in their places and not safe,
const FLUSH_SECTORS: usize = 512;

/// or of intents this number, 32 MiB, which a recovery reads in less than a second,
const FLUSH_STREAMED: usize = 8_192;

/// or this long after the first of them.
const FLUSH_PAUSE: Nanos = Nanos::from_secs(5);

/// A sector that is on its way to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placing {
    pub(crate) lba: Lba,
    pub(crate) id: u64,
}

/// A write in place that the drive has not ended.
#[derive(Debug)]
struct Command {
    sub: SubId,
    cells: Vec<Placing>,
}

/// How urgent it is that places are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// When the drive has nothing else to do.
    Idle,
    /// Now: something waits for it.
    Now,
}

/// What a drive is doing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy {
    /// Commands that wait for it or are inside it.
    pub(crate) queue: usize,
    /// Where the last command began that it was given, as it counts its sectors.
    pub(crate) arm: Lba,
}

/// The next write in place.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) extent: Extent,
    pub(crate) segments: Vec<Segment>,
    cells: Vec<Placing>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Placer {
    drive: DriveIdx,
    commands: Vec<Command>,
    /// The sectors of all of these.
    inside: BTreeSet<Lba>,
    /// Transactions of sectors that are in place and not safe, once for each sector.
    unsafe_ids: Vec<u64>,
    /// How many sectors the intents among them have.
    streamed: usize,
    /// Since when there are some.
    unsafe_since: Instant,
    flush: Option<Flush>,
}

#[derive(Debug)]
struct Flush {
    sub: SubId,
    covers: Vec<u64>,
}

impl Placer {
    pub(crate) fn new(drive: DriveIdx) -> Self {
        Self {
            drive,
            commands: Vec::new(),
            inside: BTreeSet::new(),
            unsafe_ids: Vec::new(),
            streamed: 0,
            unsafe_since: Instant::ZERO,
            flush: None,
        }
    }

    /// The next write in place, if it is time for one: of what waits the sectors from the last one on, as long as
    /// they are neighbours. `queue` commands wait for the drive or are inside it.
    pub(crate) fn next(
        &self,
        unplaced: &Unplaced,
        area: &Area,
        marked: u64,
        haste: Haste,
        drive: Busy,
    ) -> Option<Next> {
        let backlog = unplaced.of(self.drive);
        let most = match haste {
            Haste::Now => COMMANDS_MAX,
            Haste::Idle => usize::from(drive.queue == 0).max(backlog.len() / PRESSING),
        };
        let is_all_inside = backlog.sectors() == self.inside.len();
        if is_all_inside || self.commands.len() >= most {
            return None;
        }
        let is_free = |pick: &Pick| !self.inside.contains(&pick.lba);
        let mut picks = backlog.from(area.count_at(drive.arm), marked).filter(is_free);
        let first = picks.next()?;
        let mut next = Next {
            extent: Extent::new(first.lba, Sectors::ZERO),
            segments: Vec::new(),
            cells: Vec::new(),
        };
        for pick in std::iter::once(first).chain(picks) {
            let end = next.extent.end();
            let is_first = next.cells.is_empty();
            let is_next = pick.lba == end && (is_first || area.are_neighbours(end, end));
            if !is_next || next.extent.sectors.get() == COMMAND_MAX {
                break;
            }
            next.extent.sectors += Sectors::new(1);
            append(&mut next.segments, pick.version.place);
            next.cells.push(Placing { lba: pick.lba, id: pick.version.id });
        }
        Some(next)
    }

    pub(crate) fn note_begun(&mut self, sub: SubId, next: Next) {
        self.inside.extend(next.cells.iter().map(|placing| placing.lba));
        self.commands.push(Command { sub, cells: next.cells });
    }

    /// A write in place has ended: the sectors that it wrote, if it was one of these.
    pub(crate) fn take_placed(&mut self, sub: SubId) -> Option<Vec<Placing>> {
        let at = self.commands.iter().position(|command| command.sub == sub)?;
        let cells = self.commands.swap_remove(at).cells;
        for placing in &cells {
            self.inside.remove(&placing.lba);
        }
        Some(cells)
    }

    /// These transactions have a sector in its place that a flush must make safe.
    pub(crate) fn note_placed(&mut self, now: Instant, ids: impl IntoIterator<Item = u64>) {
        if self.unsafe_ids.is_empty() {
            self.unsafe_since = now;
        }
        self.unsafe_ids.extend(ids);
    }

    /// An intent has this many sectors in their places that a flush must make safe.
    pub(crate) fn note_streamed(&mut self, now: Instant, id: u64, sectors: usize) {
        self.note_placed(now, [id]);
        self.streamed += sectors;
    }

    /// When the drive is flushed for what is in place, at the latest.
    pub(crate) fn flush_at(&self) -> Option<Instant> {
        let is_due = self.flush.is_none() && !self.unsafe_ids.is_empty();
        is_due.then(|| self.unsafe_since + FLUSH_PAUSE)
    }

    /// Whether the drive is to be flushed now.
    pub(crate) fn wants_flush(&self, now: Instant, haste: Haste) -> bool {
        let Some(at) = self.flush_at() else { return false };
        let is_much = self.unsafe_ids.len() >= FLUSH_SECTORS || self.streamed >= FLUSH_STREAMED;
        haste == Haste::Now || is_much || at <= now
    }

    pub(crate) fn note_flush(&mut self, sub: SubId) {
        assert!(self.flush.is_none(), "drive {} is being flushed", self.drive);
        self.streamed = 0;
        self.flush = Some(Flush { sub, covers: std::mem::take(&mut self.unsafe_ids) });
    }

    /// Takes what is in place and not safe, as if it were.
    pub(crate) fn take_unsafe(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unsafe_ids)
    }

    /// A flush has ended: the transactions that it made safe, once for each sector, if it was this one.
    pub(crate) fn take_flushed(&mut self, now: Instant, sub: SubId) -> Option<Vec<u64>> {
        let flush = self.flush.take_if(|flush| flush.sub == sub)?;
        self.unsafe_since = now;
        Some(flush.covers)
    }

    /// Whether nothing is inside the drive.
    pub(crate) fn is_idle(&self) -> bool {
        self.commands.is_empty() && self.flush.is_none()
    }

    /// The drive is lost.
    pub(crate) fn handle_lost(&mut self) {
        *self = Self::new(self.drive);
    }
}
