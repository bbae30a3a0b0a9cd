//! A member that is open, wherever it is, before its array is served: each call waits.

use std::io;
use std::sync::Arc;

use levelhead_units::{Lba, Sectors};

use crate::far::Far;
use crate::medium::Medium;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum Opened {
    /// A file or device of this machine.
    Medium(Arc<Medium>),
    /// Something that was handed in.
    Far(Far),
}

impl Opened {
    /// How many whole sectors it has.
    pub(crate) fn size(&self) -> Sectors {
        match self {
            Self::Medium(medium) => medium.size(),
            Self::Far(far) => far.size(),
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
