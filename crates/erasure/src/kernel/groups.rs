//! The groups of one block: sources of a job, a few at a time, for all rows of a pass.

use std::ops::Range;

use super::engine::{Ahead, Engine, FACTOR_LEN_MAX, Job, Mad, ROWS_MAX, Runs};
use super::scratch::Scratch;
use crate::choice::{Choice, RUN};
use crate::fields::Field;

/// Sources whose elements are gathered at a time.
const CHUNK: usize = 64;

/// Some bytes of all symbols, and their sums.
pub(super) struct Part<'a> {
    pub(super) rows: Range<usize>,
    pub(super) bytes: Range<usize>,
    pub(super) acc: &'a mut [u8],
    /// Bytes from one row's sum to the next one's.
    pub(super) stride: usize,
}

/// Adds to the sums the shares of the sources from `first` on, in one block. Says when only a few are
/// left.
pub(super) fn add_together<E: Engine>(
    choice: Choice,
    job: Job<'_>,
    first: usize,
    block: Part<'_>,
    mut soon: impl FnMut(),
) {
    let Part { rows, bytes, acc, stride } = block;
    let row_0_is_xor = rows.start == 0 && job.columns.row_0_is_xor();
    let mut scratch = [0; CHUNK * ROWS_MAX];
    let mut factors = Factors::new();
    for first in (first..job.sources.len()).step_by(CHUNK) {
        let last = job.sources.len().min(first + CHUNK);
        let scratch = &mut scratch[..(last - first) * rows.len()];
        let elements = job.columns.columns(first..last, rows.clone(), scratch);
        // After the last source comes the first one of the next block.
        let next = match &job.sources[last..] {
            [] => {
                soon();
                Ahead::Next { sources: job.sources, start: bytes.end }
            }
            sources => Ahead::Next { sources, start: bytes.start },
        };
        mad::<E>(
            job.field,
            Mad {
                sources: &job.sources[first..last],
                start: bytes.start,
                size: bytes.len(),
                ahead: if choice.ahead == 0 { Ahead::Nothing } else { next },
                width: choice.width,
                elements,
                factors: factors.of::<E>(job.field, elements),
                row_0_is_xor,
                acc: &mut *acc,
                stride,
            },
        );
    }
}

/// Adds to the sums the shares of all sources, some at a time in all blocks of `part`, and has the next
/// ones fetched in the order of their addresses meanwhile. `acc_offset` says where the sums of a block
/// begin.
pub(super) fn add_in_turn<E: Engine>(
    choice: Choice,
    job: Job<'_>,
    part: Part<'_>,
    block_size: usize,
    acc_offset: impl Fn(usize) -> usize,
) {
    let Part { rows, bytes, acc, stride } = part;
    let row_0_is_xor = rows.start == 0 && job.columns.row_0_is_xor();
    let count = job.sources.len();
    let chunk = (choice.ahead / RUN).clamp(1, CHUNK);
    let per_source = bytes.len().div_ceil(block_size);
    let mut scratch = [0; CHUNK * ROWS_MAX];
    let mut factors = Factors::new();
    if choice.ahead > 0 && bytes.start == 0 {
        for source in &job.sources[..count.min(chunk)] {
            E::fetch_far(&source[bytes.clone()]);
        }
    }
    for first in (0..count).step_by(chunk) {
        let last = count.min(first + chunk);
        let scratch = &mut scratch[..(last - first) * rows.len()];
        let elements = job.columns.columns(first..last, rows.clone(), scratch);
        let factors = factors.of::<E>(job.field, elements);
        for (n, start) in bytes.clone().step_by(block_size).enumerate() {
            let runs = Runs {
                sources: job.sources,
                start: bytes.start,
                size: block_size,
                per_source,
                first: last * per_source + n * (last - first),
            };
            mad::<E>(
                job.field,
                Mad {
                    sources: &job.sources[first..last],
                    start,
                    size: block_size.min(bytes.end - start),
                    ahead: if choice.ahead == 0 { Ahead::Nothing } else { Ahead::Runs(runs) },
                    width: choice.width,
                    elements,
                    factors,
                    row_0_is_xor,
                    acc: &mut acc[acc_offset(start - bytes.start)..],
                    stride,
                },
            );
        }
    }
}

/// Room for the factors of a chunk.
struct Factors(Scratch<{ CHUNK * ROWS_MAX * FACTOR_LEN_MAX }, u64>);

impl Factors {
    fn new() -> Self {
        Self(Scratch::new())
    }

    /// The factors of these elements.
    fn of<E: Engine>(&mut self, field: Field, elements: &[u16]) -> &[u64] {
        let factors = self.0.zeros(elements.len() * E::factor_len(field));
        E::factors(field, elements, factors);
        factors
    }
}

fn mad<E: Engine>(field: Field, mad: Mad<'_>) {
    match field {
        Field::Bytes => E::mad8(mad),
        Field::Tower => E::mad16(mad),
    }
}
