//! An iteration by vectors: the same loops for every processor's registers.
//!
//! Vectors run over the checks of one row, so that a circulant is a rotated read: the levels of the bits that checks
//! `first`, `first + 1`, .. see through a circulant lie one after the other in its column, from `first + shift` on.
//!
//! ```text
//!   levels of a column       | 512 levels, from bit 0 on                | the first of them again |
//!                                               ^ first + shift .. ----------->
//!   messages of 64 checks    | circulant 0: one a check | circulant 1 | ..
//!                            (all of a row, then of the next one: read and written in their order)
//! ```
//!
//! The copy behind a column's end makes every read contiguous. A group that passes the end writes its last
//! levels into the copy, and these are brought home after each row.
//!
//! A group of checks is done in two passes over its circulants. The first one computes the `T` of every bit and keeps the least
//! and the second least size and the product of the signs, all in registers; the second one has each bit told what the
//! others say. A bit whose size is the least one is told the second: if two bits share the least size, the second least is the
//! same number, so that it does not matter which one is meant.
//!
//! Messages are kept as they are, a byte each (146 kB), and not as two sizes, a place and signs (29 kB): taking
//! them apart costs more instructions than reading them, in their order, from the second-level cache.
//!
//! # Invariants
//!
//! - VE1. Every circulant has a column and a shift of the code; [`iterate`] and [`decide`] check that before they follow addresses.
//! - VE2. Before and after a row, the copy behind a column's end is equal to the column's beginning.

// Iterators would take closures, which are not compiled for the instructions of their function.
#![allow(clippy::needless_range_loop)]

use crate::code::Codeword;
use crate::decoder::{LEVEL_MAX, LINKS_MAX, Link, Links};
use crate::shape::{BLOCK_BITS, Block, CODE_BITS, COLUMNS, ROWS};

/// Bytes of a line of cache, and the most checks of a group.
const LINE: usize = 64;

/// Lines of a column's levels, with the copy.
const COLUMN_LINES: usize = BLOCK_BITS / LINE + 1;

/// Bytes from one column to the next.
const STRIDE: usize = COLUMN_LINES * LINE;

/// Words of a block of bits.
const WORDS: usize = BLOCK_BITS / 64;

/// A vector register of signed bytes, or what does its work.
///
/// A *level* is from -127 to 127, a *size* from 0 to 127; nothing is -128.
///
/// # Safety
///
/// Every function may be called only on a processor that has the instructions of the implementation.
/// `load` and `store` access [`SIZE`](Self::SIZE) bytes, which must be valid, at any alignment.
pub(super) unsafe trait Vector: Copy {
    /// Bytes of a vector: 16, 32 or 64.
    const SIZE: usize;

    unsafe fn splat(byte: i8) -> Self;
    unsafe fn load(from: *const i8) -> Self;
    unsafe fn store(self, into: *mut i8);
    unsafe fn xor(self, other: Self) -> Self;
    /// The sum of two levels, cut to a level.
    unsafe fn plus(self, other: Self) -> Self;
    /// The difference of two levels, cut to a level.
    unsafe fn minus(self, other: Self) -> Self;
    /// The size of a level.
    unsafe fn size(self) -> Self;
    /// The lesser one of two sizes.
    unsafe fn min(self, other: Self) -> Self;
    /// The greater one of two sizes.
    unsafe fn max(self, other: Self) -> Self;
    /// What a message is for a least size of this; see [`scaled`](crate::decoder::scaled).
    unsafe fn scaled(self) -> Self;
    /// `then` where this is equal to `other`, and `otherwise` elsewhere.
    unsafe fn pick_equal(self, other: Self, then: Self, otherwise: Self) -> Self;
    /// The level with the other sign where `sign` is negative.
    unsafe fn with_sign(self, sign: Self) -> Self;
    /// `other` where `mask` is negative.
    unsafe fn or_where(self, other: Self, mask: Self) -> Self;
    /// Bit `i` tells whether level `i` is negative.
    unsafe fn negatives(self) -> u64;
}

/// A line of cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([i8; LINE]);

const ZEROES: Line = Line([0; LINE]);

