//! Requests that are under way.

use levelhead_fs::{Allocation, What};

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

/// A request in a few words.
pub(super) fn short(what: &What) -> String {
    match what {
        What::Write { inode, offset, bytes, appends } => match appends {
            true => format!("append {} bytes to {inode}", bytes.len()),
            false => format!("write {} bytes from {offset} on to {inode}", bytes.len()),
        },
        What::SetExtended { inode, name, value, .. } => {
            let name = String::from_utf8_lossy(name);
            format!("set {name} of {inode} to {} bytes", value.len())
        }
        What::MakeLink { name, target } => {
            format!("a link {} of {} bytes", String::from_utf8_lossy(&name.name), target.len())
        }
        other => format!("{other:?}"),
    }
}
