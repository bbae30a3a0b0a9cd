//! How fast drives end what the journal writes, and which of them a write had better not wait for.
//!
//! A drive hinders if it sits out, is silent, has ended nothing for [`STALL`] although it had something to do, or takes several times as long for a
//! write of the journal as the others. What such a drive is to get lies on other rings until it comes to it.

use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

use super::Journal;
use crate::core::Core;

/// A drive that has something to do and ends nothing for this long hinders: several times as long as the longest
/// seek, turn and transfer of a disk.
const STALL: Nanos = Nanos::from_millis(100);

/// A drive hinders when it takes this many times as long as the median drive,
const SLOW: f64 = 4.0;

/// and until it takes less than this many times as long.
const FAST_AGAIN: f64 = 2.5;

/// Writes of a drive before anything is concluded from them.
const WRITES_MIN: u32 = 8;

/// The weight of the last write in the mean.
const WEIGHT: f64 = 0.125;

/// How long the writes of each drive take.
#[derive(Clone, Debug)]
pub(super) struct Paces {
    each: Vec<Pace>,
    slow: DriveSet,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    writes: u32,
    mean_nanos: f64,
}

impl Paces {
    pub(super) fn new(drives: usize) -> Self {
        Self { each: vec![Pace::default(); drives], slow: DriveSet::EMPTY }
    }

    /// A drive has ended a write.
    pub(super) fn note(&mut self, drive: DriveIdx, took: Nanos) {
        let pace = &mut self.each[drive.as_usize()];
        let took = took.get() as f64;
        pace.writes = pace.writes.saturating_add(1);
        pace.mean_nanos = match pace.writes {
            1 => took,
            _ => pace.mean_nanos + WEIGHT * (took - pace.mean_nanos),
        };
        self.look();
    }

    /// A drive has come into the place: nothing is known of it.
    pub(super) fn forget(&mut self, drive: DriveIdx) {
        if let Some(pace) = self.each.get_mut(drive.as_usize()) {
            *pace = Pace::default();
            self.look();
        }
    }

    /// Finds the drives that are slow.
    fn look(&mut self) {
        let known = |pace: &&Pace| pace.writes >= WRITES_MIN;
        let mut means: Vec<f64> =
            self.each.iter().filter(known).map(|pace| pace.mean_nanos).collect();
        if means.len() < 3 {
            self.slow = DriveSet::EMPTY;
            return;
        }
        means.sort_unstable_by(f64::total_cmp);
        let median = means[(means.len() - 1) / 2];
        let is_slow = |&drive: &DriveIdx| {
            let pace = self.each[drive.as_usize()];
            let times = if self.slow.contains(drive) { FAST_AGAIN } else { SLOW };
            pace.writes >= WRITES_MIN && pace.mean_nanos > times * median
        };
        self.slow = (0..self.each.len()).map(DriveIdx::from_usize).filter(is_slow).collect();
    }
}

impl Journal {
    /// When a drive will hinder that ends nothing until then, or one that does has been waited for long enough.
    pub(crate) fn stall_at(&self, core: &Core) -> Option<Instant> {
        if !self.is_ready() || self.placing.has_failed {
            return None;
        }
        let stall = core.drives.stall_at(core.log.hindering, STALL);
        stall.into_iter().chain(self.log_announced_at(core)).min()
    }

    /// Looks which drives hinder.
    pub(super) fn look_at_paces(&self, core: &mut Core, now: Instant) {
        let drives = &core.drives;
        let hindering = drives.sat_out().or(drives.silent()).or(drives.stalled(now, STALL));
        core.log.hindering = hindering.or(self.placing.paces.slow).and(drives.present());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_slow_from_four_times_the_median_on_and_until_less_than_two_and_a_half() {
        let mut paces = Paces::new(4);
        let ms = Nanos::from_millis;
        for _ in 0..WRITES_MIN {
            for at in 0..3 {
                paces.note(DriveIdx::new(at), ms(10));
            }
        }
        for _ in 0..WRITES_MIN - 1 {
            paces.note(DriveIdx::new(3), ms(100));
        }
        assert!(paces.slow.is_empty(), "too little is known of it");
        paces.note(DriveIdx::new(3), ms(100));
        assert_eq!(paces.slow, DriveSet::EMPTY.with(DriveIdx::new(3)));
        let mut writes = 0;
        while !paces.slow.is_empty() {
            paces.note(DriveIdx::new(3), ms(10));
            writes += 1;
        }
        assert!(paces.each[3].mean_nanos < FAST_AGAIN * 10e6 && writes > 8, "{writes}");
    }

    #[test]
    fn new_drive_is_not_slow_because_the_one_before_it_was() {
        let mut paces = Paces::new(4);
        let slow = DriveIdx::new(3);
        for _ in 0..WRITES_MIN {
            (0..3).for_each(|at| paces.note(DriveIdx::new(at), Nanos::from_millis(10)));
            paces.note(slow, Nanos::from_millis(100));
        }
        assert_eq!(paces.slow, DriveSet::EMPTY.with(slow));
        paces.forget(slow);
        assert!(paces.slow.is_empty());
        paces.note(slow, Nanos::from_millis(10));
        assert!(paces.slow.is_empty());
    }
}