/// Levels, messages and decisions.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    levels: Vec<Line>,
    /// By row, group and circulant.
    messages: Vec<Line>,
    /// The `T` of one group.
    told: Vec<Line>,
    /// The decisions of each column, twice in a row: what a circulant sees is 512 bits from its shift on.
    bits: Vec<[u64; 2 * WORDS]>,
    /// Whether an iteration has left messages.
    has_messages: bool,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            levels: vec![ZEROES; COLUMNS * COLUMN_LINES],
            messages: vec![ZEROES; ROWS * LINKS_MAX * BLOCK_BITS / LINE],
            told: vec![ZEROES; LINKS_MAX],
            bits: vec![[0; 2 * WORDS]; COLUMNS],
            has_messages: false,
        }
    }

    /// Takes what came from the channel.
    pub(crate) fn begin(&mut self, levels: &[i8]) {
        assert_eq!(levels.len(), CODE_BITS, "levels of a codeword");
        let (lines, _) = levels.as_chunks::<LINE>();
        let columns = self.levels.chunks_exact_mut(COLUMN_LINES);
        for (column, lines) in columns.zip(lines.chunks_exact(BLOCK_BITS / LINE)) {
            for (into, line) in column.iter_mut().zip(lines) {
                for (into, level) in into.0.iter_mut().zip(line) {
                    *into = (*level).max(-LEVEL_MAX);
                }
            }
            column[BLOCK_BITS / LINE] = column[0];
        }
        self.has_messages = false;
    }

    /// The levels of a column.
    #[cfg(test)]
    pub(crate) fn column(&self, column: usize) -> [i8; BLOCK_BITS] {
        let lines = &self.levels[column * COLUMN_LINES..];
        std::array::from_fn(|at| lines[at / LINE].0[at % LINE])
    }
}

/// VE1.
fn check_links(links: &[Link]) {
    assert!(links.len() <= LINKS_MAX, "circulants of a row");
    for link in links {
        assert!(link.column < COLUMNS, "a column of the code");
        assert!(link.shift < BLOCK_BITS, "a shift of the code");
    }
}

/// One iteration, in groups of `N` vectors, which have 64 levels at most.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn iterate<V: Vector, const N: usize>(memory: &mut Memory, links: &Links) {
    const { assert!(N * V::SIZE <= LINE && BLOCK_BITS.is_multiple_of(N * V::SIZE)) };
    // SAFETY: by the caller.
    unsafe {
        if memory.has_messages {
            iterate_rows::<V, N, false>(memory, links);
        } else {
            iterate_rows::<V, N, true>(memory, links);
        }
    }
    memory.has_messages = true;
}

/// The first iteration takes all old messages for zero and does not read them.
///
/// # Safety
///
/// As [`iterate`].
#[inline(always)]
unsafe fn iterate_rows<V: Vector, const N: usize, const FIRST: bool>(
    memory: &mut Memory,
    links: &Links,
) {
    assert_eq!(memory.levels.len(), COLUMNS * COLUMN_LINES);
    assert_eq!(memory.messages.len() * LINE, ROWS * LINKS_MAX * BLOCK_BITS);
    assert_eq!(memory.told.len(), LINKS_MAX);
    let levels = memory.levels.as_mut_ptr().cast::<i8>();
    let told = memory.told.as_mut_ptr().cast::<i8>();
    let mut messages = memory.messages.as_mut_ptr().cast::<i8>();
    for links in links {
        check_links(links);
        let group = Group { links, levels, told };
        // SAFETY: the circulants are checked (VE1). A row has `BLOCK_BITS / (N * SIZE)` groups of at most `LINKS_MAX`
        // times `N * SIZE` messages, so that all rows together stay within `messages`, as its length says.
        unsafe {
            for first in (0..BLOCK_BITS).step_by(N * V::SIZE) {
                check::<V, N, FIRST>(&group, first, messages);
                messages = messages.add(links.len() * N * V::SIZE);
            }
            for link in links {
                let column = levels.add(link.column * STRIDE);
                bring_home::<V, N>(column, link.shift % (N * V::SIZE));
            }
        }
    }
}

/// What all groups of a row have.
struct Group<'a> {
    /// Checked.
    links: &'a [Link],
    /// Of all columns, [`STRIDE`] bytes each.
    levels: *mut i8,
    /// A line for each circulant.
    told: *mut i8,
}

