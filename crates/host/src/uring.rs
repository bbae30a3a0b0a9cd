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
//! reads it waits for, and so new orders wake it. What a command needs next is decided in [`flight`],
//! what the kernel is told in [`ring`]; a test puts a kernel of its own in the ring's place.
//!
//! # Safety
//!
//! - U1. Memory that the kernel reads or writes belongs to a [`Flight`] (or to the ring), and is neither
//!   moved nor freed nor looked at from its submission to its completion.
//! - U2. A command has at most one entry in the submission queue, so the queue never overflows.
//! - U3. If the thread has to give up with commands in the kernel, their memory is leaked.

#![allow(unsafe_code)]

mod flight;
mod ring;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, PipeWriter, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use io_uring::{IoUring, Probe, opcode};
use levelhead_block::{Command, Outcome};

use self::flight::{Flight, Progress};
use self::ring::{Event, Kernel, Ring};
use crate::backend::{Backend, Ended, Order, Payload, Report, failed_read, failed_write, flushed};
use crate::devices::fast::FastFail;
use crate::error::HostError;
use crate::medium::Medium;

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
        fast: Arc<FastFail>,
        window: u32,
        report: Report,
    ) -> Result<Self, HostError> {
        let failed =
            |error: io::Error| HostError::new(format!("cannot start an io_uring: {error}"));
        let (pipe, wake) = io::pipe().map_err(failed)?;
        let (orders, receiver) = mpsc::channel();
        let entries = (window + 1).next_power_of_two();
        let ring =
            Ring::new(entries, Arc::clone(&medium), Arc::clone(&fast), pipe).map_err(failed)?;
        let state = State { flights: Flights::default(), kernel: ring, medium, fast, report };
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
struct State<K: Kernel> {
    flights: Flights,
    kernel: K,
    medium: Arc<Medium>,
    fast: Arc<FastFail>,
    report: Report,
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
                        while let Ok(order) = orders.try_recv() {
                            self.begin(order);
                        }
                    }
                }
            }
        }
    }

    fn begin(&mut self, order: Order) {
        let name = order.sub.0;
        let flight = Flight::new(order, &self.fast);
        assert!(self.flights.0.insert(name, flight).is_none(), "{name} is under way already");
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
        match flight.advance(result, &self.fast) {
            Progress::GoesOn => self.go_on(name),
            Progress::Ended(result) => {
                let flight = self.flights.0.remove(&name).expect("the flight is in the table");
                self.finish(flight, result);
            }
        }
    }

    fn finish(&self, Flight { order, moved, .. }: Flight, result: io::Result<()>) {
        let Order { sub, command, payload, .. } = order;
        let error = result.err();
        let (outcome, buf) = match (command, payload) {
            (Command::Read { extent, effort }, Payload::Fill(mut buf)) => {
                let failed =
                    |error| failed_read(&self.medium, extent, effort, &mut buf, moved, error);
                (error.as_ref().map_or(Outcome::GOOD, failed), Some(buf))
            }
            (Command::Write { extent, .. }, Payload::Pieces(pieces)) => {
                drop(pieces); // B2
                let failed = |error| failed_write(extent, error);
                (error.as_ref().map_or(Outcome::GOOD, failed), None)
            }
            (_, _) => (flushed(error.as_ref()), None),
        };
        (self.report)(Ended { sub, outcome, buf, error });
    }
}
