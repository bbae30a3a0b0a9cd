//! Layered normalised min-sum decoding over bytes.
//!
//! Every bit has a *level*, from -127 to 127: its sign is the decision (negative is one), its size how sure that is. A check
//! tells each of its bits what the others say of it, its *message*. One iteration goes through the seven rows of circulants:
//!
//! ```text
//!   for each check, with the levels L of its bits and the messages R it sent them last:
//!     T = clamp(L - R)                                  what the others and the channel say
//!     R = product of the other T's signs * scaled(least |T| of the others)
//!     L = clamp(T + R)
//!   scaled(m) = (11 min(m, 63) + 8) >> 4                0.69, rounded
//!   clamp to -127..=127
//! ```
//!
//! It ends once all checks hold of the decisions, or after the iterations it was given. The sign of zero is that of a
//! positive number, which is not symmetric: failure rates are those of random codewords.
//!
//! # Invariants
//!
//! - DE1. Every kernel gives the levels of [`kernel::naive`], bit for bit, after every iteration.
//! - DE2. No level is -128.
//! - DE3. Bits that zero forcing knows are in no check that is computed, and are zero in what comes out.
//!
//! `kernel::vector` has all other kernels: vectors run over the checks of one row, so that a circulant is a rotated
//! read.

pub(crate) mod kernel;

use crate::code::{Codeword, ZeroForcing, shift_of};
#[cfg(test)]
use crate::shape::BLOCK_BITS;
use crate::shape::{CODE_BITS, COLUMNS, ROWS};
use kernel::Engine;
pub use kernel::{Kernel, UnknownKernel};

/// The largest level.
pub(crate) const LEVEL_MAX: i8 = 127;

/// The largest number of circulants in a row.
pub(crate) const LINKS_MAX: usize = 48;

/// A circulant of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) column: usize,
    pub(crate) shift: usize,
}

/// The circulants of each row that are computed.
pub(crate) type Links = [Vec<Link>; ROWS];

/// What a message is for a least size of `size`.
#[inline(always)]
pub(crate) fn scaled(size: i8) -> i8 {
    ((11 * i16::from(size.min(63)) + 8) >> 4) as i8
}

/// How a decoding ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Whether all checks hold. The word may still be another codeword than the one that was sent.
    pub converged: bool,
    /// Iterations that ran.
    pub iterations: u32,
}

/// A decoder and its memory.
#[derive(Clone, Debug)]
pub struct Decoder {
    links: Links,
    engine: Engine,
    word: Box<Codeword>,
}

impl Decoder {
    /// A decoder that leaves out the columns that `forced` knows. A kernel that this machine lacks the instructions for runs
    /// as [`Kernel::Portable`].
    pub fn new(forced: ZeroForcing, kernel: Kernel) -> Self {
        let links: Links = std::array::from_fn(|row| {
            let link = |column| Some(Link { column, shift: shift_of(row, column)? });
            (0..COLUMNS).filter(|column| forced.takes(*column)).filter_map(link).collect()
        });
        assert!(links.iter().all(|row| row.len() <= LINKS_MAX), "circulants of a row");
        Self { links, engine: Engine::new(kernel), word: Box::new(Codeword::ZERO) }
    }

    /// Decodes what has come from the channel, a level a bit, column by column, in at most `iterations`.
    ///
    /// Panics if `levels` is not [`CODE_BITS`] long. Levels of -128 count as -127.
    pub fn decode(&mut self, levels: &[i8], iterations: u32) -> Decoded {
        assert_eq!(levels.len(), CODE_BITS, "levels of a codeword");
        self.engine.begin(levels);
        let mut done = 0;
        loop {
            let converged = self.engine.decide(&self.links);
            if converged || done == iterations {
                self.engine.tell(&self.links, &mut self.word);
                return Decoded { converged, iterations: done };
            }
            self.engine.iterate(&self.links);
            done += 1;
        }
    }

    /// The decisions as they are: the codeword, if the decoding converged.
    pub fn word(&self) -> &Codeword {
        &self.word
    }

    /// The levels of a column, for comparisons.
    #[cfg(test)]
    fn levels(&self, column: usize) -> [i8; BLOCK_BITS] {
        self.engine.column(column)
    }
}

#[cfg(test)]
mod tests;
