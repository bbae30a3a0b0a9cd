//! What is computed, and what a kernel does of it.
//!
//! A [`Job`] says what is computed from what. An [`Engine`] does the groups of one block, or a coset of a
//! transform; it adds to sums that its caller keeps on the stack, in whatever form suits the engine, and
//! folds them into the symbols at the end of a block.

use std::ops::Range;

use super::scratch::Scratch;
use crate::choice::{Choice, RUN, Stores, Width};
use crate::fields::Field;
use crate::kernels::Kernel;
use crate::transform::{FactorsRef, Interpolation, Transform};

/// The most rows of a pass.
pub(crate) const ROWS_MAX: usize = 32;

/// Bytes of all sums of a pass together with sources together: they stay in a first-level cache of
/// 32 KiB with room for the sources of a group.
pub(super) const SUMS_SIZE: usize = 30 * 1024;

/// The same with sources in turn: those of a block are in the first-level cache, all in the second.
pub(super) const SUMS_IN_TURN: usize = 64 * 1024;

/// The most numbers of an engine's factor.
pub(super) const FACTOR_LEN_MAX: usize = 3;

/// Some sources of one block: `sum[row] += elements[source][row] * sources[source]`.
pub(super) struct Mad<'a> {
    /// The symbols, at least one, of which the block has `size` bytes from `start` on.
    pub(super) sources: &'a [&'a [u8]],
    pub(super) start: usize,
    pub(super) size: usize,
    /// What is to be fetched meanwhile.
    pub(super) ahead: Ahead<'a>,
    /// How much of a source is in registers at a time.
    pub(super) width: Width,
    /// The matrix: source by source, one element for each row.
    pub(super) elements: &'a [u16],
    /// The same as the engine's [`factors`](Engine::factors).
    pub(super) factors: &'a [u64],
    /// Whether the elements of row 0 are all 1.
    pub(super) row_0_is_xor: bool,
    /// The sums, one every `stride` bytes.
    pub(super) acc: &'a mut [u8],
    /// Bytes from one row's sum to the next one's.
    pub(super) stride: usize,
}

/// What is fetched while some sources are worked on.
#[derive(Clone, Copy)]
pub(super) enum Ahead<'a> {
    Nothing,
    /// Of the symbols that come next as much as is worked on of these, from `start` on.
    Next {
        sources: &'a [&'a [u8]],
        start: usize,
    },
    /// As many bytes as are worked on, in the order in which they lie in the symbols.
    Runs(Runs<'a>),
}

/// Bytes of symbols in the order in which they lie there, as runs as long as a block.
#[derive(Clone, Copy)]
pub(super) struct Runs<'a> {
    pub(super) sources: &'a [&'a [u8]],
    /// Where the runs of a symbol start.
    pub(super) start: usize,
    /// Bytes of a run.
    pub(super) size: usize,
    /// Runs of a symbol.
    pub(super) per_source: usize,
    /// The first run to be fetched, counted from that of the first symbol.
    pub(super) first: usize,
}

