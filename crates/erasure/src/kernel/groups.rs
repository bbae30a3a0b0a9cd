//! The groups of one block: sources of a job, a few at a time, for all rows of a pass.

use std::ops::Range;

use super::engine::{Engine, Job, Mad, ROWS_MAX};
use crate::fields::Field;

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
