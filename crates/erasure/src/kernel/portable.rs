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

use super::BLOCK_SIZE;
use crate::field;

/// Sources xored in one pass over the sum, so that the sum is loaded and stored less often.
const BATCH: usize = 4;

/// Bytes of a single source multiplied at a time: half the registers of the poorest machine meant.
const CHUNK_SIZE: usize = 128;

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
