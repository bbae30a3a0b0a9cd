//! Finding symbols that are wrong and do not say so.
//!
//! Every redundant symbol that is there, plus its row over the data that is there, leaves a syndrome;
//! in a codeword without errors or erasures all are 0. With wrong data symbols `W`, erased ones `L`, and
//! an error `e_j` in each, the syndrome of redundant symbol `x` that is itself right is
//!
//! ```text
//!   s(x) = sum over j in W and L of e_j y_j / (x + y_j)
//! ```
//!
//! Multiplied by `G(x)`, the product of `x + y_l` over `L`, that is a fraction `N(x) / E(x)` with `E` the
//! product of `x + y_j` over `W`. A wrong redundant symbol breaks the equation at its own `x` only, and
//! is mended by a factor `x + x_i` in both. So with `n` syndromes, and `t` the most errors that can be
//! located,
//!
//! ```text
//!   N(x_i) = s(x_i) G(x_i) E(x_i)  for all i       degree of E <= t,  degree of N < t + |L|
//! ```
//!
//! and as `2 t + |L| <= n`, all solutions have the same `N / E`. Euclid's algorithm on the product of
//! all `x + x_i` and the polynomial through the `s(x_i) G(x_i)` finds it, and the roots of `E` are the
//! points of the wrong symbols. This is done for one element of the symbols at which the syndromes
//! do not fit; then it is checked that with those symbols given up the syndromes fit at all others, and
//! if not, done again there.

use std::ops::Range;

use crate::choice::Choices;
use crate::code::Code;
use crate::error::{Role, TooFewSymbols, UseError};
use crate::fields::Field;
use crate::interpolate::Interpolation;
use crate::kernel;
use crate::kernel::engine::{Columns, Finish, Job, part_of};
use crate::operations::Symbol;
use crate::plan::{Syndromes, sorted};
use crate::tower;

impl Code {
    /// Which symbols of a codeword are wrong, though they are not known to be, besides those `erased`, whose
    /// bytes do not matter. Finds up to half as many as there are redundant symbols more than erased
    /// ones. If more are wrong it says so, or, rarely, names others: redundancy cannot tell. With one
    /// redundant symbol to spare it can say that something is wrong, but not what. Allocates some
    /// times as much as the redundant symbols have.
    ///
    /// # Errors
    ///
    /// If there are wrong symbols, and too many to be located; if no symbol is to spare to tell; if
    /// there is not one buffer for each symbol, or they differ in length, or that is no multiple of
    /// [`Field::size_multiple`]; if an erased symbol is out of range or named twice.
    pub fn locate(
        &self,
        choices: impl Into<Choices>,
        symbols: &[&[u8]],
        erased: &[usize],
    ) -> Result<Vec<usize>, UseError> {
        kernel::check_count(Role::Symbol, self.len(), symbols.len())?;
        let size = kernel::check_sizes(Role::Symbol, symbols, Role::Wanted, &[])?;
        self.check_size(size)?;
        let erased = sorted(self, erased)?;
        if erased.len() > self.redundant() {
            let available = self.len() - erased.len();
            return Err(TooFewSymbols { available, needed: self.data() }.into());
        }
        if erased.len() == self.redundant() {
            return Err(UseError::NoSpare { redundant: self.redundant(), erased: erased.len() });
        }
        Search::new(self, choices.into(), symbols, &erased).run()
    }

    /// Locates the wrong symbols of a codeword and computes them anew, and with them the `erased`
    /// ones. Gives the symbols that were wrong.
    ///
    /// # Errors
    ///
    /// As [`locate`](Self::locate). No buffer has changed then.
    pub fn repair(
        &self,
        choices: impl Into<Choices>,
        symbols: &mut [&mut [u8]],
        erased: &[usize],
    ) -> Result<Vec<usize>, UseError> {
        let shared: Vec<&[u8]> = symbols.iter().map(|symbol| &**symbol).collect();
        let choices = choices.into();
        let wrong = self.locate(choices, &shared, erased)?;
        let mut entries: Vec<Symbol<'_>> = symbols
            .iter_mut()
            .enumerate()
            .map(|(symbol, bytes)| {
                if wrong.contains(&symbol) || erased.contains(&symbol) {
                    Symbol::Wanted(bytes)
                } else {
                    Symbol::Available(bytes)
                }
            })
            .collect();
        self.reconstruct(choices, &mut entries)?;
        Ok(wrong)
    }
}

