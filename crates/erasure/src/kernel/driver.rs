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
//! An [`Engine`] does the groups of one block.

use std::ops::Range;

use super::by_transform;
use super::engine::{
    Engine, Few, Finish, Form, Job, Moment, ROWS_MAX, SUMS_SIZE, Scratch, Solve, Sums,
};
use super::groups::add_sources;
use crate::fields::Field;
use crate::tower;

/// Bytes of a block in a pass over `row_count` rows.
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
