//! What an operation gives to the journal.

use levelhead_block::Place;
use levelhead_units::Instant;

use crate::ops::id::OpId;
use crate::shape::Cell;

/// A sector of a drive, and where its new bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) cell: Cell,
    pub(crate) place: Place,
}

/// What an operation wants to be written, for every codeword its sectors.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) op: OpId,
    /// Since when a client waits for it.
    pub(crate) since: Instant,
    pub(crate) codewords: Vec<Vec<Stored>>,
}
