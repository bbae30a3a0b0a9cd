//! A command with its bytes, and what comes back.
//!
//! ```text
//!   write:  Pieces of shared buffers ----> service           nothing comes back
//!   read:   Room, or None -------------->  service  ----->   Buf (the room), or Pieces
//! ```
//!
//! # Invariants
//!
//! - R1. A write's pieces have as many sectors as its extent, and so has a read's room.
//! - R2. A service drops the pieces of a write before it answers.
//! - R3. A read that is [`Outcome::Done`] brings as many sectors as its extent, in order; those that the
//!   outcome names are filled with something that is no data. Of a read that ended otherwise nothing
//!   may be used, and perhaps nothing comes.

use std::sync::Arc;

use levelhead_units::{Extent, SECTOR_SIZE, Sectors};

use crate::{Buf, Command, Durability, Effort, Outcome, ZeroTail};

/// The most sectors of one buffer of zeroes.
const ZEROES_MAX: Sectors = Sectors::new(256);

/// One command and its bytes.
#[derive(Debug)]
pub struct Request {
    /// What to do.
    pub command: Command,
    /// The number of the request that this one is part of: an emulated drive fails the same sectors for the
    /// same origin. A service that has names of its own for requests does not look at it.
    pub origin: u64,
    /// The bytes that travel with the command.
    pub payload: Payload,
}

/// The bytes of a request.
#[derive(Debug)]
pub enum Payload {
    /// None; for a read, the service provides the memory.
    None,
    /// Room for what is read.
    Room(Buf),
    /// What is written, in order.
    Pieces(Vec<Piece>),
}

impl Request {
    /// `command` with `payload`.
    ///
    /// Panics unless the two belong together: R1.
    pub fn new(command: Command, payload: Payload) -> Self {
        let fits = match (&command, &payload) {
            (Command::Read { .. }, Payload::Room(buf)) => buf.sectors() == command.payload(),
            (Command::Write { .. }, Payload::Pieces(pieces)) => {
                Piece::count(pieces) == command.payload()
            }
            (Command::Write { .. }, Payload::None) => command.payload() == Sectors::ZERO,
            (_, Payload::None) => true,
            (_, Payload::Room(_) | Payload::Pieces(_)) => false,
        };
        assert!(fits, "R1: {command:?} with {payload:?}");
        Self { command, origin: 0, payload }
    }

    /// A command that carries no bytes, or a read into memory of the service's own.
    pub fn bare(command: Command) -> Self {
        Self::new(command, Payload::None)
    }

    /// A read into memory of the service's own.
    pub fn read(extent: Extent, effort: Effort) -> Self {
        Self::bare(Command::Read { extent, effort })
    }

    /// A read into `buf`, which has as many sectors as `extent`.
    pub fn read_into(extent: Extent, effort: Effort, buf: Buf) -> Self {
        Self::new(Command::Read { extent, effort }, Payload::Room(buf))
    }

    /// A write of all of `buf`, which has as many sectors as `extent`.
    pub fn write(extent: Extent, durability: Durability, buf: Buf) -> Self {
        Self::write_pieces(extent, durability, vec![Piece::whole(Arc::new(buf))])
    }

    /// A write of these pieces, which together have as many sectors as `extent`.
    pub fn write_pieces(extent: Extent, durability: Durability, pieces: Vec<Piece>) -> Self {
        let command = Command::Write { extent, durability, zero_tail: ZeroTail::None };
        Self::new(command, Payload::Pieces(pieces))
    }

    /// The same, if it is a write of sectors of which each ends in these zeroes.
    #[must_use]
    pub fn with_zero_tail(mut self, tail: ZeroTail) -> Self {
        if let Command::Write { zero_tail, .. } = &mut self.command {
            *zero_tail = tail;
        }
        self
    }

    /// The same, if it is a write whose bytes are here, with what its sectors are found to end in, whatever was said of
    /// them.
    #[must_use]
    pub fn with_tail_found(self) -> Self {
        let tails = match &self.payload {
            Payload::Pieces(pieces) => pieces.iter().map(|piece| ZeroTail::of(piece.bytes())),
            Payload::None | Payload::Room(_) => return self,
        };
        let least = tails.min().unwrap_or(ZeroTail::None);
        self.with_zero_tail(least)
    }

    /// The same with this origin.
    #[must_use]
    pub fn with_origin(self, origin: u64) -> Self {
        Self { origin, ..self }
    }

