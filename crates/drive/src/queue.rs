//! The commands that wait inside the drive, and which of them is next.
//!
//! Each [`Scheduler`] gives every command a key; the smallest is next, and among equals the oldest:
//!
//! ```text
//! FCFS     nothing: the oldest is next
//! SSTF     reach
//! C-LOOK   cylinders inwards from the arm; those further out come after all of these
//! SPTF     overhead + reach + latency - weight * age
//! ```
//!
//! The transfer does not count. The overhead is that of the command's own kind, and counts from when
//! the arm is free. Weight 0 is what studies use and what DiskSim calls SPTF; a weight above it
//! bounds how long a command on an unlucky cylinder waits. That order never turns into oldest-first,
//! however long the queue. A command that moves nothing, or finds what it needs in memory, comes
//! first, but for FCFS.

use std::ops::Range;

use levelhead_block::{Command, Durability, Effort};
use levelhead_units::{Instant, Nanos};

use crate::Scheduler;
use crate::cache::Cache;
use crate::geometry::BlockPosition;
use crate::mechanics::{Arm, Mechanics, Pass};

/// A command that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: u64,
    pub(crate) command: Command,
    pub(crate) origin: u64,
    pub(crate) submitted: Instant,
    /// Where its first block lies; none for a command that moves nothing.
    pub(crate) target: Option<(BlockPosition, Pass)>,
    /// Its blocks; none for such a command.
    pub(crate) blocks: Range<u64>,
}

/// The commands that wait, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    scheduler: Scheduler,
    waiting: Vec<Waiting>,
}

/// Where and when the drive chooses its next command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) mechanics: &'a Mechanics,
    /// When the arm was last free.
    pub(crate) free: Instant,
    pub(crate) arm: Arm,
    /// The kind of the command before.
    pub(crate) last: Pass,
    /// What the drive keeps in memory.
    pub(crate) cache: Option<&'a Cache>,
}

impl Queue {
    /// An empty queue in that order.
    pub(crate) fn new(scheduler: Scheduler) -> Self {
        Self { scheduler, waiting: Vec::new() }
    }

    pub(crate) fn len(&self) -> u32 {
        self.waiting.len() as u32
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// When the command came that has waited longest.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.waiting.first().map(|waiting| waiting.submitted)
    }

    /// Takes the command to start now that the arm is free, at `free` or when it came after that.
    pub(crate) fn take_next(&mut self, choice: Choice<'_>) -> Option<Waiting> {
        let oldest = self.waiting.first()?.submitted;
        let next = match self.scheduler {
            _ if self.waiting.len() == 1 => 0,
            Scheduler::Fcfs => 0,
            Scheduler::Sstf => self.least(choice, |position, pass| {
                choice.mechanics.reach(choice.arm, position, pass).get()
            }),
            Scheduler::Clook => self.least(choice, |position, _| {
                // Wraps around for those further out: they come last, the outermost first.
                u64::from(position.cylinder.wrapping_sub(choice.arm.cylinder))
            }),
            Scheduler::Sptf { age_weight } => self.soonest(choice, oldest, age_weight),
        };
        Some(self.waiting.remove(next))
    }

