//! The transforms of [`crate::transform`] for one processor's vectors, written once for all of them.
//!
//! A coset goes through its layers in two steps, so that what is worked on fits into registers, with the
//! multipliers: first each *run* of four consecutive symbols through the layers within it, into a tile that
//! stays in the first-level cache; then, for each place in the runs, the symbols there through the layers
//! between the runs, scaled, and into the sums. Four symbols at a time, because symbols are often exactly
//! 4 KiB apart: all symbols of a coset at once would compete for the same few places of the cache. A coset of
//! four symbols needs no tile.

#![allow(unsafe_code)]
// Iterators would take closures, which are not compiled for the instructions of their function.
#![allow(clippy::needless_range_loop)]
#![allow(clippy::needless_pass_by_value, reason = "a job is handed on whole")]

use super::engine::{Coset, Evaluation};
use super::fetch::Fetch;
use super::lanes::{Bytes, Lane, OF_BYTES, OF_PAIRS, Pairs};
use super::table::Table;
use super::vector::{LINE_SIZE, Vector};
use crate::fields::Field;
use crate::transform::RUN;

/// Symbols of the largest transform.
const SIZE_MAX: usize = 1 << crate::transform::LOG_MAX;

/// [`Engine::coset`](super::engine::Engine::coset).
///
/// # Safety
///
/// The processor has the instructions of the vector.
#[inline(always)]
pub(super) unsafe fn coset<V: Vector>(coset: Coset<'_>) {
    // SAFETY: by the caller.
    unsafe {
        let within = coset.interpolation.within;
        match (coset.field, within.first, within.rest) {
            (Field::Bytes, _, _) => layers::<Bytes<V, OF_BYTES>, Bytes<V, OF_BYTES>>(coset),
            (Field::Tower, true, true) => layers::<Bytes<V, OF_PAIRS>, Bytes<V, OF_PAIRS>>(coset),
            (Field::Tower, false, true) => layers::<Pairs<V>, Bytes<V, OF_PAIRS>>(coset),
            (Field::Tower, _, false) => layers::<Pairs<V>, Pairs<V>>(coset),
        }
    }
}

/// All layers: those within runs by lanes of one kind, the rest by lanes of another.
///
/// # Safety
///
/// The processor has the instructions of the lanes.
#[inline(always)]
unsafe fn layers<First: Lane, Rest: Lane>(coset: Coset<'_>) {
    let Coset { start, size, stride, tile_stride, .. } = coset;
    let count = 1 << coset.log;
    assert!((RUN..=SIZE_MAX).contains(&count) && coset.sources.len() == count);
    let end = start.checked_add(size).expect("within memory");
    assert!(coset.sources.iter().all(|source| source.is_empty() || end <= source.len()));
    assert!(size <= coset.zeros.len());
    assert!(size.is_multiple_of(First::SIZE) && size.is_multiple_of(Rest::SIZE));
    assert!(size.is_multiple_of(First::BLOCK) && start.is_multiple_of(First::BLOCK));
    assert!(size.is_multiple_of(Rest::BLOCK) && start.is_multiple_of(Rest::BLOCK));
    // The sums of a block may lie anywhere in those of a run, so the last ones may end early.
    assert!(size <= stride && count * stride + size <= coset.acc.len());
    let factors = coset.interpolation.factors;
    assert!(factors.elements.len() == count * First::FACTOR_LEN);
    assert!(factors.elements.len() == count * Rest::FACTOR_LEN);
    assert!(factors.matrices.len() == factors.elements.len());
    let table = Table::new(factors);
    let acc = coset.acc.as_mut_ptr();
    // SAFETY: offsets of lanes below `size` stay below it, so lanes lie within every source from
    // `start` on, and within the strides of the sums, of which there are `count` and one for the plain sum
    // (checked). The table has `count` multipliers (checked).
    unsafe {
        if count == RUN {
            single::<First>(&coset, table, acc);
            return;
        }
        assert!(size <= tile_stride && count * tile_stride <= coset.tile.len());
        let tile = coset.tile.as_mut_ptr();
        for run in 0..count / RUN {
            let table = table.skip(run * (RUN - 1) * First::FACTOR_LEN);
            let tile = tile.add(run * RUN * tile_stride);
            first_layers::<First>(&coset, run, table, tile);
        }
        let rest = Sums { coset: &coset, tile, acc, plain: acc.add(count * stride) };
        let table = table.skip(count / RUN * (RUN - 1) * Rest::FACTOR_LEN);
        match count / RUN {
            2 => rest.add::<Rest, 2>(table),
            4 => rest.add::<Rest, 4>(table),
            _ => rest.add::<Rest, 8>(table),
        }
    }
}

