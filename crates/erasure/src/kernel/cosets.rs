//! The transforms of [`crate::transform`] for one processor's vectors, written once for all of them.
//!
//! A coset goes through its layers in two steps, so that what is worked on fits into registers: first
//! each *run* of four consecutive symbols through the layers within it, into a tile that stays in the
//! first-level cache; then, for each place in the runs, the symbols there through the layers between
//! the runs, and into the sums. Four symbols at a time, because symbols are often exactly 4 KiB apart:
//! all symbols of a coset at once would compete for the same few places of the cache.

#![allow(unsafe_code)]
// Iterators would take closures, which are not compiled for the instructions of their function.
#![allow(clippy::needless_range_loop)]
#![allow(clippy::needless_pass_by_value, reason = "a job is handed on whole")]

use super::engine::{Coset, Evaluation};
use super::table::Table;
use super::vector::{Fetch, HALF, Vector};
use crate::tower;
use crate::transform::RUN;

/// Symbols of the largest transform.
const SIZE_MAX: usize = 1 << crate::transform::LOG_MAX;

/// A vector of symbols: of bytes, or of pairs of them.
///
/// # Safety
///
/// Functions may be called only on a processor that has the instructions of the vector. `load` and
/// `store` access [`SIZE`](Self::SIZE) bytes in a block of symbols that holds `at`.
pub(super) unsafe trait Lane: Copy {
    /// Bytes of a symbol in it.
    const SIZE: usize;
    /// Elements of a multiplier.
    const FACTOR_LEN: usize;

    /// Where the bytes number `at` and following of a symbol are.
    fn offset(at: usize) -> usize;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, into: *mut u8);
    unsafe fn fetch(ahead: &Fetch<RUN>, at: usize, count: usize);
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn xor3(self, second: Self, third: Self) -> Self;
    /// Times multiplier `n` of the table.
    unsafe fn times(self, table: Table, n: usize) -> Self;
    /// `self + other * multiplier n`.
    unsafe fn add_times(self, other: Self, table: Table, n: usize) -> Self;
    /// `self + other + third * multiplier n`.
    unsafe fn add_add_times(self, other: Self, third: Self, table: Table, n: usize) -> Self;
}

/// Symbols over GF(2^8).
#[derive(Clone, Copy)]
pub(super) struct Bytes<V>(V);

/// Symbols over the tower field: low bytes and high ones.
#[derive(Clone, Copy)]
pub(super) struct Pairs<V>(V, V);

