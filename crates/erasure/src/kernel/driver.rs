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
//! An [`Engine`] does one group of one block. It adds to sums that the driver keeps on the stack, in
//! whatever form suits the engine, and folds them into the symbols at the end of a block.

use std::ops::Range;

use super::Solve;
use crate::code::Field;
use crate::tower;

/// The most rows of a pass.
pub(crate) const ROWS_MAX: usize = 32;

/// Bytes of all sums of a pass together: they stay in a first-level cache of 32 KiB with room for
/// the sources of a group.
const SUMS_SIZE: usize = 30 * 1024;

/// One group of one block: `sum[row] += columns[source][row] * sources[source]`.
pub(super) struct Mad<'a> {
    /// The bytes of the group's sources: at least one, all of one length.
    pub(super) sources: &'a [&'a [u8]],
    /// The bytes that come next, to be fetched already. As many as there are sources, or none.
    pub(super) next: &'a [&'a [u8]],
    /// For each source one element for each row.
    pub(super) columns: &'a [&'a [u16]],
    /// Whether the elements of row 0 are all 1.
    pub(super) row_0_is_xor: bool,
    /// The sums, one every `stride` bytes.
    pub(super) acc: &'a mut [u8],
    /// Bytes from one row's sum to the next one's.
    pub(super) stride: usize,
}

/// A kernel, seen by the driver, which hands it groups of `GROUP` sources, a parameter of its own.
pub(super) trait Engine {
    /// The engine does multiples of so many bytes over GF(2^8); the rest is left to another.
    const STEP: usize;
    /// The most bytes of a block.
    const BLOCK_MAX: usize;

    /// A group over GF(2^8).
    fn mad8(mad: Mad<'_>);

    /// A group over the tower field, of whole blocks of [`tower::BLOCK_SIZE`].
    fn mad16(mad: Mad<'_>);

    /// Whether the engine does the whole job at once.
    fn has_few(job: &Job<'_>) -> bool;

    /// The whole job, straight into the symbols. There are at most [`FEW`] sources.
    fn few(few: Few<'_, '_>);

    /// Bytes of a row's sum over the tower field, for a block of symbols.
    fn acc16_size(block_size: usize) -> usize;

    /// Xors a row's sum over the tower field into the bytes of a symbol.
    fn fold16(acc: &[u8], into: &mut [u8]);
}

/// The matrix of a computation.
pub(crate) trait Columns {
    /// The elements of some rows in the column of a source. `scratch` is as long as `rows`.
    fn column<'a>(&'a self, source: usize, rows: Range<usize>, scratch: &'a mut [u16])
    -> &'a [u16];

    /// Whether every element of row 0 is 1.
    fn row_0_is_xor(&self) -> bool;
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
    field: Field,
    acc: &'a [u8],
    stride: usize,
}

#[repr(align(64))]
struct Scratch([u8; SUMS_SIZE]);

impl Sums<'_> {
    /// Xors the sum of a row into the bytes of a symbol.
    pub(super) fn xor_into<E: Engine>(&self, row: usize, into: &mut [u8]) {
        let acc = &self.acc[row * self.stride..][..self.stride];
        match self.field {
            Field::Bytes => xor(into, &acc[..into.len()]),
            Field::Tower => E::fold16(acc, into),
        }
    }
}

/// Xors one buffer into another.
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
pub(super) fn pass<E: Engine, const GROUP: usize>(
    job: Job<'_>,
    rows: Range<usize>,
    bytes: Range<usize>,
    mut finish: impl FnMut(Range<usize>, &Sums<'_>),
) {
    assert!(rows.len() <= ROWS_MAX);
    let block_size = block_size::<E>(job.field, rows.len());
    let stride = stride::<E>(job.field, block_size);
    let mut scratch = Scratch([0; SUMS_SIZE]);
    let acc = &mut scratch.0[..rows.len() * stride];
    let row_0_is_xor = rows.start == 0 && job.columns.row_0_is_xor();
    let mut elements = [[0; ROWS_MAX]; GROUP];
    let mut at = bytes.start;
    while at < bytes.end {
        let block = at..bytes.end.min(at + block_size);
        acc.fill(0);
        for (group_idx, group) in job.sources.chunks(GROUP).enumerate() {
            let first = group_idx * GROUP;
            let mut sources: [&[u8]; GROUP] = [&[]; GROUP];
            let mut next: [&[u8]; GROUP] = [&[]; GROUP];
            let mut columns: [&[u16]; GROUP] = [&[]; GROUP];
            for (n, (source, elements)) in group.iter().zip(&mut elements).enumerate() {
                sources[n] = &source[block.clone()];
                columns[n] =
                    job.columns.column(first + n, rows.clone(), &mut elements[..rows.len()]);
            }
            // After the last group comes the first one of the next block.
            let mut next_count = 0;
            let (next_group, next_start) = match job.sources.get(first + GROUP..) {
                Some(group) if !group.is_empty() => (group, block.start),
                _ => (job.sources, block.end),
            };
            let next_end = bytes.end.min(next_start + block.len());
            for source in next_group.iter().take(GROUP) {
                next[next_count] = &source[next_start..next_end];
                next_count += 1;
            }
            E::run(
                job.field,
                Mad {
                    sources: &sources[..group.len()],
                    next: &next[..next_count],
                    columns: &columns[..group.len()],
                    row_0_is_xor,
                    acc,
                    stride,
                },
            );
        }
        finish(block.clone(), &Sums { field: job.field, acc, stride });
        at = block.end;
    }
}

trait Run: Engine {
    #[inline(always)]
    fn run(field: Field, mad: Mad<'_>) {
        match field {
            Field::Bytes => Self::mad8(mad),
            Field::Tower => Self::mad16(mad),
        }
    }
}

impl<E: Engine> Run for E {}

/// Computes all rows of the job for `bytes` of the symbols.
pub(super) fn accumulate<E: Engine, const GROUP: usize>(
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
        pass::<E, GROUP>(job, rows.clone(), bytes.clone(), |block, sums| {
            for (row, into) in into[rows.clone()].iter_mut().enumerate() {
                let out = &mut into[block.clone()];
                if finish == Finish::Store {
                    out.fill(0);
                }
                sums.xor_into::<E>(row, out);
            }
        });
    }
}

/// Computes syndromes, and from them the symbols that `solve` asks for. See [`crate::plan`].
pub(super) fn solve<E: Engine, const GROUP: usize>(
    job: Job<'_>,
    solve: &Solve<'_>,
    bytes: Range<usize>,
    into: &mut [&mut [u8]],
) {
    let check_count = solve.checks.len();
    let mut scratch = Scratch([0; SUMS_SIZE]);
    pass::<E, GROUP>(job, 0..solve.row_count, bytes, |block, sums| {
        let size = block.len();
        let (syndromes, _) = scratch.0.split_at_mut(check_count * size);
        let parts = syndromes.chunks_exact_mut(size).zip(solve.checks);
        for (row, (syndrome, check)) in parts.enumerate() {
            syndrome.copy_from_slice(&check[block.clone()]);
            sums.xor_into::<E>(row, syndrome);
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
                out.fill(0);
                if let Some(row) = own_row {
                    sums.xor_into::<E>(*row, out);
                }
                outs[out_count] = out;
                out_count += 1;
            }
        }
        if check_count > 0 {
            let sources = &sources[..check_count];
            let job = Job { field: job.field, columns: solve.weights, sources };
            accumulate::<E, GROUP>(job, 0..size, &mut outs[..out_count], Finish::Xor);
        }
    });
}
