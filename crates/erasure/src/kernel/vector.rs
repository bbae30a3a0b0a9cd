//! The kernels for one processor's vectors, written once for all of them.
//!
//! A group is four sources by a few vectors of each, which stay in registers while they are
//! multiplied for one row after another. The elements of a group are looked up once for each block
//! and laid out next to each other in the form that the multiplication takes.
//!
//! Over the tower field, `(a + b Y) (c + d Y)` takes three multiplications over GF(2^8), and the sums
//! of each are kept apart until the end of a block:
//!
//! ```text
//!   S1 = sum of c a      S2 = sum of d b      S3 = sum of (c + d) (a + b)
//!   low = S1 + L S2      high = S1 + S3
//! ```
//!
//! A row's sum is `S1`, `S2` and `S3`, one after another.

#![allow(unsafe_code)]
// Iterators would take closures, which are not compiled for the instructions of their function.
#![allow(clippy::needless_range_loop)]
#![allow(clippy::needless_pass_by_value, reason = "a job is handed on whole")]

use std::mem::MaybeUninit;

use super::driver::{Mad, ROWS_MAX};
use crate::tower;

/// Sources of a group.
pub(super) const GROUP: usize = 4;

/// Bytes of a line of cache.
const LINE_SIZE: usize = 64;

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
    /// Vectors of a source at a time, over GF(2^8).
    const WIDTH_8: usize;
    /// Vectors of the low bytes of a source, and of the high ones, at a time, over the tower field.
    const WIDTH_16: usize;
    /// An element of GF(2^8) in the form that multiplying takes.
    type Factor: Copy;
    /// A factor in registers.
    type Spread: Copy;
    /// A vector in the form that multiplying takes.
    type Prepared: Copy;

    fn factor(element: u8) -> Self::Factor;
    unsafe fn zero() -> Self;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, into: *mut u8);
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn xor3(self, second: Self, third: Self) -> Self;
    unsafe fn prepare(self) -> Self::Prepared;
    unsafe fn spread(factor: *const Self::Factor) -> Self::Spread;
    unsafe fn multiply(prepared: Self::Prepared, factor: Self::Spread) -> Self;
    unsafe fn prefetch(at: *const u8);
}

/// `sum + terms[0] + terms[1] + ..`
#[inline(always)]
unsafe fn add<V: Vector, const S: usize>(mut sum: V, terms: [V; S]) -> V {
    let mut n = 0;
    // SAFETY: only registers are touched.
    unsafe {
        while n + 1 < S {
            sum = sum.xor3(terms[n], terms[n + 1]);
            n += 2;
        }
        if n < S { sum.xor(terms[n]) } else { sum }
    }
}

/// What an engine's `mad8` and `mad16` check before they trust the addresses.
#[inline(always)]
fn check(mad: &Mad<'_>, acc_size: usize) -> (usize, usize) {
    let size = mad.sources[0].len();
    let row_count = mad.columns[0].len();
    assert!(mad.sources.iter().all(|source| source.len() == size));
    assert!(mad.columns.iter().all(|column| column.len() == row_count));
    assert!(row_count <= ROWS_MAX);
    assert!(acc_size <= mad.stride);
    assert!(row_count * mad.stride <= mad.acc.len());
    (size, row_count)
}

/// The addresses to fetch: of the next group, or, where that is shorter, of this one once more.
#[inline(always)]
fn next<const S: usize>(mad: &Mad<'_>) -> [*const u8; S] {
    std::array::from_fn(|n| match mad.next.get(n) {
        Some(next) if next.len() == mad.sources[n].len() => next.as_ptr(),
        _ => mad.sources[n].as_ptr(),
    })
}

