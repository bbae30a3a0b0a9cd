//! What a modelled drive does to the bytes otherwise than its outcome says.
//!
//! A drive that lies, loses or mistakes a place says nothing of it, so nothing of it is in an [`Outcome`].
//! The model knows, and tells the runtime that keeps the bytes; no client is ever told.
//!
//! [`Outcome`]: crate::Outcome

use levelhead_units::{Extent, Lba};

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

/// What has become of a write after its end, on a device that reads back what it has written: of sectors that are not on
/// the medium as they were meant to be. No client is told; a runtime that keeps the bytes has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aftermath {
    /// The name that the write's command had inside the device.
    pub id: u64,
    /// The sectors, all of that command's.
    pub extent: Extent,
    /// What has become of them.
    pub what: What,
}

/// See [`Aftermath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Another write has landed on them. The device has their bytes still.
    Overwritten,
    /// The device has written them again, with this silently wrong or nothing.
    WrittenAgain(Silent),
    /// The device has their bytes no more: reads give what the medium has.
    LetGo,
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
