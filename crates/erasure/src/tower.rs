//! Arithmetic on single elements of the tower field GF((2^8)^2), for codewords of more than 256
//! symbols.
//!
//! An element is `a + b Y` with `a` and `b` in GF(2^8) and `Y^2 = Y + L`. As a number, `a` is its low
//! byte and `b` its high one, so the numbers below 256 are GF(2^8) itself and multiply as there.
//! `Y^2 + Y + L` has no root in GF(2^8) (a test tries all), so this is a field of 65,536 elements.

use crate::field;

/// Bytes of the blocks that a symbol is laid out in: first the low bytes of all its elements, then
/// the high ones.
pub(crate) const BLOCK_SIZE: usize = 128;

/// `L`: the least element that makes `Y^2 + Y + L` irreducible.
pub(crate) const L: u8 = 0x20;

/// `a` and `b` of `a + b Y`.
#[inline(always)]
pub(crate) const fn split(element: u16) -> (u8, u8) {
    let [low, high] = element.to_le_bytes();
    (low, high)
}

const fn join(low: u8, high: u8) -> u16 {
    u16::from_le_bytes([low, high])
}

/// `left * right`.
pub(crate) fn multiply(left: u16, right: u16) -> u16 {
    let ((a, b), (c, d)) = (split(left), split(right));
    let (low, high) = (field::multiply(a, c), field::multiply(b, d));
    let cross = field::multiply(a ^ b, c ^ d);
    join(low ^ field::multiply(L, high), low ^ cross)
}

/// `dividend / divisor`.
pub(crate) fn divide(dividend: u16, divisor: u16) -> u16 {
    assert!(divisor != 0, "nothing is divided by 0");
    // The conjugate of a + b Y is a + b (Y + 1); their product, the norm, is in GF(2^8).
    let (a, b) = split(divisor);
    let norm =
        field::multiply(a, a) ^ field::multiply(a, b) ^ field::multiply(L, field::multiply(b, b));
    let inverse = join(field::divide(a ^ b, norm), field::divide(b, norm));
    multiply(dividend, inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::naive;

    #[test]
    fn l_is_the_least_element_without_a_root() {
        let has_root = |l: u8| (0..=u8::MAX).any(|y| field::multiply(y, y) ^ y == l);
        assert!((0..L).all(has_root));
        assert!(!has_root(L));
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for left in (0..=u16::MAX).step_by(97) {
            for right in (0..=u16::MAX).step_by(89) {
                assert_eq!(multiply(left, right), naive::tower_product(left, right));
            }
        }
    }

    #[test]
    fn every_element_but_zero_has_an_inverse_and_dividing_undoes_multiplying() {
        for element in 1..=u16::MAX {
            assert_eq!(multiply(element, divide(1, element)), 1, "{element:#x}");
            let other = element.wrapping_mul(0x9e37) | 1;
            assert_eq!(divide(multiply(other, element), element), other, "{element:#x}");
        }
    }

    #[test]
    fn bytes_multiply_as_in_the_smaller_field() {
        for left in 0..=u8::MAX {
            for right in 0..=u8::MAX {
                let product = u16::from(field::multiply(left, right));
                assert_eq!(multiply(left.into(), right.into()), product);
            }
        }
    }
}
