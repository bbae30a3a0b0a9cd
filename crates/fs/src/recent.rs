//! Free sectors that may not be taken: what was freed lately, and places that are reserved for units.
//!
//! Free sectors alone do not make room for a unit: it needs some in a row, and one at the same place of another group. Files fill the
//! disk to its end, and deleting may need a unit, so that some places are reserved ([`spares`](crate::engine)).

use std::collections::BTreeMap;

use levelhead_units::{Extent, Lba};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    /// The first sector of each run, and the first behind it.
    runs: BTreeMap<u64, u64>,
    /// Leads of the places that are reserved for units, and the sectors of each.
    spares: BTreeMap<Lba, Vec<Extent>>,
    /// How many sectors they have.
    spare_sectors: u64,
}

impl Recent {
    /// Sectors were freed.
    pub(crate) fn add(&mut self, extent: Extent) {
        self.runs.insert(extent.lba.get(), extent.end().get());
    }

    /// They may be taken again.
    pub(crate) fn remove(&mut self, extent: Extent) {
        self.runs.remove(&extent.lba.get());
    }

    /// How many sectors were freed.
    pub(crate) fn sectors(&self) -> u64 {
        let all: u64 = self.runs.iter().map(|(from, to)| to - from).sum();
        all - self.spare_sectors
    }

    /// The end of the run that a sector lies in.
    pub(crate) fn end_over(&self, lba: u64) -> Option<u64> {
        let (_, &end) = self.runs.range(..=lba).next_back()?;
        (lba < end).then_some(end)
    }

    /// The first sector from one on that lies in a run.
    pub(crate) fn next(&self, from: u64) -> Option<u64> {
        match self.end_over(from) {
            Some(_) => Some(from),
            None => self.runs.range(from..).next().map(|(&first, _)| first),
        }
    }

    /// Reserves a free place for a unit.
    pub(crate) fn reserve(&mut self, lead: Lba, sectors: Vec<Extent>) {
        for &extent in &sectors {
            self.add(extent);
            self.spare_sectors += extent.sectors.get();
        }
        self.spares.insert(lead, sectors);
    }

    /// A place is reserved no more: a unit has it.
    pub(crate) fn unreserve(&mut self, lead: Lba) {
        for extent in self.spares.remove(&lead).into_iter().flatten() {
            self.remove(extent);
            self.spare_sectors -= extent.sectors.get();
        }
    }

    /// Leads of the places that are reserved.
    pub(crate) fn spares(&self) -> impl DoubleEndedIterator<Item = Lba> + ExactSizeIterator + '_ {
        self.spares.keys().copied()
    }
}