/// A codeword's syndromes, and what was found so far.
struct Search<'a> {
    code: &'a Code,
    choices: Choices,
    /// Data symbols whose bytes mean nothing.
    erased: Vec<usize>,
    /// The redundant rows that are there, and the syndrome of each.
    rows: Vec<usize>,
    syndromes: Vec<Vec<u8>>,
    /// The most wrong symbols that can be located.
    limit: usize,
    /// Symbols found wrong, ascending.
    found: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(code: &'a Code, choices: Choices, symbols: &[&[u8]], erased: &[usize]) -> Self {
        let is_there = |symbol: &usize| erased.binary_search(symbol).is_err();
        let data: Vec<usize> = (0..code.data()).filter(is_there).collect();
        let redundant: Vec<usize> = (code.data()..code.len()).filter(is_there).collect();
        let rows: Vec<usize> = redundant.iter().map(|symbol| symbol - code.data()).collect();
        let mut syndromes: Vec<Vec<u8>> =
            redundant.iter().map(|&symbol| symbols[symbol].to_vec()).collect();
        let sources: Vec<&[u8]> = data.iter().map(|&symbol| symbols[symbol]).collect();
        let columns = Syndromes::new(code, &data, &rows);
        let job = Job { field: code.field(), columns: &columns, sources: &sources };
        let mut into: Vec<&mut [u8]> = syndromes.iter_mut().map(Vec::as_mut_slice).collect();
        kernel::accumulate(&choices, job, &mut into, Finish::Xor);
        let limit = (code.redundant() - erased.len()) / 2;
        let erased = erased.iter().copied().filter(|&symbol| symbol < code.data()).collect();
        Self { code, choices, erased, rows, syndromes, limit, found: Vec::new() }
    }

    fn run(mut self) -> Result<Vec<usize>, UseError> {
        while let Some(place) = self.misfit() {
            let before = self.found.len();
            let wrong = self.wrong_at(place).unwrap_or_default();
            self.found.extend(wrong);
            self.found.sort_unstable();
            self.found.dedup();
            if self.found.len() == before || self.found.len() > self.limit {
                return Err(UseError::NotLocated { limit: self.limit });
            }
        }
        Ok(self.found)
    }

    /// An element at which the syndromes do not fit, even if the symbols found so far may be
    /// anything: named by the place of its (low) byte.
    fn misfit(&self) -> Option<usize> {
        let data = self.code.data();
        let is_found = |symbol: usize| self.found.binary_search(&symbol).is_ok();
        let found_data = self.found.iter().copied().filter(|&symbol| symbol < data);
        let lost: Vec<usize> = self.erased.iter().copied().chain(found_data).collect();
        let trusted: Vec<usize> =
            (0..self.rows.len()).filter(|&n| !is_found(data + self.rows[n])).collect();
        let (checks, others) = trusted.split_at(lost.len());
        let check_rows: Vec<usize> = checks.iter().map(|&n| self.rows[n]).collect();
        let formula = Interpolation::new(self.code, &lost, &check_rows);
        let field = self.code.field();
        let mut elements = Vec::with_capacity(checks.len() * others.len());
        for &row in &check_rows {
            let (share, point) =
                (formula.of_source(self.code, data + row), self.code.redundant_point(row));
            for &other in others {
                let other = self.rows[other];
                let apart = point ^ self.code.redundant_point(other);
                let weight = formula.of_lost(self.code, data + other);
                elements.push(field.multiply(field.divide(share, apart), weight));
            }
        }
        let columns = Expected { elements, count: others.len() };
        let sources: Vec<&[u8]> = checks.iter().map(|&n| &self.syndromes[n][..]).collect();
        let mut rest: Vec<Vec<u8>> = others.iter().map(|&n| self.syndromes[n].clone()).collect();
        let job = Job { field, columns: &columns, sources: &sources };
        let mut into: Vec<&mut [u8]> = rest.iter_mut().map(Vec::as_mut_slice).collect();
        kernel::accumulate(&self.choices, job, &mut into, Finish::Xor);
        let byte = rest.iter().find_map(|rest| rest.iter().position(|&byte| byte != 0))?;
        Some(match field {
            Field::Bytes => byte,
            Field::Tower => {
                byte - byte % tower::BLOCK_SIZE + byte % tower::BLOCK_SIZE % (tower::BLOCK_SIZE / 2)
            }
        })
    }

    /// The symbols that are wrong in one element, if there are not too many.
    fn wrong_at(&self, place: usize) -> Option<Vec<usize>> {
        let (code, field) = (self.code, self.code.field());
        let points: Vec<u16> = self.rows.iter().map(|&row| code.redundant_point(row)).collect();
        let values = self.syndromes.iter().zip(&points).map(|(syndrome, x)| {
            let element = match field {
                Field::Bytes => syndrome[place].into(),
                Field::Tower => {
                    let high = syndrome[place + tower::BLOCK_SIZE / 2];
                    u16::from_le_bytes([syndrome[place], high])
                }
            };
            let erased = self.erased.iter().map(|&column| x ^ code.data_point(column));
            erased.fold(element, |product, factor| field.multiply(product, factor))
        });
        let values: Vec<u16> = values.collect();
        let locator = locator(field, &points, &values, self.limit)?;
        let is_root = |&symbol: &usize| evaluate(field, &locator, code.point(symbol)) == 0;
        let is_there = |symbol: &usize| match symbol.checked_sub(code.data()) {
            None => self.erased.binary_search(symbol).is_err(),
            Some(row) => self.rows.binary_search(&row).is_ok(),
        };
        let wrong: Vec<usize> = (0..code.len()).filter(is_there).filter(is_root).collect();
        (wrong.len() == locator.len() - 1).then_some(wrong)
    }
}

