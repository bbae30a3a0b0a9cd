//! The field and linear algebra once more, by other means than the crate's own, and seeded chance.

use std::ops::Range;

use levelhead_erasure::{Code, SymbolSet};

/// `left * right`: the product of the polynomials first, its remainder by 0x11d after.
pub(crate) fn product(left: u8, right: u8) -> u8 {
    let mut long =
        (0..8).filter(|bit| left >> bit & 1 == 1).fold(0, |sum, bit| sum ^ u16::from(right) << bit);
    for bit in (8..15).rev() {
        if long >> bit & 1 == 1 {
            long ^= 0x11d << (bit - 8);
        }
    }
    u8::try_from(long).expect("the remainder has a degree below 8")
}

/// The element that gives 1 with `element`, found by trying: `element^254`.
pub(crate) fn inverse(element: u8) -> u8 {
    (0..254).fold(1, |power, _| product(power, element))
}

/// Whether a square matrix has an inverse, by Gaussian elimination.
pub(crate) fn is_invertible(mut matrix: Vec<Vec<u8>>) -> bool {
    for column in 0..matrix.len() {
        let Some(pivot) = (column..matrix.len()).find(|&row| matrix[row][column] != 0) else {
            return false;
        };
        matrix.swap(column, pivot);
        let (above, below) = matrix.split_at_mut(column + 1);
        let pivot = &above[column];
        for row in below.iter_mut().filter(|row| row[column] != 0) {
            let factor = product(row[column], inverse(pivot[column]));
            for (into, &from) in row.iter_mut().zip(pivot) {
                *into ^= product(factor, from);
            }
        }
    }
    true
}

/// What symbol `symbol` of a codeword is in terms of the data: one coefficient a data symbol.
pub(crate) fn generator_row(code: &Code, symbol: usize) -> Vec<u8> {
    (0..code.data())
        .map(|column| match symbol.checked_sub(code.data()) {
            None => u8::from(column == symbol),
            Some(row) => code.coefficient(row, column),
        })
        .collect()
}

/// Seeded chance: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }

    /// `count` different numbers of `range`.
    pub(crate) fn choose(&mut self, range: Range<usize>, count: usize) -> SymbolSet {
        let mut chosen = SymbolSet::EMPTY;
        while chosen.len() < count {
            chosen = chosen.with(range.start + self.below(range.len()));
        }
        chosen
    }
}

/// The tower field by logarithms to a generator, which was made by the definition.
pub(crate) struct Tower {
    exp: Vec<u16>,
    log: Vec<usize>,
}

impl Tower {
    pub(crate) fn new() -> Self {
        const ORDER: usize = 65_535;
        let product = |left: u16, right: u16| {
            let ([a, b], [c, d]) = (left.to_le_bytes(), right.to_le_bytes());
            // (a + b Y) (c + d Y) with Y^2 = Y + 0x20.
            let square = product(b, d);
            let low = product(a, c) ^ product(square, 0x20);
            u16::from_le_bytes([low, product(a, d) ^ product(b, c) ^ square])
        };
        for generator in 0x100.. {
            let mut exp = vec![1_u16];
            while exp.len() < ORDER {
                let next = product(exp[exp.len() - 1], generator);
                if next == 1 {
                    break;
                }
                exp.push(next);
            }
            if exp.len() == ORDER {
                let mut log = vec![0; ORDER + 1];
                for (power, &element) in exp.iter().enumerate() {
                    log[usize::from(element)] = power;
                }
                exp.extend_from_within(..);
                return Self { exp, log };
            }
        }
        unreachable!("a field has a generator");
    }

    pub(crate) fn product(&self, left: u16, right: u16) -> u16 {
        if left == 0 || right == 0 {
            return 0;
        }
        self.exp[self.log[usize::from(left)] + self.log[usize::from(right)]]
    }

    pub(crate) fn quotient(&self, left: u16, right: u16) -> u16 {
        assert!(right != 0);
        if left == 0 {
            return 0;
        }
        self.exp[self.log[usize::from(left)] + 65_535 - self.log[usize::from(right)]]
    }

    /// Whether a square matrix, row by row, has an inverse, by Gaussian elimination.
    pub(crate) fn is_invertible(&self, matrix: &mut [u16], size: usize) -> bool {
        for column in 0..size {
            let at = |row: usize, column: usize| row * size + column;
            let Some(pivot) = (column..size).find(|&row| matrix[at(row, column)] != 0) else {
                return false;
            };
            for n in column..size {
                matrix.swap(at(column, n), at(pivot, n));
            }
            for row in column + 1..size {
                let factor = self.quotient(matrix[at(row, column)], matrix[at(column, column)]);
                for n in column..size {
                    matrix[at(row, n)] ^= self.product(factor, matrix[at(column, n)]);
                }
            }
        }
        true
    }
}
