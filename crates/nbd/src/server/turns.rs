//! Zeroings and trims of much at once, in pieces, and whose piece is next.
//!
//! ```text
//!   connection 1   [ zeroes ][ zeroes ][ trim ] --+
//!   connection 2   [ trim ] ----------------------+--> one piece each, in turn --> locks, service
//!   connection 3   [ zeroes ][ zeroes ] ----------+      PIECES_MAX at a time
//! ```
//!
//! - TU1. At most [`PIECES_MAX`] pieces are under way, each of at most [`PIECE`] bytes; a piece alone holds its
//!   sectors locked. So whatever else changes one of these sectors waits for few of them.
//! - TU2. Connections take turns, piece by piece.
//! - TU3. No piece begins for a client that has gone, or for a server that stops: the request ends.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use levelhead_block::Durability;
use levelhead_units::SECTOR_SIZE;

use super::change::Change;
use super::failure::{Failure, Finish};
use crate::codec::{Errno, PAYLOAD_MAX};
use crate::socket::Socket;

/// Pieces under way at a time, for all connections of a device. A change of the same sectors waits for each of them,
/// and meanwhile for what the device has begun besides: for no more than the square of it, and as many in the device.
const PIECES_MAX: usize = 2;

/// The most bytes of a piece. They end at multiples of it, so a piece has whole sectors but at the ends.
const PIECE: u64 = PAYLOAD_MAX as u64;

/// Requests of more bytes take turns, and shorter ones are changes like any other: 1 MiB.
const SHORT_MAX: u64 = 1 << 20;

/// What is done to the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Zero,
    Trim,
}

/// A request that changes bytes without bringing any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bare {
    pub(super) deed: Deed,
    pub(super) bytes: Range<u64>,
    pub(super) durability: Durability,
}

impl Bare {
    /// Whether it is one that takes turns.
    pub(super) fn is_long(&self) -> bool {
        self.bytes.end - self.bytes.start > SHORT_MAX
    }

    /// Bytes that it holds in memory: the sectors that are not zeroed as a whole.
    pub(super) fn bytes_held(&self) -> usize {
        let is_inside = |at: u64| !at.is_multiple_of(SECTOR_SIZE as u64);
        let edges =
            usize::from(is_inside(self.bytes.start)) + usize::from(is_inside(self.bytes.end));
        match self.deed {
            Deed::Zero => edges * SECTOR_SIZE,
            Deed::Trim => 0,
        }
    }

    /// All of it, as one change.
    pub(super) fn into_change(self) -> Change {
        let Self { deed, bytes, durability } = self;
        match deed {
            Deed::Zero => Change::write_zeroes(bytes, durability),
            Deed::Trim => Change::trim(bytes, durability),
        }
    }

    /// Its next piece, which is not in it any more.
    fn split(&mut self) -> Option<Change> {
        let Range { start, end } = self.bytes;
        if start == end {
            return None;
        }
        let cut = (start / PIECE + 1).saturating_mul(PIECE).min(end);
        self.bytes.start = cut;
        // What a trim before the last has made is made durable with that.
        let durability = match self.deed {
            Deed::Trim if cut < end => Durability::Cached,
            Deed::Trim | Deed::Zero => self.durability,
        };
        Some(Self { bytes: start..cut, durability, ..*self }.into_change())
    }
}

/// Whose a long request is.
#[derive(Clone)]
pub(super) struct Owner {
    /// Its connection's number.
    pub(super) connection: u64,
    pub(super) socket: Arc<Socket>,
}

/// A long request under way.
pub(super) struct Long {
    owner: Owner,
    left: Bare,
    finish: Finish,
}

/// How a long request goes on.
pub(super) enum Step {
    /// Run this piece, then hand the request back with how that ended.
    Piece(Change, Long),
    /// It has ended.
    End(Finish, Result<(), Failure>),
}

impl Long {
    pub(super) fn new(owner: Owner, bare: Bare, finish: Finish) -> Self {
        Self { owner, left: bare, finish }
    }

