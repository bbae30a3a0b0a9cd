//! Takes bytes out of all caches, so that a measurement finds them in memory.

#![allow(unsafe_code)]

/// Writes back what the caches hold of the bytes, and has them forget it. On other processors than `x86_64`
/// it does nothing: they have no kernel with vectors, and only those are compared.
pub(crate) fn evict(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};

        /// Bytes of a line of cache.
        const LINE_SIZE: usize = 64;

        for line in bytes.chunks(LINE_SIZE) {
            // SAFETY: every processor of this architecture has the instruction; the line is there.
            unsafe { _mm_clflush(line.as_ptr()) };
        }
        if let Some(last) = bytes.last() {
            // SAFETY: as above. The last line, where the first did not begin with the bytes.
            unsafe { _mm_clflush(last) };
        }
        // SAFETY: as above.
        unsafe { _mm_mfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
