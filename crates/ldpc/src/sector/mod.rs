//! A sector's way to the medium and back, through a drive that finds zero forcing out for itself.
//!
//! ```text
//!   write:  sector --randomise--> stored bytes --encode--> codeword
//!
//!   read:   levels --shares of ones--> guess --decode--> stored bytes --randomise--> sector
//!                                        ^        |
//!                                        +--------+ failed, or not believed: the other kinds
//! ```
//!
//! A drive makes use of 256 or 512 zeroes at a sector's end, its *kind*, and nothing on the medium says which kind a sector is.
//! Everything before these zeroes is randomised with a fixed pattern, so that zeroes stand out when the sector is read, and `[SDHDD]`
//! guesses the kind from what stands out (`kind`). The code then forces these zeroes; where that fails, the other kinds are tried, those with
//! fewer zeroes first. 1,024 is not one of the paper's kinds: of a longer run of zeroes the last 512 bytes are left as they
//! are, and the rest is randomised as anything else.
//!
//! # Invariants
//!
//! - SE1. What is stored and the sector determine each other (`randomise`), so that the bytes that come back depend on the decoded bits
//!   alone, and not on what was guessed.
//! - SE2. The last 256 or 512 stored bytes are zeroes if and only if the sector's are.
//! - SE3. A decoding that forced zeroes is believed only if what it calls errors lies as noise without memory puts it (`belief`).
//!
//! SE1 closes a hole of the paper's scheme: data that equals the pattern in the last 256 bytes is stored as zeroes there, and would be read back as
//! zeroes. SE3 closes another: a wrong guess forces zeroes where there are ones, and where these are half of a light codeword, forcing leads
//! to another codeword, all of whose checks hold. A host that knows code and pattern can write either.
//!
//! # References
//!
//! - `[SDHDD]` sec. 3.4: randomising, the two shares, and the other kinds after a failure.
//!
//! # Assumptions
//!
//! - A1. Bits are wrong independently of each other and with one probability: `belief` refuses sectors whose errors crowd.
//! - A2. Light codewords crowd in few columns, as those do that the algebra of circulants gives. One that has few ones all over the sector, some of
//!   them in its last 512 bytes, would pass for noise; none is known, and none was ruled out.

mod belief;
mod kind;
mod randomise;

pub use kind::{SHARE_MAX_PERCENT, Shares, kind_of};

use crate::code::{Codeword, ZeroForcing};
use crate::decoder::{Decoder, Kernel};
use crate::encode::encode;
use crate::shape::{DATA_COLUMNS, SECTOR_BYTES};
use randomise::Pattern;

/// The kinds of sectors, the fewest zeroes first.
pub const KINDS: [ZeroForcing; 3] = [ZeroForcing::None, ZeroForcing::B256, ZeroForcing::B512];

/// The drive's code with its pattern, a decoder for each kind, and their memory.
#[derive(Clone, Debug)]
pub struct SectorCode {
    pattern: Pattern,
    decoders: [Decoder; KINDS.len()],
}

/// What a read came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadBack {
    /// A decoding converged, and was believed.
    Sector {
        /// The sector's bytes.
        bytes: Vec<u8>,
        /// The zeroes that this decoding forced. The sector may end in more.
        forced: ZeroForcing,
        /// What it took.
        effort: Effort,
    },
    /// No kind led to a codeword.
    Failed {
        /// What it took.
        effort: Effort,
    },
}

/// What a read took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Decodings, from 1 to 3.
    pub tries: u32,
    /// Iterations of all of them.
    pub iterations: u32,
    /// Decodings that converged and were not believed.
    pub refused: u32,
}

impl SectorCode {
    /// The code with the pattern that all drives share. A kernel that this machine lacks the instructions for runs as
    /// [`Kernel::Portable`].
    pub fn new(kernel: Kernel) -> Self {
        let decoders = KINDS.map(|forced| Decoder::new(forced, kernel));
        Self { pattern: Pattern::new(), decoders }
    }

    /// What goes to the medium for a sector.
    ///
    /// Panics if `sector` is not [`SECTOR_BYTES`] long.
    pub fn write(&self, sector: &[u8]) -> Codeword {
        assert_eq!(sector.len(), SECTOR_BYTES, "a sector's length");
        let mut stored = sector.to_vec();
        self.pattern.turn(&mut stored);
        encode(&stored)
    }

    /// Reads what has come from the channel, a level a bit, column by column: guesses the kind, and decodes in at most
    /// `iterations` a try.
    ///
    /// Panics if `levels` is not [`CODE_BITS`](crate::CODE_BITS) long.
    pub fn read(&mut self, levels: &[i8], iterations: u32) -> ReadBack {
        self.read_as(Shares::of(levels).guess(), levels, iterations)
    }

    /// The same with a guess from elsewhere, right or wrong.
    ///
    /// Panics as [`read`](Self::read), and if `guess` is not one of [`KINDS`].
    pub fn read_as(&mut self, guess: ZeroForcing, levels: &[i8], iterations: u32) -> ReadBack {
        assert!(KINDS.contains(&guess), "{guess} zeroes are no kind of sector");
        let mut effort = Effort::default();
        let others = KINDS.into_iter().filter(|kind| *kind != guess);
        for forced in [guess].into_iter().chain(others) {
            let at = KINDS.iter().position(|kind| *kind == forced).expect("one of the kinds");
            let decoder = &mut self.decoders[at];
            let decoded = decoder.decode(levels, iterations);
            effort.tries += 1;
            effort.iterations += decoded.iterations;
            if !decoded.converged {
                continue;
            }
            if !belief::is_believed(decoder.word(), levels, forced) {
                effort.refused += 1;
                continue;
            }
            let mut bytes = decoder.word().sector();
            self.pattern.turn(&mut bytes);
            return ReadBack::Sector { bytes, forced, effort };
        }
        ReadBack::Failed { effort }
    }
}

impl ReadBack {
    /// What the read took.
    pub fn effort(&self) -> Effort {
        match self {
            Self::Sector { effort, .. } | Self::Failed { effort } => *effort,
        }
    }
}

/// The bytes of a segment whose zeroes are of worth: `n_B` of `[SDHDD]`.
const SEGMENT_BYTES: usize = ZeroForcing::B256.bytes();

const _: () = assert!(ZeroForcing::B512.bytes() == 2 * SEGMENT_BYTES);
const _: () = assert!(DATA_COLUMNS * 64 == SECTOR_BYTES);

#[cfg(test)]
mod tests;
