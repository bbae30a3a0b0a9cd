//! Plans: how each wanted symbol is a combination of available ones.
//!
//! Let `L` be the lost data symbols, `A` as many available redundant symbols, and `C` the code's
//! matrix. The syndromes are a combination of the lost data alone, so they determine it, and a lost
//! redundant symbol is its row over the data that survive, plus its row over the data just found:
//!
//! ```text
//!   syndrome_a  = r_a + sum over surviving s of c(a, s) d_s      = sum over l in L of c(a, l) d_l
//!   d_l         = sum over a in A of v(l, a) syndrome_a          V = inverse of C[A, L]
//!   r_i         = sum over surviving s of c(i, s) d_s
//!               + sum over a in A of w(i, a) syndrome_a          w(i, a) = sum over l of c(i, l) v(l, a)
//! ```
//!
//! Both have one shape: a row over the surviving data (nothing for a data symbol), plus *weights*
//! on the syndromes. With `c(a, l) = y_l / (x_a + y_l)` the inverse is a formula `[Blo95]`:
//!
//! ```text
//!              prod over k of (x_a + y_k) (x_k + y_l)
//!   v(l, a) = ----------------------------------------------------------------------------------
//!              y_l (x_a + y_l) (prod over k != a of (x_a + x_k)) (prod over k != l of (y_l + y_k))
//! ```

use crate::code::Code;
use crate::field::{divide, multiply};
use crate::set::SymbolSet;

/// How each of some wanted symbols is a combination of some sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    sources: Vec<usize>,
    wanted: Vec<usize>,
    /// Row by row: one coefficient for each source.
    coefficients: Vec<u8>,
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
    /// If there is no such row or source.
    pub fn coefficient(&self, row: usize, source: usize) -> u8 {
        assert!(row < self.wanted.len(), "row {row} of {}", self.wanted.len());
        assert!(source < self.sources.len(), "source {source} of {}", self.sources.len());
        self.coefficients[row * self.sources.len() + source]
    }

    /// See [`Code::rows`].
    pub(crate) fn plan(code: &Code, available: &SymbolSet, wanted: &[usize]) -> Option<Self> {
        for symbol in available.iter().chain(wanted.iter().copied()) {
            assert!(symbol < code.len(), "symbol {symbol} of a code of {}", code.len());
        }
        let is_available = |symbol: &usize| available.contains(*symbol);
        let mut used: SymbolSet = wanted.iter().copied().filter(is_available).collect();
        let mut solver = None;
        if !wanted.iter().all(is_available) {
            let solves = Solver::new(code, available)?;
            used = used.iter().chain(solves.sources()).collect();
            solver = Some(solves);
        }
        let sources: Vec<usize> = used.iter().collect();
        let mut coefficients = Vec::with_capacity(wanted.len() * sources.len());
        for symbol in wanted {
            match solver.as_ref().filter(|_| !is_available(symbol)) {
                Some(solver) => coefficients.extend(solver.row(*symbol, &sources)),
                None => {
                    coefficients.extend(sources.iter().map(|source| u8::from(source == symbol)));
                }
            }
        }
        Some(Self { sources, wanted: wanted.to_vec(), coefficients })
    }
}

/// What it takes to find every lost symbol: `L`, `A` and `V` of the module's text.
struct Solver<'a> {
    code: &'a Code,
    available: SymbolSet,
    /// The lost data symbols, ascending.
    lost: Vec<usize>,
    /// As many rows of available redundant symbols, ascending.
    checks: Vec<usize>,
    /// One row for each lost symbol, one column for each check.
    inverse: Vec<u8>,
}

impl<'a> Solver<'a> {
    /// `None` if fewer symbols are available than it takes.
    fn new(code: &'a Code, available: &SymbolSet) -> Option<Self> {
        let lost: Vec<usize> = (0..code.data()).filter(|&s| !available.contains(s)).collect();
        let mut checks: Vec<usize> =
            (0..code.redundant()).filter(|row| available.contains(code.data() + row)).collect();
        if checks.len() < lost.len() {
            return None;
        }
        checks.truncate(lost.len());
        let inverse = invert(code, &checks, &lost);
        Some(Self { code, available: *available, lost, checks, inverse })
    }

    /// The symbols it needs.
    fn sources(&self) -> impl Iterator<Item = usize> {
        let survives = |&symbol: &usize| self.available.contains(symbol);
        let checks = self.checks.iter().map(|row| self.code.data() + row);
        (0..self.code.data()).filter(survives).chain(checks)
    }

    /// The coefficients of `sources`, among them all it needs, in a symbol that is not available.
    fn row(&self, symbol: usize, sources: &[usize]) -> impl Iterator<Item = u8> {
        let (code, checks) = (self.code, &self.checks);
        let row = symbol.checked_sub(code.data());
        let weights = match row {
            None => {
                self.inverse_row(self.lost.binary_search(&symbol).expect("it is lost")).to_vec()
            }
            Some(row) => self.weights(row),
        };
        sources.iter().map(move |&source| match source.checked_sub(code.data()) {
            // A redundant symbol that was only wanted, not needed, has no weight.
            Some(check) => checks.binary_search(&check).map_or(0, |at| weights[at]),
            None => checks.iter().zip(&weights).fold(
                row.map_or(0, |row| code.coefficient(row, source)),
                |sum, (&check, &weight)| sum ^ multiply(weight, code.coefficient(check, source)),
            ),
        })
    }

    /// `w(i, a)` for redundant row `i`, for every check `a`.
    fn weights(&self, row: usize) -> Vec<u8> {
        let mut weights = vec![0; self.checks.len()];
        for (at, &lost) in self.lost.iter().enumerate() {
            let coefficient = self.code.coefficient(row, lost);
            for (weight, &inverse) in weights.iter_mut().zip(self.inverse_row(at)) {
                *weight ^= multiply(coefficient, inverse);
            }
        }
        weights
    }

    fn inverse_row(&self, lost_idx: usize) -> &[u8] {
        &self.inverse[lost_idx * self.checks.len()..][..self.checks.len()]
    }
}

/// The inverse of the coefficients of columns `lost` in rows `checks`: `V` of the module's text.
fn invert(code: &Code, checks: &[usize], lost: &[usize]) -> Vec<u8> {
    let x: Vec<u8> = checks.iter().map(|&row| code.redundant_point(row)).collect();
    let y: Vec<u8> = lost.iter().map(|&column| code.data_point(column)).collect();
    // The points are distinct, so a factor of 0 can only be the point itself, which is to be left out.
    let product = |of: u8, points: &[u8]| {
        points.iter().map(|point| of ^ point).filter(|&factor| factor != 0).fold(1, multiply)
    };
    // Each factor of V but `x_a + y_l` depends on the row alone or the column alone.
    let of_check: Vec<u8> =
        x.iter().map(|&x_a| divide(product(x_a, &y), product(x_a, &x))).collect();
    let of_lost = y.iter().map(|&y_l| divide(product(y_l, &x), multiply(y_l, product(y_l, &y))));
    of_lost
        .zip(&y)
        .flat_map(|(of_lost, y_l)| {
            x.iter()
                .zip(&of_check)
                .map(move |(x_a, &of_check)| divide(multiply(of_lost, of_check), x_a ^ y_l))
        })
        .collect()
}
