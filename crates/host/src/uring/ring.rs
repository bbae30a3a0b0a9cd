//! The kernel as one drive's thread sees it: steps go in, results come out. The real one is an
//! io_uring; a test has one of its own.
//!
//! Reads past the block layer need entries of twice the size, so a ring has them or it has not.

use std::io::{self, PipeReader};
use std::os::fd::AsRawFd;
use std::os::fd::RawFd;
use std::sync::Arc;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, cqueue, opcode, squeue};
use levelhead_block::{Durability, Piece};
use rustix::io::ReadWriteFlags;

use super::flight::{Flight, Step};
use crate::devices::fast::FastFail;
use crate::medium::Medium;

/// Pieces of one write: what the kernel takes at most.
const SLICES_MAX: usize = 1024;

/// The name of the pipe's read among the commands.
const WAKE: u64 = u64::MAX;

/// `NVME_URING_CMD_IO` of `<linux/nvme_ioctl.h>`.
const NVME_READ: u32 = 0xC048_4E80;

/// What has happened in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// There may be new orders.
    Woken,
    /// There will be no new orders.
    Closed,
    /// A step has ended.
    Ended { name: u64, result: i32 },
}

/// See the module.
pub(super) trait Kernel: Send {
    /// Starts what the flight needs next.
    ///
    /// # Safety
    ///
    /// U1: the memory of the step is neither moved nor freed nor looked at until the step has ended.
    /// There are never more steps under way than the window.
    unsafe fn start(&mut self, name: u64, flight: &mut Flight);

    /// Waits until something has happened. After [`Event::Closed`] only steps end.
    fn wait(&mut self, events: &mut Vec<Event>);
}

/// See the module.
pub(super) struct Ring {
    size: Size,
    medium: Arc<Medium>,
    fast: Arc<FastFail>,
    pipe: PipeReader,
    /// Where the pipe's bytes go. Leaked if the kernel may still fill it.
    woken: Option<Box<[u8; 64]>>,
    is_listening: bool,
    /// The parts of memory of each write that is under way.
    slices: std::collections::BTreeMap<u64, Vec<Slice>>,
}

enum Size {
    Small(IoUring),
    Large(IoUring<squeue::Entry128, cqueue::Entry32>),
}

/// A `struct iovec`, as readv(2) defines it.
#[repr(C)]
struct Slice {
    start: *const u8,
    len: usize,
}

// SAFETY: the pointers lead into pieces that a flight owns.
unsafe impl Send for Slice {}

impl Ring {
    /// A ring with room for `entries` steps on `medium`, woken through `pipe`.
    pub(super) fn new(
        entries: u32,
        medium: Arc<Medium>,
        fast: Arc<FastFail>,
        pipe: PipeReader,
    ) -> io::Result<Self> {
        let large = || IoUring::<squeue::Entry128, cqueue::Entry32>::builder().build(entries);
        let size = match fast.device().map(|_| large()) {
            Some(Ok(ring)) => Size::Large(ring),
            refused => {
                if refused.is_some() {
                    fast.refuse();
                }
                Size::Small(IoUring::new(entries)?)
            }
        };
        let mut ring = Self {
            size,
            medium,
            fast,
            pipe,
            woken: Some(Box::new([0; 64])),
            is_listening: false,
            slices: std::collections::BTreeMap::new(),
        };
        ring.listen();
        Ok(ring)
    }

    /// Waits for the pipe, among other things.
    fn listen(&mut self) {
        let Some(room) = &mut self.woken else { return };
        let read = opcode::Read::new(Fd(self.pipe.as_raw_fd()), room.as_mut_ptr(), 64);
        self.is_listening = true;
        self.push(&read.build().user_data(WAKE));
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: U1; the descriptors are open for as long as the ring is.
        let pushed = unsafe {
            match &mut self.size {
                Size::Small(ring) => ring.submission().push(entry),
                Size::Large(ring) => ring.submission().push(&entry.clone().into()),
            }
        };
        pushed.expect("U2");
    }

    fn push_large(&mut self, entry: &squeue::Entry128) {
        let Size::Large(ring) = &mut self.size else {
            panic!("a ring that cannot take such steps has refused them");
        };
        // SAFETY: U1; the descriptors are open for as long as the ring is.
        let pushed = unsafe { ring.submission().push(entry) };
        pushed.expect("U2");
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.is_listening {
            std::mem::forget(self.woken.take()); // U3
        }
        // U3: while steps are under way, the kernel may still look at what they are made of.
        std::mem::forget(std::mem::take(&mut self.slices));
    }
}

/// The bytes of a write that are not through yet.
fn slices(pieces: &[Piece], mut skip: usize) -> Vec<Slice> {
    let mut slices = Vec::new();
    for piece in pieces {
        let bytes = piece.bytes();
        let rest = &bytes[skip.min(bytes.len())..];
        skip -= bytes.len() - rest.len();
        if !rest.is_empty() && slices.len() < SLICES_MAX {
            slices.push(Slice { start: rest.as_ptr(), len: rest.len() });
        }
    }
    slices
}

impl Kernel for Ring {
    unsafe fn start(&mut self, name: u64, flight: &mut Flight) {
        let fd = Fd(self.medium.raw_fd());
        let entry = match flight.step() {
            Step::Sync => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
            Step::Read { offset, room, priority } => {
                let read = opcode::Read::new(fd, room.as_mut_ptr(), room.len() as u32);
                read.offset(offset).ioprio(priority).build()
            }
            Step::Write { offset, pieces, skip, durability } => {
                let parts = slices(pieces, skip);
                let write = opcode::Writev::new(fd, parts.as_ptr().cast(), parts.len() as u32);
                self.slices.insert(name, parts);
                let flags = match durability {
                    Durability::Cached => ReadWriteFlags::empty(),
                    Durability::Durable => ReadWriteFlags::DSYNC,
                };
                write.offset(offset).rw_flags(flags.bits() as i32).build()
            }
            Step::LimitedRead { namespace, offset, room } => {
                let command = namespace.read(offset, room.len() as u32, room.as_mut_ptr() as u64);
                let device: RawFd = self.fast.device().map_or(-1, AsRawFd::as_raw_fd);
                let entry = opcode::UringCmd80::new(Fd(device), NVME_READ).cmd(command.bytes());
                return self.push_large(&entry.build().user_data(name));
            }
        };
        self.push(&entry.user_data(name));
    }

    fn wait(&mut self, events: &mut Vec<Event>) {
        let waited = match &self.size {
            Size::Small(ring) => ring.submit_and_wait(1),
            Size::Large(ring) => ring.submit_and_wait(1),
        };
        match waited {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(error) => panic!("an io_uring takes what its queue has room for: {error}"),
        }
        let done: Vec<(u64, i32)> = match &mut self.size {
            Size::Small(ring) => {
                ring.completion().map(|entry| (entry.user_data(), entry.result())).collect()
            }
            Size::Large(ring) => {
                ring.completion().map(|entry| (entry.user_data(), entry.result())).collect()
            }
        };
        for (name, result) in done {
            if name != WAKE {
                self.slices.remove(&name);
                events.push(Event::Ended { name, result });
                continue;
            }
            self.is_listening = false;
            // An end without bytes: the writer is gone.
            if result == 0 {
                events.push(Event::Closed);
            } else {
                events.push(Event::Woken);
                self.listen();
            }
        }
    }
}
