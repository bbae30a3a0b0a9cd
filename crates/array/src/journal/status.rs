//! What people are told of a journal.

/// What a journal has at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalStatus {
    /// Whether the array is still putting in place what it had when it was cut off; it serves nothing until then.
    pub is_recovering: bool,
    /// Transactions that are not over.
    pub open: usize,
    /// Sectors that are safe in the journal and not in their places.
    pub unplaced: usize,
}
