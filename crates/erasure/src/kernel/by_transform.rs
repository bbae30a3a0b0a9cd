//! The order of work of a [transform]: the counterpart of the driver's groups.
//!
//! As there, the symbols are worked on block by block, and for each block the sums of all rows stay in
//! the first-level cache. A coset takes the place of a group; sources that lie in no coset come last, by
//! the matrix. With sources in turn a coset takes the place of a chunk: all of its run goes through the
//! transform, block by block, before the next one's.

use std::ops::Range;

use super::engine::{
    Ahead, Coset, Engine, Evaluation, Form, Job, Moment, Runs, SUMS_SIZE, Sums, Transformed,
};
use super::groups::{Part, add_together};
use super::scratch::Scratch;
use crate::choice::{Choice, Order, RUN};
use crate::tower;
use crate::transform;

/// The most bytes of a block of a transform.
const TRANSFORM_BLOCK_MAX: usize = 1024;

/// Bytes of all sums with sources in turn: they stay in the second-level cache.
const TRANSFORM_SUMS_IN_TURN: usize = 80 * 1024;

/// Symbols of the largest transform.
const COSET_MAX: usize = 1 << transform::LOG_MAX;

/// The sources that lie in one coset.
struct Gathered<'a> {
    /// All symbols of the coset, if they are among the sources.
    whole: Option<&'a [&'a [u8]]>,
    /// Otherwise those that are, each in its place.
    some: [&'a [u8]; COSET_MAX],
    coset: usize,
    sources: Range<usize>,
}

impl<'a> Gathered<'a> {
    /// The coset that source `first` lies in. Sources from `covered` on lie in none.
    fn new(job: Job<'a>, transformed: &Transformed<'_>, covered: usize, first: usize) -> Self {
        let Transformed { transform, columns, .. } = transformed;
        let size = 1 << transform.log;
        let (column, last) = (columns.get(first), first + size - 1);
        let (coset, mut some) = (column / size, [&[][..]; COSET_MAX]);
        if column.is_multiple_of(size) && last < covered && columns.get(last) == column + size - 1 {
            let sources = first..last + 1;
            return Self { whole: Some(&job.sources[sources.clone()]), some, coset, sources };
        }
        let mut end = first;
        while end < covered && columns.get(end) / size == coset {
            some[columns.get(end) % size] = job.sources[end];
            end += 1;
        }
        Self { whole: None, some, coset, sources: first..end }
    }

    /// The symbols; of those that are not among the sources, nothing.
    fn symbols(&self, size: usize) -> &[&'a [u8]] {
        self.whole.unwrap_or(&self.some[..size])
    }
}

