//! Vectors of symbols, as [`cosets`](super::cosets) takes them through a transform.

#![allow(unsafe_code)]
// Iterators would take closures, which are not compiled for the instructions of their function.
#![allow(clippy::needless_range_loop)]

use super::table::Table;
use super::vector::{HALF, Vector};
use crate::fields::Field;
use crate::tower;
use crate::transform::factor_len;

/// A vector of symbols: of bytes, or of pairs of them.
///
/// # Safety
///
/// Functions may be called only on a processor that has the instructions of the vector. `load` and
/// `store` access [`SIZE`](Self::SIZE) bytes of a symbol, at the [`offset`](Self::offset) of a multiple of that, in blocks of
/// [`BLOCK`](Self::BLOCK) bytes.
pub(super) unsafe trait Lane: Copy {
    /// The vector.
    type Of: Vector;
    /// Bytes of a symbol in it.
    const SIZE: usize;
    /// Bytes in which a symbol's lanes repeat their pattern of addresses.
    const BLOCK: usize;
    /// Elements of a multiplier, as they lie in a table.
    const FACTOR_LEN: usize;
    /// A multiplier in registers, and a lane in the form that multiplying takes.
    type Multiplier: Copy;
    type Prepared: Copy;

    /// Where the bytes number `at` and following of a symbol are.
    fn offset(at: usize) -> usize;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, into: *mut u8);
    unsafe fn xor(self, other: Self) -> Self;
    /// Multiplier `n` of the table.
    unsafe fn multiplier(table: Table, n: usize) -> Self::Multiplier;
    unsafe fn prepare(self) -> Self::Prepared;
    /// `self + other * multiplier`.
    unsafe fn add_times(self, other: Self::Prepared, multiplier: Self::Multiplier) -> Self;
}

/// Symbols as bytes, whose multipliers all lie in GF(2^8). In the table there are `LEN` elements for each, of
/// which the first says all.
#[derive(Clone, Copy)]
pub(super) struct Bytes<V, const LEN: usize>(V);

/// Symbols over the tower field: low bytes and high ones.
#[derive(Clone, Copy)]
pub(super) struct Pairs<V>(V, V);

/// What there is of each multiplier over either field.
pub(super) const OF_BYTES: usize = factor_len(Field::Bytes);
pub(super) const OF_PAIRS: usize = factor_len(Field::Tower);

// SAFETY: `load` and `store` access `V::SIZE` bytes, and offsets are places as they are.
unsafe impl<V: Vector, const LEN: usize> Lane for Bytes<V, LEN> {
    type Of = V;
    const SIZE: usize = V::SIZE;
    const BLOCK: usize = V::SIZE;
    const FACTOR_LEN: usize = LEN;
    type Multiplier = V::Spread;
    type Prepared = V::Prepared;

    #[inline(always)]
    fn offset(at: usize) -> usize {
        at
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the caller.
        Self(unsafe { V::load(from) })
    }

    #[inline(always)]
    unsafe fn store(self, into: *mut u8) {
        // SAFETY: by the caller.
        unsafe { self.0.store(into) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: by the caller.
        Self(unsafe { self.0.xor(other.0) })
    }

    #[inline(always)]
    unsafe fn multiplier(table: Table, n: usize) -> V::Spread {
        // SAFETY: by the caller.
        unsafe { V::spread_nth(table, LEN * n) }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> V::Prepared {
        // SAFETY: by the caller.
        unsafe { self.0.prepare() }
    }

    #[inline(always)]
    unsafe fn add_times(self, other: V::Prepared, multiplier: V::Spread) -> Self {
        // SAFETY: by the caller.
        Self(unsafe { self.0.xor(V::multiply(other, multiplier)) })
    }
}

// SAFETY: `load` and `store` access `V::SIZE` bytes in both halves of a block.
unsafe impl<V: Vector> Lane for Pairs<V> {
    type Of = V;
    const SIZE: usize = 2 * V::SIZE;
    const BLOCK: usize = tower::BLOCK_SIZE;
    const FACTOR_LEN: usize = OF_PAIRS;
    type Multiplier = [V::Spread; OF_PAIRS];
    type Prepared = [V::Prepared; 2];

    #[inline(always)]
    fn offset(at: usize) -> usize {
        let at = at / 2;
        at / HALF * tower::BLOCK_SIZE + at % HALF
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the caller.
        unsafe { Self(V::load(from), V::load(from.add(HALF))) }
    }

    #[inline(always)]
    unsafe fn store(self, into: *mut u8) {
        // SAFETY: by the caller.
        unsafe {
            self.0.store(into);
            self.1.store(into.add(HALF));
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: by the caller.
        unsafe { Self(self.0.xor(other.0), self.1.xor(other.1)) }
    }

    #[inline(always)]
    unsafe fn multiplier(table: Table, n: usize) -> [V::Spread; OF_PAIRS] {
        // SAFETY: by the caller.
        unsafe {
            let mut multiplier = [V::spread(0); OF_PAIRS];
            for m in 0..OF_PAIRS {
                multiplier[m] = V::spread_nth(table, OF_PAIRS * n + m);
            }
            multiplier
        }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> [V::Prepared; 2] {
        // SAFETY: by the caller.
        unsafe { [self.0.prepare(), self.1.prepare()] }
    }

    #[inline(always)]
    unsafe fn add_times(
        self,
        [low, high]: [V::Prepared; 2],
        [c, ld, d, c_d]: [V::Spread; OF_PAIRS],
    ) -> Self {
        // SAFETY: by the caller.
        unsafe {
            Self(
                self.0.xor3(V::multiply(low, c), V::multiply(high, ld)),
                self.1.xor3(V::multiply(low, d), V::multiply(high, c_d)),
            )
        }
    }
}
