//! What an operation gives to the journal.

use levelhead_block::{Durability, Place};
use levelhead_units::Instant;

use crate::meta::membership::Generation;
use crate::names::OpId;
use crate::shape::{Cell, Row};

/// A sector of a drive, and where its new bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) cell: Cell,
    pub(crate) place: Place,
}

/// How much of the data of a codeword changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    All,
    Part,
}

/// What changes of a codeword.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    pub(crate) row: Row,
    pub(crate) coverage: Coverage,
    /// In the order of its symbols.
    pub(crate) cells: Vec<Stored>,
    /// Data on the list of damaged sectors that clients write and no drive takes: redundancy counts it from now on.
    pub(crate) absent: Vec<Stored>,
}

/// What an operation wants to be written.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) op: OpId,
    /// Since when a client waits for it.
    pub(crate) since: Instant,
    /// The generation that says what drives miss of it, none if that is committed.
    pub(crate) recorded: Generation,
    /// In the order of the codewords.
    pub(crate) codewords: Vec<Changed>,
}

/// What has become of what the journal was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logged {
    NotYet,
    /// It will outlast a crash.
    Committed,
    /// The array has failed before.
    Never,
}

/// An operation has written in place what the journal has only announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPlace {
    pub(crate) op: OpId,
    pub(crate) durability: Durability,
}
