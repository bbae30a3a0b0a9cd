//! Whether a drive has stored what the array records of itself.

/// What became of a record that a drive was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is there: it was read back.
    Yes,
    /// It is not there, however often it was written. The drive is kept because the array needs it.
    No,
}
