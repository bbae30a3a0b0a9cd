//! Commands that wait for another attempt.

use levelhead_block::{Outcome, SectorSet};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Nanos};

use super::Core;

use crate::names::SubId;

/// A command that was refused, and when it is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Postponed {
    pub(super) at: Instant,
    pub(super) sub: SubId,
}

/// Time from a refusal to the next attempt.
pub(crate) const PAUSE: Nanos = Nanos::from_millis(100);

impl Core {
    /// When the next attempt is due.
    pub(crate) fn postponed_at(&self) -> Option<Instant> {
        self.commands.postponed.front().map(|postponed| postponed.at)
    }

    /// Drives of which the machine refuses commands now.
    pub(crate) fn refused_now(&self, now: Instant) -> DriveSet {
        let Some(patience) = self.drives.patience() else { return DriveSet::EMPTY };
        // It is sent again after a pause, so that this is fresh for as long as it is refused and no longer.
        let is_fresh =
            |(_, at): &(&DriveIdx, &Instant)| now.saturating_since(**at) < patience.silent;
        self.commands.refused_at.iter().filter(is_fresh).map(|(&drive, _)| drive).collect()
    }

    /// How a write is answered that is given up: what the machine refuses is not held against its sectors.
    pub(crate) fn given_up_with(&self, now: Instant, extent: Extent) -> Outcome {
        if !self.refused_now(now).is_empty() {
            return Outcome::Refused;
        }
        let damaged = SectorSet::first(extent.sectors);
        Outcome::Done { unknown: SectorSet::EMPTY, damaged }
    }

    /// The next command that is due for another attempt.
    pub(crate) fn take_postponed(&mut self, now: Instant) -> Option<SubId> {
        let due = self.commands.postponed.pop_front_if(|postponed| postponed.at <= now);
        due.map(|postponed| postponed.sub)
    }

    /// A command was refused, and is sent again after a pause.
    pub(crate) fn postpone(&mut self, now: Instant, sub: SubId) {
        self.commands.postponed.push_back(Postponed { at: now + PAUSE, sub });
    }
}
