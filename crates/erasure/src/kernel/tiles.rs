//! The kernel for vectors whose multipliers take many registers: a tile of the matrix, a few sources by a few
//! rows, stays in registers while a whole block goes by.
//!
//! Multiplying by lookups takes two registers for each element, and there are 16. With sources
//! in registers, as in [`sources`](super::sources), two tables are loaded for every product; with a tile of the
//! matrix there, each table is loaded once a block, and sources and sums, which are in the first-level cache, are
//! loaded for each tile. For 2 by 2 elements and 32 bytes of both sources that is 22 instructions of arithmetic, four
//! loads and two stores; with the sources in registers it would be
//! eight loads of tables and four of elements more.

#![allow(unsafe_code)]
// Iterators would take closures, which are not compiled for the instructions of their function.
#![allow(clippy::needless_range_loop)]
#![allow(clippy::needless_pass_by_value, reason = "a job is handed on whole")]

use super::engine::Mad;
use super::fetch::Fetch;
use super::sources::{self, FACTOR_LEN_16};
use super::vector::{HALF, LINE_SIZE, Vector};
use crate::tower;

/// Sources of a tile, where it has more than one row, and where it has one.
const SOURCES: usize = 2;
const SOURCES_OF_ONE_ROW: usize = 4;

/// Bytes of a symbol as operands: which vector of it belongs to a vector of a sum.
trait Part {
    /// Bytes of a symbol that are fetched for each [`LINE_SIZE`] bytes of a sum; 0 for none.
    const FETCHED: usize;

    /// Where in a block of the symbol the operand of byte `at` of the sum lies.
    fn place(at: usize) -> usize;

    /// # Safety
    ///
    /// As [`Vector::load`], of each vector of the symbol that the operand is made of.
    unsafe fn load<V: Vector>(source: *const u8, at: usize) -> V;
}

/// The bytes as they are.
struct Whole;

/// The low bytes of elements of the tower field, the high ones, and the sums of both.
struct Low;
struct High;
struct Sum;

impl Part for Whole {
    const FETCHED: usize = LINE_SIZE;

    #[inline(always)]
    fn place(at: usize) -> usize {
        at
    }

    #[inline(always)]
    unsafe fn load<V: Vector>(source: *const u8, at: usize) -> V {
        // SAFETY: by the caller.
        unsafe { V::load(source.add(at)) }
    }
}

macro_rules! part_of_pairs {
    ($part:ident, $fetched:expr, |$low:ident, $high:ident| $operand:expr) => {
        impl Part for $part {
            const FETCHED: usize = $fetched;

            #[inline(always)]
            fn place(at: usize) -> usize {
                at / HALF * tower::BLOCK_SIZE + at % HALF
            }

            #[inline(always)]
            unsafe fn load<V: Vector>(source: *const u8, at: usize) -> V {
                // SAFETY: by the caller.
                unsafe {
                    let $low = source.add(Self::place(at));
                    let $high = $low.add(HALF);
                    $operand
                }
            }
        }
    };
}

// All of a symbol is fetched while the low bytes of the block before are worked on.
part_of_pairs!(Low, tower::BLOCK_SIZE, |low, _high| V::load(low));
part_of_pairs!(High, 0, |_low, high| V::load(high));
part_of_pairs!(Sum, 0, |low, high| V::load(low).xor(V::load(high)));

/// What becomes of row 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    /// It is multiplied as all others.
    Multiplied,
    /// Its elements are all 1.
    Added,
    /// Its elements are all 0.
    Nothing,
}

/// One sum of each row: all there is over GF(2^8), one of three over the tower field.
struct Plane {
    /// Bytes of a sum.
    size: usize,
    /// Numbers of a factor, and which of them it is here.
    factor_len: usize,
    factor: usize,
    first: First,
    /// The sum of row 0.
    acc: *mut u8,
}

