//! The redundant bits of a sector.
//!
//! The seven redundant columns are a 7 by 7 matrix `P` of circulants, and the checks ask for `P r = s`, where `s` is what the
//! data columns add to each row. `P` is inverted once, by elimination over the ring of blocks, and `r = P^-1 s`.
//!
//! The inverse is dense. A row of it by `s` is added up four bits of every factor's words at a time, from the highest ones
//! down, with the sixteen multiples of each block of `s` at hand.

use std::sync::LazyLock;

use crate::code::{Codeword, column_of, shift_of};
use crate::ring;
use crate::shape::{Block, COLUMNS, DATA_COLUMNS, ROWS, SECTOR_BYTES};

type Matrix = [[Block; ROWS]; ROWS];

static INVERSE: LazyLock<Matrix> = LazyLock::new(|| {
    invert(redundant_part()).expect("the redundant columns of the committed code have an inverse")
});

/// The codeword of a sector.
///
/// Panics if `sector` is not [`SECTOR_BYTES`] long.
pub fn encode(sector: &[u8]) -> Codeword {
    assert_eq!(sector.len(), SECTOR_BYTES, "a sector's length");
    let mut word = Codeword::ZERO;
    let (words, _) = sector.as_chunks::<8>();
    for (into, bytes) in word.0[..DATA_COLUMNS].iter_mut().flatten().zip(words) {
        *into = u64::from_le_bytes(*bytes);
    }
    let mut sums = [ring::ZERO; ROWS];
    for column in 0..DATA_COLUMNS {
        for entry in column_of(column) {
            ring::add(&mut sums[entry.row], &ring::seen(&word.0[column], entry.shift));
        }
    }
    let multiples = sums.each_ref().map(Multiples::new);
    for (row, factors) in INVERSE.iter().enumerate() {
        word.0[DATA_COLUMNS + row] = sum_of_products(factors, &multiples);
    }
    word
}

/// A block times all polynomials of degree below 4, each twice in a row: times `x^(64 n)` it is the eight words from `8 - n` on.
struct Multiples([[u64; 16]; 16]);

impl Multiples {
    fn new(block: &Block) -> Self {
        Self(std::array::from_fn(|polynomial| {
            let mut sum = ring::ZERO;
            for power in (0..4).filter(|power| polynomial >> power & 1 == 1) {
                ring::add(&mut sum, &ring::times_power(block, power));
            }
            std::array::from_fn(|at| sum[at % 8])
        }))
    }

    #[inline(always)]
    fn times_words(&self, polynomial: usize, words: usize) -> &Block {
        self.0[polynomial][8 - words..].first_chunk().expect("a block from each of its words on")
    }
}

/// The sum of each factor times its block.
fn sum_of_products(factors: &[Block; ROWS], multiples: &[Multiples; ROWS]) -> Block {
    let mut sum = ring::ZERO;
    for shift in (0..64).step_by(4).rev() {
        sum = ring::times_power(&sum, 4);
        for (factor, multiples) in factors.iter().zip(multiples) {
            for (words, word) in factor.iter().enumerate() {
                ring::add(&mut sum, multiples.times_words((word >> shift & 15) as usize, words));
            }
        }
    }
    sum
}

/// The redundant columns as polynomials: a circulant of shift `s` moves bits down, which is `x^-s`.
fn redundant_part() -> Matrix {
    std::array::from_fn(|row| {
        std::array::from_fn(|at| match shift_of(row, DATA_COLUMNS + at) {
            Some(shift) => ring::seen(&ring::ONE, shift),
            None => ring::ZERO,
        })
    })
}

const _: () = assert!(COLUMNS - DATA_COLUMNS == ROWS);

/// By Gauss and Jordan; a pivot is a polynomial with an inverse.
fn invert(mut matrix: Matrix) -> Option<Matrix> {
    let mut inverse: Matrix = [[ring::ZERO; ROWS]; ROWS];
    for (at, row) in inverse.iter_mut().enumerate() {
        row[at] = ring::ONE;
    }
    for at in 0..ROWS {
        let (found, factor) =
            (at..ROWS).find_map(|row| Some((row, ring::inverse(&matrix[row][at])?)))?;
        matrix.swap(at, found);
        inverse.swap(at, found);
        for entry in matrix[at].iter_mut().chain(&mut inverse[at]) {
            *entry = ring::product(&factor, entry);
        }
        for row in (0..ROWS).filter(|row| *row != at) {
            let factor = matrix[row][at];
            for column in 0..ROWS {
                let (here, there) = (matrix[at][column], inverse[at][column]);
                ring::add(&mut matrix[row][column], &ring::product(&factor, &here));
                ring::add(&mut inverse[row][column], &ring::product(&factor, &there));
            }
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;
    use crate::code::syndrome_is_zero;

    #[test]
    fn sums_of_products_are_those_of_the_ring() {
        let mut rng = Streams::new(4).stream("encode");
        let mut blocks =
            || -> [Block; ROWS] { std::array::from_fn(|_| std::array::from_fn(|_| rng.bits())) };
        let (factors, others) = (blocks(), blocks());
        let mut sum = ring::ZERO;
        for (factor, other) in factors.iter().zip(&others) {
            ring::add(&mut sum, &ring::product(factor, other));
        }
        assert_eq!(sum_of_products(&factors, &others.each_ref().map(Multiples::new)), sum);
    }

    #[test]
    fn codewords_hold_their_sector_and_every_check() {
        let mut rng = Streams::new(3).stream("encode");
        let mut sector = vec![0; SECTOR_BYTES];
        assert_eq!(encode(&sector), Codeword::ZERO);
        for _ in 0..20 {
            rng.fill(&mut sector);
            let word = encode(&sector);
            assert_eq!(word.sector(), sector);
            assert!(syndrome_is_zero(&word));
            let mut wrong = word.clone();
            wrong.0[rng.below(COLUMNS as u64) as usize][3] ^= 1 << 17;
            assert!(!syndrome_is_zero(&wrong));
        }
    }
}
