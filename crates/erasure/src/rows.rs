//! Plans as matrices: how each wanted symbol is a combination of available ones.

use std::ops::Range;

use crate::code::Code;
use crate::error::{TooFewSymbols, UseError};
use crate::fields::Field;
use crate::interpolate::Interpolation;
use crate::kernel::engine::{Columns, part_of};
use crate::set::SymbolSet;

/// How each of some wanted symbols is a combination of some sources, for a code over GF(2^8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    sources: Vec<usize>,
    wanted: Vec<usize>,
    /// Column by column: one element for each wanted symbol.
    elements: Vec<u16>,
}

impl Rows {
    /// The symbols that are needed, lowest first. Each has a coefficient that is not 0.
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// The symbols that come out, as they were asked for.
    pub fn wanted(&self) -> &[usize] {
        &self.wanted
    }

    /// The coefficient of `sources()[source]` in `wanted()[row]`.
    ///
    /// # Panics
    ///
    /// If there is no such row or source, as indexing does.
    pub fn coefficient(&self, row: usize, source: usize) -> u8 {
        assert!(row < self.wanted.len(), "row {row} of {}", self.wanted.len());
        assert!(source < self.sources.len(), "source {source} of {}", self.sources.len());
        self.elements[source * self.wanted.len() + row] as u8
    }

    /// See [`Code::rows`].
    pub(crate) fn plan(
        code: &Code,
        available: &SymbolSet,
        wanted: &[usize],
    ) -> Result<Self, UseError> {
        if code.field() == Field::Tower {
            return Err(UseError::LongCode { len: code.len() });
        }
        for symbol in available.iter().chain(wanted.iter().copied()) {
            code.check_symbol(symbol)?;
        }
        let is_available = |symbol: &usize| available.contains(*symbol);
        let mut used: SymbolSet = wanted.iter().copied().filter(is_available).collect();
        let (mut lost, mut checks) = (Vec::new(), Vec::new());
        if !wanted.iter().all(is_available) {
            lost = (0..code.data()).filter(|symbol| !is_available(symbol)).collect();
            checks =
                (0..code.redundant()).filter(|row| is_available(&(code.data() + row))).collect();
            if checks.len() < lost.len() {
                let (available, needed) = (available.len(), code.data());
                return Err(TooFewSymbols { available, needed }.into());
            }
            checks.truncate(lost.len());
            let survivors = (0..code.data()).filter(is_available);
            used = used
                .iter()
                .chain(survivors)
                .chain(checks.iter().map(|row| code.data() + row))
                .collect();
        }
        let interpolation = Interpolation::new(code, &lost, &checks);
        let solves = checks.len() == lost.len();
        let field = code.field();
        let of_wanted: Vec<Option<(u16, u16)>> = wanted
            .iter()
            .map(|&symbol| {
                (!is_available(&symbol))
                    .then(|| (code.point(symbol), interpolation.of_lost(code, symbol)))
            })
            .collect();
        let sources: Vec<usize> = used.iter().collect();
        let mut elements = Vec::with_capacity(wanted.len() * sources.len());
        for &source in &sources {
            // A redundant symbol that was only wanted, not needed, has no share in the others.
            let check = source.checked_sub(code.data());
            let has_share = solves && check.is_none_or(|row| checks.binary_search(&row).is_ok());
            let of_source = if has_share { interpolation.of_source(code, source) } else { 0 };
            let point = code.point(source);
            for (symbol, of_wanted) in wanted.iter().zip(&of_wanted) {
                elements.push(match of_wanted {
                    Some((_, _)) if !has_share => 0,
                    Some((wanted_point, of_lost)) => {
                        field.multiply(field.divide(of_source, point ^ wanted_point), *of_lost)
                    }
                    None => u16::from(source == *symbol),
                });
            }
        }
        Ok(Self { sources, wanted: wanted.to_vec(), elements })
    }
}

impl Columns for Rows {
    fn columns<'a>(
        &'a self,
        sources: Range<usize>,
        rows: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16] {
        part_of(&self.elements, self.wanted.len(), sources, rows, scratch)
    }

    fn row_0_is_xor(&self) -> bool {
        self.elements.iter().step_by(self.wanted.len().max(1)).all(|&element| element == 1)
    }
}
