//! Drives that have something to do and end nothing.
//!
//! ```text
//!   a command ends        silent        lost, if writes or flushes wait for it
//!   |--------------------->|---------------------------->|
//!   0                  Patience::silent             Patience::lost
//! ```
//!
//! A silent drive is treated like one that sits out by hand: no read counts on it while others suffice. When it ends
//! a command, it is not silent any more.
//!
//! # Invariants
//!
//! - S1. A drive is lost for its silence only if a write, a flush or the metadata waits for it, and the layout
//!   survives the loss of every silent drive that shares a stripe with it. If more drives are silent than that,
//!   losing some of them would help no request.
//! - S2. Where it cannot be lost, the requests that wait for it are answered with a failure: no client waits longer
//!   than [`Patience::answer`].
//! - S3. A drive that ends commands now and then, but not the one that a write or a flush has waited for as long as
//!   [`Patience::lost`], is lost under the same conditions. So a write that could do without it is not given up.
//! - S4. A drive with nothing but a ring of the journal is lost as soon as it is silent and waited for, if another such
//!   drive is not: every write waits for it, and no data is lost with it.
//! - S5. At most one drive fails at one look: the next one may fail [`ServerClock::STEP_MAX`] later, if it has completed
//!   nothing by then.
//! - S6. Time in which the server did not run counts against no drive ([`ServerClock`]). After a standstill no drive is
//!   declared unresponsive or failed for its silence before the server has looked for completed commands for
//!   [`ServerClock::STEP_MAX`].
//!
//! [`ServerClock`]: crate::ServerClock
//! [`ServerClock::STEP_MAX`]: crate::ServerClock::STEP_MAX

use levelhead_units::Instant;

/// When a drive was last heard, and since when it should have been.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// Since when it has had something to do.
    busy_since: Option<Instant>,
    /// When it ended the last of its commands.
    last: Instant,
}

impl Heard {
    /// It is given a command.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.busy_since.get_or_insert(now);
    }

    /// It has ended one, and has `left` inside.
    pub(crate) fn end(&mut self, now: Instant, left: usize) {
        self.last = now;
        if left == 0 {
            self.busy_since = None;
        }
    }

    /// Since when it has had something to do.
    pub(crate) fn busy_since(self) -> Option<Instant> {
        self.busy_since
    }

    /// Since when it has had something to do and has ended nothing.
    pub(crate) fn silent_since(self) -> Option<Instant> {
        self.busy_since.map(|since| since.max(self.last))
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Nanos;

    use super::*;

    #[test]
    fn a_drive_is_silent_from_its_last_end_on_and_only_while_it_has_something_to_do() {
        let at = |secs| Instant::ZERO + Nanos::from_secs(secs);
        let mut heard = Heard::default();
        assert_eq!(heard.silent_since(), None);
        heard.begin(at(1));
        heard.begin(at(2));
        assert_eq!(heard.silent_since(), Some(at(1)));
        heard.end(at(5), 1);
        assert_eq!((heard.busy_since(), heard.silent_since()), (Some(at(1)), Some(at(5))));
        heard.end(at(6), 0);
        assert_eq!(heard.silent_since(), None);
    }
}