impl Runs<'_> {
    /// Where a run starts, counted from the first to be fetched. Past the last symbol those of the first
    /// ones follow, with the bytes that come after.
    pub(super) fn address(&self, n: usize) -> *const u8 {
        let run = self.first + n;
        let (source, run) = (run / self.per_source, run % self.per_source);
        let count = self.sources.len();
        let start = self.start + run * self.size;
        match self.sources.get(source) {
            Some(source) => source.as_ptr().wrapping_add(start),
            None => {
                let after = self.start + (self.per_source + run) * self.size;
                self.sources[source % count].as_ptr().wrapping_add(after)
            }
        }
    }
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
    /// Whether it does the transforms of [`crate::transform`], and sources in turn.
    const HAS_VECTORS: bool = false;
    /// Bytes between the sums of two rows, and between the planes of one: so that what is worked on at a
    /// time does not compete for the same few places of the cache.
    const PAD: usize = 0;

    /// Numbers of a factor that the engine makes of an element.
    fn factor_len(_: Field) -> usize {
        0
    }

    /// Elements in the form in which the engine multiplies by them.
    fn factors(_: Field, _elements: &[u16], _into: &mut [u64]) {}

    /// Sources over GF(2^8).
    fn mad8(mad: Mad<'_>);

    /// Sources over the tower field, of whole blocks of [`BLOCK_SIZE`](crate::tower::BLOCK_SIZE).
    fn mad16(mad: Mad<'_>);

    /// Whether the engine does the whole job at once.
    fn has_few(job: &Job<'_>) -> bool;

    /// The whole job, straight into the symbols. There are at most [`FEW`](crate::choice::FEW) sources.
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

    /// These bytes will be read, but not at once.
    fn fetch_far(_: &[u8]) {}

    /// Copies one buffer to another of the same length, past the cache if it can.
    fn copy_past(into: &mut [u8], from: &[u8]) {
        into.copy_from_slice(from);
    }

    /// After the last copy past the cache: other threads are not to see what was there before.
    fn fence() {}

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

    /// The transform that gives these rows of `source_count` sources, where that takes the kernel less work.
    fn transform(
        &self,
        _kernel: Kernel,
        _rows: Range<usize>,
        _source_count: usize,
    ) -> Option<Transformed<'_>> {
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

/// A job of at most [`FEW`](crate::choice::FEW) sources, for which nothing needs to be kept between groups.
pub(super) struct Few<'a, 'b> {
    pub(super) job: Job<'a>,
    /// Which bytes of the symbols.
    pub(super) bytes: Range<usize>,
    /// One symbol for each row.
    pub(super) into: &'a mut [&'b mut [u8]],
    pub(super) finish: Finish,
    pub(super) choice: Choice,
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
    pub(super) interpolation: Interpolation<'a>,
    /// The symbols, of which the block has `size` bytes from `start` on. Empty ones are zeros.
    pub(super) sources: &'a [&'a [u8]],
    pub(super) start: usize,
    pub(super) size: usize,
    /// As many zeros.
    pub(super) zeros: &'a [u8],
    /// What is to be fetched meanwhile.
    pub(super) ahead: Ahead<'a>,
    /// The sums of coefficients, laid out as symbols are, one every `stride` bytes, and after them the plain
    /// sum of all symbols.
    pub(super) acc: &'a mut [u8],
    pub(super) stride: usize,
    /// Room for as much again, one every `tile_stride` bytes.
    pub(super) tile: &'a mut [u8],
    pub(super) tile_stride: usize,
}

/// The end of one block.
pub(super) struct Evaluation<'a> {
    /// Binary logarithm of the size of the transform.
    pub(super) log: usize,
    pub(super) factors: FactorsRef<'a>,
    /// One more than the highest row that is wanted.
    pub(super) row_count: usize,
    /// Bytes of the block.
    pub(super) size: usize,
    /// The sums as those of a [`Coset`], one every `stride` bytes.
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

impl Sums<'_> {
    /// Stores the sum of a row into the bytes of a symbol, or adds it to them. Past the cache only what is
    /// stored.
    pub(super) fn put<E: Engine>(
        &self,
        row: usize,
        into: &mut [u8],
        finish: Finish,
        stores: Stores,
    ) {
        let acc = &self.acc[row * self.stride..][..self.stride];
        match (&self.form, finish, stores) {
            (Form::Symbols, Finish::Store, Stores::Past) => E::copy_past(into, &acc[..into.len()]),
            (Form::Symbols, Finish::Store, Stores::Cached) => {
                into.copy_from_slice(&acc[..into.len()]);
            }
            (Form::Symbols, Finish::Xor, _) => E::xor(into, &acc[..into.len()]),
            (Form::OfEngine, Finish::Store, Stores::Past) => {
                let mut scratch = Scratch::<RUN>::new();
                let symbol = scratch.zeros(into.len());
                E::fold16(acc, symbol);
                E::copy_past(into, symbol);
            }
            (Form::OfEngine, Finish::Store, Stores::Cached) => {
                into.fill(0);
                E::fold16(acc, into);
            }
            (Form::OfEngine, Finish::Xor, _) => E::fold16(acc, into),
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
#[derive(Clone, Copy)]
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
