//! When the steps of a copy begin while clients are about: after a pause, or at a rate that is to be kept.

use levelhead_units::{Instant, Nanos};

use super::rebuild::{PAUSE, WAIT_MAX};

/// When steps begin beside clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tempo {
    next_at: Instant,
    /// When the last step should have begun, where a rate is to be kept.
    slot: Instant,
    /// How long a step takes at that rate.
    period: Option<Nanos>,
}

impl Tempo {
    pub(super) fn new(now: Instant) -> Self {
        Self { next_at: now, slot: now, period: None }
    }

    /// A step begins, one of those that take this long at a rate that is to be kept.
    pub(super) fn begin(&mut self, now: Instant, period: Option<Nanos>) {
        self.period = period;
        self.next_at = now;
        if let Some(period) = period {
            // What is late is made up for, but not all of a time in which nothing could be done.
            let earliest = self.slot + period;
            self.slot = if earliest + period <= now { now } else { earliest.min(now) };
            self.next_at = self.slot + period;
        }
    }

    /// A step has ended.
    pub(super) fn end(&mut self, now: Instant) {
        let after = now + PAUSE;
        self.next_at = if self.period.is_some() { self.next_at.min(after) } else { after };
    }

    /// When the next step may begin.
    pub(super) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// When a step no longer waits for a drive that has nothing else to do.
    pub(super) fn due_at(&self) -> Instant {
        let half = self.period.map_or(WAIT_MAX, |period| Nanos::new(period.get() / 2));
        self.next_at + half.min(WAIT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_keep_a_rate_or_leave_a_pause_and_are_due_in_the_end() {
        let at = |millis| Instant::ZERO + Nanos::from_millis(millis);
        let mut tempo = Tempo::new(at(0));
        tempo.begin(at(10), None);
        tempo.end(at(50));
        assert_eq!((tempo.next_at, tempo.due_at()), (at(2_050), at(7_050)));
        let period = Some(Nanos::from_millis(100));
        tempo.begin(at(3_000), period);
        tempo.end(at(3_030));
        assert_eq!((tempo.next_at, tempo.due_at()), (at(3_100), at(3_150)));
        tempo.begin(at(3_140), period);
        assert_eq!(tempo.next_at, at(3_200), "what is late is made up for");
    }
}