/// [`driver::pass`](super::driver::pass) by a transform.
pub(super) fn pass<E: Engine>(
    choice: Choice,
    job: Job<'_>,
    transformed: &Transformed<'_>,
    rows: Range<usize>,
    bytes: Range<usize>,
    mut finish: impl FnMut(Range<usize>, Moment<'_>),
) {
    let Transformed { transform, columns, rows: row_numbers } = transformed;
    let (field, log, size) = (transform.field, transform.log, 1 << transform.log);
    let room = (SUMS_SIZE / size - E::PAD) / tower::BLOCK_SIZE * tower::BLOCK_SIZE;
    let block_size = TRANSFORM_BLOCK_MAX.min(room);
    let run_size = match choice.order {
        Order::Together => block_size,
        Order::InTurn => {
            let mut run_size = RUN;
            while (size + 1) * (run_size + E::PAD) > TRANSFORM_SUMS_IN_TURN {
                run_size /= 2;
            }
            run_size
        }
    };
    let (stride, tile_stride) = (run_size + E::PAD, block_size + E::PAD);
    let mut scratch = Scratch::<TRANSFORM_SUMS_IN_TURN>::new();
    let mut tile = Scratch::<SUMS_SIZE>::new();
    let tile = tile.zeros(size * tile_stride);
    let zeros = [0; TRANSFORM_BLOCK_MAX];
    let covered = (0..job.sources.len())
        .rev()
        .find(|&n| columns.get(n) < transform.covered)
        .map_or(0, |last| last + 1);
    // Few symbols lie in no coset, and a transform is only taken for more sources (`Code::transform`).
    assert!(covered > 0, "some source lies in a coset");
    let mut gathered = Gathered::new(job, transformed, covered, 0);
    if choice.order == Order::InTurn && choice.ahead > 0 {
        let first = bytes.start..bytes.end.min(bytes.start + run_size);
        job.sources[gathered.sources.clone()].iter().for_each(|s| E::fetch_far(&s[first.clone()]));
    }
    for start in bytes.clone().step_by(run_size) {
        let run = start..bytes.end.min(start + run_size);
        let per_source = run.len().div_ceil(block_size);
        // The last is the plain sum.
        let acc = scratch.zeros((size + 1) * stride);
        let blocks = || run.clone().step_by(block_size).map(|at| at..run.end.min(at + block_size));
        loop {
            let after = gathered.sources.end;
            let is_last = after == covered;
            let (first, next_start) = if is_last { (0, run.end) } else { (after, run.start) };
            let next = Gathered::new(job, transformed, covered, first);
            if is_last && choice.order == Order::Together {
                finish(run.clone(), Moment::Soon);
            }
            for (n, block) in blocks().enumerate() {
                let ahead = match (choice.ahead, choice.order) {
                    (0, _) => Ahead::Nothing,
                    (_, Order::Together) => {
                        Ahead::Next { sources: next.symbols(size), start: next_start }
                    }
                    (_, Order::InTurn) => Ahead::Runs(Runs {
                        sources: job.sources,
                        start: run.start,
                        size: block_size,
                        per_source,
                        first: after * per_source + n * size,
                    }),
                };
                E::coset(Coset {
                    field,
                    log,
                    interpolation: transform.coset(gathered.coset),
                    sources: gathered.symbols(size),
                    start: block.start,
                    size: block.len(),
                    zeros: &zeros[..block.len()],
                    ahead,
                    acc: &mut acc[block.start - run.start..],
                    stride,
                    tile: &mut *tile,
                    tile_stride,
                });
            }
            gathered = next;
            if is_last {
                break;
            }
        }
        let factors = transform.evaluation();
        let row_count = row_numbers.get(rows.len() - 1) + 1;
        for block in blocks() {
            let acc = &mut acc[block.start - run.start..];
            let size = block.len();
            E::evaluate(Evaluation { log, factors, row_count, size, acc, stride });
        }
        for row in 0..rows.len() {
            let number = row_numbers.get(row);
            if number != row {
                acc.copy_within(number * stride..number * stride + run.len(), row * stride);
            }
        }
        let part = Part { rows: rows.clone(), bytes: run.clone(), acc: &mut *acc, stride };
        add_together::<E>(choice, job, covered, part, || {});
        finish(run.clone(), Moment::Done(&Sums { form: Form::Symbols, acc, stride }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choices;
    use crate::code::Code;
    use crate::kernel::accumulate;
    use crate::kernel::engine::Finish;
    use crate::kernels::Kernel;
    use crate::operations::OneWay;

    /// Every size over both fields, with multipliers in GF(2^8) and outside, whatever pays on this machine.
    #[test]
    fn every_transform_of_every_kernel_gives_what_the_definition_gives() {
        for (data, redundant) in [
            (40, 3),
            (70, 7),
            (230, 14),
            (200, 24),
            (300, 4),
            (1_100, 4),
            (700, 6),
            (1_030, 12),
            (600, 20),
        ] {
            let code = Code::new(data, redundant).unwrap();
            let size = 128 + 64 * usize::from(code.field() == crate::fields::Field::Bytes);
            let byte = |at: usize| (at.wrapping_mul(0x9e37_79b9) >> 11) as u8;
            let bytes: Vec<u8> = (0..data * size).map(byte).collect();
            let sources: Vec<&[u8]> = bytes.chunks_exact(size).collect();
            let result = |kernel: Kernel| {
                let mut rows = vec![vec![0x55; size]; redundant];
                let mut into: Vec<&mut [u8]> = rows.iter_mut().map(Vec::as_mut_slice).collect();
                let columns = OneWay { code: &code, by_transform: true };
                let job = Job { field: code.field(), columns: &columns, sources: &sources };
                accumulate(&Choices::from(kernel), job, &mut into, Finish::Store);
                rows
            };
            let naive = result(Kernel::Naive);
            for kernel in Kernel::available() {
                assert!(result(kernel) == naive, "{kernel}: {code:?}");
            }
        }
    }
}
