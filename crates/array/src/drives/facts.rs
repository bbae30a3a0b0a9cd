//! What the array tells [`Drives`](super::Drives) of commands, and what it is told in return.

use levelhead_units::{DriveIdx, DriveSet, Extent, Instant};

use super::detect::DriveEvent;
use super::queue::End;
use crate::names::SubId;

/// Whether a command says something about how often commands are withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It may be withdrawn at the answer.
    Withdrawable,
    /// It will run.
    Certain,
    /// It will run, and reads with retries what was not given without them.
    Again,
}

/// A command that is to wait for its drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Push {
    pub(crate) drive: DriveIdx,
    pub(crate) sub: SubId,
    /// The sectors it is about; none for a flush, which moves no arm and does not count as an arrival at the drive.
    pub(crate) extent: Option<Extent>,
    pub(crate) end: End,
}

/// A command for sectors that its drive has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) drive: DriveIdx,
    pub(crate) enqueued: Instant,
    pub(crate) started: Instant,
    /// Commands that were inside the drive, this one included.
    pub(crate) inside: usize,
    /// What it was, if it read.
    pub(crate) read: Option<EndedRead>,
}

/// What a read says of its drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedRead {
    pub(crate) fate: Fate,
    pub(crate) reader: Reader,
    /// How many of its sectors were not given, if it was made without retries.
    pub(crate) unread: Option<usize>,
    pub(crate) sectors: u64,
}

/// What waits for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// An operation waits for it.
    Operation,
    /// No operation does: it only shows how the drive is.
    None,
}

/// What becomes of a command that left its drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    /// Commands that were inside the drive, this one included.
    pub(crate) inside: usize,
    /// The event, if the drive was silent until then.
    pub(crate) event: Option<DriveEvent>,
}

/// What a look for silent drives has found.
#[derive(Clone, Debug)]
pub(crate) struct Silenced {
    /// Drives that have just become silent.
    pub(crate) newly: DriveSet,
    pub(crate) events: Vec<DriveEvent>,
}
