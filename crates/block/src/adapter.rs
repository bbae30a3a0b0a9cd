//! From each of the two traits to the other.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use levelhead_units::Sectors;

use crate::{BlockDevice, BlockService, Done, Reply, Request};

/// A [`BlockDevice`] over a [`BlockService`]: submits the whole batch, then waits.
pub struct Waiting<S: ?Sized>(Arc<S>);

impl<S: BlockService + ?Sized> Waiting<S> {
    /// Waits on `service`.
    pub fn new(service: Arc<S>) -> Self {
        Self(service)
    }
}

impl<S: BlockService + ?Sized> BlockDevice for Waiting<S> {
    fn size(&self) -> Sectors {
        self.0.size()
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        let (sender, receiver) = mpsc::channel();
        let count = batch.len();
        for (at, request) in batch.into_iter().enumerate() {
            let sender = sender.clone();
            // The receiver outlives every request: it waits for all of them below.
            self.0.submit(request, Box::new(move |reply| drop(sender.send((at, reply)))));
        }
        drop(sender);
        let mut replies: Vec<Option<Reply>> = (0..count).map(|_| None).collect();
        for (at, reply) in receiver {
            assert!(replies[at].is_none(), "request {at} was answered twice");
            replies[at] = Some(reply);
        }
        replies.into_iter().map(|reply| reply.expect("a service answers every request")).collect()
    }
}

/// A [`BlockService`] over a [`BlockDevice`]: one request at a time, answered before `submit`
/// returns.
pub struct OneByOne<D>(Mutex<D>);

impl<D: BlockDevice> OneByOne<D> {
    /// Serves `device`.
    pub fn new(device: D) -> Self {
        Self(Mutex::new(device))
    }
}

impl<D: BlockDevice> BlockService for OneByOne<D> {
    fn size(&self) -> Sectors {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size()
    }

    fn submit(&self, request: Request, done: Done) {
        let mut device = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = device.run(vec![request]).pop().expect("one request, one reply");
        drop(device);
        done(reply);
    }
}