    /// Its next step, after a piece that ended like this.
    fn next(mut self, last: Result<(), Failure>) -> Step {
        if last.is_err() {
            return Step::End(self.finish, last);
        }
        if self.left.bytes.is_empty() {
            return Step::End(self.finish, Ok(()));
        }
        if self.owner.socket.has_hung_up() {
            let message = "the client has gone, or the server stops";
            return Step::End(self.finish, Err(Failure::new(Errno::ShuttingDown, message)));
        }
        let piece = self.left.split().expect("it has bytes left");
        Step::Piece(piece, self)
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Turns {
    under_way: usize,
    /// The connections with requests that wait, in the order of their turns.
    waiting: VecDeque<(u64, VecDeque<Long>)>,
}

impl Turns {
    /// A request has come.
    pub(super) fn add(&mut self, long: Long) {
        let connection = long.owner.connection;
        match self.waiting.iter_mut().find(|(other, _)| *other == connection) {
            Some((_, its)) => its.push_back(long),
            None => self.waiting.push_back((connection, VecDeque::from([long]))),
        }
    }

    /// A piece of a request has ended. What is left of it is the next of its connection.
    pub(super) fn handle_piece(&mut self, long: Long, result: Result<(), Failure>) -> Option<Step> {
        self.under_way -= 1;
        if result.is_err() || long.left.bytes.is_empty() {
            return Some(long.next(result));
        }
        let connection = long.owner.connection;
        match self.waiting.iter_mut().find(|(other, _)| *other == connection) {
            Some((_, its)) => its.push_front(long),
            None => self.waiting.push_back((connection, VecDeque::from([long]))),
        }
        None
    }

    /// What to do next, if there is anything to be done now.
    pub(super) fn poll(&mut self) -> Option<Step> {
        if self.under_way == PIECES_MAX {
            return None;
        }
        let (connection, mut its) = self.waiting.pop_front()?;
        let long = its.pop_front().expect("a connection waits with a request");
        if !its.is_empty() {
            self.waiting.push_back((connection, its));
        }
        let step = long.next(Ok(()));
        if let Step::Piece(..) = &step {
            self.under_way += 1;
        }
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Mutex;

    use levelhead_units::Bytes;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn zeroes(bytes: Range<u64>) -> Bare {
        Bare { deed: Deed::Zero, bytes, durability: Durability::Cached }
    }

    fn owner(connection: u64) -> (Owner, UnixStream) {
        let (server, client) = UnixStream::pair().unwrap();
        (Owner { connection, socket: Arc::new(Socket::Unix(server)) }, client)
    }

    /// A request that notes how it ended.
    fn long(owner: &Owner, bare: Bare, ends: &Arc<Mutex<Vec<(u64, bool)>>>) -> Long {
        let (ends, connection) = (Arc::clone(ends), owner.connection);
        let finish = move |result: Result<(), Failure>| {
            ends.lock().unwrap().push((connection, result.is_ok()));
        };
        Long::new(owner.clone(), bare, Box::new(finish))
    }

    #[test]
    fn pieces_end_at_multiples_and_cover_all_bytes_once() {
        for deed in [Deed::Zero, Deed::Trim] {
            let durability = Durability::Durable;
            let mut bare = Bare { deed, bytes: 5..70 * MIB + 7, durability };
            let extents: Vec<_> =
                std::iter::from_fn(|| bare.split()).map(|it| it.extent()).collect();
            let bytes = extents.iter().map(|extent| extent.sectors.bytes());
            // A trim is of whole sectors.
            let beside = if deed == Deed::Zero { 4096 } else { 0 };
            let first = if deed == Deed::Zero { 32 * MIB } else { 32 * MIB - 4096 };
            let expected = [first, 32 * MIB, 6 * MIB + beside].map(Bytes::new);
            assert!(bytes.eq(expected), "{extents:?}");
        }
    }

    #[test]
    fn connections_take_turns_and_no_more_than_the_bound_are_under_way() {
        let ends = Arc::default();
        let [(greedy, _one), (modest, _other)] = [1, 2].map(owner);
        let mut turns = Turns::default();
        for _ in 0..40 {
            turns.add(long(&greedy, zeroes(0..2048 * MIB), &ends));
        }
        turns.add(long(&modest, zeroes(0..64 * MIB), &ends));
        let mut pieces = VecDeque::new();
        let mut order = Vec::new();
        while ends.lock().unwrap().is_empty() {
            while let Some(step) = turns.poll() {
                let Step::Piece(_, long) = step else { panic!("it has pieces left") };
                order.push(long.owner.connection);
                pieces.push_back(long);
            }
            assert_eq!(pieces.len(), PIECES_MAX, "TU1");
            let ended = turns.handle_piece(pieces.pop_front().unwrap(), Ok(()));
            if let Some(Step::End(finish, result)) = ended {
                finish(result);
            }
        }
        // At most as many others as are under way come between two pieces of one connection.
        assert_eq!(order, [1, 2, 1, 1, 2, 1], "TU2");
        assert_eq!(*ends.lock().unwrap(), [(2, true)]);
    }

    #[test]
    fn no_piece_begins_for_a_client_that_has_gone() {
        let ends = Arc::default();
        let (owner, client) = owner(1);
        let mut turns = Turns::default();
        for _ in 0..40 {
            turns.add(long(&owner, zeroes(0..2048 * MIB), &ends));
        }
        let Some(Step::Piece(_, first)) = turns.poll() else { panic!("it is there") };
        drop(client);
        assert!(turns.handle_piece(first, Ok(())).is_none());
        while let Some(step) = turns.poll() {
            let Step::End(finish, result) = step else { panic!("TU3") };
            finish(result);
        }
        assert_eq!(*ends.lock().unwrap(), [(1, false); 40]);
    }
}
