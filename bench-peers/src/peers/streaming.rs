//! The limit: the same buffers read from first to last, and nothing done with them.

use std::hint::black_box;

use crate::code::Operation;
use crate::measure::Coder;
use crate::pool::Codeword;

/// Reads what the operation reads.
pub(crate) struct Streaming {
    touch: Touch,
    width: Width,
}

enum Touch {
    Sources,
    /// An update reads the redundancy as well.
    SourcesAndWanted,
}

/// The widest registers that the CPU has.
#[derive(Clone, Copy)]
enum Width {
    Avx512,
    Avx2,
    Sse2,
}

impl Streaming {
    pub(crate) fn new(operation: &Operation) -> Self {
        let touch = match operation {
            Operation::Encode | Operation::Reconstruct { .. } | Operation::Accumulate => {
                Touch::Sources
            }
            Operation::Update => Touch::SourcesAndWanted,
        };
        let width = if is_x86_feature_detected!("avx512f") {
            Width::Avx512
        } else if is_x86_feature_detected!("avx2") {
            Width::Avx2
        } else {
            Width::Sse2
        };
        Self { touch, width }
    }
}

impl Coder for Streaming {
    fn run(&mut self, codeword: &mut Codeword<'_>) {
        let (sources, wanted) = codeword.split();
        self.width.read(sources);
        match self.touch {
            Touch::Sources => {}
            Touch::SourcesAndWanted => self.width.read(wanted),
        }
    }
}

impl Width {
    fn read<B: AsRef<[u8]>>(self, buffers: &[B]) {
        match self {
            // SAFETY: the CPU has it.
            Self::Avx512 => unsafe { read_avx512(buffers) },
            // SAFETY: the CPU has it.
            Self::Avx2 => unsafe { read_avx2(buffers) },
            Self::Sse2 => read(buffers),
        }
    }
}

#[target_feature(enable = "avx512f")]
fn read_avx512<B: AsRef<[u8]>>(buffers: &[B]) {
    read(buffers);
}

#[target_feature(enable = "avx2")]
fn read_avx2<B: AsRef<[u8]>>(buffers: &[B]) {
    read(buffers);
}

/// The xor of all words, 512 bytes at a time: eight of the widest registers.
#[inline(always)]
fn read<B: AsRef<[u8]>>(buffers: &[B]) {
    let mut sums = [0u64; 64];
    for bytes in buffers {
        let (lines, rest) = bytes.as_ref().as_chunks::<512>();
        assert!(rest.is_empty(), "sectors are whole lines");
        for line in lines {
            for (sum, word) in sums.iter_mut().zip(line.as_chunks::<8>().0) {
                *sum ^= u64::from_ne_bytes(*word);
            }
        }
    }
    black_box(sums);
}
