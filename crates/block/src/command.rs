//! Commands, efforts and outcomes.

use levelhead_units::{Extent, Lba, Nanos, SECTOR_SIZE, Sectors};

/// How hard a device should try to read before it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// One pass, then give up: redundancy is cheaper than retries.
    Fast,
    /// Retry for at most this time.
    Limited(Nanos),
    /// Retry as the device sees fit.
    Full,
    /// The same, and from the medium: what the device has in its memory of these sectors answers no part of the
    /// read, and what waits there for the medium is written first. A device that cannot do so reads them like
    /// any others.
    Medium,
}

impl Effort {
    /// Whether the device tries everything it has.
    pub const fn is_full(self) -> bool {
        match self {
            Self::Fast | Self::Limited(_) => false,
            Self::Full | Self::Medium => true,
        }
    }
}

/// When a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The device has it; a power cut before the next flush may lose it.
    Cached,
    /// It is on the medium (FUA).
    Durable,
}

/// How many bytes at the end of every written sector are zero (zero forcing). A drive that knows
/// decodes such a sector more reliably.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZeroTail {
    /// Nothing is known about the sectors' last bytes.
    None,
    /// The last 256 bytes.
    B256,
    /// The last 512 bytes.
    B512,
}

impl ZeroTail {
    /// What all of these sectors end in: the least of them.
    ///
    /// Panics if `bytes` are no whole sectors.
    pub fn of(bytes: &[u8]) -> Self {
        let (sectors, rest) = bytes.as_chunks::<SECTOR_SIZE>();
        assert!(rest.is_empty(), "whole sectors, not {} bytes", bytes.len());
        let ends_in = |zeroes: usize| {
            sectors
                .iter()
                .all(|sector| sector[SECTOR_SIZE - zeroes..].iter().all(|byte| *byte == 0))
        };
        if ends_in(512) {
            Self::B512
        } else if ends_in(256) {
            Self::B256
        } else {
            Self::None
        }
    }
}

/// What a device is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Fetch sectors.
    Read {
        /// Which.
        extent: Extent,
        /// How hard to try.
        effort: Effort,
    },
    /// Store sectors.
    Write {
        /// Where.
        extent: Extent,
        /// When it counts as done.
        durability: Durability,
        /// What is known of the sectors' ends.
        zero_tail: ZeroTail,
    },
    /// Store zeroes without sending them.
    WriteZeroes {
        /// Where.
        extent: Extent,
        /// When it counts as done.
        durability: Durability,
    },
    /// The content is no longer needed. What a later read gives is not defined, but it is some
    /// value and stays the same until the next write.
    Trim {
        /// Where.
        extent: Extent,
    },
    /// Put every write answered so far on the medium.
    Flush,
}

impl Command {
    /// The sectors it is about, if it is about any.
    pub fn extent(&self) -> Option<Extent> {
        match *self {
            Self::Read { extent, .. }
            | Self::Write { extent, .. }
            | Self::WriteZeroes { extent, .. }
            | Self::Trim { extent } => Some(extent),
            Self::Flush => None,
        }
    }

    /// How many sectors of bytes travel with it, to the device or back.
    pub fn payload(&self) -> Sectors {
        match self {
            Self::Read { extent, .. } | Self::Write { extent, .. } => extent.sectors,
            Self::WriteZeroes { .. } | Self::Trim { .. } | Self::Flush => Sectors::ZERO,
        }
    }

    /// The same command for as many sectors from `lba` on.
    #[must_use]
    pub fn at(self, lba: Lba) -> Self {
        let there = |extent: Extent| Extent::new(lba, extent.sectors);
        match self {
            Self::Read { extent, effort } => Self::Read { extent: there(extent), effort },
            Self::Write { extent, durability, zero_tail } => {
                Self::Write { extent: there(extent), durability, zero_tail }
            }
            Self::WriteZeroes { extent, durability } => {
                Self::WriteZeroes { extent: there(extent), durability }
            }
            Self::Trim { extent } => Self::Trim { extent: there(extent) },
            Self::Flush => Self::Flush,
        }
    }

    /// Whether its extent lies on a device of `size` sectors.
    pub fn fits(&self, size: Sectors) -> bool {
        self.extent().is_none_or(|extent| extent.fits(size))
    }

    /// Whether it changes what later reads give.
    pub fn is_write(&self) -> bool {
        match self {
            Self::Write { .. } | Self::WriteZeroes { .. } | Self::Trim { .. } => true,
            Self::Read { .. } | Self::Flush => false,
        }
    }
}

/// Some sectors of one request, by their place in it. Empty almost always, and then costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectorSet(Vec<u32>);

impl SectorSet {
    /// No sector.
    pub const EMPTY: Self = Self(Vec::new());

    /// The first `count` sectors of a request.
    pub fn first(count: Sectors) -> Self {
        let count = u32::try_from(count.get()).expect("a request has less than 2^32 sectors");
        Self((0..count).collect())
    }

    /// Whether no sector is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many sectors are in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the request's sector number `offset` is in the set.
    pub fn contains(&self, offset: u32) -> bool {
        self.0.binary_search(&offset).is_ok()
    }

    /// The offsets, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}

impl FromIterator<u32> for SectorSet {
    fn from_iter<I: IntoIterator<Item = u32>>(offsets: I) -> Self {
        let mut offsets: Vec<u32> = offsets.into_iter().collect();
        offsets.sort_unstable();
        offsets.dedup();
        Self(offsets)
    }
}

/// How a command ended. A failing device is a value like any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The device is through with it. Both sets are empty after a complete success.
    Done {
        /// Sectors that it stopped trying to read early, because it was told to. They say nothing
        /// about the medium.
        unknown: SectorSet,
        /// Sectors that it could not read (or write) with all it had.
        damaged: SectorSet,
    },
    /// The machine that the device belongs to does not carry the command out now: it has no room (a full file system, no
    /// memory, a full quota), or does not permit it. This says nothing of the device. The same command may be sent again;
    /// until then nothing is known of the sectors it writes.
    Refused,
    /// Nothing that answers for the device can be reached now. The same command may be sent again; until then nothing is
    /// known of the sectors it writes.
    Unreachable,
    /// The device does not answer any more.
    Gone,
}

impl Outcome {
    /// Complete success.
    pub const GOOD: Self = Self::Done { unknown: SectorSet::EMPTY, damaged: SectorSet::EMPTY };

    /// Everything was done that was asked for.
    pub fn is_good(&self) -> bool {
        *self == Self::GOOD
    }

    /// Nothing was done, and the same command may be sent again.
    pub fn may_be_sent_again(&self) -> bool {
        matches!(self, Self::Refused | Self::Unreachable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sectors_end_in_is_the_least_of_them() {
        let sector = |zeroes: usize| {
            let mut sector = vec![7; SECTOR_SIZE];
            sector[SECTOR_SIZE - zeroes..].fill(0);
            sector
        };
        for (zeroes, tail) in [
            (0, ZeroTail::None),
            (255, ZeroTail::None),
            (256, ZeroTail::B256),
            (511, ZeroTail::B256),
            (512, ZeroTail::B512),
            (4_096, ZeroTail::B512),
        ] {
            assert_eq!(ZeroTail::of(&sector(zeroes)), tail, "{zeroes}");
            let pair = [sector(4_096), sector(zeroes)].concat();
            assert_eq!(ZeroTail::of(&pair), tail, "{zeroes}");
        }
    }
}
