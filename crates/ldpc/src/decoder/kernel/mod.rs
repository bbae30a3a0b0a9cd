//! The arithmetic of an iteration, by one of several kernels that give the same bits.
//!
//! `unsafe` is in this module and nowhere else in this crate: instructions that not every processor has. They are
//! reached only through [`Kernel`], which asks the processor first.

#![allow(unsafe_code)]

pub(crate) mod lanes;
pub(crate) mod naive;

use std::fmt;
use std::str::FromStr;

use super::Links;
use crate::shape::{BLOCK_BITS, Block};

/// Which code does the arithmetic. All give the same bits. One that the processor lacks the instructions for runs as
/// [`Portable`](Self::Portable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Check by check, every message kept: slow, obvious, and the definition of the others.
    Naive,
    /// Plain loops that the compiler turns into vector instructions.
    Portable,
    /// The same loops for vectors of 32 bytes.
    Avx2,
}

/// A kernel's name that no kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKernel {
    name: String,
}

impl Kernel {
    /// Every kernel there is, the slowest first, whether this machine has it or not.
    pub const ALL: [Self; 3] = [Self::Naive, Self::Portable, Self::Avx2];

    /// The fastest kernel of this machine.
    pub fn best() -> Self {
        Self::available().last().unwrap_or(Self::Portable)
    }

    /// The kernels of this machine, the slowest first.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// Whether this machine has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            Self::Naive | Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 => false,
        }
    }

    /// The name that [`from_str`](str::parse) takes: `naive`, `portable`, `avx2`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kernel {
    type Err = UnknownKernel;

    fn from_str(name: &str) -> Result<Self, UnknownKernel> {
        Self::ALL
            .into_iter()
            .find(|kernel| kernel.name() == name)
            .ok_or_else(|| UnknownKernel { name: name.to_owned() })
    }
}

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no kernel '{}': naive, portable and avx2 are known", self.name)
    }
}

impl std::error::Error for UnknownKernel {}

/// The memory of a decoding: levels and messages.
#[derive(Clone, Debug)]
pub(super) enum Engine {
    Naive(naive::Memory),
    Portable(lanes::Memory),
    Avx2(lanes::Memory),
}

impl Engine {
    pub(super) fn new(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Naive => Self::Naive(naive::Memory::new()),
            Kernel::Avx2 if kernel.is_available() => Self::Avx2(lanes::Memory::new()),
            Kernel::Portable | Kernel::Avx2 => Self::Portable(lanes::Memory::new()),
        }
    }

    pub(super) fn begin(&mut self, levels: &[i8]) {
        match self {
            Self::Naive(memory) => memory.begin(levels),
            Self::Portable(memory) | Self::Avx2(memory) => memory.begin(levels),
        }
    }

    pub(super) fn iterate(&mut self, links: &Links) {
        match self {
            Self::Naive(memory) => memory.iterate(links),
            Self::Portable(memory) => memory.iterate(links),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(memory) => {
                // SAFETY: `new` makes this engine only where the processor has AVX2.
                unsafe { iterate_avx2(memory, links) }
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2(memory) => memory.iterate(links),
        }
    }

    /// The levels of a column.
    pub(super) fn column(&self, column: usize) -> &[i8; BLOCK_BITS] {
        match self {
            Self::Naive(memory) => memory.column(column),
            Self::Portable(memory) | Self::Avx2(memory) => memory.column(column),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn iterate_avx2(memory: &mut lanes::Memory, links: &Links) {
    memory.iterate(links);
}

/// The decisions of a column: ones where levels are negative.
pub(super) fn signs_of(levels: &[i8; BLOCK_BITS]) -> Block {
    let (chunks, _) = levels.as_chunks::<64>();
    std::array::from_fn(|at| signs_of_64(&chunks[at]))
}

#[cfg(target_arch = "x86_64")]
fn signs_of_64(levels: &[i8; 64]) -> u64 {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8};

    let (quarters, _) = levels.as_chunks::<16>();
    quarters.iter().enumerate().fold(0, |word, (at, quarter)| {
        // SAFETY: every processor of this kind has SSE2, and the load has 16 bytes and no demand on alignment.
        let mask = unsafe { _mm_movemask_epi8(_mm_loadu_si128(quarter.as_ptr().cast())) };
        word | u64::from(mask as u16) << (16 * at)
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn signs_of_64(levels: &[i8; 64]) -> u64 {
    levels.iter().rev().fold(0, |word, level| word << 1 | u64::from(*level < 0))
}
