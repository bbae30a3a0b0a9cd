//! The bytes behind the names that an array gives: what its runtimes keep for its actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_block::{Buf, BufId, Combine, Data, Payload, Piece, Place, Segment};
use levelhead_erasure::{Choices, add_sum, sum};
use levelhead_units::{SECTOR_SIZE, Sectors};

use crate::GARBAGE;

/// How many terms of a sum are added in one pass: as many as a kernel can keep the places of.
const TERMS_AT_ONCE: usize = 16;

/// Buffers by name. A buffer is here, lent to one drive that fills it, or shared with drives that
/// only read it.
#[derive(Clone, Debug)]
pub struct Buffers {
    choices: Choices,
    table: BTreeMap<BufId, Held>,
    /// Sectors of the buffers that do not belong to a client.
    own: Sectors,
}

#[derive(Debug)]
enum Held {
    Here(Buf),
    /// The bytes are the piece's, whose first sector is the buffer's first.
    Shared(Piece),
    /// What a read brought to a client that gave no room for it.
    Delivered(Vec<Piece>),
    /// With a drive that fills this number of sectors.
    Lent(Sectors),
}

/// A copy shares no buffer: what drives read of the original is here in the copy.
impl Clone for Held {
    fn clone(&self) -> Self {
        match self {
            Self::Here(buf) => Self::Here(Buf::copy_of(buf.as_slice())),
            Self::Shared(piece) => Self::Here(Buf::copy_of(piece.bytes())),
            Self::Delivered(pieces) => Self::Delivered(pieces.clone()),
            Self::Lent(sectors) => Self::Lent(*sectors),
        }
    }
}

impl Held {
    fn sectors(&self) -> Sectors {
        match self {
            Self::Here(buf) => buf.sectors(),
            Self::Shared(piece) => Sectors::new(piece.sectors().into()),
            Self::Delivered(pieces) => Piece::count(pieces),
            Self::Lent(sectors) => *sectors,
        }
    }
}

impl Buffers {
    /// No buffers yet; computes as `choices` say.
    pub fn new(choices: impl Into<Choices>) -> Self {
        Self { choices: choices.into(), table: BTreeMap::new(), own: Sectors::ZERO }
    }

    /// How many buffers are held.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no buffer is held.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Sectors of all buffers that the state machine has asked for.
    pub const fn own_sectors(&self) -> Sectors {
        self.own
    }

    /// Takes a buffer under a new name.
    pub fn insert(&mut self, id: BufId, buf: Buf) {
        self.hold(id, Held::Here(buf));
    }

    /// Takes the bytes of a request under a new name: room for what will be read, or what is to be
    /// written, which is copied only if it lies in several pieces. Without either there is nothing under the
    /// name until something is [delivered](Buffers::deliver).
    pub fn insert_payload(&mut self, id: BufId, payload: Payload) {
        match payload {
            Payload::None => {}
            Payload::Room(buf) => self.hold(id, Held::Here(buf)),
            Payload::Pieces(pieces) => match <[Piece; 1]>::try_from(pieces) {
                Ok([piece]) => self.hold(id, Held::Shared(piece)),
                Err(pieces) => self.hold(id, Held::Here(Piece::gather(pieces))),
            },
        }
    }

    fn hold(&mut self, id: BufId, held: Held) {
        if let BufId::Own(_) = id {
            self.own += held.sectors();
        }
        let before = self.table.insert(id, held);
        assert!(before.is_none(), "{id:?} was there already");
    }

    fn unhold(&mut self, id: BufId) -> Held {
        let held = self.table.remove(&id).unwrap_or_else(|| panic!("{id:?} is not there"));
        if let BufId::Own(_) = id {
            self.own = self.own - held.sectors();
        }
        held
    }

    /// Gives a client these parts of buffers, one after the other: copied into its room if there is one,
    /// and else as they are, however long the buffers themselves stay here.
    pub fn deliver(&mut self, id: BufId, segments: &[Segment]) {
        let pieces = self.share(segments);
        let Some(held) = self.table.get_mut(&id) else {
            return self.hold(id, Held::Delivered(pieces));
        };
        let Held::Here(buf) = held else { panic!("{id:?} is not a room") };
        let mut room = buf.as_mut_slice();
        for piece in &pieces {
            let (place, rest) = room.split_at_mut(piece.bytes().len());
            place.copy_from_slice(piece.bytes());
            room = rest;
        }
        assert!(room.is_empty(), "{id:?} got less than it has room for");
    }