    /// The same, with zeroes that are to be written spelled out as a write.
    #[must_use]
    pub fn spelled_out(self) -> Self {
        let Command::WriteZeroes { extent, durability } = self.command else { return self };
        let command = Command::Write { extent, durability, zero_tail: ZeroTail::B512 };
        Self::new(command, Payload::Pieces(Piece::zeroes(extent.sectors))).with_origin(self.origin)
    }
}

/// How a request ended, and what it brought.
#[derive(Debug)]
pub struct Reply {
    /// How it ended.
    pub outcome: Outcome,
    /// What a read brought: R3.
    pub data: Data,
    /// The machine's reason for a refusal, as a text for an operator.
    pub reason: Option<String>,
}

impl Reply {
    /// A reply with this outcome, without data and without a reason.
    pub fn bare(outcome: Outcome) -> Self {
        Self { outcome, data: Data::None, reason: None }
    }

    /// The read of `data` was a complete success.
    pub fn good(data: Data) -> Self {
        Self { outcome: Outcome::GOOD, data, reason: None }
    }

    /// The device does not answer any more, because of `reason`.
    pub fn gone(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::bare(Outcome::Gone) }
    }
}

/// What a read brought, in order.
#[derive(Debug)]
pub enum Data {
    /// Nothing.
    None,
    /// One buffer: the room that came with the request, or the service's own.
    Buf(Buf),
    /// Parts of shared buffers.
    Pieces(Vec<Piece>),
}

impl Data {
    /// How many sectors there are.
    pub fn sectors(&self) -> Sectors {
        match self {
            Self::None => Sectors::ZERO,
            Self::Buf(buf) => buf.sectors(),
            Self::Pieces(pieces) => Piece::count(pieces),
        }
    }

    /// The bytes, in order. No slice is empty, and each is whole sectors.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let (buf, pieces): (Option<&Buf>, &[Piece]) = match self {
            Self::None => (None, &[]),
            Self::Buf(buf) => (Some(buf), &[]),
            Self::Pieces(pieces) => (None, pieces),
        };
        let slices = buf.map(Buf::as_slice).into_iter().chain(pieces.iter().map(Piece::bytes));
        slices.filter(|slice| !slice.is_empty())
    }

    /// Whether these are the bytes.
    pub fn holds(&self, mut bytes: &[u8]) -> bool {
        for slice in self.slices() {
            let Some(rest) = bytes.strip_prefix(slice) else { return false };
            bytes = rest;
        }
        bytes.is_empty()
    }

    /// All of it as one buffer, which is empty if there is nothing. Copies unless it is one buffer
    /// already, or one whole buffer that is not shared any more.
    pub fn into_buf(self) -> Buf {
        match self {
            Self::None => Buf::empty(),
            Self::Buf(buf) => buf,
            Self::Pieces(pieces) => Piece::gather(pieces),
        }
    }
}

/// Some sectors in a row of a shared buffer.
#[derive(Clone, Debug)]
pub struct Piece {
    buf: Arc<Buf>,
    first: u32,
    sectors: u32,
}

impl Piece {
    /// All of `buf`.
    pub fn whole(buf: Arc<Buf>) -> Self {
        let sectors =
            u32::try_from(buf.sectors().get()).expect("a buffer has less than 2^32 sectors");
        Self { buf, first: 0, sectors }
    }

    /// As many pieces of zeroes as it takes for `sectors`.
    pub fn zeroes(sectors: Sectors) -> Vec<Self> {
        let zeroes = Self::whole(Arc::new(Buf::zeroed(sectors.min(ZEROES_MAX))));
        let (most, total) = (ZEROES_MAX.get(), sectors.get());
        let part = |first| zeroes.part(0, most.min(total - first) as u32);
        (0..total).step_by(most as usize).map(part).collect()
    }

    /// How many sectors it has.
    pub fn sectors(&self) -> u32 {
        self.sectors
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.buf.part(self.first as usize, self.sectors as usize)
    }

    /// The `sectors` sectors from its sector `first` on.
    ///
    /// Panics unless it has them.
    #[must_use]
    pub fn part(&self, first: u32, sectors: u32) -> Self {
        assert!(first + sectors <= self.sectors, "{sectors} sectors from {first} on of {self:?}");
        Self { buf: Arc::clone(&self.buf), first: self.first + first, sectors }
    }

