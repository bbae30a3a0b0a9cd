//! One writer: whether another server has opened the array, and whether a drive holds less than was stored on it.
//!
//! Members can be attached to several machines, and no lock spans these. So a server reads who has written the metadata of its drives
//! before it relies on them: the run that has written each slot, and the generation. One that finds a generation of another run
//! that is newer than what it began with is *fenced*: it gives up all drives, and answers nothing any more.
//!
//! ```text
//!   both slots of all drives --> (two generations on one drive) --> first one on all --> second one --> (a lease) --> open
//!                                 after each on a drive: its other slot
//! ```
//!
//! # Invariants
//!
//! - N1. Before a run writes its first generation, it has looked at both slots of every drive that answers. Where another machine
//!   can reach the drives, it gives its first two generations to one drive alone, and goes on to the others if it is not fenced
//!   there: of two runs that begin at the same time one changes nothing anywhere else.
//! - N2. A drive counts as having a generation once its other slot was looked at after that was stored. A slot that does not hold
//!   what was written is looked at before it is written again.
//! - N3. Data is written once every drive that answers has the second generation of the opening.
//! - N4. Where another machine can reach the drives, a command that is not about metadata goes to a drive only while the
//!   server holds a lease: less than [`LEASE`] after it began to look at so many drives that nobody can start the array without
//!   all of these, or at all that answer. It renews the lease while there is work. A lease ends with a standstill of the
//!   server, whose clock does not count it; what was read before that counts for nothing.
//! - N5. There data is written [`LEASE`] and a margin after N3 at the earliest: whoever had a lease by then has none any more.
//!
//! Of two servers that open at the same time, and that have a drive in common, at most one is not fenced. Say that both look at that
//! drive after their second generation and find nothing of the other, the first of them F at the time t. By then both slots hold
//! what F has written. So the other one writes its first generation there after t, and by N2 looks at the slot with the second
//! generation of F before it writes its own second one. Two halves of a mirror have no drive in common where each server
//! reaches one alone: they go different ways, and are never put together again.
//!
//! While clients write, a generation is written every [`SIGN`]: a server that starts over such drives after an unclean
//! shutdown waits for one (`levelhead-host`).

use std::collections::BTreeSet;

use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

use super::membership::Generation;
use super::metadata::{Author, LEAD_MAX};
use super::uuid::Uuid;
use crate::shape::Spec;

/// How long a server relies on what it has read.
const LEASE: Nanos = Nanos::from_secs(2);

/// How long before the end of the lease it looks again.
const EARLY: Nanos = Nanos::from_secs(1);

/// How long after a lease is over nothing is on its way any more that was sent under it.
const MARGIN: Nanos = Nanos::from_millis(500);

/// How often a generation is written at least, while clients write, where another machine can reach the drives.
pub(crate) const SIGN: Nanos = Nanos::from_secs(1);

/// What the slots of drives say about who writes.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    /// The newest generation that was found at the start.
    found: Generation,
    run: Uuid,
    array: Uuid,
    /// Drives at which the array is to look next.
    wanted: DriveSet,
    /// The number of the last round.
    last: u64,
    round: Option<Round>,
}

/// A look at both slots of all drives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Round {
    begun: Instant,
    /// Slots that were not looked at yet.
    pending: BTreeSet<(DriveIdx, usize)>,
    /// Drives on which something of this array was found.
    found: DriveSet,
}

/// A slot to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) drive: DriveIdx,
    pub(crate) slot: usize,
    /// What the drive is known to have there, or nothing.
    pub(crate) has: Generation,
    /// The round that this is part of.
    round: u64,
}

/// What a slot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// What was written there, or something newer of this run.
    Own,
    /// Nothing that matters.
    Nothing,
    /// Another server has opened the array since.
    AnotherServer,
    /// The drive has less than it had.
    Earlier,
}

impl Fence {
    pub(crate) fn new(found: Generation, run: Uuid, array: Uuid) -> Self {
        Self { found, run, array, wanted: DriveSet::EMPTY, last: 0, round: None }
    }

