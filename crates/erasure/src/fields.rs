//! The fields that codes are over, as one type.

use crate::set::SYMBOLS_MAX;
use crate::{field, tower};

/// The most symbols a codeword may have.
pub(crate) const LEN_MAX: usize = 65_536;

/// The field that a code is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// GF(2^8): codewords of up to 256 symbols of any length.
    Bytes,
    /// GF((2^8)^2): longer codewords, of symbols whose length is a multiple of 128 bytes.
    Tower,
}

impl Field {
    /// What the length of a symbol must be a multiple of.
    pub const fn size_multiple(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Tower => tower::BLOCK_SIZE,
        }
    }

    pub(crate) fn multiply(self, left: u16, right: u16) -> u16 {
        match self {
            Self::Bytes => field::multiply(left as u8, right as u8).into(),
            Self::Tower => tower::multiply(left, right),
        }
    }

    pub(crate) fn divide(self, dividend: u16, divisor: u16) -> u16 {
        match self {
            Self::Bytes => field::divide(dividend as u8, divisor as u8).into(),
            Self::Tower => tower::divide(dividend, divisor),
        }
    }

    /// How many elements it has: the most symbols of a codeword over it.
    pub(crate) const fn element_count(self) -> usize {
        match self {
            Self::Bytes => SYMBOLS_MAX,
            Self::Tower => LEN_MAX,
        }
    }
}
