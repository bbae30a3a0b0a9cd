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
//! - P1. What a completion says was silently wrong ([`Silent`]) is a state of the medium: of a cached write it
//!   shows when the write has left the memory, be it for the medium or for nowhere, and never before. What
//!   shows then is what the write before it had left, U1 of [`Unwritten`].
//! - P2. Sectors that an outcome names as not read hold [`GARBAGE`](crate::GARBAGE) in what is handed on.
//! - P3. While the drive remembers a write that it is to read back, reads give it, whatever the medium has; reads of
//!   the medium do not.

use levelhead_block::{
    Aftermath, Buf, Command, Data, Durability, Effort, Outcome, Payload, Piece, Reply, Request,
    Silent, What,
};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use crate::held::Held;
use crate::{Fate, Storage, Unwritten, spoil};

/// See the module.
#[derive(Debug)]
pub struct Platter<S> {
    storage: S,
    caching: Caching,
    unwritten: Unwritten,
    held: Held,
}

/// What becomes of a cached write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// It goes to the storage at once.
    WriteThrough,
    /// It goes into memory, from where [`Platter::destage`] takes it.
    WriteBack,
}

impl Caching {
    /// That of a drive in whose memory alone writes may be, or not.
    pub const fn of(writes_back: bool) -> Self {
        if writes_back { Self::WriteBack } else { Self::WriteThrough }
    }
}

/// How the model says that a command has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// As the client will hear it.
    pub outcome: Outcome,
    /// What it did besides, of which no client is told.
    pub silent: Silent,
    /// The name of the command inside the drive, if it is a write that the drive reads back.
    pub read_back: Option<u64>,
    /// What has become of writes within the command.
    pub after: Vec<Aftermath>,
}

impl Ended {
    /// An end on a drive that reads nothing back.
    pub fn new(outcome: Outcome, silent: Silent) -> Self {
        Self { outcome, silent, read_back: None, after: Vec::new() }
    }
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
        Self { storage, caching, unwritten: Unwritten::new(), held: Held::new() }
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
        let (own, earlier): (Vec<Aftermath>, Vec<Aftermath>) =
            ended.after.iter().cloned().partition(|one| Some(one.id) == ended.read_back);
        for one in earlier {
            if let Err(error) = self.carry_out(one) {
                return Err(failed(payload, error));
            }
        }
        let data = match (command, payload) {
            (Command::Read { extent, effort }, payload) => {
                if effort == Effort::Medium
                    && let Err(error) = self.settle(extent)
                {
                    return Err(failed(payload, error));
                }
                let mut buf = match payload {
                    Payload::Room(buf) => buf,
                    Payload::None | Payload::Pieces(_) => Buf::zeroed(extent.sectors),
                };
                if let Err(error) = self.give(extent, buf.as_mut_slice(), &ended.silent) {
                    return Err(failed(Payload::Room(buf), error));
                }
                if effort != Effort::Medium {
                    self.overlay(extent, buf.as_mut_slice());
                }
                spoil(&mut buf, unknown);
                spoil(&mut buf, damaged);
                Data::Buf(buf)
            }
            (Command::Write { extent, durability, .. }, Payload::Pieces(pieces)) => {
                if let Err(error) = self.write(extent, &pieces, durability, &ended) {
                    return Err(failed(Payload::Pieces(pieces), error));
                }
                Data::None
            }
            (Command::Flush, _) if ended.silent == Silent::Flush => Data::None,
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
        for one in own {
            if let Err(error) = self.carry_out(one) {
                return Err(failed(Payload::None, error));
            }
        }
        Ok(Reply { outcome: ended.outcome, data, reason: None })
    }

