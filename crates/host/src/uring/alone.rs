//! One drive behind a ring, with a thread of its own: how a test asks a ring what it asks every other member.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SendError, Sender, TryRecvError};
use std::thread::JoinHandle;

use levelhead_block::{BlockService, Done, Reply, Request};
use levelhead_units::Sectors;

use super::{Driver, Ended, Kernel, Under, open};
use crate::backend::{Look, Member, prepared};
use crate::bell::Bell;
use crate::devices::ways::ReadWays;
use crate::error::HostError;
use crate::medium::Medium;

type Order = (Request, Done);

/// See the module.
pub(crate) struct Uring {
    medium: Arc<Medium>,
    /// Absent only while it is dropped.
    orders: Option<Sender<Order>>,
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Uring {
    pub(crate) fn start(
        medium: Arc<Medium>,
        ways: Arc<ReadWays>,
        window: u32,
    ) -> Result<Self, HostError> {
        let (orders, receiver) = mpsc::channel();
        let under = Arc::new(Under { medium: Arc::clone(&medium), ways });
        let (ring, bell) = open(&[Arc::clone(&under)], window)?;
        let bell = Arc::new(bell);
        let worker = Worker::new(ring, under, window, Arc::clone(&bell));
        let thread = std::thread::Builder::new()
            .name("drive".into())
            .spawn(move || worker.run(&receiver))
            .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?;
        Ok(Self { medium, orders: Some(orders), bell, thread: Some(thread) })
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
        self.bell.ring();
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
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

/// What the thread of a drive owns.
pub(super) struct Worker<K: Kernel> {
    driver: Driver<K, Done>,
    bell: Arc<Bell>,
}

impl<K: Kernel> Worker<K> {
    pub(super) fn new(kernel: K, under: Arc<Under>, window: u32, bell: Arc<Bell>) -> Self {
        Self { driver: Driver::new(kernel, vec![under], window), bell }
    }

    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            self.bell.arm();
            let is_closing = loop {
                match orders.try_recv() {
                    Ok((request, done)) => self.driver.submit(0, request, done),
                    Err(TryRecvError::Empty) => break false,
                    Err(TryRecvError::Disconnected) => break true,
                }
            };
            if is_closing && self.driver.is_idle() {
                return;
            }
            self.driver.wait(None);
            while let Some(Ended { tag, reply, .. }) = self.driver.next_ended() {
                tag(reply);
            }
        }
    }
}