/// The checks from `first` on, a multiple of a group's size below [`BLOCK_BITS`].
///
/// # Safety
///
/// As [`iterate`]; there are `N * V::SIZE` messages for each circulant.
#[inline(always)]
unsafe fn check<V: Vector, const N: usize, const FIRST: bool>(
    group: &Group<'_>,
    first: usize,
    messages: *mut i8,
) {
    let Group { links, levels, told } = *group;
    // SAFETY: a column has `STRIDE` bytes, and a group of at most `LINE` levels that starts below `BLOCK_BITS` ends within
    // them. The rest is by the caller.
    unsafe {
        let mut least = [V::splat(LEVEL_MAX); N];
        let mut second = [V::splat(LEVEL_MAX); N];
        let mut total = [V::splat(0); N];
        for (at, link) in links.iter().enumerate() {
            let from = levels.add(link.column * STRIDE + (first + link.shift) % BLOCK_BITS);
            for n in 0..N {
                let place = (at * N + n) * V::SIZE;
                let level = V::load(from.add(n * V::SIZE));
                let t = if FIRST { level } else { level.minus(V::load(messages.add(place))) };
                t.store(told.add(place));
                total[n] = total[n].xor(t);
                let size = t.size();
                second[n] = second[n].min(size.max(least[n]));
                least[n] = least[n].min(size);
            }
        }
        let mut to_most = least;
        let mut to_least = second;
        for n in 0..N {
            to_most[n] = least[n].scaled().with_sign(total[n]);
            to_least[n] = second[n].scaled().with_sign(total[n]);
        }
        for (at, link) in links.iter().enumerate() {
            let into = levels.add(link.column * STRIDE + (first + link.shift) % BLOCK_BITS);
            for n in 0..N {
                let place = (at * N + n) * V::SIZE;
                let t = V::load(told.add(place));
                let message = t.size().pick_equal(least[n], to_least[n], to_most[n]).with_sign(t);
                message.store(messages.add(place));
                t.plus(message).store(into.add(n * V::SIZE));
            }
        }
    }
}

/// Negative in its first half.
static BEHIND: [i8; 2 * LINE] = {
    let mut bytes = [0; 2 * LINE];
    let mut at = 0;
    while at < LINE {
        bytes[at] = -1;
        at += 1;
    }
    bytes
};

/// VE2, after a row whose groups began at places with this rest: the first levels of the rest are in the copy, the others of a
/// group's size at the column's beginning.
///
/// # Safety
///
/// As [`iterate`]; `column` has [`STRIDE`] bytes, and `rest` is less than a group's size.
#[inline(always)]
unsafe fn bring_home<V: Vector, const N: usize>(column: *mut i8, rest: usize) {
    // SAFETY: the vectors of a group fit into a line, and there is one at the column's beginning and one behind its end.
    // `LINE - rest` and a line from there on lie within `BEHIND`.
    unsafe {
        let behind = BEHIND.as_ptr().add(LINE - rest);
        let copy = column.add(BLOCK_BITS);
        for n in 0..N {
            let at = n * V::SIZE;
            let mask = V::load(behind.add(at));
            let levels = V::load(column.add(at)).or_where(V::load(copy.add(at)), mask);
            levels.store(column.add(at));
            levels.store(copy.add(at));
        }
    }
}

/// Takes the decisions, and tells whether all checks hold of them.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn decide<V: Vector>(memory: &mut Memory, links: &Links) -> bool {
    assert_eq!(memory.levels.len(), COLUMNS * COLUMN_LINES);
    let levels = memory.levels.as_ptr().cast::<i8>();
    for (column, bits) in memory.bits.iter_mut().enumerate() {
        for at in 0..WORDS {
            let mut word = 0;
            for from in (0..64).step_by(V::SIZE) {
                // SAFETY: the 512 levels of a column, of as many columns as there are; the rest is by the caller.
                let negatives =
                    unsafe { V::load(levels.add(column * STRIDE + at * 64 + from)).negatives() };
                word |= negatives << from;
            }
            bits[at] = word;
            bits[at + WORDS] = word;
        }
    }
    for links in links {
        check_links(links);
        let mut sum: Block = [0; WORDS];
        for link in links {
            let bits = &memory.bits[link.column];
            let (words, rest) = (link.shift / 64, link.shift % 64);
            let seen: &[u64; WORDS + 1] =
                bits[words..].first_chunk().expect("a block from each of its words on");
            for at in 0..WORDS {
                // Shifting by 64 in two steps: nothing comes from above where `rest` is zero.
                sum[at] ^= (seen[at] >> rest) | ((seen[at + 1] << 1) << (63 - rest));
            }
        }
        if sum != [0; WORDS] {
            return false;
        }
    }
    true
}

impl Memory {
    /// The decisions of the columns that some check asks for.
    pub(crate) fn tell(&self, links: &Links, word: &mut Codeword) {
        for link in links.iter().flatten() {
            let bits = &self.bits[link.column];
            word.0[link.column] = *bits.first_chunk().expect("a block, twice");
        }
    }
}
