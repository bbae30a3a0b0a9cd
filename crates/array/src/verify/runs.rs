//! What waits to be read back on each drive, by its place and by its turn.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_units::{Extent, Lba, Sectors};

/// What a run takes in its map and set, whose nodes are half full at least, in bytes.
pub(super) const RUN_COST: usize = 2 * (size_of::<(Lba, Run)>() + size_of::<Turn>());

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waiting,
    /// It waits, and not for its drive to be idle.
    Hurried,
    /// It is being read.
    Read,
    /// It is not what it should be, and is to be mended.
    Flawed,
}

/// Sectors of one write, side by side on a drive, that are in the same state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) write: u64,
    pub(super) offset: u32,
    pub(super) sectors: u32,
    pub(super) mends: u8,
    pub(super) stage: Stage,
}

/// The runs of one drive.
#[derive(Clone, Debug, Default)]
pub(super) struct DriveRuns {
    pub(super) map: BTreeMap<Lba, Run>,
    /// Those that may be read.
    pub(super) ready: BTreeSet<Turn>,
}

/// A run that may be read: what is hurried comes first, and then what is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) is_waiting: bool,
    pub(super) write: u64,
    pub(super) first: Lba,
}

impl Turn {
    pub(super) fn of(first: Lba, run: &Run) -> Option<Self> {
        let is_waiting = run.stage == Stage::Waiting;
        run.is_ready().then_some(Self { is_waiting, write: run.write, first })
    }
}

impl Run {
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Hurried)
    }
}

impl DriveRuns {
    pub(super) fn insert(&mut self, lba: Lba, run: Run) {
        self.ready.extend(Turn::of(lba, &run));
        let before = self.map.insert(lba, run);
        assert!(before.is_none(), "VF1: {lba:?}");
    }

    pub(super) fn remove(&mut self, lba: Lba) -> Run {
        let run = self.map.remove(&lba).expect("the caller has found it");
        if let Some(turn) = Turn::of(lba, &run) {
            self.ready.remove(&turn);
        }
        run
    }

    /// The runs with sectors of an extent, by their first sectors.
    pub(super) fn over(&self, extent: Extent) -> Vec<Lba> {
        let ends_after =
            |(lba, run): &(&Lba, &Run)| **lba + Sectors::new(run.sectors.into()) > extent.lba;
        let found = self.map.range(..extent.end()).rev().take_while(ends_after);
        found.map(|(&lba, _)| lba).collect()
    }

    pub(super) fn at(&self, lba: Lba) -> Option<(Lba, &Run)> {
        let (&first, run) = self.map.range(..=lba).next_back()?;
        (lba < first + Sectors::new(run.sectors.into())).then_some((first, run))
    }
}