    /// Begins to look at these drives.
    pub(crate) fn ask(&mut self, now: Instant, drives: DriveSet) {
        let pending = drives.iter().flat_map(|drive| [(drive, 0), (drive, 1)]).collect();
        self.last += 1;
        self.round = Some(Round { begun: now, pending, found: DriveSet::EMPTY });
        self.wanted = drives;
    }

    /// Drives at which the array is to look.
    pub(crate) fn take_wanted(&mut self) -> DriveSet {
        std::mem::take(&mut self.wanted)
    }

    /// A slot that is to be looked at now.
    pub(crate) fn target(&self, drive: DriveIdx, slot: usize, has: Generation) -> Target {
        Target { drive, slot, has, round: self.last }
    }

    /// Whether a round is under way, or is over and nobody has taken that.
    pub(crate) fn is_asked(&self) -> bool {
        self.round.is_some()
    }

    /// When the round began that is over but for silent drives.
    pub(crate) fn take_over(&mut self, silent: DriveSet) -> Option<Instant> {
        let is_over = |round: &mut Round| round.pending().without(silent).is_empty();
        self.round.take_if(is_over).map(|round| round.begun)
    }

    /// The same, or that has found this run on so many drives that nobody can start the array without all of these.
    pub(crate) fn take_enough(&mut self, spec: &Spec, silent: DriveSet) -> Option<Instant> {
        let is_enough = |round: &mut Round| spec.is_enough(round.found.without(round.pending()));
        let enough = self.round.take_if(is_enough).map(|round| round.begun);
        enough.or_else(|| {
            let is_some = self.round.as_ref().is_some_and(|round| !round.found.is_empty());
            if is_some { self.take_over(silent) } else { None }
        })
    }

    /// What was looked at so far counts for nothing.
    pub(crate) fn forget_round(&mut self) {
        (self.round, self.wanted) = (None, DriveSet::EMPTY);
    }

    /// A slot was looked at. Returns whether that is to be done again, because it was for an earlier round.
    pub(crate) fn note_looked(&mut self, target: Target, seen: Seen) -> bool {
        let Target { drive, slot, round: number, .. } = target;
        let Some(round) = &mut self.round else { return false };
        if number != self.last {
            return round.pending.contains(&(drive, slot));
        }
        round.pending.remove(&(drive, slot));
        if seen == Seen::Own {
            round.found = round.found.with(drive);
        }
        false
    }

    /// The array does without a drive from now on.
    pub(crate) fn forget(&mut self, drive: DriveIdx) {
        let only = DriveSet::EMPTY.with(drive);
        self.wanted = self.wanted.without(only);
        if let Some(round) = &mut self.round {
            round.pending.retain(|(of, _)| *of != drive);
            round.found = round.found.without(only);
        }
    }

    /// What a slot shows that was written so, if it can be read.
    pub(crate) fn judge(&self, author: Option<Author>, has: Generation) -> Seen {
        let Some(author) = author.filter(|author| author.array == self.array) else {
            return Seen::Nothing;
        };
        // A drive that comes back may have some of the run before that nobody else has heard of.
        let is_new = author.generation > self.found.plus(LEAD_MAX);
        match () {
            () if author.run != self.run && is_new => Seen::AnotherServer,
            () if author.generation < has => Seen::Earlier,
            () => Seen::Own,
        }
    }

    /// The end of a lease that was begun then.
    pub(crate) fn lease_end(begun: Instant) -> Instant {
        begun + LEASE
    }

    /// When nobody has a lease any more who had none after `now` (N5).
    pub(crate) fn last_lease_end(now: Instant) -> Instant {
        now + LEASE + MARGIN
    }

    /// Whether a lease with this end is to be renewed.
    pub(crate) fn is_old(now: Instant, end: Instant) -> bool {
        end <= now + EARLY
    }
}

