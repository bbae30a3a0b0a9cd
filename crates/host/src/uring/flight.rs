//! One command on its way through the kernel: which step comes next, and what a result means.
//!
//! ```text
//!              short                        refused: without the hint from now on
//!            +-------+                     +-------+
//!            v       |                     v       |
//!   write: Transfer -+-> [Sync] -> end    Read ----+-> end: all there, or how far it came
//!                                          ^ |
//!         the drive's own limit: [Recover]-+ +-- full effort, failed --> Search: half of it, ..
//! ```
//!
//! A durable write says so itself where that is taken, and ends without a sync: see
//! [`medium`](crate::medium).
//!
//! # Invariants
//!
//! - F1. What a failed step means, the table in [`errno`](crate::errno) says.
//! - F2. A hint that was refused is never the reason why a read fails: it is repeated without.
//! - F3. A flight never waits: whatever it needs is a step, so other commands go on meanwhile.
//! - F4. What a read with retries does not give while the drive's limit may be short is refused, and never damaged: the array asks
//!   again ([`erc`](crate::devices::erc), EC3).

use std::io;
use std::sync::Arc;

use levelhead_block::{
    Command, Data, Durability, Effort, Outcome, Payload, Piece, Reply, Request, SectorSet,
};
use levelhead_bytes::spoil;
use levelhead_units::SECTOR_SIZE;
use rustix::io::Errno;

use super::Under;
use crate::devices::erc::{Pass, Recovered};
use crate::devices::forced::Blocks;
use crate::devices::nvme::{Namespace, ReadEnd, Wanted, read_end};
use crate::devices::ways::Hint;
use crate::errno::{AGAIN_MAX, Doing, Meaning, failed_write, meaning};
use crate::medium::byte_offset;
use crate::search::Search;

/// Bytes of one read: below what the kernel moves at most.
const READ_MAX: usize = 1 << 30;

/// See the module.
pub(crate) struct Flight {
    request: Request,
    under: Arc<Under>,
    stage: Stage,
    /// Bytes that are through; of a search, of its present part.
    moved: usize,
    hint: Hint,
    safety: Safety,
    /// What a read with retries must have where the drive's limit is changed; kept until the end.
    _pass: Option<Pass>,
    /// Which limit it goes under.
    recovered: Recovered,
    /// How often the present step was started again.
    again: u32,
    /// Why a part of it could not be read, for people.
    failure: Option<String>,
}

#[derive(Debug)]
enum Stage {
    /// The drive's own limit of error recovery is waited for.
    Recover,
    /// Bytes move, from the first to the last.
    Transfer,
    /// What was written is made safe.
    Sync,
    /// The parts of a read that failed.
    Search(Search),
}

/// What makes a write durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Safety {
    /// It need not be.
    None,
    /// It says so itself.
    Itself,
    /// A sync after it.
    Sync,
}

