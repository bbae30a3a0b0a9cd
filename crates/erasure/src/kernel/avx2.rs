//! Vectors of 32 bytes, with GFNI, and without: then a product is two lookups in tables of 16 bytes,
//! which a shuffle does for 32 bytes at once.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _MM_HINT_ET0, _MM_HINT_T0, _MM_HINT_T1, _mm_load_si128, _mm_prefetch,
    _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_gf2p8affine_epi64_epi8,
    _mm256_loadu_si256, _mm256_set1_epi8, _mm256_set1_epi64x, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_stream_si256,
    _mm256_xor_si256,
};

use super::cosets;
use super::engine::{self, Coset, Engine, Evaluation, Few, Job, Mad};
use super::few;
use super::matrix::{NIBBLES, matrix_of};
use super::sources;
use super::table::Table;
use super::tiles;
use super::vector::{self, Vector};
use super::x86::x86_engine;
use crate::choice::{FEW, Width};
use crate::fields::Field;

/// The engine of [`Kernel::Avx2Gfni`](crate::Kernel::Avx2Gfni).
pub(super) struct Avx2Gfni;

/// The engine of [`Kernel::Avx2`](crate::Kernel::Avx2).
pub(super) struct Avx2;

#[derive(Clone, Copy)]
struct Affine(__m256i);

#[derive(Clone, Copy)]
struct Shuffle(__m256i);

/// What both have in common.
macro_rules! vector_of_32 {
    () => {
        const SIZE: usize = 32;
        const WIDTH_16: usize = 1;

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: the caller has a processor with AVX2.
            Self(unsafe { _mm256_setzero_si256() })
        }

        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller has a processor with AVX2, and 32 bytes at `from`.
            Self(unsafe { _mm256_loadu_si256(from.cast()) })
        }

        #[inline(always)]
        unsafe fn store(self, into: *mut u8) {
            // SAFETY: the caller has a processor with AVX2, and 32 bytes at `into`.
            unsafe { _mm256_storeu_si256(into.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn store_past(self, into: *mut u8) {
            // SAFETY: the caller has a processor with AVX2, and 32 bytes at `into`, a multiple of 32.
            unsafe { _mm256_stream_si256(into.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: the caller has a processor with AVX2.
            Self(unsafe { _mm256_xor_si256(self.0, other.0) })
        }

        #[inline(always)]
        unsafe fn xor3(self, second: Self, third: Self) -> Self {
            // SAFETY: the caller has a processor with AVX2.
            unsafe { self.xor(second.xor(third)) }
        }

        #[inline(always)]
        unsafe fn prefetch_to_write(at: *const u8) {
            // SAFETY: a prefetch never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) }
        }

        #[inline(always)]
        unsafe fn prefetch_far(at: *const u8) {
            // SAFETY: a prefetch never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
        }

        #[inline(always)]
        unsafe fn prefetch(at: *const u8) {
            // SAFETY: a prefetch never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
        }
    };
}

// SAFETY: `load` and `store` access 32 bytes without any demand on alignment.
unsafe impl Vector for Affine {
    const KEEPS_MULTIPLIERS: bool = false;
    const WIDTH_8: usize = 2;
    const NARROW_8: usize = 1;
    type Spread = __m256i;
    type Prepared = Self;

    vector_of_32!();

    #[inline(always)]
    unsafe fn prepare(self) -> Self {
        self
    }

    #[inline(always)]
    unsafe fn spread(element: u8) -> __m256i {
        // SAFETY: the caller has a processor with AVX2.
        unsafe { _mm256_set1_epi64x(matrix_of(element) as i64) }
    }

    #[inline(always)]
    fn factor(element: u8) -> u64 {
        matrix_of(element)
    }

    #[inline(always)]
    unsafe fn spread_factor(at: *const u64) -> __m256i {
        // SAFETY: the caller has a processor with AVX2, and a factor there.
        unsafe { _mm256_set1_epi64x(at.read() as i64) }
    }

    #[inline(always)]
    unsafe fn spread_nth(table: Table, n: usize) -> __m256i {
        // SAFETY: the caller has a processor with AVX2, and the table has a multiplier `n`.
        unsafe { _mm256_set1_epi64x(table.matrices.add(n).read() as i64) }
    }

    #[inline(always)]
    unsafe fn multiply(prepared: Self, factor: __m256i) -> Self {
        // SAFETY: the caller has a processor with AVX2 and GFNI.
        Self(unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(prepared.0, factor) })
    }
}

// SAFETY: `load` and `store` access 32 bytes without any demand on alignment.
unsafe impl Vector for Shuffle {
    const KEEPS_MULTIPLIERS: bool = true;
    const WIDTH_8: usize = 1;
    const NARROW_8: usize = 1;
    /// The products of low nibbles, and those of high ones.
    type Spread = [__m256i; 2];
    /// The low nibbles, and the high ones.
    type Prepared = [__m256i; 2];

    vector_of_32!();

    #[inline(always)]
    unsafe fn prepare(self) -> [__m256i; 2] {
        // SAFETY: the caller has a processor with AVX2.
        unsafe {
            let low = _mm256_set1_epi8(15);
            let high = _mm256_srli_epi64::<4>(self.0);
            [_mm256_and_si256(self.0, low), _mm256_and_si256(high, low)]
        }
    }

    #[inline(always)]
    unsafe fn spread(element: u8) -> [__m256i; 2] {
        let tables = (&raw const NIBBLES[usize::from(element)]).cast();
        // SAFETY: the caller has a processor with AVX2; two tables of 16 bytes, aligned to 32.
        unsafe {
            [
                _mm256_broadcastsi128_si256(_mm_load_si128(tables)),
                _mm256_broadcastsi128_si256(_mm_load_si128(tables.add(1))),
            ]
        }
    }

    #[inline(always)]
    fn factor(element: u8) -> u64 {
        element.into()
    }

    #[inline(always)]
    unsafe fn spread_factor(at: *const u64) -> [__m256i; 2] {
        // SAFETY: the caller has a processor with AVX2, and a factor there.
        unsafe { Self::spread(at.read() as u8) }
    }

    #[inline(always)]
    unsafe fn spread_nth(table: Table, n: usize) -> [__m256i; 2] {
        // SAFETY: the caller has a processor with AVX2, and the table has a multiplier `n`.
        unsafe { Self::spread(table.elements.add(n).read()) }
    }

    #[inline(always)]
    unsafe fn multiply([low, high]: [__m256i; 2], factor: [__m256i; 2]) -> Self {
        // SAFETY: the caller has a processor with AVX2.
        Self(unsafe {
            _mm256_xor_si256(
                _mm256_shuffle_epi8(factor[0], low),
                _mm256_shuffle_epi8(factor[1], high),
            )
        })
    }
}

x86_engine!(Avx2Gfni, Affine, "avx2,gfni");
x86_engine!(Avx2, Shuffle, "avx2");
