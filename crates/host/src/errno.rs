//! What an error of the machine means for a drive: the one table of it.
//!
//! | the machine says | a read | a write | a sync |
//! |---|---|---|---|
//! | it was interrupted, or try again | again | again | again |
//! | no room now: space, quota, largest file, memory, descriptors, busy | refused | refused | gone |
//! | it was cancelled before it began: the ring has no thread for it (`ECANCELED`) | refused | refused | refused |
//! | not permitted: a device that was set read-only, for example | refused | refused | gone |
//! | no such device | gone | gone | gone |
//! | anything else | these sectors failed | these sectors failed | gone |
//!
//! The first four rows are errors of the host: they say nothing of the drive, and cost it nothing. That a file system takes
//! no writes any more (`EROFS`) is none of them: it was writable when the member was opened, and as long as files are open
//! there, it is a file system that has failed itself, as ext4 does when its disk has.
//!
//! A sync that fails is never sent again: the kernel tells an error of an earlier write once, and
//! forgets it. After that it is not known which of the writes before it are there, and a second sync
//! that succeeds says nothing about them. So the drive cannot be believed any more.
//!
//! What a failed read says about its sectors depends on its effort. With less than full effort none is
//! ever called damaged: a drive that was told to stop (`ETIME`, where it has command duration limits)
//! has, and one that could not be told has tried as it always does.

use std::{error, fmt, io};

use levelhead_block::{Outcome, SectorSet};
use levelhead_units::Extent;
use rustix::io::Errno;

/// How often a step is started again that the machine wants to be tried again.
pub(crate) const AGAIN_MAX: u32 = 8;

/// What a drive was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Read,
    Write,
    Sync,
}

/// What an error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing has happened yet: start it again, at most [`AGAIN_MAX`] times.
    Again,
    /// [`Outcome::Refused`].
    Refused,
    /// [`Outcome::Gone`].
    Gone,
    /// The sectors could not be read or written.
    Failed,
}

/// One row of the table.
struct Row {
    errnos: &'static [Errno],
    read: Meaning,
    write: Meaning,
    sync: Meaning,
}

const TABLE: [Row; 4] = [
    Row {
        errnos: &[Errno::INTR, Errno::AGAIN],
        read: Meaning::Again,
        write: Meaning::Again,
        sync: Meaning::Again,
    },
    Row {
        errnos: &[
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::FBIG,
            Errno::NOMEM,
            Errno::NOBUFS,
            Errno::MFILE,
            Errno::NFILE,
            Errno::BUSY,
            Errno::PERM,
            Errno::ACCESS,
        ],
        read: Meaning::Refused,
        write: Meaning::Refused,
        sync: Meaning::Gone,
    },
    // This program cancels nothing: the kernel does, where no worker of the ring can be started, and then nothing was begun.
    Row {
        errnos: &[Errno::CANCELED],
        read: Meaning::Refused,
        write: Meaning::Refused,
        sync: Meaning::Refused,
    },
    Row {
        errnos: &[Errno::NXIO, Errno::NODEV],
        read: Meaning::Gone,
        write: Meaning::Gone,
        sync: Meaning::Gone,
    },
];

/// Errors that are in no row.
const OTHERS: Row =
    Row { errnos: &[], read: Meaning::Failed, write: Meaning::Failed, sync: Meaning::Gone };

/// What `error` means to a drive that was `doing` that.
pub(crate) fn meaning(doing: Doing, error: &io::Error) -> Meaning {
    // Not from the machine: the file has become shorter, see `Medium`.
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return Meaning::Gone;
    }
    if let Some(inner) = error.get_ref()
        && inner.is::<SyncFailed>()
    {
        return Meaning::Gone;
    }
    let errno = error.raw_os_error();
    let is_meant = |row: &&Row| row.errnos.iter().any(|row| errno == Some(row.raw_os_error()));
    let row = TABLE.iter().find(is_meant).unwrap_or(&OTHERS);
    match doing {
        Doing::Read => row.read,
        Doing::Write => row.write,
        Doing::Sync => row.sync,
    }
}

/// Why the sync failed that makes a write durable: an error of a sync, though a write was asked for.
#[derive(Debug)]
pub(crate) struct SyncFailed(pub(crate) io::Error);

impl fmt::Display for SyncFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl error::Error for SyncFailed {}

/// The outcome of a write that ended with `error`: none of it counts as written.
pub(crate) fn failed_write(extent: Extent, error: &io::Error) -> Outcome {
    match meaning(Doing::Write, error) {
        Meaning::Again | Meaning::Refused => Outcome::Refused,
        Meaning::Gone => Outcome::Gone,
        Meaning::Failed => {
            Outcome::Done { unknown: SectorSet::EMPTY, damaged: SectorSet::first(extent.sectors) }
        }
    }
}
