//! Room for sums on the stack, of which only what is used is ever touched.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Room for `N` numbers, aligned as the largest vector is.
#[repr(align(64))]
pub(super) struct Scratch<const N: usize, T: Zero = u8>([MaybeUninit<T>; N]);

/// A number for which zero bytes are a value.
///
/// # Safety
///
/// They are.
pub(super) unsafe trait Zero: Copy {}

// SAFETY: all zero bits are the number 0.
unsafe impl Zero for u8 {}
// SAFETY: as above.
unsafe impl Zero for u64 {}

impl<const N: usize, T: Zero> Scratch<N, T> {
    /// With nothing in it.
    pub(super) const fn new() -> Self {
        Self([MaybeUninit::uninit(); N])
    }

    /// The first `count` numbers, which are made zeros.
    pub(super) fn zeros(&mut self, count: usize) -> &mut [T] {
        let numbers = &mut self.0[..count];
        // SAFETY: the numbers are all written before they are called initialised, and zeros are values of
        // theirs.
        unsafe {
            numbers.as_mut_ptr().write_bytes(0, count);
            std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), count)
        }
    }
}
