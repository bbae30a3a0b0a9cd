//! A code: its shape, its matrix, and what can be done with it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{CodeError, Role, UseError};
use crate::kernel::by_transform::{Numbers, Transformed};
use crate::kernel::driver::{Columns, Finish, Job};
use crate::kernel::{self, Kernel};
use crate::plan::Plan;
use crate::rows::Rows;
use crate::set::{SYMBOLS_MAX, SymbolSet};
use crate::transform::{self, Transform};
use crate::{field, tower};

/// The most symbols a codeword may have.
pub(crate) const LEN_MAX: usize = 65_536;

/// The most elements of a matrix that is kept. Of a larger one, elements are computed as they are
/// needed.
const TABLE_MAX: usize = 1 << 20;

/// The most data symbols for which transforms are made ready.
const TRANSFORMED_MAX: usize = 4096;

/// The field that a code is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// GF(2^8): codewords of up to 256 symbols of any length.
    Bytes,
    /// GF((2^8)^2): longer codewords, of symbols whose length is a multiple of 128 bytes.
    Tower,
}

/// A Reed-Solomon code of so many data and so many redundant symbols. In a codeword the data symbols
/// come first: symbols `0..data` are data, symbols `data..len` are redundant.
#[derive(Clone)]
pub struct Code {
    data: usize,
    redundant: usize,
    /// The matrix, column by column, if it is small enough.
    table: Option<Arc<[u16]>>,
    /// Transforms of the sizes that its redundant symbols need, the smallest first.
    transforms: Arc<[Transform]>,
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

    const fn element_count(self) -> usize {
        match self {
            Self::Bytes => SYMBOLS_MAX,
            Self::Tower => LEN_MAX,
        }
    }
}

impl Code {
    /// The code of `data` and `redundant` symbols, together at most 65,536, at least one of them data.
    /// Up to 256 symbols it is over GF(2^8), above over the tower field.
    ///
    /// # Errors
    ///
    /// If there is no such code.
    pub fn new(data: usize, redundant: usize) -> Result<Self, CodeError> {
        if data == 0 {
            return Err(CodeError::NoData { redundant });
        }
        if data.saturating_add(redundant) > LEN_MAX {
            return Err(CodeError::TooLong { data, redundant });
        }
        let mut code = Self { data, redundant, table: None, transforms: Arc::new([]) };
        code.transforms = code.make_transforms();
        if data.saturating_mul(redundant) <= TABLE_MAX {
            let column = |column| (0..redundant).map(move |row| (row, column));
            let table = (0..data).flat_map(column).map(|(row, column)| code.compute(row, column));
            code.table = Some(table.collect());
        }
        Ok(code)
    }