/// [`Engine::mad8`](super::driver::Engine::mad8) for a group of exactly `S` sources.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn mad8<V: Vector, const S: usize, const W: usize>(mad: Mad<'_>) {
    let (size, row_count) = check(&mad, mad.sources[0].len());
    assert!(mad.sources.len() == S && mad.columns.len() == S);
    assert!(size.is_multiple_of(V::SIZE));
    let sources: [*const u8; S] = std::array::from_fn(|n| mad.sources[n].as_ptr());
    let next = next::<S>(&mad);
    let columns: [&[u16]; S] = std::array::from_fn(|n| &mad.columns[n][..row_count]);
    let first = usize::from(mad.row_0_is_xor);
    let mut factors = [const { MaybeUninit::<[V::Factor; S]>::uninit() }; ROWS_MAX];
    let written = factors.as_mut_ptr().cast::<V::Factor>();
    for (n, column) in columns.iter().enumerate() {
        for (row, &element) in column.iter().enumerate() {
            // SAFETY: there are at most `ROWS_MAX` rows (checked), and `S` columns.
            unsafe { written.add(row * S + n).write(V::factor(element as u8)) };
        }
    }
    let factors = factors.as_ptr().cast::<[V::Factor; S]>();
    let acc = mad.acc.as_mut_ptr();
    let mut at = 0;
    // SAFETY: `at` and the vectors from it stay below `size`, the length of every source (checked),
    // and a row's sum of at least `size` bytes lies every `stride` bytes within `acc` (checked).
    // The factors of all rows were written above. Fetching ahead accesses nothing.
    unsafe {
        while at + W * V::SIZE <= size {
            step8::<V, S, W>(sources, next, factors, first, row_count, acc, mad.stride, at);
            at += W * V::SIZE;
        }
        while at < size {
            step8::<V, S, 1>(sources, next, factors, first, row_count, acc, mad.stride, at);
            at += V::SIZE;
        }
    }
}

/// `W` vectors of each of `S` sources, for all rows.
///
/// # Safety
///
/// As [`mad8`] argues.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "all in registers")]
unsafe fn step8<V: Vector, const S: usize, const W: usize>(
    sources: [*const u8; S],
    next: [*const u8; S],
    factors: *const [V::Factor; S],
    first: usize,
    row_count: usize,
    acc: *mut u8,
    stride: usize,
    at: usize,
) {
    // SAFETY: as `mad8` argues.
    unsafe {
        let mut vectors = [[V::load(sources[0].add(at)); S]; W];
        for w in 0..W {
            for n in 0..S {
                vectors[w][n] = V::load(sources[n].add(at + w * V::SIZE));
            }
        }
        for next in next {
            let mut ahead = 0;
            while ahead < W * V::SIZE {
                V::prefetch(next.wrapping_add(at + ahead));
                ahead += LINE_SIZE;
            }
        }
        if first == 1 {
            for (w, vectors) in vectors.into_iter().enumerate() {
                let acc = acc.add(at + w * V::SIZE);
                add(V::load(acc), vectors).store(acc);
            }
        }
        let mut prepared = [[vectors[0][0].prepare(); S]; W];
        for w in 0..W {
            for n in 0..S {
                prepared[w][n] = vectors[w][n].prepare();
            }
        }
        for row in first..row_count {
            let factors = factors.add(row).cast::<V::Factor>();
            let mut spread = [V::spread(factors); S];
            for n in 1..S {
                spread[n] = V::spread(factors.add(n));
            }
            for w in 0..W {
                let acc = acc.add(row * stride + at + w * V::SIZE);
                let mut terms = [vectors[0][0]; S];
                for n in 0..S {
                    terms[n] = V::multiply(prepared[w][n], spread[n]);
                }
                add(V::load(acc), terms).store(acc);
            }
        }
    }
}

/// [`Engine::mad16`](super::driver::Engine::mad16) for a group of exactly `S` sources.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn mad16<V: Vector, const S: usize, const W: usize>(mad: Mad<'_>) {
    let (size, row_count) = check(&mad, mad.sources[0].len() / 2 * 3);
    assert!(mad.sources.len() == S && mad.columns.len() == S);
    assert!(size.is_multiple_of(tower::BLOCK_SIZE));
    let plane = mad.stride / 3;
    let sources: [*const u8; S] = std::array::from_fn(|n| mad.sources[n].as_ptr());
    let next = next::<S>(&mad);
    let columns: [&[u16]; S] = std::array::from_fn(|n| &mad.columns[n][..row_count]);
    let first = usize::from(mad.row_0_is_xor);
    let mut factors = [const { MaybeUninit::<[[V::Factor; 3]; S]>::uninit() }; ROWS_MAX];
    let written = factors.as_mut_ptr().cast::<V::Factor>();
    for (n, column) in columns.iter().enumerate() {
        for (row, &element) in column.iter().enumerate() {
            let (c, d) = tower::split(element);
            // SAFETY: there are at most `ROWS_MAX` rows (checked), and `S` columns of three factors.
            unsafe {
                let written = written.add((row * S + n) * 3);
                written.write(V::factor(c));
                written.add(1).write(V::factor(d));
                written.add(2).write(V::factor(c ^ d));
            }
        }
    }
    let factors = factors.as_ptr().cast::<[[V::Factor; 3]; S]>();
    let acc = mad.acc.as_mut_ptr();
    let group =
        Group16 { sources, next, factors, first, row_count, acc, stride: mad.stride, plane };
    let mut at = 0;
    // SAFETY: `at` and the vectors from it stay below `size / 2`; for each there are a low and a high
    // vector in a block of the sources, and one in each of the three planes of a row's sum, which are
    // at least `size / 2` long each (`check`). The factors of all rows were written above.
    unsafe {
        while at + W * V::SIZE <= size / 2 {
            step16::<V, S, W>(&group, at);
            at += W * V::SIZE;
        }
        while at < size / 2 {
            step16::<V, S, 1>(&group, at);
            at += V::SIZE;
        }
    }
}

