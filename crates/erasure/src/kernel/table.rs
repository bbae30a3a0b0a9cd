//! The multipliers of a transform, as its kernels look them up.

#![allow(unsafe_code)]

use crate::transform::FactorsRef;

/// Addresses of multipliers, in both forms.
#[derive(Clone, Copy)]
pub(super) struct Table {
    pub(super) elements: *const u8,
    pub(super) matrices: *const u64,
}

impl Table {
    pub(super) fn new(factors: FactorsRef<'_>) -> Self {
        Self { elements: factors.elements.as_ptr(), matrices: factors.matrices.as_ptr() }
    }

    /// # Safety
    ///
    /// The table has at least `elements` elements.
    #[inline(always)]
    pub(super) unsafe fn skip(self, elements: usize) -> Self {
        // SAFETY: by the caller.
        unsafe {
            Self { elements: self.elements.add(elements), matrices: self.matrices.add(elements) }
        }
    }
}
