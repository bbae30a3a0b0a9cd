//! What jobs are.

use std::collections::BTreeMap;

use levelhead_block::{Piece, RequestId};
use levelhead_units::Lba;

use crate::format::inode::Moment;
use crate::ops::extents::Pages;
use crate::request::Request;

/// The name of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobId(pub(super) u64);

/// What is to be done.
#[derive(Debug)]
pub(super) enum Job {
    Request(Box<Asking>),
    /// Brings what was written to a file into a transaction.
    Flush {
        inode: u64,
    },
    /// Brings a coding extent's sectors to their places.
    Place(Lba),
    /// Notes what is redundant in one that was placed.
    Placed(Lba),
    /// Makes what was written durable.
    Sync(Syncing),
    /// Empties and frees an inode without names, or what is beyond the end of one.
    Orphan {
        inode: u64,
    },
    /// Reads pages of a file before they are asked for.
    Ahead {
        inode: u64,
        pages: Pages,
    },
    /// Gives some pages of a file the places that its kind has.
    Rewrite(RewrittenPart),
    /// A step of a scrub.
    Scrub,
    /// Puts a file on the list of damaged ones.
    Damaged {
        inode: u64,
    },
    /// Finds inodes without names that a crash has left.
    FindOrphans {
        from: u64,
    },
}

/// A part of a file that is being rewritten.
#[derive(Clone, Copy, Debug)]
pub(super) struct RewrittenPart {
    pub(super) inode: u64,
    pub(super) pages: Pages,
    /// The version of the file's content that is read.
    pub(super) version: u64,
}

/// A request and what was read for it.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) request: Request,
    /// Pages that were read for it, and what of the file they are of: it is void if that has been written to since.
    pub(super) pages: BTreeMap<u64, Piece>,
    pub(super) version: u64,
    /// Of a write the version of the file's content of which everything behind the end is zero.
    pub(super) tail_of: u64,
    /// How far a request is that takes several steps.
    pub(super) step: u8,
    /// Whether a read was taken into account for what is read ahead.
    pub(super) is_noted: bool,
    /// Whether there was room for an allocation when it began.
    pub(super) had_room: bool,
}

impl Asking {
    pub(super) fn new(request: Request) -> Self {
        let (pages, version, tail_of) = Default::default();
        Self { request, pages, version, tail_of, step: 0, is_noted: false, had_room: false }
    }
}

/// What becomes durable for whom.
#[derive(Debug)]
pub(super) struct Syncing {
    pub(super) inode: Option<u64>,
    pub(super) then: Then,
    pub(super) step: SyncStep,
    /// Files that are still on their way into a transaction.
    pub(super) left: usize,
}

/// What happens then.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    Reply(RequestId),
    Wake(JobId),
    /// It was time: no one waits for it.
    Nothing,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncStep {
    /// What is in memory comes into a transaction.
    Pages,
    /// That becomes durable.
    Record,
    Done,
}

/// Bytes of a page.
pub(super) const PAGE: u64 = levelhead_units::SECTOR_SIZE as u64;

/// The later of two moments.
pub(super) fn later(one: Moment, other: Moment) -> Moment {
    one.max(other)
}
