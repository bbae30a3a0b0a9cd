//! A drive in its place in a world.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_array::{SubId, Submit};
use levelhead_drive::{Drive, Profile};
use levelhead_units::Instant;

/// What drives are made like.
#[derive(Clone, Debug)]
pub(super) struct Makes {
    pub(super) profile: Arc<Profile>,
    pub(super) drives: Vec<levelhead_drive::Settings>,
}

/// A drive in its place, with what it is working on.
#[derive(Debug)]
pub(crate) struct Bay {
    pub(crate) drive: Drive,
    pub(crate) inside: BTreeMap<SubId, Submit>,
    /// Whether commands reach it.
    pub(crate) is_connected: bool,
    /// Whether it ends nothing.
    pub(crate) hangs: bool,
    /// The array is told of the commands that it has ended no sooner than this.
    pub(super) stalls_until: Instant,
    /// Until this time its machine has no room for writes and flushes, and refuses them.
    pub(super) refuses_until: Instant,
    /// Commands that were refused, and that the array has not been told of.
    pub(super) refused: Vec<SubId>,
    /// The wake-up that is in the event queue already.
    pub(super) wake: Option<Instant>,
}

impl Bay {
    pub(super) fn new(drive: Drive) -> Self {
        Self {
            drive,
            inside: BTreeMap::new(),
            is_connected: true,
            hangs: false,
            stalls_until: Instant::ZERO,
            refuses_until: Instant::ZERO,
            refused: Vec::new(),
            wake: None,
        }
    }

    /// The array that asked for the commands inside has ended.
    pub(super) fn forget(&mut self) {
        while self.drive.poll().is_some() {}
        while self.drive.poll_aftermath().is_some() {}
        self.inside.clear();
        self.refused.clear();
        (self.stalls_until, self.refuses_until) = (Instant::ZERO, Instant::ZERO);
    }
}
