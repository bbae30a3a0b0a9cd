//! Multiplication over GF(2^8) in the two forms that processors have instructions for.

#![allow(unsafe_code)]

use crate::field;

/// For each element the matrix of bits that multiplies by it, as GFNI takes it: byte `7 - n` is the
/// row that gives bit `n`.
pub(super) static MATRICES: [u64; 256] = {
    let mut matrices = [0; 256];
    let mut element = 0;
    while element < 256 {
        // Column `n` of the matrix is `element * x^n`.
        let mut column = element as u8;
        let mut n = 0;
        while n < 8 {
            let mut bit = 0;
            while bit < 8 {
                if column >> bit & 1 == 1 {
                    matrices[element] |= 1 << ((7 - bit) * 8 + n);
                }
                bit += 1;
            }
            column = field::double(column);
            n += 1;
        }
        element += 1;
    }
    matrices
};

/// The matrix that multiplies by an element.
#[inline(always)]
pub(crate) fn matrix_of(element: u8) -> u64 {
    MATRICES[usize::from(element)]
}

/// For each element its products with the 16 low nibbles, and then with the 16 high ones.
#[repr(align(32))]
#[derive(Clone, Copy)]
pub(super) struct Nibbles(pub(super) [u8; 32]);

/// See [`Nibbles`].
pub(super) static NIBBLES: [Nibbles; 256] = {
    let mut nibbles = [Nibbles([0; 32]); 256];
    let mut element = 0;
    while element < 256 {
        let mut power = element as u8;
        let mut bit = 0;
        while bit < 8 {
            let (half, weight) = (bit / 4 * 16, 1 << (bit % 4));
            let mut nibble = 0;
            while nibble < 16 {
                if nibble & weight != 0 {
                    nibbles[element].0[half + nibble] ^= power;
                }
                nibble += 1;
            }
            power = field::double(power);
            bit += 1;
        }
        element += 1;
    }
    nibbles
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::naive::product;

    #[test]
    fn both_forms_multiply_every_pair() {
        for element in 0..=u8::MAX {
            let matrix = MATRICES[usize::from(element)].to_be_bytes();
            let nibbles = NIBBLES[usize::from(element)].0;
            for byte in 0..=u8::MAX {
                let bit = |n: usize| u8::from((matrix[n] & byte).count_ones() % 2 == 1) << n;
                let expected = product(element, byte);
                assert_eq!((0..8).fold(0, |sum, n| sum | bit(n)), expected);
                let (low, high) = (usize::from(byte & 15), usize::from(byte >> 4));
                assert_eq!(nibbles[low] ^ nibbles[16 + high], expected);
            }
        }
    }
}