/// Where the bytes of a run begin, and what is fetched meanwhile.
///
/// # Safety
///
/// The coset is checked and has that run.
#[inline(always)]
unsafe fn run_of(coset: &Coset<'_>, run: usize) -> ([*const u8; RUN], Fetch<RUN>) {
    let mut sources = [coset.zeros.as_ptr(); RUN];
    for n in 0..RUN {
        let source = coset.sources[run * RUN + n];
        if !source.is_empty() {
            // SAFETY: by the caller.
            sources[n] = unsafe { source.as_ptr().add(coset.start) };
        }
    }
    (sources, Fetch::new(&coset.ahead, coset.sources, run * RUN, coset.start, coset.size))
}

/// Bytes of a symbol for which a share of what comes next is fetched: a line of cache, or a lane that has more.
const fn stretch<L: Lane>() -> usize {
    if L::SIZE > LINE_SIZE { L::SIZE } else { LINE_SIZE }
}

/// Fetches the share of what comes next that belongs to a stretch: of all, or of a half of it.
///
/// # Safety
///
/// The processor has the instructions of the lane.
#[inline(always)]
unsafe fn fetch<L: Lane>(ahead: &Fetch<RUN>, half: Option<usize>, at: usize) {
    // SAFETY: by the caller.
    unsafe {
        match half {
            None => ahead.fetch::<L::Of>(0..RUN, at, stretch::<L>()),
            Some(half) => ahead.fetch_half::<L::Of>(half, at, stretch::<L>()),
        }
    }
}

/// Does something for all lanes of a block, and something before each [`stretch`].
macro_rules! for_lanes {
    ($lane:ident, $size:expr, |$step:ident| $fetch:expr, $work:expr) => {{
        let mut $step = 0;
        while $step < $size {
            if $step % stretch::<$lane>() == 0 {
                $fetch;
            }
            $work;
            $step += $lane::SIZE;
        }
    }};
}

/// The lanes of a run at this number of bytes.
///
/// # Safety
///
/// As [`layers`] argues.
#[inline(always)]
unsafe fn lanes_at<L: Lane>(sources: &[*const u8; RUN], step: usize) -> [L; RUN] {
    // SAFETY: as `layers` argues.
    unsafe {
        let offset = L::offset(step);
        let mut lanes = [L::load(sources[0].add(offset)); RUN];
        for n in 1..RUN {
            lanes[n] = L::load(sources[n].add(offset));
        }
        lanes
    }
}

/// The layers within a run: into the tile.
///
/// # Safety
///
/// As [`layers`] argues.
#[inline(always)]
unsafe fn first_layers<L: Lane>(coset: &Coset<'_>, run: usize, table: Table, tile: *mut u8) {
    // SAFETY: as `layers` argues.
    unsafe {
        // Half of what comes next is fetched here and the other half in the second step, if that has as many places as
        // there are runs.
        let half = (coset.sources.len() <= RUN * RUN).then_some(0);
        let (sources, ahead) = run_of(coset, run);
        let multipliers =
            [L::multiplier(table, 0), L::multiplier(table, 1), L::multiplier(table, 2)];
        for_lanes!(L, coset.size, |step| fetch::<L>(&ahead, half, step), {
            let [a, b, c, d] = lanes_at::<L>(&sources, step);
            let (a, b) = interpolated(a, b, multipliers[0]);
            let (c, d) = interpolated(c, d, multipliers[1]);
            let (a, c) = interpolated(a, c, multipliers[2]);
            let (b, d) = interpolated(b, d, multipliers[2]);
            let into = tile.add(L::offset(step));
            a.store(into);
            b.store(into.add(coset.tile_stride));
            c.store(into.add(2 * coset.tile_stride));
            d.store(into.add(3 * coset.tile_stride));
        });
    }
}