/// [`Engine::mad8`](super::engine::Engine::mad8).
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn mad8<V: Vector>(mad: Mad<'_>) {
    sources::check(&mad, mad.size, V::SIZE, 1);
    let first = if mad.row_0_is_xor { First::Added } else { First::Multiplied };
    let acc = mad.acc.as_mut_ptr();
    let plane = Plane { size: mad.size, factor_len: 1, factor: 0, first, acc };
    // SAFETY: the caller has the instructions. As is checked, every source has `size` bytes from `start` on, each
    // row as many bytes of a sum, `stride` bytes apart, and each source an element for each row.
    unsafe { add::<V, Whole>(&mad, &plane) }
}

/// [`Engine::mad16`](super::engine::Engine::mad16).
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn mad16<V: Vector>(mad: Mad<'_>) {
    let (size, between) = (mad.size / 2, mad.stride / 3);
    sources::check(&mad, between * 2 + size, tower::BLOCK_SIZE, FACTOR_LEN_16);
    let acc = mad.acc.as_mut_ptr();
    // The element 1 is a low byte of 1 and a high one of 0.
    let firsts = if mad.row_0_is_xor {
        [First::Added, First::Nothing, First::Added]
    } else {
        [First::Multiplied; 3]
    };
    // SAFETY: as for `mad8`. Each source has blocks of low and of high bytes, `size` of both, and each row three
    // planes of `size` bytes, which begin `between` bytes apart.
    unsafe {
        let plane = |factor| {
            let (first, acc) = (firsts[factor], acc.add(factor * between));
            Plane { size, factor_len: FACTOR_LEN_16, factor, first, acc }
        };
        add::<V, Low>(&mad, &plane(0));
        add::<V, High>(&mad, &plane(1));
        add::<V, Sum>(&mad, &plane(2));
    }
}

/// The shares of all sources in one sum of each row.
///
/// # Safety
///
/// As [`mad8`] and [`mad16`] argue.
#[inline(always)]
unsafe fn add<V: Vector, P: Part>(mad: &Mad<'_>, plane: &Plane) {
    let count = mad.sources.len();
    let products = mad.row_count() - usize::from(plane.first != First::Multiplied);
    let mut at = 0;
    // SAFETY: by the caller; the groups are of sources that exist.
    unsafe {
        if products <= 1 {
            while at + SOURCES_OF_ONE_ROW <= count {
                group::<V, P, SOURCES_OF_ONE_ROW>(mad, plane, at);
                at += SOURCES_OF_ONE_ROW;
            }
        }
        while at + SOURCES <= count {
            group::<V, P, SOURCES>(mad, plane, at);
            at += SOURCES;
        }
        if at < count {
            group::<V, P, 1>(mad, plane, at);
        }
    }
}

/// A column of tiles: some sources by some rows.
struct Tile<const S: usize> {
    /// Where the bytes of the sources begin.
    sources: [*const u8; S],
    ahead: Fetch<S>,
    /// The factor of the first source and row. Those of the next source are `column` further, those of the next
    /// row `factor_len`.
    factors: *const u64,
    column: usize,
    factor_len: usize,
    /// The sum to which all sources are only added, if there is one.
    added: *mut u8,
    /// The sum of the first row, the others `stride` bytes apart, and the bytes of each.
    acc: *mut u8,
    stride: usize,
    size: usize,
}

/// The shares of `S` sources.
///
/// # Safety
///
/// As [`add`]'s, and there are `S` sources from `first` on.
#[inline(always)]
unsafe fn group<V: Vector, P: Part, const S: usize>(mad: &Mad<'_>, plane: &Plane, first: usize) {
    let row_count = mad.row_count();
    let column = row_count * plane.factor_len;
    let mut sources = [std::ptr::null(); S];
    for n in 0..S {
        // SAFETY: by the caller, and as is checked.
        sources[n] = unsafe { mad.sources.get_unchecked(first + n).as_ptr().add(mad.start) };
    }
    let mut tile = Tile {
        sources,
        ahead: Fetch::new(&mad.ahead, mad.sources, first, mad.start, mad.size),
        factors: mad.factors.as_ptr().wrapping_add(first * column + plane.factor),
        column,
        factor_len: plane.factor_len,
        added: plane.acc,
        acc: plane.acc,
        stride: mad.stride,
        size: plane.size,
    };
    let mut left = row_count;
    // SAFETY: by the caller there are as many rows as are worked on.
    unsafe {
        if plane.first != First::Multiplied {
            tile.skip_rows(1);
            left -= 1;
        }
        if plane.first == First::Added {
            left -= rows::<V, P, S, true>(&mut tile, left);
        }
        while left > 0 {
            left -= rows::<V, P, S, false>(&mut tile, left);
        }
    }
}

