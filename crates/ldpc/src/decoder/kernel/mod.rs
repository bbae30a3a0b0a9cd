//! The arithmetic of an iteration, by one of several kernels that give the same bits.
//!
//! `unsafe` is in this module and nowhere else in this crate: instructions that not every processor has. They are
//! reached only through [`Kernel`], which asks the processor first.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod naive;
mod portable;
mod trial;
pub(crate) mod vector;

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use super::Links;
use crate::code::Codeword;
#[cfg(test)]
use crate::shape::BLOCK_BITS;

/// Which code does the arithmetic. All give the same bits. One that the processor lacks the instructions for runs as
/// [`Portable`](Self::Portable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Check by check, every message kept: slow, obvious, and the definition of the others.
    Naive,
    /// Plain loops that the compiler turns into vector instructions.
    Portable,
    /// Vectors of 32 bytes.
    Avx2,
    /// Vectors of 64 bytes: AVX-512 with its byte instructions (F and BW).
    Avx512,
}

/// A kernel's name that no kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKernel {
    name: String,
}

impl Kernel {
    /// Every kernel there is, the slowest first, whether this machine has it or not.
    pub const ALL: [Self; 4] = [Self::Naive, Self::Portable, Self::Avx2, Self::Avx512];

    /// The fastest kernel of this machine that decodes a noisy frame to the very bits that the portable one comes to. That is
    /// found out once in a process, by one frame, and takes a millisecond: a processor, or a virtual machine, whose instructions
    /// do not do what they should would otherwise be noticed by wrong failure rates alone, if at all.
    pub fn best() -> Self {
        static BEST: LazyLock<Kernel> =
            LazyLock::new(|| trial::first_to_agree(Kernel::available().rev()));
        *BEST
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
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// The name that [`from_str`](str::parse) takes: `naive`, `portable`, `avx2`, `avx512`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
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
        write!(f, "'{}' is not a kernel: expected naive, portable, avx2 or avx512", self.name)
    }
}

impl std::error::Error for UnknownKernel {}

/// The memory of a decoding: levels, messages and decisions.
#[derive(Clone, Debug)]
pub(super) enum Engine {
    Naive(naive::Memory),
    Portable(vector::Memory),
    #[cfg(target_arch = "x86_64")]
    Avx2(vector::Memory),
    #[cfg(target_arch = "x86_64")]
    Avx512(vector::Memory),
}

impl Engine {
    pub(super) fn new(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Naive => Self::Naive(naive::Memory::new()),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 if kernel.is_available() => Self::Avx2(vector::Memory::new()),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 if kernel.is_available() => Self::Avx512(vector::Memory::new()),
            Kernel::Portable | Kernel::Avx2 | Kernel::Avx512 => {
                Self::Portable(vector::Memory::new())
            }
        }
    }

    /// Takes what came from the channel.
    pub(super) fn begin(&mut self, levels: &[i8]) {
        match self {
            Self::Naive(memory) => memory.begin(levels),
            Self::Portable(memory) => memory.begin(levels),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(memory) | Self::Avx512(memory) => memory.begin(levels),
        }
    }

    /// One iteration.
    pub(super) fn iterate(&mut self, links: &Links) {
        match self {
            Self::Naive(memory) => memory.iterate(links),
            Self::Portable(memory) => portable::iterate(memory, links),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(memory) => {
                // SAFETY: `new` makes this engine only where the processor has AVX2.
                unsafe { avx2::iterate(memory, links) }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(memory) => {
                // SAFETY: `new` makes this engine only where the processor has AVX-512 F and BW.
                unsafe { avx512::iterate(memory, links) }
            }
        }
    }

    /// Takes the decisions, and tells whether all checks hold of them.
    pub(super) fn decide(&mut self, links: &Links) -> bool {
        match self {
            Self::Naive(memory) => memory.decide(links),
            Self::Portable(memory) => portable::decide(memory, links),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(memory) => {
                // SAFETY: `new` makes this engine only where the processor has AVX2.
                unsafe { avx2::decide(memory, links) }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(memory) => {
                // SAFETY: `new` makes this engine only where the processor has AVX-512 F and BW.
                unsafe { avx512::decide(memory, links) }
            }
        }
    }

    /// Writes the last decisions of the columns that some check asks for.
    pub(super) fn tell(&self, links: &Links, word: &mut Codeword) {
        match self {
            Self::Naive(memory) => memory.tell(links, word),
            Self::Portable(memory) => memory.tell(links, word),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(memory) | Self::Avx512(memory) => memory.tell(links, word),
        }
    }

    /// Gives a message of the first check the other sign: a canary's bug.
    #[cfg(test)]
    pub(super) fn turn_message(&mut self) {
        match self {
            Self::Naive(_) => panic!("it defines what is right"),
            Self::Portable(memory) => memory.turn_message(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(memory) | Self::Avx512(memory) => memory.turn_message(),
        }
    }

    /// The levels of a column, for comparisons.
    #[cfg(test)]
    pub(super) fn column(&self, column: usize) -> [i8; BLOCK_BITS] {
        match self {
            Self::Naive(memory) => memory.column(column),
            Self::Portable(memory) => memory.column(column),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(memory) | Self::Avx512(memory) => memory.column(column),
        }
    }
}

#[cfg(test)]
mod tests;
