//! The bytes of one modelled drive: its medium, and what is in its memory only.
//!
//! ```text
//!   write into memory ---> [ unwritten ] --destage, flush--> storage
//!   write, durable or through ----|------------------------> storage
//!   read <------ overlay ---------'                            |
//!     '--------------------------------------------------------'
//! ```
//!
//! # Invariants
//!
//! - P1. Sectors that a completion calls missing keep their old bytes, in memory and on the medium.
//! - P2. Sectors that an outcome names as not read hold [`GARBAGE`](crate::GARBAGE) in what is handed on.

use levelhead_block::{
    Buf, Command, Data, Durability, Outcome, Payload, Piece, Reply, Request, SectorSet,
};
use levelhead_units::{Extent, Lba};

use crate::{Storage, Unwritten, spoil};

/// See the module.
#[derive(Debug)]
pub struct Platter<S> {
    storage: S,
    caching: Caching,
    unwritten: Unwritten,
}

/// What becomes of a cached write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// It goes to the storage at once.
    WriteThrough,
    /// It goes into memory, from where [`Platter::destage`] takes it. Right for any drive: of one that
    /// has no memory the model says at once that everything is on the medium.
    WriteBack,
}

/// How the model says that a command has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// As the client will hear it.
    pub outcome: Outcome,
    /// Sectors of a write that never reached the medium, of which no client is told.
    pub missing: SectorSet,
}

/// A request whose bytes could not be moved, because the storage under the model failed.
#[derive(Debug)]
pub struct Failed<E> {
    /// The request.
    pub request: Request,
    /// Why.
    pub error: E,
}

impl<S: Storage> Platter<S> {
    /// Over `storage`, with nothing in memory.
    pub const fn new(storage: S, caching: Caching) -> Self {
        Self { storage, caching, unwritten: Unwritten::new() }
    }

    /// What is on the medium, to look at it or to change it behind the drive's back.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// How many sectors are in memory only.
    pub fn unwritten_len(&self) -> usize {
        self.unwritten.len()
    }

    /// Ends a request as the model says: moves its bytes, if the drive has carried it out. A trim
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// The storage's, with the request as it came, except that a write of zeroes has become a write.
    pub fn end(&mut self, request: Request, ended: Ended) -> Result<Reply, Failed<S::Error>> {
        let Outcome::Done { unknown, damaged } = &ended.outcome else {
            return Ok(Reply::bare(ended.outcome));
        };
        let Request { command, origin, payload } = request.spelled_out();
        let failed =
            |payload, error| Failed { request: Request { command, origin, payload }, error };
        let data = match (command, payload) {
            (Command::Read { extent, .. }, payload) => {
                let mut buf = match payload {
                    Payload::Room(buf) => buf,
                    Payload::None | Payload::Pieces(_) => Buf::zeroed(extent.sectors),
                };
                if let Err(error) = self.read(extent, buf.as_mut_slice()) {
                    return Err(failed(Payload::Room(buf), error));
                }
                spoil(&mut buf, unknown);
                spoil(&mut buf, damaged);
                Data::Buf(buf)
            }
            (Command::Write { extent, durability, .. }, Payload::Pieces(pieces)) => {
                if let Err(error) = self.write(extent, &pieces, durability, &ended.missing) {
                    return Err(failed(Payload::Pieces(pieces), error));
                }
                Data::None
            }
            (Command::Flush, payload) => {
                if let Err(error) = self.flush() {
                    return Err(failed(payload, error));
                }
                Data::None
            }
            (Command::Write { .. } | Command::WriteZeroes { .. } | Command::Trim { .. }, _) => {
                Data::None
            }
        };
        Ok(Reply { outcome: ended.outcome, data, reason: None })
    }

