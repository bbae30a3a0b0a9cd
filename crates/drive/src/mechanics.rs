//! How long the arm and the platter take.
//!
//! The platter turns at one constant speed; its *phase* is computed from the absolute time with
//! integers and never accumulated, so that it is exact after years. One revolution is [`TURN`]
//! phase units, and `rpm` units pass in a nanosecond: both are whole numbers at every speed.
//!
//! A service is a chain of track segments:
//!
//! ```text
//! overhead | reach | latency | transfer | reach | latency | transfer | ... | retries
//!            `----- first track -----'    `------ next track ------'
//! ```
//!
//! - *overhead* is the controller's, and may depend on the kind of command and of the one before it;
//! - *reach* is the longer of the seek and the head switch, not their sum; a write may seek by a
//!   curve of its own, and then settles if the arm or the head changed at all;
//! - *latency* runs from the phase at the end of the reach to the first block wanted; there is no
//!   reading on arrival;
//! - retries are whole revolutions at the end, after which the phase is what it was.
//!
//! Within a segment nothing is rounded; its end is rounded down to a nanosecond, so that the block
//! that follows on the track has not passed by then.

use std::ops::Range;
use std::sync::Arc;

use levelhead_units::{Instant, Nanos};

use crate::geometry::{BlockPosition, Geometry};

/// Phase units in one revolution: the nanoseconds in a minute.
pub(crate) const TURN: u64 = 60_000_000_000;

/// The largest speed, track and number of retries for which the products below stay under 2^64.
pub(crate) const RPM_MAX: u32 = 60_000;
pub(crate) const BLOCKS_PER_TRACK_MAX: u32 = 65_535;
pub(crate) const ROTATIONS_MAX: u32 = 1_000;

// Latency, transfer and retries of one segment, in units of 1 / (rpm * blocks per track) ns.
const _: () =
    assert!((TURN * BLOCKS_PER_TRACK_MAX as u64).checked_mul(2 + ROTATIONS_MAX as u64).is_some());
// The phase within the period of `Spindle::phase`.
const _: () = assert!(TURN.checked_mul(RPM_MAX as u64 + 1).is_some());

/// Whether a pass over the medium reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Read,
    Write,
}

/// What the controller takes for one kind of command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overhead {
    /// After a read.
    pub(crate) after_read: Nanos,
    /// After a write.
    pub(crate) after_write: Nanos,
}

/// What the controller takes before anything moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overheads {
    /// A read from the medium.
    pub(crate) read: Overhead,
    /// A read from the cache.
    pub(crate) read_hit: Overhead,
    /// A write to the medium.
    pub(crate) write: Overhead,
    /// A write into the cache.
    pub(crate) write_hit: Overhead,
}

impl Overhead {
    /// The same after every command.
    pub(crate) fn always(time: Nanos) -> Self {
        Self { after_read: time, after_write: time }
    }

    /// What it is after a command of that kind.
    pub(crate) fn after(self, last: Pass) -> Nanos {
        match last {
            Pass::Read => self.after_read,
            Pass::Write => self.after_write,
        }
    }
}

impl Overheads {
    /// What a command to the medium takes that comes after one of the kind `last`.
    pub(crate) fn on_medium(self, pass: Pass, last: Pass) -> Nanos {
        match pass {
            Pass::Read => self.read.after(last),
            Pass::Write => self.write.after(last),
        }
    }

    /// What a command to the cache takes that comes after one of the kind `last`.
    pub(crate) fn in_cache(self, pass: Pass, last: Pass) -> Nanos {
        match pass {
            Pass::Read => self.read_hit.after(last),
            Pass::Write => self.write_hit.after(last),
        }
    }
}

/// Where the arm is and which head is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arm {
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
}

/// The turning platter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spindle {
    rpm: u64,
    /// The shortest whole number of nanoseconds in which the platter makes a whole number of
    /// revolutions.
    period: u64,
    /// The phase at time zero.
    offset: u64,
}

impl Spindle {
    /// A platter that makes `rpm` revolutions a minute and has phase `offset` at time zero.
    pub(crate) fn new(rpm: u32, offset: u64) -> Self {
        assert!(rpm > 0);
        assert!(rpm <= RPM_MAX);
        assert!(offset < TURN);
        let rpm = u64::from(rpm);
        Self { rpm, period: TURN / gcd(TURN, rpm), offset }
    }

    /// The same platter with phase `offset` at time zero.
    pub(crate) fn with_offset(self, offset: u64) -> Self {
        assert!(offset < TURN);
        Self { offset, ..self }
    }

    /// The phase at `at`, from 0 to [`TURN`].
    pub(crate) fn phase(self, at: Instant) -> u64 {
        ((at.as_nanos() % self.period) * self.rpm + self.offset) % TURN
    }

