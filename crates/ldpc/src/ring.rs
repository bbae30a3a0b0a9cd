//! Blocks of 512 bits as polynomials over GF(2) modulo `x^512 + 1`: circulant matrices of 512 by 512.
//!
//! Bit `i` is the coefficient of `x^i`. As 512 is a power of two, `x^512 + 1 = (x + 1)^512`: the ring is local, a
//! polynomial has an inverse if and only if its number of terms is odd, and then `u^512 = u(1) = 1`, so that the
//! inverse is `u^511`.

use crate::shape::{BLOCK_BITS, Block};

/// The zero polynomial.
pub(crate) const ZERO: Block = [0; 8];

/// The polynomial 1.
pub(crate) const ONE: Block = [1, 0, 0, 0, 0, 0, 0, 0];

/// `x^power` times `block`: every bit moves up by `power`, from 0 to 511, and round.
#[inline(always)]
pub(crate) fn times_power(block: &Block, power: usize) -> Block {
    let (words, bits) = (power / 64, power % 64);
    let mut result = ZERO;
    for (at, word) in result.iter_mut().enumerate() {
        let (here, below) = (block[(at + 8 - words) % 8], block[(at + 7 - words) % 8]);
        // Shifting by 64 in two steps: nothing is left where `bits` is zero.
        *word = (here << bits) | ((below >> 1) >> (63 - bits));
    }
    result
}

/// Bit `i` of the result is bit `i + shift` of `block`: what the checks of a circulant with this shift see.
#[inline(always)]
pub(crate) fn seen(block: &Block, shift: usize) -> Block {
    times_power(block, (BLOCK_BITS - shift) % BLOCK_BITS)
}

/// Adds `other` to `sum`.
#[inline(always)]
pub(crate) fn add(sum: &mut Block, other: &Block) {
    for (word, other) in sum.iter_mut().zip(other) {
        *word ^= other;
    }
}

/// The product of two polynomials.
pub(crate) fn product(a: &Block, b: &Block) -> Block {
    let mut result = ZERO;
    for power in ones(a) {
        add(&mut result, &times_power(b, power));
    }
    result
}

/// The inverse, of a polynomial with an odd number of terms.
pub(crate) fn inverse(block: &Block) -> Option<Block> {
    if ones(block).count().is_multiple_of(2) {
        return None;
    }
    // u^511 = u u^2 u^4 .. u^256.
    let (mut square, mut result) = (*block, *block);
    for _ in 1..9 {
        square = squared(&square);
        result = product(&result, &square);
    }
    Some(result)
}

/// Squaring doubles every power.
fn squared(block: &Block) -> Block {
    let mut result = ZERO;
    for power in ones(block) {
        let at = 2 * power % BLOCK_BITS;
        result[at / 64] ^= 1 << (at % 64);
    }
    result
}

/// The places of the ones, in their order.
pub(crate) fn ones(block: &Block) -> impl Iterator<Item = usize> {
    (0..BLOCK_BITS).filter(|at| block[at / 64] >> (at % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn a_block_that_is_moved_is_moved_bit_by_bit() {
        let mut rng = Streams::new(1).stream("ring");
        let block: Block = std::array::from_fn(|_| rng.bits());
        let bit = |block: &Block, at: usize| block[at / 64] >> (at % 64) & 1;
        for power in [0, 1, 63, 64, 65, 200, 511] {
            let (moved, seen) = (times_power(&block, power), seen(&block, power));
            for at in 0..BLOCK_BITS {
                assert_eq!(bit(&moved, (at + power) % BLOCK_BITS), bit(&block, at), "{power} {at}");
                assert_eq!(bit(&seen, at), bit(&block, (at + power) % BLOCK_BITS), "{power} {at}");
            }
        }
    }

    #[test]
    fn odd_polynomials_have_inverses_and_even_ones_have_none() {
        let mut rng = Streams::new(2).stream("ring");
        for _ in 0..20 {
            let mut block: Block = std::array::from_fn(|_| rng.bits());
            if ones(&block).count().is_multiple_of(2) {
                assert_eq!(inverse(&block), None);
                block[3] ^= 1 << 5;
            }
            assert_eq!(product(&block, &inverse(&block).unwrap()), ONE);
        }
    }
}