    /// Fills `bytes` with what a read of `extent` gives.
    ///
    /// # Errors
    ///
    /// The storage's.
    pub fn read(&mut self, extent: Extent, bytes: &mut [u8]) -> Result<(), S::Error> {
        self.storage.read(extent.lba, bytes)?;
        self.unwritten.overlay(extent, bytes);
        Ok(())
    }

    fn write(
        &mut self,
        extent: Extent,
        pieces: &[Piece],
        durability: Durability,
        missing: &SectorSet,
    ) -> Result<(), S::Error> {
        let sectors = (0..).zip(extent.iter().zip(Piece::each_sector(pieces)));
        let mut reached =
            sectors.filter(|(at, _)| !missing.contains(*at)).map(|(_, sector)| sector);
        match (durability, self.caching) {
            (Durability::Cached, Caching::WriteBack) => {
                reached.for_each(|(lba, bytes)| self.unwritten.put(lba, bytes));
                Ok(())
            }
            (Durability::Durable, _) | (_, Caching::WriteThrough) if missing.is_empty() => {
                reached.for_each(|(lba, _)| self.unwritten.forget(lba));
                self.storage.write(extent.lba, pieces, durability)
            }
            (Durability::Durable, _) | (_, Caching::WriteThrough) => {
                reached.try_for_each(|(lba, bytes)| {
                    self.unwritten.forget(lba);
                    self.storage.write_sector(lba, bytes)
                })
            }
        }
    }

    /// A flush has ended: all that was taken before it began is on the medium, and commands end here in
    /// the order in which they were served.
    ///
    /// # Errors
    ///
    /// The storage's; what it did not take goes on waiting.
    pub fn flush(&mut self) -> Result<(), S::Error> {
        self.destage(&[])
    }

    /// Brings to the medium everything but `unwritten`, which is what the drive says it has not written.
    ///
    /// # Errors
    ///
    /// The storage's; what it did not take goes on waiting.
    pub fn destage(&mut self, unwritten: &[Extent]) -> Result<(), S::Error> {
        let Self { storage, unwritten: waiting, .. } = self;
        waiting.destage(unwritten, |lba: Lba, bytes: &[u8]| storage.write_sector(lba, bytes))
    }

