//! The same by plain arrays, which a compiler turns into the vectors of its target.
//!
//! Sizes are compared as numbers without sign, which the poorest processors meant can do in one instruction. Choices are made by
//! masks: a branch between two arrays would be taken byte by byte.

use super::vector::{self, Memory, Vector};
use crate::decoder::{LEVEL_MAX, Links, scaled};

/// Bytes of an array: a register of the poorest processors meant.
const SIZE: usize = 16;

/// Arrays of a group.
const VECTORS: usize = 2;

#[derive(Clone, Copy)]
pub(super) struct Array([i8; SIZE]);

/// [`vector::iterate`].
pub(super) fn iterate(memory: &mut Memory, links: &Links) {
    // SAFETY: arrays take no particular instructions.
    unsafe { vector::iterate::<Array, VECTORS>(memory, links) }
}

/// [`vector::decide`].
pub(super) fn decide(memory: &mut Memory, links: &Links) -> bool {
    // SAFETY: arrays take no particular instructions.
    unsafe { vector::decide::<Array>(memory, links) }
}

fn mask_if(condition: bool) -> i8 {
    -(condition as i8)
}

/// Each byte of `$a`, with that of `$b`.
macro_rules! each {
    (|$a:ident| $result:expr, $from:expr) => {{
        let mut bytes = [0; SIZE];
        for k in 0..SIZE {
            let $a = $from.0[k];
            bytes[k] = $result;
        }
        Self(bytes)
    }};
    (|$a:ident, $b:ident| $result:expr, $from:expr, $with:expr) => {{
        let mut bytes = [0; SIZE];
        for k in 0..SIZE {
            let ($a, $b) = ($from.0[k], $with.0[k]);
            bytes[k] = $result;
        }
        Self(bytes)
    }};
}

// SAFETY: `load` and `store` access 16 bytes without any demand on alignment.
unsafe impl Vector for Array {
    const SIZE: usize = SIZE;

    #[inline(always)]
    unsafe fn splat(byte: i8) -> Self {
        Self([byte; SIZE])
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> Self {
        // SAFETY: the caller has 16 bytes at `from`.
        Self(unsafe { from.cast::<[i8; SIZE]>().read() })
    }

    #[inline(always)]
    unsafe fn store(self, into: *mut i8) {
        // SAFETY: the caller has 16 bytes at `into`.
        unsafe { into.cast::<[i8; SIZE]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        each!(|a, b| a ^ b, self, other)
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        each!(|a, b| above_least(a.saturating_add(b)), self, other)
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        each!(|a, b| above_least(a.saturating_sub(b)), self, other)
    }

    #[inline(always)]
    unsafe fn size(self) -> Self {
        each!(|a| (a as u8).min((a as u8).wrapping_neg()) as i8, self)
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        each!(|a, b| (a as u8).min(b as u8) as i8, self, other)
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        each!(|a, b| (a as u8).max(b as u8) as i8, self, other)
    }

    #[inline(always)]
    unsafe fn scaled(self) -> Self {
        each!(|a| scaled(a), self)
    }

    #[inline(always)]
    unsafe fn pick_equal(self, other: Self, then: Self, otherwise: Self) -> Self {
        let equal = each!(|a, b| mask_if(a == b), self, other);
        let then = each!(|a, b| a & b, then, equal);
        let otherwise = each!(|a, b| a & !b, otherwise, equal);
        each!(|a, b| a | b, then, otherwise)
    }

    #[inline(always)]
    unsafe fn with_sign(self, sign: Self) -> Self {
        let negative = each!(|a| a >> 7, sign);
        each!(|a, b| (a ^ b).wrapping_sub(b), self, negative)
    }

    #[inline(always)]
    unsafe fn or_where(self, other: Self, mask: Self) -> Self {
        let negative = each!(|a| a >> 7, mask);
        let other = each!(|a, b| a & b, other, negative);
        let this = each!(|a, b| a & !b, self, negative);
        each!(|a, b| a | b, this, other)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn negatives(self) -> u64 {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8};
        // SAFETY: every processor of this kind has SSE2, and the load has 16 bytes and no demand on alignment.
        u64::from(unsafe { _mm_movemask_epi8(_mm_loadu_si128(self.0.as_ptr().cast())) } as u16)
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    unsafe fn negatives(self) -> u64 {
        let mut bits = 0;
        for k in 0..SIZE {
            bits |= u64::from(self.0[k] < 0) << k;
        }
        bits
    }
}

/// The level, or -127 for -128.
#[inline(always)]
fn above_least(level: i8) -> i8 {
    level.wrapping_sub(mask_if(level < -LEVEL_MAX))
}
