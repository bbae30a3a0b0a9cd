//! A file or block device behind an io_uring: one thread, any number of commands inside the drive.
//!
//! ```text
//!   submit --> channel, and a byte into a pipe
//!                          |
//!                thread: submission queue --> kernel --> completion queue --> report
//!                          ^                                   |
//!                          +-- the rest of a short transfer, --+
//!                              the sync after a durable write
//! ```
//!
//! The thread sleeps in the kernel until something completes; the pipe's other end is one of the
//! reads it waits for, and so new orders wake it.
//!
//! # Safety
//!
//! - U1. Memory that the kernel reads or writes belongs to a [`Flight`] (or is the pipe's byte), and is
//!   neither moved nor freed nor looked at from its submission to its completion.
//! - U2. A command has at most one entry in the submission queue, so the queue never overflows.
//! - U3. If the thread has to give up with commands in the kernel, their memory is leaked.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, Probe, opcode, squeue};
use levelhead_block::{Command, Durability, Outcome};
use rustix::io::Errno;

use crate::backend::{Backend, Ended, Order, Payload, Report, failed_read, failed_write, flushed};
use crate::error::HostError;
use crate::medium::{Medium, byte_offset};

/// Pieces of one write: what the kernel takes at most.
const SLICES_MAX: usize = 1024;

/// Bytes of one read: below what the kernel moves at most.
const READ_MAX: usize = 1 << 30;

/// The name of the pipe's read among the commands.
const WAKE: u64 = u64::MAX;

/// See the module.
pub(crate) struct Uring {
    /// Both absent only while it is dropped.
    orders: Option<Sender<Order>>,
    wake: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

/// Whether the kernel offers all that is needed here; if not, why.
pub(crate) fn check_available() -> Result<(), HostError> {
    let refused = |error: io::Error| HostError::new(format!("io_uring is not to be had: {error}"));
    let ring = IoUring::new(2).map_err(refused)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(refused)?;
    let needed = [opcode::Read::CODE, opcode::Writev::CODE, opcode::Fsync::CODE];
    if needed.iter().all(|&code| probe.is_supported(code)) {
        return Ok(());
    }
    Err(HostError::new("io_uring is not to be had: the kernel's is too old"))
}

impl Uring {
    pub(crate) fn start(
        medium: Arc<Medium>,
        window: u32,
        report: Report,
    ) -> Result<Self, HostError> {
        let failed =
            |error: io::Error| HostError::new(format!("cannot start an io_uring: {error}"));
        let ring = IoUring::new((window + 1).next_power_of_two()).map_err(failed)?;
        let (pipe, wake) = io::pipe().map_err(failed)?;
        let (orders, receiver) = mpsc::channel();
        let state = State {
            flights: Flights { table: BTreeMap::new(), woken: Box::new([0; 64]) },
            ring,
            pipe,
            medium,
            report,
        };
        let thread = std::thread::Builder::new()
            .name("drive".into())
            .spawn(move || state.run(&receiver))
            .map_err(failed)?;
        Ok(Self { orders: Some(orders), wake: Some(wake), thread: Some(thread) })
    }
}

impl Backend for Uring {
    fn submit(&mut self, order: Order) {
        let orders = self.orders.as_ref().expect("it is there until the drop");
        orders.send(order).expect("the thread lives as long as the channel");
        // It never fills up: the thread reads it, and there are at most as many bytes as commands.
        let wake = self.wake.as_mut().expect("it is there until the drop");
        wake.write_all(&[1]).expect("the thread holds the other end");
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        self.orders = None;
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

/// What the thread owns.
struct State {
    flights: Flights,
    ring: IoUring,
    pipe: PipeReader,
    medium: Arc<Medium>,
    report: Report,
}

/// Everything whose memory the kernel may be using.
struct Flights {
    table: BTreeMap<u64, Flight>,
    /// Where the pipe's bytes go.
    woken: Box<[u8; 64]>,
}

impl Drop for Flights {
    fn drop(&mut self) {
        if !self.table.is_empty() || std::thread::panicking() {
            std::mem::forget(std::mem::take(&mut self.table)); // U3
            std::mem::forget(std::mem::replace(&mut self.woken, Box::new([0; 64])));
        }
    }
}

/// A command inside the kernel.
struct Flight {
    order: Order,
    /// Bytes that are through.
    moved: usize,
    /// The parts of memory of the entry that is under way.
    slices: Vec<Slice>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Transfer,
    Sync,
}

/// A `struct iovec`, as readv(2) defines it.
#[repr(C)]
struct Slice {
    start: *const u8,
    len: usize,
}

// SAFETY: the pointers lead into pieces that the same flight owns.
unsafe impl Send for Slice {}

impl State {
    fn run(mut self, orders: &Receiver<Order>) {
        self.listen();
        let mut is_closing = false;
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("an io_uring takes what its queue has room for: {error}"),
            }
            let done: Vec<(u64, i32)> =
                self.ring.completion().map(|entry| (entry.user_data(), entry.result())).collect();
            for (name, result) in done {
                if name != WAKE {
                    self.advance(name, result);
                    continue;
                }
                while let Ok(order) = orders.try_recv() {
                    self.begin(order);
                }
                // An end without bytes: the writer is gone.
                is_closing = result == 0;
                if !is_closing {
                    self.listen();
                }
            }
            if is_closing && self.flights.table.is_empty() {
                return;
            }
        }
    }

