//! Findings that adjoin, joined into *runs*: one event is reported for each run of sectors, not one for each codeword.
//!
//! - RN1. A run has findings of one kind: a drive, a fault, and whether it was repaired; or codewords of which the wrong drive
//!   cannot be located. Each finding begins where the one before it has ended.
//! - RN2. One run of a kind is open. It is closed by the first finding of its kind that does not adjoin, [`OPEN_MAX`] after it began
//!   whatever happens, and when its owner knows of nothing that may soon be found beside it.

use levelhead_units::{Instant, Nanos};

use crate::event::ArrayEvent;

/// A run that goes on for longer than this is reported in parts.
const OPEN_MAX: Nanos = Nanos::from_secs(60);

/// The open runs, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(Vec<Run>);

#[derive(Clone, Debug)]
struct Run {
    since: Instant,
    event: ArrayEvent,
}

impl Runs {
    /// One more finding. Returns the run that it closes.
    pub(crate) fn add(&mut self, now: Instant, event: ArrayEvent) -> Option<ArrayEvent> {
        let at = self.0.iter().position(|run| is_alike(&run.event, &event));
        if let Some(run) = at.map(|at| &mut self.0[at])
            && now < run.since + OPEN_MAX
            && join(&mut run.event, &event)
        {
            return None;
        }
        let closed = at.map(|at| self.0.remove(at).event);
        self.0.push(Run { since: now, event });
        closed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the first of them has been open for too long.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.0.first().map(|run| run.since + OPEN_MAX)
    }

    /// Closes all of them.
    pub(crate) fn close(&mut self) -> impl Iterator<Item = ArrayEvent> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|run| run.event)
    }
}

/// Whether these are findings of one kind (RN1).
fn is_alike(one: &ArrayEvent, other: &ArrayEvent) -> bool {
    match (one, other) {
        (
            ArrayEvent::Repaired { drive, fault, is_repaired, .. },
            ArrayEvent::Repaired { drive: its, fault: like, is_repaired: is_so, .. },
        ) => (drive, fault, is_repaired) == (its, like, is_so),
        (ArrayEvent::Unlocated { .. }, ArrayEvent::Unlocated { .. }) => true,
        _ => false,
    }
}

/// Joins a finding of the same kind to a run, if it begins where the run ends.
fn join(run: &mut ArrayEvent, next: &ArrayEvent) -> bool {
    match (run, next) {
        (ArrayEvent::Repaired { extent, .. }, ArrayEvent::Repaired { extent: next, .. })
            if extent.end() == next.lba =>
        {
            extent.sectors += next.sectors;
            true
        }
        (
            ArrayEvent::Unlocated { first_sector, sectors, .. },
            ArrayEvent::Unlocated { first_sector: next, sectors: more, .. },
        ) if *first_sector + *sectors == *next => {
            *sectors += more;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

    use super::*;
    use crate::progress::Fault;

    fn wrong(drive: u8, lba: u64, sectors: u64) -> ArrayEvent {
        let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
        let drive = DriveIdx::new(drive);
        ArrayEvent::Repaired { drive, extent, fault: Fault::Wrong, is_repaired: true }
    }

    fn unlocated(stripe: u64, first_sector: u64, sectors: u64) -> ArrayEvent {
        ArrayEvent::Unlocated { stripe, first_sector, sectors }
    }

    #[test]
    fn findings_that_adjoin_are_one_run_and_each_kind_has_its_own() {
        let mut runs = Runs::default();
        let now = Instant::ZERO;
        for at in 0..10 {
            assert_eq!(runs.add(now, wrong(1, 100 + at, 1)), None);
            assert_eq!(runs.add(now, wrong(2, 100 + 2 * at, 2)), None);
            assert_eq!(runs.add(now, unlocated(5 + at, 10 * (5 + at), 10)), None);
        }
        assert_eq!(runs.add(now, wrong(1, 200, 1)), Some(wrong(1, 100, 10)));
        let left: Vec<ArrayEvent> = runs.close().collect();
        assert_eq!(left, [wrong(2, 100, 20), unlocated(5, 50, 100), wrong(1, 200, 1)]);
        assert!(runs.is_empty());
    }

    #[test]
    fn run_that_goes_on_for_long_is_reported_in_parts() {
        let mut runs = Runs::default();
        assert_eq!(runs.add(Instant::ZERO, wrong(1, 0, 1)), None);
        assert_eq!(runs.add(Instant::ZERO + OPEN_MAX, wrong(1, 1, 1)), Some(wrong(1, 0, 1)));
        assert_eq!(runs.add(Instant::ZERO + OPEN_MAX, wrong(1, 2, 1)), None);
        assert_eq!(runs.close().collect::<Vec<_>>(), [wrong(1, 1, 2)]);
    }
}