/// What the kernel is asked for, with the memory it is about.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// Fill the room from this byte of the drive on, with this I/O priority; 0 is the usual one.
    Read { offset: u64, room: &'a mut [u8], priority: u16 },
    /// The same past the block layer.
    PastRead { namespace: Namespace, wanted: Wanted, offset: u64, room: &'a mut [u8] },
    /// The same as a SCSI command, from the medium.
    ForcedRead { offset: u64, room: &'a mut [u8] },
    /// Store the pieces without their first `skip` bytes, from this byte on.
    Write { offset: u64, pieces: &'a [Piece], skip: usize, durability: Durability },
    /// Make what was written safe.
    Sync,
    /// Have the drive's own limit of error recovery put back.
    Recover,
}

/// How a command stands.
#[derive(Debug)]
pub(super) enum Progress {
    /// It needs another step.
    GoesOn,
    /// It has ended.
    Ended(End),
}

/// How a command has ended.
#[derive(Debug)]
pub(super) struct End {
    outcome: Outcome,
    reason: Option<String>,
}

impl End {
    fn because(outcome: Outcome, error: &io::Error) -> Progress {
        Progress::Ended(Self { outcome, reason: Some(error.to_string()) })
    }

    const GOOD: Progress = Progress::Ended(Self { outcome: Outcome::GOOD, reason: None });
}

impl Flight {
    /// A request for a drive.
    pub(super) fn new(request: Request, under: Arc<Under>) -> Self {
        let mut pass = None;
        let (stage, hint, safety) = match request.command {
            Command::Flush => (Stage::Sync, Hint::None, Safety::None),
            Command::Read { effort, .. } => {
                pass = under.ways.pass(effort);
                let must_wait = pass.as_ref().is_some_and(|pass| pass.must_wait);
                let stage = if must_wait { Stage::Recover } else { Stage::Transfer };
                (stage, under.ways.hint(effort), Safety::None)
            }
            Command::Write { durability, .. } => {
                let safety = match durability {
                    Durability::Cached => Safety::None,
                    Durability::Durable if under.medium.takes_dsync() => Safety::Itself,
                    Durability::Durable => Safety::Sync,
                };
                (Stage::Transfer, Hint::None, safety)
            }
            command @ (Command::WriteZeroes { .. } | Command::Trim { .. }) => {
                panic!("{command:?} was to be prepared")
            }
        };
        let recovered = Recovered::Own;
        let (moved, again, failure) = (0, 0, None);
        let _pass = pass;
        Self { request, under, stage, moved, hint, safety, _pass, recovered, again, failure }
    }

    /// The drive.
    pub(super) fn under(&self) -> &Under {
        &self.under
    }

    /// What the kernel is asked next.
    pub(super) fn step(&mut self) -> Step<'_> {
        let Self { request, stage, moved, hint, safety, .. } = self;
        let moved = *moved;
        let part = match stage {
            Stage::Recover => return Step::Recover,
            Stage::Sync => return Step::Sync,
            Stage::Transfer => None,
            Stage::Search(search) => search.part(),
        };
        match (request.command, &mut request.payload) {
            (Command::Read { extent, .. }, Payload::Room(buf)) => {
                let part = part.map_or(0..buf.as_slice().len(), |part| {
                    part.start as usize * SECTOR_SIZE..part.end as usize * SECTOR_SIZE
                });
                let offset = byte_offset(extent.lba) + (part.start + moved) as u64;
                let room = &mut buf.as_mut_slice()[part][moved..];
                let most = match hint {
                    Hint::None | Hint::Priority(_) => READ_MAX,
                    Hint::Past(namespace, _) => namespace.transfer_max as usize,
                    Hint::Forced(Blocks { transfer_max, .. }) => *transfer_max as usize,
                };
                let len = room.len().min(most);
                let room = &mut room[..len];
                match *hint {
                    Hint::None => Step::Read { offset, room, priority: 0 },
                    Hint::Priority(priority) => Step::Read { offset, room, priority },
                    Hint::Past(namespace, wanted) => {
                        Step::PastRead { namespace, wanted, offset, room }
                    }
                    Hint::Forced(_) => Step::ForcedRead { offset, room },
                }
            }
            (Command::Write { extent, .. }, Payload::Pieces(pieces)) => {
                let offset = byte_offset(extent.lba) + moved as u64;
                let durability = match safety {
                    Safety::Itself => Durability::Durable,
                    Safety::None | Safety::Sync => Durability::Cached,
                };
                Step::Write { offset, pieces, skip: moved, durability }
            }
            (command, payload) => panic!("{command:?} came with {payload:?}"),
        }
    }

    /// The kernel is through with the step: bytes that were moved or, past the block layer, the
    /// drive's status; below zero an error.
    pub(super) fn advance(&mut self, result: i32) -> Progress {
        if let Stage::Recover = self.stage {
            self.recovered = if result < 0 { Recovered::Perhaps } else { Recovered::Own };
            self.stage = Stage::Transfer;
            return Progress::GoesOn;
        }
        let Ok(result) = u32::try_from(result) else {
            return self.fail(Errno::from_raw_os_error(result.wrapping_neg()));
        };
        if let Stage::Sync = self.stage {
            return End::GOOD;
        }
        match self.hint {
            Hint::None | Hint::Priority(_) | Hint::Forced(_) => self.move_on(result as usize),
            Hint::Past(namespace, _) => {
                match read_end(u16::try_from(result).unwrap_or(u16::MAX)) {
                    // All of it: past the block layer there are no short reads.
                    ReadEnd::Good => {
                        let left = self.len() - self.moved;
                        self.move_on(left.min(namespace.transfer_max as usize))
                    }
                    ReadEnd::Unread => self.judge(&Errno::IO.into()),
                    ReadEnd::Failed => self.read_otherwise(),
                    ReadEnd::Refused => self.do_without(),
                }
            }
        }
    }

    fn fail(&mut self, errno: Errno) -> Progress {
        let is_refusal = match self.hint {
            Hint::None => false,
            // A kernel that does not know hints takes them for a level that does not exist.
            Hint::Priority(_) => [Errno::INVAL, Errno::OPNOTSUPP].contains(&errno),
            Hint::Past(..) | Hint::Forced(_) => {
                let refusals = [
                    Errno::INVAL,
                    Errno::OPNOTSUPP,
                    Errno::NOTTY,
                    Errno::NOSYS,
                    Errno::PERM,
                    Errno::ACCESS,
                ];
                refusals.contains(&errno)
            }
        };
        if is_refusal {
            return self.do_without();
        }
        if self.safety == Safety::Itself && self.under.medium.refuses_dsync(errno) {
            self.safety = Safety::Sync;
            return Progress::GoesOn;
        }
        self.judge(&errno.into())
    }

    /// A read past the block layer has failed, and not because of the medium. One with little effort may. One of full effort
    /// goes through the block layer, which tries again where that helps: what has failed is not held against the sectors.
    fn read_otherwise(&mut self) -> Progress {
        if let Hint::Past(_, Wanted::FromMedium) = self.hint {
            self.hint = Hint::None;
            return Progress::GoesOn;
        }
        self.judge(&Errno::IO.into())
    }

    /// F2.
    fn do_without(&mut self) -> Progress {
        match self.hint {
            Hint::Past(_, Wanted::FromMedium) | Hint::Forced(_) => self.under.ways.refuse_medium(),
            Hint::Past(_, Wanted::LimitedRetry) | Hint::Priority(_) | Hint::None => {
                self.under.ways.refuse();
            }
        }
        self.hint = Hint::None;
        Progress::GoesOn
    }

    /// F1.
    fn judge(&mut self, error: &io::Error) -> Progress {
        let doing = match (&self.stage, self.request.command) {
            (Stage::Sync, _) => Doing::Sync,
            (_, Command::Read { .. }) => Doing::Read,
            _ => Doing::Write,
        };
        let outcome = match (doing, meaning(doing, error)) {
            (_, Meaning::Again) if self.again < AGAIN_MAX => {
                self.again += 1;
                return Progress::GoesOn;
            }
            (_, Meaning::Gone) | (Doing::Sync, Meaning::Again | Meaning::Failed) => Outcome::Gone,
            (_, Meaning::Again | Meaning::Refused) => Outcome::Refused,
            (Doing::Read, Meaning::Failed) => {
                return match self.under.medium.shortened() {
                    Some(shorter) => End::because(Outcome::Gone, &shorter),
                    None => self.go_on_without(error),
                };
            }
            (Doing::Write, Meaning::Failed) => {
                let extent = self.request.command.extent().expect("a write has one");
                failed_write(extent, error)
            }
        };
        End::because(outcome, error)
    }

    /// A read, or a part of one, has failed.
    fn go_on_without(&mut self, error: &io::Error) -> Progress {
        let Command::Read { extent, effort } = self.request.command else {
            unreachable!("only reads have a part that fails")
        };
        if effort.is_full() && self.recovered == Recovered::Perhaps {
            return End::because(Outcome::Refused, error); // F4
        }
        let left = (self.moved / SECTOR_SIZE) as u32..extent.sectors.get() as u32;
        match (&mut self.stage, effort) {
            (Stage::Search(search), _) => search.handle_failed(),
            (Stage::Recover | Stage::Transfer | Stage::Sync, Effort::Fast | Effort::Limited(_)) => {
                let (unknown, damaged) = (left.collect(), SectorSet::EMPTY);
                return End::because(Outcome::Done { unknown, damaged }, error);
            }
            // Which sectors it was, the drive has not said.
            (Stage::Recover | Stage::Transfer | Stage::Sync, Effort::Full | Effort::Medium) => {
                self.stage = Stage::Search(Search::new(left));
            }
        }
        self.failure = Some(error.to_string());
        self.search_on()
    }

    /// The next part of a search, or its end.
    fn search_on(&mut self) -> Progress {
        (self.moved, self.again) = (0, 0);
        let Stage::Search(search) = &self.stage else { unreachable!("only a search goes on") };
        if search.part().is_some() {
            return Progress::GoesOn;
        }
        let (unknown, damaged) = (SectorSet::EMPTY, search.damaged());
        let reason = self.failure.take().filter(|_| !damaged.is_empty());
        Progress::Ended(End { outcome: Outcome::Done { unknown, damaged }, reason })
    }

    /// Bytes of the whole command, or of the present part of a search.
    fn len(&self) -> usize {
        let part = match &self.stage {
            Stage::Search(search) => search.part(),
            Stage::Recover | Stage::Transfer | Stage::Sync => None,
        };
        part.map_or(self.request.command.payload().as_usize(), |part| part.len()) * SECTOR_SIZE
    }

    fn move_on(&mut self, count: usize) -> Progress {
        self.again = 0;
        if count == 0 {
            return match self.request.command {
                Command::Read { .. } => End::because(Outcome::Gone, &self.under.medium.end()),
                _ => self.judge(&io::ErrorKind::WriteZero.into()),
            };
        }
        self.moved += count;
        if self.moved < self.len() {
            return Progress::GoesOn;
        }
        match (&mut self.stage, self.safety) {
            (Stage::Search(search), _) => {
                search.handle_read();
                self.search_on()
            }
            (Stage::Recover | Stage::Transfer | Stage::Sync, Safety::Sync) => {
                self.stage = Stage::Sync;
                Progress::GoesOn
            }
            (Stage::Recover | Stage::Transfer | Stage::Sync, Safety::None | Safety::Itself) => {
                End::GOOD
            }
        }
    }

    /// What the request is answered with.
    pub(super) fn into_reply(self, End { outcome, reason }: End) -> (Command, Reply) {
        let Self { request, .. } = self;
        let command = request.command;
        let data = match (request.payload, &outcome) {
            (Payload::Room(mut buf), Outcome::Done { unknown, damaged }) => {
                spoil(&mut buf, unknown); // M3
                spoil(&mut buf, damaged);
                Data::Buf(buf)
            }
            (payload, _) => {
                drop(payload); // M2
                Data::None
            }
        };
        (command, Reply { outcome, data, reason })
    }
}