/// All layers of a coset that is a single run: into the sums.
///
/// # Safety
///
/// As [`layers`] argues.
#[inline(always)]
unsafe fn single<L: Lane>(coset: &Coset<'_>, table: Table, acc: *mut u8) {
    // SAFETY: as `layers` argues.
    unsafe {
        let (sources, ahead) = run_of(coset, 0);
        let multipliers = multipliers::<L, RUN>(table);
        for_lanes!(L, coset.size, |step| fetch::<L>(&ahead, None, step), {
            let lanes = lanes_at::<L>(&sources, step);
            let acc = acc.add(L::offset(step));
            let plain = acc.add(RUN * coset.stride);
            add_interpolated::<L, RUN, true>(lanes, &multipliers, acc, coset.stride, plain);
        });
    }
}

/// The second step, from the tile into the sums.
struct Sums<'a> {
    coset: &'a Coset<'a>,
    tile: *const u8,
    acc: *mut u8,
    /// The sum of all symbols.
    plain: *mut u8,
}

impl Sums<'_> {
    /// For `RUNS` runs, whose multipliers these are.
    ///
    /// # Safety
    ///
    /// As [`layers`] argues.
    #[inline(always)]
    unsafe fn add<L: Lane, const RUNS: usize>(&self, table: Table) {
        // SAFETY: by the caller.
        unsafe {
            let multipliers = multipliers::<L, RUNS>(table);
            for place in 0..RUN - 1 {
                self.add_place::<L, RUNS, false>(place, &multipliers);
            }
            self.add_place::<L, RUNS, true>(RUN - 1, &multipliers);
        }
    }

    /// For one place in the runs; `LAST` says that it is the last one.
    ///
    /// # Safety
    ///
    /// As [`layers`] argues.
    #[inline(always)]
    unsafe fn add_place<L: Lane, const RUNS: usize, const LAST: bool>(
        &self,
        place: usize,
        multipliers: &[L::Multiplier; RUNS],
    ) {
        // SAFETY: by the caller.
        unsafe {
            let Coset { size, stride, tile_stride, .. } = *self.coset;
            // As many runs are to be fetched as there are, half of each by then.
            let mut ahead = Fetch::nothing();
            if RUNS <= RUN && place < RUNS {
                ahead = run_of(self.coset, place).1;
            }
            for_lanes!(L, size, |step| fetch::<L>(&ahead, Some(1), step), {
                let offset = L::offset(step);
                let tile = self.tile.add(place * tile_stride + offset);
                let mut lanes = [L::load(tile); RUNS];
                for run in 1..RUNS {
                    lanes[run] = L::load(tile.add(run * RUN * tile_stride));
                }
                let (acc, plain) = (self.acc.add(place * stride + offset), self.plain.add(offset));
                add_interpolated::<L, RUNS, LAST>(lanes, multipliers, acc, RUN * stride, plain);
            });
        }
    }
}

/// The first `N` multipliers of a table.
///
/// # Safety
///
/// There are as many.
#[inline(always)]
unsafe fn multipliers<L: Lane, const N: usize>(table: Table) -> [L::Multiplier; N] {
    // SAFETY: by the caller.
    unsafe {
        let mut multipliers = [L::multiplier(table, 0); N];
        for n in 1..N {
            multipliers[n] = L::multiplier(table, n);
        }
        multipliers
    }
}

/// A butterfly of an interpolation.
///
/// # Safety
///
/// The processor has the instructions.
#[inline(always)]
unsafe fn interpolated<L: Lane>(a: L, b: L, twist: L::Multiplier) -> (L, L) {
    // SAFETY: by the caller.
    unsafe {
        let b = b.xor(a);
        (a.add_times(b.prepare(), twist), b)
    }
}

