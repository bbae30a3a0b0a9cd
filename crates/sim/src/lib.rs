//! Virtual time: a clock that jumps, events in a fixed order, and a hash of everything that happened.
//!
//! ```text
//!   push(at, event)                pop()
//!        |        (time, order of pushing)  ^
//!        v                                  |
//!      [ queue ] ---------------------------+     now = time of the last event popped
//! ```
//!
//! # Invariants
//!
//! - S1. Time never runs backwards: an event cannot be pushed before now.
//! - S2. Events of the same time come out in the order in which they went in, so that a run depends on
//!   its seed and on nothing else.
//!
//! This crate knows no disk and no array: worlds are built in `lab`.

#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use levelhead_stats::hash_of;
use levelhead_units::Instant;

/// Events to come, and the time.
#[derive(Debug)]
pub struct EventQueue<E> {
    now: Instant,
    sequence: u64,
    heap: BinaryHeap<Reverse<Entry<E>>>,
}

#[derive(Debug)]
struct Entry<E> {
    at: Instant,
    sequence: u64,
    event: E,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> EventQueue<E> {
    /// An empty queue at time zero.
    pub const fn new() -> Self {
        Self { now: Instant::ZERO, sequence: 0, heap: BinaryHeap::new() }
    }

    /// The time of the last event.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Adds an event.
    ///
    /// Panics if `at` has passed.
    pub fn push(&mut self, at: Instant, event: E) {
        assert!(at >= self.now, "an event for {at:?} came at {:?}", self.now);
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, event }));
        self.sequence += 1;
    }

    /// Jumps to the next event.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some((entry.at, entry.event))
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// How many events have been popped.
    pub fn popped(&self) -> u64 {
        self.sequence - self.heap.len() as u64
    }

    /// How many events are to come.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// A running hash of a run's events. Two runs of the same seed must end with the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogHash(u64);

impl LogHash {
    /// Adds an event: when it happened, and numbers that say what it was.
    #[inline]
    pub fn record(&mut self, at: Instant, what: &[u64]) {
        self.0 = hash_of(hash_of(self.0, &[at.as_nanos()]), what);
    }

    /// The hash so far.
    pub const fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_order_of_pushing() {
        let mut rng = Streams::new(5).stream("events");
        let mut queue = EventQueue::new();
        let mut expected: Vec<(u64, u64)> = (0..500).map(|n| (rng.below(20), n)).collect();
        for &(at, n) in &expected {
            queue.push(Instant::from_nanos(at), n);
        }
        expected.sort_unstable();
        let popped: Vec<(u64, u64)> =
            std::iter::from_fn(|| queue.pop()).map(|(at, n)| (at.as_nanos(), n)).collect();
        assert_eq!(popped, expected);
        assert_eq!(queue.popped(), 500);
    }

    #[test]
    #[should_panic(expected = "an event for")]
    fn past_cannot_be_changed() {
        let mut queue = EventQueue::new();
        queue.push(Instant::from_nanos(9), ());
        queue.pop();
        queue.push(Instant::from_nanos(8), ());
    }

    #[test]
    fn hash_tells_order_time_and_content_apart() {
        let log = |events: &[(u64, u64)]| {
            let mut hash = LogHash::default();
            for &(at, what) in events {
                hash.record(Instant::from_nanos(at), &[what]);
            }
            hash
        };
        assert_eq!(log(&[(1, 2), (3, 4)]), log(&[(1, 2), (3, 4)]));
        assert_ne!(log(&[(1, 2), (3, 4)]), log(&[(3, 4), (1, 2)]));
        assert_ne!(log(&[(1, 2)]), log(&[(2, 1)]));
    }
}
