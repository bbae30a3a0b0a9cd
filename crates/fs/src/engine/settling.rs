//! When what is committed comes to its place: in rounds, each of which brings there what was committed when it began.
//!
//! ```text
//!   committed --> half a minute, or a sixth of the journal --> a round: coding extents and units, neighbours together --> over
//!                                                                ^                                                       |
//!                                                                +---------- what was committed meanwhile <--------------+
//! ```
//!
//! What changes again while a round is under way waits for the next one. So a unit that all transactions change is written once in a
//! round, and there are always many coding extents to choose neighbours from.

use levelhead_units::{Instant, Nanos};

use super::{Filesystem, Phase};

/// How long what is committed waits at most, unless the journal wants it sooner.
const SETTLE_AFTER: Nanos = Nanos::from_secs(30);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Settling {
    /// The newest record of the round that is under way.
    round: Option<u64>,
    /// When the next one begins, if the journal does not want it sooner.
    at: Option<Instant>,
}

impl Settling {
    /// When something is to be done.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.at
    }

    /// The next round begins as soon as there is something for it.
    pub(super) fn hurry(&mut self) {
        self.at = Some(Instant::ZERO);
    }
}

impl Filesystem {
    /// Begins a round, or ends one, if it is time; whether anything is to be done for it.
    pub(super) fn begin_settling(&mut self, now: Instant) -> bool {
        if self.is_read_only() {
            return false;
        }
        let early = self.oldest_early(self.journal.durable());
        let oldest = [self.stale.oldest(), self.checkpoint.oldest(), early];
        let oldest = oldest.into_iter().flatten().min();
        if self.settling.round.is_some_and(|to| oldest.is_none_or(|oldest| oldest > to)) {
            self.settling = Settling::default();
        }
        let Some(oldest) = oldest else {
            self.settling.at = None;
            return false;
        };
        let at = *self.settling.at.get_or_insert(now + SETTLE_AFTER);
        let (durable, is_due) = (self.journal.durable(), at <= now || self.journal.is_growing());
        if self.settling.round.is_none() && is_due && oldest <= durable {
            self.settling.round = Some(durable);
        }
        let brings_early =
            self.settling.round.is_some_and(|to| early.is_some_and(|early| early <= to));
        brings_early && self.bring_early()
    }

    /// The newest record of which everything is to come to its place now; nothing if that has time.
    pub(super) fn settles_to(&self) -> Option<u64> {
        match self.phase {
            Phase::Unmounting => Some(u64::MAX),
            _ => self.settling.round,
        }
    }
}
