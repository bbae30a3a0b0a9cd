//! The bytes behind the names that an array gives: what its runtimes keep for its actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_block::{Buf, BufId, Combine, Data, Payload, Piece, Place, Segment};
use levelhead_erasure::{Kernel, multiply, multiply_accumulate};
use levelhead_units::{SECTOR_SIZE, Sectors};

use crate::GARBAGE;

/// Buffers by name. A buffer is here, lent to one drive that fills it, or shared with drives that
/// only read it.
#[derive(Debug)]
pub struct Buffers {
    kernel: Kernel,
    table: BTreeMap<BufId, Held>,
}

#[derive(Debug)]
enum Held {
    Here(Buf),
    /// The bytes are the piece's, whose first sector is the buffer's first.
    Shared(Piece),
    /// With a drive that fills this number of sectors.
    Lent(Sectors),
}

impl Buffers {
    /// No buffers yet; computes with `kernel`.
    pub const fn new(kernel: Kernel) -> Self {
        Self { kernel, table: BTreeMap::new() }
    }

    /// How many buffers are held.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no buffer is held.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Takes a buffer under a new name.
    pub fn insert(&mut self, id: BufId, buf: Buf) {
        self.hold(id, Held::Here(buf));
    }

    /// Takes the bytes of a request under a new name: room for what will be read, or what is to be
    /// written, which is copied only if it lies in several pieces. Without either, a new buffer from
    /// `room`.
    pub fn insert_payload(&mut self, id: BufId, payload: Payload, room: impl FnOnce() -> Buf) {
        let held = match payload {
            Payload::None => Held::Here(room()),
            Payload::Room(buf) => Held::Here(buf),
            Payload::Pieces(pieces) => match <[Piece; 1]>::try_from(pieces) {
                Ok([piece]) => Held::Shared(piece),
                Err(pieces) => Held::Here(Piece::gather(pieces)),
            },
        };
        self.hold(id, held);
    }

    fn hold(&mut self, id: BufId, held: Held) {
        let before = self.table.insert(id, held);
        assert!(before.is_none(), "{id:?} was there already");
    }

    /// Gives a buffer back. If a drive that was given up on still reads it, that one stays with the
    /// drive and an empty one of the same size comes back.
    ///
    /// Panics if a drive is filling it.
    pub fn remove(&mut self, id: BufId) -> Buf {
        match self.table.remove(&id).unwrap_or_else(|| panic!("{id:?} is not there")) {
            Held::Here(buf) => buf,
            Held::Shared(piece) => {
                let sectors = Sectors::new(piece.sectors().into());
                piece.into_unshared().unwrap_or_else(|| Buf::zeroed(sectors))
            }
            Held::Lent(_) => panic!("{id:?} is with a drive that fills it"),
        }
    }

    /// Lets go of a buffer.
    ///
    /// Panics if a drive is filling it.
    pub fn discard(&mut self, id: BufId) {
        let held = self.table.remove(&id).unwrap_or_else(|| panic!("{id:?} is not there"));
        assert!(!matches!(held, Held::Lent(_)), "{id:?} is with a drive that fills it");
    }

    /// Lends a buffer to a drive that will fill it.
    pub fn lend(&mut self, id: BufId) -> Buf {
        let held = self.table.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not there"));
        let Held::Here(buf) = held else { panic!("{id:?} is with a drive already") };
        let lent = Held::Lent(buf.sectors());
        let Held::Here(buf) = std::mem::replace(held, lent) else {
            unreachable!("it was here above")
        };
        buf
    }

    /// Takes back what was lent, with what the drive has read. A drive that brought nothing leaves
    /// garbage.
    ///
    /// Panics if it brought some of the sectors.
    pub fn give_back(&mut self, id: BufId, data: Data) {
        let held = self.table.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not there"));
        let Held::Lent(sectors) = *held else { panic!("{id:?} was not lent") };
        let mut buf = data.into_buf();
        if buf.sectors() == Sectors::ZERO {
            buf = Buf::zeroed(sectors);
            buf.as_mut_slice().fill(GARBAGE);
        }
        assert_eq!(buf.sectors(), sectors, "{id:?} came back with another size");
        *held = Held::Here(buf);
    }

    /// Shares parts of buffers with a drive that reads them. It must drop them before it reports
    /// the command's end.
    pub fn share(&mut self, segments: &[Segment]) -> Vec<Piece> {
        let piece = |segment: &Segment| {
            self.shared(segment.place.buf).part(segment.place.sector, segment.sectors)
        };
        segments.iter().map(piece).collect()
    }

    fn shared(&mut self, id: BufId) -> &Piece {
        let held = self.table.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not there"));
        if let Held::Here(buf) = held {
            let buf = std::mem::replace(buf, Buf::empty());
            *held = Held::Shared(Piece::whole(Arc::new(buf)));
        }
        match held {
            Held::Shared(piece) => piece,
            Held::Here(_) => unreachable!("it was shared above"),
            Held::Lent(_) => panic!("{id:?} is with a drive that fills it"),
        }
    }

    /// All the bytes of a buffer that is not lent.
    pub fn bytes(&self, id: BufId) -> &[u8] {
        match &self.table[&id] {
            Held::Here(buf) => buf.as_slice(),
            Held::Shared(piece) => piece.bytes(),
            Held::Lent(_) => panic!("{id:?} is with a drive that fills it"),
        }
    }

    /// Puts one sector into a buffer.
    ///
    /// Panics if the buffer is with a drive, or `sector` is not a sector.
    pub fn inscribe(&mut self, into: Place, sector: &[u8]) {
        let mut target = self.lend(into.buf);
        target.part_mut(into.sector as usize, 1).copy_from_slice(sector);
        self.give_back(into.buf, Data::Buf(target));
    }