    /// The same bytes for themselves, in no more memory than they take, if they are a part of a longer buffer or have room beside them.
    #[must_use]
    pub fn packed(&self) -> Self {
        match self.buf.is_packed() && self.buf.sectors() == Sectors::new(self.sectors.into()) {
            true => self.clone(),
            false => Self::whole(Arc::new(Buf::packed(self.bytes()))),
        }
    }

    /// The same bytes where a drive can transfer them directly: those that lie elsewhere are copied, neighbours together.
    pub fn aligned(pieces: Vec<Self>) -> Vec<Self> {
        if pieces.iter().all(|piece| piece.buf.is_aligned()) {
            return pieces;
        }
        let mut aligned: Vec<Self> = Vec::new();
        for run in pieces.chunk_by(|one, next| one.buf.is_aligned() == next.buf.is_aligned()) {
            if run[0].buf.is_aligned() {
                aligned.extend_from_slice(run);
                continue;
            }
            aligned.push(Self::whole(Arc::new(Self::copied(run))));
        }
        aligned
    }

    /// Puts a piece behind others; it becomes part of the last one if it continues that.
    pub fn append(pieces: &mut Vec<Self>, piece: Self) {
        match pieces.last_mut() {
            Some(last)
                if Arc::ptr_eq(&last.buf, &piece.buf)
                    && last.first + last.sectors == piece.first =>
            {
                last.sectors += piece.sectors;
            }
            Some(_) | None => pieces.push(piece),
        }
    }

    /// How many sectors these have together.
    pub fn count(pieces: &[Self]) -> Sectors {
        Sectors::new(pieces.iter().map(|piece| u64::from(piece.sectors)).sum())
    }

    /// The part of `pieces`, one after the other, from sector `first` on.
    ///
    /// Panics unless they have `sectors` from there on.
    pub fn slice(pieces: &[Self], first: u64, sectors: Sectors) -> Vec<Self> {
        let (mut skip, mut left) = (first, sectors.get());
        let mut slice = Vec::new();
        for piece in pieces {
            let has = u64::from(piece.sectors);
            let start = skip.min(has);
            let count = left.min(has - start);
            if count > 0 {
                slice.push(piece.part(start as u32, count as u32));
            }
            (skip, left) = (skip - start, left - count);
        }
        assert_eq!(left, 0, "{sectors:?} from {first} on are past the end of the pieces");
        slice
    }

    /// All of `pieces` in one buffer. Copies unless it is one whole buffer that is not shared any more.
    pub fn gather(mut pieces: Vec<Self>) -> Buf {
        if let [piece] = pieces.as_mut_slice()
            && piece.buf.sectors() == Sectors::new(piece.sectors.into())
            && Arc::get_mut(&mut piece.buf).is_some()
        {
            let whole = pieces.remove(0).into_unshared();
            return whole.expect("it is all of a buffer that nothing else holds");
        }
        Self::copied(&pieces)
    }

    fn copied(pieces: &[Self]) -> Buf {
        let mut buf = Buf::zeroed(Self::count(pieces));
        let mut rest = buf.as_mut_slice();
        for piece in pieces {
            let (place, after) = rest.split_at_mut(piece.bytes().len());
            place.copy_from_slice(piece.bytes());
            rest = after;
        }
        buf
    }

    /// The whole buffer, if this is all of it and it is not shared any more.
    pub fn into_unshared(self) -> Option<Buf> {
        let is_whole = self.buf.sectors() == Sectors::new(self.sectors.into());
        if is_whole { Arc::into_inner(self.buf) } else { None }
    }