impl Round {
    fn pending(&self) -> DriveSet {
        self.pending.iter().map(|(drive, _)| *drive).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Uuid = Uuid([9; 16]);
    const ARRAY: Uuid = Uuid([7; 16]);

    fn author(run: u8, generation: u64) -> Option<Author> {
        let (generation, sectors) = (Generation(generation), levelhead_units::Sectors::new(1));
        Some(Author { array: ARRAY, holder: ARRAY, run: Uuid([run; 16]), generation, sectors })
    }

    fn fence() -> Fence {
        Fence::new(Generation(20), RUN, ARRAY)
    }

    fn set(drives: &[u8]) -> DriveSet {
        drives.iter().copied().map(DriveIdx::new).collect()
    }

    #[test]
    fn run_that_is_newer_than_what_was_found_is_another_server() {
        for (author, has, seen) in [
            (None, 20, Seen::Nothing),
            (author(9, 36), 36, Seen::Own),
            (author(8, 20), 20, Seen::Own),
            // It may have been given to one drive alone.
            (author(8, 28), 20, Seen::Own),
            (author(8, 29), 20, Seen::AnotherServer),
            (author(8, 36), 0, Seen::AnotherServer),
            (author(8, 19), 20, Seen::Earlier),
            (author(9, 37), 38, Seen::Earlier),
            (author(9, 37), 0, Seen::Own),
        ] {
            assert_eq!(fence().judge(author, Generation(has)), seen, "{author:?}, {has}");
        }
        let strange = Author { array: Uuid([1; 16]), ..author(8, 99).unwrap() };
        assert_eq!(fence().judge(Some(strange), Generation(20)), Seen::Nothing);
    }

    fn look(fence: &mut Fence, drive: u8, slot: usize, seen: Seen) {
        let target = fence.target(DriveIdx::new(drive), slot, Generation::NONE);
        assert!(!fence.note_looked(target, seen));
    }

    #[test]
    fn round_is_over_once_both_slots_of_all_drives_that_answer_were_looked_at() {
        let mut fence = fence();
        let begun = Instant::ZERO + Nanos::from_secs(3);
        fence.ask(begun, set(&[0, 1, 2]));
        assert_eq!((fence.take_wanted(), fence.take_wanted()), (set(&[0, 1, 2]), set(&[])));
        look(&mut fence, 0, 0, Seen::Own);
        fence.forget(DriveIdx::new(2));
        assert_eq!(fence.take_over(set(&[1])), None);
        look(&mut fence, 0, 1, Seen::Nothing);
        assert_eq!(fence.take_over(set(&[])), None, "one has not answered");
        assert_eq!(fence.take_over(set(&[1])), Some(begun));
        assert!(!fence.is_asked());
    }

    /// N4: one that hangs holds nobody up whom the others can do without, and what shows nothing counts for nothing.
    #[test]
    fn lease_needs_so_many_drives_that_nobody_starts_without_them() {
        let spec: Spec = "raid6:2+2,chunk=4KiB".parse().unwrap();
        let mut fence = fence();
        fence.ask(Instant::ZERO, set(&[0, 1, 2, 3]));
        for drive in 0..2 {
            [0, 1].into_iter().for_each(|slot| look(&mut fence, drive, slot, Seen::Own));
        }
        look(&mut fence, 2, 0, Seen::Own);
        assert_eq!(fence.take_enough(&spec, set(&[])), None, "two others can start it");
        look(&mut fence, 2, 1, Seen::Nothing);
        assert!(fence.take_enough(&spec, set(&[])).is_some());
        fence.ask(Instant::ZERO, set(&[0, 1]));
        for drive in 0..2 {
            [0, 1].into_iter().for_each(|slot| look(&mut fence, drive, slot, Seen::Nothing));
        }
        assert_eq!(fence.take_enough(&spec, set(&[])), None, "nothing was found");
    }

    #[test]
    fn look_from_before_counts_for_no_later_round() {
        let mut fence = fence();
        fence.ask(Instant::ZERO, set(&[0]));
        let early = fence.target(DriveIdx::new(0), 0, Generation::NONE);
        fence.forget_round();
        assert!(!fence.note_looked(early, Seen::Own), "nobody wants to know");
        fence.ask(Instant::ZERO, set(&[0]));
        assert!(fence.note_looked(early, Seen::Own), "it is looked at again");
        look(&mut fence, 0, 1, Seen::Own);
        assert_eq!(fence.take_over(set(&[])), None);
        look(&mut fence, 0, 0, Seen::Own);
        assert!(fence.take_over(set(&[])).is_some());
    }
}
