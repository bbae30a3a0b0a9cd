//! One writer: whether another server has opened the array, and whether a drive has gone back in time.
//!
//! Members can be in reach of several machines, and no lock spans these. So a server looks at what drives say before it relies on
//! them: the run that has written a slot of metadata, and the generation. One that finds a generation of another run that is newer
//! than what it began with is *fenced*: it gives up all drives, and answers nothing any more.
//!
//! ```text
//!   look at both slots --> first generation --> look at the other slot --> second one --> look at the other slot --> open
//! ```
//!
//! # Invariants
//!
//! - N1. Before a run writes its first generation, it has looked at both slots of every drive that answers.
//! - N2. A drive counts as having a generation once its other slot was looked at after that was stored.
//! - N3. Data is written once every drive that answers has the second generation of the opening.
//! - N4. Where drives can be in reach of another machine, a command that is not about metadata goes to a drive only while
//!   the server holds a lease: less than [`LEASE`] after it began to look at all drives that answer and found itself there. It
//!   renews the lease while there is work, and while clients write also with a generation, which another server sees. A
//!   lease ends with a standstill of the server, whose clock does not count it.
//!
//! Of two servers that open at the same time at most one is not fenced. Say that both look at a drive after their second generation
//! and find nothing strange, the first of them F at the time t. By then both slots hold what F has written. So the other one
//! writes its first generation there after t, and by N2 looks at the slot with the second generation of F before it writes its own
//! second one.
//!
//! A server that starts over drives that can be in reach of another machine, and that were not left cleanly, waits first for longer
//! than a lease (`levelhead-host`): one that is in use says so by a new generation.

use std::collections::BTreeSet;

use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

use super::membership::Generation;
use super::metadata::{Author, LEAD_MAX};
use super::uuid::Uuid;

/// How long a server relies on what it has seen.
const LEASE: Nanos = Nanos::from_secs(5);

/// How long before the end of the lease it looks again.
const EARLY: Nanos = Nanos::from_secs(3);

/// How often a generation is written at least, while clients write, where another server may wait for a sign.
pub(super) const SIGN: Nanos = Nanos::from_secs(2);

/// What the slots of drives say about who writes.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    /// The newest generation that was found at the start.
    found: Generation,
    run: Uuid,
    array: Uuid,
    /// Drives at which the array is to look next.
    wanted: DriveSet,
    round: Option<Round>,
}

/// A look at both slots of all drives that answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Round {
    begun: Instant,
    /// Slots that were not looked at yet.
    pending: BTreeSet<(DriveIdx, usize)>,
}

/// What a slot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing that matters.
    Nothing,
    /// Another server has opened the array since.
    AnotherServer,
    /// The drive has less than it had.
    Earlier,
}

impl Fence {
    pub(super) fn new(found: Generation, run: Uuid, array: Uuid) -> Self {
        Self { found, run, array, wanted: DriveSet::EMPTY, round: None }
    }

    /// Begins to look at these drives.
    pub(super) fn ask(&mut self, now: Instant, drives: DriveSet) {
        let pending = drives.iter().flat_map(|drive| [(drive, 0), (drive, 1)]).collect();
        self.round = Some(Round { begun: now, pending });
        self.wanted = drives;
    }

    /// Drives at which the array is to look.
    pub(super) fn take_wanted(&mut self) -> DriveSet {
        std::mem::take(&mut self.wanted)
    }

    /// Whether a round is under way, or is over and nobody has taken that.
    pub(super) fn is_asked(&self) -> bool {
        self.round.is_some()
    }

    /// When the round began that is over but for silent drives.
    pub(super) fn take_over(&mut self, silent: DriveSet) -> Option<Instant> {
        let is_over =
            |round: &mut Round| round.pending.iter().all(|(drive, _)| silent.contains(*drive));
        self.round.take_if(is_over).map(|round| round.begun)
    }

    pub(super) fn note_looked(&mut self, drive: DriveIdx, slot: usize) {
        if let Some(round) = &mut self.round {
            round.pending.remove(&(drive, slot));
        }
    }

    /// The array does without a drive from now on.
    pub(super) fn forget(&mut self, drive: DriveIdx) {
        self.wanted = self.wanted.without(DriveSet::EMPTY.with(drive));
        if let Some(round) = &mut self.round {
            round.pending.retain(|(of, _)| *of != drive);
        }
    }

    /// What a slot shows that was written so, if it can be read. The drive was known to have `has` there, or nothing.
    pub(super) fn judge(&self, author: Option<Author>, has: Generation) -> Seen {
        let Some(author) = author.filter(|author| author.array == self.array) else {
            return Seen::Nothing;
        };
        // A drive that comes back may have some of the run before that nobody else has heard of.
        let is_new = author.generation > self.found.plus(LEAD_MAX);
        match () {
            () if author.run != self.run && is_new => Seen::AnotherServer,
            () if author.generation < has => Seen::Earlier,
            () => Seen::Nothing,
        }
    }

    /// The end of a lease that was begun then.
    pub(super) fn lease_end(begun: Instant) -> Instant {
        begun + LEASE
    }

    /// Whether a lease with this end is to be renewed.
    pub(super) fn is_old(now: Instant, end: Instant) -> bool {
        end <= now + EARLY
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

    #[test]
    fn run_that_is_newer_than_what_was_found_is_another_server() {
        let fence = Fence::new(Generation(20), RUN, ARRAY);
        for (author, has, seen) in [
            (None, 20, Seen::Nothing),
            (author(9, 36), 36, Seen::Nothing),
            (author(8, 20), 20, Seen::Nothing),
            // It may have been given to one drive alone.
            (author(8, 28), 20, Seen::Nothing),
            (author(8, 29), 20, Seen::AnotherServer),
            (author(8, 36), 0, Seen::AnotherServer),
            (author(8, 19), 20, Seen::Earlier),
            (author(9, 37), 38, Seen::Earlier),
            (author(9, 37), 0, Seen::Nothing),
        ] {
            assert_eq!(fence.judge(author, Generation(has)), seen, "{author:?}, {has}");
        }
        let strange = Author { array: Uuid([1; 16]), ..author(8, 99).unwrap() };
        assert_eq!(fence.judge(Some(strange), Generation(20)), Seen::Nothing);
    }

    #[test]
    fn round_is_over_once_both_slots_of_all_drives_that_answer_were_looked_at() {
        let mut fence = Fence::new(Generation(20), RUN, ARRAY);
        let [first, silent, lost] = [0, 1, 2].map(DriveIdx::new);
        let only = |drive| DriveSet::EMPTY.with(drive);
        let begun = Instant::ZERO + Nanos::from_secs(3);
        fence.ask(begun, DriveSet::first(3));
        assert_eq!(
            (fence.take_wanted(), fence.take_wanted()),
            (DriveSet::first(3), DriveSet::EMPTY)
        );
        fence.note_looked(first, 0);
        fence.forget(lost);
        assert_eq!(fence.take_over(only(silent)), None);
        fence.note_looked(first, 1);
        assert_eq!(fence.take_over(DriveSet::EMPTY), None, "one has not answered");
        assert_eq!(fence.take_over(only(silent)), Some(begun));
        assert!(!fence.is_asked());
    }
}
