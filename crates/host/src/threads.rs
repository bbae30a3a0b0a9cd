//! A file or block device behind a few threads, each of which waits for one command at a time.
//!
//! Differs from a drive that knows efforts: a file is read as hard as the machine tries, and `Fast`
//! only decides what a failure is called.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::backend::{Backend, Order, Report, carry_out};
use crate::error::HostError;
use crate::medium::Medium;

/// More commands than this inside a disk gain nothing.
const THREADS_MAX: u32 = 8;

/// See the module.
pub(crate) struct Threads {
    /// Absent only while it is dropped: the end of the channel is the threads' end.
    orders: Option<Sender<Order>>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn start(
        medium: &Arc<Medium>,
        window: u32,
        report: &Report,
    ) -> Result<Self, HostError> {
        let (sender, receiver) = mpsc::channel();
        let orders = Arc::new(Mutex::new(receiver));
        let mut backend = Self { orders: Some(sender), threads: Vec::new() };
        for _ in 0..window.min(THREADS_MAX) {
            let (orders, medium, report) =
                (Arc::clone(&orders), Arc::clone(medium), Arc::clone(report));
            let work = move || work(&orders, &medium, &report);
            let thread = std::thread::Builder::new().name("drive".into()).spawn(work);
            backend.threads.push(
                thread
                    .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?,
            );
        }
        Ok(backend)
    }
}

fn work(orders: &Mutex<Receiver<Order>>, medium: &Medium, report: &Report) {
    loop {
        let order = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Order { sub, command, payload, origin: _ }) = order else { return };
        report(carry_out(medium, sub, &command, payload));
    }
}

impl Backend for Threads {
    fn submit(&mut self, order: Order) {
        let orders = self.orders.as_ref().expect("it is there until the drop");
        orders.send(order).expect("the threads live as long as the channel");
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.orders = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}
