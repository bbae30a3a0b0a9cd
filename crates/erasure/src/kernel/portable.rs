//! A kernel of plain loops, fast on whatever vectors the compiler may use.
//!
//! Looking products up in a table reads one byte at a time. This kernel has no table: it xors and
//! doubles whole blocks, which every compiler turns into vector instructions. A coefficient is a sum
//! of powers of two, so by Horner's rule, from the highest bit down,
//!
//! ```text
//!   sum of c_s * source_s  =  (..(bits_7 * 2 + bits_6) * 2 + ..) * 2 + bits_0
//!   bits_b                 =  the xor of the sources whose coefficient has bit b set
//! ```
//!
//! The seven doublings are shared by all the sources of a call, and a source costs four xors on
//! average. A coefficient of 1 costs one xor and no doubling, a coefficient of 0 nothing. With a single
//! source there is nothing to share, and the sum of a few bytes at a time stays in registers instead.

use super::engine::{Engine, Few, Finish, Job, Mad};
use crate::fields::Field;
use crate::{field, tower};

/// Bytes of a symbol worked on at a time.
const BLOCK_SIZE: usize = 1024;

/// Sources worked on at a time.
const GROUP_COUNT: usize = 16;

// The blocks of a group are read once for each row and must stay in a 32 KiB first-level cache.
const _: () = assert!(BLOCK_SIZE * GROUP_COUNT <= 32 * 1024 / 2);

/// Sources xored in one pass over the sum, so that the sum is loaded and stored less often.
const BATCH: usize = 4;

/// Bytes of a single source multiplied at a time: half the registers of the poorest machine meant.
const CHUNK_SIZE: usize = 128;

/// The engine of [`Kernel::Portable`](crate::Kernel::Portable).
pub(super) struct Portable;

impl Engine for Portable {
    const STEP: usize = 1;
    const BLOCK_MAX: usize = BLOCK_SIZE;

    fn mad8(mad: Mad<'_>) {
        let row_count = mad.row_count();
        let groups =
            mad.sources.chunks(GROUP_COUNT).zip(mad.elements.chunks(GROUP_COUNT * row_count));
        for (group, elements) in groups {
            let mut sources: [&[u8]; GROUP_COUNT] = [&[]; GROUP_COUNT];
            for (block, source) in sources.iter_mut().zip(group) {
                *block = &source[mad.start..][..mad.size];
            }
            for (row, acc) in mad.acc.chunks_mut(mad.stride).take(row_count).enumerate() {
                let mut coefficients = [0; GROUP_COUNT];
                for (coefficient, column) in
                    coefficients.iter_mut().zip(elements.chunks_exact(row_count))
                {
                    *coefficient = column[row] as u8;
                }
                let count = group.len();
                accumulate(&coefficients[..count], &sources[..count], &mut acc[..mad.size]);
            }
        }
    }

    /// Multiplying by `c + d Y` is a matrix over GF(2^8): `a + b Y` becomes
    /// `(c a + L d b) + (d a + (c + d) b) Y`. So a source counts as two, and a row as two.
    fn mad16(mad: Mad<'_>) {
        let (row_count, half) = (mad.row_count(), mad.size / 2);
        let groups =
            mad.sources.chunks(GROUP_COUNT).zip(mad.elements.chunks(GROUP_COUNT * row_count));
        for (group, elements) in groups {
            let count = group.len();
            let mut planes = [[0; BLOCK_SIZE / 2]; 2 * GROUP_COUNT];
            for (source, planes) in group.iter().zip(planes.chunks_exact_mut(2)) {
                let [low, high] = planes else { unreachable!("chunks of two") };
                let blocks = source[mad.start..][..mad.size].chunks_exact(tower::BLOCK_SIZE);
                for (at, block) in blocks.enumerate() {
                    let plane = at * tower::BLOCK_SIZE / 2..(at + 1) * tower::BLOCK_SIZE / 2;
                    low[plane.clone()].copy_from_slice(&block[..tower::BLOCK_SIZE / 2]);
                    high[plane].copy_from_slice(&block[tower::BLOCK_SIZE / 2..]);
                }
            }
            let planes: [&[u8]; 2 * GROUP_COUNT] = std::array::from_fn(|at| &planes[at][..half]);
            for (row, acc) in mad.acc.chunks_mut(mad.stride).take(row_count).enumerate() {
                let mut low = [0; 2 * GROUP_COUNT];
                let mut high = [0; 2 * GROUP_COUNT];
                for (at, column) in elements.chunks_exact(row_count).enumerate() {
                    let (c, d) = tower::split(column[row]);
                    [low[2 * at], low[2 * at + 1]] = [c, field::multiply(tower::L, d)];
                    [high[2 * at], high[2 * at + 1]] = [d, c ^ d];
                }
                let (acc_low, acc_high) = acc.split_at_mut(mad.stride / 2);
                accumulate(&low[..2 * count], &planes[..2 * count], &mut acc_low[..half]);
                accumulate(&high[..2 * count], &planes[..2 * count], &mut acc_high[..half]);
            }
        }
    }

