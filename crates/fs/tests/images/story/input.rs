//! Bytes that decide: each choice takes some of them.

/// Choices. Where the bytes end, every further one is 0.
#[derive(Clone, Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn u8(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.u8()))
    }

    /// A number below a bound, which is no more than 2^16.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        assert!((1..=1 << 16).contains(&bound), "below {bound}");
        let word = if bound <= 1 << 8 { u16::from(self.u8()) } else { self.u16() };
        usize::from(word) % bound
    }

    /// One of several.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
