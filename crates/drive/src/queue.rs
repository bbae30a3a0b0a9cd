//! The commands that wait inside the drive, and which of them is next.
//!
//! The next one is the one that can begin to transfer soonest (*shortest positioning time first*,
//! seen from where the arm and the platter are), less its age times a weight:
//!
//! ```text
//! key = reach + latency - weight * age         the smallest is next; among equals the oldest
//! ```
//!
//! The transfer does not count. Weight 0 is what studies use and what DiskSim calls SPTF; a weight
//! above it bounds how long a command on an unlucky cylinder waits. The order never turns into
//! oldest-first, however long the queue.

use levelhead_block::Command;
use levelhead_units::{Instant, Nanos};

use crate::geometry::Place;
use crate::mechanics::{Arm, Mechanics, Pass};

/// A command that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: u64,
    pub(crate) command: Command,
    pub(crate) origin: u64,
    pub(crate) submitted: Instant,
    /// Where its first block lies; none for a command that moves nothing.
    pub(crate) target: Option<(Place, Pass)>,
}

/// The commands that wait, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    age_weight: f64,
    waiting: Vec<Waiting>,
}

impl Queue {
    /// An empty queue that weighs age like that.
    pub(crate) fn new(age_weight: f64) -> Self {
        Self { age_weight, waiting: Vec::new() }
    }

    pub(crate) fn len(&self) -> u32 {
        self.waiting.len() as u32
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Takes the command to start now that the arm is free, at `free` or when it came after that.
    pub(crate) fn take_next(
        &mut self,
        mechanics: &Mechanics,
        free: Instant,
        arm: Arm,
    ) -> Option<Waiting> {
        let oldest = self.waiting.first()?;
        let now = free.max(oldest.submitted);
        let moving = now + mechanics.overhead;
        let (mut best, mut best_key) = (0, f64::INFINITY);
        for (at, waiting) in self.waiting.iter().enumerate() {
            let credit = self.age_weight * now.saturating_since(waiting.submitted).get() as f64;
            let Some((place, pass)) = &waiting.target else {
                // It begins at once.
                if -credit < best_key {
                    (best, best_key) = (at, -credit);
                }
                continue;
            };
            let reach = mechanics.reach(arm, place, *pass);
            // The latency only adds to the key, and an equal key belongs to the older command.
            if key(reach, credit) >= best_key {
                continue;
            }
            let positioning = reach + mechanics.latency_floor(moving + reach, place);
            if key(positioning, credit) < best_key {
                (best, best_key) = (at, key(positioning, credit));
            }
        }
        Some(self.waiting.remove(best))
    }

    /// Takes all that wait, oldest first.
    pub(crate) fn take_all(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }
}

fn key(positioning: Nanos, credit: f64) -> f64 {
    positioning.get() as f64 - credit
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;
    use crate::geometry::{Geometry, Zone};
    use crate::mechanics::Spindle;

    const CYLINDERS: u32 = 200;

    fn disk() -> (Geometry, Mechanics) {
        let zone = Zone {
            cylinder_count: CYLINDERS,
            blocks_per_track: 50,
            track_skew: 7,
            cylinder_skew: 9,
        };
        let mechanics = Mechanics {
            spindle: Spindle::new(7_200, 0),
            overhead: Nanos::from_micros(200),
            head_switch: Nanos::from_micros(800),
            write_settle: Nanos::from_micros(400),
            seek: (0..CYLINDERS).map(|d| if d == 0 { 0 } else { 300_000 + d * 50_000 }).collect(),
        };
        (Geometry::new(4096, 3, &[zone]), mechanics)
    }

    /// The definition, without a thought for speed.
    fn naive(queue: &Queue, mechanics: &Mechanics, free: Instant, arm: Arm) -> u64 {
        let now = free.max(queue.waiting[0].submitted);
        let keys: Vec<f64> = queue
            .waiting
            .iter()
            .map(|waiting| {
                let positioning = waiting.target.map_or(Nanos::ZERO, |(place, pass)| {
                    let reach = mechanics.reach(arm, &place, pass);
                    reach + mechanics.latency_floor(now + mechanics.overhead + reach, &place)
                });
                let age = now.saturating_since(waiting.submitted).get() as f64;
                positioning.get() as f64 - queue.age_weight * age
            })
            .collect();
        let least = keys.iter().copied().fold(f64::INFINITY, f64::min);
        let at = keys.iter().position(|key| key.total_cmp(&least).is_eq()).unwrap();
        queue.waiting[at].id
    }

    #[test]
    fn the_next_command_is_the_best_of_all_that_wait() {
        let (geometry, mechanics) = disk();
        for seed in 0..3_000 {
            let mut rng = Streams::new(seed).stream("queue");
            let mut queue = Queue::new([0.0, 0.01, 1.0][rng.below(3) as usize]);
            let free = Instant::from_nanos(1_000_000_000 + rng.below(100_000_000));
            for id in 0..=rng.below(31) {
                // Few places, so that equal keys occur.
                let place = geometry.place(rng.below(geometry.size().get()) / 40 * 40);
                let pass = if rng.below(2) == 0 { Pass::Read } else { Pass::Write };
                queue.push(Waiting {
                    id,
                    command: Command::Flush,
                    origin: id,
                    submitted: Instant::from_nanos(900_000_000 + id * rng.below(3_000_000)),
                    target: (rng.below(40) > 0).then_some((place, pass)),
                });
            }
            let arm =
                Arm { cylinder: rng.below(CYLINDERS.into()) as u32, head: rng.below(3) as u32 };
            while queue.len() > 0 {
                let expected = naive(&queue, &mechanics, free, arm);
                let next = queue.take_next(&mechanics, free, arm).unwrap();
                assert_eq!(next.id, expected, "seed {seed}");
            }
            assert!(queue.take_next(&mechanics, free, arm).is_none());
        }
    }
}