    /// Carries out what the drive says has become of a write after its end. What it has brought to its medium by then
    /// has been destaged.
    ///
    /// # Errors
    ///
    /// The storage's.
    pub fn carry_out(&mut self, Aftermath { id, extent, what }: Aftermath) -> Result<(), S::Error> {
        match what {
            What::Overwritten => self.remember(extent, id),
            What::LetGo => {
                self.unwritten.let_go(extent, id);
                self.held.take(extent, id);
                Ok(())
            }
            What::WrittenAgain(silent) => {
                let Self { storage, unwritten, held, .. } = self;
                unwritten
                    .settle_of(extent, id, held, |lba, bytes| storage.write_sector(lba, bytes))?;
                if silent != Silent::Nothing {
                    // It may go wrong with sectors that had been right.
                    self.remember(extent, id)?;
                }
                for (lba, bytes) in self.held.take(extent, id) {
                    let at = u32::try_from((lba - extent.lba).get()).expect("a command's sector");
                    let fate = fate(extent, at, &silent);
                    fate.store(&bytes, |lba, bytes| self.storage.write_sector(lba, bytes))?;
                    if !fate.is_good(lba) {
                        self.held.put(lba, id, &bytes);
                    }
                }
                Ok(())
            }
        }
    }

    /// Another write is about to land on `extent`, which the drive has in memory as a write of this name.
    fn remember(&mut self, extent: Extent, write: u64) -> Result<(), S::Error> {
        for lba in extent.iter().filter(|&lba| !self.held.has(lba, write)).collect::<Vec<_>>() {
            let mut bytes = [0; SECTOR_SIZE];
            self.storage.read(lba, &mut bytes)?;
            self.unwritten.overlay(Extent::new(lba, Sectors::new(1)), &mut bytes);
            self.held.put(lba, write, &bytes);
        }
        Ok(())
    }

    /// Fills `bytes` with what a read of `extent` gives, if nothing is silently wrong with it.
    ///
    /// # Errors
    ///
    /// The storage's.
    pub fn read(&mut self, extent: Extent, bytes: &mut [u8]) -> Result<(), S::Error> {
        self.give(extent, bytes, &Silent::Nothing)?;
        self.overlay(extent, bytes);
        Ok(())
    }

    /// What waits in memory for `extent` goes to the medium.
    fn settle(&mut self, extent: Extent) -> Result<(), S::Error> {
        let Self { storage, unwritten, held, .. } = self;
        unwritten.settle(extent, held, |lba, bytes| storage.write_sector(lba, bytes))
    }

    fn give(&mut self, extent: Extent, bytes: &mut [u8], silent: &Silent) -> Result<(), S::Error> {
        self.storage.read(extent.lba, bytes)?;
        if let Silent::Read { flips } = silent {
            for flip in flips {
                flip.apply(&mut bytes[flip.offset as usize * SECTOR_SIZE..][..SECTOR_SIZE]);
            }
        }
        Ok(())
    }

    /// Puts over `bytes` what the memory has: that has not changed on the medium.
    fn overlay(&self, extent: Extent, bytes: &mut [u8]) {
        self.held.overlay(extent, bytes);
        self.unwritten.overlay(extent, bytes);
    }

    fn write(
        &mut self,
        extent: Extent,
        pieces: &[Piece],
        durability: Durability,
        ended: &Ended,
    ) -> Result<(), S::Error> {
        let Ended { silent, read_back, .. } = ended;
        let Self { storage, unwritten, held, caching } = self;
        let waits = durability == Durability::Cached && *caching == Caching::WriteBack;
        for (at, (lba, bytes)) in (0..).zip(extent.iter().zip(Piece::each_sector(pieces))) {
            let fate = fate(extent, at, silent);
            held.remove(lba);
            unwritten.make_way(lba, fate, |lba, bytes| storage.write_sector(lba, bytes))?;
            if waits {
                unwritten.put(lba, bytes, fate, *read_back);
            } else if *silent != Silent::Nothing {
                fate.store(bytes, |lba, bytes| storage.write_sector(lba, bytes))?;
                if let Some(write) = *read_back
                    && !fate.is_good(lba)
                {
                    held.put(lba, write, bytes);
                }
            }
        }
        if waits || *silent != Silent::Nothing {
            return Ok(());
        }
        storage.write(extent.lba, pieces, durability)
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
        let Self { storage, unwritten: waiting, held, .. } = self;
        waiting.destage(unwritten, held, |lba: Lba, bytes: &[u8]| storage.write_sector(lba, bytes))
    }

