//! The kernels for few sources: sums stay in registers until they are stored, once.

#![allow(unsafe_code)]
// Iterators would take closures, which are not compiled for the instructions of their function.
#![allow(clippy::needless_range_loop)]
#![allow(clippy::needless_pass_by_value, reason = "a job is handed on whole")]

use std::mem::MaybeUninit;
use std::ops::Range;

use super::engine::{Few, Finish, Job};
use super::vector::{HALF, LINE_SIZE, Vector};
use crate::choice::{FEW, Stores, Width};
use crate::tower;

/// Rows that are summed in registers at a time.
const DOT_ROWS: usize = 4;

/// [`Engine::few`](super::engine::Engine::few) over GF(2^8): all sources are summed in registers, for
/// up to [`DOT_ROWS`] rows at a time, and each sum is stored once.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn few8<V: Vector>(few: Few<'_, '_>) {
    // SAFETY: the caller has the instructions.
    unsafe {
        // What is added to has been read, and is in the cache.
        let is_cached = few.choice.stores == Stores::Cached || few.finish == Finish::Xor;
        match (few.job.sources, few.choice.width) {
            (&[source], _) if is_cached => soles8::<V>(few, source),
            (_, Width::Narrow) => dots8::<V, 2>(few),
            (_, Width::Wide) => dots8::<V, 4>(few),
        }
    }
}

/// The same, `B` vectors of a source at a time.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn dots8<V: Vector, const B: usize>(few: Few<'_, '_>) {
    for first in (0..few.into.len()).step_by(DOT_ROWS) {
        let count = DOT_ROWS.min(few.into.len() - first);
        let into = &mut few.into[first..first + count];
        let dot = Dot {
            job: few.job,
            first,
            bytes: few.bytes.clone(),
            finish: few.finish,
            stores: few.choice.stores,
            ahead: few.choice.ahead,
        };
        // SAFETY: the caller has the instructions.
        unsafe {
            match count {
                1 => dot8::<V, 1, B>(dot, into),
                2 => dot8::<V, 2, B>(dot, into),
                3 => dot8::<V, 3, B>(dot, into),
                _ => dot8::<V, 4, B>(dot, into),
            }
        }
    }
}

/// Some rows of a job.
struct Dot<'a> {
    job: Job<'a>,
    /// The first row.
    first: usize,
    bytes: Range<usize>,
    finish: Finish,
    stores: Stores,
    /// How far ahead of the vectors in use the same symbols are fetched. Past the end of a symbol that
    /// fetches something useless, or the symbol that comes next.
    ahead: usize,
}

/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn dot8<V: Vector, const M: usize, const B: usize>(dot: Dot<'_>, into: &mut [&mut [u8]]) {
    let Dot { job, first, bytes, finish, stores, ahead } = dot;
    assert!(job.sources.len() <= FEW && into.len() == M);
    assert!(bytes.start <= bytes.end && bytes.len().is_multiple_of(V::SIZE));
    assert!(job.sources.iter().all(|source| bytes.end <= source.len()));
    assert!(into.iter().all(|into| bytes.end <= into.len()));
    let count = job.sources.len();
    let mut scratch = [[0; M]; FEW];
    let scratch = &mut scratch.as_flattened_mut()[..count * M];
    let columns = job.columns.columns(0..count, first..first + M, scratch);
    assert!(columns.len() == count * M);
    let mut sources = [std::ptr::null(); FEW];
    // In the form that `multiply` takes, so that the loop loads nothing else.
    let mut multipliers = [[const { MaybeUninit::uninit() }; M]; FEW];
    for (n, (source, column)) in job.sources.iter().zip(columns.chunks_exact(M)).enumerate() {
        sources[n] = source.as_ptr();
        for (multiplier, &element) in multipliers[n].iter_mut().zip(column) {
            // SAFETY: the caller has the instructions.
            multiplier.write(unsafe { V::spread(element as u8) });
        }
    }
    let xor_count = usize::from(first == 0 && job.columns.row_0_is_xor());
    let is_aligned = |into: &&mut [u8]| into[bytes.start..].as_ptr().addr().is_multiple_of(V::SIZE);
    // What is added to has been read, and is in the cache.
    let past = stores == Stores::Past && finish == Finish::Store && into.iter().all(is_aligned);
    let mut outs = [std::ptr::null_mut(); M];
    for (out, into) in outs.iter_mut().zip(into) {
        *out = into.as_mut_ptr();
    }
    let step = Step::<V, M> {
        sources: &sources[..count],
        multipliers: multipliers.as_ptr().cast::<V::Spread>(),
        outs,
        finish,
        past,
        ahead,
        end: bytes.end,
    };
    // SAFETY: vectors below `bytes.end` lie in all buffers (checked); there are `M` multipliers for each source
    // (checked).
    unsafe {
        match xor_count == 1 {
            true => step.all::<B, true>(bytes),
            false => step.all::<B, false>(bytes),
        }
    }
}

