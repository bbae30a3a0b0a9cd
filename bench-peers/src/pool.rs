//! The memory that everybody works on.
//!
//! One run of sectors, larger than any cache, is laid out as codewords one after another; each
//! contestant goes on where the one before it stopped, so that what it reads was last touched a
//! whole round through the pool ago. All contestants are given the same buffers.

use std::alloc::{self, handle_alloc_error};
use std::ptr::NonNull;
use std::slice;

/// Bytes in a sector.
pub(crate) const SECTOR_SIZE: usize = 4096;

/// Bytes in the pool. At least two thirds of it are data for every code measured.
pub(crate) const POOL_SIZE: usize = 384 << 20;

/// The pages asked for, and so the alignment.
const HUGE_PAGE_SIZE: usize = 2 << 20;

const _: () = assert!(POOL_SIZE * 2 / 3 >= 256 << 20);
const _: () = assert!(POOL_SIZE.is_multiple_of(HUGE_PAGE_SIZE));

/// The memory. Full of bytes that look random.
pub(crate) struct Pool {
    base: NonNull<u8>,
}

/// How a codeword's symbols are used: by their place in the codeword.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Symbols in a codeword, those that nobody uses too.
    pub(crate) len: usize,
    /// The symbols that are read, in the order they are handed out.
    pub(crate) sources: Vec<usize>,
    /// The symbols that are written, or read and written.
    pub(crate) wanted: Vec<usize>,
}

/// The buffers of one codeword: sources first, then what is wanted, then what nobody uses.
pub(crate) struct Codeword<'a> {
    symbols: Vec<&'a mut [u8]>,
    sources: usize,
    wanted: usize,
}

impl Pool {
    /// Takes the memory, in huge pages where the kernel grants them, and fills it.
    pub(crate) fn new() -> Self {
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc::alloc(Self::memory()) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(Self::memory()) };
        // SAFETY: the range is ours alone; the advice changes no byte of it.
        let advised = unsafe {
            rustix::mm::madvise(base.as_ptr().cast(), POOL_SIZE, rustix::mm::Advice::LinuxHugepage)
        };
        if let Err(error) = advised {
            eprintln!("no huge pages for the pool: {error}");
        }
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for offset in (0..POOL_SIZE).step_by(size_of::<u64>()) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // SAFETY: inside the allocation, which is aligned to far more than a word.
            unsafe { base.as_ptr().add(offset).cast::<u64>().write(state) };
        }
        Self { base }
    }

    /// As many codewords as the pool holds.
    pub(crate) fn codewords(&mut self, layout: &Layout) -> Vec<Codeword<'_>> {
        let mut order = layout.sources.clone();
        order.extend(&layout.wanted);
        let rest = (0..layout.len).filter(|symbol| !order.contains(symbol)).collect::<Vec<_>>();
        order.extend(rest);
        assert_eq!(order.len(), layout.len, "a symbol is a source, wanted, or neither");
        self.bytes()
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

    /// All of it.
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the allocation is so large, was written whole by `new`, and is borrowed as we are.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), POOL_SIZE) }
    }

    fn memory() -> alloc::Layout {
        alloc::Layout::from_size_align(POOL_SIZE, HUGE_PAGE_SIZE).expect("it is a valid layout")
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: taken with the same layout, and nobody holds a borrow.
        unsafe { alloc::dealloc(self.base.as_ptr(), Self::memory()) };
    }
}

impl<'a> Codeword<'a> {
    /// What is read, and what is written.
    pub(crate) fn split(&mut self) -> (&[&[u8]], &mut [&'a mut [u8]]) {
        let (sources, rest) = self.symbols.split_at_mut(self.sources);
        // SAFETY: `&mut [u8]` and `&[u8]` have one layout, and as long as the outer borrow lasts the
        // inner ones cannot be used to write: `sources` is moved from here.
        let sources =
            unsafe { slice::from_raw_parts(sources.as_ptr().cast::<&[u8]>(), sources.len()) };
        (sources, &mut rest[..self.wanted])
    }

    /// Every buffer of the codeword: sources, wanted, others.
    pub(crate) fn all(&mut self) -> &mut [&'a mut [u8]] {
        &mut self.symbols
    }
}
