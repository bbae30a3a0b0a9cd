//! A code: its shape and its matrix. What can be done with it is in `operations`, `locate` and `plan`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::choice::FEW;
use crate::error::{CodeError, UseError};
use crate::fields::{Field, LEN_MAX};
use crate::kernels::Kernel;
use crate::set::SYMBOLS_MAX;
use crate::transform::{self, Transform};

/// The most elements of a matrix that is kept. Of a larger one, elements are computed as they are
/// needed.
const TABLE_MAX: usize = 1 << 20;

/// The most data symbols for which transforms are made ready.
const TRANSFORMED_MAX: usize = 4096;

/// A Reed-Solomon code with a number of data and a number of redundant symbols. In a codeword the data symbols
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

    /// Checks that a symbol may have `size` bytes.
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

    /// The transform for rows of which the last is `last_row`, if it takes the kernel less work than their
    /// elements one by one.
    pub(crate) fn transform(
        &self,
        kernel: Kernel,
        last_row: usize,
        row_count: usize,
        source_count: usize,
    ) -> Option<&Transform> {
        let log = (last_row + 1).next_power_of_two().ilog2() as usize;
        let transform = self.transforms.get(log.checked_sub(transform::LOG_MIN)?)?;
        let is_whole = transform.covered == self.data || self.field() == Field::Bytes;
        let pays = transform.pays(kernel, row_count) && source_count >= (2 << log).max(FEW + 1);
        (is_whole && pays).then_some(transform)
    }

    /// The transform that covers all redundant symbols, if there is one.
    pub(crate) fn largest_transform(&self) -> Option<&Transform> {
        self.transforms.last()
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

    /// By the least number of rows for which each kernel takes a transform.
    #[test]
    fn transforms_are_taken_where_they_pay() {
        if !cfg!(target_arch = "x86_64") {
            return;
        }
        let least = |kernel, len: usize| {
            let pays = |&rows: &usize| {
                let code = Code::for_length(len, rows).unwrap();
                code.transform(kernel, rows - 1, rows, code.data()).is_some()
            };
            (1..=32).find(pays).unwrap()
        };
        for (kernel, short, long) in
            [(Kernel::Avx2, 5, 4), (Kernel::Avx2Gfni, 13, 6), (Kernel::Avx512Gfni, 13, 6)]
        {
            assert_eq!((least(kernel, 255), least(kernel, 1023)), (short, long), "{kernel}");
        }
        // Few sources are summed by themselves.
        let code = Code::new(1_014, 9).unwrap();
        assert!(code.transform(Kernel::Avx2, 8, 9, 16).is_none());
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
