//! The bytes of a read or a write, inside whole sectors.

use std::fmt;

use levelhead_block::Buf;
use levelhead_units::{Bytes, SECTOR_SIZE, Sectors};

/// A run of bytes within a sector buffer.
pub struct Payload {
    buf: Buf,
    skew: usize,
    len: usize,
}

/// What follows a request's head.
#[derive(Debug, PartialEq)]
pub enum Body {
    /// Nothing follows it.
    Nothing,
    /// The bytes of a write, placed as [`Payload::room`] says.
    Bytes(Payload),
    /// A write's bytes, more than [`PAYLOAD_MAX`](super::PAYLOAD_MAX), which were thrown away.
    Skipped,
}

impl Payload {
    /// No bytes.
    pub fn empty() -> Self {
        Self { buf: Buf::empty(), skew: 0, len: 0 }
    }

    /// Room for `len` bytes that belong at byte `offset` of a device: the buffer holds every sector
    /// they touch, and they start where they start in the first of these.
    pub fn room(offset: u64, len: usize) -> Self {
        let skew = (offset % SECTOR_SIZE as u64) as usize;
        Self { buf: Buf::zeroed(Self::sectors_of(offset, len)), skew, len }
    }

    /// The size of the buffer that [`Payload::room`] makes.
    pub fn sectors_of(offset: u64, len: usize) -> Sectors {
        let skew = offset % SECTOR_SIZE as u64;
        match len {
            0 => Sectors::ZERO,
            _ => Bytes::new(skew + len as u64).sectors_ceil(),
        }
    }

    /// A copy of `bytes`, placed as [`Payload::room`] says.
    pub fn copy_of(offset: u64, bytes: &[u8]) -> Self {
        let mut payload = Self::room(offset, bytes.len());
        payload.bytes_mut().copy_from_slice(bytes);
        payload
    }

    /// The `len` bytes of `buf` from byte `skew` on.
    ///
    /// Panics unless `buf` has them.
    pub fn part_of(buf: Buf, skew: usize, len: usize) -> Self {
        assert!(skew + len <= buf.as_slice().len());
        Self { buf, skew, len }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self.len {
            0 => &[],
            _ => &self.buf.as_slice()[self.skew..][..self.len],
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self.len {
            0 => &mut [],
            _ => &mut self.buf.as_mut_slice()[self.skew..][..self.len],
        }
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The whole sectors the bytes lie in.
    pub fn into_buf(self) -> Buf {
        self.buf
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes from byte {})", self.len, self.skew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_where_they_lie_in_their_first_sector() {
        for (offset, len, sectors) in
            [(0, 4096, 1), (4095, 2, 2), (8191, 1, 1), (10_000, 4096, 2), (100, 0, 0)]
        {
            let payload = Payload::copy_of(offset, &vec![7; len]);
            assert_eq!(payload.bytes(), vec![7; len]);
            assert_eq!(Payload::sectors_of(offset, len), Sectors::new(sectors));
            let buf = payload.into_buf();
            assert_eq!(buf.sectors(), Sectors::new(sectors), "{len} bytes at {offset}");
            let set: Vec<usize> =
                (0..buf.as_slice().len()).filter(|&at| buf.as_slice()[at] == 7).collect();
            assert_eq!(set, (0..len).map(|at| offset as usize % 4096 + at).collect::<Vec<_>>());
        }
    }
}
