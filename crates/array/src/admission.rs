//! When a drive is given new commands: not while it keeps an old request waiting.
//!
//! A drive that may choose among many commands serves far more of them, and passes by the unlucky ones
//! for long. What is inside a drive cannot be reordered from here, but nothing need be added to it: its
//! choice narrows until the old one is next.
//!
//! ```text
//!   old          a request that has taken longer than all but a share a of the others did,
//!                a = 1.1 / d^2 within [0.01, 0.1], d = drives that a read asks, lately;
//!                half as long again while no drive can be spared
//!   counted on   of the drives that an old read waits for, the fewest that will do, shortest queues first
//!   held         a drive with a part of an old request inside that is counted on
//! ```
//!
//! A held drive has at most [`HELD`] commands inside. A slow drive that is done without is not held: what
//! needs it all the same is served sooner if it may choose. The share falls with `d` because an old request
//! holds up every drive that it counts on, and each of those all that waits there.
//!
//! # Invariants
//!
//! - G1. Only what somebody waits for holds a drive; an answer ends it.
//! - G2. A drive with nothing inside is never held, so it always has something to do.

use levelhead_units::{Instant, Nanos};

use crate::action::SubId;
use crate::policy::level::Admission;
use crate::quantile::Quantile;

/// So large a share of the requests is old, over the square of the drives that a read asks, within bounds.
const OLD_SHARE: f64 = 1.1;
const OLD_SHARE_MIN: f64 = 0.01;
const OLD_SHARE_MAX: f64 = 0.10;

/// Reads over which the number of drives is averaged.
const DRIVES_MEMORY: f64 = 64.0;

/// While no drive can be spared a read counts on all that it asks: old is so many times as long then.
const TIGHT: f64 = 1.5;

/// Commands inside a drive that is held: the old one, and one that it may overtake with.
const HELD: usize = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate {
    admission: Admission,
    latency: Quantile,
    /// How many drives a read asks, lately.
    drives: f64,
    /// Whether the last read could spare none.
    is_tight: bool,
}

impl Gate {
    pub(crate) fn new(admission: Admission) -> Self {
        Self {
            admission,
            latency: Quantile::new(1.0 - OLD_SHARE_MAX),
            drives: 1.0,
            is_tight: false,
        }
    }

    /// A read has asked so many drives, and could spare one of them or not.
    pub(crate) fn note_read(&mut self, drives: u32, can_spare: bool) {
        self.is_tight = !can_spare;
        self.drives += (f64::from(drives) - self.drives) / DRIVES_MEMORY;
    }

    /// A client's request has taken so long.
    pub(crate) fn note_latency(&mut self, latency: Nanos) {
        let share = (OLD_SHARE / self.drives.powi(2)).clamp(OLD_SHARE_MIN, OLD_SHARE_MAX);
        self.latency.note_at(1.0 - share, latency);
    }

    /// From this age on a request is old, once that is known.
    fn old(&self) -> Option<Nanos> {
        match self.admission {
            Admission::Always => None,
            Admission::Aging if self.is_tight => {
                self.latency.get().map(|old| Nanos::from_secs_f64_round(old.as_secs_f64() * TIGHT))
            }
            Admission::Aging => self.latency.get(),
        }
    }

    /// Whether a request of this age is about to be old, so that it matters what it counts on.
    pub(crate) fn is_aging(&self, age: Nanos) -> bool {
        self.old().is_some_and(|old| age * 2 > old)
    }

    /// How many commands may be inside a drive, as far as old requests go.
    pub(crate) fn room(&self, now: Instant, awaited: &Awaited) -> usize {
        let Some(old) = self.old() else { return usize::MAX };
        let holds = |one: &Waiting| one.is_counted_on && now.saturating_since(one.since) > old;
        if awaited.0.iter().any(holds) { HELD } else { usize::MAX }
    }
}

/// Commands inside one drive that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Awaited(Vec<Waiting>);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    sub: SubId,
    since: Instant,
    is_counted_on: bool,
}

impl Awaited {
    /// A command went into the drive; somebody waits for what it is part of `since` then.
    pub(crate) fn enter(&mut self, sub: SubId, since: Instant) {
        self.0.push(Waiting { sub, since, is_counted_on: true });
    }

    /// It came back, or nobody waits for it any more.
    pub(crate) fn leave(&mut self, sub: SubId) {
        self.0.retain(|one| one.sub != sub);
    }

    /// Whether the request that it is part of counts on it.
    pub(crate) fn count_on(&mut self, sub: SubId, is_counted_on: bool) {
        for one in self.0.iter_mut().filter(|one| one.sub == sub) {
            one.is_counted_on = is_counted_on;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// A gate that has seen reads of six drives take 10 ms each.
    fn gate(admission: Admission) -> Gate {
        let mut gate = Gate::new(admission);
        for _ in 0..1_000 {
            gate.note_read(6, true);
            gate.note_latency(Nanos::from_millis(10));
        }
        gate
    }

    #[test]
    fn an_old_request_holds_its_drive_until_it_is_answered() {
        let gate = gate(Admission::Aging);
        let mut awaited = Awaited::default();
        awaited.enter(SubId(1), at(0));
        awaited.enter(SubId(2), at(90));
        assert_eq!(gate.room(at(5), &awaited), usize::MAX);
        assert_eq!(gate.room(at(100), &awaited), HELD);
        awaited.leave(SubId(1));
        assert_eq!(gate.room(at(95), &awaited), usize::MAX);
        assert_eq!(self::gate(Admission::Always).room(at(10_000), &awaited), usize::MAX);
    }

    #[test]
    fn a_part_that_is_not_counted_on_holds_no_drive() {
        let gate = gate(Admission::Aging);
        let mut awaited = Awaited::default();
        awaited.enter(SubId(1), at(0));
        awaited.count_on(SubId(1), false);
        assert_eq!(gate.room(at(1_000), &awaited), usize::MAX);
        awaited.count_on(SubId(1), true);
        assert_eq!(gate.room(at(1_000), &awaited), HELD);
    }

    #[test]
    fn requests_are_old_later_while_no_drive_can_be_spared() {
        let mut gate = gate(Admission::Aging);
        let mut awaited = Awaited::default();
        awaited.enter(SubId(1), at(0));
        let old = Instant::ZERO + gate.old().unwrap() + Nanos::from_millis(1);
        assert_eq!(gate.room(old, &awaited), HELD);
        gate.note_read(5, false);
        assert_eq!(gate.room(old, &awaited), usize::MAX);
        assert_eq!(gate.room(at(1_000), &awaited), HELD);
    }

    #[test]
    fn wide_reads_are_old_later_than_narrow_ones() {
        let mut rng = levelhead_stats::Streams::new(5).stream("latencies");
        let (mut narrow, mut wide) = (Gate::new(Admission::Aging), Gate::new(Admission::Aging));
        for _ in 0..20_000 {
            let latency = rng.exponential(Nanos::from_millis(10));
            narrow.note_read(2, true);
            wide.note_read(12, true);
            narrow.note_latency(latency);
            wide.note_latency(latency);
        }
        assert!(wide.old() > narrow.old());
        assert!(narrow.old() > Some(Nanos::from_millis(10)));
    }
}