    /// Takes all that wait, oldest first.
    pub(crate) fn take_all(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// The command with the smallest key; one that moves nothing has none and comes first.
    fn least(&self, choice: Choice<'_>, key: impl Fn(&BlockPosition, Pass) -> u64) -> usize {
        let keys = self.waiting.iter().map(|waiting| {
            choice.movement(waiting).map_or(0, |(position, pass)| 1 + key(position, *pass))
        });
        // Of several minima, the first.
        keys.enumerate().min_by_key(|&(_, key)| key).map_or(0, |(at, _)| at)
    }

    fn soonest(&self, choice: Choice<'_>, oldest: Instant, age_weight: f64) -> usize {
        let Choice { mechanics, free, arm, last, .. } = choice;
        let now = free.max(oldest);
        let overheads =
            [Pass::Read, Pass::Write].map(|pass| mechanics.overheads.on_medium(pass, last));
        let (mut best, mut best_key) = (0, f64::INFINITY);
        for (at, waiting) in self.waiting.iter().enumerate() {
            let credit = if age_weight > 0.0 {
                age_weight * now.saturating_since(waiting.submitted).get() as f64
            } else {
                0.0
            };
            let Some((position, pass)) = choice.movement(waiting) else {
                // It begins at once.
                if -credit < best_key {
                    (best, best_key) = (at, -credit);
                }
                continue;
            };
            let overhead = overheads[usize::from(*pass == Pass::Write)];
            let reached = overhead + mechanics.reach(arm, position, *pass);
            // The latency only adds to the key, and an equal key belongs to the older command.
            if key(reached, credit) >= best_key {
                continue;
            }
            let positioning = reached + mechanics.latency_floor(now + reached, position);
            if key(positioning, credit) < best_key {
                (best, best_key) = (at, key(positioning, credit));
            }
        }
        best
    }
}

impl Choice<'_> {
    /// Where a command moves the arm, if it moves it.
    #[inline]
    fn movement<'w>(&self, waiting: &'w Waiting) -> Option<&'w (BlockPosition, Pass)> {
        let target = waiting.target.as_ref()?;
        let Some(cache) = self.cache else { return Some(target) };
        // A durable write goes past the memory, and so does a read of the medium.
        let is_near = !is_durable(&waiting.command)
            && !is_of_medium(&waiting.command)
            && cache.is_near(&waiting.blocks, target.1 == Pass::Read);
        (!is_near).then_some(target)
    }
}

/// Whether it is a read that no memory may answer.
pub(crate) fn is_of_medium(command: &Command) -> bool {
    matches!(command, Command::Read { effort: Effort::Medium, .. })
}

/// Whether a write must not wait in memory.
pub(crate) fn is_durable(command: &Command) -> bool {
    match command {
        Command::Write { durability, .. } | Command::WriteZeroes { durability, .. } => {
            *durability == Durability::Durable
        }
        Command::Read { .. } | Command::Trim { .. } | Command::Flush => false,
    }
}

