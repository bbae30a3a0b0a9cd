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
    /// With a drive that fills so many sectors.
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
