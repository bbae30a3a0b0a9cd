//! When a drive is given new commands: not while it keeps an old request waiting.
//!
//! A drive that may choose among many commands serves far more of them a second, but some commands wait inside
//! it for long. The array cannot reorder the commands inside a drive, but it can stop adding to them: the drive
//! then has fewer and fewer to choose from, until the old one is next.
//!
//! ```text
//!   old          a request that has taken longer than all but a share a of the others did,
//!                a = 1.2 / d^2 within [0.01, 0.1], d = drives that a read asks, lately,
//!                less where reads ask fewer than 3.5 drives, and where queues are long;
//!                half as long again while no drive can be spared
//!   counted on   of the drives that an old read waits for, the fewest that will do, shortest queues first
//!   held         a drive with a part of an old request inside that is counted on
//! ```
//!
//! A held drive has at most [`HELD`] commands inside. A drive that is set aside is not held: requests that need
//! it all the same, such as writes, are served sooner if it may choose. The share falls with `d` because an old
//! request holds every drive that it counts on, and each held drive delays all commands that wait for it.
//!
//! A held drive serves fewer commands a second. So no drive is held in three cases: where reads find half a
//! window of commands at a drive, because no rate can be spared then; where requests come upon answers, because
//! the delay of one request then delays all that come after it; and for reads of one or two drives, which gain
//! nothing by it.
//!
//! # Invariants
//!
//! - H1. Only a command inside the drive that a client waits for holds it, and no longer than until the answer.
//! - H2. A drive with nothing inside is never held, so it always has something to do.

use levelhead_units::{Instant, Nanos};

use crate::action::SubId;
use crate::drives::quantile::Quantile;
use crate::policy::Arrivals;
use crate::policy::level::Admission;

/// The share of requests that are old, times the square of the number of drives that a read asks; and the bounds of
/// that share.
const OLD_SHARE: f64 = 1.2;
const OLD_SHARE_MIN: f64 = 0.01;
const OLD_SHARE_MAX: f64 = 0.10;

/// Below this share no request is old.
const OLD_SHARE_LEAST: f64 = 0.003;

/// Reads that ask this number of drives or fewer gain nothing when drives are held for them.
const NARROW: f64 = 2.0;

/// For reads that ask this number of drives or more the share is not reduced.
const WIDE: f64 = 3.5;

/// Reads over which the number of drives is averaged.
const DRIVES_MEMORY: f64 = 64.0;

/// While no drive can be spared, a read counts on all drives that it asks, and a request is old at this multiple of
/// the usual age.
const TIGHT: f64 = 1.5;

/// Requests over which the number of others that they find is averaged.
const ARRIVALS_MEMORY: f64 = 256.0;

/// The number of requests that must have come before any drive is held.
const ARRIVALS_MIN: f64 = 64.0;

/// Requests come upon answers if the variance of that number, divided by its mean, is at most this. It is at least
/// 1 where requests come independently of the answers, and 0 where the same number is outstanding at all times.
const CLOSED_LOOP: f64 = 0.25;

/// No drive is held where reads find more commands at a drive than this share of its window.
const CROWDED: f64 = 0.5;

/// Commands inside a drive that is held: the old one, and one that the drive may serve before it.
const HELD: usize = 2;

const _: () = assert!(HELD >= 1, "H2");

/// See the module.
#[derive(Debug)]
pub(crate) struct Holding {
    admission: Admission,
    latency: Quantile,
    /// The number of drives that a read asks, averaged over the last reads.
    drives: f64,
    /// Whether the last read could do without none of the drives that it asked.
    is_tight: bool,
    /// Mean and variance of how many others a request finds that are not answered yet.
    found: f64,
    found_variance: f64,
    /// Requests that came, [`ARRIVALS_MEMORY`] at most.
    arrivals: f64,
    arrived_last: Option<Instant>,
    /// The part of the share that long queues take away; from 1 on no request is old.
    crowd: f64,
    /// The share of requests that are old.
    share: f64,
}

impl Holding {
    pub(crate) fn new(admission: Admission) -> Self {
        Self {
            admission,
            latency: Quantile::new(1.0 - OLD_SHARE_MAX),
            drives: 1.0,
            is_tight: false,
            found: 0.0,
            found_variance: 0.0,
            arrivals: 0.0,
            arrived_last: None,
            crowd: 0.0,
            share: 0.0,
        }
    }

