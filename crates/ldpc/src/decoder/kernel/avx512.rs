//! Vectors of 64 bytes: a group is one of them, and choices are made by mask registers.

use std::arch::x86_64::{
    __m512i, _mm512_abs_epi8, _mm512_add_epi16, _mm512_adds_epi8, _mm512_and_si512,
    _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_mask_blend_epi8, _mm512_mask_sub_epi8,
    _mm512_max_epi8, _mm512_min_epi8, _mm512_movepi8_mask, _mm512_mullo_epi16, _mm512_or_si512,
    _mm512_set1_epi8, _mm512_set1_epi16, _mm512_setzero_si512, _mm512_slli_epi16,
    _mm512_srli_epi16, _mm512_storeu_si512, _mm512_subs_epi8, _mm512_xor_si512,
};

use super::vector::{self, Memory, Vector};
use crate::decoder::{LEVEL_MAX, Links};

#[derive(Clone, Copy)]
pub(super) struct Zmm(__m512i);

/// [`vector::iterate`].
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn iterate(memory: &mut Memory, links: &Links) {
    // SAFETY: this function is compiled for the vector's instructions.
    unsafe { vector::iterate::<Zmm, 1>(memory, links) }
}

/// [`vector::decide`].
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn decide(memory: &mut Memory, links: &Links) -> bool {
    // SAFETY: this function is compiled for the vector's instructions.
    unsafe { vector::decide::<Zmm>(memory, links) }
}

// Everywhere below: the caller has a processor with AVX-512 F and BW, and what `load` and `store` access is valid, at any
// alignment.

// SAFETY: `load` and `store` access 64 bytes without any demand on alignment.
unsafe impl Vector for Zmm {
    const SIZE: usize = 64;

    #[inline(always)]
    unsafe fn splat(byte: i8) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_set1_epi8(byte) })
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, into: *mut i8) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(into.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            _mm512_max_epi8(_mm512_adds_epi8(self.0, other.0), _mm512_set1_epi8(-LEVEL_MAX))
        })
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            _mm512_max_epi8(_mm512_subs_epi8(self.0, other.0), _mm512_set1_epi8(-LEVEL_MAX))
        })
    }

    #[inline(always)]
    unsafe fn size(self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_abs_epi8(self.0) })
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_min_epi8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_max_epi8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn scaled(self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            let cut = _mm512_min_epi8(self.0, _mm512_set1_epi8(63));
            // Two halves of 16 bits each: 11 times 63 and 8 is more than a byte.
            let part = |sizes| {
                let product = _mm512_mullo_epi16(sizes, _mm512_set1_epi16(11));
                _mm512_srli_epi16::<4>(_mm512_add_epi16(product, _mm512_set1_epi16(8)))
            };
            let low = part(_mm512_and_si512(cut, _mm512_set1_epi16(0xFF)));
            let high = part(_mm512_srli_epi16::<8>(cut));
            _mm512_or_si512(low, _mm512_slli_epi16::<8>(high))
        })
    }

    #[inline(always)]
    unsafe fn pick_equal(self, other: Self, then: Self, otherwise: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            let equal = _mm512_cmpeq_epi8_mask(self.0, other.0);
            _mm512_mask_blend_epi8(equal, otherwise.0, then.0)
        })
    }

    #[inline(always)]
    unsafe fn with_sign(self, sign: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            let negative = _mm512_movepi8_mask(sign.0);
            _mm512_mask_sub_epi8(self.0, negative, _mm512_setzero_si512(), self.0)
        })
    }

    #[inline(always)]
    unsafe fn or_where(self, other: Self, mask: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_mask_blend_epi8(_mm512_movepi8_mask(mask.0), self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn negatives(self) -> u64 {
        // SAFETY: as above.
        unsafe { _mm512_movepi8_mask(self.0) }
    }
}
