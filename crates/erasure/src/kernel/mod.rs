//! The arithmetic on buffers: sums of products, by one of several kernels.
//!
//! Everything comes down to `into[row] ^= sum of c(row, source) * source`. [`accumulate`] cuts that
//! into pieces that stay in the nearest cache, a block of bytes by a group of sources, and hands
//! each piece to the kernel; a kernel is one function over one such piece.

pub(crate) mod naive;
mod portable;

use crate::rows::Rows;

/// Bytes of a symbol worked on at a time.
const BLOCK_SIZE: usize = 1024;

/// Sources worked on at a time.
const GROUP_COUNT: usize = 16;

// The blocks of a group are read once for each row and must stay in a 32 KiB first-level cache.
const _: () = assert!(BLOCK_SIZE * GROUP_COUNT <= 32 * 1024 / 2);

/// Which code does the arithmetic. All give the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Bit by bit, byte by byte: slow, obvious, and the definition of the others.
    Naive,
    /// Plain loops that the compiler turns into vector instructions.
    Portable,
}

impl Kernel {
    /// Every kernel there is.
    pub const ALL: [Self; 2] = [Self::Naive, Self::Portable];

    /// The fastest kernel of this machine.
    pub const fn best() -> Self {
        Self::Portable
    }

    /// `into ^= coefficients[0] * sources[0] ^ coefficients[1] * sources[1] ^ ..`, for at most a
    /// block of a group.
    fn accumulate(self, coefficients: &[u8], sources: &[&[u8]], into: &mut [u8]) {
        match self {
            Self::Naive => naive::accumulate(coefficients, sources, into),
            Self::Portable => portable::accumulate(coefficients, sources, into),
        }
    }
}

/// Computes the symbols that `rows` describes. `sources[n]` are the bytes of symbol
/// `rows.sources()[n]`, and `into[n]` becomes symbol `rows.wanted()[n]`, whatever it held before.
///
/// # Panics
///
/// If there is not one buffer for each source and each wanted symbol, or they differ in length.
pub fn combine(kernel: Kernel, rows: &Rows, sources: &[&[u8]], into: &mut [&mut [u8]]) {
    assert_eq!(sources.len(), rows.sources().len(), "one buffer for each source");
    assert_eq!(into.len(), rows.wanted().len(), "one buffer for each wanted symbol");
    clear(into);
    accumulate(kernel, |row, source| rows.coefficient(row, source), sources, into);
}

/// `into = coefficient * source`.
///
/// # Panics
///
/// If the buffers differ in length.
pub fn multiply(kernel: Kernel, coefficient: u8, source: &[u8], into: &mut [u8]) {
    into.fill(0);
    multiply_accumulate(kernel, coefficient, source, into);
}

/// `into ^= coefficient * source`.
///
/// # Panics
///
/// If the buffers differ in length.
pub fn multiply_accumulate(kernel: Kernel, coefficient: u8, source: &[u8], into: &mut [u8]) {
    accumulate(kernel, |_, _| coefficient, &[source], &mut [into]);
}

/// Fills every buffer with zeros.
pub(crate) fn clear(buffers: &mut [&mut [u8]]) {
    for buffer in buffers {
        buffer.fill(0);
    }
}

/// `into[row] ^= sum of coefficient(row, source) * sources[source]`, for every row.
///
/// # Panics
///
/// If the buffers differ in length.
pub(crate) fn accumulate(
    kernel: Kernel,
    coefficient: impl Fn(usize, usize) -> u8,
    sources: &[&[u8]],
    into: &mut [&mut [u8]],
) {
    let Some(size) = into.first().map(|into| into.len()) else {
        return;
    };
    assert!(sources.iter().all(|source| source.len() == size), "symbols are of one length");
    assert!(into.iter().all(|into| into.len() == size), "symbols are of one length");
    for start in (0..size).step_by(BLOCK_SIZE) {
        let bytes = start..size.min(start + BLOCK_SIZE);
        for (group_idx, group) in sources.chunks(GROUP_COUNT).enumerate() {
            let mut blocks: [&[u8]; GROUP_COUNT] = [&[]; GROUP_COUNT];
            for (block, source) in blocks.iter_mut().zip(group) {
                *block = &source[bytes.clone()];
            }
            for (row, into) in into.iter_mut().enumerate() {
                let coefficients: [u8; GROUP_COUNT] = std::array::from_fn(|at| {
                    if at < group.len() {
                        coefficient(row, group_idx * GROUP_COUNT + at)
                    } else {
                        0
                    }
                });
                let count = group.len();
                kernel.accumulate(
                    &coefficients[..count],
                    &blocks[..count],
                    &mut into[bytes.clone()],
                );
            }
        }
    }
}
