//! Writes in place: for each drive the sectors that are on their way there, and what a flush has still to make safe.
//!
//! Places are written beside what clients ask: while a drive has nothing else to do, and in any case
//! once many wait for it. A few at a time, where there are some, so that the drive may choose: it needs half the time for
//! each, and a read that comes waits for one or two. What the journal held is safe as soon as it is in its place; a flush
//! makes safe what it has only announced.

use std::collections::BTreeSet;

use levelhead_block::Segment;
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos, Sectors};

use crate::action::append;
use crate::log::unplaced::{Pick, Unplaced};
use crate::names::SubId;
use crate::shape::Area;

/// The most sectors that wait for their places on one drive: after a crash they are written in a few seconds.
pub(crate) const BACKLOG_MAX: usize = 1_000;

/// A drive that clients keep busy gets one command for every 320 sectors that wait for their places.
const PRESSING: usize = 320;

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
#[derive(Clone, Debug)]
struct Command {
    sub: SubId,
    cells: Vec<Placing>,
    /// How many that began later have ended.
    passed_over: usize,
}

/// How urgent it is that places are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
#[derive(Clone, Debug)]
pub(crate) struct Next {
    pub(crate) extent: Extent,
    pub(crate) segments: Vec<Segment>,
    cells: Vec<Placing>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Placer {
    drive: DriveIdx,
    commands: Vec<Command>,
    /// The sectors of all of these.
    inside: BTreeSet<Lba>,
    /// Intents whose sectors are in place and not safe.
    unsafe_ids: Vec<u64>,
    /// How many sectors they have.
    streamed: usize,
    /// Whether there are tag sectors that a flush must make safe.
    has_tags: bool,
    /// Since when there are some.
    unsafe_since: Instant,
    flush: Option<Flush>,
}

#[derive(Clone, Debug)]
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
            has_tags: false,
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
        let is_none_left = backlog.sectors() == 0;
        let is_passed_over =
            self.commands.iter().any(|command| command.passed_over >= PASSED_OVER_MAX);
        if is_none_left || is_passed_over || self.commands.len() >= most {
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

    /// An operation's write in place is the journal's from now on: until it ends, nothing else is written there.
    pub(crate) fn adopt(&mut self, sub: SubId, extent: Extent) {
        // What is written there is of no transaction that waits for its place.
        let cells: Vec<Placing> = extent.iter().map(|lba| Placing { lba, id: 0 }).collect();
        self.inside.extend(cells.iter().map(|placing| placing.lba));
        self.commands.push(Command { sub, cells, passed_over: 0 });
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
        if self.is_safe() {
            self.unsafe_since = now;
        }
        self.unsafe_ids.push(id);
        self.streamed += sectors;
    }

    /// Tag sectors have been written with their data, which a flush must make safe, whatever becomes of the intent.
    pub(crate) fn note_tags(&mut self, now: Instant) {
        if self.is_safe() {
            self.unsafe_since = now;
        }
        self.has_tags = true;
    }

    fn is_safe(&self) -> bool {
        self.unsafe_ids.is_empty() && !self.has_tags
    }

    /// When the drive is flushed for what is in place, at the latest.
    pub(crate) fn flush_at(&self) -> Option<Instant> {
        let is_due = self.flush.is_none() && !self.is_safe();
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
        (self.streamed, self.has_tags) = (0, false);
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

#[cfg(test)]
mod tests {
    use levelhead_block::{BufId, Place};

    use super::*;
    use crate::log::unplaced::Version;
    use crate::shape::Cell;

    const DRIVE: DriveIdx = DriveIdx::new(0);

    /// Every second sector waits, so that none are neighbours; transaction `at + 1` gave the one at `2 * at`.
    struct Bed {
        placer: Placer,
        unplaced: Unplaced,
        area: Area,
        begun: u64,
    }

    impl Bed {
        fn new(count: u64) -> Self {
            let mut unplaced = Unplaced::new(1);
            for at in 0..count {
                let cell = Cell { drive: DRIVE, lba: Lba::new(2 * at) };
                let place = Place { buf: BufId::Own(at), sector: 0 };
                unplaced.insert(cell, Version { id: at + 1, place });
            }
            let area = Area::plain(Extent::new(Lba::ZERO, Sectors::new(1 << 20)));
            Self { placer: Placer::new(DRIVE), unplaced, area, begun: 0 }
        }

        /// Begins what may begin beside this many commands of others; returns where.
        fn begin(&mut self, haste: Haste, others: usize, overdue: u64) -> Vec<u64> {
            let mut begun = Vec::new();
            loop {
                let queue = others + self.placer.commands.len();
                let busy = Busy { queue, arm: Lba::new(100) };
                let known = Known { marked: u64::MAX, overdue };
                let next = self.placer.next(&self.unplaced, &self.area, known, haste, busy);
                let Some(next) = next else { return begun };
                begun.push(next.extent.lba.get());
                self.begun += 1;
                self.placer.note_begun(SubId(self.begun), next);
            }
        }

        fn end(&mut self, sub: u64) {
            for placing in self.placer.take_placed(SubId(sub)).expect("it has begun") {
                let cell = Cell { drive: DRIVE, lba: placing.lba };
                assert_eq!(self.unplaced.take(cell, placing.id).len(), 1);
            }
        }
    }

    #[test]
    fn an_idle_drive_gets_up_to_three_places_and_a_busy_one_some_once_many_wait() {
        for (waiting, idle, busy) in [(1, 1, 0), (63, 1, 0), (64, 2, 0), (255, 3, 0), (640, 3, 2)] {
            assert_eq!(Bed::new(waiting).begin(Haste::Idle, 0, 0).len(), idle, "{waiting}");
            assert_eq!(Bed::new(waiting).begin(Haste::Idle, 1, 0).len(), busy, "{waiting}");
        }
        assert_eq!(Bed::new(100).begin(Haste::Hindered, 9, 0).len(), COMMANDS_HINDERED);
        assert_eq!(Bed::new(100).begin(Haste::Now, 9, 0).len(), COMMANDS_MAX);
    }

    #[test]
    fn what_is_overdue_comes_first_and_then_what_is_next_from_the_arm_on() {
        let mut bed = Bed::new(200);
        assert_eq!(bed.begin(Haste::Idle, 0, 3), [0, 2, 100]);
        assert_eq!(Bed::new(200).begin(Haste::Idle, 0, 0), [100, 102, 104]);
    }

    #[test]
    fn a_place_that_is_passed_over_again_and_again_is_waited_for() {
        let mut bed = Bed::new(500);
        assert_eq!(bed.begin(Haste::Hindered, 0, 0).len(), COMMANDS_HINDERED);
        let mut ended = 0;
        // All but the first one end, in the order in which they began.
        while bed.placer.commands.len() > 1 {
            ended += 1;
            bed.end(1 + ended);
            let goes_on = (ended as usize) < PASSED_OVER_MAX;
            assert_eq!(bed.begin(Haste::Hindered, 0, 0).len(), usize::from(goes_on), "{ended}");
        }
        assert_eq!(ended as usize, PASSED_OVER_MAX + COMMANDS_HINDERED - 2);
        bed.end(1);
        assert_eq!(bed.begin(Haste::Hindered, 0, 0).len(), COMMANDS_HINDERED);
    }
}
