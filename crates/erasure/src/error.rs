//! What a caller can get wrong, each with the numbers.

use std::fmt;

use crate::fields::LEN_MAX;

/// Why there is no such code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// A codeword needs data.
    NoData {
        /// Redundant symbols asked for.
        redundant: usize,
    },
    /// The codeword is longer than the number of elements of the largest field.
    TooLong {
        /// Data symbols asked for.
        data: usize,
        /// Redundant symbols asked for.
        redundant: usize,
    },
}

/// More symbols are lost than the code survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewSymbols {
    /// Symbols that are available.
    pub available: usize,
    /// Symbols that it takes.
    pub needed: usize,
}

/// Which buffers of a call are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Data symbols.
    Data,
    /// Redundant symbols.
    Redundant,
    /// The sources of a plan.
    Source,
    /// The symbols that a plan gives.
    Wanted,
    /// All the symbols of a codeword.
    Symbol,
}

/// Why a call cannot be carried out. No buffer has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseError {
    /// Too few or too many buffers.
    Count {
        /// Of which kind.
        role: Role,
        /// How many it takes.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A batch of data symbols reaches past the last one.
    PastTheLastColumn {
        /// The first data symbol of the batch.
        first_column: usize,
        /// How many symbols the batch has.
        count: usize,
        /// How many data symbols the code has.
        data: usize,
    },
    /// A buffer differs in length from the first one.
    Size {
        /// Of which kind.
        role: Role,
        /// Which of its kind.
        index: usize,
        /// Bytes that it should have.
        expected: usize,
        /// Bytes that it has.
        got: usize,
    },
    /// Symbols of 16 bits come in blocks, and the length is no multiple of a block's.
    Blocks {
        /// Bytes of a symbol.
        size: usize,
        /// What that should be a multiple of.
        multiple: usize,
    },
    /// A symbol is named that the code does not have.
    OutOfRange {
        /// Its place.
        symbol: usize,
        /// How many symbols a codeword has.
        len: usize,
    },
    /// A symbol is named twice.
    Twice {
        /// Its place.
        symbol: usize,
    },
    /// The codeword is longer than a set of symbols can name.
    LongCode {
        /// How many symbols a codeword has.
        len: usize,
    },
    /// More symbols are lost than the code survives.
    TooFew(TooFewSymbols),
    /// There are wrong symbols, and more than the redundancy left can point at.
    NotLocated {
        /// The most wrong symbols that could be located.
        limit: usize,
    },
    /// No symbol of a codeword is known to be lost or redundant beyond need, so nothing could be
    /// checked.
    NoSpare {
        /// Redundant symbols of the code.
        redundant: usize,
        /// Symbols that are erased.
        erased: usize,
    },
}

impl From<TooFewSymbols> for UseError {
    fn from(error: TooFewSymbols) -> Self {
        Self::TooFew(error)
    }
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoData { redundant } => {
                write!(f, "a code of 0+{redundant} has no data: at least 1 symbol must be data")
            }
            Self::TooLong { data, redundant } => {
                write!(f, "a code of {data}+{redundant} is too long: ")?;
                write!(f, "at most {LEN_MAX} symbols make a codeword")
            }
        }
    }
}

impl std::error::Error for CodeError {}

impl fmt::Display for TooFewSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { available, needed } = self;
        write!(f, "{available} symbols are available, and it takes {needed} to find the others")
    }
}

impl std::error::Error for TooFewSymbols {}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data symbol",
            Self::Redundant => "redundant symbol",
            Self::Source => "source",
            Self::Wanted => "wanted symbol",
            Self::Symbol => "symbol",
        })
    }
}

impl fmt::Display for UseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { role, expected, got } => {
                write!(f, "one buffer for each {role}: it takes {expected}, got {got}")
            }
            Self::PastTheLastColumn { first_column, count, data } => {
                write!(f, "{count} data symbols from number {first_column} on, ")?;
                write!(f, "but the code has {data} data symbols")
            }
            Self::Size { role, index, expected, got } => {
                write!(f, "symbols are of one length: {role} {index} has {got} bytes, ")?;
                write!(f, "not {expected}")
            }
            Self::Blocks { size, multiple } => {
                write!(f, "a symbol of {size} bytes: codewords of more than 256 symbols take ")?;
                write!(f, "multiples of {multiple}")
            }
            Self::OutOfRange { symbol, len } => {
                write!(f, "symbol {symbol} of a code of {len}")
            }
            Self::LongCode { len } => {
                write!(f, "a code of {len} symbols: a set of symbols names the first 256, ")?;
                f.write_str("longer codes are planned with lists")
            }
            Self::Twice { symbol } => write!(f, "symbol {symbol} is named twice"),
            Self::TooFew(error) => error.fmt(f),
            Self::NotLocated { limit } => {
                write!(f, "symbols are wrong, and more than the {limit} that can be located")
            }
            Self::NoSpare { redundant, erased } => {
                write!(f, "{erased} symbols are erased and {redundant} redundant: ")?;
                write!(
                    f,
                    "locating a wrong symbol takes two redundant symbols more than are erased"
                )
            }
        }
    }
}

impl std::error::Error for UseError {}
