//! What kind a sector is: as a write knows it, and as a read guesses it.
//!
//! A read counts ones among the hard decisions of the last 256 bytes and of the 256 bytes before. Zeroes come as ones as often as the channel is wrong,
//! at most 3 % of them, and what was randomised has as many ones as zeroes:
//!
//! | ones, last 256 bytes | ones, 256 bytes before | guess |
//! |---|---|---|
//! | more than a tenth | any | no zeroes |
//! | at most a tenth | more than a tenth | 256 |
//! | at most a tenth | at most a tenth | 512 |
//!
//! The paper says "much less than a half", and has a tenth in its example. A limit in the middle would be as good for sectors that nobody made up
//! to be mistaken; the lower one leaves fewer sectors that are mistaken for zeroes.

use super::randomise::is_zero;
use super::{KINDS, SEGMENT_BYTES};
use crate::code::ZeroForcing;
use crate::shape::{CODE_BITS, DATA_BITS, SECTOR_BYTES};

/// The largest share of ones that is taken for zeroes, in percent.
pub const SHARE_MAX_PERCENT: u32 = 10;

/// Ones among the hard decisions of a sector's last segments of 256 bytes: `f_1` and `f_1'` of `[SDHDD]`, times 2,048.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Ones in the last 256 bytes.
    pub last: u32,
    /// Ones in the 256 bytes before.
    pub before: u32,
}

impl Shares {
    /// Bits that each is counted among.
    pub const BITS: usize = SEGMENT_BYTES * 8;

    /// The most ones of a segment that is taken for zeroes.
    pub const ONES_MAX: u32 = Self::BITS as u32 * SHARE_MAX_PERCENT / 100;

    /// Counts them.
    ///
    /// Panics if `levels` is not [`CODE_BITS`] long.
    pub fn of(levels: &[i8]) -> Self {
        assert_eq!(levels.len(), CODE_BITS, "levels of a codeword");
        let ones = |end: usize| {
            levels[end - Self::BITS..end].iter().map(|level| u32::from(*level < 0)).sum()
        };
        Self { last: ones(DATA_BITS), before: ones(DATA_BITS - Self::BITS) }
    }

    /// The kind that a sector with so many ones is taken for.
    pub fn guess(self) -> ZeroForcing {
        if self.last > Self::ONES_MAX {
            ZeroForcing::None
        } else if self.before > Self::ONES_MAX {
            ZeroForcing::B256
        } else {
            ZeroForcing::B512
        }
    }
}

/// The kind of a sector: how many of the zeroes at its end a drive makes use of. That is 512 also where there are 1,024.
///
/// Panics if `sector` is not [`SECTOR_BYTES`] long.
pub fn kind_of(sector: &[u8]) -> ZeroForcing {
    assert_eq!(sector.len(), SECTOR_BYTES, "a sector's length");
    let ends_in = |kind: &ZeroForcing| is_zero(&sector[SECTOR_BYTES - kind.bytes()..]);
    KINDS.into_iter().rfind(ends_in).expect("every sector ends in no zeroes at least")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_longest_of_the_papers_runs() {
        for (first_zero, kind) in [
            (SECTOR_BYTES, ZeroForcing::None),
            (SECTOR_BYTES - 255, ZeroForcing::None),
            (SECTOR_BYTES - 256, ZeroForcing::B256),
            (SECTOR_BYTES - 511, ZeroForcing::B256),
            (SECTOR_BYTES - 512, ZeroForcing::B512),
            (SECTOR_BYTES - 1_024, ZeroForcing::B512),
            (0, ZeroForcing::B512),
        ] {
            let mut sector = vec![0; SECTOR_BYTES];
            sector[..first_zero].fill(1);
            assert_eq!(kind_of(&sector), kind, "zeroes from {first_zero} on");
        }
    }

    #[test]
    fn shares_are_counted_where_their_segments_are() {
        let mut levels = vec![8; CODE_BITS];
        // Around both ends of both segments.
        for at in [DATA_BITS, DATA_BITS - 1, DATA_BITS - 2_048, DATA_BITS - 4_096] {
            levels[at] = -8;
        }
        levels[DATA_BITS - 4_097] = -8;
        assert_eq!(Shares::of(&levels), Shares { last: 2, before: 1 });
    }

    #[test]
    fn guesses_change_with_the_first_one_beyond_a_tenth() {
        assert_eq!(Shares::ONES_MAX, 204);
        let guess = |last, before| Shares { last, before }.guess();
        assert_eq!(guess(205, 0), ZeroForcing::None);
        assert_eq!(guess(204, 205), ZeroForcing::B256);
        assert_eq!(guess(204, 204), ZeroForcing::B512);
    }
}
