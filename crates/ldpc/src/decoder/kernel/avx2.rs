//! Vectors of 32 bytes.

use std::arch::x86_64::{
    __m256i, _mm256_abs_epi8, _mm256_add_epi16, _mm256_adds_epi8, _mm256_and_si256,
    _mm256_blendv_epi8, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_max_epi8, _mm256_min_epi8,
    _mm256_movemask_epi8, _mm256_mullo_epi16, _mm256_or_si256, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_sign_epi8, _mm256_slli_epi16, _mm256_srli_epi16, _mm256_storeu_si256, _mm256_subs_epi8,
    _mm256_xor_si256,
};

use super::vector::{self, Memory, Vector};
use crate::decoder::{LEVEL_MAX, Links};

#[derive(Clone, Copy)]
pub(super) struct Ymm(__m256i);

/// Vectors of a group.
const VECTORS: usize = 2;

/// [`vector::iterate`].
#[target_feature(enable = "avx2")]
pub(super) fn iterate(memory: &mut Memory, links: &Links) {
    // SAFETY: this function is compiled for the vector's instructions.
    unsafe { vector::iterate::<Ymm, VECTORS>(memory, links) }
}

/// [`vector::decide`].
#[target_feature(enable = "avx2")]
pub(super) fn decide(memory: &mut Memory, links: &Links) -> bool {
    // SAFETY: this function is compiled for the vector's instructions.
    unsafe { vector::decide::<Ymm>(memory, links) }
}

// Everywhere below: the caller has a processor with AVX2, and what `load` and `store` access is valid, at any alignment.

// SAFETY: `load` and `store` access 32 bytes without any demand on alignment.
unsafe impl Vector for Ymm {
    const SIZE: usize = 32;

    #[inline(always)]
    unsafe fn splat(byte: i8) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_set1_epi8(byte) })
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, into: *mut i8) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(into.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            _mm256_max_epi8(_mm256_adds_epi8(self.0, other.0), _mm256_set1_epi8(-LEVEL_MAX))
        })
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            _mm256_max_epi8(_mm256_subs_epi8(self.0, other.0), _mm256_set1_epi8(-LEVEL_MAX))
        })
    }

    #[inline(always)]
    unsafe fn size(self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_abs_epi8(self.0) })
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_min_epi8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_max_epi8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn scaled(self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            let cut = _mm256_min_epi8(self.0, _mm256_set1_epi8(63));
            // Two halves of 16 bits each: 11 times 63 and 8 is more than a byte.
            let part = |sizes| {
                let product = _mm256_mullo_epi16(sizes, _mm256_set1_epi16(11));
                _mm256_srli_epi16::<4>(_mm256_add_epi16(product, _mm256_set1_epi16(8)))
            };
            let low = part(_mm256_and_si256(cut, _mm256_set1_epi16(0xFF)));
            let high = part(_mm256_srli_epi16::<8>(cut));
            _mm256_or_si256(low, _mm256_slli_epi16::<8>(high))
        })
    }

    #[inline(always)]
    unsafe fn pick_equal(self, other: Self, then: Self, otherwise: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_blendv_epi8(otherwise.0, then.0, _mm256_cmpeq_epi8(self.0, other.0)) })
    }

    #[inline(always)]
    unsafe fn with_sign(self, sign: Self) -> Self {
        // The instruction makes zeroes where `sign` is zero.
        // SAFETY: as above.
        Self(unsafe { _mm256_sign_epi8(self.0, _mm256_or_si256(sign.0, _mm256_set1_epi8(1))) })
    }

    #[inline(always)]
    unsafe fn or_where(self, other: Self, mask: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_blendv_epi8(self.0, other.0, mask.0) })
    }

    #[inline(always)]
    unsafe fn negatives(self) -> u64 {
        // SAFETY: as above.
        u64::from(unsafe { _mm256_movemask_epi8(self.0) } as u32)
    }
}
