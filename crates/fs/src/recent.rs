//! What was freed lately, and may not be taken yet.

use std::collections::BTreeMap;

use levelhead_units::Extent;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    /// The first sector of each run, and the first behind it.
    runs: BTreeMap<u64, u64>,
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

    /// How many sectors there are.
    pub(crate) fn sectors(&self) -> u64 {
        self.runs.iter().map(|(from, to)| to - from).sum()
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
}
