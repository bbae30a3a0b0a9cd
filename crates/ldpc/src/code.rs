//! The parity-check matrix: 7 by 71 circulants of 512 by 512, most of them zero.
//!
//! ```text
//!              64 data columns                7 redundant columns
//!          +--------------------------------+-----------------+
//!   7 rows |  4 circulants in each column   |  4, 4, .. and 5 |
//!          +--------------------------------+-----------------+
//!              ^ 512 bits = 64 bytes of the sector, in their order
//! ```
//!
//! A circulant of shift `s` in row `r` and column `c` connects check `i` of that row with bit `(i + s) mod 512` of that
//! column. A column is 64 bytes, so that 256, 512 and 1,024 zeroes at a sector's end are the last 4, 8 and 16
//! data columns: a decoder that knows of them leaves these columns out.

use std::fmt;
use std::str::FromStr;

use crate::ring;
use crate::shape::{BLOCK_BITS, Block, COLUMNS, DATA_COLUMNS, ROWS};
use crate::shifts::SHIFTS;

/// A circulant that is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The row of circulants, from 0 to 6.
    pub row: usize,
    /// By how many bits it is shifted, from 0 to 511.
    pub shift: usize,
}

/// The circulants of a column that are not zero, from the first row on.
///
/// Panics if `column` is not below [`COLUMNS`].
pub fn column_of(column: usize) -> impl Iterator<Item = Entry> + Clone {
    let shifts = &SHIFTS[column];
    (0..ROWS).filter_map(|row| Some(Entry { row, shift: usize::from(shifts[row]?) }))
}

/// The shift of a circulant, if it is not zero.
///
/// Panics if `row` is not below [`ROWS`] or `column` not below [`COLUMNS`].
pub fn shift_of(row: usize, column: usize) -> Option<usize> {
    SHIFTS[column][row].map(usize::from)
}

/// How many bytes at a sector's end are known to be zeroes: the decoder leaves them out (`n_z` of `[SDHDD]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ZeroForcing {
    /// None.
    None,
    /// 256: the paper's type B.
    B256,
    /// 512: the paper's mutable files.
    B512,
    /// 1,024.
    B1024,
}

impl ZeroForcing {
    /// All, the fewest bytes first.
    pub const ALL: [Self; 4] = [Self::None, Self::B256, Self::B512, Self::B1024];

    /// How many bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::B256 => 256,
            Self::B512 => 512,
            Self::B1024 => 1_024,
        }
    }

    /// The data columns whose bits are not known.
    pub(crate) const fn columns_left(self) -> usize {
        DATA_COLUMNS - self.bytes() * 8 / BLOCK_BITS
    }

    /// Whether a decoder asks for the bits of this column.
    pub(crate) fn takes(self, column: usize) -> bool {
        column < self.columns_left() || column >= DATA_COLUMNS
    }
}

impl fmt::Display for ZeroForcing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes())
    }
}

/// A number of bytes: 0, 256, 512 or 1024.
impl FromStr for ZeroForcing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.trim().parse::<usize>().ok();
        Self::ALL
            .into_iter()
            .find(|forced| Some(forced.bytes()) == bytes)
            .ok_or_else(|| format!("zero forcing is of 0, 256, 512 or 1024 bytes, not '{text}'"))
    }
}

/// The bits of a codeword, or what a decoder takes for them, column by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codeword(pub [Block; COLUMNS]);

impl Codeword {
    /// The codeword of a sector of zeroes.
    pub const ZERO: Self = Self([[0; 8]; COLUMNS]);

    /// The sector: bit `i` of it is bit `i % 8` of byte `i / 8`.
    pub fn sector(&self) -> Vec<u8> {
        self.0[..DATA_COLUMNS].iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// How many bits differ.
    pub fn distance(&self, other: &Self) -> u32 {
        let pairs = self.0.iter().flatten().zip(other.0.iter().flatten());
        pairs.map(|(a, b)| (a ^ b).count_ones()).sum()
    }
}

/// Whether every check of the code holds.
pub fn syndrome_is_zero(word: &Codeword) -> bool {
    (0..ROWS).all(|row| {
        let mut sum = ring::ZERO;
        for column in 0..COLUMNS {
            if let Some(shift) = shift_of(row, column) {
                ring::add(&mut sum, &ring::seen(&word.0[column], shift));
            }
        }
        sum == ring::ZERO
    })
}
