//! The bytes for which state machines use names only: every runtime of an array or of a modelled drive keeps
//! them in the same way, with a real clock or with a virtual one.
//!
//! ```text
//!   array:  BufId, Combine, Segment ..  --->  Buffers   names -> bytes
//!   drive:  Completion { outcome, silent }  --->  Platter   [ waiting sectors ] over a Storage
//! ```
//!
//! - [`Buffers`]: lends, shares, combines.
//! - [`Platter`]: ends requests as a modelled drive says, over any [`Storage`].
//! - [`Unwritten`]: what the drive has taken and the medium does not have.
//! - [`spoil`]: what was not read cannot be used.
//!
//! Nothing here decides anything, sees a clock, or knows why a drive failed.

#![forbid(unsafe_code)]

mod buffers;
mod held;
mod platter;
mod storage;
mod unwritten;

pub use buffers::Buffers;
pub use platter::{Caching, Ended, Failed, Platter};
pub use storage::Storage;
pub use unwritten::{Fate, Unwritten};

use levelhead_block::{Buf, SectorSet};

/// Fills memory that holds no data.
pub const GARBAGE: u8 = 0xEE;

/// Overwrites sectors that were not read.
pub fn spoil(buf: &mut Buf, sectors: &SectorSet) {
    for offset in sectors.iter() {
        buf.part_mut(offset as usize, 1).fill(GARBAGE);
    }
}
