//! A code: its shape, its matrix, and what can be done with it.

use std::fmt;

use crate::field::divide;
use crate::kernel::{self, Kernel};
use crate::rows::Rows;
use crate::set::{SYMBOLS_MAX, SymbolSet};

/// A Reed-Solomon code of so many data and so many redundant symbols. In a codeword the data symbols
/// come first: symbols `0..data` are data, symbols `data..len` are redundant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    data: usize,
    redundant: usize,
}

/// Why there is no such code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// A codeword needs data.
    NoData {
        /// Redundant symbols asked for.
        redundant: usize,
    },
    /// The field has too few elements for so long a codeword.
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

/// One symbol of a codeword that is to be reconstructed.
#[derive(Debug)]
pub enum Symbol<'a> {
    /// Its bytes are known.
    Available(&'a [u8]),
    /// Its bytes are wanted here, whatever the buffer holds.
    Wanted(&'a mut [u8]),
    /// Its bytes are not known, and nobody wants them.
    Lost,
}

impl Code {
    /// The code of `data` and `redundant` symbols, together at most 256, at least one of them data.
    ///
    /// # Errors
    ///
    /// If there is no such code over GF(2^8).
    pub fn new(data: usize, redundant: usize) -> Result<Self, CodeError> {
        if data == 0 {
            return Err(CodeError::NoData { redundant });
        }
        if data.saturating_add(redundant) > SYMBOLS_MAX {
            return Err(CodeError::TooLong { data, redundant });
        }
        Ok(Self { data, redundant })
    }

    /// How many symbols of a codeword are data.
    pub fn data(&self) -> usize {
        self.data
    }

    /// How many symbols of a codeword are redundant.
    pub fn redundant(&self) -> usize {
        self.redundant
    }

    /// How many symbols a codeword has. Never 0.
    #[expect(clippy::len_without_is_empty, reason = "no codeword is empty")]
    pub fn len(&self) -> usize {
        self.data + self.redundant
    }

    /// The coefficient of data symbol `column` in redundant symbol `row`, counted from 0 among the
    /// redundant ones. Never 0; in row 0 always 1.
    ///
    /// # Panics
    ///
    /// If there is no such row or column.
    pub fn coefficient(&self, row: usize, column: usize) -> u8 {
        let (x, y) = (self.redundant_point(row), self.data_point(column));
        divide(y, x ^ y)
    }

    /// The plan by which the `wanted` symbols are computed from `available` ones. A wanted symbol
    /// that is available is copied. Otherwise the sources are exactly as many symbols as there are
    /// data: all the data that is available, and redundant symbols, the first ones, for the rest.
    ///
    /// `None` if a wanted symbol is not available and fewer symbols are than there are data.
    ///
    /// # Panics
    ///
    /// If `available` or `wanted` name a symbol that the code does not have.
    pub fn rows(&self, available: &SymbolSet, wanted: &[usize]) -> Option<Rows> {
        Rows::plan(self, available, wanted)
    }

    /// Computes all redundant symbols from all data symbols.
    ///
    /// # Panics
    ///
    /// If there is not one buffer for each symbol, or they differ in length.
    pub fn encode(&self, kernel: Kernel, data: &[&[u8]], redundant: &mut [&mut [u8]]) {
        assert_eq!(data.len(), self.data, "one buffer for each data symbol");
        kernel::clear(redundant);
        self.accumulate(kernel, 0, data, redundant);
    }

    /// Adds to all redundant symbols the shares of some data symbols, from `first_column` on. Over
    /// zeros, in any order and any pieces, every data symbol once, this amounts to
    /// [`encode`](Self::encode).
    ///
    /// # Panics
    ///
    /// If the code does not have so many data symbols, or there is not one buffer for each redundant
    /// symbol, or the buffers differ in length.
    pub fn accumulate(
        &self,
        kernel: Kernel,
        first_column: usize,
        data: &[&[u8]],
        redundant: &mut [&mut [u8]],
    ) {
        assert!(first_column <= self.data, "column {first_column} of {}", self.data);
        assert!(data.len() <= self.data - first_column, "the code has {} data symbols", self.data);
        assert_eq!(redundant.len(), self.redundant, "one buffer for each redundant symbol");
        let coefficient = |row, source| self.coefficient(row, first_column + source);
        kernel::accumulate(kernel, coefficient, data, redundant);
    }

    /// Brings all redundant symbols up to date after data symbol `column` changed. `difference` is
    /// the xor of what it was and what it is now.
    ///
    /// # Panics
    ///
    /// If there is no such data symbol, or not one buffer for each redundant symbol, or the buffers
    /// differ in length.
    pub fn update(
        &self,
        kernel: Kernel,
        column: usize,
        difference: &[u8],
        redundant: &mut [&mut [u8]],
    ) {
        self.accumulate(kernel, column, &[difference], redundant);
    }

    /// Computes the wanted symbols of a codeword from the available ones. Plans anew on each call:
    /// whoever loses the same symbols of many codewords keeps the [`rows`](Self::rows) and calls
    /// [`combine`](crate::combine).
    ///
    /// # Errors
    ///
    /// If a symbol is wanted and fewer are available than there are data. No buffer has changed then.
    ///
    /// # Panics
    ///
    /// If there is not one entry for each symbol, or the buffers differ in length.
    pub fn reconstruct(
        &self,
        kernel: Kernel,
        symbols: &mut [Symbol<'_>],
    ) -> Result<(), TooFewSymbols> {
        assert_eq!(symbols.len(), self.len(), "one entry for each symbol");
        let (mut available, mut wanted) = (SymbolSet::EMPTY, Vec::new());
        for (symbol, entry) in symbols.iter().enumerate() {
            match entry {
                Symbol::Available(_) => available = available.with(symbol),
                Symbol::Wanted(_) => wanted.push(symbol),
                Symbol::Lost => {}
            }
        }
        let Some(rows) = self.rows(&available, &wanted) else {
            return Err(TooFewSymbols { available: available.len(), needed: self.data });
        };
        let used: SymbolSet = rows.sources().iter().copied().collect();
        let (mut sources, mut into) = (Vec::new(), Vec::new());
        for (symbol, entry) in symbols.iter_mut().enumerate() {
            match entry {
                Symbol::Available(bytes) if used.contains(symbol) => sources.push(*bytes),
                Symbol::Wanted(bytes) => into.push(&mut **bytes),
                Symbol::Available(_) | Symbol::Lost => {}
            }
        }
        kernel::combine(kernel, &rows, &sources, &mut into);
        Ok(())
    }

    /// `x_i` of the crate's text.
    pub(crate) fn redundant_point(&self, row: usize) -> u8 {
        assert!(row < self.redundant, "row {row} of {}", self.redundant);
        row as u8
    }

    /// `y_j` of the crate's text.
    pub(crate) fn data_point(&self, column: usize) -> u8 {
        assert!(column < self.data, "column {column} of {}", self.data);
        let point = self.redundant.next_power_of_two() + column;
        let point = if point < SYMBOLS_MAX { point } else { self.redundant + point - SYMBOLS_MAX };
        point as u8
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
                write!(f, "at most {SYMBOLS_MAX} symbols make a codeword over GF(2^8)")
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code there is: 1 to 256 data symbols, and as many redundant ones as still fit.
    fn codes() -> impl Iterator<Item = Code> {
        (1..=SYMBOLS_MAX).flat_map(|data| {
            (0..=SYMBOLS_MAX - data).map(move |redundant| Code::new(data, redundant).unwrap())
        })
    }

    /// The premise of the MDS argument.
    #[test]
    fn the_points_of_every_code_are_distinct_and_zero_is_the_first_redundant_one() {
        for code in codes() {
            let x = (0..code.redundant()).map(|row| usize::from(code.redundant_point(row)));
            let y = (0..code.data()).map(|column| usize::from(code.data_point(column)));
            let points: SymbolSet = x.chain(y).collect();
            assert_eq!(points.len(), code.len(), "{code:?}");
            assert!(code.redundant() == 0 || code.redundant_point(0) == 0, "{code:?}");
        }
    }

    #[test]
    fn redundant_row_0_of_every_code_is_the_plain_xor() {
        for code in codes().filter(|code| code.redundant() > 0) {
            assert!((0..code.data()).all(|column| code.coefficient(0, column) == 1), "{code:?}");
        }
    }

    #[test]
    fn a_code_that_cannot_be_is_refused_with_the_limit() {
        let error = |data, redundant| Code::new(data, redundant).unwrap_err().to_string();
        assert_eq!(error(0, 2), "a code of 0+2 has no data: at least 1 symbol must be data");
        let limit = "is too long: at most 256 symbols make a codeword over GF(2^8)";
        assert_eq!(error(250, 7), format!("a code of 250+7 {limit}"));
        assert_eq!(error(257, 0), format!("a code of 257+0 {limit}"));
        assert_eq!(error(usize::MAX, 2), format!("a code of {}+2 {limit}", usize::MAX));
    }
}