    /// A request has come and found `others` requests that are not answered yet.
    pub(crate) fn note_arrival(&mut self, now: Instant, others: usize) {
        // The first request, and those of the same moment as the one before, do not show whether requests wait for
        // answers.
        if self.arrived_last.replace(now).is_none_or(|last| last == now) {
            return;
        }
        self.arrivals = (self.arrivals + 1.0).min(ARRIVALS_MEMORY);
        let distance = others as f64 - self.found;
        self.found += distance / self.arrivals;
        let square = distance * (others as f64 - self.found);
        self.found_variance += (square - self.found_variance) / self.arrivals;
    }

    /// Reads have found `seen` commands at a drive on average; `window` may be inside a drive.
    pub(crate) fn note_queues(&mut self, seen: f64, window: f64) {
        self.crowd = (seen / (CROWDED * window)).powi(4);
    }

    /// Whether requests come upon answers; taken to be so until [`ARRIVALS_MIN`] requests have come.
    pub(crate) fn arrivals(&self) -> Arrivals {
        let is_known = self.arrivals >= ARRIVALS_MIN;
        if is_known && self.found_variance > CLOSED_LOOP * self.found {
            Arrivals::Independent
        } else {
            Arrivals::UponAnswers
        }
    }

    /// A read has asked `drives` drives, and could spare one of them or not.
    pub(crate) fn note_read(&mut self, drives: u32, can_spare: bool) {
        self.is_tight = !can_spare;
        self.drives += (f64::from(drives) - self.drives) / DRIVES_MEMORY;
    }

    /// A client's request has been answered after `latency`.
    pub(crate) fn note_latency(&mut self, latency: Nanos) {
        let share = (OLD_SHARE / self.drives.powi(2)).clamp(OLD_SHARE_MIN, OLD_SHARE_MAX);
        let wide = ((self.drives - NARROW) / (WIDE - NARROW)).clamp(0.0, 1.0);
        self.share = share * wide * (1.0 - self.crowd).max(0.0);
        self.latency.note_at(1.0 - self.share.max(OLD_SHARE_LEAST), latency);
    }

    /// From this age on a request is old, once that is known.
    fn old(&self) -> Option<Nanos> {
        match self.admission {
            Admission::Always => None,
            Admission::Aging if self.share < OLD_SHARE_LEAST => None,
            Admission::Aging if self.arrivals() == Arrivals::UponAnswers => None,
            Admission::Aging if self.is_tight => {
                self.latency.get().map(|old| Nanos::from_secs_f64_round(old.as_secs_f64() * TIGHT))
            }
            Admission::Aging => self.latency.get(),
        }
    }

    /// Whether a request of this age is more than half as old as an old one: then its read chooses the drives that it
    /// counts on.
    pub(crate) fn is_aging(&self, age: Nanos) -> bool {
        self.old().is_some_and(|old| age * 2 > old)
    }

    /// How many commands may be inside a drive: [`HELD`] if it is held.
    pub(crate) fn room(&self, now: Instant, awaited: &Awaited) -> usize {
        let Some(old) = self.old() else { return usize::MAX };
        let holds = |one: &Waiting| one.is_counted_on && now.saturating_since(one.since) > old;
        if awaited.0.iter().any(holds) { HELD } else { usize::MAX }
    }
}

/// Commands inside one drive that a client waits for.
#[derive(Debug, Default)]
pub(crate) struct Awaited(Vec<Waiting>);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    sub: SubId,
    since: Instant,
    is_counted_on: bool,
}

impl Awaited {
    /// A command went into the drive; a client has waited for its request since `since`.
    pub(crate) fn enter(&mut self, sub: SubId, since: Instant) {
        self.0.push(Waiting { sub, since, is_counted_on: true });
    }

    /// It has ended, or no client waits for it any more.
    pub(crate) fn leave(&mut self, sub: SubId) {
        self.0.retain(|one| one.sub != sub);
    }

    /// Whether no client waits for anything inside the drive.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
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

    /// One that has seen reads of six drives, which took 10 ms each and came independently of answers.
    fn holding(admission: Admission) -> Holding {
        let mut holding = Holding::new(admission);
        come(&mut holding, 1_000, |at| (at * at) as usize % 13);
        for _ in 0..1_000 {
            holding.note_read(6, true);
            holding.note_latency(Nanos::from_millis(10));
        }
        holding
    }

    /// This number of requests comes; each finds `others` unanswered ones.
    fn come(holding: &mut Holding, requests: u64, others: impl Fn(u64) -> usize) {
        (0..requests).for_each(|at| holding.note_arrival(self::at(at), others(at)));
    }

    const HOLDS: bool = true;

    /// Whether a request of a second holds its drive.
    fn holds(holding: &Holding) -> bool {
        let mut awaited = Awaited::default();
        awaited.enter(SubId(1), at(0));
        holding.room(at(1_000), &awaited) == HELD
    }

