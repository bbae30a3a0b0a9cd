//! The slow and obvious kernel. It defines what every other kernel must compute.

use super::engine::{Engine, Few, Job, Mad};
use super::portable;
use crate::{field, tower};

/// The engine of [`Kernel::Naive`](crate::Kernel::Naive).
pub(super) struct Naive;

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

/// `left * right` in the tower field: the product of `a + b Y` and `c + d Y`, term by term, with
/// `Y^2 = Y + L`.
pub(crate) fn tower_product(left: u16, right: u16) -> u16 {
    let ([a, b], [c, d]) = (left.to_le_bytes(), right.to_le_bytes());
    let square = product(b, d);
    let low = product(a, c) ^ product(tower::L, square);
    let high = product(a, d) ^ product(b, c) ^ square;
    u16::from_le_bytes([low, high])
}

impl Engine for Naive {
    const STEP: usize = 1;
    const BLOCK_MAX: usize = 1024;

    fn mad8(mad: Mad<'_>) {
        let columns = mad.elements.chunks_exact(mad.row_count());
        for (source, column) in mad.sources.iter().zip(columns) {
            let source = &source[mad.start..][..mad.size];
            for (acc, &element) in mad.acc.chunks_mut(mad.stride).zip(column) {
                for (acc, &byte) in acc.iter_mut().zip(source) {
                    *acc ^= product(element as u8, byte);
                }
            }
        }
    }

    fn mad16(mad: Mad<'_>) {
        let columns = mad.elements.chunks_exact(mad.row_count());
        for (source, column) in mad.sources.iter().zip(columns) {
            let source = &source[mad.start..][..mad.size];
            for (acc, &element) in mad.acc.chunks_mut(mad.stride).zip(column) {
                let (acc_low, acc_high) = acc.split_at_mut(mad.stride / 2);
                for (block, bytes) in source.chunks(tower::BLOCK_SIZE).enumerate() {
                    let (low, high) = bytes.split_at(tower::BLOCK_SIZE / 2);
                    for (at, (&low, &high)) in low.iter().zip(high).enumerate() {
                        let symbol = u16::from_le_bytes([low, high]);
                        let [low, high] = tower_product(element, symbol).to_le_bytes();
                        acc_low[block * (tower::BLOCK_SIZE / 2) + at] ^= low;
                        acc_high[block * (tower::BLOCK_SIZE / 2) + at] ^= high;
                    }
                }
            }
        }
    }

    fn has_few(_: &Job<'_>) -> bool {
        false
    }

    fn few(_: Few<'_, '_>) {
        unreachable!("it has no such case");
    }

    fn acc16_size(block_size: usize) -> usize {
        block_size
    }

    fn fold16(acc: &[u8], into: &mut [u8]) {
        portable::interleave(acc, into);
    }
}