/// A single source, whose products go to all rows, up to [`DOT_ROWS`] at a time. Apart from sums of several,
/// since it takes so little time that making ready for them would be a third of it.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn soles8<V: Vector>(few: Few<'_, '_>, source: &[u8]) {
    let Few { job, bytes, into, finish, choice } = few;
    assert!(bytes.start <= bytes.end && bytes.len().is_multiple_of(V::SIZE));
    assert!(bytes.end <= source.len() && into.iter().all(|into| bytes.end <= into.len()));
    let row_0_is_xor = job.columns.row_0_is_xor();
    let mut first = 0;
    while first < into.len() {
        let count = DOT_ROWS.min(into.len() - first);
        let mut scratch = [0; DOT_ROWS];
        let elements = job.columns.columns(0..1, first..first + count, &mut scratch[..count]);
        assert!(elements.len() == count);
        let mut outs = [std::ptr::null_mut(); DOT_ROWS];
        for n in 0..count {
            outs[n] = into[first + n].as_mut_ptr();
        }
        let one = first == 0 && row_0_is_xor;
        let sole =
            Sole { source: source.as_ptr(), elements, outs, ahead: choice.ahead, bytes: &bytes };
        // SAFETY: by the caller; all buffers reach `bytes.end`, and there are `count` elements (checked).
        unsafe {
            match count {
                1 => sole.rows::<V, 1>(one, finish),
                2 => sole.rows::<V, 2>(one, finish),
                3 => sole.rows::<V, 3>(one, finish),
                _ => sole.rows::<V, 4>(one, finish),
            }
        }
        first += count;
    }
}

/// A single source, whose products go to some rows.
struct Sole<'a> {
    source: *const u8,
    /// One for each row.
    elements: &'a [u16],
    outs: [*mut u8; DOT_ROWS],
    ahead: usize,
    bytes: &'a Range<usize>,
}

impl Sole<'_> {
    /// `M` rows. `one`: the element of the first is 1.
    ///
    /// # Safety
    ///
    /// As [`soles8`] argues.
    #[inline(always)]
    unsafe fn rows<V: Vector, const M: usize>(&self, one: bool, finish: Finish) {
        // SAFETY: by the caller.
        unsafe {
            match (one, finish) {
                (true, Finish::Xor) => self.products::<V, M, true, true>(),
                (true, Finish::Store) => self.products::<V, M, true, false>(),
                (false, Finish::Xor) => self.products::<V, M, false, true>(),
                (false, Finish::Store) => self.products::<V, M, false, false>(),
            }
        }
    }

    /// The products: multipliers stay in registers. `ONE`: that of the first row is 1. `ADD`: what was there
    /// is added.
    ///
    /// # Safety
    ///
    /// As [`soles8`] argues.
    #[inline(always)]
    unsafe fn products<V: Vector, const M: usize, const ONE: bool, const ADD: bool>(&self) {
        let Self { source, elements, outs, ahead, bytes } = *self;
        // SAFETY: as `soles8` argues. What lies `ahead` is within the buffers where it is fetched.
        unsafe {
            let mut multipliers = [V::spread(1); M];
            for m in 0..M {
                multipliers[m] = V::spread(*elements.get_unchecked(m) as u8);
            }
            let mut at = bytes.start;
            let last = bytes.end.checked_sub(LINE_SIZE).and_then(|last| last.checked_sub(ahead));
            if let Some(last) = last.filter(|_| ahead > 0) {
                while at <= last {
                    V::prefetch(source.add(at + ahead));
                    for m in 0..M {
                        V::prefetch_to_write(outs[m].add(at + ahead));
                    }
                    line::<V, M, ONE, ADD>(source, &multipliers, &outs, at);
                    at += LINE_SIZE;
                }
            }
            while at + LINE_SIZE <= bytes.end {
                line::<V, M, ONE, ADD>(source, &multipliers, &outs, at);
                at += LINE_SIZE;
            }
            while at < bytes.end {
                vector::<V, M, ONE, ADD>(source, &multipliers, &outs, at);
                at += V::SIZE;
            }
        }
    }
}

