//! Little-endian numbers at given places of some bytes.

/// Bytes to read from.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

/// Bytes to write to.
pub(crate) struct FieldsMut<'a>(pub(crate) &'a mut [u8]);

impl Fields<'_> {
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        self.0[at..at + N].try_into().expect("the length is right")
    }

    pub(crate) fn u8(self, at: usize) -> u8 {
        self.0[at]
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    pub(crate) fn i64(self, at: usize) -> i64 {
        i64::from_le_bytes(self.array(at))
    }
}

impl FieldsMut<'_> {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn put_u8(&mut self, at: usize, value: u8) {
        self.0[at] = value;
    }

    pub(crate) fn put_u16(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    pub(crate) fn put_u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    pub(crate) fn put_i64(&mut self, at: usize, value: i64) {
        self.put(at, &value.to_le_bytes());
    }
}