    /// Carries out a [`Combine`].
    pub fn combine(&mut self, combine: &Combine) {
        let Combine { into, sectors, from } = combine;
        let mut target = self.lend(into.buf);
        let len = *sectors as usize * SECTOR_SIZE;
        let target_bytes = target.part_mut(into.sector as usize, *sectors as usize);
        for (at, &(coefficient, place)) in from.iter().enumerate() {
            let source = &self.bytes(place.buf)[place.sector as usize * SECTOR_SIZE..][..len];
            if at == 0 {
                multiply(self.kernel, coefficient, source, target_bytes);
            } else {
                multiply_accumulate(self.kernel, coefficient, source, target_bytes);
            }
        }
        self.give_back(into.buf, Data::Buf(target));
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::{Place, RequestId};

    use super::*;

    const ROOM: BufId = BufId::Own(1);
    const CLIENT: BufId = BufId::Client(RequestId(1));

    fn full_of(value: u8, sectors: usize) -> Buf {
        Buf::copy_of(&vec![value; sectors * SECTOR_SIZE])
    }

    fn place(buf: BufId, sector: u32) -> Place {
        Place { buf, sector }
    }

    fn no_room() -> Buf {
        panic!("the payload has bytes of its own")
    }

    #[test]
    fn what_a_client_writes_is_not_copied_unless_it_lies_in_pieces() {
        let mut buffers = Buffers::new(Kernel::Naive);
        let whole = Piece::whole(Arc::new(full_of(3, 4)));
        let pieces = vec![whole.part(1, 2)];
        let address = pieces[0].bytes().as_ptr();
        buffers.insert_payload(CLIENT, Payload::Pieces(pieces), no_room);
        assert_eq!(buffers.bytes(CLIENT).as_ptr(), address);
        let shared = buffers.share(&[Segment { place: place(CLIENT, 1), sectors: 1 }]);
        assert_eq!(shared[0].bytes().as_ptr(), address.wrapping_add(SECTOR_SIZE));
        buffers.discard(CLIENT);
        let pieces = vec![whole.part(0, 1), whole.part(3, 1)];
        buffers.insert_payload(CLIENT, Payload::Pieces(pieces), no_room);
        assert!(buffers.bytes(CLIENT) == [3; 2 * SECTOR_SIZE]);
        buffers.insert_payload(ROOM, Payload::None, || full_of(9, 1));
        assert_eq!(buffers.bytes(ROOM)[0], 9);
    }

    #[test]
    fn drive_that_brought_nothing_leaves_garbage() {
        let mut buffers = Buffers::new(Kernel::Naive);
        buffers.insert(ROOM, full_of(1, 2));
        drop(buffers.lend(ROOM));
        buffers.give_back(ROOM, Data::None);
        assert!(buffers.bytes(ROOM) == [GARBAGE; 2 * SECTOR_SIZE]);
        let read = Piece::whole(Arc::new(full_of(7, 1)));
        drop(buffers.lend(ROOM));
        buffers.give_back(ROOM, Data::Pieces(vec![read.clone(), read]));
        assert!(buffers.bytes(ROOM) == [7; 2 * SECTOR_SIZE]);
    }

    #[test]
    fn buffer_that_a_drive_still_reads_stays_with_it() {
        let mut buffers = Buffers::new(Kernel::Naive);
        buffers.insert(ROOM, full_of(1, 2));
        let pieces = buffers.share(&[Segment { place: place(ROOM, 0), sectors: 2 }]);
        let back = buffers.remove(ROOM);
        assert_eq!((back.sectors(), back.as_slice()[0]), (Sectors::new(2), 0));
        assert_eq!(pieces[0].bytes()[0], 1);
        buffers.insert(ROOM, full_of(1, 2));
        drop(buffers.share(&[Segment { place: place(ROOM, 0), sectors: 2 }]));
        assert_eq!(buffers.remove(ROOM).as_slice()[0], 1, "no drive has it any more");
        assert!(buffers.is_empty());
    }

    #[test]
    fn combination_reads_what_is_shared_and_writes_what_is_here() {
        let mut buffers = Buffers::new(Kernel::Naive);
        buffers.insert(ROOM, full_of(0, 3));
        let piece = Piece::whole(Arc::new(full_of(5, 2)));
        buffers.insert_payload(CLIENT, Payload::Pieces(vec![piece]), no_room);
        let from = vec![(1, place(CLIENT, 0)), (1, place(CLIENT, 1))];
        buffers.combine(&Combine { into: place(ROOM, 1), sectors: 1, from: from[..1].to_vec() });
        buffers.combine(&Combine { into: place(ROOM, 2), sectors: 1, from });
        let values = [0, 1, 2].map(|at| buffers.bytes(ROOM)[at * SECTOR_SIZE]);
        assert_eq!(values, [0, 5, 0], "the sum of two equals is nothing");
    }

    #[test]
    #[should_panic(expected = "is with a drive already")]
    fn buffer_is_lent_to_one_drive_alone() {
        let mut buffers = Buffers::new(Kernel::Naive);
        buffers.insert(ROOM, full_of(1, 1));
        drop(buffers.lend(ROOM));
        drop(buffers.lend(ROOM));
    }

    #[test]
    #[should_panic(expected = "came back with another size")]
    fn drive_that_brings_some_of_the_sectors_is_caught() {
        let mut buffers = Buffers::new(Kernel::Naive);
        buffers.insert(ROOM, full_of(1, 2));
        drop(buffers.lend(ROOM));
        buffers.give_back(ROOM, Data::Buf(full_of(1, 1)));
    }
}
