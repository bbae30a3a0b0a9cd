//! Everything unsafe, behind functions that cannot be called wrongly: calls into ISA-L, the widest
//! reads the CPU has, and one change of type.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _MM_HINT_T1, _mm_prefetch, _mm_sfence, _mm_stream_si128,
    _mm256_stream_si256, _mm512_stream_si512,
};
use std::ffi::c_int;
use std::hint::black_box;
use std::slice;

use erasure_isa_l_sys as ffi;

/// Bytes in a sector.
pub(crate) const SECTOR_SIZE: usize = 4096;

/// Bytes of ISA-L's tables for one coefficient.
const TABLE_SIZE: usize = 32;

/// ISA-L's own form of a matrix, and room for the lists of addresses that it is called with.
pub(crate) struct IsalMatrix {
    tables: Vec<u8>,
    columns: usize,
    rows: usize,
    sources: Vec<*mut u8>,
    wanted: Vec<*mut u8>,
}

impl IsalMatrix {
    /// Of the coefficients row by row.
    pub(crate) fn new(coefficients: &[u8], columns: usize) -> Self {
        let rows = coefficients.len() / columns;
        assert_eq!(rows * columns, coefficients.len(), "whole rows");
        let mut coefficients = coefficients.to_vec();
        let mut tables = vec![0; coefficients.len() * TABLE_SIZE];
        let (from, into) = (coefficients.as_mut_ptr(), tables.as_mut_ptr());
        // SAFETY: there are `rows * columns` coefficients, and room for a table of each.
        unsafe { ffi::ec_init_tables(count(columns), count(rows), from, into) };
        Self { tables, columns, rows, sources: Vec::new(), wanted: Vec::new() }
    }

    /// The tables, as the code path that ISA-L chose wants them.
    pub(crate) fn tables(&self) -> &[u8] {
        &self.tables
    }

    /// `wanted = matrix * sources`, at once.
    pub(crate) fn multiply(&mut self, sources: &[&[u8]], wanted: &mut [&mut [u8]]) {
        assert_eq!(sources.len(), self.columns, "a source for each column");
        self.take(sources, wanted);
        let (columns, rows, tables) =
            (count(self.columns), count(self.rows), self.tables.as_mut_ptr());
        let (from, into) = (self.sources.as_mut_ptr(), self.wanted.as_mut_ptr());
        // SAFETY: the tables are of `columns` columns and `rows` rows, the lists name as many buffers of a
        // sector each, and those of the sources are only read.
        unsafe { ffi::ec_encode_data(count(SECTOR_SIZE), columns, rows, tables, from, into) };
    }

    /// `wanted ^= columns * sources`, from `first_column` on, source by source.
    pub(crate) fn add(&mut self, first_column: usize, sources: &[&[u8]], wanted: &mut [&mut [u8]]) {
        assert!(first_column + sources.len() <= self.columns, "no more sources than columns");
        self.take(sources, wanted);
        let (columns, rows, tables) =
            (count(self.columns), count(self.rows), self.tables.as_mut_ptr());
        let into = self.wanted.as_mut_ptr();
        for (source, column) in self.sources.iter().zip(first_column..) {
            let (len, column) = (count(SECTOR_SIZE), count(column));
            // SAFETY: as above, and the column is one of the matrix.
            unsafe {
                ffi::ec_encode_data_update(len, columns, rows, column, tables, *source, into);
            }
        }
    }

    fn take(&mut self, sources: &[&[u8]], wanted: &mut [&mut [u8]]) {
        assert_eq!(wanted.len(), self.rows, "a buffer for each row");
        assert!(sources.iter().all(|bytes| bytes.len() == SECTOR_SIZE), "sources are sectors");
        assert!(wanted.iter().all(|bytes| bytes.len() == SECTOR_SIZE), "wanted are sectors");
        self.sources.clear();
        self.sources.extend(sources.iter().map(|bytes| bytes.as_ptr().cast_mut()));
        self.wanted.clear();
        self.wanted.extend(wanted.iter_mut().map(|bytes| bytes.as_mut_ptr()));
    }
}

fn count(count: usize) -> c_int {
    c_int::try_from(count).expect("counts are small")
}

/// The widest registers that the CPU has.
#[derive(Clone, Copy)]
pub(crate) struct Width(Registers);

#[derive(Clone, Copy)]
enum Registers {
    Avx512,
    Avx2,
    Sse2,
}

impl Width {
    /// Those of this CPU.
    pub(crate) fn here() -> Self {
        Self(if is_x86_feature_detected!("avx512f") {
            Registers::Avx512
        } else if is_x86_feature_detected!("avx2") {
            Registers::Avx2
        } else {
            Registers::Sse2
        })
    }