    #[test]
    fn nothing_is_held_where_requests_come_upon_answers_or_before_that_is_known() {
        let mut holding = holding(Admission::Aging);
        assert_eq!(holds(&holding), HOLDS);
        come(&mut holding, 2_000, |_| 31);
        assert_eq!((holding.arrivals(), holds(&holding)), (Arrivals::UponAnswers, !HOLDS));
        // A few more or less, as answers come together.
        come(&mut holding, 2_000, |at| 30 + (at % 3) as usize);
        assert_eq!(holding.arrivals(), Arrivals::UponAnswers);
        come(&mut holding, 2_000, |at| (at * at) as usize % 60);
        assert_eq!((holding.arrivals(), holds(&holding)), (Arrivals::Independent, HOLDS));
        let mut fresh = Holding::new(Admission::Aging);
        fresh.note_read(6, true);
        fresh.note_latency(Nanos::from_millis(10));
        assert_eq!(holds(&fresh), !HOLDS);
    }

    #[test]
    fn requests_that_come_at_the_same_moment_do_not_look_like_independent_ones() {
        let mut holding = Holding::new(Admission::Aging);
        (0..256).for_each(|others| holding.note_arrival(at(0), others));
        come(&mut holding, 200, |_| 255);
        assert_eq!(holding.arrivals(), Arrivals::UponAnswers);
    }

    #[test]
    fn nothing_is_held_for_narrow_reads_nor_before_long_queues() {
        let mut holding = holding(Admission::Aging);
        holding.note_queues(4.0, 32.0);
        holding.note_latency(Nanos::from_millis(10));
        assert_eq!(holds(&holding), HOLDS);
        holding.note_queues(16.0, 32.0);
        holding.note_latency(Nanos::from_millis(10));
        assert_eq!(holds(&holding), !HOLDS, "half a window waits at each drive");
        holding.note_queues(4.0, 32.0);
        for _ in 0..1_000 {
            holding.note_read(1, true);
            holding.note_latency(Nanos::from_millis(10));
        }
        assert_eq!(holds(&holding), !HOLDS, "each read asks one drive");
    }

    #[test]
    fn an_old_request_holds_its_drive_until_it_is_answered() {
        let holding = holding(Admission::Aging);
        let mut awaited = Awaited::default();
        awaited.enter(SubId(1), at(0));
        awaited.enter(SubId(2), at(90));
        assert_eq!(holding.room(at(5), &awaited), usize::MAX);
        assert_eq!(holding.room(at(100), &awaited), HELD);
        awaited.leave(SubId(1));
        assert_eq!(holding.room(at(95), &awaited), usize::MAX);
        assert_eq!(self::holding(Admission::Always).room(at(10_000), &awaited), usize::MAX);
    }

    #[test]
    fn a_part_that_is_not_counted_on_holds_no_drive() {
        let holding = holding(Admission::Aging);
        let mut awaited = Awaited::default();
        awaited.enter(SubId(1), at(0));
        awaited.count_on(SubId(1), false);
        assert_eq!(holding.room(at(1_000), &awaited), usize::MAX);
        awaited.count_on(SubId(1), true);
        assert_eq!(holding.room(at(1_000), &awaited), HELD);
    }

    #[test]
    fn requests_are_old_later_while_no_drive_can_be_spared() {
        let mut holding = holding(Admission::Aging);
        let mut awaited = Awaited::default();
        awaited.enter(SubId(1), at(0));
        let old = Instant::ZERO + holding.old().unwrap() + Nanos::from_millis(1);
        assert_eq!(holding.room(old, &awaited), HELD);
        holding.note_read(5, false);
        assert_eq!(holding.room(old, &awaited), usize::MAX);
        assert_eq!(holding.room(at(1_000), &awaited), HELD);
    }

    #[test]
    fn wide_reads_are_old_later_than_narrow_ones() {
        let mut rng = levelhead_stats::Streams::new(5).stream("latencies");
        let (mut narrow, mut wide) =
            (Holding::new(Admission::Aging), Holding::new(Admission::Aging));
        come(&mut narrow, 1_000, |at| (at * at) as usize % 13);
        come(&mut wide, 1_000, |at| (at * at) as usize % 13);
        for _ in 0..20_000 {
            let latency = rng.exponential(Nanos::from_millis(10));
            narrow.note_read(4, true);
            wide.note_read(12, true);
            narrow.note_latency(latency);
            wide.note_latency(latency);
        }
        assert!(wide.old() > narrow.old());
        assert!(narrow.old() > Some(Nanos::from_millis(10)));
    }
}