/// What stays the same throughout a group over the tower field.
struct Group16<V: Vector, const S: usize> {
    sources: [*const u8; S],
    next: [*const u8; S],
    factors: *const [[V::Factor; 3]; S],
    first: usize,
    row_count: usize,
    acc: *mut u8,
    stride: usize,
    plane: usize,
}

/// `W` vectors of low bytes and of high ones of each of `S` sources, for all rows.
///
/// # Safety
///
/// As [`mad16`] argues.
#[inline(always)]
unsafe fn step16<V: Vector, const S: usize, const W: usize>(group: &Group16<V, S>, at: usize) {
    // SAFETY: as `mad16` argues.
    unsafe {
        // Low bytes, high bytes, and their sums.
        let mut parts = [[[V::load(group.sources[0]); W]; S]; 3];
        for w in 0..W {
            let at = at + w * V::SIZE;
            let from = at / HALF * tower::BLOCK_SIZE + at % HALF;
            for n in 0..S {
                let low = V::load(group.sources[n].add(from));
                let high = V::load(group.sources[n].add(from + HALF));
                parts[0][n][w] = low;
                parts[1][n][w] = high;
                parts[2][n][w] = low.xor(high);
            }
            if at.is_multiple_of(HALF) {
                for n in 0..S {
                    V::prefetch(group.next[n].wrapping_add(from));
                    V::prefetch(group.next[n].wrapping_add(from + LINE_SIZE));
                }
            }
        }
        if group.first == 1 {
            for which in [0, 2] {
                for w in 0..W {
                    let acc = group.acc.add(which * group.plane + at + w * V::SIZE);
                    let mut terms = [parts[which][0][w]; S];
                    for n in 1..S {
                        terms[n] = parts[which][n][w];
                    }
                    add(V::load(acc), terms).store(acc);
                }
            }
        }
        let mut prepared = [[[parts[0][0][0].prepare(); W]; S]; 3];
        for which in 0..3 {
            for n in 0..S {
                for w in 0..W {
                    prepared[which][n][w] = parts[which][n][w].prepare();
                }
            }
        }
        for row in group.first..group.row_count {
            let factors = group.factors.add(row).cast::<V::Factor>();
            let acc = group.acc.add(row * group.stride + at);
            for which in 0..3 {
                let mut spread = [V::spread(factors.add(which)); S];
                for n in 1..S {
                    spread[n] = V::spread(factors.add(3 * n + which));
                }
                for w in 0..W {
                    let acc = acc.add(which * group.plane + w * V::SIZE);
                    let mut terms = [parts[which][0][w]; S];
                    for n in 0..S {
                        terms[n] = V::multiply(prepared[which][n][w], spread[n]);
                    }
                    add(V::load(acc), terms).store(acc);
                }
            }
        }
    }
}

/// [`Engine::fold16`](super::driver::Engine::fold16).
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn fold16<V: Vector>(acc: &[u8], into: &mut [u8]) {
    let plane = acc.len() / 3;
    assert!(into.len() / 2 <= plane && into.len().is_multiple_of(tower::BLOCK_SIZE));
    let factor = V::factor(tower::L);
    let (acc, size, into) = (acc.as_ptr(), into.len(), into.as_mut_ptr());
    let mut from = 0;
    // SAFETY: `from` and the vector from it stay within each of the three planes of `acc`, and the
    // vectors at `to` and `HALF` further within a block of `into` (both checked).
    unsafe {
        while from < size / 2 {
            let (low, high) = {
                let to = into.add(from / HALF * tower::BLOCK_SIZE + from % HALF);
                (to, to.add(HALF))
            };
            let s1 = V::load(acc.add(from));
            let s2 = V::load(acc.add(from + plane));
            let s3 = V::load(acc.add(from + 2 * plane));
            let share = V::multiply(s2.prepare(), V::spread(&raw const factor));
            V::load(low).xor3(s1, share).store(low);
            V::load(high).xor3(s1, s3).store(high);
            from += V::SIZE;
        }
    }
}
