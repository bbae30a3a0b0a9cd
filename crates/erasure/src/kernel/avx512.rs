//! Vectors of 64 bytes, and GFNI: an instruction that multiplies eight bits by an 8 by 8 matrix of
//! bits, for 64 bytes at once. Multiplying by an element of any field of 256 elements is such a
//! matrix.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _MM_HINT_ET0, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm512_gf2p8affine_epi64_epi8,
    _mm512_loadu_si512, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_stream_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use super::cosets;
use super::engine::{self, Coset, Engine, Evaluation, Few, Job, Mad};
use super::few;
use super::matrix::matrix_of;
use super::sources;
use super::table::Table;
use super::tiles;
use super::vector::{self, Vector};
use super::x86::x86_engine;
use crate::choice::{FEW, Width};
use crate::fields::Field;

/// The engine of [`Kernel::Avx512Gfni`](crate::Kernel::Avx512Gfni).
pub(super) struct Avx512Gfni;

#[derive(Clone, Copy)]
struct Zmm(__m512i);

/// The truth table of an exclusive or of three.
const XOR3: i32 = 0x96;

// SAFETY: `load` and `store` access 64 bytes without any demand on alignment.
unsafe impl Vector for Zmm {
    const SIZE: usize = 64;
    const KEEPS_MULTIPLIERS: bool = false;
    const WIDTH_8: usize = 4;
    const NARROW_8: usize = 2;
    const WIDTH_16: usize = 2;
    type Spread = __m512i;
    type Prepared = Self;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has a processor with AVX-512.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller has a processor with AVX-512, and 64 bytes at `from`.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, into: *mut u8) {
        // SAFETY: the caller has a processor with AVX-512, and 64 bytes at `into`.
        unsafe { _mm512_storeu_si512(into.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_past(self, into: *mut u8) {
        // SAFETY: the caller has a processor with AVX-512, and 64 bytes at `into`, a multiple of 64.
        unsafe { _mm512_stream_si512(into.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller has a processor with AVX-512.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn xor3(self, second: Self, third: Self) -> Self {
        // SAFETY: the caller has a processor with AVX-512.
        Self(unsafe { _mm512_ternarylogic_epi64::<XOR3>(self.0, second.0, third.0) })
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self {
        self
    }

    #[inline(always)]
    unsafe fn spread(element: u8) -> __m512i {
        // SAFETY: the caller has a processor with AVX-512.
        unsafe { _mm512_set1_epi64(matrix_of(element) as i64) }
    }

    #[inline(always)]
    fn factor(element: u8) -> u64 {
        matrix_of(element)
    }

    #[inline(always)]
    unsafe fn spread_factor(at: *const u64) -> __m512i {
        // SAFETY: the caller has a processor with AVX-512, and a factor there.
        unsafe { _mm512_set1_epi64(at.read() as i64) }
    }

    #[inline(always)]
    unsafe fn spread_nth(table: Table, n: usize) -> __m512i {
        // SAFETY: the caller has a processor with AVX-512, and the table has a multiplier `n`.
        unsafe { _mm512_set1_epi64(table.matrices.add(n).read() as i64) }
    }

    #[inline(always)]
    unsafe fn multiply(prepared: Self, factor: __m512i) -> Self {
        // SAFETY: the caller has a processor with AVX-512 and GFNI.
        Self(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(prepared.0, factor) })
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
}

x86_engine!(Avx512Gfni, Zmm, "avx512f,avx512bw,gfni");
