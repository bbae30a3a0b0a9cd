//! When an array wants to be called again: one table, and one purpose an entry.
//!
//! Facts elsewhere say when something is due; the array copies that into the table after every event
//! (`Array::set_timers`), so [`Array::deadline`](crate::Array::deadline) is a look at the table. A timer that
//! has gone off is out of the table until it is set again.
//!
//! # Invariants
//!
//! - T1. An operation has at most one entry, and none once it has ended.
//! - T2. Timers of reads go off in the order of their times, those of the same time in the order of the reads.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_units::Instant;

use crate::names::OpId;

/// What there is to do when a time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A read looks which of its drives are late.
    Read(OpId),
    /// What the array does beside its reads.
    Own(Duty),
}

/// What the array does beside its reads when a time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// A command that was refused is sent again.
    SendAgain,
    /// A drive may have become silent, or overdue.
    Silence,
    /// A request has waited for too long and is given up.
    Answer,
    /// A drive that no read asks is probed, to learn how fast it is.
    Probe,
    /// The journal writes a mark, or flushes a drive.
    Journal,
    /// The metadata is written although nothing waits for it.
    Metadata,
    /// The next step of the array's own work begins.
    Background,
    /// Sectors that were written are read back.
    Verify,
    /// The array ends, whether or not everything is safe.
    Stop,
}

impl Duty {
    /// All of them, in the order in which those of the same time are done.
    pub(crate) const ALL: [Self; 9] = [
        Self::SendAgain,
        Self::Silence,
        Self::Answer,
        Self::Probe,
        Self::Journal,
        Self::Metadata,
        Self::Background,
        Self::Verify,
        Self::Stop,
    ];

    /// Those of them that an array has which waits for its drives without a limit.
    pub(crate) const WITHOUT_PATIENCE: [Self; 5] =
        [Self::Probe, Self::Journal, Self::Metadata, Self::Background, Self::Verify];
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    reads: BTreeSet<(Instant, OpId)>,
    /// The same by read.
    at: BTreeMap<OpId, Instant>,
    duties: [Option<Instant>; Duty::ALL.len()],
}

impl Timers {
    /// Sets when a timer goes off, if at all.
    pub(crate) fn set(&mut self, timer: Timer, at: Option<Instant>) {
        match timer {
            Timer::Read(op) => self.set_read(op, at),
            Timer::Own(duty) => self.duties[duty as usize] = at,
        }
    }

    fn set_read(&mut self, op: OpId, at: Option<Instant>) {
        let known = self.at.get(&op).copied();
        if known == at {
            return;
        }
        if let Some(known) = known {
            let was_there = self.reads.remove(&(known, op));
            assert!(was_there, "T1: read {op}");
            self.at.remove(&op);
        }
        if let Some(at) = at {
            self.reads.insert((at, op));
            self.at.insert(op, at);
        }
        assert_eq!(self.reads.len(), self.at.len(), "T1: read {op}");
    }

    /// When the next one goes off.
    pub(crate) fn next(&self) -> Option<Instant> {
        let read = self.reads.first().map(|&(at, _)| at);
        first_of([read, first_of(self.duties)])
    }

    /// Takes out a read whose time has come (T2).
    pub(crate) fn take_read(&mut self, now: Instant) -> Option<OpId> {
        let &(_, op) = self.reads.first().filter(|&&(at, _)| at <= now)?;
        self.set_read(op, None);
        Some(op)
    }

    /// Takes out a duty if its time has come.
    pub(crate) fn take(&mut self, now: Instant, duty: Duty) -> Option<Duty> {
        self.duties[duty as usize].take_if(|at| *at <= now).map(|_| duty)
    }

    /// Whether a read has an entry.
    pub(crate) fn has(&self, op: OpId) -> bool {
        self.at.contains_key(&op)
    }
}

/// The earliest of some times, if there is any.
pub(crate) fn first_of<const N: usize>(times: [Option<Instant>; N]) -> Option<Instant> {
    let mut first = None;
    for at in times {
        first = match (first, at) {
            (Some(first), Some(at)) if first <= at => Some(first),
            (first, None) => first,
            (_, at) => at,
        };
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn the_next_timer_is_the_earliest_of_reads_and_duties() {
        let mut timers = Timers::default();
        assert_eq!(timers.next(), None);
        timers.set(Timer::Read(1), Some(at(9)));
        timers.set(Timer::Own(Duty::Probe), Some(at(7)));
        timers.set(Timer::Own(Duty::Stop), Some(at(8)));
        assert_eq!(timers.next(), Some(at(7)));
        assert_eq!(timers.take(at(6), Duty::Probe), None);
        assert_eq!(timers.take(at(7), Duty::Probe), Some(Duty::Probe));
        assert_eq!(timers.next(), Some(at(8)));
        timers.set(Timer::Own(Duty::Stop), None);
        assert_eq!(timers.next(), Some(at(9)));
    }

    #[test]
    fn a_read_that_is_set_anew_goes_off_once_and_one_that_has_ended_never() {
        let mut timers = Timers::default();
        for (op, millis) in [(1, 5), (2, 3), (3, 4), (1, 2)] {
            timers.set(Timer::Read(op), Some(at(millis)));
        }
        timers.set(Timer::Read(3), None);
        assert!(!timers.has(3));
        let order: Vec<OpId> = std::iter::from_fn(|| timers.take_read(at(10))).collect();
        assert_eq!(order, [1, 2]);
        assert_eq!(timers.next(), None);
    }
}
