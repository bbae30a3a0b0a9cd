//! The names of what is in progress: operations, and commands to drives.

/// An operation in progress: a read, a write, a flush or a resync. Numbered from 1.
pub(crate) type OpId = u64;

/// A command to one drive, named by the array. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubId(pub u64);