    /// Waits for the pipe, among other things.
    fn listen(&mut self) {
        let room = &mut self.flights.woken;
        let read = opcode::Read::new(Fd(self.pipe.as_raw_fd()), room.as_mut_ptr(), 64);
        self.push(&read.build().user_data(WAKE));
    }

    fn begin(&mut self, order: Order) {
        let name = order.sub.0;
        let stage = match order.command {
            Command::Flush => Stage::Sync,
            _ => Stage::Transfer,
        };
        let flight = Flight { order, moved: 0, slices: Vec::new(), stage };
        assert!(self.flights.table.insert(name, flight).is_none(), "{name} is under way already");
        self.go_on(name);
    }

    /// Submits what a command needs next.
    fn go_on(&mut self, name: u64) {
        let flight = self.flights.table.get_mut(&name).expect("the flight is in the table");
        let entry = flight.entry(Fd(self.medium.raw_fd())).user_data(name);
        self.push(&entry);
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: U1; the descriptors are open for as long as the ring is.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("U2");
    }

    /// The kernel is through with an entry.
    fn advance(&mut self, name: u64, result: i32) {
        let flight = self.flights.table.get_mut(&name).expect("the flight is in the table");
        let ended = match u32::try_from(result) {
            Ok(count) => flight.advance(count as usize),
            Err(_) => {
                let errno = -result;
                let again = [Errno::INTR, Errno::AGAIN].map(Errno::raw_os_error);
                (!again.contains(&errno)).then(|| Err(io::Error::from_raw_os_error(errno)))
            }
        };
        let Some(ended) = ended else { return self.go_on(name) };
        let flight = self.flights.table.remove(&name).expect("the flight is in the table");
        self.finish(flight.order, ended);
    }

    fn finish(&self, Order { sub, command, payload, .. }: Order, result: io::Result<()>) {
        let good = |()| Outcome::GOOD;
        let (outcome, buf) = match (command, payload) {
            (Command::Read { extent, effort }, Payload::Fill(mut buf)) => {
                let failed = |error| failed_read(&self.medium, extent, effort, &mut buf, &error);
                (result.map_or_else(failed, good), Some(buf))
            }
            (Command::Write { extent, .. }, Payload::Pieces(pieces)) => {
                drop(pieces); // B2
                (result.map_or_else(|error| failed_write(extent, &error), good), None)
            }
            (_, _) => (flushed(result), None),
        };
        (self.report)(Ended { sub, outcome, buf });
    }
}

impl Flight {
    /// What the kernel is asked next, for the file `fd`.
    fn entry(&mut self, fd: Fd) -> squeue::Entry {
        let moved = self.moved;
        if self.stage == Stage::Sync {
            return opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build();
        }
        let Order { command, payload, .. } = &mut self.order;
        match (*command, payload) {
            (Command::Read { extent, .. }, Payload::Fill(buf)) => {
                let room = &mut buf.as_mut_slice()[moved..];
                let len = room.len().min(READ_MAX) as u32;
                let offset = byte_offset(extent.lba) + moved as u64;
                opcode::Read::new(fd, room.as_mut_ptr(), len).offset(offset).build()
            }
            (Command::Write { extent, .. }, Payload::Pieces(pieces)) => {
                let mut skip = moved;
                self.slices.clear();
                for piece in pieces.iter() {
                    let bytes = piece.bytes();
                    let rest = &bytes[skip.min(bytes.len())..];
                    skip -= bytes.len() - rest.len();
                    if !rest.is_empty() && self.slices.len() < SLICES_MAX {
                        self.slices.push(Slice { start: rest.as_ptr(), len: rest.len() });
                    }
                }
                let (slices, count) = (self.slices.as_ptr(), self.slices.len() as u32);
                let offset = byte_offset(extent.lba) + moved as u64;
                opcode::Writev::new(fd, slices.cast(), count).offset(offset).build()
            }
            // An array asks its drives for nothing else.
            (command, payload) => panic!("{command:?} came with {payload:?}"),
        }
    }

    /// The kernel has moved so many bytes, or synced. Returns how the command ended, unless it goes
    /// on.
    fn advance(&mut self, count: usize) -> Option<io::Result<()>> {
        if self.stage == Stage::Sync {
            return Some(Ok(()));
        }
        let (extent, durability) = match self.order.command {
            Command::Write { extent, durability, .. } => (extent, durability),
            command => (command.extent().expect("it transfers"), Durability::Cached),
        };
        if count == 0 {
            return Some(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.moved += count;
        if self.moved < extent.sectors.bytes().get() as usize {
            return None;
        }
        match durability {
            Durability::Cached => Some(Ok(())),
            Durability::Durable => {
                self.stage = Stage::Sync;
                None
            }
        }
    }
}
