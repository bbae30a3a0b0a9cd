//! The name of an operation.

/// An operation in progress: a read, a write, a flush or a resync. Numbered from 1.
pub(crate) type OpId = u64;
