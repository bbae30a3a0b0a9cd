//! The memory that everybody works on.
//!
//! One run of sectors, larger than any cache, is laid out as codewords one after another; each
//! contestant goes on where the one before it stopped, so that what it reads was last touched a
//! whole round through the pool ago. All contestants are given the same buffers.

use memmap2::{Advice, MmapMut};

use crate::kernel::{SECTOR_SIZE, shared};

/// Bytes in the pool. At least two thirds of it are data for every code measured.
pub(crate) const POOL_SIZE: usize = 384 << 20;

const _: () = assert!(POOL_SIZE * 2 / 3 >= 256 << 20);

/// The memory. Full of bytes that look random.
pub(crate) struct Pool {
    bytes: MmapMut,
}

/// How a codeword's symbols are used: by their place in the codeword.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Symbols in a codeword, those that are not used too.
    pub(crate) len: usize,
    /// The symbols that are read, in the order they are handed out.
    pub(crate) sources: Vec<usize>,
    /// The symbols that are written, or read and written.
    pub(crate) wanted: Vec<usize>,
}

/// The buffers of one codeword: sources first, then what is wanted, then what is not used.
pub(crate) struct Codeword<'a> {
    symbols: Vec<&'a mut [u8]>,
    sources: usize,
    wanted: usize,
}

impl Pool {
    /// Takes the memory, in huge pages where the kernel grants them, and fills it.
    ///
    /// # Errors
    ///
    /// If there is not so much.
    pub(crate) fn new() -> Result<Self, String> {
        let mut bytes = MmapMut::map_anon(POOL_SIZE)
            .map_err(|error| format!("no {POOL_SIZE} bytes of memory: {error}"))?;
        if let Err(error) = bytes.advise(Advice::HugePage) {
            eprintln!("no huge pages for the pool: {error}");
        }
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for word in bytes.as_chunks_mut().0 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state.to_ne_bytes();
        }
        Ok(Self { bytes })
    }

    /// As many codewords as the pool holds.
    pub(crate) fn codewords(&mut self, layout: &Layout) -> Vec<Codeword<'_>> {
        let mut order = layout.sources.clone();
        order.extend(&layout.wanted);
        let rest = (0..layout.len).filter(|symbol| !order.contains(symbol)).collect::<Vec<_>>();
        order.extend(rest);
        assert_eq!(order.len(), layout.len, "a symbol is a source, wanted, or neither");
        self.bytes
            .chunks_exact_mut(layout.len * SECTOR_SIZE)
            .map(|bytes| {
                let mut sectors: Vec<_> = bytes.chunks_exact_mut(SECTOR_SIZE).map(Some).collect();
                let symbols = order.iter().map(|&at| sectors[at].take().expect("used once"));
                Codeword {
                    symbols: symbols.collect(),
                    sources: layout.sources.len(),
                    wanted: layout.wanted.len(),
                }
            })
            .collect()
    }
}

impl<'a> Codeword<'a> {
    /// What is read, and what is written.
    pub(crate) fn split(&mut self) -> (&[&[u8]], &mut [&'a mut [u8]]) {
        let (sources, rest) = self.symbols.split_at_mut(self.sources);
        (shared(sources), &mut rest[..self.wanted])
    }

    /// Every buffer of the codeword: sources, wanted, others.
    pub(crate) fn all(&mut self) -> &mut [&'a mut [u8]] {
        &mut self.symbols
    }
}
