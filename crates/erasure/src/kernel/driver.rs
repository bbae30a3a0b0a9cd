//! The order of work that all kernels share: which bytes of which symbols, when.
//!
//! Everything comes down to `row[i] = sum of c(i, source) * source`. What decides the speed is not
//! the multiplication but the order of the accesses: a codeword is larger than the nearest caches
//! and its symbols are often exactly 4 KiB apart, where addresses compete for the same few places.
//! So the work is cut in three ways:
//!
//! ```text
//!   passes   at most 32 rows at a time
//!   blocks   a run of bytes so short that the sums of all rows of a pass, packed closely, stay in
//!            the first-level cache
//!   groups   a few sources at a time, for all rows, while the next group is being fetched
//! ```
//!
//! An [`Engine`] does the groups of one block. It adds to sums that the driver keeps on the stack, in
//! whatever form suits the engine, and folds them into the symbols at the end of a block.

use std::ops::Range;

use super::Solve;
use super::by_transform::{self, Coset, Evaluation, Transformed};
use crate::code::Field;
use crate::tower;

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
    /// The engine does multiples of so many bytes over GF(2^8); the rest is left to another.
    const STEP: usize;
    /// The most bytes of a block.
    const BLOCK_MAX: usize;
    /// Whether it does the transforms of [`crate::transform`].
    const HAS_TRANSFORM: bool = false;

    /// Sources over GF(2^8).
    fn mad8(mad: Mad<'_>);

    /// Sources over the tower field, of whole blocks of [`tower::BLOCK_SIZE`].
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

    /// The transform that gives these rows of so many sources, where that takes less work.
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

/// A job of so few sources that nothing needs to be kept between groups.
pub(super) struct Few<'a, 'b> {
    pub(super) job: Job<'a>,
    /// Which bytes of the symbols.
    pub(super) bytes: Range<usize>,
    /// One symbol for each row.
    pub(super) into: &'a mut [&'b mut [u8]],
    pub(super) finish: Finish,
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

/// Bytes of a block of a pass of so many rows.
fn block_size<E: Engine>(field: Field, row_count: usize) -> usize {
    let budget = match field {
        Field::Bytes => 20 * 1024,
        Field::Tower => SUMS_SIZE,
    };
    let mut size = E::BLOCK_MAX;
    while size > tower::BLOCK_SIZE && row_count * stride::<E>(field, size) > budget {
        size /= 2;
    }
    size
}

fn stride<E: Engine>(field: Field, block_size: usize) -> usize {
    match field {
        Field::Bytes => block_size,
        Field::Tower => E::acc16_size(block_size),
    }
}

/// Computes `rows` of the job for `bytes` of the symbols, block by block, and hands each block with
/// its sums to `finish`.
pub(super) fn pass<E: Engine>(
    job: Job<'_>,
    rows: Range<usize>,
    bytes: Range<usize>,
    mut finish: impl FnMut(Range<usize>, Moment<'_>),
) {
    assert!(rows.len() <= ROWS_MAX);
    if E::HAS_TRANSFORM
        && let Some(transformed) = job.columns.transform(rows.clone(), job.sources.len())
    {
        return by_transform::pass::<E>(job, &transformed, rows, bytes, finish);
    }
    let block_size = block_size::<E>(job.field, rows.len());
    let stride = stride::<E>(job.field, block_size);
    let mut scratch = Scratch([0; SUMS_SIZE]);
    let acc = &mut scratch.0[..rows.len() * stride];
    let mut at = bytes.start;
    while at < bytes.end {
        let block = at..bytes.end.min(at + block_size);
        acc.fill(0);
        let soon = || finish(block.clone(), Moment::Soon);
        add_sources::<E>(job, 0, rows.clone(), block.clone(), acc, stride, soon);
        let form = match job.field {
            Field::Bytes => Form::Symbols,
            Field::Tower => Form::OfEngine,
        };
        finish(block.clone(), Moment::Done(&Sums { form, acc, stride }));
        at = block.end;
    }
}

/// Sources whose elements are gathered at a time.
const CHUNK: usize = 64;

/// Adds to the sums of `rows` the shares of the sources from `first` on, in one block. Says when only a
/// few are left.
pub(super) fn add_sources<E: Engine>(
    job: Job<'_>,
    first: usize,
    rows: Range<usize>,
    block: Range<usize>,
    acc: &mut [u8],
    stride: usize,
    mut soon: impl FnMut(),
) {
    let row_0_is_xor = rows.start == 0 && job.columns.row_0_is_xor();
    let mut scratch = [0; CHUNK * ROWS_MAX];
    for first in (first..job.sources.len()).step_by(CHUNK) {
        let last = job.sources.len().min(first + CHUNK);
        let scratch = &mut scratch[..(last - first) * rows.len()];
        // After the last source comes the first one of the next block.
        let (next, next_start) = match &job.sources[last..] {
            [] => {
                soon();
                (job.sources, block.end)
            }
            next => (next, block.start),
        };
        let mad = Mad {
            sources: &job.sources[first..last],
            start: block.start,
            size: block.len(),
            next,
            next_start,
            elements: job.columns.columns(first..last, rows.clone(), scratch),
            row_0_is_xor,
            acc,
            stride,
        };
        match job.field {
            Field::Bytes => E::mad8(mad),
            Field::Tower => E::mad16(mad),
        }
    }
}

/// Computes all rows of the job for `bytes` of the symbols.
pub(super) fn accumulate<E: Engine>(
    job: Job<'_>,
    bytes: Range<usize>,
    into: &mut [&mut [u8]],
    finish: Finish,
) {
    if E::has_few(&job) {
        E::few(Few { job, bytes, into, finish });
        return;
    }
    for first in (0..into.len()).step_by(ROWS_MAX) {
        let rows = first..into.len().min(first + ROWS_MAX);
        pass::<E>(job, rows.clone(), bytes.clone(), |block, moment| {
            for (row, into) in into[rows.clone()].iter_mut().enumerate() {
                let into = &mut into[block.clone()];
                match moment {
                    Moment::Soon => E::fetch_to_write(into),
                    Moment::Done(sums) => sums.put::<E>(row, into, finish),
                }
            }
        });
    }
}

/// Computes syndromes, and from them the symbols that `solve` asks for. See [`crate::plan`].
pub(super) fn solve<E: Engine>(
    job: Job<'_>,
    solve: &Solve<'_>,
    bytes: Range<usize>,
    into: &mut [&mut [u8]],
) {
    let check_count = solve.checks.len();
    let mut scratch = Scratch([0; SUMS_SIZE]);
    pass::<E>(job, 0..solve.row_count, bytes, |block, moment| {
        let Moment::Done(sums) = moment else {
            solve.checks.iter().for_each(|check| E::fetch(&check[block.clone()]));
            solve.computed.iter().for_each(|&n| E::fetch_to_write(&into[n][block.clone()]));
            return;
        };
        let size = block.len();
        let (syndromes, _) = scratch.0.split_at_mut(check_count * size);
        let parts = syndromes.chunks_exact_mut(size).zip(solve.checks);
        for (row, (syndrome, check)) in parts.enumerate() {
            syndrome.copy_from_slice(&check[block.clone()]);
            sums.put::<E>(row, syndrome, Finish::Xor);
        }
        let mut sources: [&[u8]; ROWS_MAX] = [&[]; ROWS_MAX];
        for (source, syndrome) in sources.iter_mut().zip(syndromes.chunks_exact(size)) {
            *source = syndrome;
        }
        let mut outs: [&mut [u8]; ROWS_MAX] = std::array::from_fn(|_| &mut [][..]);
        let mut computed = solve.computed.iter().zip(solve.own_rows).peekable();
        let mut out_count = 0;
        for (n, into) in into.iter_mut().enumerate() {
            if let Some((_, own_row)) = computed.next_if(|(computed, _)| **computed == n) {
                let out = &mut into[block.clone()];
                match own_row {
                    Some(row) => sums.put::<E>(*row, out, Finish::Store),
                    None => out.fill(0),
                }
                outs[out_count] = out;
                out_count += 1;
            }
        }
        if check_count > 0 {
            let sources = &sources[..check_count];
            let job = Job { field: job.field, columns: solve.weights, sources };
            accumulate::<E>(job, 0..size, &mut outs[..out_count], Finish::Xor);
        }
    });
}
