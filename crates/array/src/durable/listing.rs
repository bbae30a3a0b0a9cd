//! The list of damaged sectors while the array runs: what is on it, and what waits until the drives say so.
//!
//! # Invariants
//!
//! - Y1. A sector that is on the list is not given to a client, and not computed.
//! - Y2. A write that takes a sector off the list is durable before the list says so, and answered after.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_units::{DriveIdx, Extent, Sectors};

use super::damaged::{DamagedList, DamagedRange};
use crate::event::{ArrayEvent, Event};
use crate::ops::id::OpId;
use crate::shape::Cell;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Damaged {
    /// As it is now.
    list: DamagedList,
    keeping: Keeping,
    /// Operations that go on once a generation is safe.
    waiting: BTreeMap<OpId, u64>,
    /// Ranges of which it was told that they were read.
    told: BTreeSet<DamagedRange>,
}

/// What the drives have of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeping {
    /// They have no place for it, or the array has failed: nothing waits for them.
    No,
    Yes {
        /// The last generation that was begun.
        generation: u64,
        /// Whether the list has changed since.
        is_changed: bool,
        /// The last generation that is safe.
        safe: u64,
    },
}

/// How many sectors are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedSummary {
    /// Sectors on the list.
    pub sectors: Sectors,
    /// Ranges that they lie in.
    pub ranges: usize,
    /// Whether the list was full once, and covers sectors that were not damaged.
    pub is_widened: bool,
    /// Whether the drives have a place for it.
    pub is_kept: bool,
}

impl Damaged {
    /// The list that was found, of this generation, on enough drives or on too few; nothing where the drives have no place for
    /// one. Until it is on enough of them nothing counts that relies on it.
    pub(crate) fn new(list: DamagedList, generation: Option<u64>, is_safe: bool) -> Self {
        let keeping = match generation {
            None => Keeping::No,
            Some(generation) => {
                let safe = if is_safe { generation } else { generation.saturating_sub(1) };
                Keeping::Yes { generation, is_changed: false, safe }
            }
        };
        Self { list, keeping, waiting: BTreeMap::new(), told: BTreeSet::new() }
    }

    /// The list as it is now.
    pub(crate) fn list(&self) -> &DamagedList {
        &self.list
    }

    pub(crate) fn summary(&self) -> DamagedSummary {
        DamagedSummary {
            sectors: self.list.sectors(),
            ranges: self.list.ranges().count(),
            is_widened: self.list.is_widened(),
            is_kept: self.keeping != Keeping::No,
        }
    }

    /// Whether a sector is damaged.
    pub(crate) fn covers(&self, cell: Cell) -> bool {
        !self.list.is_empty() && self.list.covers(cell)
    }

    /// Sectors are damaged from now on. That is safe once [`Damaged::is_safe`] says so. Redundancy must count those of
    /// them that hold data as zeroes. Returns what is to be told of it.
    pub(crate) fn add(&mut self, drive: DriveIdx, extent: Extent) -> Option<Event> {
        if !self.list.add(drive, extent) {
            return None;
        }
        self.note_change();
        Some(Event::Array(ArrayEvent::Damaged { drive, extent }))
    }

    /// These sectors were written by an operation, durably. Returns whether the operation may go on: else it is
    /// advanced once the list on the drives says so (Y2).
    pub(crate) fn clear(&mut self, op: OpId, cells: impl Iterator<Item = Cell>) -> bool {
        if !self.waiting.contains_key(&op) {
            self.take_off(cells);
        }
        self.wait(op)
    }

    /// These sectors were written, for good; returns whether one of them was on the list. That is safe once
    /// [`Damaged::is_safe`] says so, or [`Damaged::says`] of the generation that is due.
    pub(crate) fn take_off(&mut self, cells: impl IntoIterator<Item = Cell>) -> bool {
        let mut is_changed = false;
        for cell in cells {
            is_changed |= self.list.remove(cell);
        }
        if is_changed {
            self.note_change();
        }
        is_changed
    }

    /// The generation that says all that was changed up to now; 0 if that is safe.
    pub(crate) fn due(&self) -> u64 {
        match self.keeping {
            Keeping::Yes { generation, is_changed, .. } if !self.is_safe() => {
                generation + u64::from(is_changed)
            }
            Keeping::Yes { .. } | Keeping::No => 0,
        }
    }

    /// Whether this generation is on the drives for good, or will never be.
    pub(crate) fn says(&self, due: u64) -> bool {
        match self.keeping {
            Keeping::No => true,
            Keeping::Yes { safe, .. } => due <= safe,
        }
    }

    /// Returns whether all changes are on the drives for good: else the operation is advanced once those up to now
    /// are.
    pub(crate) fn wait(&mut self, op: OpId) -> bool {
        let Keeping::Yes { generation, is_changed, safe } = self.keeping else { return true };
        if let Some(waited) = self.waiting.get(&op) {
            return *waited <= safe;
        }
        if self.is_safe() {
            return true;
        }
        self.waiting.insert(op, generation + u64::from(is_changed));
        false
    }

    /// Whether what was changed is on the drives for good, or will never be.
    pub(crate) fn is_safe(&self) -> bool {
        match self.keeping {
            Keeping::No => true,
            Keeping::Yes { generation, is_changed, safe } => !is_changed && safe == generation,
        }
    }

    /// Whether a change waits to be written.
    pub(crate) fn is_changed(&self) -> bool {
        matches!(self.keeping, Keeping::Yes { is_changed: true, .. })
    }

    /// The last generation that was begun, if the drives have a place for the list.
    pub(crate) fn generation(&self) -> Option<u64> {
        match self.keeping {
            Keeping::No => None,
            Keeping::Yes { generation, .. } => Some(generation),
        }
    }

    /// A range was read that a client did not get; returns what is to be told of it.
    pub(crate) fn note_read(&mut self, cell: Cell) -> Option<Event> {
        let range = self.list.range_at(cell)?;
        let DamagedRange { drive, extent } = range;
        let is_new = self.told.insert(range);
        is_new.then_some(Event::Array(ArrayEvent::DamagedRead { drive, extent }))
    }

    /// The changes up to now are being written. Returns their generation.
    pub(crate) fn begin(&mut self) -> u64 {
        let Keeping::Yes { generation, is_changed, .. } = &mut self.keeping else {
            unreachable!("the drives have no place for the list")
        };
        *generation += 1;
        *is_changed = false;
        *generation
    }

    /// The last generation that was begun is on enough drives.
    pub(crate) fn note_safe(&mut self) {
        if let Keeping::Yes { generation, safe, .. } = &mut self.keeping {
            *safe = *generation;
        }
    }

    /// The array has failed: nothing will be written any more.
    pub(crate) fn note_failed(&mut self) {
        self.keeping = Keeping::No;
    }

    /// Operations that may go on.
    pub(crate) fn take_ready(&mut self) -> Vec<OpId> {
        let limit = match self.keeping {
            Keeping::No => u64::MAX,
            Keeping::Yes { safe, .. } => safe,
        };
        let ready = self.waiting.iter().filter(|(_, generation)| **generation <= limit);
        ready.map(|(&op, _)| op).collect()
    }

    /// An operation has gone on.
    pub(crate) fn forget(&mut self, op: OpId) {
        self.waiting.remove(&op);
    }

    /// Whether an operation waits.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn note_change(&mut self) {
        if let Keeping::Yes { is_changed, .. } = &mut self.keeping {
            *is_changed = true;
        }
    }
}
