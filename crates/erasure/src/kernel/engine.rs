//! What is computed, and what a kernel does of it.
//!
//! A [`Job`] says what is computed from what. An [`Engine`] does the groups of one block, or a coset of a
//! transform; it adds to sums that its caller keeps on the stack, in whatever form suits the engine, and
//! folds them into the symbols at the end of a block.

use std::ops::Range;

use crate::fields::Field;
use crate::transform::{FactorsRef, Transform};

/// The most rows of a pass.
pub(crate) const ROWS_MAX: usize = 32;

/// Bytes of all sums of a pass together: they stay in a first-level cache of 32 KiB with room for
/// the sources of a group.
pub(super) const SUMS_SIZE: usize = 30 * 1024;

/// Some sources of one block: `sum[row] += elements[source][row] * sources[source]`.
pub(super) struct Mad<'a> {
    /// The symbols, at least one, of which the block has `size` bytes from `start` on.
    pub(super) sources: &'a [&'a [u8]],
    pub(super) start: usize,
    pub(super) size: usize,
    /// The symbols that come after these and where their blocks start, to be fetched already.
    pub(super) next: &'a [&'a [u8]],
    pub(super) next_start: usize,
    /// The matrix: source by source, one element for each row.
    pub(super) elements: &'a [u16],
    /// Whether the elements of row 0 are all 1.
    pub(super) row_0_is_xor: bool,
    /// The sums, one every `stride` bytes.
    pub(super) acc: &'a mut [u8],
    /// Bytes from one row's sum to the next one's.
    pub(super) stride: usize,
}

impl Mad<'_> {
    pub(super) fn row_count(&self) -> usize {
        self.elements.len() / self.sources.len()
    }
}

/// A kernel, seen by the driver, which hands it the sources of one block after the other.
pub(super) trait Engine {
    /// The engine does multiples of this number of bytes over GF(2^8); the rest is left to another.
    const STEP: usize;
    /// The most bytes of a block.
    const BLOCK_MAX: usize;
    /// Whether it does the transforms of [`crate::transform`].
    const HAS_TRANSFORM: bool = false;

    /// Sources over GF(2^8).
    fn mad8(mad: Mad<'_>);

    /// Sources over the tower field, of whole blocks of [`BLOCK_SIZE`](crate::tower::BLOCK_SIZE).
    fn mad16(mad: Mad<'_>);

    /// Whether the engine does the whole job at once.
    fn has_few(job: &Job<'_>) -> bool;

    /// The whole job, straight into the symbols. There are at most [`FEW`] sources.
    fn few(few: Few<'_, '_>);

    /// Interpolates a coset and adds its coefficients to the sums.
    fn coset(_: Coset<'_>) {
        unreachable!("the engine has no transform");
    }

    /// Turns sums of coefficients into rows.
    fn evaluate(_: Evaluation<'_>) {
        unreachable!("the engine has no transform");
    }

    /// These bytes will soon be read, and these written.
    fn fetch(_: &[u8]) {}
    fn fetch_to_write(_: &[u8]) {}

    /// Xors one buffer into another of the same length.
    fn xor(into: &mut [u8], from: &[u8]) {
        xor(into, from);
    }

    /// Bytes of a row's sum over the tower field, for a block of symbols.
    fn acc16_size(block_size: usize) -> usize;

    /// Xors a row's sum over the tower field into the bytes of a symbol.
    fn fold16(acc: &[u8], into: &mut [u8]);
}

/// The matrix of a computation.
pub(crate) trait Columns {
    /// The elements of some rows in the columns of some sources, column by column. `scratch` has room
    /// for them.
    fn columns<'a>(
        &'a self,
        sources: Range<usize>,
        rows: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16];

    /// Whether every element of row 0 is 1.
    fn row_0_is_xor(&self) -> bool;

    /// The transform that gives these rows of `source_count` sources, where that takes less work.
    fn transform(&self, _rows: Range<usize>, _source_count: usize) -> Option<Transformed<'_>> {
        None
    }
}

/// Some rows of some columns of a matrix of `row_count` rows, kept column by column.
pub(crate) fn part_of<'a>(
    elements: &'a [u16],
    row_count: usize,
    columns: Range<usize>,
    rows: Range<usize>,
    scratch: &'a mut [u16],
) -> &'a [u16] {
    if rows.len() == row_count {
        return &elements[columns.start * row_count..columns.end * row_count];
    }
    for (part, column) in scratch.chunks_exact_mut(rows.len()).zip(columns) {
        part.copy_from_slice(&elements[column * row_count..][rows.clone()]);
    }
    scratch
}

/// What is computed from what.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) field: Field,
    pub(crate) columns: &'a dyn Columns,
    pub(crate) sources: &'a [&'a [u8]],
}

