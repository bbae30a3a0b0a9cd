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
//! That is with all sources [together](Order::Together). Memory prefers long runs, each symbol's 4 KiB
//! from first to last. So with sources [in turn](Order::InTurn) there is one more cut:
//!
//! ```text
//!   passes   at most 32 rows at a time
//!   runs     4 KiB of all symbols, whose sums stay in the second-level cache
//!   chunks   some sources, which are fetched into the second-level cache run after run, in the order
//!            of their addresses, while the chunk before is worked on
//!   blocks   a part of the run, whose sums and sources stay in the first-level cache
//!   groups   as above
//! ```
//!
//! An [`Engine`] does the groups of one block.

use std::ops::Range;

use super::by_transform;
use super::engine::{
    Engine, Few, Finish, Form, Job, Moment, ROWS_MAX, SUMS_IN_TURN, SUMS_SIZE, Solve, Sums,
};
use super::groups::{Part, add_in_turn, add_together};
use super::scratch::Scratch;
use crate::choice::{Choice, Order, RUN, Stores};
use crate::fields::Field;
use crate::tower;

/// Bytes of a block in a pass over `row_count` rows, with all sources together.
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

/// Bytes of the sum of a row over some bytes of the symbols.
fn stride<E: Engine>(field: Field, size: usize) -> usize {
    match field {
        Field::Bytes => size + E::PAD,
        Field::Tower => E::acc16_size(size),
    }
}

/// Computes `rows` of the job for `bytes` of the symbols, a block or a run at a time, and hands each with
/// its sums to `finish`.
pub(super) fn pass<E: Engine>(
    choice: Choice,
    job: Job<'_>,
    rows: Range<usize>,
    bytes: Range<usize>,
    mut finish: impl FnMut(Range<usize>, Moment<'_>),
) {
    assert!(rows.len() <= ROWS_MAX);
    if E::HAS_VECTORS
        && let Some(transformed) =
            job.columns.transform(choice.kernel, rows.clone(), job.sources.len())
    {
        return by_transform::pass::<E>(choice, job, &transformed, rows, bytes, finish);
    }
    let form = match job.field {
        Field::Bytes => Form::Symbols,
        Field::Tower => Form::OfEngine,
    };
    let mut scratch = Scratch::<SUMS_IN_TURN>::new();
    let (mut size, mut block_size) = (RUN, block_size::<E>(job.field, rows.len()));
    let in_turn = match choice.order {
        Order::Together => false,
        Order::InTurn => E::HAS_VECTORS,
    };
    if in_turn {
        while rows.len() * stride::<E>(job.field, size) > SUMS_IN_TURN {
            size /= 2;
        }
        block_size = size;
        while block_size > BLOCK_IN_TURN_MIN && rows.len() * block_size > SUMS_OF_BLOCK {
            block_size /= 2;
        }
    } else {
        size = block_size;
    }
    let stride = stride::<E>(job.field, size);
    for start in bytes.clone().step_by(size) {
        let run = start..bytes.end.min(start + size);
        let acc = scratch.zeros(rows.len() * stride);
        let part = Part { rows: rows.clone(), bytes: run.clone(), acc: &mut *acc, stride };
        if in_turn {
            add_in_turn::<E>(choice, job, part, block_size, |at| match job.field {
                Field::Bytes => at,
                Field::Tower => at / 2,
            });
        } else {
            let soon = || finish(run.clone(), Moment::Soon);
            add_together::<E>(choice, job, 0, part, soon);
        }
        finish(run, Moment::Done(&Sums { form, acc, stride }));
    }
}

/// Bytes of the sums of a block with sources in turn, and the least bytes of one.
const SUMS_OF_BLOCK: usize = 12 * 1024;
const BLOCK_IN_TURN_MIN: usize = 1024;

/// Computes all rows of the job for `bytes` of the symbols.
pub(super) fn accumulate<E: Engine>(
    choice: Choice,
    job: Job<'_>,
    bytes: Range<usize>,
    into: &mut [&mut [u8]],
    finish: Finish,
) {
    let one_by_one = match (choice.order, finish) {
        (Order::Together, _) | (_, Finish::Xor) => false,
        (Order::InTurn, Finish::Store) => E::HAS_VECTORS,
    };
    if !one_by_one && E::has_few(&job) {
        E::few(Few { job, bytes, into, finish, choice });
    } else {
        accumulate_by_passes::<E>(choice, job, bytes, into, finish);
    }
    if choice.stores == Stores::Past {
        E::fence();
    }
}

/// Apart, so that jobs that need no room for sums do not pay for it.
#[inline(never)]
fn accumulate_by_passes<E: Engine>(
    choice: Choice,
    job: Job<'_>,
    bytes: Range<usize>,
    into: &mut [&mut [u8]],
    finish: Finish,
) {
    for first in (0..into.len()).step_by(ROWS_MAX) {
        let rows = first..into.len().min(first + ROWS_MAX);
        pass::<E>(choice, job, rows.clone(), bytes.clone(), |block, moment| {
            for (row, into) in into[rows.clone()].iter_mut().enumerate() {
                let into = &mut into[block.clone()];
                match (moment, choice.stores) {
                    (Moment::Soon, Stores::Cached) => E::fetch_to_write(into),
                    (Moment::Soon, Stores::Past) => {}
                    (Moment::Done(sums), stores) => sums.put::<E>(row, into, finish, stores),
                }
            }
        });
    }
}

/// Computes syndromes, and from them the symbols that `solve` asks for. See [`crate::plan`].
pub(super) fn solve<E: Engine>(
    choice: Choice,
    job: Job<'_>,
    solve: &Solve<'_>,
    bytes: Range<usize>,
    into: &mut [&mut [u8]],
) {
    let check_count = solve.checks.len();
    // Sums of sums are of few sources that are in the cache, and come into the cache.
    let cached = Choice { order: Order::Together, ahead: 0, stores: Stores::Cached, ..choice };
    let mut scratch = Scratch::<SUMS_IN_TURN>::new();
    pass::<E>(choice, job, 0..solve.row_count, bytes, |block, moment| {
        let Moment::Done(sums) = moment else {
            solve.checks.iter().for_each(|check| E::fetch(&check[block.clone()]));
            solve.computed.iter().for_each(|&n| E::fetch_to_write(&into[n][block.clone()]));
            return;
        };
        let size = block.len();
        let syndromes = scratch.zeros(check_count * size);
        let parts = syndromes.chunks_exact_mut(size).zip(solve.checks);
        for (row, (syndrome, check)) in parts.enumerate() {
            syndrome.copy_from_slice(&check[block.clone()]);
            sums.put::<E>(row, syndrome, Finish::Xor, Stores::Cached);
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
                    Some(row) => sums.put::<E>(*row, out, Finish::Store, Stores::Cached),
                    None => out.fill(0),
                }
                outs[out_count] = out;
                out_count += 1;
            }
        }
        if check_count > 0 {
            let sources = &sources[..check_count];
            let job = Job { field: job.field, columns: solve.weights, sources };
            accumulate::<E>(cached, job, 0..size, &mut outs[..out_count], Finish::Xor);
        }
    });
}
