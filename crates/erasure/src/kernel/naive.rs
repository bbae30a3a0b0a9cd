//! The slow and obvious kernel. It defines what every other kernel must compute.

use crate::field;

/// `left * right`, as polynomials over GF(2) modulo 0x11d, one bit of `left` at a time.
pub(crate) fn product(left: u8, right: u8) -> u8 {
    let mut sum = 0;
    let mut shifted = right;
    for bit in 0..8 {
        if left >> bit & 1 == 1 {
            sum ^= shifted;
        }
        shifted = field::double(shifted);
    }
    sum
}

/// `into ^= coefficients[0] * sources[0] ^ coefficients[1] * sources[1] ^ ..`, byte by byte.
pub(super) fn accumulate(coefficients: &[u8], sources: &[&[u8]], into: &mut [u8]) {
    for (&coefficient, source) in coefficients.iter().zip(sources) {
        for (into, &source) in into.iter_mut().zip(*source) {
            *into ^= product(coefficient, source);
        }
    }
}