/// All layers of an interpolation of `N` lanes, the last of them with the scaling, and the sum of what comes
/// out with lanes that are `stride` bytes apart. With `PLAIN` what the last lane is before it is scaled is
/// added to the plain sum.
///
/// # Safety
///
/// The processor has the instructions, and what is named is there.
#[inline(always)]
unsafe fn add_interpolated<L: Lane, const N: usize, const PLAIN: bool>(
    mut lanes: [L; N],
    multipliers: &[L::Multiplier; N],
    acc: *mut u8,
    stride: usize,
    plain: *mut u8,
) {
    // SAFETY: by the caller.
    unsafe {
        let (mut half, mut n) = (1, 0);
        while half < N / 2 {
            let mut start = 0;
            while start < N {
                for a in start..start + half {
                    let b = a + half;
                    (lanes[a], lanes[b]) = interpolated(lanes[a], lanes[b], multipliers[n]);
                }
                start += 2 * half;
                n += 1;
            }
            half *= 2;
        }
        let (scale, scaled_twist) = (multipliers[N - 2], multipliers[N - 1]);
        for a in 0..half {
            let b = a + half;
            let (into_a, into_b) = (acc.add(a * stride), acc.add(b * stride));
            let sum = lanes[a].xor(lanes[b]);
            if PLAIN && b == N - 1 {
                L::load(plain).xor(sum).store(plain);
            }
            let sum = sum.prepare();
            L::load(into_b).add_times(sum, scale).store(into_b);
            let of_a = L::load(into_a).add_times(lanes[a].prepare(), scale);
            of_a.add_times(sum, scaled_twist).store(into_a);
        }
    }
}

/// [`Engine::evaluate`](super::engine::Engine::evaluate).
///
/// # Safety
///
/// The processor has the instructions of the vector.
#[inline(always)]
pub(super) unsafe fn evaluate<V: Vector>(job: Evaluation<'_>) {
    // SAFETY: by the caller.
    unsafe {
        match job.log {
            2 => evaluate_runs::<Bytes<V, OF_BYTES>, 1>(job),
            3 => evaluate_runs::<Bytes<V, OF_BYTES>, 2>(job),
            4 => evaluate_runs::<Bytes<V, OF_BYTES>, 4>(job),
            _ => evaluate_runs::<Bytes<V, OF_BYTES>, 8>(job),
        }
    }
}

/// The same for `RUNS` runs of [`RUN`] rows.
///
/// # Safety
///
/// The processor has the instructions of the lane.
#[inline(always)]
unsafe fn evaluate_runs<L: Lane, const RUNS: usize>(job: Evaluation<'_>) {
    let count = RUN * RUNS;
    assert!(job.size.is_multiple_of(L::SIZE) && job.row_count <= count);
    assert!(job.size <= job.stride && count * job.stride + job.size <= job.acc.len());
    assert!(job.factors.elements.len() == (2 * count - 1) * L::FACTOR_LEN);
    assert!(job.factors.matrices.len() == job.factors.elements.len());
    let table = Table::new(job.factors);
    let (acc, stride) = (job.acc.as_mut_ptr(), job.stride);
    let mut step = 0;
    // SAFETY: as for `layers`; the table has the multipliers of `count - 1` butterflies, and the points of
    // `count` rows (checked).
    unsafe {
        let points = table.skip((count - 1) * L::FACTOR_LEN);
        while step < job.size {
            let acc = acc.add(L::offset(step));
            step += L::SIZE;
            if RUNS > 1 {
                for n in 0..RUN {
                    evaluate_lanes::<L, RUNS>(table, acc.add(n * stride), RUN * stride);
                }
            }
            for run in 0..job.row_count.div_ceil(RUN) {
                let table = table.skip((RUNS - 1 + run * (RUN - 1)) * L::FACTOR_LEN);
                evaluate_lanes::<L, RUN>(table, acc.add(run * RUN * stride), stride);
            }
            let plain = L::load(acc.add(count * stride));
            for row in 0..job.row_count {
                let acc = acc.add(row * stride);
                let value = L::load(acc).prepare();
                plain.add_times(value, L::multiplier(points, row)).store(acc);
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
                    lanes[a] = lanes[a].add_times(lanes[b].prepare(), L::multiplier(table, n));
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
