//! Plans for reconstruction: what has to be worked out before the first byte, and the run over bytes.
//!
//! With `e` data symbols lost, take the first `e` redundant symbols that are available as *checks*.
//! Each one plus its row's share of the surviving data leaves a *syndrome*, a combination of the lost
//! data alone; the lost symbols are combinations of the syndromes:
//!
//! ```text
//!   syndrome_a = r_a + sum over surviving s of c(a, s) d_s
//!   d_l        = sum over a of w(l, a) syndrome_a
//!   r_i        = sum over surviving s of c(i, s) d_s  +  sum over a of w(i, a) syndrome_a
//! ```
//!
//! Syndromes are sums of the code's own coefficients, so all there is to plan is the few *weights*
//! `w`, by the formula of [`interpolate`](crate::interpolate). The second sum is done on each block of
//! syndromes while it is still in the first-level cache: reconstruction costs what encoding costs,
//! plus `e` multiplications for each byte that is lost. When the syndromes of all
//! lost symbols would not fit there, or the code is short, each wanted symbol is instead summed over all
//! sources.

use std::ops::Range;

use crate::choice::Choices;
use crate::code::Code;
use crate::error::{Role, TooFewSymbols, UseError};
use crate::fields::Field;
use crate::interpolate::Interpolation;
use crate::kernel;
use crate::kernel::engine::{Columns, Finish, Job, Numbers, ROWS_MAX, Solve, Transformed, part_of};
use crate::kernels::Kernel;

/// The most sources of a plan over GF(2^8) that sums each wanted symbol over all of them: up to this number
/// the sums are kept in registers.
const SHORT: usize = 16;

/// How wanted symbols of a codeword are computed from those that are not erased. Made by
/// [`Code::plan`], and good for any number of codewords that lost the same symbols.
#[derive(Clone, Debug)]
pub struct DecodePlan {
    code: Code,
    sources: Vec<usize>,
    wanted: Vec<usize>,
    /// How many of the sources, the first ones, are summed rather than copied or used as checks.
    summed_count: usize,
    /// For each wanted symbol that is available, which of the wanted and which of the sources it is.
    copies: Vec<(usize, usize)>,
    /// Which of the wanted symbols are computed.
    computed: Vec<usize>,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Syndromes {
        /// The rows summed: first those of the checks, then those of computed redundant symbols.
        rows: Vec<usize>,
        /// Which sources the checks are.
        checks: Vec<usize>,
        /// For each computed symbol the row summed for it, none for a data symbol.
        own_rows: Vec<Option<usize>>,
        weights: Weights,
    },
    Direct(Shares),
}

/// For each check a column of one element for each computed symbol.
#[derive(Clone, Debug)]
struct Weights {
    elements: Vec<u16>,
    count: usize,
}

/// The formula's terms, to make elements of as they are needed.
#[derive(Clone, Debug)]
struct Shares {
    code: Code,
    /// For each source that is summed, its point and what depends on it alone.
    sources: Vec<(u16, u16)>,
    /// For each computed symbol, its point and what depends on it alone.
    computed: Vec<(u16, u16)>,
    /// Whether the first computed symbol is the plain xor of the sources.
    row_0_is_xor: bool,
}