/// A line of cache of [`Sole::products`], without a branch within it.
///
/// # Safety
///
/// As [`soles8`] argues.
#[inline(always)]
unsafe fn line<V: Vector, const M: usize, const ONE: bool, const ADD: bool>(
    source: *const u8,
    multipliers: &[V::Spread; M],
    outs: &[*mut u8; DOT_ROWS],
    at: usize,
) {
    let mut done = 0;
    while done < LINE_SIZE {
        // SAFETY: by the caller.
        unsafe { vector::<V, M, ONE, ADD>(source, multipliers, outs, at + done) };
        done += V::SIZE;
    }
}

/// A vector of it.
///
/// # Safety
///
/// As [`soles8`] argues.
#[inline(always)]
unsafe fn vector<V: Vector, const M: usize, const ONE: bool, const ADD: bool>(
    source: *const u8,
    multipliers: &[V::Spread; M],
    outs: &[*mut u8; DOT_ROWS],
    at: usize,
) {
    // SAFETY: by the caller.
    unsafe {
        let operand = V::load(source.add(at));
        let prepared = operand.prepare();
        // All is loaded before anything is stored: rows often lie a multiple of 4 KiB apart, and then a
        // load of one is taken for one of what has just been stored to another, and waits.
        let mut products = [operand; M];
        for m in usize::from(ONE)..M {
            products[m] = V::multiply(prepared, multipliers[m]);
        }
        if ADD {
            for m in 0..M {
                products[m] = products[m].xor(V::load(outs[m].add(at)));
            }
        }
        for m in 0..M {
            products[m].store(outs[m].add(at));
        }
    }
}

/// What the steps of a dot product have in common.
struct Step<'a, V: Vector, const M: usize> {
    sources: &'a [*const u8],
    /// Source by source, one for each row.
    multipliers: *const V::Spread,
    outs: [*mut u8; M],
    finish: Finish,
    /// Whether results go past the cache.
    past: bool,
    ahead: usize,
    /// Where the buffers end. What lies behind a result may be another thread's.
    end: usize,
}

