//! The kernel that keeps sources in registers while rows go by, for one processor's vectors, written once for all of
//! them.
//!
//! A group is four sources by a few vectors of each, which stay in registers while they are
//! multiplied for one row after another. What an element is multiplied by is looked up where it is
//! needed, in a table small enough for the first-level cache: that costs less than any preparation.
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

use super::engine::{FACTOR_LEN_MAX, Mad, ROWS_MAX};
use super::fetch::Fetch;
use super::vector::{HALF, Vector};
use crate::fields::Field;
use crate::tower;

/// Sources of a group.
pub(super) const GROUP: usize = 4;

/// Numbers of a factor over the tower field: for `c`, `d` and `c + d`.
pub(super) const FACTOR_LEN_16: usize = 3;

const _: () = assert!(FACTOR_LEN_16 <= FACTOR_LEN_MAX);

/// [`Engine::factors`](super::engine::Engine::factors).
pub(super) fn factors<V: Vector>(field: Field, elements: &[u16], into: &mut [u64]) {
    match field {
        Field::Bytes => {
            for (factor, &element) in into.iter_mut().zip(elements) {
                *factor = V::factor(element as u8);
            }
        }
        Field::Tower => {
            for (factor, &element) in
                into.as_chunks_mut::<FACTOR_LEN_16>().0.iter_mut().zip(elements)
            {
                let (c, d) = tower::split(element);
                *factor = [V::factor(c), V::factor(d), V::factor(c ^ d)];
            }
        }
    }
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
pub(super) fn check(mad: &Mad<'_>, acc_size: usize, step: usize, factor_len: usize) {
    let row_count = mad.row_count();
    let end = mad.start.checked_add(mad.size).expect("within memory");
    assert!(mad.sources.iter().all(|source| end <= source.len()));
    assert!(mad.size.is_multiple_of(step));
    assert!(mad.sources.len() * row_count * factor_len <= mad.factors.len());
    assert!(row_count <= ROWS_MAX);
    // The sums of a block may lie anywhere in those of a run, so those of the last row may end early.
    let before_the_last = row_count.saturating_sub(1) * mad.stride;
    assert!(acc_size <= mad.stride && before_the_last + acc_size <= mad.acc.len());
}

/// `S` sources: where their blocks start, what is to be fetched, and their factors.
struct Group<const S: usize> {
    sources: [*const u8; S],
    ahead: Fetch<S>,
    /// The factors of the first source. Those of the next one are `column` further, and so on.
    factors: *const u64,
    column: usize,
}

impl<const S: usize> Group<S> {
    /// The group that starts with source `first`.
    ///
    /// # Safety
    ///
    /// There are `S` sources from there on, and the job is checked.
    #[inline(always)]
    unsafe fn new(mad: &Mad<'_>, first: usize, factor_len: usize) -> Self {
        let column = mad.row_count() * factor_len;
        let mut sources = [std::ptr::null(); S];
        for n in 0..S {
            // SAFETY: by the caller, and as `check` has found.
            sources[n] = unsafe { mad.sources.get_unchecked(first + n).as_ptr().add(mad.start) };
        }
        Self {
            sources,
            ahead: Fetch::new(&mad.ahead, mad.sources, first, mad.start, mad.size),
            // SAFETY: by the caller there are factors for it.
            factors: unsafe { mad.factors.as_ptr().add(first * column) },
            column,
        }
    }
}

/// [`Engine::mad8`](super::engine::Engine::mad8).
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn mad8<V: Vector, const W: usize>(mut mad: Mad<'_>) {
    check(&mad, mad.size, V::SIZE, 1);
    let whole = mad.sources.len() / GROUP * GROUP;
    // SAFETY: the groups are of sources that exist; the caller has the instructions.
    unsafe {
        for first in (0..whole).step_by(GROUP) {
            group8::<V, GROUP, W>(&mut mad, first);
        }
        match mad.sources.len() - whole {
            1 => group8::<V, 1, W>(&mut mad, whole),
            2 => group8::<V, 2, W>(&mut mad, whole),
            3 => group8::<V, 3, W>(&mut mad, whole),
            _ => {}
        }
    }
}

/// One group of `S` sources, of a job that is checked.
#[inline(always)]
unsafe fn group8<V: Vector, const S: usize, const W: usize>(mad: &mut Mad<'_>, first: usize) {
    let row_count = mad.row_count();
    let acc = mad.acc.as_mut_ptr();
    let mut at = 0;
    // SAFETY: `at` and the vectors from it stay below `size`, which every source has from `start` on,
    // and a row's sum of at least `size` bytes lies every `stride` bytes within `acc`. There are
    // `row_count` elements for each source. All this is checked.
    unsafe {
        let group = Group::<S>::new(mad, first, 1);
        while at + W * V::SIZE <= mad.size {
            step8::<V, S, W>(&group, mad.row_0_is_xor, row_count, acc, mad.stride, at);
            at += W * V::SIZE;
        }
        while at < mad.size {
            step8::<V, S, 1>(&group, mad.row_0_is_xor, row_count, acc, mad.stride, at);
            at += V::SIZE;
        }
    }
}

/// `W` vectors of each of `S` sources, for all rows.
///
/// # Safety
///
/// As [`group8`] argues.
#[inline(always)]
unsafe fn step8<V: Vector, const S: usize, const W: usize>(
    group: &Group<S>,
    row_0_is_xor: bool,
    row_count: usize,
    acc: *mut u8,
    stride: usize,
    at: usize,
) {
    // SAFETY: as `group8` argues.
    unsafe {
        let mut vectors = [[V::load(group.sources[0].add(at)); S]; W];
        for n in 0..S {
            for w in 0..W {
                vectors[w][n] = V::load(group.sources[n].add(at + w * V::SIZE));
            }
        }
        // Half before the work and half after it: all at once are more than the processor can have under
        // way.
        group.ahead.fetch::<V>(0..S / 2, at, W * V::SIZE);
        if row_0_is_xor {
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
        let first = usize::from(row_0_is_xor);
        let mut factors = group.factors.add(first);
        let mut acc = acc.add(first * stride + at);
        for _ in first..row_count {
            let mut spread = [V::spread_factor(factors); S];
            for n in 1..S {
                spread[n] = V::spread_factor(factors.add(n * group.column));
            }
            for w in 0..W {
                let acc = acc.add(w * V::SIZE);
                let mut terms = [vectors[0][0]; S];
                for n in 0..S {
                    terms[n] = V::multiply(prepared[w][n], spread[n]);
                }
                add(V::load(acc), terms).store(acc);
            }
            factors = factors.add(1);
            acc = acc.wrapping_add(stride);
        }
        group.ahead.fetch::<V>(S / 2..S, at, W * V::SIZE);
    }
}

/// [`Engine::mad16`](super::engine::Engine::mad16).
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn mad16<V: Vector, const W: usize>(mut mad: Mad<'_>) {
    check(&mad, mad.stride / 3 * 2 + mad.size / 2, tower::BLOCK_SIZE, FACTOR_LEN_16);
    let whole = mad.sources.len() / GROUP * GROUP;
    // SAFETY: the groups are of sources that exist; the caller has the instructions.
    unsafe {
        for first in (0..whole).step_by(GROUP) {
            group16::<V, GROUP, W>(&mut mad, first);
        }
        match mad.sources.len() - whole {
            1 => group16::<V, 1, W>(&mut mad, whole),
            2 => group16::<V, 2, W>(&mut mad, whole),
            3 => group16::<V, 3, W>(&mut mad, whole),
            _ => {}
        }
    }
}

/// One group of `S` sources, of a job that is checked.
#[inline(always)]
unsafe fn group16<V: Vector, const S: usize, const W: usize>(mad: &mut Mad<'_>, first: usize) {
    let row_count = mad.row_count();
    let acc = mad.acc.as_mut_ptr();
    let mut at = 0;
    // SAFETY: `at` and the vectors from it stay below `size / 2`; for each there are a low and a high
    // vector in a block of the sources, and one in each of the three planes of a row's sum, which have
    // `size / 2` bytes each from `acc` on. There are `row_count` elements for each source. All this is
    // checked.
    unsafe {
        let group = Group::<S>::new(mad, first, FACTOR_LEN_16);
        while at + W * V::SIZE <= mad.size / 2 {
            step16::<V, S, W>(&group, mad.row_0_is_xor, row_count, acc, mad.stride, at);
            at += W * V::SIZE;
        }
        while at < mad.size / 2 {
            step16::<V, S, 1>(&group, mad.row_0_is_xor, row_count, acc, mad.stride, at);
            at += V::SIZE;
        }
    }
}

/// `W` vectors of low bytes and of high ones of each of `S` sources, for all rows.
///
/// # Safety
///
/// As [`group16`] argues.
#[inline(always)]
unsafe fn step16<V: Vector, const S: usize, const W: usize>(
    group: &Group<S>,
    row_0_is_xor: bool,
    row_count: usize,
    acc: *mut u8,
    stride: usize,
    at: usize,
) {
    let plane = stride / 3;
    // SAFETY: as `group16` argues.
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
                group.ahead.fetch::<V>(0..S, from, tower::BLOCK_SIZE);
            }
        }
        if row_0_is_xor {
            for which in [0, 2] {
                for w in 0..W {
                    let acc = acc.add(which * plane + at + w * V::SIZE);
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
        let first = usize::from(row_0_is_xor);
        let mut factors = group.factors.add(FACTOR_LEN_16 * first);
        let mut acc = acc.add(first * stride + at);
        for _ in first..row_count {
            for which in 0..3 {
                let mut spread = [V::spread_factor(factors.add(which)); S];
                for n in 1..S {
                    spread[n] = V::spread_factor(factors.add(n * group.column + which));
                }
                for w in 0..W {
                    let acc = acc.add(which * plane + w * V::SIZE);
                    let mut terms = [parts[which][0][w]; S];
                    for n in 0..S {
                        terms[n] = V::multiply(prepared[which][n][w], spread[n]);
                    }
                    add(V::load(acc), terms).store(acc);
                }
            }
            factors = factors.wrapping_add(FACTOR_LEN_16);
            acc = acc.wrapping_add(stride);
        }
    }
}

/// [`Engine::copy_past`](super::engine::Engine::copy_past).
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn copy_past<V: Vector>(into: &mut [u8], from: &[u8]) {
    assert!(into.len() == from.len());
    if !into.len().is_multiple_of(V::SIZE) || !into.as_ptr().addr().is_multiple_of(V::SIZE) {
        into.copy_from_slice(from);
        return;
    }
    let mut at = 0;
    while at < into.len() {
        // SAFETY: the vector at `at` lies within both, which are of one length, a multiple of a vector's;
        // in `into` at a multiple of it.
        unsafe { V::load(from.as_ptr().add(at)).store_past(into.as_mut_ptr().add(at)) };
        at += V::SIZE;
    }
}

/// [`Engine::fold16`](super::engine::Engine::fold16).
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn fold16<V: Vector>(acc: &[u8], into: &mut [u8]) {
    let plane = acc.len() / 3;
    assert!(into.len() / 2 <= plane && into.len().is_multiple_of(tower::BLOCK_SIZE));
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
            let share = V::multiply(s2.prepare(), V::spread(tower::L));
            V::load(low).xor3(s1, share).store(low);
            V::load(high).xor3(s1, s3).store(high);
            from += V::SIZE;
        }
    }
}
