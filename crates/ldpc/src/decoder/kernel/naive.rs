//! The definition of an iteration: one check at a time, every message kept.

use crate::code::Codeword;
use crate::decoder::{LEVEL_MAX, LINKS_MAX, Link, Links, scaled};
use crate::ring;
use crate::shape::{BLOCK_BITS, CODE_BITS, ROWS};

/// Levels, and for each row and circulant the message of every check.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    levels: Vec<i8>,
    messages: Vec<[i8; LINKS_MAX]>,
    /// The decisions.
    word: Box<Codeword>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        let messages = vec![[0; LINKS_MAX]; ROWS * BLOCK_BITS];
        Self { levels: vec![0; CODE_BITS], messages, word: Box::new(Codeword::ZERO) }
    }

    pub(crate) fn begin(&mut self, levels: &[i8]) {
        for (into, level) in self.levels.iter_mut().zip(levels) {
            *into = clamp(i16::from(*level));
        }
        self.messages.fill([0; LINKS_MAX]);
    }

    pub(crate) fn iterate(&mut self, links: &Links) {
        for (row, links) in links.iter().enumerate() {
            for check in 0..BLOCK_BITS {
                self.check(row, check, links);
            }
        }
    }

    fn check(&mut self, row: usize, check: usize, links: &[Link]) {
        let bit = |link: &Link| link.column * BLOCK_BITS + (check + link.shift) % BLOCK_BITS;
        let messages = &mut self.messages[row * BLOCK_BITS + check];
        let told: Vec<i8> = links
            .iter()
            .zip(messages.iter())
            .map(|(link, message)| clamp(i16::from(self.levels[bit(link)]) - i16::from(*message)))
            .collect();
        let negative = told.iter().filter(|level| **level < 0).count();
        let sizes = || told.iter().map(|level| level.abs()).enumerate();
        let (place, least) = sizes().min_by_key(|(_, size)| *size).expect("a check has bits");
        let others = sizes().filter(|(at, _)| *at != place).map(|(_, size)| size);
        let second = others.min().expect("a check has two bits");
        for (at, link) in links.iter().enumerate() {
            let size = scaled(if at == place { second } else { least });
            let negative_others = negative - usize::from(told[at] < 0);
            messages[at] = if negative_others.is_multiple_of(2) { size } else { -size };
            self.levels[bit(link)] = clamp(i16::from(told[at]) + i16::from(messages[at]));
        }
    }

    /// Whether each check sees an even number of negative levels.
    pub(crate) fn decide(&mut self, links: &Links) -> bool {
        for (bit, level) in self.levels.iter().enumerate() {
            let word = &mut self.word.0[bit / BLOCK_BITS][bit % BLOCK_BITS / 64];
            let mask = 1 << (bit % 64);
            *word = if *level < 0 { *word | mask } else { *word & !mask };
        }
        links.iter().all(|links| {
            let mut sum = ring::ZERO;
            for link in links {
                ring::add(&mut sum, &ring::seen(&self.word.0[link.column], link.shift));
            }
            sum == ring::ZERO
        })
    }

    pub(crate) fn tell(&self, links: &Links, word: &mut Codeword) {
        for link in links.iter().flatten() {
            word.0[link.column] = self.word.0[link.column];
        }
    }

    #[cfg(test)]
    pub(crate) fn column(&self, column: usize) -> [i8; BLOCK_BITS] {
        std::array::from_fn(|at| self.levels[column * BLOCK_BITS + at])
    }
}

fn clamp(level: i16) -> i8 {
    level.clamp(-i16::from(LEVEL_MAX), i16::from(LEVEL_MAX)) as i8
}
