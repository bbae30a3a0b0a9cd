//! What an engine is called, what of it is asked for, and what is refused.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use levelhead_erasure::Code;

/// The sizes of a sector that a testbench plays, in bytes; each is a power of two.
pub const SECTOR_SIZES: RangeInclusive<usize> = 256..=65_536;

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Ours: whole sectors one after the other, encoding and decoding.
    Sector,
    /// The paper's encoder: the symbols of one codeword one after the other.
    Polynomial,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sector, Self::Polynomial];

    /// The name of the kind and of its module on top.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sector => "sector",
            Self::Polynomial => "polynomial",
        }
    }

    /// Cycles from the last beat of a group that comes in to the first that leaves, without stalls.
    pub fn latency(self) -> u64 {
        match self {
            Self::Sector => 2,
            Self::Polynomial => 1,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    name: String,
}

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a kind of engine: expected sector or polynomial", self.name)
    }
}

impl Error for UnknownKind {}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let unknown = || UnknownKind { name: name.to_owned() };
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(unknown)
    }
}

/// A file of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder. A module's file is the module's name with `.sv`.
    pub name: &'static str,
    /// What is in it.
    pub text: String,
}

/// A code that no engine of a kind is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitCode {
    /// It has no redundant symbols, or more than an engine of the kind has.
    Redundant {
        /// Of which kind.
        kind: Kind,
        /// How many it has.
        redundant: usize,
        /// The most that an engine has.
        redundant_max: usize,
    },
    /// A codeword of a polynomial code over GF(2^10) has fewer symbols.
    Length {
        /// How many it has.
        length: usize,
        /// The most that there can be.
        length_max: usize,
    },
}

impl fmt::Display for UnfitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redundant { kind, redundant, redundant_max } => write!(
                f,
                "an engine of kind {kind} has 1 to {redundant_max} redundant symbols, not {redundant}"
            ),
            Self::Length { length, length_max } => {
                write!(
                    f,
                    "a codeword of a polynomial encoder has at most {length_max} symbols, not {length}"
                )
            }
        }
    }
}

impl Error for UnfitCode {}

/// What the testbench plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// One encoding, then this many patterns of each number of erasures; of the polynomial encoder, ten
    /// codewords for each pattern.
    Patterns(usize),
    /// Groups in a row that keep the engine busy: this many, encodings and decodings of as many erasures as
    /// the code repairs in turn; of the polynomial encoder, codewords.
    Row(usize),
}

/// What to write.
#[derive(Clone, Copy, Debug)]
pub struct Emit<'a> {
    /// The code of the engine.
    pub code: &'a Code,
    /// Which engine.
    pub kind: Kind,
    /// Bytes of a sector that the testbench plays: one of [`SECTOR_SIZES`], a power of two. The polynomial
    /// encoder has no sectors.
    pub sector_size: usize,
    /// What the testbench plays.
    pub play: Play,
    /// Where its bytes and erasures come from.
    pub seed: u64,
}
