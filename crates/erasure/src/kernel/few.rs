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
        match few.choice.width {
            Width::Narrow => dots8::<V, 2>(few),
            Width::Wide => dots8::<V, 4>(few),
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
    let step = Step {
        sources: &sources[..count],
        multipliers: multipliers.as_ptr().cast::<V::Spread>(),
        xor_count,
        outs,
        finish,
        past,
        ahead,
        end: bytes.end,
    };
    if let (&[source], false) = (&sources[..count], past) {
        let sole = Sole { source, multipliers: step.multipliers, outs, ahead, bytes };
        // SAFETY: all buffers reach `bytes.end`, and there are `M` multipliers (checked).
        unsafe {
            match (xor_count == 1, finish) {
                (true, Finish::Xor) => sole8::<V, M, true, true>(&sole),
                (true, Finish::Store) => sole8::<V, M, true, false>(&sole),
                (false, Finish::Xor) => sole8::<V, M, false, true>(&sole),
                (false, Finish::Store) => sole8::<V, M, false, false>(&sole),
            }
        }
        return;
    }
    let mut at = bytes.start;
    // SAFETY: vectors from `at` on stay below `bytes.end`, which all buffers reach (checked); there are `M`
    // multipliers for each source (checked).
    unsafe {
        while at + B * V::SIZE <= bytes.end {
            dot8_step::<V, M, B>(&step, at);
            at += B * V::SIZE;
        }
        while at < bytes.end {
            dot8_step::<V, M, 1>(&step, at);
            at += V::SIZE;
        }
    }
}

/// A single source, whose products go to `M` rows.
struct Sole<V: Vector, const M: usize> {
    source: *const u8,
    /// One for each row.
    multipliers: *const V::Spread,
    outs: [*mut u8; M],
    ahead: usize,
    bytes: Range<usize>,
}

/// The products of a single source: its multipliers stay in registers. `ONE`: that of the first row is 1.
/// `ADD`: what was there is added.
///
/// # Safety
///
/// As [`dot8`] argues.
#[inline(always)]
unsafe fn sole8<V: Vector, const M: usize, const ONE: bool, const ADD: bool>(sole: &Sole<V, M>) {
    let Sole { source, outs, ahead, ref bytes, .. } = *sole;
    // SAFETY: as `dot8` argues. What lies `ahead` is within the buffers, or is not fetched.
    unsafe {
        let mut multipliers = [sole.multipliers.read(); M];
        for m in 0..M {
            multipliers[m] = sole.multipliers.add(m).read();
        }
        let mut at = bytes.start;
        while at < bytes.end {
            let end = bytes.end.min(at + LINE_SIZE);
            if ahead > 0 && ahead < bytes.end - at {
                V::prefetch(source.add(at + ahead));
                for m in 0..M {
                    V::prefetch_to_write(outs[m].add(at + ahead));
                }
            }
            while at < end {
                let operand = V::load(source.add(at));
                let prepared = operand.prepare();
                for m in 0..M {
                    let mut product = match ONE && m == 0 {
                        true => operand,
                        false => V::multiply(prepared, multipliers[m]),
                    };
                    if ADD {
                        product = product.xor(V::load(outs[m].add(at)));
                    }
                    product.store(outs[m].add(at));
                }
                at += V::SIZE;
            }
        }
    }
}

/// What the steps of a dot product have in common.
struct Step<'a, V: Vector, const M: usize> {
    sources: &'a [*const u8],
    /// Source by source, one for each row.
    multipliers: *const V::Spread,
    xor_count: usize,
    outs: [*mut u8; M],
    finish: Finish,
    /// Whether results go past the cache.
    past: bool,
    ahead: usize,
    /// Where the buffers end. What lies behind a result may be another thread's.
    end: usize,
}

/// # Safety
///
/// As [`dot8`] argues.
#[inline(always)]
unsafe fn dot8_step<V: Vector, const M: usize, const B: usize>(step: &Step<'_, V, M>, at: usize) {
    let &Step { sources, multipliers, xor_count, outs, finish, past, ahead, end } = step;
    // SAFETY: as `dot8` argues.
    unsafe {
        let mut sums = [[V::zero(); B]; M];
        if finish == Finish::Xor {
            for m in 0..M {
                for b in 0..B {
                    sums[m][b] = V::load(outs[m].add(at + b * V::SIZE));
                }
            }
        }
        for (n, source) in sources.iter().enumerate() {
            let multipliers = multipliers.add(n * M);
            let mut vectors = [V::load(source.add(at)); B];
            for b in 1..B {
                vectors[b] = V::load(source.add(at + b * V::SIZE));
            }
            if ahead > 0 {
                for b in 0..B {
                    V::prefetch(source.wrapping_add(at + b * V::SIZE).wrapping_add(ahead));
                }
            }
            let mut prepared = [vectors[0].prepare(); B];
            for b in 0..B {
                prepared[b] = vectors[b].prepare();
            }
            if xor_count == 1 {
                for b in 0..B {
                    sums[0][b] = sums[0][b].xor(vectors[b]);
                }
            } else {
                let spread = multipliers.read();
                for b in 0..B {
                    sums[0][b] = sums[0][b].xor(V::multiply(prepared[b], spread));
                }
            }
            for m in 1..M {
                let spread = multipliers.add(m).read();
                for b in 0..B {
                    sums[m][b] = sums[m][b].xor(V::multiply(prepared[b], spread));
                }
            }
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