/// What the other syndromes should be, in terms of the checks'.
struct Expected {
    elements: Vec<u16>,
    count: usize,
}

impl Columns for Expected {
    fn columns<'a>(
        &'a self,
        sources: Range<usize>,
        rows: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16] {
        part_of(&self.elements, self.count, sources, rows, scratch)
    }

    fn row_0_is_xor(&self) -> bool {
        false
    }
}

/// `E` of the module's text: a polynomial, its lowest coefficient first and its highest not 0.
fn locator(field: Field, points: &[u16], values: &[u16], limit: usize) -> Option<Vec<u16>> {
    // Newton's form, one point at a time: `base` is 0 at all points so far.
    let (mut through, mut base) = (Vec::new(), vec![1]);
    for (&point, &value) in points.iter().zip(values) {
        let missing = value ^ evaluate(field, &through, point);
        let scale = field.divide(missing, evaluate(field, &base, point));
        add_scaled(field, &mut through, &base, scale, 0);
        let shifted = base.clone();
        base.insert(0, 0);
        add_scaled(field, &mut base, &shifted, point, 0);
    }
    let (mut before, mut remainder) = (base, through);
    let (mut factor_before, mut factor) = (Vec::new(), vec![1]);
    while remainder.len() > points.len() - limit {
        // One division: before = quotient * remainder + rest.
        let top = *remainder.last()?;
        while before.len() >= remainder.len() {
            let shift = before.len() - remainder.len();
            let scale = field.divide(*before.last()?, top);
            add_scaled(field, &mut before, &remainder, scale, shift);
            add_scaled(field, &mut factor_before, &factor, scale, shift);
        }
        std::mem::swap(&mut before, &mut remainder);
        std::mem::swap(&mut factor_before, &mut factor);
    }
    (!factor.is_empty() && factor.len() <= limit + 1).then_some(factor)
}

/// The value of a polynomial.
fn evaluate(field: Field, polynomial: &[u16], at: u16) -> u16 {
    polynomial.iter().rev().fold(0, |sum, &coefficient| field.multiply(sum, at) ^ coefficient)
}

/// `into += scale * x^shift * polynomial`, without zeros at the top.
fn add_scaled(field: Field, into: &mut Vec<u16>, polynomial: &[u16], scale: u16, shift: usize) {
    if into.len() < polynomial.len() + shift {
        into.resize(polynomial.len() + shift, 0);
    }
    for (into, &coefficient) in into[shift..].iter_mut().zip(polynomial) {
        *into ^= field.multiply(scale, coefficient);
    }
    while into.last() == Some(&0) {
        into.pop();
    }
}