impl DecodePlan {
    pub(crate) fn new(code: &Code, erased: &[usize], wanted: &[usize]) -> Result<Self, UseError> {
        let erased = sorted(code, erased)?;
        sorted(code, wanted)?;
        let is_erased = |symbol: &usize| erased.binary_search(symbol).is_ok();
        let computed: Vec<usize> = (0..wanted.len()).filter(|&n| is_erased(&wanted[n])).collect();
        let (mut lost, mut checks, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        if !computed.is_empty() {
            let available = code.len() - erased.len();
            if available < code.data() {
                return Err(TooFewSymbols { available, needed: code.data() }.into());
            }
            let split = erased.partition_point(|&symbol| symbol < code.data());
            lost.extend_from_slice(&erased[..split]);
            let is_there = |row: &usize| !is_erased(&(code.data() + row));
            checks.extend((0..code.redundant()).filter(is_there).take(lost.len()));
            let mut next_lost = lost.iter().copied().peekable();
            sources.extend((0..code.data()).filter(|&s| next_lost.next_if_eq(&s).is_none()));
        }
        let data_count = sources.len();
        sources.extend(checks.iter().map(|row| code.data() + row));
        let copied = wanted.iter().copied().filter(|symbol| !is_erased(symbol));
        sources.extend(copied.filter(|symbol| computed.is_empty() || *symbol >= code.data()));
        sources.sort_unstable();
        sources.dedup();
        let place = |symbol: usize| sources.binary_search(&symbol).ok();
        let copies = (0..wanted.len())
            .filter_map(|n| if is_erased(&wanted[n]) { None } else { Some((n, place(wanted[n])?)) })
            .collect();

        let interpolation = Interpolation::new(code, &lost, &checks);
        let of_computed: Vec<(u16, u16)> = computed
            .iter()
            .map(|&n| (code.point(wanted[n]), interpolation.of_lost(code, wanted[n])))
            .collect();
        let of_source = |symbol| (code.point(symbol), interpolation.of_source(code, symbol));
        let own_rows: Vec<usize> =
            computed.iter().filter_map(|&n| wanted[n].checked_sub(code.data())).collect();
        let (how, summed_count);
        let is_short = code.field() == Field::Bytes && sources.len() <= SHORT;
        let fits = checks.len() + own_rows.len() <= ROWS_MAX && computed.len() <= ROWS_MAX;
        if fits && !is_short {
            let mut weights = Weights { elements: Vec::new(), count: computed.len() };
            for &check in &checks {
                let (point, share) = of_source(code.data() + check);
                for &(computed_point, computed_share) in &of_computed {
                    let element = code.field().divide(share, point ^ computed_point);
                    weights.elements.push(code.field().multiply(element, computed_share));
                }
            }
            let mut own_row = checks.len()..;
            let is_redundant = |&n: &usize| wanted[n] >= code.data();
            how = How::Syndromes {
                checks: checks.iter().filter_map(|row| place(code.data() + row)).collect(),
                own_rows: computed
                    .iter()
                    .map(|n| if is_redundant(n) { own_row.next() } else { None })
                    .collect(),
                rows: checks.iter().copied().chain(own_rows).collect(),
                weights,
            };
            summed_count = data_count;
        } else {
            let shares = sources.iter().map(|&source| {
                // A redundant symbol that is only copied has no share in the others.
                let is_used =
                    source < code.data() || checks.binary_search(&(source - code.data())).is_ok();
                if is_used { of_source(source) } else { (code.point(source), 0) }
            });
            let mut shares = Shares {
                code: code.clone(),
                sources: shares.collect(),
                computed: of_computed,
                row_0_is_xor: false,
            };
            let row_0_is_one = |source| {
                !shares.computed.is_empty()
                    && shares.columns(source..source + 1, 0..1, &mut [0]) == [1]
            };
            shares.row_0_is_xor = (0..sources.len()).all(row_0_is_one);
            how = How::Direct(shares);
            summed_count = sources.len();
        }
        let (code, wanted) = (code.clone(), wanted.to_vec());
        Ok(Self { code, sources, wanted, summed_count, copies, computed, how })
    }

    /// The symbols that are needed, lowest first.
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// The symbols that come out, as they were asked for.
    pub fn wanted(&self) -> &[usize] {
        &self.wanted
    }

    /// Computes the wanted symbols. `sources[n]` are the bytes of symbol `self.sources()[n]`, and
    /// `into[n]` becomes symbol `self.wanted()[n]`, whatever it held before. Allocates nothing, unless
    /// some wanted symbols are copied and of others there are more than 32, or at most 16 sources: then
    /// one list.
    ///
    /// # Errors
    ///
    /// If there is not one buffer for each source and each wanted symbol, or they differ in length, or
    /// that is no multiple of [`Field::size_multiple`](crate::Field::size_multiple).
    pub fn run(
        &self,
        choices: impl Into<Choices>,
        sources: &[&[u8]],
        into: &mut [&mut [u8]],
    ) -> Result<(), UseError> {
        let choices = choices.into();
        kernel::check_count(Role::Source, self.sources.len(), sources.len())?;
        kernel::check_count(Role::Wanted, self.wanted.len(), into.len())?;
        let size = kernel::check_sizes(Role::Source, sources, Role::Wanted, into)?;
        self.code.check_size(size)?;
        for &(wanted, source) in &self.copies {
            into[wanted].copy_from_slice(sources[source]);
        }
        if self.computed.is_empty() {
            return Ok(());
        }
        let (field, summed) = (self.code.field(), &sources[..self.summed_count]);
        match &self.how {
            How::Direct(shares) => {
                let job = Job { field, columns: shares, sources: summed };
                if self.copies.is_empty() {
                    kernel::accumulate(&choices, job, into, Finish::Store);
                    return Ok(());
                }
                let is_computed = |n: &usize| self.computed.binary_search(n).is_ok();
                let mut into: Vec<&mut [u8]> = into
                    .iter_mut()
                    .enumerate()
                    .filter(|(n, _)| is_computed(n))
                    .map(|(_, into)| &mut **into)
                    .collect();
                kernel::accumulate(&choices, job, &mut into, Finish::Store);
            }
            How::Syndromes { rows, checks, own_rows, weights } => {
                let columns = Syndromes::new(&self.code, &self.sources, rows);
                let job = Job { field, columns: &columns, sources: summed };
                let mut check_bytes: [&[u8]; ROWS_MAX] = [&[]; ROWS_MAX];
                for (bytes, &check) in check_bytes.iter_mut().zip(checks) {
                    *bytes = sources[check];
                }
                let solve = Solve {
                    row_count: rows.len(),
                    checks: &check_bytes[..checks.len()],
                    own_rows,
                    weights,
                    computed: &self.computed,
                };
                kernel::solve(&choices, job, &solve, size, into);
            }
        }
        Ok(())
    }
}

/// The symbols, ascending, if they are the code's and no two the same.
pub(crate) fn sorted(code: &Code, symbols: &[usize]) -> Result<Vec<usize>, UseError> {
    let mut sorted = symbols.to_vec();
    sorted.sort_unstable();
    if let Some(&last) = sorted.last() {
        code.check_symbol(last)?;
    }
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(UseError::Twice { symbol: pair[0] }),
        None => Ok(sorted),
    }
}