    /// Reads all sources and writes all of the wanted buffers, with no arithmetic but what it takes to
    /// have read them, and no value in what is written.
    pub(crate) fn move_all(self, sources: &[&[u8]], wanted: &mut [&mut [u8]], manner: Manner) {
        match self.0 {
            // SAFETY: only `here` makes one, and the CPU has it.
            Registers::Avx512 => unsafe { move_avx512(sources, wanted, manner) },
            // SAFETY: as above.
            Registers::Avx2 => unsafe { move_avx2(sources, wanted, manner) },
            Registers::Sse2 => move_sse2(sources, wanted, manner),
        }
    }

    /// Reads all of the buffers, and does no more with them than it takes to have read them.
    pub(crate) fn read<B: AsRef<[u8]>>(self, buffers: &[B]) {
        match self.0 {
            // SAFETY: only `here` makes one, and the CPU has it.
            Registers::Avx512 => unsafe { read_avx512(buffers) },
            // SAFETY: as above.
            Registers::Avx2 => unsafe { read_avx2(buffers) },
            Registers::Sse2 => read(buffers),
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

/// How [`Width::move_all`] goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) order: Order,
    /// Bytes that are fetched ahead of their use into the second-level cache; 0 for none.
    pub(crate) ahead: usize,
    pub(crate) stores: Stores,
}

/// In which order sources are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// One after the other.
    InTurn,
    /// A line of each at a time.
    Together,
}

/// How buffers are written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stores {
    Cached,
    Past,
}

macro_rules! mover {
    ($name:ident, $vector:ty, $stream:ident, $features:literal) => {
        #[target_feature(enable = $features)]
        fn $name(sources: &[&[u8]], wanted: &mut [&mut [u8]], manner: Manner) {
            const WORDS: usize = size_of::<$vector>() / 8;
            let sums = read_in(sources, manner);
            let mut line = [0; WORDS];
            line.copy_from_slice(&sums[..WORDS]);
            for bytes in wanted {
                assert!(bytes.as_ptr().addr().is_multiple_of(size_of::<$vector>()));
                let vectors = bytes.as_chunks_mut::<{ size_of::<$vector>() }>().0;
                match manner.stores {
                    Stores::Past => {
                        for vector in vectors {
                            // SAFETY: the bytes of a vector are there, at a multiple of their number (checked), and
                            // words of any bits are a vector.
                            unsafe {
                                let value = line.as_ptr().cast::<$vector>().read_unaligned();
                                $stream(vector.as_mut_ptr().cast(), value);
                            }
                        }
                    }
                    Stores::Cached => {
                        for vector in vectors {
                            for (into, word) in vector.as_chunks_mut::<8>().0.iter_mut().zip(line) {
                                *into = word.to_ne_bytes();
                            }
                        }
                    }
                }
            }
            if let Stores::Past = manner.stores {
                _mm_sfence();
            }
        }
    };
}

mover!(move_avx512, __m512i, _mm512_stream_si512, "avx512f");
mover!(move_avx2, __m256i, _mm256_stream_si256, "avx2");

fn move_sse2(sources: &[&[u8]], wanted: &mut [&mut [u8]], manner: Manner) {
    mover!(with_sse2, __m128i, _mm_stream_si128, "sse2");
    // SAFETY: every processor of this architecture has the instructions.
    unsafe { with_sse2(sources, wanted, manner) }
}

/// The xor of all words of sources, read in some manner.
#[inline(always)]
fn read_in(sources: &[&[u8]], manner: Manner) -> [u64; 64] {
    let mut sums = [0u64; 64];
    let mut add = |line: &[u8; 512]| {
        if manner.ahead > 0 {
            for at in (0..512).step_by(64) {
                let next = line.as_ptr().wrapping_add(at + manner.ahead);
                // SAFETY: fetching ahead accesses nothing.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(next.cast()) };
            }
        }
        for (sum, word) in sums.iter_mut().zip(line.as_chunks::<8>().0) {
            *sum ^= u64::from_ne_bytes(*word);
        }
    };
    match manner.order {
        Order::InTurn => {
            for bytes in sources {
                bytes.as_chunks::<512>().0.iter().for_each(&mut add);
            }
        }
        Order::Together => {
            for n in 0..SECTOR_SIZE / 512 {
                sources.iter().for_each(|bytes| add(&bytes.as_chunks::<512>().0[n]));
            }
        }
    }
    sums
}

/// Buffers that may be written, for a function that only reads them.
pub(crate) fn shared<'a>(buffers: &'a [&mut [u8]]) -> &'a [&'a [u8]] {
    // SAFETY: both kinds of reference have one layout, and for as long as this borrow lasts nothing
    // can write through those that it came from.
    unsafe { slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) }
}
