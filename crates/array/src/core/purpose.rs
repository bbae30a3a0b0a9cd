//! What a command to a drive is for.

use crate::names::OpId;

/// What a command to a drive is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An operation waits for its end.
    Op(OpId),
    /// It shows how fast a drive is that no operation reads.
    Probe,
    /// It writes or reads back a superblock or the metadata, or flushes a drive for that; its address is the drive's own.
    Meta,
    /// It writes or reads a ring of the journal; its address is the drive's own.
    Ring,
    /// It brings what the journal holds to its place.
    Place,
    /// It makes safe what was copied to a drive that is being filled.
    Fill,
    /// It reads what another drive is given a copy of.
    Copy,
    /// It reads back what was written.
    Verify,
    /// It reads or writes a tag sector; its address is the drive's own.
    Tag,
    /// An operation reads from a ring what the journal had of it; its address is the drive's own.
    Recall(OpId),
    /// The operation that asked for it does not wait for it any more.
    Abandoned,
}

impl Purpose {
    /// Whether something waits for it: the array's own work always does, an operation if `waits` returns true for it.
    pub(crate) fn is_awaited(self, waits: impl Fn(&OpId) -> bool) -> bool {
        match self {
            Self::Op(op) | Self::Recall(op) => waits(&op),
            Self::Meta
            | Self::Ring
            | Self::Place
            | Self::Fill
            | Self::Copy
            | Self::Verify
            | Self::Tag => true,
            Self::Probe | Self::Abandoned => false,
        }
    }

    /// Whether a drive that does not end it is done without in the end. One that is copied may take its time with that, and any
    /// with what only checks it, as with reads of clients.
    pub(super) fn costs_the_drive(self, waits: impl Fn(&OpId) -> bool) -> bool {
        !matches!(self, Self::Copy | Self::Verify) && self.is_awaited(waits)
    }
}