/// The code's matrix, in the columns of the sources and some rows.
pub(crate) struct Syndromes<'a> {
    code: &'a Code,
    sources: &'a [usize],
    rows: &'a [usize],
    /// Whether each row is the one after the one before.
    are_consecutive: bool,
}

impl<'a> Syndromes<'a> {
    /// For some data symbols as sources.
    pub(crate) fn new(code: &'a Code, sources: &'a [usize], rows: &'a [usize]) -> Self {
        let are_consecutive = rows.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        Self { code, sources, rows, are_consecutive }
    }
}

impl Columns for Syndromes<'_> {
    fn columns<'a>(
        &'a self,
        sources: Range<usize>,
        rows: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16] {
        let rows = &self.rows[rows];
        let columns = &self.sources[sources];
        if rows.len() == self.code.redundant() && self.are_consecutive {
            self.code.copy_columns(columns, scratch);
            return scratch;
        }
        for (elements, &column) in scratch.chunks_exact_mut(rows.len()).zip(columns) {
            if self.are_consecutive {
                self.code.copy_column(column, rows[0]..rows[0] + rows.len(), elements);
                continue;
            }
            for (element, &row) in elements.chunks_exact_mut(1).zip(rows) {
                self.code.copy_column(column, row..row + 1, element);
            }
        }
        scratch
    }

    fn row_0_is_xor(&self) -> bool {
        self.rows.first() == Some(&0)
    }

    fn transform(
        &self,
        kernel: Kernel,
        rows: Range<usize>,
        source_count: usize,
    ) -> Option<Transformed<'_>> {
        let rows = &self.rows[rows];
        let transform = self.code.transform(kernel, *rows.last()?, rows.len(), source_count)?;
        let columns = Numbers::List(&self.sources[..source_count]);
        rows.is_sorted().then_some(Transformed { transform, columns, rows: Numbers::List(rows) })
    }
}

impl Columns for Weights {
    fn columns<'a>(
        &'a self,
        sources: Range<usize>,
        rows: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16] {
        part_of(&self.elements, self.count, sources, rows, scratch)
    }

    fn row_0_is_xor(&self) -> bool {
        self.count > 0 && self.elements.iter().step_by(self.count).all(|&element| element == 1)
    }
}

impl Columns for Shares {
    fn columns<'a>(
        &'a self,
        sources: Range<usize>,
        rows: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16] {
        let field = self.code.field();
        let columns = scratch.chunks_exact_mut(rows.len()).zip(&self.sources[sources]);
        for (elements, &(point, share)) in columns {
            for (element, &(computed_point, computed_share)) in
                elements.iter_mut().zip(&self.computed[rows.clone()])
            {
                let element_of_one = field.divide(share, point ^ computed_point);
                *element = field.multiply(element_of_one, computed_share);
            }
        }
        scratch
    }

    fn row_0_is_xor(&self) -> bool {
        self.row_0_is_xor
    }
}