    /// How many whole revolutions fit into `time`.
    pub(crate) fn rotations_floor(self, time: Nanos) -> u64 {
        // A u64 holds it: time is below 2^64 ns and a revolution takes more than a nanosecond.
        (u128::from(time.get()) * u128::from(self.rpm) / u128::from(TURN)) as u64
    }
}

/// One revolution at `rpm`, to the nearest nanosecond.
pub(crate) fn rotation_round(rpm: u32) -> Nanos {
    Nanos::new((TURN + u64::from(rpm) / 2) / u64::from(rpm))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The times of one drive's moving parts.
#[derive(Clone, Debug)]
pub(crate) struct Mechanics {
    pub(crate) spindle: Spindle,
    pub(crate) overheads: Overheads,
    /// What switching to another head takes.
    pub(crate) head_switch: Nanos,
    /// What a write waits once the head has arrived on another track.
    pub(crate) write_settle: Nanos,
    /// The time of a seek in nanoseconds, by its length in cylinders, for reads.
    pub(crate) seek: Arc<[u32]>,
    /// The same for writes.
    pub(crate) seek_write: Arc<[u32]>,
    /// What one block takes on the bus, in picoseconds.
    pub(crate) bus_block: u64,
    /// A mistake that the comparisons must find.
    #[cfg(test)]
    pub(crate) bug: Option<Bug>,
}

/// Mistakes to plant.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    SeekPlusHeadSwitch,
    PhaseBeforeSeek,
    ReadsSettle,
}

/// Blocks that a pass goes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) blocks: Range<u64>,
    /// Where the first of them lies, if that has been found out before.
    pub(crate) first: Option<BlockPosition>,
}

impl From<Range<u64>> for Stretch {
    fn from(blocks: Range<u64>) -> Self {
        Self { blocks, first: None }
    }
}

/// When the parts of a pass over the medium end, and where it leaves the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// When the first block was under the head.
    pub(crate) positioned: Instant,
    /// When the first pass had ended.
    pub(crate) first_pass: Instant,
    /// When the last retry had ended.
    pub(crate) end: Instant,
    /// Where the arm is then.
    pub(crate) arm: Arm,
}

impl Mechanics {
    /// Time until the head is on `position`'s track.
    pub(crate) fn reach(&self, arm: Arm, position: &BlockPosition, pass: Pass) -> Nanos {
        let curve = match pass {
            Pass::Read => &self.seek,
            Pass::Write => &self.seek_write,
        };
        let seek = Nanos::new(curve[arm.cylinder.abs_diff(position.cylinder) as usize].into());
        let on_track = if arm.head == position.head { seek } else { seek.max(self.head_switch) };
        #[cfg(test)]
        match self.bug {
            Some(Bug::SeekPlusHeadSwitch) if arm.head != position.head => {
                return seek + self.head_switch;
            }
            Some(Bug::ReadsSettle) if on_track > Nanos::ZERO => {
                return on_track + self.write_settle;
            }
            _ => {}
        }
        match pass {
            Pass::Write if on_track > Nanos::ZERO => on_track + self.write_settle,
            Pass::Read | Pass::Write => on_track,
        }
    }

    /// Time from `at`, when the head is on its track, until `position` is under it.
    pub(crate) fn latency_floor(&self, at: Instant, position: &BlockPosition) -> Nanos {
        Nanos::new(self.wait(at, position) / self.units(position))
    }

    /// What `blocks` take on the bus.
    pub(crate) fn bus_floor(&self, blocks: u64) -> Nanos {
        // A command has fewer than 2^33 blocks, and each takes at most a second.
        Nanos::new((u128::from(blocks) * u128::from(self.bus_block) / 1_000) as u64)
    }

    /// A pass over a stretch of the medium that begins at `start`, with `rotations` retries at its
    /// end. The controller's overhead is over by then.
    pub(crate) fn serve(
        &self,
        geometry: &Geometry,
        start: Instant,
        mut arm: Arm,
        stretch: impl Into<Stretch>,
        pass: Pass,
        rotations: u32,
    ) -> Service {
        let Stretch { blocks, first: mut known } = stretch.into();
        let mut at = start;
        let mut retries = Nanos::ZERO;
        let mut positioned = None;
        let mut next = blocks.start;
        while next < blocks.end {
            let position = known.take().unwrap_or_else(|| geometry.position(next));
            let on_track = (blocks.end - next).min(position.run.into());
            next += on_track;
            let came = at;
            at = at + self.reach(arm, &position, pass);
            arm = Arm { cylinder: position.cylinder, head: position.head };
            let seen_at = if self.sees_phase_before_seek() { came } else { at };
            let wait = self.wait(seen_at, &position);
            let done = wait + on_track * TURN;
            let units = self.units(&position);
            positioned = positioned.or(Some(at + Nanos::new(wait / units)));
            if next == blocks.end {
                let turns = u64::from(rotations) * u64::from(position.blocks_per_track) * TURN;
                retries = Nanos::new((done + turns) / units - done / units);
            }
            at = at + Nanos::new(done / units);
        }
        Service { positioned: positioned.unwrap_or(start), first_pass: at, end: at + retries, arm }
    }

