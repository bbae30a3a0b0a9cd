//! What a modelled drive does to the bytes otherwise than its outcome says.
//!
//! A drive that lies, loses or mistakes a place says nothing of it, so nothing of it is in an [`Outcome`].
//! The model knows, and tells the runtime that keeps the bytes; no client is ever told.
//!
//! [`Outcome`]: crate::Outcome

use levelhead_units::Lba;

use crate::SectorSet;

/// The silent failure of one command that has ended well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Silent {
    /// None: everything is as the outcome says.
    #[default]
    Nothing,
    /// Of a read: bits of the medium have changed since the sectors were stored.
    Read {
        /// Those bits. What is in the drive's memory is as it was written.
        flips: Vec<Flip>,
    },
    /// Of a write: what reaches the medium is not what was asked for. Until then, where the drive has
    /// memory, reads give what was written.
    Write(Box<SilentWrite>),
    /// Of a flush: what was in the drive's memory is there still, and nowhere else.
    Flush,
}

/// What is silently wrong with a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SilentWrite {
    /// Sectors that never reach the medium.
    pub missing: SectorSet,
    /// Where the write lands, from its first sector on, if not where it was wanted.
    pub landed: Option<Lba>,
    /// Bits that change on the way. Those of missing sectors mean nothing.
    pub flips: Vec<Flip>,
}

/// One bit that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// In which sector of the command.
    pub offset: u32,
    /// Which bit of the sector: bit `bit % 8`, from the lowest on, of byte `bit / 8`.
    pub bit: u16,
}

impl Flip {
    /// Changes the bit in the bytes of its sector.
    ///
    /// Panics if they are too few.
    pub fn apply(&self, sector: &mut [u8]) {
        sector[usize::from(self.bit / 8)] ^= 1 << (self.bit % 8);
    }
}
