//! Drives that keep the journal full: what is to come to its place on them takes all the room there is, and what clients write
//! waits for more.

use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

use super::{Blocked, Journal};
use crate::core::Core;

/// How long what waits is kept from room by one drive before the array does without that.
pub(crate) const BEHIND: Nanos = Nanos::from_secs(1);

/// A drive that keeps what waits from room, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    drive: DriveIdx,
    since: Instant,
}

impl Journal {
    /// Looks which drive keeps the first transaction that waits from room, if one does.
    pub(super) fn look_who_is_behind(&mut self, core: &Core, now: Instant) {
        let drive = self.requests.blocked.and_then(|blocked| self.blocked_by(core, blocked));
        let known = self.requests.behind.filter(|behind| drive == Some(behind.drive));
        self.requests.behind = known.or(drive.map(|drive| Behind { drive, since: now }));
    }

    /// The drive that hinders, and without which there would be room.
    fn blocked_by(&self, core: &Core, blocked: Blocked) -> Option<DriveIdx> {
        let waited_for: DriveSet = match blocked {
            Blocked::Backlog(drive) => DriveSet::EMPTY.with(drive),
            // No space is free before the first one is over.
            Blocked::Space(_) => self.transactions.open.values().next()?.places.at_risk(),
            Blocked::Intent => DriveSet::EMPTY,
        };
        waited_for.and(core.log.hindering).iter().next()
    }

    /// When a drive has kept what waits from room for long.
    pub(super) fn behind_at(&self) -> Option<Instant> {
        self.requests.behind.map(|behind| behind.since + BEHIND)
    }

    /// The drive that has done so. It is said again after as long.
    pub(crate) fn take_behind(&mut self, now: Instant) -> Option<DriveIdx> {
        let behind = self.requests.behind.as_mut().filter(|behind| behind.since + BEHIND <= now)?;
        behind.since = now;
        Some(behind.drive)
    }
}