    /// The sectors of `pieces`, one after the other.
    pub fn each_sector(pieces: &[Self]) -> impl Iterator<Item = &[u8]> {
        pieces.iter().flat_map(|piece| piece.bytes().chunks_exact(SECTOR_SIZE))
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Lba;

    use super::*;

    /// A buffer whose sectors are full of their numbers.
    fn numbered(sectors: u64) -> Buf {
        let mut buf = Buf::zeroed(Sectors::new(sectors));
        for (at, sector) in buf.as_mut_slice().chunks_exact_mut(SECTOR_SIZE).enumerate() {
            sector.fill(at as u8);
        }
        buf
    }

    #[test]
    fn piece_that_continues_the_last_one_becomes_a_part_of_it() {
        let (one, other) =
            (Piece::whole(Arc::new(numbered(9))), Piece::whole(Arc::new(numbered(9))));
        let mut pieces = Vec::new();
        for piece in
            [one.part(2, 1), one.part(3, 2), one.part(6, 1), other.part(7, 1), other.part(8, 1)]
        {
            Piece::append(&mut pieces, piece);
        }
        assert_eq!((pieces.len(), numbers(&pieces)), (3, vec![2, 3, 4, 6, 7, 8]));
    }

    #[test]
    fn pieces_that_are_not_aligned_are_copied_to_where_they_are() {
        let beside = |byte| Piece::whole(Arc::new(Buf::misaligned(byte)));
        let whole = Piece::whole(Arc::new(numbered(9)));
        let pieces = vec![whole.part(2, 2), beside(7), beside(8), whole.part(5, 1)];
        let aligned = Piece::aligned(pieces);
        assert!(aligned.iter().all(|piece| piece.buf.is_aligned()));
        assert_eq!((aligned.len(), numbers(&aligned)), (3, vec![2, 3, 7, 8, 5]));
        let (kept, same) = (whole.part(4, 1).packed(), beside(6).packed());
        assert_eq!((numbers(std::slice::from_ref(&kept)), kept.buf.is_packed()), (vec![4], true));
        assert!(Arc::ptr_eq(&same.buf, &same.packed().buf));
    }

    fn numbers(pieces: &[Piece]) -> Vec<u8> {
        Piece::each_sector(pieces).map(|sector| sector[0]).collect()
    }

    #[test]
    fn pieces_are_cut_and_gathered_in_order() {
        let whole = Piece::whole(Arc::new(numbered(10)));
        let pieces = [whole.part(7, 3), whole.part(0, 2), whole.part(4, 1)];
        assert_eq!(numbers(&pieces), [7, 8, 9, 0, 1, 4]);
        for first in 0..6 {
            for sectors in 0..=6 - first {
                let slice = Piece::slice(&pieces, first as u64, Sectors::new(sectors as u64));
                assert_eq!(numbers(&slice), [7, 8, 9, 0, 1, 4][first..first + sectors]);
                let buf = Piece::gather(slice);
                assert_eq!(buf.sectors(), Sectors::new(sectors as u64));
            }
        }
        let data = Data::Pieces(pieces.to_vec());
        assert_eq!(data.slices().map(<[u8]>::len).sum::<usize>(), 6 * SECTOR_SIZE);
        let bytes = Piece::gather(pieces.to_vec());
        assert!(data.holds(bytes.as_slice()));
        assert!(!data.holds(bytes.part(0, 5)), "too few");
        assert!(!data.holds(whole.part(0, 6).bytes()), "others");
        assert!(data.into_buf().as_slice() == bytes.as_slice());
    }

    #[test]
    fn whole_buffer_that_is_not_shared_is_handed_over_and_not_copied() {
        let buf = numbered(3);
        let place = buf.as_slice().as_ptr();
        let data = Data::Pieces(vec![Piece::whole(Arc::new(buf))]);
        assert_eq!(data.slices().next().unwrap().as_ptr(), place);
        let buf = data.into_buf();
        assert_eq!(buf.as_slice().as_ptr(), place);
        let piece = Piece::whole(Arc::new(buf));
        let kept = piece.clone();
        assert_ne!(Piece::gather(vec![piece]).as_slice().as_ptr(), place, "it is shared");
        assert_ne!(Piece::gather(vec![kept.part(1, 2)]).as_slice().as_ptr(), place, "it is a part");
    }

    #[test]
    fn zeroes_are_spelled_out_as_a_write_of_the_same_place() {
        let extent = Extent::new(Lba::new(9), Sectors::new(600));
        let command = Command::WriteZeroes { extent, durability: Durability::Durable };
        let Request { command, origin, payload } =
            Request::bare(command).with_origin(7).spelled_out();
        let Payload::Pieces(pieces) = payload else { panic!("a write has pieces") };
        assert_eq!((command.extent(), origin), (Some(extent), 7));
        assert_eq!(Piece::count(&pieces), extent.sectors);
        assert!(pieces.iter().all(|piece| piece.bytes().iter().all(|&byte| byte == 0)));
        let told = matches!(command, Command::Write { zero_tail: ZeroTail::B512, .. });
        assert!(told, "{command:?}");
        let read = Request::read(extent, Effort::Fast).spelled_out();
        assert_eq!(read.command, Command::Read { extent, effort: Effort::Fast });
    }

    #[test]
    #[should_panic(expected = "R1")]
    fn room_of_another_size_than_the_extent_is_refused() {
        let extent = Extent::new(Lba::ZERO, Sectors::new(2));
        Request::read_into(extent, Effort::Full, Buf::zeroed(Sectors::new(1)));
    }
}
