//! What a kernel needs of a processor's vectors.

#![allow(unsafe_code)]

use super::table::Table;
use crate::tower;

/// Bytes of a line of cache.
pub(super) const LINE_SIZE: usize = 64;

/// Bytes between the sums of two rows. Where the sums of rows are a multiple of 4 KiB apart they compete for
/// the same few places of the first-level cache; where they are that and less than what a step works on, a
/// load is taken for one of what the step has just stored for the row before, and waits for it.
pub(super) const PAD: usize = 5 * LINE_SIZE;

/// The same for the planes of a row.
pub(super) const PAD_16: usize = 3 * LINE_SIZE;

/// Half a block of the tower field: a run of low bytes, or of high ones.
pub(super) const HALF: usize = tower::BLOCK_SIZE / 2;

/// A vector register, or what does its work.
///
/// # Safety
///
/// Every function may be called only on a processor that has the instructions of the implementation.
/// `load` and `store` access [`SIZE`](Self::SIZE) bytes, which must be valid, at any alignment.
pub(super) unsafe trait Vector: Copy {
    /// Bytes of a vector. Divides 64.
    const SIZE: usize;
    /// Whether a tile of the matrix stays in registers while sources go by, and not sources while rows go by:
    /// where an element takes more than one register.
    const KEEPS_MULTIPLIERS: bool;
    /// Vectors of a source at a time, over GF(2^8), and half as many, where they stay in registers.
    const WIDTH_8: usize;
    const NARROW_8: usize;
    /// Vectors of the low bytes of a source, and of the high ones, at a time, over the tower field.
    const WIDTH_16: usize;
    /// An element of GF(2^8) in the form that multiplying takes, in registers.
    type Spread: Copy;
    /// A vector in the form that multiplying takes.
    type Prepared: Copy;

    unsafe fn zero() -> Self;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, into: *mut u8);
    /// As [`store`](Self::store), but past the cache, and to a multiple of [`SIZE`](Self::SIZE).
    unsafe fn store_past(self, into: *mut u8);
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn xor3(self, second: Self, third: Self) -> Self;
    unsafe fn prepare(self) -> Self::Prepared;
    unsafe fn spread(element: u8) -> Self::Spread;
    /// What [`spread_factor`](Self::spread_factor) takes to multiply by an element.
    fn factor(element: u8) -> u64;
    /// A factor, of which there is one at this address.
    unsafe fn spread_factor(at: *const u64) -> Self::Spread;
    /// Multiplier `n` of a table, which must have more than `n` multipliers.
    unsafe fn spread_nth(table: Table, n: usize) -> Self::Spread;
    unsafe fn multiply(prepared: Self::Prepared, factor: Self::Spread) -> Self;
    unsafe fn prefetch(at: *const u8);
    /// Into the second-level cache only.
    unsafe fn prefetch_far(at: *const u8);
    unsafe fn prefetch_to_write(at: *const u8);
}
