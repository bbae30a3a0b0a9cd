//! Short limits of error recovery ([`erc`](crate::devices::erc)): when they are allowed, and their end with the array.

use std::time::Instant;

use levelhead_array::Array;
use levelhead_units::DriveIdx;

use super::{Engine, Parts};
use crate::devices::erc::FAREWELL;

impl Engine {
    /// Tells the drives whether they may have a short limit now.
    pub(super) fn allow_short_limits(&self) {
        for (at, seat) in self.parts.seats.iter().enumerate() {
            if let Some(limit) = seat.ways.as_ref().and_then(|ways| ways.drive_limit()) {
                limit.allow(is_spare(&self.parts.array, DriveIdx::from_usize(at)));
            }
        }
    }

    /// Has all drives given their own limits, and says which of those that are not lost may have another one now, a sentence
    /// each.
    pub(super) fn end_short_limits(&self) -> Vec<String> {
        let Parts { array, seats, .. } = &self.parts;
        let limits = (0..).map(DriveIdx::new).zip(seats).filter_map(|(drive, seat)| {
            let limit = seat.ways.as_ref()?.drive_limit()?;
            limit.stop();
            Some((drive, seat.name.as_ref()?, limit))
        });
        let limits: Vec<_> = limits.collect();
        let until = Instant::now() + FAREWELL;
        let left = limits.into_iter().filter_map(|(drive, name, limit)| {
            // Of one that is lost it is known that it does not answer, and its record stays.
            let why = limit.left_behind(until.saturating_duration_since(Instant::now()))?;
            if array.lost().contains(drive) {
                return None;
            }
            Some(format!(
                "{name} may still have a short limit of error recovery: {why}; it gets its own when it is opened the next \
                 time, or by 'smartctl -l {}'",
                limit.tell_own()
            ))
        });
        left.collect()
    }
}

/// Whether the array can compute what a drive holds from the others.
fn is_spare(array: &Array, drive: DriveIdx) -> bool {
    let (lost, layout) = (array.lost(), array.layout());
    let spec = layout.spec();
    // Every copy of a mirror has all that was written.
    let is_redundant = spec.is_mirror() || array.synced() >= layout.stripes();
    let has_data = spec.data_drives().contains(drive) && !lost.contains(drive);
    has_data && is_redundant && spec.survives(lost.with(drive))
}