impl<V: Vector, const M: usize> Step<'_, V, M> {
    /// All vectors. `ONE`: the first row's elements are all 1.
    ///
    /// # Safety
    ///
    /// As [`dot8`] argues.
    #[inline(always)]
    unsafe fn all<const B: usize, const ONE: bool>(&self, bytes: Range<usize>) {
        let mut at = bytes.start;
        // SAFETY: by the caller.
        unsafe {
            while at + B * V::SIZE <= bytes.end {
                self.vectors::<B, ONE>(at);
                at += B * V::SIZE;
            }
            while at < bytes.end {
                self.vectors::<1, ONE>(at);
                at += V::SIZE;
            }
        }
    }

    /// `B` vectors of each sum.
    ///
    /// # Safety
    ///
    /// As [`dot8`] argues.
    #[inline(always)]
    unsafe fn vectors<const B: usize, const ONE: bool>(&self, at: usize) {
        let &Self { sources, outs, finish, past, ahead, end, .. } = self;
        // SAFETY: by the caller.
        unsafe {
            let mut sums = [[V::zero(); B]; M];
            if finish == Finish::Xor {
                for m in 0..M {
                    for b in 0..B {
                        sums[m][b] = V::load(outs[m].add(at + b * V::SIZE));
                    }
                }
            }
            // Two at a time, since a branch for each would be a good part of the work.
            let (mut n, count) = (0, sources.len());
            while n + 2 <= count {
                self.add::<B, ONE>(n, at, &mut sums);
                self.add::<B, ONE>(n + 1, at, &mut sums);
                n += 2;
            }
            if n < count {
                self.add::<B, ONE>(n, at, &mut sums);
            }
            if past {
                for m in 0..M {
                    for b in 0..B {
                        sums[m][b].store_past(outs[m].add(at + b * V::SIZE));
                    }
                }
                return;
            }
            if ahead > 0 && ahead <= end - at - B * V::SIZE {
                for m in 0..M {
                    for b in 0..B {
                        let out = outs[m].wrapping_add(at + b * V::SIZE);
                        V::prefetch_to_write(out.wrapping_add(ahead));
                    }
                }
            }
            for m in 0..M {
                for b in 0..B {
                    sums[m][b].store(outs[m].add(at + b * V::SIZE));
                }
            }
        }
    }

    /// The products of a source.
    ///
    /// # Safety
    ///
    /// As [`dot8`] argues, and there is a source `n`.
    #[inline(always)]
    unsafe fn add<const B: usize, const ONE: bool>(
        &self,
        n: usize,
        at: usize,
        sums: &mut [[V; B]; M],
    ) {
        // SAFETY: by the caller.
        unsafe {
            let source = self.sources.get_unchecked(n).add(at);
            let multipliers = self.multipliers.add(n * M);
            let mut vectors = [V::load(source); B];
            for b in 1..B {
                vectors[b] = V::load(source.add(b * V::SIZE));
            }
            if self.ahead > 0 {
                for b in 0..B {
                    V::prefetch(source.wrapping_add(b * V::SIZE).wrapping_add(self.ahead));
                }
            }
            let mut prepared = [vectors[0].prepare(); B];
            for b in 0..B {
                prepared[b] = vectors[b].prepare();
            }
            if ONE {
                for b in 0..B {
                    sums[0][b] = sums[0][b].xor(vectors[b]);
                }
            }
            for m in usize::from(ONE)..M {
                let spread = multipliers.add(m).read();
                for b in 0..B {
                    sums[m][b] = sums[m][b].xor(V::multiply(prepared[b], spread));
                }
            }
        }
    }
}

/// [`Engine::few`](super::engine::Engine::few) over the tower field, for at most one group of
/// sources.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn few16<V: Vector, const S: usize>(few: Few<'_, '_>) {
    let bytes = few.bytes;
    assert!(few.job.sources.len() == S);
    assert!(bytes.start <= bytes.end && bytes.len().is_multiple_of(tower::BLOCK_SIZE));
    assert!(few.job.sources.iter().all(|source| bytes.end <= source.len()));
    assert!(few.into.iter().all(|into| bytes.end <= into.len()));
    for (row, into) in few.into.iter_mut().enumerate() {
        let mut factors = [[0; 3]; S];
        for (n, factors) in factors.iter_mut().enumerate() {
            let mut scratch = [0];
            let (c, d) =
                tower::split(few.job.columns.columns(n..n + 1, row..row + 1, &mut scratch)[0]);
            *factors = [c, d, c ^ d];
        }
        let into = into.as_mut_ptr();
        let mut at = 0;
        // SAFETY: `from`, and `HALF` further, and the vectors from there lie in blocks of `bytes`,
        // which all buffers reach (checked).
        unsafe {
            while at < bytes.len() / 2 {
                let from = bytes.start + at / HALF * tower::BLOCK_SIZE + at % HALF;
                let mut sums = [V::zero(); 3];
                for n in 0..S {
                    let a = V::load(few.job.sources[n].as_ptr().add(from));
                    let b = V::load(few.job.sources[n].as_ptr().add(from + HALF));
                    let parts = [a.prepare(), b.prepare(), a.xor(b).prepare()];
                    for which in 0..3 {
                        let spread = V::spread(factors[n][which]);
                        sums[which] = sums[which].xor(V::multiply(parts[which], spread));
                    }
                }
                let share = V::multiply(sums[1].prepare(), V::spread(tower::L));
                let mut low = sums[0].xor(share);
                let mut high = sums[0].xor(sums[2]);
                if few.finish == Finish::Xor {
                    low = low.xor(V::load(into.add(from)));
                    high = high.xor(V::load(into.add(from + HALF)));
                }
                low.store(into.add(from));
                high.store(into.add(from + HALF));
                at += V::SIZE;
            }
        }
    }
}