    /// The power fails, or the drive: what was in memory is gone.
    pub fn lose_power(&mut self) {
        self.unwritten.lose();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use levelhead_block::{Effort, Memory};
    use levelhead_units::{SECTOR_SIZE, Sectors};

    use super::*;
    use crate::GARBAGE;

    const ALL: Extent = Extent::new(Lba::ZERO, Sectors::new(8));

    fn platter(caching: Caching) -> Platter<Memory> {
        Platter::new(Memory::new(ALL.sectors), caching)
    }

    fn set(offsets: &[u32]) -> SectorSet {
        offsets.iter().copied().collect()
    }

    fn good(missing: &[u32]) -> Ended {
        Ended { outcome: Outcome::GOOD, missing: set(missing) }
    }

    /// Writes sectors 2 to 5, in two pieces.
    fn write(
        platter: &mut Platter<Memory>,
        value: u8,
        durability: Durability,
        missing: &[u32],
    ) -> Outcome {
        let extent = Extent::new(Lba::new(2), Sectors::new(4));
        let whole = Piece::whole(Arc::new(Buf::copy_of(&[value; 4 * SECTOR_SIZE])));
        let pieces = vec![whole.part(0, 1), whole.part(1, 3)];
        let request = Request::write_pieces(extent, durability, pieces);
        let Ok(reply) = platter.end(request, good(missing));
        reply.outcome
    }

    fn values(bytes: &[u8]) -> Vec<u8> {
        bytes.chunks_exact(SECTOR_SIZE).map(|sector| sector[0]).collect()
    }

    /// What a read gives, and what is on the medium.
    fn look(platter: &mut Platter<Memory>) -> [Vec<u8>; 2] {
        let Ok(reply) = platter.end(Request::read(ALL, Effort::Full), good(&[]));
        let seen = reply.data.into_buf();
        [values(seen.as_slice()), values(platter.storage_mut().bytes(ALL))]
    }

    #[test]
    fn missing_sectors_keep_their_old_bytes_however_a_write_is_stored() {
        for caching in [Caching::WriteThrough, Caching::WriteBack] {
            for durability in [Durability::Cached, Durability::Durable] {
                let mut platter = platter(caching);
                assert!(write(&mut platter, 1, durability, &[]).is_good());
                assert!(write(&mut platter, 2, durability, &[1, 3]).is_good());
                let [seen, medium] = look(&mut platter);
                let expected = [0, 0, 2, 1, 2, 1, 0, 0];
                assert_eq!(seen, expected, "{caching:?}, {durability:?}");
                let waits = caching == Caching::WriteBack && durability == Durability::Cached;
                assert_eq!(medium, if waits { [0; 8] } else { expected });
                assert_eq!(platter.unwritten_len(), if waits { 4 } else { 0 });
                let Ok(()) = platter.flush();
                assert_eq!(look(&mut platter), [expected, expected].map(Vec::from));
            }
        }
    }

    #[test]
    fn power_loss_takes_what_was_neither_destaged_nor_written_durably() {
        let mut platter = platter(Caching::WriteBack);
        write(&mut platter, 1, Durability::Cached, &[]);
        write(&mut platter, 2, Durability::Durable, &[0, 1]);
        let waiting = Extent::new(Lba::new(2), Sectors::new(1));
        let Ok(()) = platter.destage(&[waiting]);
        platter.lose_power();
        let left = vec![0, 0, 0, 1, 2, 2, 0, 0];
        assert_eq!(look(&mut platter), [left.clone(), left]);
    }

    #[test]
    fn sectors_that_were_not_read_cannot_be_used() {
        let mut platter = platter(Caching::WriteThrough);
        let outcome = Outcome::Done { unknown: set(&[1]), damaged: set(&[6]) };
        let ended = Ended { outcome: outcome.clone(), missing: SectorSet::EMPTY };
        let room = Request::read_into(ALL, Effort::Full, Buf::zeroed(ALL.sectors));
        let Ok(reply) = platter.end(room, ended);
        assert_eq!(reply.outcome, outcome);
        let seen = values(reply.data.into_buf().as_slice());
        assert_eq!(seen, [0, GARBAGE, 0, 0, 0, 0, GARBAGE, 0], "P2");
    }

    #[test]
    fn command_that_was_not_carried_out_moves_nothing() {
        let mut platter = platter(Caching::WriteThrough);
        let ended = Ended { outcome: Outcome::Gone, missing: SectorSet::EMPTY };
        let write = Request::write(ALL, Durability::Durable, Buf::copy_of(&[1; 8 * SECTOR_SIZE]));
        let Ok(reply) = platter.end(write, ended.clone());
        assert_eq!(reply.outcome, Outcome::Gone);
        let Ok(reply) = platter.end(Request::read(ALL, Effort::Fast), ended);
        assert_eq!(reply.data.sectors(), Sectors::ZERO);
        assert_eq!(look(&mut platter), [vec![0; 8], vec![0; 8]]);
    }

    #[test]
    fn zeroes_are_stored_and_a_trim_changes_nothing() {
        let mut platter = platter(Caching::WriteBack);
        write(&mut platter, 1, Durability::Cached, &[]);
        let extent = Extent::new(Lba::new(3), Sectors::new(2));
        let zeroes = Command::WriteZeroes { extent, durability: Durability::Durable };
        for command in [zeroes, Command::Trim { extent: ALL }, Command::Flush] {
            let Ok(reply) = platter.end(Request::bare(command), good(&[]));
            assert!(reply.outcome.is_good());
        }
        let left = vec![0, 0, 1, 0, 0, 1, 0, 0];
        assert_eq!(look(&mut platter), [left.clone(), left]);
    }
}