    /// Gives what a client has been given, if it has been.
    ///
    /// Panics if a drive is filling it.
    pub fn take_delivered(&mut self, id: BufId) -> Option<Data> {
        let held = self.table.get(&id)?;
        if !matches!(held, Held::Delivered(_)) {
            return Some(Data::Buf(self.remove(id)));
        }
        match self.unhold(id) {
            Held::Delivered(pieces) => Some(Data::Pieces(pieces)),
            Held::Here(_) | Held::Shared(_) | Held::Lent(_) => unreachable!("it was looked at"),
        }
    }

    /// Gives a buffer back. If a drive that was given up on still reads it, that one stays with the
    /// drive and an empty one of the same size comes back.
    ///
    /// Panics if a drive is filling it.
    pub fn remove(&mut self, id: BufId) -> Buf {
        match self.unhold(id) {
            Held::Here(buf) => buf,
            Held::Delivered(pieces) => Piece::gather(pieces),
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
        let held = self.unhold(id);
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

    /// Whether a buffer is there.
    pub fn has(&self, id: BufId) -> bool {
        self.table.contains_key(&id)
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
            Held::Delivered(_) => panic!("{id:?} is a client's"),
            Held::Lent(_) => panic!("{id:?} is with a drive that fills it"),
        }
    }

    /// All the bytes of a buffer that is not lent.
    pub fn bytes(&self, id: BufId) -> &[u8] {
        match &self.table[&id] {
            Held::Here(buf) => buf.as_slice(),
            Held::Shared(piece) => piece.bytes(),
            Held::Delivered(_) => panic!("{id:?} lies in pieces"),
            Held::Lent(_) => panic!("{id:?} is with a drive that fills it"),
        }
    }

    /// Puts sectors into a buffer.
    ///
    /// Panics if the buffer is with a drive, or `sectors` are not whole ones.
    pub fn inscribe(&mut self, into: Place, sectors: &[u8]) {
        let mut target = self.lend(into.buf);
        let count = sectors.len() / SECTOR_SIZE;
        target.part_mut(into.sector as usize, count).copy_from_slice(sectors);
        self.give_back(into.buf, Data::Buf(target));
    }

    /// Whether a sum of sectors is zero.
    pub fn is_zero_sum(&self, terms: &[(u8, Place)]) -> bool {
        let mut sum = [0; SECTOR_SIZE];
        self.sum_into(terms, &mut sum);
        sum.iter().all(|&byte| byte == 0)
    }

    /// Carries out a [`Combine`].
    pub fn combine(&mut self, combine: &Combine) {
        let Combine { into, sectors, from } = combine;
        let mut target = self.lend(into.buf);
        self.sum_into(from, target.part_mut(into.sector as usize, *sectors as usize));
        self.give_back(into.buf, Data::Buf(target));
    }

    /// Computes a sum of sectors: of up to [`TERMS_AT_ONCE`] in one pass over the bytes.
    fn sum_into(&self, terms: &[(u8, Place)], into: &mut [u8]) {
        if terms.is_empty() {
            into.fill(0);
        }
        for (n, terms) in terms.chunks(TERMS_AT_ONCE).enumerate() {
            let (mut coefficients, mut sources) = ([0; TERMS_AT_ONCE], [&[][..]; TERMS_AT_ONCE]);
            for (n, &(coefficient, place)) in terms.iter().enumerate() {
                let start = place.sector as usize * SECTOR_SIZE;
                coefficients[n] = coefficient;
                sources[n] = &self.bytes(place.buf)[start..start + into.len()];
            }
            let (coefficients, sources) = (&coefficients[..terms.len()], &sources[..terms.len()]);
            if n == 0 {
                sum(self.choices, coefficients, sources, into);
            } else {
                add_sum(self.choices, coefficients, sources, into);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::{Place, RequestId};

    use levelhead_erasure::Kernel;

    use super::*;

    const ROOM: BufId = BufId::Own(1);
    const CLIENT: BufId = BufId::Client(RequestId(1));

    fn full_of(value: u8, sectors: usize) -> Buf {
        Buf::copy_of(&vec![value; sectors * SECTOR_SIZE])
    }

    fn place(buf: BufId, sector: u32) -> Place {
        Place { buf, sector }
    }

    #[test]
    fn what_a_client_writes_is_not_copied_unless_it_lies_in_pieces() {
        let mut buffers = Buffers::new(Kernel::Naive);
        let whole = Piece::whole(Arc::new(full_of(3, 4)));
        let pieces = vec![whole.part(1, 2)];
        let address = pieces[0].bytes().as_ptr();
        buffers.insert_payload(CLIENT, Payload::Pieces(pieces));
        assert_eq!(buffers.bytes(CLIENT).as_ptr(), address);
        let shared = buffers.share(&[Segment { place: place(CLIENT, 1), sectors: 1 }]);
        assert_eq!(shared[0].bytes().as_ptr(), address.wrapping_add(SECTOR_SIZE));
        buffers.discard(CLIENT);
        let pieces = vec![whole.part(0, 1), whole.part(3, 1)];
        buffers.insert_payload(CLIENT, Payload::Pieces(pieces));
        assert!(buffers.bytes(CLIENT) == [3; 2 * SECTOR_SIZE]);
    }

    #[test]
    fn what_a_read_brought_is_copied_into_room_and_else_not_at_all() {
        let mut buffers = Buffers::new(Kernel::Naive);
        let mut own = full_of(1, 3);
        own.part_mut(2, 1).fill(2);
        let address = own.as_slice().as_ptr();
        buffers.insert(ROOM, own);
        let part = |sector| Segment { place: place(ROOM, sector), sectors: 1 };
        let (roomy, bare) = (CLIENT, BufId::Client(RequestId(2)));
        buffers.insert_payload(roomy, Payload::Room(full_of(9, 2)));
        buffers.insert_payload(bare, Payload::None);
        for client in [roomy, bare] {
            buffers.deliver(client, &[part(2), part(0)]);
        }
        assert_eq!(buffers.own_sectors(), Sectors::new(3));
        buffers.discard(ROOM);
        assert_eq!(buffers.own_sectors(), Sectors::ZERO);
        let data = buffers.take_delivered(bare).unwrap();
        let firsts: Vec<*const u8> = data.slices().map(<[u8]>::as_ptr).collect();
        assert_eq!(firsts, [address.wrapping_add(2 * SECTOR_SIZE), address], "a copy");
        let copy = buffers.take_delivered(roomy).unwrap();
        let bytes: Vec<u8> = copy.slices().flatten().copied().collect();
        assert!(data.holds(&bytes) && bytes[0] == 2);
        assert!(buffers.take_delivered(bare).is_none() && buffers.is_empty());
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
        buffers.insert_payload(CLIENT, Payload::Pieces(vec![piece]));
        let from = vec![(1, place(CLIENT, 0)), (1, place(CLIENT, 1))];
        buffers.combine(&Combine { into: place(ROOM, 1), sectors: 1, from: from[..1].to_vec() });
        buffers.combine(&Combine { into: place(ROOM, 2), sectors: 1, from });
        let values = [0, 1, 2].map(|at| buffers.bytes(ROOM)[at * SECTOR_SIZE]);
        assert_eq!(values, [0, 5, 0], "the sum of two equals is nothing");
        // Of any number of terms, times 1, 2, 3 ..: the first 16 are not nothing together.
        for count in TERMS_AT_ONCE - 1..2 * TERMS_AT_ONCE + 2 {
            let coefficients = (1u8..).take(count);
            let from: Vec<_> = coefficients.clone().map(|by| (by, place(CLIENT, 0))).collect();
            buffers.combine(&Combine { into: place(ROOM, 1), sectors: 1, from });
            let mut expected = [0];
            let all = coefficients.fold(0, |all, by| all ^ by);
            sum(Kernel::Naive, &[all], &[&[5]], &mut expected);
            assert_eq!(buffers.bytes(ROOM)[SECTOR_SIZE], expected[0], "{count} terms");
        }
        buffers.combine(&Combine { into: place(ROOM, 0), sectors: 2, from: Vec::new() });
        assert_eq!(buffers.bytes(ROOM)[SECTOR_SIZE], 0, "so is the sum of nothing");
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