    /// The code of `redundant` symbols whose codewords have `len`, such as 255 or 1023.
    ///
    /// # Errors
    ///
    /// If there is no such code.
    pub fn for_length(len: usize, redundant: usize) -> Result<Self, CodeError> {
        Self::new(len.saturating_sub(redundant), redundant)
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

    /// The field that the code is over.
    pub fn field(&self) -> Field {
        if self.len() <= SYMBOLS_MAX { Field::Bytes } else { Field::Tower }
    }

    /// The coefficient of data symbol `column` in redundant symbol `row`, counted from 0 among the
    /// redundant ones, for a code over GF(2^8). Never 0; in row 0 always 1.
    ///
    /// # Panics
    ///
    /// If there is no such row or column, as indexing does, or the code is over the tower field;
    /// [`element`](Self::element) does not.
    pub fn coefficient(&self, row: usize, column: usize) -> u8 {
        let element = self.element(row, column);
        let element = element.unwrap_or_else(|| panic!("row {row}, column {column} of {self:?}"));
        u8::try_from(element).unwrap_or_else(|_| panic!("{self:?} is over the tower field"))
    }

    /// The coefficient of data symbol `column` in redundant symbol `row` for any code, if there is
    /// such a row and column. Over the tower field the element `a + b Y` is `a + 256 b`.
    pub fn element(&self, row: usize, column: usize) -> Option<u16> {
        if row >= self.redundant || column >= self.data {
            return None;
        }
        Some(match &self.table {
            Some(table) => table[column * self.redundant + row],
            None => self.compute(row, column),
        })
    }

    /// The plan by which the `wanted` symbols are computed from `available` ones. A wanted symbol
    /// that is available is copied. Otherwise the sources are exactly as many symbols as there are
    /// data: all the data that is available, and redundant symbols, the first ones, for the rest.
    ///
    /// # Errors
    ///
    /// If a wanted symbol is not available and fewer symbols are than there are data; if a symbol is
    /// named that the code does not have; if the code is over the tower field, which
    /// [`plan`](Self::plan) is for.
    pub fn rows(&self, available: &SymbolSet, wanted: &[usize]) -> Result<Rows, UseError> {
        Rows::plan(self, available, wanted)
    }

    /// The plan by which the `wanted` symbols are computed when the `erased` ones are gone and all
    /// others are there. For any code; faster to make than [`rows`](Self::rows).
    ///
    /// # Errors
    ///
    /// If more symbols are erased than are redundant, and one of them is wanted; if a symbol is named
    /// that the code does not have, or named twice in one list.
    pub fn plan(&self, erased: &[usize], wanted: &[usize]) -> Result<Plan, UseError> {
        Plan::new(self, erased, wanted)
    }

    /// Computes all redundant symbols from all data symbols.
    ///
    /// # Errors
    ///
    /// If there is not one buffer for each symbol, or they differ in length, or that is no multiple
    /// of [`Field::size_multiple`].
    pub fn encode(
        &self,
        kernel: Kernel,
        data: &[&[u8]],
        redundant: &mut [&mut [u8]],
    ) -> Result<(), UseError> {
        kernel::check_count(Role::Data, self.data, data.len())?;
        self.check(0, data, redundant)?;
        self.add(kernel, 0, data, redundant, Finish::Store);
        Ok(())
    }

    /// Adds to all redundant symbols the shares of some data symbols, from `first_column` on.
    ///
    /// Over zeros, in any order and any pieces, every data symbol once, this amounts to
    /// [`encode`](Self::encode). At every moment the redundant symbols are those of the codeword in
    /// which all data that has not come yet is zeros: a codeword may stop anywhere, and closing it
    /// takes nothing.
    ///
    /// # Errors
    ///
    /// If the code does not have so many data symbols, or there is not one buffer for each redundant
    /// symbol, or the buffers differ in length, or that is no multiple of [`Field::size_multiple`].
    pub fn accumulate(
        &self,
        kernel: Kernel,
        first_column: usize,
        data: &[&[u8]],
        redundant: &mut [&mut [u8]],
    ) -> Result<(), UseError> {
        self.check(first_column, data, redundant)?;
        self.add(kernel, first_column, data, redundant, Finish::Xor);
        Ok(())
    }

    /// Brings all redundant symbols up to date after data symbol `column` changed. `difference` is
    /// the xor of what it was and what it is now.
    ///
    /// # Errors
    ///
    /// If there is no such data symbol, or not one buffer for each redundant symbol, or the buffers
    /// differ in length, or that is no multiple of [`Field::size_multiple`].
    pub fn update(
        &self,
        kernel: Kernel,
        column: usize,
        difference: &[u8],
        redundant: &mut [&mut [u8]],
    ) -> Result<(), UseError> {
        self.accumulate(kernel, column, &[difference], redundant)
    }

    /// Computes the wanted symbols of a codeword from the available ones. Plans anew on each call:
    /// whoever loses the same symbols of many codewords keeps the [`plan`](Self::plan).
    ///
    /// # Errors
    ///
    /// If a symbol is wanted and fewer are available than there are data; if there is not one entry for
    /// each symbol, or the buffers differ in length, or that is no multiple of
    /// [`Field::size_multiple`].
    pub fn reconstruct(&self, kernel: Kernel, symbols: &mut [Symbol<'_>]) -> Result<(), UseError> {
        kernel::check_count(Role::Symbol, self.len(), symbols.len())?;
        let (mut erased, mut wanted) = (Vec::new(), Vec::new());
        for (symbol, entry) in symbols.iter().enumerate() {
            match entry {
                Symbol::Available(_) => {}
                Symbol::Wanted(_) => {
                    wanted.push(symbol);
                    erased.push(symbol);
                }
                Symbol::Lost => erased.push(symbol),
            }
        }
        let plan = self.plan(&erased, &wanted)?;
        let (mut sources, mut into) = (Vec::new(), Vec::new());
        for (symbol, entry) in symbols.iter_mut().enumerate() {
            match entry {
                Symbol::Available(bytes) if plan.sources().binary_search(&symbol).is_ok() => {
                    sources.push(*bytes);
                }
                Symbol::Wanted(bytes) => into.push(&mut **bytes),
                Symbol::Available(_) | Symbol::Lost => {}
            }
        }
        plan.run(kernel, &sources, &mut into)
    }

    /// That the buffers fit the code and each other.
    fn check(
        &self,
        first_column: usize,
        data: &[&[u8]],
        redundant: &[&mut [u8]],
    ) -> Result<(), UseError> {
        if first_column > self.data || data.len() > self.data - first_column {
            return Err(UseError::PastTheLastColumn {
                first_column,
                count: data.len(),
                data: self.data,
            });
        }
        kernel::check_count(Role::Redundant, self.redundant, redundant.len())?;
        let size = kernel::check_sizes(Role::Data, data, Role::Redundant, redundant)?;
        self.check_size(size)
    }

    /// That symbols may have so many bytes.
    pub(crate) fn check_size(&self, size: usize) -> Result<(), UseError> {
        let multiple = self.field().size_multiple();
        if size.is_multiple_of(multiple) {
            Ok(())
        } else {
            Err(UseError::Blocks { size, multiple })
        }
    }

    /// That there is such a symbol.
    pub(crate) fn check_symbol(&self, symbol: usize) -> Result<(), UseError> {
        let len = self.len();
        if symbol < len { Ok(()) } else { Err(UseError::OutOfRange { symbol, len }) }
    }

    fn add(
        &self,
        kernel: Kernel,
        first_column: usize,
        data: &[&[u8]],
        redundant: &mut [&mut [u8]],
        finish: Finish,
    ) {
        let columns = FromColumn { code: self, first_column };
        let job = Job { field: self.field(), columns: &columns, sources: data };
        kernel::accumulate(kernel, job, redundant, finish);
    }

    /// Transforms of every size up to the one that covers all redundant symbols.
    fn make_transforms(&self) -> Arc<[Transform]> {
        let first_point = self.redundant.next_power_of_two();
        let covered = self.data.min(self.field().element_count().saturating_sub(first_point));
        let log = first_point.ilog2() as usize;
        if !cfg!(target_arch = "x86_64") || log > transform::LOG_MAX || covered > TRANSFORMED_MAX {
            return Arc::new([]);
        }
        let new = |log| Transform::new(self.field(), log, first_point, covered);
        (transform::LOG_MIN..=log).map(new).collect()
    }

    /// The transform for rows of which the last is `last_row`, if it takes less work than their
    /// elements one by one.
    pub(crate) fn transform(
        &self,
        last_row: usize,
        row_count: usize,
        source_count: usize,
    ) -> Option<&Transform> {
        let log = (last_row + 1).next_power_of_two().ilog2() as usize;
        let transform = self.transforms.get(log.checked_sub(transform::LOG_MIN)?)?;
        let is_whole = transform.covered == self.data || self.field() == Field::Bytes;
        let pays = transform.pays(row_count) && source_count >= 2 << log;
        (is_whole && pays).then_some(transform)
    }

    /// The elements of some rows in some columns, column by column.
    pub(crate) fn columns<'a>(
        &'a self,
        columns: Range<usize>,
        rows: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16] {
        match &self.table {
            Some(table) if rows.len() == self.redundant => {
                &table[columns.start * self.redundant..columns.end * self.redundant]
            }
            _ => {
                for (elements, column) in scratch.chunks_exact_mut(rows.len()).zip(columns) {
                    self.copy_column(column, rows.clone(), elements);
                }
                scratch
            }
        }
    }

    /// The elements of all rows in some columns, one column after the other, a run of columns at a time.
    pub(crate) fn copy_columns(&self, columns: &[usize], into: &mut [u16]) {
        let rows = self.redundant;
        let mut done = 0;
        while let Some(&first) = columns.get(done) {
            let run = columns[done..].iter().zip(first..).take_while(|(a, b)| *a == b).count();
            let into = &mut into[done * rows..(done + run) * rows];
            match &self.table {
                Some(table) => into.copy_from_slice(&table[first * rows..(first + run) * rows]),
                None => {
                    for (elements, column) in into.chunks_exact_mut(rows).zip(first..) {
                        self.copy_column(column, 0..rows, elements);
                    }
                }
            }
            done += run;
        }
    }

    /// The elements of some rows in a column.
    pub(crate) fn copy_column(&self, column: usize, rows: Range<usize>, into: &mut [u16]) {
        match &self.table {
            Some(table) => into.copy_from_slice(&table[column * self.redundant..][rows]),
            None => {
                for (element, row) in into.iter_mut().zip(rows) {
                    *element = self.compute(row, column);
                }
            }
        }
    }

    /// `c(row, column)` of the crate's text.
    fn compute(&self, row: usize, column: usize) -> u16 {
        let (x, y) = (self.redundant_point(row), self.data_point(column));
        self.field().divide(y, x ^ y)
    }

    /// The point of a symbol.
    pub(crate) fn point(&self, symbol: usize) -> u16 {
        match symbol.checked_sub(self.data) {
            None => self.data_point(symbol),
            Some(row) => self.redundant_point(row),
        }
    }

    /// `x_i` of the crate's text.
    pub(crate) fn redundant_point(&self, row: usize) -> u16 {
        assert!(row < self.redundant, "row {row} of {}", self.redundant);
        row as u16
    }

    /// `y_j` of the crate's text.
    pub(crate) fn data_point(&self, column: usize) -> u16 {
        assert!(column < self.data, "column {column} of {}", self.data);
        let count = self.field().element_count();
        let point = self.redundant.next_power_of_two() + column;
        let point = if point < count { point } else { self.redundant + point - count };
        point as u16
    }
}

/// The columns of a code, from one on.
struct FromColumn<'a> {
    code: &'a Code,
    first_column: usize,
}

