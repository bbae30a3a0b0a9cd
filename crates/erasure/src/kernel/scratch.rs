//! Room for sums on the stack, of which only what is used is ever touched.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Room for `N` bytes, aligned as the largest vector is.
#[repr(align(64))]
pub(super) struct Scratch<const N: usize>([MaybeUninit<u8>; N]);

impl<const N: usize> Scratch<N> {
    /// With nothing in it.
    pub(super) const fn new() -> Self {
        Self([MaybeUninit::uninit(); N])
    }

    /// The first `size` bytes, which are made zeros.
    pub(super) fn zeros(&mut self, size: usize) -> &mut [u8] {
        let bytes = &mut self.0[..size];
        // SAFETY: the bytes are all written before they are called initialised.
        unsafe {
            bytes.as_mut_ptr().write_bytes(0, size);
            std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), size)
        }
    }
}