/// Whether a sum replaces what a symbol held, or is added to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Store,
    Xor,
}

/// The most sources of [`Engine::few`].
pub(super) const FEW: usize = 16;

/// A job of at most [`FEW`] sources, for which nothing needs to be kept between groups.
pub(super) struct Few<'a, 'b> {
    pub(super) job: Job<'a>,
    /// Which bytes of the symbols.
    pub(super) bytes: Range<usize>,
    /// One symbol for each row.
    pub(super) into: &'a mut [&'b mut [u8]],
    pub(super) finish: Finish,
}

/// Rows of a code's matrix and some of its columns, to be had by a transform.
pub(crate) struct Transformed<'a> {
    pub(crate) transform: &'a Transform,
    /// Which column each source is: ascending.
    pub(crate) columns: Numbers<'a>,
    /// Which row of the code each row is: ascending, and within the transform.
    pub(crate) rows: Numbers<'a>,
}

/// Some numbers.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    /// One after the other, from the first.
    From(usize),
    List(&'a [usize]),
}

impl Numbers<'_> {
    pub(super) fn get(self, n: usize) -> usize {
        match self {
            Self::From(first) => first + n,
            Self::List(list) => list[n],
        }
    }
}

/// One coset of one block.
pub(super) struct Coset<'a> {
    pub(super) field: Field,
    /// Binary logarithm of its size.
    pub(super) log: usize,
    pub(super) factors: FactorsRef<'a>,
    /// The symbols, of which the block has `size` bytes from `start` on. Empty ones are zeros.
    pub(super) sources: &'a [&'a [u8]],
    pub(super) start: usize,
    pub(super) size: usize,
    /// As many zeros.
    pub(super) zeros: &'a [u8],
    /// The symbols that come next and where their blocks start, to be fetched already.
    pub(super) next: &'a [&'a [u8]],
    pub(super) next_start: usize,
    /// The sums, laid out as symbols are, one every `stride` bytes.
    pub(super) acc: &'a mut [u8],
    /// Room for as much again.
    pub(super) tile: &'a mut [u8],
    pub(super) stride: usize,
}

/// The end of one block.
pub(super) struct Evaluation<'a> {
    pub(super) field: Field,
    /// Binary logarithm of the size of the transform.
    pub(super) log: usize,
    pub(super) factors: FactorsRef<'a>,
    /// Bytes of the block.
    pub(super) size: usize,
    /// The sums, one every `stride` bytes.
    pub(super) acc: &'a mut [u8],
    pub(super) stride: usize,
}

/// The second half of a reconstruction: what becomes of the sums.
pub(crate) struct Solve<'a> {
    /// Rows summed: first one for each check.
    pub(crate) row_count: usize,
    /// The bytes of the checks.
    pub(crate) checks: &'a [&'a [u8]],
    /// For each computed symbol the row summed for it, if there is one.
    pub(crate) own_rows: &'a [Option<usize>],
    /// For each check a column of one weight for each computed symbol.
    pub(crate) weights: &'a dyn Columns,
    /// Which of the symbols to write are computed.
    pub(crate) computed: &'a [usize],
}

/// The sums of one pass over one block, as the engine keeps them.
pub(super) struct Sums<'a> {
    pub(super) form: Form,
    pub(super) acc: &'a [u8],
    pub(super) stride: usize,
}

#[repr(align(64))]
pub(super) struct Scratch(pub(super) [u8; SUMS_SIZE]);

impl Sums<'_> {
    /// Stores the sum of a row into the bytes of a symbol, or adds it to them.
    pub(super) fn put<E: Engine>(&self, row: usize, into: &mut [u8], finish: Finish) {
        let acc = &self.acc[row * self.stride..][..self.stride];
        match (&self.form, finish) {
            (Form::Symbols, Finish::Store) => into.copy_from_slice(&acc[..into.len()]),
            (Form::Symbols, Finish::Xor) => E::xor(into, &acc[..into.len()]),
            (Form::OfEngine, Finish::Store) => {
                into.fill(0);
                E::fold16(acc, into);
            }
            (Form::OfEngine, Finish::Xor) => E::fold16(acc, into),
        }
    }
}

/// How far a block is.
#[derive(Clone, Copy)]
pub(super) enum Moment<'a> {
    /// Nearly done: what comes next may be fetched.
    Soon,
    /// These are its sums.
    Done(&'a Sums<'a>),
}

/// How sums are laid out.
pub(super) enum Form {
    /// As symbols are.
    Symbols,
    /// As the engine likes them over the tower field.
    OfEngine,
}

/// Xors one buffer into another.
#[inline(always)]
pub(super) fn xor(into: &mut [u8], from: &[u8]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into ^= from;
    }
}
