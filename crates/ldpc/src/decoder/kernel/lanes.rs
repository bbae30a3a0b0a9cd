//! The same for 32 checks of a row side by side: plain loops over arrays, which a compiler turns into vectors of the
//! target's width.
//!
//! A circulant's bits are 32 levels one after the other, from the shift on. Each column has its first 32 levels once more
//! behind its end, so that no read goes round; what was written there is brought home after each row. A check's
//! messages are kept as two sizes, the place of the smaller one and a bit a sign: 29 kB instead of 172.
//!
//! Choices are made by masks: a branch between two arrays would be taken lane by lane.

use crate::decoder::{LEVEL_MAX, LINKS_MAX, Link, Links, scaled};
use crate::shape::{BLOCK_BITS, COLUMNS, ROWS};

/// Checks side by side.
const WIDTH: usize = 32;

/// Levels of a column, with those that it has twice.
const STRIDE: usize = BLOCK_BITS + WIDTH;

const GROUPS: usize = BLOCK_BITS / WIDTH;

/// Signs are kept in bytes of eight circulants.
const SIGN_BYTES: usize = LINKS_MAX / 8;

type Lanes = [i8; WIDTH];

/// What 32 checks have told their bits.
#[derive(Clone, Debug)]
struct Messages {
    /// What all but one bit were told, without signs.
    least: Lanes,
    /// What that one was told.
    second: Lanes,
    /// The number of its circulant in the row.
    place: Lanes,
    /// Whether the message is negative: bit `i` of byte `j` is for circulant `8 j + i`.
    signs: [Lanes; SIGN_BYTES],
}

impl Messages {
    const NONE: Self = Self {
        least: [0; WIDTH],
        second: [0; WIDTH],
        place: [0; WIDTH],
        signs: [[0; WIDTH]; SIGN_BYTES],
    };
}

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    levels: Vec<i8>,
    messages: Vec<Messages>,
    told: Box<[Lanes; LINKS_MAX]>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            levels: vec![0; COLUMNS * STRIDE],
            messages: vec![Messages::NONE; ROWS * GROUPS],
            told: Box::new([[0; WIDTH]; LINKS_MAX]),
        }
    }

    pub(crate) fn begin(&mut self, levels: &[i8]) {
        let (columns, _) = levels.as_chunks::<BLOCK_BITS>();
        for (into, column) in self.levels.chunks_exact_mut(STRIDE).zip(columns) {
            for (into, level) in into.iter_mut().zip(column) {
                *into = (*level).max(-LEVEL_MAX);
            }
            into.copy_within(..WIDTH, BLOCK_BITS);
        }
        self.messages.fill(Messages::NONE);
    }

    pub(crate) fn column(&self, column: usize) -> &[i8; BLOCK_BITS] {
        self.levels[column * STRIDE..].first_chunk().expect("a column's levels")
    }

    #[inline(always)]
    pub(crate) fn iterate(&mut self, links: &Links) {
        for (links, messages) in links.iter().zip(self.messages.chunks_exact_mut(GROUPS)) {
            for (group, messages) in messages.iter_mut().enumerate() {
                check(links, group * WIDTH, &mut self.levels, messages, &mut self.told);
            }
            for link in links {
                bring_home(&mut self.levels[link.column * STRIDE..][..STRIDE], link.shift % WIDTH);
            }
        }
    }
}

/// The checks from `first` on.
#[inline(always)]
fn check(
    links: &[Link],
    first: usize,
    levels: &mut [i8],
    messages: &mut Messages,
    told: &mut [Lanes; LINKS_MAX],
) {
    let mut least = [LEVEL_MAX; WIDTH];
    let mut second = [LEVEL_MAX; WIDTH];
    let mut place = [0_i8; WIDTH];
    let mut total = [0_i8; WIDTH];
    let Messages { least: old_least, second: old_second, place: old_place, signs } = &mut *messages;
    for (byte, links) in links.chunks(8).enumerate() {
        let old_signs = signs[byte];
        let mut new_signs = [0_i8; WIDTH];
        for (bit, link) in links.iter().enumerate() {
            let number = (8 * byte + bit) as i8;
            let mask = (1_u8 << bit) as i8;
            let level = lanes(levels, link, first);
            let told = &mut told[8 * byte + bit];
            for k in 0..WIDTH {
                let one = mask_if(old_place[k] == number);
                let size = (old_least[k] & !one) | (old_second[k] & one);
                let negative = mask_if(old_signs[k] & mask != 0);
                let message = (size ^ negative).wrapping_sub(negative);
                told[k] = level[k].saturating_sub(message).max(-LEVEL_MAX);
            }
            for k in 0..WIDTH {
                let negative = told[k] >> 7;
                let size = told[k].wrapping_abs();
                let less = mask_if(size < least[k]);
                total[k] ^= negative;
                new_signs[k] |= negative & mask;
                second[k] = second[k].min(size.max(least[k]));
                least[k] = least[k].min(size);
                place[k] = (place[k] & !less) | (number & less);
            }
        }
        signs[byte] = new_signs;
    }
    for k in 0..WIDTH {
        least[k] = scaled(least[k]);
        second[k] = scaled(second[k]);
    }
    for signs in signs.iter_mut() {
        for k in 0..WIDTH {
            signs[k] ^= total[k];
        }
    }
    for (byte, links) in links.chunks(8).enumerate() {
        for (bit, link) in links.iter().enumerate() {
            let number = (8 * byte + bit) as i8;
            let told = &told[8 * byte + bit];
            let mut level = [0; WIDTH];
            for k in 0..WIDTH {
                let one = mask_if(place[k] == number);
                let size = (least[k] & !one) | (second[k] & one);
                let negative = total[k] ^ (told[k] >> 7);
                let message = (size ^ negative).wrapping_sub(negative);
                level[k] = told[k].saturating_add(message).max(-LEVEL_MAX);
            }
            *lanes_mut(levels, link, first) = level;
        }
    }
    messages.least = least;
    messages.second = second;
    messages.place = place;
}

#[inline(always)]
fn mask_if(condition: bool) -> i8 {
    -(condition as i8)
}

#[inline(always)]
fn start(link: &Link, first: usize) -> usize {
    link.column * STRIDE + (first + link.shift) % BLOCK_BITS
}

#[inline(always)]
fn lanes(levels: &[i8], link: &Link, first: usize) -> Lanes {
    *levels[start(link, first)..].first_chunk().expect("levels of a circulant")
}

#[inline(always)]
fn lanes_mut<'a>(levels: &'a mut [i8], link: &Link, first: usize) -> &'a mut Lanes {
    levels[start(link, first)..].first_chunk_mut().expect("levels of a circulant")
}

/// After a row that reads a column from a place with this rest on: the first levels of the rest have been written behind the
/// column's end, the others of the first 32 at its beginning.
#[inline(always)]
fn bring_home(column: &mut [i8], rest: usize) {
    let (home, mirror) = column.split_at_mut(BLOCK_BITS);
    for k in 0..WIDTH {
        let behind = mask_if(k < rest);
        let level = (mirror[k] & behind) | (home[k] & !behind);
        (home[k], mirror[k]) = (level, level);
    }
}
