//! Requests that are under way.

use levelhead_fs::Allocation;

use super::model::Mark;
use super::names::{At, Change, Id};
use super::op::Range;

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) what: About,
    /// Files and directories that it names.
    pub(crate) uses: Vec<Id>,
}

/// What it is about.
#[derive(Debug)]
pub(crate) enum About {
    Change(Change),
    Open(At),
    Write { id: Id, range: Range, stamp: u64, appends: bool },
    Truncate { id: Id, size: u64 },
    Allocate { id: Id, range: Range, how: Allocation },
    Read { id: Id, range: Range, mark: usize },
    Sync(Mark),
}