    /// Goes on from a track to `count` blocks from `position` on, all on one track. When the head is
    /// there, where the arm is then, and when the last of them has been read.
    pub(crate) fn read_on(
        &self,
        since: Instant,
        arm: Arm,
        position: &BlockPosition,
        count: u64,
    ) -> (Instant, Arm, Instant) {
        let reached = since + self.reach(arm, position, Pass::Read);
        let done = self.wait(reached, position) + count * TURN;
        let arm = Arm { cylinder: position.cylinder, head: position.head };
        (reached, arm, reached + Nanos::new(done / self.units(position)))
    }

    /// How many blocks from `position` on have passed a head that reached their track at `reached`. They
    /// must not be more than a revolution's.
    pub(crate) fn passed(&self, reached: Instant, now: Instant, position: &BlockPosition) -> u64 {
        let elapsed = now.saturating_since(reached).get() * self.units(position);
        elapsed.saturating_sub(self.wait(reached, position)) / TURN
    }

    fn sees_phase_before_seek(&self) -> bool {
        #[cfg(test)]
        return self.bug == Some(Bug::PhaseBeforeSeek);
        #[cfg(not(test))]
        false
    }

    /// Units of time in a nanosecond, for waits on `position`'s track. In these units both a block
    /// and the phase are whole numbers.
    fn units(&self, position: &BlockPosition) -> u64 {
        self.spindle.rpm * u64::from(position.blocks_per_track)
    }

