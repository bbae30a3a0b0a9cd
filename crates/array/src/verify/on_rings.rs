//! Where rings of the journal have the sectors of a write that is kept without its bytes.

use levelhead_units::{DriveIdx, Lba, Sectors};

/// A sector of a ring, as its drive counts sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingSector {
    pub(crate) ring: DriveIdx,
    pub(crate) lba: Lba,
}

/// Sectors of a ring, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingRun {
    pub(crate) first: RingSector,
    pub(crate) sectors: u32,
}

impl RingSector {
    /// The one this number of sectors after it.
    pub(crate) fn plus(self, sectors: u32) -> Self {
        Self { lba: self.lba + Sectors::new(sectors.into()), ..self }
    }
}

/// See the module: runs in the order of the write's sectors.
#[derive(Clone, Debug)]
pub(crate) struct OnRings(Vec<OnRing>);

/// Sectors of a write that lie side by side on a ring, too.
#[derive(Clone, Copy, Debug)]
struct OnRing {
    /// The first of them in the write.
    offset: u32,
    sectors: u32,
    first: RingSector,
}

impl OnRing {
    /// Where the ring has a sector of the write.
    fn find(&self, at: u32) -> Option<RingSector> {
        let is_here = self.offset <= at && at < self.offset + self.sectors;
        is_here.then(|| self.first.plus(at - self.offset))
    }
}

impl OnRings {
    /// From where each sector of the write is, if that is known.
    pub(crate) fn new(sectors: impl Iterator<Item = Option<RingSector>>) -> Self {
        let mut runs: Vec<OnRing> = Vec::new();
        for (offset, sector) in (0..).zip(sectors) {
            let Some(sector) = sector else { continue };
            match runs.last_mut() {
                Some(last)
                    if last.offset + last.sectors == offset
                        && last.first.plus(last.sectors) == sector =>
                {
                    last.sectors += 1;
                }
                Some(_) | None => runs.push(OnRing { offset, sectors: 1, first: sector }),
            }
        }
        Self(runs)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of memory that it takes in a map, whose nodes are half full at least.
    pub(crate) fn cost(&self) -> usize {
        2 * size_of::<(u64, Self)>() + self.0.capacity() * size_of::<OnRing>()
    }

    /// Where these sectors of the write are, if that is known of all.
    pub(crate) fn runs(&self, offset: u32, sectors: Sectors) -> Option<Vec<RingRun>> {
        let mut runs: Vec<RingRun> = Vec::new();
        for at in (offset..).take(sectors.as_usize()) {
            let sector = self.0.iter().find_map(|on_ring| on_ring.find(at))?;
            match runs.last_mut() {
                Some(run) if run.first.plus(run.sectors) == sector => run.sectors += 1,
                Some(_) | None => runs.push(RingRun { first: sector, sectors: 1 }),
            }
        }
        Some(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_that_lie_side_by_side_on_a_ring_are_one_read() {
        let on = |ring, lba| Some(RingSector { ring: DriveIdx::new(ring), lba: Lba::new(lba) });
        let sectors = [on(0, 10), on(0, 11), on(1, 12), on(1, 13), None, on(1, 15)];
        let known = OnRings::new(sectors.into_iter());
        let runs = |offset, count| {
            let runs = known.runs(offset, Sectors::new(count))?;
            let flat = |run: RingRun| (run.first.ring.as_usize(), run.first.lba.get(), run.sectors);
            Some(runs.into_iter().map(flat).collect::<Vec<_>>())
        };
        assert_eq!(runs(0, 4), Some(vec![(0, 10, 2), (1, 12, 2)]));
        assert_eq!(runs(1, 2), Some(vec![(0, 11, 1), (1, 12, 1)]));
        assert_eq!(runs(5, 1), Some(vec![(1, 15, 1)]));
        assert_eq!(runs(3, 2), None, "one of them is on no ring");
        assert!(OnRings::new([None, None].into_iter()).is_empty());
    }
}
