//! What is done with a code: encoding, bringing up to date, reconstructing.

use std::ops::Range;

use crate::choice::Choices;
use crate::code::Code;
use crate::error::{Role, UseError};
use crate::kernel;
use crate::kernel::engine::{Columns, Finish, Job, Numbers, Transformed};
use crate::kernels::Kernel;
use crate::plan::DecodePlan;
use crate::rows::Rows;
use crate::set::SymbolSet;

/// One symbol of a codeword that is to be reconstructed.
#[derive(Debug)]
pub enum Symbol<'a> {
    /// Its bytes are known.
    Available(&'a [u8]),
    /// Its bytes are wanted here, whatever the buffer holds.
    Wanted(&'a mut [u8]),
    /// Its bytes are neither known nor wanted.
    Lost,
}

impl Code {
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
    pub fn plan(&self, erased: &[usize], wanted: &[usize]) -> Result<DecodePlan, UseError> {
        DecodePlan::new(self, erased, wanted)
    }

    /// Computes all redundant symbols from all data symbols.
    ///
    /// # Errors
    ///
    /// If there is not one buffer for each symbol, or they differ in length, or that is no multiple
    /// of [`Field::size_multiple`](crate::Field::size_multiple).
    pub fn encode(
        &self,
        choices: impl Into<Choices>,
        data: &[&[u8]],
        redundant: &mut [&mut [u8]],
    ) -> Result<(), UseError> {
        kernel::check_count(Role::Data, self.data(), data.len())?;
        self.check(0, data, redundant)?;
        self.add(&choices.into(), 0, data, redundant, Finish::Store);
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
    /// If the code has fewer data symbols, or there is not one buffer for each redundant
    /// symbol, or the buffers differ in length, or that is no multiple of
    /// [`Field::size_multiple`](crate::Field::size_multiple).
    pub fn accumulate(
        &self,
        choices: impl Into<Choices>,
        first_column: usize,
        data: &[&[u8]],
        redundant: &mut [&mut [u8]],
    ) -> Result<(), UseError> {
        self.check(first_column, data, redundant)?;
        self.add(&choices.into(), first_column, data, redundant, Finish::Xor);
        Ok(())
    }

    /// Brings all redundant symbols up to date after data symbol `column` changed. `difference` is
    /// the xor of what it was and what it is now.
    ///
    /// # Errors
    ///
    /// If there is no such data symbol, or not one buffer for each redundant symbol, or the buffers
    /// differ in length, or that is no multiple of [`Field::size_multiple`](crate::Field::size_multiple).
    pub fn update(
        &self,
        choices: impl Into<Choices>,
        column: usize,
        difference: &[u8],
        redundant: &mut [&mut [u8]],
    ) -> Result<(), UseError> {
        self.accumulate(choices, column, &[difference], redundant)
    }

    /// Computes the wanted symbols of a codeword from the available ones. Plans anew on each call:
    /// a caller that loses the same symbols of many codewords keeps the [`plan`](Self::plan).
    ///
    /// # Errors
    ///
    /// If a symbol is wanted and fewer are available than there are data; if there is not one entry for
    /// each symbol, or the buffers differ in length, or that is no multiple of
    /// [`Field::size_multiple`](crate::Field::size_multiple).
    pub fn reconstruct(
        &self,
        choices: impl Into<Choices>,
        symbols: &mut [Symbol<'_>],
    ) -> Result<(), UseError> {
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
        plan.run(choices, &sources, &mut into)
    }

    /// That the buffers fit the code and each other.
    fn check(
        &self,
        first_column: usize,
        data: &[&[u8]],
        redundant: &[&mut [u8]],
    ) -> Result<(), UseError> {
        if first_column > self.data() || data.len() > self.data() - first_column {
            return Err(UseError::PastTheLastColumn {
                first_column,
                count: data.len(),
                data: self.data(),
            });
        }
        kernel::check_count(Role::Redundant, self.redundant(), redundant.len())?;
        let size = kernel::check_sizes(Role::Data, data, Role::Redundant, redundant)?;
        self.check_size(size)
    }

    fn add(
        &self,
        choices: &Choices,
        first_column: usize,
        data: &[&[u8]],
        redundant: &mut [&mut [u8]],
        finish: Finish,
    ) {
        let columns = FromColumn { code: self, first_column };
        let job = Job { field: self.field(), columns: &columns, sources: data };
        kernel::accumulate(choices, job, redundant, finish);
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

    fn transform(
        &self,
        kernel: Kernel,
        rows: Range<usize>,
        source_count: usize,
    ) -> Option<Transformed<'_>> {
        let transform = self.code.transform(kernel, rows.end - 1, rows.len(), source_count)?;
        let (columns, rows) = (Numbers::From(self.first_column), Numbers::From(rows.start));
        Some(Transformed { transform, columns, rows })
    }
}

/// The columns of a code from the first on, by its largest transform, whether that pays or not, or by their elements alone.
pub(crate) struct OneWay<'a> {
    pub(crate) code: &'a Code,
    pub(crate) by_transform: bool,
}

impl Columns for OneWay<'_> {
    fn columns<'a>(
        &'a self,
        sources: Range<usize>,
        rows: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16] {
        self.code.columns(sources, rows, scratch)
    }

    fn row_0_is_xor(&self) -> bool {
        true
    }

    fn transform(&self, _: Kernel, rows: Range<usize>, _: usize) -> Option<Transformed<'_>> {
        let transform = self.code.largest_transform().filter(|_| self.by_transform)?;
        let rows = Numbers::From(rows.start);
        Some(Transformed { transform, columns: Numbers::From(0), rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choice;

    #[test]
    fn the_choice_for_many_by_many_is_not_that_for_transforms() {
        let unmeasured = Choices::of(Kernel::best());
        let many_by_many = Choice { ahead: 1, ..unmeasured.many_by_many };
        let choices = Choices { many_by_many, ..unmeasured };
        let choice = |data: usize, redundant: usize| {
            let code = Code::new(data, redundant).unwrap();
            let columns = FromColumn { code: &code, first_column: 0 };
            let sources = vec![&[][..]; data];
            let job = Job { field: code.field(), columns: &columns, sources: &sources };
            kernel::choice_for(&choices, job, redundant)
        };
        assert_eq!(choice(30, 20), many_by_many);
        if cfg!(target_arch = "x86_64") {
            for (data, redundant) in [(220, 30), (220, 16), (280, 19)] {
                assert_eq!(choice(data, redundant), unmeasured.transform);
            }
        }
    }
}