    /// The rotational latency in those units.
    fn wait(&self, at: Instant, position: &BlockPosition) -> u64 {
        let slots = u64::from(position.blocks_per_track);
        let now = self.spindle.phase(at) * slots;
        let wanted = u64::from(position.slot) * TURN;
        if wanted >= now { wanted - now } else { wanted + slots * TURN - now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Zone;

    /// 6000 rpm (10 ms), two heads, 10 blocks a track (1 ms each), switch 2 ms,
    /// settle 3 ms, seeks of 1 to 4 cylinders in 1.5, 4, 5, 6 ms.
    fn tiny() -> (Geometry, Mechanics) {
        let zone = Zone {
            cylinder_count: 5,
            blocks_per_track: 10,
            track_skew: 3,
            cylinder_skew: 4,
            ..Zone::default()
        };
        let seek: Arc<[u32]> = [0, 1_500_000, 4_000_000, 5_000_000, 6_000_000].into();
        let mechanics = Mechanics {
            spindle: Spindle::new(6_000, 0),
            overheads: Overheads::default(),
            head_switch: Nanos::from_millis(2),
            write_settle: Nanos::from_millis(3),
            seek_write: Arc::clone(&seek),
            seek,
            bus_block: 1_500,
            bug: None,
        };
        (Geometry::new(4096, 2, &[zone], None), mechanics)
    }

    fn micros(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    #[track_caller]
    fn check_serve(blocks: Range<u64>, pass: Pass, expected: Nanos, arm: Arm) {
        let (geometry, mechanics) = tiny();
        // A command that comes at 1 ms, after an overhead of 0.5 ms.
        let (came, start) = (Instant::ZERO + micros(1_000), Instant::ZERO + micros(1_500));
        let service = mechanics.serve(&geometry, start, Arm::default(), blocks, pass, 0);
        let end = came + expected;
        let Service { first_pass, end: last, arm: found, .. } = service;
        assert_eq!((first_pass, last, found), (end, end, arm));
    }

    #[test]
    fn a_read_on_the_track_under_the_head_waits_for_its_block_only() {
        // On track at 1.5 ms; block 4 begins at 4 ms and ends at 5 ms.
        check_serve(4..5, Pass::Read, micros(4_000), Arm { cylinder: 0, head: 0 });
        // Block 1 has been missed by half a block: it comes again at 11 ms.
        check_serve(1..2, Pass::Read, micros(11_000), Arm { cylinder: 0, head: 0 });
    }

    #[test]
    fn a_seek_and_a_head_switch_take_the_longer_of_both() {
        // Block 34: cylinder 1, head 1, block 4, slot (2 * 3 + 4 + 4) % 10 = 4. Reach 2 ms, on
        // track at 3.5 ms, the slot passes from 4 to 5 ms.
        check_serve(34..35, Pass::Read, micros(4_000), Arm { cylinder: 1, head: 1 });
        // Block 45: cylinder 2, head 0, slot (2 * 3 + 8 + 5) % 10 = 9. Seek 4 ms, on track at
        // 5.5 ms, the slot passes from 9 to 10 ms.
        check_serve(45..46, Pass::Read, micros(9_000), Arm { cylinder: 2, head: 0 });
    }

    #[test]
    fn a_write_settles_when_the_arm_or_the_head_changed() {
        // Block 35, next to the one above: on track at 3.5 + 3 = 6.5 ms, slot 5 is back at 15 ms.
        check_serve(35..36, Pass::Write, micros(15_000), Arm { cylinder: 1, head: 1 });
        check_serve(4..5, Pass::Write, micros(4_000), Arm { cylinder: 0, head: 0 });
    }

    #[test]
    fn crossing_a_track_costs_the_switch_the_skew_and_the_rest() {
        // Blocks 8 to 11: slots 8 and 9 until 10 ms, switch until 12 ms, slots 3 and 4 from 13 ms.
        check_serve(8..12, Pass::Read, micros(14_000), Arm { cylinder: 0, head: 1 });
        // Written, it settles until 15 ms and has to wait until 23 ms.
        check_serve(8..12, Pass::Write, micros(24_000), Arm { cylinder: 0, head: 1 });
        // Blocks 18 to 21 cross a cylinder: head 1 on track at 3.5 ms, slots 1 and 2 from 11 to
        // 13 ms, switch and seek until 15 ms, slots 7 and 8 from 17 to 19 ms.
        check_serve(18..22, Pass::Read, micros(18_000), Arm { cylinder: 1, head: 0 });
    }

    #[test]
    fn nothing_to_transfer_takes_the_overhead_only() {
        check_serve(4..4, Pass::Read, micros(500), Arm::default());
    }

    #[test]
    fn writes_may_seek_by_a_curve_of_their_own() {
        let (geometry, mut mechanics) = tiny();
        mechanics.seek_write = [0, 2_500_000, 5_000_000, 6_000_000, 7_000_000].into();
        let reach = |pass, block| mechanics.reach(Arm::default(), &geometry.position(block), pass);
        assert_eq!(reach(Pass::Read, 45), micros(4_000));
        assert_eq!(reach(Pass::Write, 45), micros(5_000 + 3_000));
        assert_eq!(reach(Pass::Write, 5), Nanos::ZERO);
    }

    #[test]
    fn the_bus_takes_its_time_for_every_block() {
        let (_, mechanics) = tiny();
        assert_eq!(mechanics.bus_floor(0), Nanos::ZERO);
        assert_eq!(mechanics.bus_floor(3), Nanos::new(4));
        assert_eq!(mechanics.bus_floor(2_000), micros(3));
    }

    #[test]
    fn retries_are_whole_revolutions_at_the_end() {
        let (geometry, mut mechanics) = tiny();
        for (rpm, rotations, nanos) in
            [(6_000, 3, 30_000_000), (7_200, 3, 25_000_000), (7_200, 6, 50_000_000)]
        {
            mechanics.spindle = Spindle::new(rpm, 0);
            let serve = |rotations| {
                mechanics.serve(&geometry, at(7), Arm::default(), 17..23, Pass::Read, rotations)
            };
            let (plain, retried) = (serve(0), serve(rotations));
            assert_eq!(retried.end, plain.end + Nanos::new(nanos));
            assert_eq!(retried.first_pass, plain.end);
            assert_eq!(mechanics.spindle.phase(at(0)), mechanics.spindle.phase(at(nanos)));
        }
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn the_phase_is_exact_after_years() {
        for rpm in [5_400, 7_200, 10_033, 15_000] {
            let spindle = Spindle::new(rpm, 12_345);
            for nanos in [0, 1, 8_333_333, 8_333_334, 999_999_999_999, u64::MAX - 1, u64::MAX] {
                let exact = (u128::from(nanos) * u128::from(rpm) + 12_345) % u128::from(TURN);
                assert_eq!(u128::from(spindle.phase(at(nanos))), exact, "{rpm} rpm, {nanos} ns");
            }
        }
        // Ten years are a whole number of revolutions, and 25 ms are three of them.
        let spindle = Spindle::new(7_200, 0);
        assert_eq!(spindle.phase(at(315_360_000 * 1_000_000_000)), 0);
        assert_eq!(spindle.phase(at(315_360_000 * 1_000_000_000 + 25_000_000)), 0);
        assert_eq!(spindle.rotations_floor(Nanos::new(24_999_999)), 2);
        assert_eq!(spindle.rotations_floor(Nanos::new(25_000_000)), 3);
        assert_eq!(rotation_round(7_200), Nanos::new(8_333_333));
    }
}
