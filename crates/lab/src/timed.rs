//! A load for a fixed time: what a measurement with a clock would have found.
//!
//! A measurement in real time begins at some moment, sends reads for a fixed time, and stops. This module
//! does the same in virtual time:
//!
//! ```text
//!   0 ........ start |------- length -------| end
//!   at rest            reads come, answers      what is unanswered counts with its age
//! ```
//!
//! # Invariants
//!
//! - M1. Every read that came by the end counts once: with its latency if it was answered by then, and
//!   else with its age.
//! - M2. Reads are named 1, 2, 3 .. in the order in which they are sent, as the engine of a real array
//!   names them: what a drive fails for a read depends on its name, and so is the same in both worlds.

use levelhead_array::RequestId;
use levelhead_block::{Command, Effort};
use levelhead_units::{Extent, Instant, Nanos};

use crate::{World, WorldError, WorldSettings};

/// How reads come.
#[derive(Clone, Copy, Debug)]
pub enum Load<'a> {
    /// At these times after the start, in order, whatever the array does.
    Open(&'a [(Nanos, Extent)]),
    /// A fixed number of reads at a time: the next one is sent when one is answered. The extents are read
    /// in turn, over and over.
    Closed {
        /// What is read. Not empty.
        extents: &'a [Extent],
        /// Reads in flight.
        outstanding: usize,
    },
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// From each read's coming to its answer, in the order of the answers; then the ages of those
    /// without one, in the order of their coming.
    pub latencies: Vec<Nanos>,
    /// How many were without one.
    pub unfinished: u64,
    /// The hash of all that happened.
    pub log: u64,
}

/// Reads from a world of these settings, from `start` on for `length`.
///
/// Panics if an extent is past the array's end.
pub fn run(
    settings: &WorldSettings,
    load: Load<'_>,
    start: Instant,
    length: Nanos,
) -> Result<Timed, WorldError> {
    let world = World::new(settings)?;
    let mut run = Run { world, load, start, sent: Vec::new(), latencies: Vec::new() };
    run.go(start + length);
    Ok(run.end(start + length))
}

struct Run<'a> {
    world: World,
    load: Load<'a>,
    start: Instant,
    /// When each read came; nothing once it is answered.
    sent: Vec<Option<Instant>>,
    latencies: Vec<Nanos>,
}

