//! Writes in place: for each drive the sectors that are on their way there, and what a flush has still to make safe.
//!
//! Places are written beside what clients ask: while a drive has nothing else to do, and in any case
//! once many wait for it. A few at a time, where there are some, so that the drive may choose: it needs half the time for
//! each, and a read that comes waits for one or two. What the journal held is safe as soon as it is in its place; a flush
//! makes safe what it has only announced.

use std::collections::BTreeSet;

use levelhead_block::Segment;
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos, Sectors};

use super::unplaced::{Pick, Unplaced};
use crate::action::SubId;
use crate::ops::read::append;
use crate::shape::Area;

/// The most sectors that wait for their places on one drive: after a crash they are written in a few seconds.
pub(crate) const BACKLOG_MAX: usize = 1_000;

/// A drive that clients keep busy gets one command for every 256 sectors that wait for their places.
const PRESSING: usize = 256;

/// A drive that has nothing else to do gets one command, and another for every 64 sectors that wait for their places,
const IDLE_STEP: usize = 64;

/// but no more than 3.
const IDLE_MAX: usize = 3;

/// The most commands that write places on one drive at a time.
const COMMANDS_MAX: usize = 64;

/// A drive that hinders gets this number of them: little else is asked of it, and the more it may choose from the more it
/// does.
const COMMANDS_HINDERED: usize = 32;

/// It gets no more while one of them has been passed over by this number of later ones: what it delays, all rings keep.
const PASSED_OVER_MAX: usize = 64;

const _: () = assert!(COMMANDS_HINDERED <= COMMANDS_MAX);

/// The most sectors of one such command: 1 MiB.
const COMMAND_MAX: u64 = 256;

/// A drive is flushed when intents have this number of sectors in their places that are not safe, 32 MiB, which a recovery
/// reads in less than a second,
const FLUSH_STREAMED: usize = 8_192;

/// or when this number of intents has some,
const FLUSH_INTENTS: usize = 512;

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
    /// How many that began later have ended.
    passed_over: usize,
}

/// How urgent it is that places are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// When the drive has nothing else to do.
    Idle,
    /// As fast as the drive can: it hinders, and nothing else is asked of it.
    Hindered,
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

/// How far the journal is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Up to this transaction, sectors may be written in place.
    pub(crate) marked: u64,
    /// Those of transactions before this one come first, wherever the drive is: what they delay, all rings keep.
    pub(crate) overdue: u64,
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
    /// Intents whose sectors are in place and not safe.
    unsafe_ids: Vec<u64>,
    /// How many sectors they have.
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

    /// The next write in place, if it is time for one: of what waits the sectors from where the drive is on, or from
    /// one that is overdue, as long as they are neighbours.
    pub(crate) fn next(
        &self,
        unplaced: &Unplaced,
        area: &Area,
        known: Known,
        haste: Haste,
        drive: Busy,
    ) -> Option<Next> {
        let Known { marked, overdue } = known;
        let backlog = unplaced.of(self.drive);
        let most = match haste {
            Haste::Now => COMMANDS_MAX,
            Haste::Hindered => COMMANDS_HINDERED,
            Haste::Idle => {
                let is_idle = drive.queue == self.commands.len();
                let idle = (1 + backlog.len() / IDLE_STEP).min(IDLE_MAX);
                if is_idle { idle } else { 0 }.max(backlog.len() / PRESSING)
            }
        };
        let is_all_inside = backlog.sectors() == self.inside.len();
        let is_passed_over =
            self.commands.iter().any(|command| command.passed_over >= PASSED_OVER_MAX);
        if is_all_inside || is_passed_over || self.commands.len() >= most {
            return None;
        }
        let is_free = |pick: &Pick| !self.inside.contains(&pick.lba);
        let overdue = backlog.older_than(overdue).find(|lba| !self.inside.contains(lba));
        let from = overdue.unwrap_or_else(|| area.count_at(drive.arm));
        let mut picks = backlog.from(from, marked).filter(is_free);
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
        self.commands.push(Command { sub, cells: next.cells, passed_over: 0 });
    }

    /// A write in place has ended: the sectors that it wrote, if it was one of these.
    pub(crate) fn take_placed(&mut self, sub: SubId) -> Option<Vec<Placing>> {
        let at = self.commands.iter().position(|command| command.sub == sub)?;
        let cells = self.commands.remove(at).cells;
        // They are in the order in which they began.
        self.commands[..at].iter_mut().for_each(|earlier| earlier.passed_over += 1);
        for placing in &cells {
            self.inside.remove(&placing.lba);
        }
        Some(cells)
    }

    /// An intent has this many sectors in their places that a flush must make safe.
    pub(crate) fn note_streamed(&mut self, now: Instant, id: u64, sectors: usize) {
        if self.unsafe_ids.is_empty() {
            self.unsafe_since = now;
        }
        self.unsafe_ids.push(id);
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
        let is_much = self.unsafe_ids.len() >= FLUSH_INTENTS || self.streamed >= FLUSH_STREAMED;
        haste == Haste::Now || is_much || at <= now
    }

    pub(crate) fn note_flush(&mut self, sub: SubId) {
        assert!(self.flush.is_none(), "drive {} is being flushed", self.drive);
        self.streamed = 0;
        self.flush = Some(Flush { sub, covers: std::mem::take(&mut self.unsafe_ids) });
    }

    /// A flush has ended: the intents that it made safe, if it was this one.
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