impl Columns for FromColumn<'_> {
    fn columns<'a>(
        &'a self,
        sources: Range<usize>,
        rows: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16] {
        let first = self.first_column;
        self.code.columns(first + sources.start..first + sources.end, rows, scratch)
    }

    fn row_0_is_xor(&self) -> bool {
        true
    }

    fn transform(&self, rows: Range<usize>, source_count: usize) -> Option<Transformed<'_>> {
        let transform = self.code.transform(rows.end - 1, rows.len(), source_count)?;
        let (columns, rows) = (Numbers::From(self.first_column), Numbers::From(rows.start));
        Some(Transformed { transform, columns, rows })
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        (self.data, self.redundant) == (other.data, other.redundant)
    }
}

impl Eq for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({}+{})", self.data, self.redundant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code over GF(2^8): 1 to 256 data symbols, and as many redundant ones as still fit.
    fn codes() -> impl Iterator<Item = Code> {
        (1..=SYMBOLS_MAX).flat_map(|data| {
            (0..=SYMBOLS_MAX - data).map(move |redundant| Code::new(data, redundant).unwrap())
        })
    }

    fn long_codes() -> impl Iterator<Item = Code> {
        let shapes = [(1019, 4), (1016, 7), (1014, 9), (1004, 19), (256, 1), (1, 256)];
        let longest = [(65_535, 1), (65_500, 36), (40_000, 25_536), (32_768, 32_768), (1, 65_535)];
        shapes.into_iter().chain(longest).map(|(data, m)| Code::new(data, m).unwrap())
    }

    /// The premise of the MDS argument.
    #[test]
    fn the_points_of_every_code_are_distinct_and_zero_is_the_first_redundant_one() {
        for code in codes().chain(long_codes()) {
            let mut points: Vec<u16> = (0..code.len()).map(|symbol| code.point(symbol)).collect();
            points.sort_unstable();
            points.dedup();
            assert_eq!(points.len(), code.len(), "{code:?}");
            assert!(code.redundant() == 0 || code.redundant_point(0) == 0, "{code:?}");
        }
    }

    #[test]
    fn redundant_row_0_of_every_code_is_the_plain_xor() {
        for code in codes().chain(long_codes()).filter(|code| code.redundant() > 0) {
            let is_one = |column| code.element(0, column) == Some(1);
            assert!((0..code.data()).all(is_one), "{code:?}");
        }
    }

    #[test]
    fn a_code_that_cannot_be_is_refused_with_the_limit() {
        let error = |data, redundant| Code::new(data, redundant).unwrap_err().to_string();
        assert_eq!(error(0, 2), "a code of 0+2 has no data: at least 1 symbol must be data");
        let limit = "is too long: at most 65536 symbols make a codeword";
        assert_eq!(error(65_530, 7), format!("a code of 65530+7 {limit}"));
        assert_eq!(error(65_537, 0), format!("a code of 65537+0 {limit}"));
        assert_eq!(error(usize::MAX, 2), format!("a code of {}+2 {limit}", usize::MAX));
        assert!(Code::for_length(9, 9).is_err());
        assert_eq!(Code::for_length(255, 9), Code::new(246, 9));
        assert_eq!(Code::for_length(1023, 19), Code::new(1004, 19));
    }
}
