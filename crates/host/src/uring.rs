//! A file or block device behind an io_uring: one thread, any number of commands inside the drive.
//!
//! ```text
//!   submit --> channel, and a byte into a pipe
//!                          |
//!                thread: waiting, beyond the window
//!                          |
//!                        submission queue --> kernel --> completion queue --> answer
//!                          ^                                   |
//!                          +-- the rest of a short transfer, --+
//!                              the parts of a read that failed,
//!                              the sync after a durable write
//! ```
//!
//! The thread sleeps in the kernel until something completes; the pipe's other end is one of the
//! reads it waits for, and so new requests wake it. What a command needs next is decided in [`flight`],
//! what the kernel is told in [`ring`]; a test puts a kernel of its own in the ring's place.
//!
//! # Safety
//!
//! - U1. Memory that the kernel reads or writes belongs to a [`Flight`] (or to the ring), and is neither
//!   moved nor freed nor looked at from its submission to its completion.
//! - U2. A command has at most one entry in the submission queue, and there are never more commands
//!   under way than the window, so the queue never overflows.
//! - U3. If the thread has to give up with commands in the kernel, their memory is leaked.

#![allow(unsafe_code)]

mod flight;
mod ring;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, PipeWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SendError, Sender};
use std::thread::JoinHandle;

use io_uring::{IoUring, Probe, opcode};
use levelhead_block::{BlockService, Command, Done, Reply, Request};
use levelhead_units::Sectors;

use self::flight::{Flight, Progress};
use self::ring::{Event, Kernel, OpenDoor, Ring};
use crate::backend::{Look, Member, prepared};
use crate::blocking::because;
use crate::devices::fast::FastFail;
use crate::errno::failed_write;
use crate::error::HostError;
use crate::medium::Medium;

type Order = (Request, Done);

/// See the module.
pub(crate) struct Uring {
    medium: Arc<Medium>,
    /// Both absent only while it is dropped.
    orders: Option<Sender<Order>>,
    wake: Option<PipeWriter>,
    /// Whether there is a byte in the pipe that the thread has not taken yet.
    is_woken: Arc<AtomicBool>,
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
        fast: Arc<FastFail>,
        window: u32,
    ) -> Result<Self, HostError> {
        let failed =
            |error: io::Error| HostError::new(format!("cannot start an io_uring: {error}"));
        let (pipe, wake) = io::pipe().map_err(failed)?;
        let (orders, receiver) = mpsc::channel();
        let entries = (window + 1).next_power_of_two();
        let ring = Ring::new(entries, Arc::clone(&medium), Arc::clone(&fast), pipe, OpenDoor)
            .map_err(failed)?;
        let is_woken = Arc::new(AtomicBool::new(false));
        let under = Under { medium: Arc::clone(&medium), fast };
        let state = State::new(ring, under, window, Arc::clone(&is_woken));
        let thread = std::thread::Builder::new()
            .name("drive".into())
            .spawn(move || state.run(&receiver))
            .map_err(failed)?;
        Ok(Self { medium, orders: Some(orders), wake: Some(wake), is_woken, thread: Some(thread) })
    }
}

impl BlockService for Uring {
    fn size(&self) -> Sectors {
        self.medium.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let Some(order) = prepared(self.size(), request, done) else { return };
        let orders = self.orders.as_ref().expect("it is there until the drop");
        if let Err(SendError((_, done))) = orders.send(order) {
            return done(Reply::gone("its thread has ended"));
        }
        // One byte is enough for any number of requests, so the pipe never fills up.
        if !self.is_woken.swap(true, Ordering::SeqCst) {
            let mut wake = self.wake.as_ref().expect("it is there until the drop");
            // Without a reader there is no thread any more to be woken.
            drop(wake.write_all(&[1]));
        }
    }
}

impl Member for Uring {
    fn look(&self) -> Option<Look> {
        let medium = Arc::clone(&self.medium);
        Some(Box::new(move || medium.shortened().map(|error| error.to_string())))
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

/// What a drive's commands need to know of it.
struct Under {
    medium: Arc<Medium>,
    fast: Arc<FastFail>,
}

/// What the thread owns.
struct State<K: Kernel> {
    flights: Flights,
    /// What has come and is not under way: there is more than the window.
    waiting: VecDeque<Order>,
    window: usize,
    name_last: u64,
    kernel: K,
    under: Under,
    is_woken: Arc<AtomicBool>,
}

/// Everything whose memory the kernel may be using.
#[derive(Default)]
struct Flights(BTreeMap<u64, Flight>);

impl Drop for Flights {
    fn drop(&mut self) {
        std::mem::forget(std::mem::take(&mut self.0)); // U3
    }
}

impl<K: Kernel> State<K> {
    fn new(kernel: K, under: Under, window: u32, is_woken: Arc<AtomicBool>) -> Self {
        let (flights, waiting) = (Flights::default(), VecDeque::new());
        let window = window as usize;
        Self { flights, waiting, window, name_last: 0, kernel, under, is_woken }
    }

    fn run(mut self, orders: &Receiver<Order>) {
        let mut is_closing = false;
        let mut events = Vec::new();
        while !(is_closing && self.flights.0.is_empty()) {
            self.kernel.wait(&mut events);
            for event in events.drain(..) {
                match event {
                    Event::Ended { name, result } => self.advance(name, result),
                    Event::Woken | Event::Closed => {
                        is_closing = event == Event::Closed;
                        // Before the channel is looked at: what comes later writes a byte of its own.
                        self.is_woken.swap(false, Ordering::SeqCst);
                        self.waiting.extend(orders.try_iter());
                    }
                }
            }
            while self.flights.0.len() < self.window
                && let Some((request, done)) = self.waiting.pop_front()
            {
                self.begin(request, done);
            }
        }
    }

    fn begin(&mut self, request: Request, done: Done) {
        if let Command::Write { extent, .. } = request.command
            && let Err(error) = self.under.medium.check_writable()
        {
            drop(request); // M2
            return done(because(failed_write(extent, &error), &error));
        }
        self.name_last += 1;
        let name = self.name_last;
        self.flights.0.insert(name, Flight::new(request, done, &self.under));
        self.go_on(name);
    }

    /// Starts what a command needs next.
    fn go_on(&mut self, name: u64) {
        let flight = self.flights.0.get_mut(&name).expect("the flight is in the table");
        // SAFETY: U1: the flight's memory stays where it is while the flight is in the table, and it
        // leaves the table when its last step has ended.
        unsafe { self.kernel.start(name, flight) };
    }

    /// The kernel is through with a step.
    fn advance(&mut self, name: u64, result: i32) {
        let flight = self.flights.0.get_mut(&name).expect("the flight is in the table");
        match flight.advance(result, &self.under) {
            Progress::GoesOn => self.go_on(name),
            Progress::Ended(end) => {
                let flight = self.flights.0.remove(&name).expect("the flight is in the table");
                flight.answer(end);
            }
        }
    }
}
