//! The order of work of a [transform]: the counterpart of the driver's groups.
//!
//! As there, the symbols are worked on block by block, and for each block the sums of all rows stay in
//! the first-level cache. A coset takes the place of a group; sources that lie in no coset come last, by
//! the matrix.

use std::ops::Range;

use super::engine::{Coset, Engine, Evaluation, Form, Job, Moment, SUMS_SIZE, Sums, Transformed};
use super::groups::{Part, add_together};
use super::scratch::Scratch;
use crate::choice::Choice;
use crate::tower;
use crate::transform;

/// The most bytes of a block of a transform.
const TRANSFORM_BLOCK_MAX: usize = 1024;

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
    let stride = block_size + E::PAD;
    let mut scratch = [const { Scratch::<SUMS_SIZE>::new() }; 2];
    let [acc, tile] = &mut scratch;
    let (acc, tile) = (acc.zeros(size * stride), tile.zeros(size * stride));
    let zeros = [0; TRANSFORM_BLOCK_MAX];
    let covered = (0..job.sources.len())
        .rev()
        .find(|&n| columns.get(n) < transform.covered)
        .map_or(0, |last| last + 1);
    let mut at = bytes.start;
    let mut gathered = Gathered::new(job, transformed, covered, 0);
    while at < bytes.end {
        let block = at..bytes.end.min(at + block_size);
        acc.fill(0);
        loop {
            let after = gathered.sources.end;
            let is_last = after == covered;
            let (first, next_start) = if is_last { (0, block.end) } else { (after, block.start) };
            let next = Gathered::new(job, transformed, covered, first);
            if is_last {
                finish(block.clone(), Moment::Soon);
            }
            E::coset(Coset {
                field,
                log,
                factors: transform.coset(gathered.coset),
                sources: gathered.symbols(size),
                start: block.start,
                size: block.len(),
                zeros: &zeros[..block.len()],
                next: next.symbols(size),
                next_start,
                acc,
                tile,
                stride,
            });
            gathered = next;
            if is_last {
                break;
            }
        }
        let factors = transform.evaluation();
        E::evaluate(Evaluation { field, log, factors, size: block.len(), acc, stride });
        for row in 0..rows.len() {
            let from = row_numbers.get(row) * stride;
            acc.copy_within(from..from + block.len(), row * stride);
        }
        let part = Part { rows: rows.clone(), bytes: block.clone(), acc: &mut *acc, stride };
        add_together::<E>(choice, job, covered, part, || {});
        finish(block.clone(), Moment::Done(&Sums { form: Form::Symbols, acc, stride }));
        at = block.end;
    }
}