    fn has_few(job: &Job<'_>) -> bool {
        job.field == Field::Bytes && job.sources.len() <= GROUP_COUNT
    }

    fn few(few: Few<'_, '_>) {
        let (job, count) = (few.job, few.job.sources.len());
        for start in few.bytes.clone().step_by(BLOCK_SIZE) {
            let block = start..few.bytes.end.min(start + BLOCK_SIZE);
            let mut sources: [&[u8]; GROUP_COUNT] = [&[]; GROUP_COUNT];
            for (block_of, source) in sources.iter_mut().zip(job.sources) {
                *block_of = &source[block.clone()];
            }
            for (row, into) in few.into.iter_mut().enumerate() {
                let mut coefficients = [0; GROUP_COUNT];
                for (n, coefficient) in coefficients[..count].iter_mut().enumerate() {
                    *coefficient = job.columns.columns(n..n + 1, row..row + 1, &mut [0])[0] as u8;
                }
                let out = &mut into[block.clone()];
                if few.finish == Finish::Store {
                    out.fill(0);
                }
                accumulate(&coefficients[..count], &sources[..count], out);
            }
        }
    }

    fn acc16_size(block_size: usize) -> usize {
        block_size
    }

    fn fold16(acc: &[u8], into: &mut [u8]) {
        interleave(acc, into);
    }
}

/// Xors a plane of low bytes and one of high bytes, each half of `acc`, into the blocks of `into`.
pub(super) fn interleave(acc: &[u8], into: &mut [u8]) {
    let (low, high) = acc.split_at(acc.len() / 2);
    for (at, block) in into.chunks_exact_mut(tower::BLOCK_SIZE).enumerate() {
        let plane = at * tower::BLOCK_SIZE / 2..(at + 1) * tower::BLOCK_SIZE / 2;
        let (into_low, into_high) = block.split_at_mut(tower::BLOCK_SIZE / 2);
        xor(into_low, &low[plane.clone()]);
        xor(into_high, &high[plane]);
    }
}

/// `into ^= coefficients[0] * sources[0] ^ coefficients[1] * sources[1] ^ ..`
pub(super) fn accumulate(coefficients: &[u8], sources: &[&[u8]], into: &mut [u8]) {
    match (coefficients, sources) {
        (&[coefficient @ 2..=u8::MAX], [source]) => accumulate_one(coefficient, source, into),
        _ => accumulate_many(coefficients, sources, into),
    }
}

/// `into ^= coefficient * source`, for a coefficient that takes doubling.
fn accumulate_one(coefficient: u8, source: &[u8], into: &mut [u8]) {
    let (sources, source_rest) = source.as_chunks::<CHUNK_SIZE>();
    let (intos, into_rest) = into.as_chunks_mut::<CHUNK_SIZE>();
    for (source, into) in sources.iter().zip(intos) {
        let mut sum = *source; // The highest bit's share.
        for bit in (0..coefficient.ilog2()).rev() {
            double(&mut sum);
            if coefficient >> bit & 1 == 1 {
                xor(&mut sum, source);
            }
        }
        xor(into, &sum);
    }
    accumulate_many(&[coefficient], &[source_rest], into_rest);
}

/// As [`accumulate`], for any number of sources, at most a block long.
fn accumulate_many(coefficients: &[u8], sources: &[&[u8]], into: &mut [u8]) {
    let bits = coefficients.iter().fold(0, |bits, coefficient| bits | coefficient);
    if bits > 1 {
        let mut block = [0; BLOCK_SIZE];
        let sum = &mut block[..into.len()];
        for bit in (1..=bits.ilog2()).rev() {
            xor_selected(bit, coefficients, sources, sum);
            double(sum);
        }
        xor(into, sum);
    }
    xor_selected(0, coefficients, sources, into);
}

/// Xors into `sum` every source whose coefficient has `bit` set.
fn xor_selected(bit: u32, coefficients: &[u8], sources: &[&[u8]], sum: &mut [u8]) {
    let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
    let mut batched = 0;
    for (coefficient, source) in coefficients.iter().zip(sources) {
        if coefficient >> bit & 1 == 0 {
            continue;
        }
        batch[batched] = source;
        batched += 1;
        if batched == BATCH {
            xor_batch(sum, batch);
            batched = 0;
        }
    }
    for source in &batch[..batched] {
        xor(sum, source);
    }
}

/// Xors four sources into `sum`.
fn xor_batch(sum: &mut [u8], sources: [&[u8]; BATCH]) {
    // Slices of one length known to the compiler as such: no bounds check is left in the loop.
    let [first, second, third, fourth] = sources.map(|source| &source[..sum.len()]);
    for at in 0..sum.len() {
        sum[at] ^= first[at] ^ second[at] ^ third[at] ^ fourth[at];
    }
}

/// Xors one source into `sum`.
fn xor(sum: &mut [u8], source: &[u8]) {
    for (sum, source) in sum.iter_mut().zip(source) {
        *sum ^= source;
    }
}

/// Multiplies every element of `sum` by two.
fn double(sum: &mut [u8]) {
    for sum in sum {
        *sum = field::double(*sum);
    }
}
