//! The clock of a server: the time in which it ran.
//!
//! ```text
//!   machine's time  |--------|===== stopped, frozen, starved =====|------->
//!   server's time   |--------|..|------->
//!                            STEP_MAX
//! ```
//!
//! Every limit of the array is a difference of two readings of its clock: how long a drive has completed nothing, how
//! long a write has waited, when a read counts a drive as late. While the server does not run (`SIGSTOP`, a frozen
//! control group, a paused virtual machine, no processor) drives complete commands that it cannot see, so that time
//! must count against none of them. An array is given readings of this clock and of no other one.
//!
//! # Invariants
//!
//! - SC1. Between two readings the server's time moves by at most [`ServerClock::STEP_MAX`], or to the end of the
//!   wait that the server had planned.
//! - SC2. The server's time never goes back.
//! - SC3. A reading that finds a standstill says so once: see [`ServerClock::take_standstill`].

use levelhead_units::{Instant, Nanos};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerClock {
    /// Time in which the server did not run.
    stopped: Nanos,
    /// The last reading, as the machine has it.
    last: Instant,
    /// Until when the server had planned to wait, as the machine has it.
    planned: Instant,
    /// Whether a standstill was found that nobody has asked about.
    stood_still: bool,
}

impl ServerClock {
    /// The most that the server's time moves between two readings without a planned wait: 200 ms, which is longer
    /// than any turn of a healthy server, and short beside every limit that costs a drive its place.
    pub const STEP_MAX: Nanos = Nanos::from_millis(200);

    /// Reads the clock. `real` is the machine's monotonic time since the start of the server.
    pub fn read(&mut self, real: Instant) -> Instant {
        let real = real.max(self.last);
        let expected = (self.last + Self::STEP_MAX).max(self.planned);
        if real > expected {
            self.stopped += real - expected;
            self.stood_still = true;
        }
        (self.last, self.planned) = (real, real);
        self.of(real)
    }

    /// The server will wait for `time` at most: as much of the machine's time as that is no standstill.
    pub fn plan_wait(&mut self, time: Nanos) {
        self.planned = self.last + time;
    }

    /// What the clock would show at `real` if the server had run since the last reading.
    pub fn of(&self, real: Instant) -> Instant {
        Instant::ZERO + (real.saturating_since(Instant::ZERO + self.stopped))
    }

    /// The machine's time when this clock shows `at`, if the server runs until then.
    pub fn machine_time(&self, at: Instant) -> Instant {
        at + self.stopped
    }

    /// The last reading.
    pub fn last(&self) -> Instant {
        self.of(self.last)
    }

    /// Time in which the server did not run.
    pub fn stopped(&self) -> Nanos {
        self.stopped
    }

    /// Whether a standstill was found since the last call. The array must hear of it
    /// ([`Array::handle_standstill`](crate::Array::handle_standstill)) before it hears that time has passed.
    pub fn take_standstill(&mut self) -> bool {
        std::mem::take(&mut self.stood_still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Nanos::from_millis(millis)
    }

    #[test]
    fn standstill_of_any_length_moves_the_clock_by_one_step_and_is_reported_once() {
        for gap in [201, 1_000, 66_000, 36_000_000] {
            let mut clock = ServerClock::default();
            assert_eq!(clock.read(at(150)), at(150));
            assert!(!clock.take_standstill());
            assert_eq!(clock.read(at(150 + gap)), at(350), "SC1: {gap} ms");
            assert_eq!(clock.stopped(), Nanos::from_millis(gap - 200));
            assert!(clock.take_standstill());
            assert!(!clock.take_standstill(), "SC3");
            assert_eq!(clock.read(at(150 + gap + 7)), at(357));
        }
    }

    #[test]
    fn planned_wait_is_no_standstill_and_its_excess_is() {
        let mut clock = ServerClock::default();
        clock.read(at(10));
        clock.plan_wait(Nanos::from_secs(5));
        assert_eq!(clock.read(at(5_010)), at(5_010));
        assert!(!clock.take_standstill());
        clock.plan_wait(Nanos::from_secs(5));
        assert_eq!(clock.read(at(100_000)), at(10_010));
        assert!(clock.take_standstill());
        // A wait counts for one reading alone.
        assert_eq!(clock.read(at(104_000)), at(10_210));
    }

    #[test]
    fn clock_of_the_machine_that_goes_back_stops_the_servers() {
        let mut clock = ServerClock::default();
        clock.read(at(100));
        assert_eq!(clock.read(at(40)), at(100), "SC2");
        assert_eq!(clock.read(at(130)), at(130));
    }
}
