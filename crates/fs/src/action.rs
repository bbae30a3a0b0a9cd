//! What a filesystem wants done, and what it tells.

use levelhead_block::{Request, RequestId};
use levelhead_units::Lba;

use crate::request::Answer;
use crate::status::Failure;

/// The name of a command to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubId(pub u64);

/// What a runtime is to do.
#[derive(Debug)]
pub enum Action {
    /// Hand this to the disk, and what becomes of it to [`handle_done`](crate::Filesystem::handle_done).
    Submit(Submit),
    /// A request has its answer.
    Reply {
        /// Which one.
        id: RequestId,
        /// The answer.
        answer: Answer,
    },
    /// Attributes of an inode have changed by a request whose answer does not show them: a write has taken the right to run as another
    /// user. One who caches attributes drops them before that request's answer, which comes later.
    Invalidate {
        /// The inode.
        inode: u64,
    },
    /// Something has happened that an operator may want to know.
    Event(Event),
}

/// A command to the disk.
#[derive(Debug)]
pub struct Submit {
    /// Its name.
    pub sub: SubId,
    /// The command, with its bytes.
    pub request: Request,
}

/// What may be worth to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A sector could not be read, or was wrong, and was written anew from what is redundant.
    Repaired {
        /// Where it lies.
        lba: Lba,
    },
    /// A sector of a file has failed right after it was written anew: what lies around it goes elsewhere.
    Worn {
        /// Where it lies.
        lba: Lba,
        /// Whose it is.
        inode: u64,
    },
    /// A sector of a file is lost.
    Lost {
        /// Where it lies.
        lba: Lba,
        /// Whose it is.
        inode: u64,
    },
    /// A sector of metadata is lost in all its copies.
    MetadataLost {
        /// The lead of the unit.
        lead: Lba,
    },
    /// What was written to a file has no room, or its metadata is lost: the last of it is not on the disk.
    NotWritten {
        /// The file.
        inode: u64,
    },
    /// A sector could not be written. Nothing is lost: what it should hold is elsewhere, or can be computed.
    Unwritable {
        /// Where it lies.
        lba: Lba,
    },
    /// Nothing is written any more, because the disk does not store what it should.
    ReadOnly {
        /// What it did not store.
        failure: Failure,
    },
}
