//! Arithmetic on single elements of GF(2^8), for making plans. Whole buffers are the kernels' work.
//!
//! An element is a polynomial over GF(2) of degree below 8, its coefficients the bits of a byte,
//! modulo `x^8 + x^4 + x^3 + x^2 + 1`. The element `x` (2) generates all 255 that are not 0, so a
//! product is a sum of logarithms.

/// The low eight bits of the polynomial 0x11d: what `x^8` is equal to.
const REDUCTION: u8 = 0x1d;

/// How many elements are not 0.
const ORDER: usize = 255;

/// `EXP[n]` is `2^n`; twice round, so that the sum of two logarithms is an index.
static EXP: [u8; 2 * ORDER] = {
    let mut exp = [0; 2 * ORDER];
    let (mut at, mut power) = (0, 1);
    while at < exp.len() {
        exp[at] = power;
        power = double(power);
        at += 1;
    }
    exp
};

/// `LOG[2^n]` is `n`, for `n` from 0 to 254. `LOG[0]` means nothing.
static LOG: [u8; 256] = {
    let mut log = [0; 256];
    let (mut at, mut power) = (0, 1);
    while at < ORDER {
        log[power as usize] = at as u8;
        power = double(power);
        at += 1;
    }
    log
};

/// `2 * element`.
#[inline(always)]
pub(crate) const fn double(element: u8) -> u8 {
    (element << 1) ^ (if element & 0x80 == 0 { 0 } else { REDUCTION })
}

/// `left * right`.
pub(crate) fn multiply(left: u8, right: u8) -> u8 {
    if left == 0 || right == 0 {
        return 0;
    }
    EXP[log(left) + log(right)]
}

/// `dividend / divisor`.
pub(crate) fn divide(dividend: u8, divisor: u8) -> u8 {
    assert!(divisor != 0, "nothing is divided by 0");
    if dividend == 0 {
        return 0;
    }
    EXP[log(dividend) + ORDER - log(divisor)]
}

fn log(element: u8) -> usize {
    usize::from(LOG[usize::from(element)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::naive;

    fn elements() -> impl Iterator<Item = u8> {
        0..=u8::MAX
    }

    #[test]
    fn the_tables_multiply_as_polynomials_do() {
        for left in elements() {
            for right in elements() {
                assert_eq!(multiply(left, right), naive::product(left, right), "{left}*{right}");
            }
        }
    }

    #[test]
    fn two_generates_every_element_but_zero() {
        let mut powers: Vec<u8> = EXP[..ORDER].to_vec();
        powers.sort_unstable();
        assert!(powers.iter().copied().eq(1..=u8::MAX));
    }

    #[test]
    fn multiplication_commutes_has_a_unit_and_distributes_over_xor() {
        for a in elements() {
            assert_eq!(multiply(a, 1), a);
            assert_eq!(multiply(a, 0), 0);
            for b in elements() {
                assert_eq!(multiply(a, b), multiply(b, a), "{a}*{b}");
                for c in [1, 2, 3, 0x1d, 0x80, 0xff] {
                    assert_eq!(multiply(a, b ^ c), multiply(a, b) ^ multiply(a, c), "{a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn multiplication_associates() {
        for a in elements() {
            for b in elements() {
                // Every element is a power of 2, so associating with 2 is associating with all.
                assert_eq!(multiply(multiply(a, b), 2), multiply(a, multiply(b, 2)), "{a} {b}");
            }
        }
    }

    #[test]
    fn division_undoes_multiplication() {
        for a in elements() {
            for b in 1..=u8::MAX {
                assert_eq!(divide(multiply(a, b), b), a, "{a}*{b}/{b}");
            }
        }
    }
}
