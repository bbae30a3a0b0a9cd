//! One command on its way through the kernel: which step comes next, and what a result means.
//!
//! ```text
//!              short                        refused: without the hint from now on
//!            +-------+                     +-------+
//!            v       |                     v       |
//!   write: Transfer -+-> [Sync] -> end    Read ----+-> end: all there, or how far it came
//! ```
//!
//! # Invariants
//!
//! - F1. A read that a hint has failed is `Err` like any other failed read; what that means for the
//!   effort it had, [`failed_read`](crate::backend::failed_read) says.
//! - F2. A hint that was refused is never the reason why a read fails: it is repeated without.

use std::io;

use levelhead_array::Piece;
use levelhead_block::{Command, Durability};
use rustix::io::Errno;

use crate::backend::{Order, Payload};
use crate::devices::fast::{FastFail, Hint};
use crate::devices::nvme::{Namespace, ReadEnd, read_end};
use crate::medium::byte_offset;

/// Bytes of one read: below what the kernel moves at most.
const READ_MAX: usize = 1 << 30;

/// See the module.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(super) order: Order,
    /// Bytes that are through.
    pub(super) moved: usize,
    stage: Stage,
    hint: Hint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Transfer,
    Sync,
}

/// What the kernel is asked for, with the memory it is about.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// Fill the room from this byte of the drive on, with this I/O priority; 0 is the usual one.
    Read { offset: u64, room: &'a mut [u8], priority: u16 },
    /// The same past the block layer, with limited retry.
    LimitedRead { namespace: Namespace, offset: u64, room: &'a mut [u8] },
    /// Store the pieces but for so many bytes, from this byte on.
    Write { offset: u64, pieces: &'a [Piece], skip: usize },
    /// Make what was written safe.
    Sync,
}

/// How a command stands.
#[derive(Debug)]
pub(super) enum Progress {
    /// It needs another step.
    GoesOn,
    /// It has ended.
    Ended(io::Result<()>),
}

impl Flight {
    /// A command for a drive that can be told to try less in the way of `fast`.
    pub(super) fn new(order: Order, fast: &FastFail) -> Self {
        let (stage, hint) = match order.command {
            Command::Flush => (Stage::Sync, Hint::None),
            Command::Read { effort, .. } => (Stage::Transfer, fast.hint(effort)),
            Command::Write { .. } | Command::WriteZeroes { .. } | Command::Trim { .. } => {
                (Stage::Transfer, Hint::None)
            }
        };
        Self { order, moved: 0, stage, hint }
    }

    /// What the kernel is asked next.
    pub(super) fn step(&mut self) -> Step<'_> {
        let moved = self.moved;
        if self.stage == Stage::Sync {
            return Step::Sync;
        }
        let Order { command, payload, .. } = &mut self.order;
        match (*command, payload) {
            (Command::Read { extent, .. }, Payload::Fill(buf)) => {
                let offset = byte_offset(extent.lba) + moved as u64;
                let room = &mut buf.as_mut_slice()[moved..];
                let most = match self.hint {
                    Hint::None | Hint::Priority(_) => READ_MAX,
                    Hint::LimitedRetry(namespace) => namespace.transfer_max as usize,
                };
                let len = room.len().min(most);
                let room = &mut room[..len];
                match self.hint {
                    Hint::None => Step::Read { offset, room, priority: 0 },
                    Hint::Priority(priority) => Step::Read { offset, room, priority },
                    Hint::LimitedRetry(namespace) => Step::LimitedRead { namespace, offset, room },
                }
            }
            (Command::Write { extent, .. }, Payload::Pieces(pieces)) => {
                let offset = byte_offset(extent.lba) + moved as u64;
                Step::Write { offset, pieces, skip: moved }
            }
            // An array asks its drives for nothing else.
            (command, payload) => panic!("{command:?} came with {payload:?}"),
        }
    }

    /// The kernel is through with the step: bytes that were moved or, past the block layer, the
    /// drive's status; below zero an error.
    pub(super) fn advance(&mut self, result: i32, fast: &FastFail) -> Progress {
        let Ok(result) = u32::try_from(result) else {
            return self.fail(Errno::from_raw_os_error(result.wrapping_neg()), fast);
        };
        if self.stage == Stage::Sync {
            return Progress::Ended(Ok(()));
        }
        match self.hint {
            Hint::None | Hint::Priority(_) => self.move_on(result as usize),
            Hint::LimitedRetry(namespace) => {
                match read_end(u16::try_from(result).unwrap_or(u16::MAX)) {
                    // All of it: past the block layer there are no short reads.
                    ReadEnd::Good => {
                        let left = self.len() - self.moved;
                        self.move_on(left.min(namespace.transfer_max as usize))
                    }
                    ReadEnd::Unread => Progress::Ended(Err(Errno::IO.into())),
                    ReadEnd::Refused => self.do_without(fast),
                }
            }
        }
    }

    fn fail(&mut self, errno: Errno, fast: &FastFail) -> Progress {
        if [Errno::INTR, Errno::AGAIN].contains(&errno) {
            return Progress::GoesOn;
        }
        let is_refusal = match self.hint {
            Hint::None => false,
            // A kernel that does not know hints takes them for a level that does not exist.
            Hint::Priority(_) => [Errno::INVAL, Errno::OPNOTSUPP].contains(&errno),
            Hint::LimitedRetry(_) => {
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
        if is_refusal { self.do_without(fast) } else { Progress::Ended(Err(errno.into())) }
    }

    /// F2.
    fn do_without(&mut self, fast: &FastFail) -> Progress {
        fast.refuse();
        self.hint = Hint::None;
        Progress::GoesOn
    }

    /// Bytes of the whole command.
    fn len(&self) -> usize {
        let extent = self.order.command.extent().expect("it transfers");
        extent.sectors.bytes().get() as usize
    }

    fn move_on(&mut self, count: usize) -> Progress {
        if count == 0 {
            return Progress::Ended(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.moved += count;
        if self.moved < self.len() {
            return Progress::GoesOn;
        }
        match self.order.command {
            Command::Write { durability: Durability::Durable, .. } => {
                self.stage = Stage::Sync;
                Progress::GoesOn
            }
            _ => Progress::Ended(Ok(())),
        }
    }
}