impl Run<'_> {
    fn go(&mut self, end: Instant) {
        loop {
            let next = self.next().filter(|(at, _)| *at <= self.world.next_at());
            let at = next.map_or(self.world.next_at(), |(at, _)| at);
            if at > end {
                return;
            }
            match next {
                Some((at, extent)) => self.send(at, extent),
                None => self.world.step(),
            }
            self.collect();
        }
    }

    /// The next read, and when it comes; nothing while a closed loop waits for an answer.
    fn next(&self) -> Option<(Instant, Extent)> {
        match self.load {
            Load::Open(arrivals) => {
                arrivals.get(self.sent.len()).map(|&(after, extent)| (self.start + after, extent))
            }
            Load::Closed { extents, outstanding } => {
                let in_flight = self.sent.len() - self.latencies.len();
                let extent = extents[self.sent.len() % extents.len()];
                (in_flight < outstanding).then_some((self.start.max(self.world.now()), extent))
            }
        }
    }

    fn send(&mut self, at: Instant, extent: Extent) {
        self.sent.push(Some(at));
        let name = RequestId(self.sent.len() as u64);
        self.world.submit(at, name, Command::Read { extent, effort: Effort::Full }, None);
    }

    fn collect(&mut self) {
        for (at, answer) in self.world.take_answers() {
            let sent = self.sent[answer.request.0 as usize - 1].take();
            self.latencies.push(at - sent.expect("a read is answered once"));
        }
    }

    fn end(self, end: Instant) -> Timed {
        let mut latencies = self.latencies;
        let ages = self.sent.into_iter().flatten().map(|at| end - at);
        let answered = latencies.len();
        latencies.extend(ages);
        let unfinished = (latencies.len() - answered) as u64;
        Timed { latencies, unfinished, log: self.world.log().get() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use levelhead_array::{Area, Content, HostOrder, Policy};
    use levelhead_drive::{Profile, QUEUE_DEPTH_MAX, Settings};
    use levelhead_units::{Lba, Sectors};

    use super::*;

    fn world(faults: &str) -> WorldSettings {
        WorldSettings {
            spec: "eraid:5+1,e=2,chunk=8KiB".parse().unwrap(),
            policy: Policy::DEFAULT,
            window: QUEUE_DEPTH_MAX,
            order: HostOrder::Elevator,
            content: Content::Absent,
            profile: Arc::new(Profile::shipped("nearline-2tb").unwrap()),
            drives: vec![Settings { faults: faults.parse().unwrap(), ..Settings::PLAIN }],
            area: Some(Area::plain(Extent::new(Lba::new(256), Sectors::new(400_000_000)))),
            journal: None,
            seed: 7,
        }
    }

    /// Extents of 80 kB, far apart, on an array of 2,000,000,000 sectors.
    fn extents(count: u64) -> Vec<Extent> {
        let place = |at| Lba::new(at * 765_432_100 % 1_900_000_000);
        (0..count).map(|at| Extent::new(place(at), Sectors::new(20))).collect()
    }

    fn every(gap: Nanos, count: u64) -> Vec<(Nanos, Extent)> {
        let times = (0..count).map(|at| gap * at);
        times.zip(extents(count)).collect()
    }

    const START: Instant = Instant::from_nanos(3_000_000);
    const LENGTH: Nanos = Nanos::from_secs(2);

    #[test]
    fn same_seed_gives_the_same_measurement() {
        let (arrivals, extents) = (every(Nanos::from_millis(8), 200), extents(64));
        let closed = Load::Closed { extents: &extents, outstanding: 4 };
        for load in [Load::Open(&arrivals), closed] {
            let once = || run(&world("retry-rate=2%,rotations=3"), load, START, LENGTH).unwrap();
            assert_eq!(once(), once());
            let other = WorldSettings { seed: 8, ..world("retry-rate=2%,rotations=3") };
            assert_ne!(once(), run(&other, load, START, LENGTH).unwrap());
        }
    }

    #[test]
    fn every_read_that_came_counts_once() {
        // More than these drives can serve, and the last ones are too late to count.
        let arrivals = every(Nanos::from_millis(2), 1_100);
        let load = Load::Open(&arrivals);
        let timed = run(&world("slowdown=3"), load, START, LENGTH).unwrap();
        assert_eq!(timed.latencies.len(), 1_001, "those from 0 to 2 s");
        assert!(timed.unfinished > 100, "{}", timed.unfinished);
        assert!(timed.latencies.iter().all(|&latency| latency <= LENGTH));
        let ages = &timed.latencies[1_001 - timed.unfinished as usize..];
        assert!(ages.is_sorted_by(|left, right| left > right), "the oldest first");
    }

    #[test]
    fn closed_loop_keeps_as_many_in_flight_as_it_is_told() {
        let extents = extents(3);
        let in_flight = |outstanding, length| {
            let load = Load::Closed { extents: &extents, outstanding };
            run(&world(""), load, START, length).unwrap()
        };
        for outstanding in 1..5 {
            assert_eq!(in_flight(outstanding, LENGTH).unfinished, outstanding as u64);
        }
        let none = in_flight(4, Nanos::ZERO);
        assert_eq!(none.latencies, [Nanos::ZERO; 4], "sent at the end, and of no age");
        let (one, four) = (in_flight(1, LENGTH), in_flight(4, LENGTH));
        assert!(four.latencies.len() > one.latencies.len());
    }

    /// M2: which sectors a drive fails to give for a read depends on the read's name.
    #[test]
    fn reads_are_named_from_one_on() {
        let settings = world("retry-rate=20%,rotations=3");
        let arrivals = every(Nanos::from_millis(20), 50);
        let mut by_hand = World::new(&settings).unwrap();
        for (&(after, extent), name) in arrivals.iter().zip(1..) {
            while by_hand.next_at() < START + after {
                by_hand.step();
            }
            let command = Command::Read { extent, effort: Effort::Full };
            by_hand.submit(START + after, RequestId(name), command, None);
        }
        while by_hand.next_at() <= START + LENGTH {
            by_hand.step();
        }
        let timed = run(&settings, Load::Open(&arrivals), START, LENGTH).unwrap();
        assert_eq!(timed.log, by_hand.log().get());
    }

    #[test]
    fn reads_come_from_the_area_of_the_drives_that_the_array_has() {
        let one = [(Nanos::ZERO, Extent::new(Lba::ZERO, Sectors::new(1)))];
        let at = |first: u64| {
            let area = Some(Area::plain(Extent::new(Lba::new(first), Sectors::new(1_000_000))));
            let settings = WorldSettings { area, policy: Policy::Normal, ..world("") };
            run(&settings, Load::Open(&one), Instant::ZERO, LENGTH).unwrap().latencies[0]
        };
        // The arm rests over the first cylinder.
        assert!(
            at(400_000_000) > at(0) + Nanos::from_millis(5),
            "{:?} {:?}",
            at(0),
            at(400_000_000)
        );
    }
}
