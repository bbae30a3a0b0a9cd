//! Disks of a crash swarm that do not store all that is written in place, and what may be promised when the power fails too.
//!
//! As long as the array runs, what waits to be read back is had from its records, so that the whole promise holds. A cut forgets
//! them. What a disk had not stored then, and what was not read back yet, is in the journal still, or it is lost: its disk gives
//! what was there before, and what is redundant counts one or the other. So a codeword with such a sector is *doubtful* from then
//! on:
//!
//! ```text
//!   no sector of the codeword doubtful                the whole promise, also with disks less
//!   doubtful, no disk was missing since, or sat out   the whole promise for each sector whose own disk has stored it
//!   otherwise                                         nothing, nor of what is written there later: another disk may have been
//!                                                     computed from it, or is computed from it in a read
//! ```
//!
//! Records of the journal and the metadata are stored: the former are checked where they are used, the latter read back at once.

use std::collections::BTreeSet;

use levelhead_array::{Area, Cell, Row};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Extent, Lba, Sectors};

/// Which writes in place are not stored.
#[derive(Clone, Debug)]
pub(super) struct Liar {
    /// Of how many one is not, if any.
    one_of: u64,
    rng: Rng,
    pub(super) area: Area,
}

impl Liar {
    pub(super) fn new(one_of: u64, seed: u64, area: Area) -> Self {
        Self { one_of, rng: Streams::new(seed).stream("crash/lies"), area }
    }

    /// What of a write a disk stores: its first sectors.
    pub(super) fn stores(&mut self, extent: Extent) -> Extent {
        let is_place = self.area.runs().any(|run| run.contains(extent.lba));
        if self.one_of == 0 || !is_place || self.rng.below(self.one_of) > 0 {
            return extent;
        }
        Extent::new(extent.lba, Sectors::new(self.rng.below(extent.sectors.get())))
    }

    /// Where on its disk a sector lies.
    pub(super) fn place(&self, cell: Cell) -> Lba {
        self.area.on_drive(Extent::new(cell.lba, Sectors::new(1))).lba
    }
}

/// Codewords with a sector that was not stored, and not read back before the power failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubts {
    pub(super) rows: BTreeSet<Row>,
    /// Whether some disk was missing since, or sat out.
    pub(super) is_computed: bool,
}

impl Doubts {
    /// Whether there are any.
    pub(crate) fn is_some(&self) -> bool {
        !self.rows.is_empty()
    }
}
