//! The checksums of sectors at rest: where they are kept, what is read with them, and when they are written.
//!
//! ```text
//!   a write in place ends --> in memory --> on the list of its drive ---> in its tag sector
//!                                             |        when the drive is idle, or the list is full
//!                       a transaction is over only then (TG2)
//!
//!   a read --> its sectors, and the tag sectors that are not in memory --> compared --> its operation
//! ```
//!
//! A *tag sector* has the checksum, CRC-32C, of each of the at most 64 sectors of its group, and names the array, the drive's slot
//! and the group, so that one that lies in the wrong place proves nothing. It is written after the sectors that it is for, by a
//! command of its own, so that a drive which loses one write does not lose both; only long writes have it with them (TG8). What was
//! written over and over is written there once: until then the *list* of its drive has it, which is written as a whole now and then.
//!
//! # Invariants
//!
//! - TG1. What a read of an operation brings of a stripe with valid redundancy has its checksum, or counts as damaged. The checksum
//!   is, in this order, that of the last write in place, and that in the tag sector.
//! - TG2. Until the tag sector or the list of the drive says what was written in place, the journal has it: its transaction is not
//!   over, and a recovery writes both again.
//! - TG3. A tag sector is written from what memory has, which has all that it says, over one that was read and passed its
//!   checks. Of sectors that nothing says a checksum of it says that there is none.
//! - TG4. One write of a tag sector is under way at a time.
//! - TG5. The checksums of a group stay in memory while it is read, so that what a read brings is compared with what it was written
//!   with.
//! - TG6. A tag sector says which durable list was the newest when it was written, and none is written while a list is: what that one
//!   and those before it say of its group is older. Each entry of a list says which list said it first. Where the tag sector is not given, no entry counts.
//! - TG7. A list says all that the one before says and no tag sector does: it takes the place of that.
//! - TG8. A long write that the journal has announced has the tag sectors with it, in the same command, of the groups of which memory
//!   has all other checksums. As a drive that loses such a command loses both, the tag sector is read back when the drive is idle. What
//!   it writes is safe after a flush, and once that was done or the list has a checksum of the tag sector; until it is done, or too
//!   many are to be, memory and lists keep that. A tag sector with another one that names no such list counts as not there.
//! - TG9. An entry of a list that does not count is kept while the tag sector says nothing of its sector, with the number 0 on later
//!   lists: what has that checksum was not written since, and is right. What has another one has none (F5).

pub(crate) mod carried;
pub(crate) mod known;
pub(crate) mod list;
pub(crate) mod listing;
pub(crate) mod sector;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use std::ops::Range;

use levelhead_block::{BufId, Place};
use levelhead_units::SECTOR_SIZE;

use self::sector::TagSector;

/// A tag sector that a read brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTag {
    /// The group that it is for.
    pub group: u64,
    /// Where it is.
    pub place: Place,
}

/// A tag sector that is written with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagAlong {
    /// Where it goes: one sector.
    pub into: Place,
    /// What it says, but for the sectors that are written.
    pub(crate) tag: TagSector,
    /// Which of the checksums are of its group, and which sector of the group the first of these is.
    pub(crate) of: Range<usize>,
    pub(crate) first: usize,
}

impl TagAlong {
    /// Its bytes, with these checksums of what is written.
    ///
    /// Panics if they are not as many as there are sectors.
    pub fn encode(&self, sums: &[u32]) -> [u8; SECTOR_SIZE] {
        let mut tag = self.tag.clone();
        for (at, sum) in (self.first..).zip(&sums[self.of.clone()]) {
            tag.sums.set(at, *sum);
        }
        tag.encode()
    }
}

/// The tag sectors that are in buffers of which `bytes` gives the bytes, each with the group that it was read for.
pub fn tags_in<'a>(
    of: &[ReadTag],
    bytes: impl Fn(BufId) -> &'a [u8],
) -> Vec<(u64, Option<TagSector>)> {
    let found = |&ReadTag { group, place }: &ReadTag| {
        let at = place.sector as usize * SECTOR_SIZE;
        (group, TagSector::decode(&bytes(place.buf)[at..][..SECTOR_SIZE]))
    };
    of.iter().map(found).collect()
}