    /// The power fails, or the drive: what was in memory is gone.
    pub fn lose_power(&mut self) {
        self.unwritten.lose();
        self.held.lose();
    }
}

/// What becomes of sector number `at` of a write of `extent`.
fn fate(extent: Extent, at: u32, silent: &Silent) -> Fate {
    let distance = Sectors::new(at.into());
    match silent {
        Silent::Write(wrong) if wrong.missing.contains(at) => Fate::Lost,
        Silent::Write(wrong) => Fate::Stored {
            lba: wrong.landed.unwrap_or(extent.lba) + distance,
            flip: wrong.flips.iter().find(|flip| flip.offset == at).copied(),
        },
        Silent::Nothing | Silent::Read { .. } | Silent::Flush => {
            Fate::Stored { lba: extent.lba + distance, flip: None }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use levelhead_block::{Effort, Flip, Memory, SectorSet, SilentWrite};

    use super::*;
    use crate::GARBAGE;

    const ALL: Extent = Extent::new(Lba::ZERO, Sectors::new(8));

    fn platter(caching: Caching) -> Platter<Memory> {
        Platter::new(Memory::new(ALL.sectors), caching)
    }

    fn set(offsets: &[u32]) -> SectorSet {
        offsets.iter().copied().collect()
    }

    fn ended(silent: Silent) -> Ended {
        Ended::new(Outcome::GOOD, silent)
    }

    fn good() -> Ended {
        ended(Silent::Nothing)
    }

    fn silent_write(wrong: SilentWrite) -> Silent {
        Silent::Write(Box::new(wrong))
    }

    fn lost(missing: &[u32]) -> Silent {
        silent_write(SilentWrite { missing: set(missing), ..SilentWrite::default() })
    }

    /// Writes sectors 2 to 5, in two pieces.
    fn write(
        platter: &mut Platter<Memory>,
        value: u8,
        durability: Durability,
        silent: Silent,
    ) -> Outcome {
        let extent = Extent::new(Lba::new(2), Sectors::new(4));
        let whole = Piece::whole(Arc::new(Buf::copy_of(&[value; 4 * SECTOR_SIZE])));
        let pieces = vec![whole.part(0, 1), whole.part(1, 3)];
        let request = Request::write_pieces(extent, durability, pieces);
        let Ok(reply) = platter.end(request, ended(silent));
        reply.outcome
    }

    fn values(bytes: &[u8]) -> Vec<u8> {
        bytes.chunks_exact(SECTOR_SIZE).map(|sector| sector[0]).collect()
    }

    /// What a read gives.
    fn seen(platter: &mut Platter<Memory>, silent: Silent) -> Vec<u8> {
        let Ok(reply) = platter.end(Request::read(ALL, Effort::Full), ended(silent));
        reply.data.into_buf().as_slice().to_vec()
    }

    /// The first byte of each sector that a read gives, and of each on the medium.
    fn look(platter: &mut Platter<Memory>) -> [Vec<u8>; 2] {
        let seen = values(&seen(platter, Silent::Nothing));
        [seen, values(platter.storage_mut().bytes(ALL))]
    }

    /// What is silently wrong with a write of twos over ones shows on the medium at once where the write goes
    /// there, and otherwise when it has left the memory.
    #[track_caller]
    fn check_silent(silent: &Silent, expected: [u8; 8]) {
        for caching in [Caching::WriteThrough, Caching::WriteBack] {
            for durability in [Durability::Cached, Durability::Durable] {
                let mut platter = platter(caching);
                assert!(write(&mut platter, 1, Durability::Durable, Silent::Nothing).is_good());
                assert!(write(&mut platter, 2, durability, silent.clone()).is_good());
                let waits = caching == Caching::WriteBack && durability == Durability::Cached;
                let (twos, ones) = ([0, 0, 2, 2, 2, 2, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0]);
                let before = if waits { [twos, ones] } else { [expected; 2] };
                assert_eq!(
                    look(&mut platter),
                    before.map(Vec::from),
                    "{caching:?}, {durability:?}"
                );
                assert_eq!(platter.unwritten_len(), if waits { 4 } else { 0 });
                let Ok(()) = platter.flush();
                platter.lose_power();
                assert_eq!(look(&mut platter), [expected; 2].map(Vec::from), "P1");
            }
        }
    }

    #[test]
    fn missing_sectors_keep_what_the_medium_had_however_a_write_is_stored() {
        check_silent(&lost(&[1, 3]), [0, 0, 2, 1, 2, 1, 0, 0]);
        check_silent(&lost(&[0, 1, 2, 3]), [0, 0, 1, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn misdirected_write_lies_where_it_landed_and_the_wanted_place_keeps_what_it_had() {
        let landed = |missing: &[u32], lba| {
            let (missing, landed) = (set(missing), Some(Lba::new(lba)));
            silent_write(SilentWrite { missing, landed, flips: Vec::new() })
        };
        // Near enough to show the order of the sectors as well.
        check_silent(&landed(&[], 4), [0, 0, 1, 1, 2, 2, 2, 2]);
        check_silent(&landed(&[3], 0), [2, 2, 2, 1, 1, 1, 0, 0]);
        check_silent(&landed(&[0, 1, 2, 3], 0), [0, 0, 1, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn flipped_bit_is_the_only_difference_and_missing_sectors_have_none() {
        let (flips, missing) = (vec![Flip { offset: 0, bit: 6 }, Flip { offset: 1, bit: 5 }], [1]);
        let silent = silent_write(SilentWrite { missing: set(&missing), landed: None, flips });
        check_silent(&silent, [0, 0, 2 ^ 64, 1, 2, 2, 0, 0]);
        let mut platter = platter(Caching::WriteThrough);
        write(&mut platter, 2, Durability::Cached, silent);
        let stored = platter.storage_mut().bytes(ALL);
        let wrong = stored[2 * SECTOR_SIZE..3 * SECTOR_SIZE].iter().filter(|&&byte| byte != 2);
        assert_eq!(wrong.collect::<Vec<_>>(), [&(2 ^ 64)]);
    }

    #[test]
    fn bits_that_have_changed_at_rest_show_in_reads_of_the_medium_and_not_of_the_memory() {
        let mut platter = platter(Caching::WriteBack);
        write(&mut platter, 1, Durability::Durable, Silent::Nothing);
        let flips = vec![Flip { offset: 1, bit: 7 }, Flip { offset: 4, bit: 32_767 }];
        let silent = Silent::Read { flips };
        let read = seen(&mut platter, silent.clone());
        assert_eq!(values(&read), [0, 128, 1, 1, 1, 1, 0, 0]);
        assert_eq!(read[5 * SECTOR_SIZE - 1], 1 ^ 128);
        write(&mut platter, 2, Durability::Cached, Silent::Nothing);
        let read = seen(&mut platter, silent);
        assert_eq!((read[SECTOR_SIZE], read[5 * SECTOR_SIZE - 1]), (128, 2));
        assert_eq!(look(&mut platter)[0], [0, 0, 2, 2, 2, 2, 0, 0]);
    }

    #[test]
    fn lying_flush_leaves_everything_where_the_power_takes_it() {
        for (silent, left) in [(Silent::Nothing, 2), (Silent::Flush, 1)] {
            let mut platter = platter(Caching::WriteBack);
            write(&mut platter, 1, Durability::Durable, Silent::Nothing);
            write(&mut platter, 2, Durability::Cached, Silent::Nothing);
            let Ok(reply) = platter.end(Request::bare(Command::Flush), ended(silent));
            assert!(reply.outcome.is_good());
            assert_eq!(look(&mut platter)[0], [0, 0, 2, 2, 2, 2, 0, 0]);
            platter.lose_power();
            let left = [0, 0, left, left, left, left, 0, 0];
            assert_eq!(look(&mut platter), [left; 2].map(Vec::from));
        }
    }

    #[test]
    fn read_of_the_medium_brings_what_waits_to_the_medium_first_and_shows_what_was_lost() {
        for (silent, left) in
            [(lost(&[1, 3]), [0, 0, 2, 1, 2, 1, 0, 0]), (Silent::Nothing, [0, 0, 2, 2, 2, 2, 0, 0])]
        {
            let mut platter = platter(Caching::WriteBack);
            write(&mut platter, 1, Durability::Durable, Silent::Nothing);
            write(&mut platter, 2, Durability::Cached, silent);
            let part = Extent::new(Lba::new(2), Sectors::new(3));
            let Ok(reply) = platter.end(Request::read(part, Effort::Full), good());
            assert!(reply.data.holds(&[2; 3 * SECTOR_SIZE]), "the memory answers");
            let Ok(reply) = platter.end(Request::read(part, Effort::Medium), good());
            assert_eq!(values(reply.data.into_buf().as_slice()), left[2..5]);
            assert_eq!(platter.unwritten_len(), 1, "the others wait as before");
            let Ok(()) = platter.flush();
            assert_eq!(look(&mut platter), [left; 2].map(Vec::from), "P1");
        }
    }

    #[test]
    fn power_loss_takes_what_was_neither_destaged_nor_written_durably() {
        let mut platter = platter(Caching::WriteBack);
        write(&mut platter, 1, Durability::Cached, Silent::Nothing);
        let waiting = Extent::new(Lba::new(2), Sectors::new(1));
        let Ok(()) = platter.destage(&[waiting]);
        write(&mut platter, 3, Durability::Cached, Silent::Nothing);
        write(&mut platter, 2, Durability::Durable, lost(&[0, 1]));
        platter.lose_power();
        // What was lost of the durable write has left the cached one before it there.
        let left = vec![0, 0, 3, 3, 2, 2, 0, 0];
        assert_eq!(look(&mut platter), [left.clone(), left]);
    }

    #[test]
    fn sectors_that_were_not_read_cannot_be_used() {
        let mut platter = platter(Caching::WriteThrough);
        let outcome = Outcome::Done { unknown: set(&[1]), damaged: set(&[6]) };
        let ended = Ended::new(outcome.clone(), Silent::Nothing);
        let room = Request::read_into(ALL, Effort::Full, Buf::zeroed(ALL.sectors));
        let Ok(reply) = platter.end(room, ended);
        assert_eq!(reply.outcome, outcome);
        let seen = values(reply.data.into_buf().as_slice());
        assert_eq!(seen, [0, GARBAGE, 0, 0, 0, 0, GARBAGE, 0], "P2");
    }

    #[test]
    fn command_that_was_not_carried_out_moves_nothing() {
        let mut platter = platter(Caching::WriteThrough);
        let ended = Ended::new(Outcome::Gone, Silent::Nothing);
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
        write(&mut platter, 1, Durability::Cached, Silent::Nothing);
        let extent = Extent::new(Lba::new(3), Sectors::new(2));
        let zeroes = Command::WriteZeroes { extent, durability: Durability::Durable };
        for command in [zeroes, Command::Trim { extent: ALL }, Command::Flush] {
            let Ok(reply) = platter.end(Request::bare(command), good());
            assert!(reply.outcome.is_good());
        }
        let left = vec![0, 0, 1, 0, 0, 1, 0, 0];
        assert_eq!(look(&mut platter), [left.clone(), left]);
    }
}