fn key(positioning: Nanos, credit: f64) -> f64 {
    positioning.get() as f64 - credit
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use levelhead_stats::Streams;

    use super::*;
    use crate::geometry::{Geometry, Zone};
    use crate::mechanics::{Overhead, Overheads, Spindle};

    const CYLINDERS: u32 = 200;

    fn disk() -> (Geometry, Mechanics) {
        let zone = Zone {
            cylinder_count: CYLINDERS,
            blocks_per_track: 50,
            track_skew: 7,
            cylinder_skew: 9,
            ..Zone::default()
        };
        let seek: Arc<[u32]> =
            (0..CYLINDERS).map(|d| if d == 0 { 0 } else { 300_000 + d * 50_000 }).collect();
        let mechanics = Mechanics {
            spindle: Spindle::new(7_200, 0),
            overheads: Overheads {
                read: Overhead::always(Nanos::from_micros(200)),
                write: Overhead::always(Nanos::from_micros(900)),
                ..Overheads::default()
            },
            head_switch: Nanos::from_micros(800),
            write_settle: Nanos::from_micros(400),
            seek_write: Arc::clone(&seek),
            seek,
            bus_block: 0,
            bug: None,
        };
        (Geometry::new(4096, 3, &[zone], None), mechanics)
    }

    /// The definition, without a thought for speed.
    fn naive(queue: &Queue, choice: Choice<'_>) -> u64 {
        let Choice { mechanics, free, arm, last, .. } = choice;
        let now = free.max(queue.waiting[0].submitted);
        let key = |waiting: &Waiting| -> f64 {
            let Some((position, pass)) = waiting.target else {
                return match queue.scheduler {
                    Scheduler::Sptf { age_weight } => {
                        -age_weight * now.saturating_since(waiting.submitted).get() as f64
                    }
                    Scheduler::Fcfs => 0.0,
                    Scheduler::Sstf | Scheduler::Clook => -1.0,
                };
            };
            let reach = mechanics.reach(arm, &position, pass);
            match queue.scheduler {
                Scheduler::Fcfs => 0.0,
                Scheduler::Sstf => reach.get() as f64,
                Scheduler::Clook if position.cylinder >= arm.cylinder => position.cylinder.into(),
                Scheduler::Clook => f64::from(position.cylinder + CYLINDERS),
                Scheduler::Sptf { age_weight } => {
                    let reach = mechanics.overheads.on_medium(pass, last) + reach;
                    let positioning = reach + mechanics.latency_floor(now + reach, &position);
                    let age = now.saturating_since(waiting.submitted).get() as f64;
                    positioning.get() as f64 - age_weight * age
                }
            }
        };
        let keys: Vec<f64> = queue.waiting.iter().map(key).collect();
        let least = keys.iter().copied().fold(f64::INFINITY, f64::min);
        let at = keys.iter().position(|key| key.total_cmp(&least).is_eq()).unwrap();
        queue.waiting[at].id
    }

    fn waiting(id: u64, submitted: u64, target: Option<(BlockPosition, Pass)>) -> Waiting {
        let submitted = Instant::from_nanos(submitted);
        Waiting { id, command: Command::Flush, origin: id, submitted, target, blocks: 0..0 }
    }

    #[test]
    fn the_next_command_is_the_best_of_all_that_wait() {
        let (geometry, mechanics) = disk();
        for seed in 0..5_000 {
            let mut rng = Streams::new(seed).stream("queue");
            let mut queue = Queue::new(match rng.below(6) {
                0 => Scheduler::Fcfs,
                1 => Scheduler::Sstf,
                2 => Scheduler::Clook,
                at => Scheduler::Sptf { age_weight: [0.0, 0.01, 1.0][at as usize - 3] },
            });
            let free = Instant::from_nanos(1_000_000_000 + rng.below(100_000_000));
            for id in 0..=rng.below(31) {
                // Few positions, so that equal keys occur.
                let position = geometry.position(rng.below(geometry.size().get()) / 40 * 40);
                let pass = if rng.below(2) == 0 { Pass::Read } else { Pass::Write };
                let submitted = 900_000_000 + id * rng.below(3_000_000);
                queue.push(waiting(id, submitted, (rng.below(40) > 0).then_some((position, pass))));
            }
            let arm =
                Arm { cylinder: rng.below(CYLINDERS.into()) as u32, head: rng.below(3) as u32 };
            let last = if rng.below(2) == 0 { Pass::Read } else { Pass::Write };
            let choice = Choice { mechanics: &mechanics, free, arm, last, cache: None };
            while queue.len() > 0 {
                let expected = naive(&queue, choice);
                let next = queue.take_next(choice).unwrap();
                assert_eq!(next.id, expected, "seed {seed}, {:?}", queue.scheduler);
            }
            assert!(queue.take_next(choice).is_none());
        }
    }

    /// The order of five commands at these cylinders, with the arm at cylinder 100.
    #[track_caller]
    fn check_order(scheduler: Scheduler, expected: [u64; 5]) {
        let (geometry, mechanics) = disk();
        let mut queue = Queue::new(scheduler);
        for (id, cylinder) in (0..).zip([150, 90, 20, 100, 101]) {
            queue.push(waiting(id, 0, Some((geometry.position(cylinder * 150), Pass::Read))));
        }
        let mut arm = Arm { cylinder: 100, head: 0 };
        let order = expected.map(|_| {
            let choice = Choice {
                mechanics: &mechanics,
                free: Instant::ZERO,
                arm,
                last: Pass::Read,
                cache: None,
            };
            let next = queue.take_next(choice).unwrap();
            arm.cylinder = next.target.unwrap().0.cylinder;
            next.id
        });
        assert_eq!(order, expected, "{scheduler:?}");
    }

    #[test]
    fn each_scheduler_has_its_own_order() {
        check_order(Scheduler::Fcfs, [0, 1, 2, 3, 4]);
        check_order(Scheduler::Sstf, [3, 4, 1, 0, 2]);
        check_order(Scheduler::Clook, [3, 4, 0, 2, 1]);
    }
}
