//! A member that is open, wherever it is, before its array is served: each call waits.

use std::io;
use std::sync::Arc;

use levelhead_units::{Lba, Sectors};

use crate::far::Far;
use crate::medium::{Medium, Thin};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum Opened {
    /// A file or device of this machine.
    Medium(Arc<Medium>),
    /// Something that was handed in.
    Far(Far),
}

impl Opened {
    /// Whether another machine can reach it as well.
    pub(crate) fn is_in_reach(&self) -> bool {
        match self {
            Self::Medium(medium) => medium.is_far(),
            Self::Far(_) => true,
        }
    }

    /// How many whole sectors it has.
    pub(crate) fn size(&self) -> Sectors {
        match self {
            Self::Medium(medium) => medium.size(),
            Self::Far(far) => far.size(),
        }
    }

    /// How many bytes it has: it need not end with a whole sector.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Medium(medium) => medium.bytes(),
            Self::Far(far) => far.size().bytes().get(),
        }
    }

    /// What a file may take beyond the room that it has.
    pub(crate) fn thin(&self) -> Option<Thin> {
        match self {
            Self::Medium(medium) => medium.thin(),
            Self::Far(_) => None,
        }
    }

    /// The bytes behind its last whole sector.
    pub(crate) fn read_rest(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Medium(medium) => medium.read_rest(),
            Self::Far(_) => Ok(Vec::new()),
        }
    }

    /// Stores the bytes behind its last whole sector.
    pub(crate) fn write_rest(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Medium(medium) => medium.write_rest(bytes),
            Self::Far(_) => Ok(()),
        }
    }

    /// Has the kernel look for partitions again, of which it keeps devices until then.
    pub(crate) fn forget_partitions(&self) {
        match self {
            Self::Medium(medium) => medium.forget_partitions(),
            Self::Far(_) => {}
        }
    }

    /// Whether a crash leaves every sector of 4 KiB as it was or as it was written, as far as is known.
    pub(crate) fn writes_whole_sectors(&self) -> bool {
        match self {
            Self::Medium(medium) => medium.writes_whole_sectors(),
            Self::Far(_) => false,
        }
    }

    /// Fills `bytes` from sector `lba` on. The memory is aligned to a sector.
    pub(crate) fn read(&self, lba: Lba, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Medium(medium) => medium.read(lba, bytes),
            Self::Far(far) => far.read(lba, bytes),
        }
    }

    /// Stores `bytes` from sector `lba` on. The memory is aligned to a sector.
    pub(crate) fn write(&self, lba: Lba, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Medium(medium) => medium.write(lba, bytes),
            Self::Far(far) => far.write(lba, bytes),
        }
    }

    /// Puts everything written so far where a power failure does not reach it.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self {
            Self::Medium(medium) => medium.sync(),
            Self::Far(far) => far.sync(),
        }
    }
}

impl From<Medium> for Opened {
    fn from(medium: Medium) -> Self {
        Self::Medium(Arc::new(medium))
    }
}
