//! How lost symbols follow from others, as a formula.
//!
//! Let `L` be the lost data symbols, `A` as many available redundant ones, and `p` the point of a
//! symbol that is not available. Every redundant symbol is `r(x) = sum over j of y_j d_j / (x + y_j)`.
//! The function
//!
//! ```text
//!            product over l in L of (y + y_l)
//!   P(y)  =  --------------------------------
//!            product over a in A of (y + x_a)
//! ```
//!
//! is 0 at every lost data symbol, and `P(y) / (y + p)` splits into a sum of `1 / (y + x_a)` and, if
//! `p` is a redundant symbol's, of `1 / (y + p)`: its denominator has the greater degree. So that sum
//! over the redundant symbols is a combination of the data in which only the surviving data has a
//! share, and symbol `p` itself. Solved for `p` it gives every source a share of one form:
//!
//! ```text
//!   coefficient of source s in symbol p  =  of_source(s) / (point(s) + p) * of_lost(p)
//!
//!   of_source  =  y P(y)  for a data symbol,   P(x)  for a redundant symbol
//!   of_lost    =  1 / of_source
//! ```
//!
//! where factors that are 0, which only a symbol of `L` or `A` itself can have, are left out of `P`.
//! With nothing lost but redundant symbols, `P` is 1 and this is the code's own coefficient.

use crate::code::Code;
use crate::fields::Field;

/// The formula for one set of lost data symbols and of checks.
pub(crate) struct Interpolation {
    field: Field,
    lost: Vec<u16>,
    checks: Vec<u16>,
}

impl Interpolation {
    /// For lost data symbols `lost` and as many redundant symbols `checks`, counted from 0.
    pub(crate) fn new(code: &Code, lost: &[usize], checks: &[usize]) -> Self {
        assert_eq!(lost.len(), checks.len());
        Self {
            field: code.field(),
            lost: lost.iter().map(|&column| code.data_point(column)).collect(),
            checks: checks.iter().map(|&row| code.redundant_point(row)).collect(),
        }
    }

    /// The share that depends on the source alone.
    pub(crate) fn of_source(&self, code: &Code, symbol: usize) -> u16 {
        let (above, below) = self.fraction(code, symbol);
        self.field.divide(above, below)
    }

    /// The share that depends on the lost symbol alone.
    pub(crate) fn of_lost(&self, code: &Code, symbol: usize) -> u16 {
        let (above, below) = self.fraction(code, symbol);
        self.field.divide(below, above)
    }

    fn fraction(&self, code: &Code, symbol: usize) -> (u16, u16) {
        let point = code.point(symbol);
        let scale = if symbol < code.data() { point } else { 1 };
        let above = self.product(scale, point, &self.lost);
        (above, self.product(1, point, &self.checks))
    }

    /// `from` times the product of all `point + p` that are not 0.
    fn product(&self, from: u16, point: u16, points: &[u16]) -> u16 {
        points
            .iter()
            .map(|p| point ^ p)
            .filter(|&factor| factor != 0)
            .fold(from, |product, factor| self.field.multiply(product, factor))
    }
}
