//! The bytes of a read or a write, inside whole sectors.

use std::fmt;

use levelhead_block::{Buf, Data, Pool};
use levelhead_units::{Bytes, SECTOR_SIZE, Sectors};

/// A run of bytes within whole sectors, which may lie in several places.
pub struct Payload {
    data: Data,
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
        Self { data: Data::None, skew: 0, len: 0 }
    }

    /// Room for `len` bytes that belong at byte `offset` of a device: the buffer holds every sector
    /// they touch, and they start where they start in the first of these.
    pub fn room(offset: u64, len: usize) -> Self {
        let skew = (offset % SECTOR_SIZE as u64) as usize;
        Self { data: Data::Buf(Buf::zeroed(Self::sectors_of(offset, len))), skew, len }
    }

    /// The same in memory of `pool`. What the bytes leave of the first and the last sector is zeroes; the bytes
    /// themselves are anything until they are filled.
    pub fn room_in(pool: &Pool, offset: u64, len: usize) -> Self {
        let skew = (offset % SECTOR_SIZE as u64) as usize;
        let mut buf = pool.take_to_fill(Self::sectors_of(offset, len));
        let bytes = buf.as_mut_slice();
        if len > 0 {
            bytes[..skew].fill(0);
            bytes[skew + len..].fill(0);
        }
        Self { data: Data::Buf(buf), skew, len }
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

    /// The `len` bytes of `data` from byte `skew` on. They stay where they are.
    ///
    /// Panics unless `data` has them.
    pub fn part_of(data: Data, skew: usize, len: usize) -> Self {
        let has = data.sectors().bytes().get() as usize;
        assert!(skew + len <= has, "{len} bytes from {skew} on of {has}");
        Self { data, skew, len }
    }

    /// The bytes, in order. No slice is empty.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let (mut skip, mut left) = (self.skew, self.len);
        let cut = move |slice| -> &[u8] {
            let slice: &[u8] = slice;
            let rest = &slice[skip.min(slice.len())..];
            skip -= slice.len() - rest.len();
            let part = &rest[..left.min(rest.len())];
            left -= part.len();
            part
        };
        self.data.slices().map(cut).filter(|slice| !slice.is_empty())
    }

    /// Copies the bytes.
    ///
    /// Panics unless `room` has their size.
    pub fn copy_to(&self, mut room: &mut [u8]) {
        assert_eq!(room.len(), self.len, "room of another size");
        for slice in self.slices() {
            let (place, rest) = room.split_at_mut(slice.len());
            place.copy_from_slice(slice);
            room = rest;
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.data {
            Data::Buf(buf) if self.len > 0 => &mut buf.as_mut_slice()[self.skew..][..self.len],
            Data::Buf(_) | Data::None => &mut [],
            Data::Pieces(_) => panic!("what is sent is never filled"),
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
        self.data.into_buf()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.slices().flatten().eq(other.slices().flatten())
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes from byte {})", self.len, self.skew)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use levelhead_block::Piece;

    use super::*;

    /// Sectors that lie in any places are sent from there, whichever bytes of them are wanted.
    #[test]
    fn parts_of_pieces_are_neither_copied_nor_mixed_up() {
        let mut buf = Buf::zeroed(Sectors::new(4));
        for (at, byte) in buf.as_mut_slice().iter_mut().enumerate() {
            *byte = (at / 7 % 251) as u8;
        }
        let whole = Piece::whole(Arc::new(buf));
        let pieces = || vec![whole.part(3, 1), whole.part(0, 2)];
        let all: Vec<u8> = pieces().iter().flat_map(|piece| piece.bytes().to_vec()).collect();
        let places = pieces().iter().map(|piece| piece.bytes().as_ptr_range()).collect::<Vec<_>>();
        for (skew, len) in [(0, 12_288), (0, 0), (1, 4095), (4095, 2), (4096, 8192), (5000, 10)] {
            let payload = Payload::part_of(Data::Pieces(pieces()), skew, len);
            let bytes: Vec<u8> = payload.slices().flatten().copied().collect();
            assert!(bytes == all[skew..skew + len], "{len} bytes from {skew} on");
            for slice in payload.slices() {
                assert!(places.iter().any(|place| place.contains(&slice.as_ptr())), "a copy");
            }
            let mut copy = vec![0; len];
            payload.copy_to(&mut copy);
            assert!(copy == bytes);
        }
    }

    #[test]
    fn memory_that_is_used_again_shows_nothing_beside_the_bytes() {
        let pool = Pool::new(Sectors::new(8));
        let mut used = pool.take_to_fill(Sectors::new(2));
        used.as_mut_slice().fill(9);
        drop(used);
        let mut room = Payload::room_in(&pool, 5000, 4096);
        room.bytes_mut().fill(1);
        let buf = room.into_buf();
        let ones = 904..904 + 4096;
        let is_right = |(at, &byte): (usize, &u8)| byte == u8::from(ones.contains(&at));
        assert!(buf.as_slice().iter().enumerate().all(is_right));
    }

    #[test]
    fn bytes_lie_where_they_lie_in_their_first_sector() {
        for (offset, len, sectors) in
            [(0, 4096, 1), (4095, 2, 2), (8191, 1, 1), (10_000, 4096, 2), (100, 0, 0)]
        {
            let payload = Payload::copy_of(offset, &vec![7; len]);
            assert!(payload.slices().flatten().copied().eq(vec![7; len]));
            assert_eq!(Payload::sectors_of(offset, len), Sectors::new(sectors));
            let buf = payload.into_buf();
            assert_eq!(buf.sectors(), Sectors::new(sectors), "{len} bytes at {offset}");
            let set: Vec<usize> =
                (0..buf.as_slice().len()).filter(|&at| buf.as_slice()[at] == 7).collect();
            assert_eq!(set, (0..len).map(|at| offset as usize % 4096 + at).collect::<Vec<_>>());
        }
    }
}