// SAFETY: `load` and `store` access `V::SIZE` bytes.
unsafe impl<V: Vector> Lane for Bytes<V> {
    const SIZE: usize = V::SIZE;
    const FACTOR_LEN: usize = 1;

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
    unsafe fn fetch(ahead: &Fetch<RUN>, at: usize, count: usize) {
        // SAFETY: by the caller.
        unsafe { ahead.fetch::<V>(0..RUN, at, count) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: by the caller.
        Self(unsafe { self.0.xor(other.0) })
    }

    #[inline(always)]
    unsafe fn xor3(self, second: Self, third: Self) -> Self {
        // SAFETY: by the caller.
        Self(unsafe { self.0.xor3(second.0, third.0) })
    }

    #[inline(always)]
    unsafe fn times(self, table: Table, n: usize) -> Self {
        // SAFETY: by the caller.
        Self(unsafe { V::multiply(self.0.prepare(), V::spread_nth(table, n)) })
    }

    #[inline(always)]
    unsafe fn add_times(self, other: Self, table: Table, n: usize) -> Self {
        // SAFETY: by the caller.
        unsafe { self.xor(other.times(table, n)) }
    }

    #[inline(always)]
    unsafe fn add_add_times(self, other: Self, third: Self, table: Table, n: usize) -> Self {
        // SAFETY: by the caller.
        unsafe { self.xor3(other, third.times(table, n)) }
    }
}

// SAFETY: `load` and `store` access `V::SIZE` bytes in both halves of a block.
unsafe impl<V: Vector> Lane for Pairs<V> {
    const SIZE: usize = 2 * V::SIZE;
    const FACTOR_LEN: usize = 4;

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
    unsafe fn fetch(ahead: &Fetch<RUN>, at: usize, count: usize) {
        // SAFETY: by the caller.
        unsafe { ahead.fetch::<V>(0..RUN, at, count) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: by the caller.
        unsafe { Self(self.0.xor(other.0), self.1.xor(other.1)) }
    }

    #[inline(always)]
    unsafe fn xor3(self, second: Self, third: Self) -> Self {
        // SAFETY: by the caller.
        unsafe { Self(self.0.xor3(second.0, third.0), self.1.xor3(second.1, third.1)) }
    }

    #[inline(always)]
    unsafe fn times(self, table: Table, n: usize) -> Self {
        // SAFETY: by the caller.
        unsafe {
            let [low, high] = products(self, table, n);
            Self(low[0].xor(low[1]), high[0].xor(high[1]))
        }
    }

    #[inline(always)]
    unsafe fn add_times(self, other: Self, table: Table, n: usize) -> Self {
        // SAFETY: by the caller.
        unsafe {
            let [low, high] = products(other, table, n);
            Self(self.0.xor3(low[0], low[1]), self.1.xor3(high[0], high[1]))
        }
    }

    #[inline(always)]
    unsafe fn add_add_times(self, other: Self, third: Self, table: Table, n: usize) -> Self {
        // SAFETY: by the caller.
        unsafe { self.xor(other).add_times(third, table, n) }
    }
}

/// The products of a pair and a multiplier: two whose sum is the low byte, two for the high one.
///
/// # Safety
///
/// The processor has the instructions, and what is named is there.
#[inline(always)]
unsafe fn products<V: Vector>(pairs: Pairs<V>, table: Table, n: usize) -> [[V; 2]; 2] {
    // SAFETY: by the caller.
    unsafe {
        let (low, high) = (pairs.0.prepare(), pairs.1.prepare());
        [
            [
                V::multiply(low, V::spread_nth(table, 4 * n)),
                V::multiply(high, V::spread_nth(table, 4 * n + 1)),
            ],
            [
                V::multiply(low, V::spread_nth(table, 4 * n + 2)),
                V::multiply(high, V::spread_nth(table, 4 * n + 3)),
            ],
        ]
    }
}

/// [`Engine::coset`](super::engine::Engine::coset) for `RUNS` runs of [`RUN`] symbols.
///
/// # Safety
///
/// The processor has the instructions of the lane.
#[inline(always)]
pub(super) unsafe fn coset<L: Lane, const RUNS: usize, const W: usize>(coset: Coset<'_>) {
    let Coset { start, size, stride, tile_stride, .. } = coset;
    let count = RUN * RUNS;
    assert!(count <= SIZE_MAX && coset.sources.len() == count);
    let end = start.checked_add(size).expect("within memory");
    assert!(coset.sources.iter().all(|source| source.is_empty() || end <= source.len()));
    assert!(size <= coset.zeros.len());
    assert!(size.is_multiple_of(L::SIZE) && size.is_multiple_of(block::<L>()));
    assert!(start.is_multiple_of(block::<L>()));
    // The sums of a block may lie anywhere in those of a run, so the last ones may end early.
    assert!(size <= stride && (count - 1) * stride + size <= coset.acc.len());
    assert!(size <= tile_stride && count * tile_stride <= coset.tile.len());
    assert!(coset.factors.elements.len() == (2 * count - 1) * L::FACTOR_LEN);
    assert!(coset.factors.matrices.len() == coset.factors.elements.len());
    let table = Table::new(coset.factors);
    let (acc, tile) = (coset.acc.as_mut_ptr(), coset.tile.as_mut_ptr());
    // SAFETY: offsets of lanes below `size` stay below it, so lanes lie within every source from
    // `start` on, and within the strides of the sums and of the tile, of which there are `count`
    // (checked). The table has the multipliers of `count` scales and `count - 1` butterflies (checked).
    unsafe {
        for run in 0..RUNS {
            let mut sources = [coset.sources[0].as_ptr(); RUN];
            for n in 0..RUN {
                let source = coset.sources[run * RUN + n];
                sources[n] = match source.is_empty() {
                    true => coset.zeros.as_ptr(),
                    false => source.as_ptr().add(start),
                };
            }
            let ahead = Fetch::new(&coset.ahead, coset.sources, run * RUN, start, size);
            let table = table.skip(run * (2 * RUN - 1) * L::FACTOR_LEN);
            let tile = tile.wrapping_add(run * RUN * tile_stride);
            let mut step = 0;
            while step + W * L::SIZE <= size {
                first_layers::<L, W>(&sources, &ahead, step, table, tile, tile_stride);
                step += W * L::SIZE;
            }
            while step < size {
                first_layers::<L, 1>(&sources, &ahead, step, table, tile, tile_stride);
                step += L::SIZE;
            }
        }
        let table = table.skip(RUNS * (2 * RUN - 1) * L::FACTOR_LEN);
        for n in 0..RUN {
            let mut step = 0;
            while step < size {
                let offset = L::offset(step);
                step += L::SIZE;
                let tile = tile.add(n * tile_stride + offset);
                let mut lanes = [L::load(tile); RUNS];
                for run in 1..RUNS {
                    lanes[run] = L::load(tile.add(run * RUN * tile_stride));
                }
                interpolate::<L, RUNS>(lanes, table, acc.add(n * stride + offset), RUN * stride);
            }
        }
    }
}

/// The scales and the first layers of a run, for `W` lanes of each symbol: into the tile.
///
/// # Safety
///
/// As [`coset`] argues.
#[inline(always)]
unsafe fn first_layers<L: Lane, const W: usize>(
    sources: &[*const u8; RUN],
    ahead: &Fetch<RUN>,
    step: usize,
    table: Table,
    tile: *mut u8,
    stride: usize,
) {
    // SAFETY: as `coset` argues.
    unsafe {
        let mut lanes = [[L::load(sources[0].add(L::offset(step))); RUN]; W];
        for n in 0..RUN {
            for w in 0..W {
                lanes[w][n] = L::load(sources[n].add(L::offset(step + w * L::SIZE)));
            }
        }
        L::fetch(ahead, step, W * L::SIZE);
        for n in 0..RUN {
            for w in 0..W {
                lanes[w][n] = lanes[w][n].times(table, n);
            }
        }
        let table = table.skip(RUN * L::FACTOR_LEN);
        for w in 0..W {
            let at = L::offset(step + w * L::SIZE);
            let lanes = interpolated::<L, RUN>(lanes[w], table);
            for n in 0..RUN {
                lanes[n].store(tile.add(n * stride + at));
            }
        }
    }
}

/// Bytes in which a symbol's lanes repeat their pattern of addresses.
const fn block<L: Lane>() -> usize {
    if L::FACTOR_LEN == 1 { 1 } else { tower::BLOCK_SIZE }
}

/// All layers of an interpolation of `N` lanes.
///
/// # Safety
///
/// The processor has the instructions, and what is named is there.
#[inline(always)]
unsafe fn interpolated<L: Lane, const N: usize>(mut lanes: [L; N], table: Table) -> [L; N] {
    let (mut half, mut n) = (1, 0);
    while half < N {
        let mut start = 0;
        while start < N {
            for a in start..start + half {
                let b = a + half;
                // SAFETY: by the caller.
                unsafe {
                    lanes[b] = lanes[b].xor(lanes[a]);
                    lanes[a] = lanes[a].add_times(lanes[b], table, n);
                }
            }
            start += 2 * half;
            n += 1;
        }
        half *= 2;
    }
    lanes
}

/// All layers of an interpolation of `N` lanes, and the sum of what comes out with lanes that are
/// `stride` bytes apart.
///
/// # Safety
///
/// The processor has the instructions, and what is named is there.
#[inline(always)]
unsafe fn interpolate<L: Lane, const N: usize>(
    mut lanes: [L; N],
    table: Table,
    acc: *mut u8,
    stride: usize,
) {
    // SAFETY: by the caller.
    unsafe {
        let (mut half, mut n) = (1, 0);
        while half < N / 2 {
            let mut start = 0;
            while start < N {
                for a in start..start + half {
                    let b = a + half;
                    lanes[b] = lanes[b].xor(lanes[a]);
                    lanes[a] = lanes[a].add_times(lanes[b], table, n);
                }
                start += 2 * half;
                n += 1;
            }
            half *= 2;
        }
        for a in 0..half {
            let b = a + half;
            let (into_a, into_b) = (acc.add(a * stride), acc.add(b * stride));
            let sum = lanes[a].xor(lanes[b]);
            L::load(into_b).xor(sum).store(into_b);
            L::load(into_a).add_add_times(lanes[a], sum, table, n).store(into_a);
        }
    }
}

/// [`Engine::evaluate`](super::engine::Engine::evaluate) for `RUNS` runs of [`RUN`] symbols.
///
/// # Safety
///
/// The processor has the instructions of the lane.
#[inline(always)]
pub(super) unsafe fn evaluate<L: Lane, const RUNS: usize>(job: Evaluation<'_>) {
    let count = RUN * RUNS;
    assert!(job.size.is_multiple_of(L::SIZE) && job.size.is_multiple_of(block::<L>()));
    assert!(job.size <= job.stride && (count - 1) * job.stride + job.size <= job.acc.len());
    assert!(job.factors.elements.len() == (count - 1) * L::FACTOR_LEN);
    assert!(job.factors.matrices.len() == job.factors.elements.len());
    let table = Table::new(job.factors);
    let (acc, stride) = (job.acc.as_mut_ptr(), job.stride);
    let mut step = 0;
    // SAFETY: as for `coset`; the table has the multipliers of `count - 1` butterflies (checked).
    unsafe {
        while step < job.size {
            let acc = acc.add(L::offset(step));
            step += L::SIZE;
            for n in 0..RUN {
                evaluate_lanes::<L, RUNS>(table, acc.add(n * stride), RUN * stride);
            }
            for run in 0..RUNS {
                let table = table.skip((RUNS - 1 + run * (RUN - 1)) * L::FACTOR_LEN);
                evaluate_lanes::<L, RUN>(table, acc.add(run * RUN * stride), stride);
            }
        }
    }
}

/// All layers of an evaluation of `N` lanes that are `stride` bytes apart.
///
/// # Safety
///
/// The processor has the instructions, and what is named is there.
#[inline(always)]
unsafe fn evaluate_lanes<L: Lane, const N: usize>(table: Table, acc: *mut u8, stride: usize) {
    // SAFETY: by the caller.
    unsafe {
        let mut lanes = [L::load(acc); N];
        for n in 1..N {
            lanes[n] = L::load(acc.add(n * stride));
        }
        let (mut half, mut n) = (N / 2, 0);
        while half > 0 {
            let mut start = 0;
            while start < N {
                for a in start..start + half {
                    let b = a + half;
                    lanes[a] = lanes[a].add_times(lanes[b], table, n);
                    lanes[b] = lanes[b].xor(lanes[a]);
                }
                start += 2 * half;
                n += 1;
            }
            half /= 2;
        }
        for n in 0..N {
            lanes[n].store(acc.add(n * stride));
        }
    }
}