/// The next of `left` rows, as many as go together, and with them the sum to which sources are only added.
/// Gives how many rows that were.
///
/// # Safety
///
/// As [`group`]'s.
#[inline(always)]
unsafe fn rows<V: Vector, P: Part, const S: usize, const ADD: bool>(
    tile: &mut Tile<S>,
    left: usize,
) -> usize {
    // SAFETY: by the caller.
    let count = unsafe {
        match (left, S <= SOURCES) {
            (0, _) => run::<V, P, S, 0, ADD>(tile),
            (1, _) | (_, false) => run::<V, P, S, 1, ADD>(tile),
            (3, true) => run::<V, P, S, 3, ADD>(tile),
            (_, true) => run::<V, P, S, 2, ADD>(tile),
        }
    };
    tile.skip_rows(count);
    // What comes next was fetched while the first rows were worked on.
    tile.ahead = Fetch::nothing();
    count
}

impl<const S: usize> Tile<S> {
    fn skip_rows(&mut self, count: usize) {
        self.factors = self.factors.wrapping_add(count * self.factor_len);
        self.acc = self.acc.wrapping_add(count * self.stride);
    }
}

/// Does `R` rows and gives `R`. See [`rows`].
///
/// # Safety
///
/// As [`group`]'s, and `R` rows are left.
#[inline(always)]
unsafe fn run<V: Vector, P: Part, const S: usize, const R: usize, const ADD: bool>(
    tile: &Tile<S>,
) -> usize {
    // SAFETY: by the caller. Vectors below `size` lie in every sum, and their operands in every source.
    unsafe {
        let mut multipliers = [[V::spread(0); R]; S];
        for n in 0..S {
            for row in 0..R {
                let factor = tile.factors.add(n * tile.column + row * tile.factor_len);
                multipliers[n][row] = V::spread_factor(factor);
            }
        }
        // A line of cache at a time, without a branch within it.
        let mut at = 0;
        while at + LINE_SIZE <= tile.size {
            if P::FETCHED > 0 {
                tile.ahead.fetch::<V>(0..S, P::place(at), P::FETCHED);
            }
            let mut done = 0;
            while done < LINE_SIZE {
                step::<V, P, S, R, ADD>(tile, &multipliers, at + done);
                done += V::SIZE;
            }
            at += LINE_SIZE;
        }
        while at < tile.size {
            step::<V, P, S, R, ADD>(tile, &multipliers, at);
            at += V::SIZE;
        }
    }
    R
}

/// A vector of each sum.
///
/// # Safety
///
/// As [`run`]'s, and the vectors at `at` lie in every sum, and their operands in every source.
#[inline(always)]
unsafe fn step<V: Vector, P: Part, const S: usize, const R: usize, const ADD: bool>(
    tile: &Tile<S>,
    multipliers: &[[V::Spread; R]; S],
    at: usize,
) {
    // SAFETY: by the caller.
    unsafe {
        let mut sums = [V::zero(); R];
        for row in 0..R {
            sums[row] = V::load(tile.acc.add(row * tile.stride + at));
        }
        let mut added = V::zero();
        if ADD {
            added = V::load(tile.added.add(at));
        }
        for n in 0..S {
            let operand = P::load::<V>(tile.sources[n], at);
            if ADD {
                added = added.xor(operand);
            }
            let prepared = operand.prepare();
            for row in 0..R {
                sums[row] = sums[row].xor(V::multiply(prepared, multipliers[n][row]));
            }
        }
        if ADD {
            added.store(tile.added.add(at));
        }
        for row in 0..R {
            sums[row].store(tile.acc.add(row * tile.stride + at));
        }
    }
}
