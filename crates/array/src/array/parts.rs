//! Parts of the state of the machine: its operations, its clients, its end, and how it watches its drives.

use std::collections::{BTreeMap, VecDeque};

use levelhead_units::{DriveSet, Instant};

use super::Op;
use crate::core::in_progress::InProgress;
use crate::names::OpId;
use crate::ops::locks::StripeLocks;
use crate::ops::read::EndedReads;

/// What is in progress, and which stripes it holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Operations {
    pub(super) locks: StripeLocks,
    pub(super) ops: InProgress<OpId, Op>,
    pub(super) ended_reads: EndedReads,
    last: OpId,
    /// Operations that hold their stripes and have not begun, in order.
    pub(super) granted: VecDeque<OpId>,
    /// Operations that hold their stripes and wait until data may be written, or for the journal.
    pub(super) unopened: Vec<OpId>,
}

impl Operations {
    /// A name for an operation.
    pub(super) fn name(&mut self) -> OpId {
        self.last += 1;
        self.last
    }

    /// Data may be written, and the journal is ready: those that have waited for it begin.
    pub(super) fn open(&mut self) {
        self.granted.extend(self.unopened.drain(..));
    }
}

/// What clients wait for.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients {
    /// Requests that are not answered yet.
    pub(super) outstanding: usize,
    /// When operations that clients wait for came, where there is a limit to that.
    pub(super) arrived: BTreeMap<OpId, Instant>,
}

/// Whether the array is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Stop {
    #[default]
    No,
    Wanted,
    /// It has been said how it ended.
    Told,
}

/// How the array ends.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    pub(super) stop: Stop,
    /// When the array ends whether or not everything is safe.
    pub(super) by: Option<Instant>,
    /// When all requests that are still waiting are given up.
    pub(super) give_up_at: Option<Instant>,
}

/// How the array watches its drives.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    /// When it was last looked for drives that are silent or keep changes waiting.
    pub(super) looked: Instant,
    /// Until when no drive is declared unresponsive or failed for its silence (S5, S6).
    pub(super) spared_until: Instant,
    /// Drives that kept a write or a flush waiting then for as long as makes a drive lost.
    pub(super) kept_waiting: DriveSet,
}

impl Default for Watch {
    fn default() -> Self {
        let (looked, spared_until) = (Instant::ZERO, Instant::ZERO);
        Self { looked, spared_until, kept_waiting: DriveSet::EMPTY }
    }
}
