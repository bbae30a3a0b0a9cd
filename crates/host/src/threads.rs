//! A file or block device behind a few threads, each of which waits for one command at a time.
//!
//! Differs from a drive that knows efforts: a file is read as hard as the machine tries, and `Fast`
//! only decides what a failure is called.

use std::sync::mpsc::{self, Receiver, SendError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use levelhead_block::{BlockService, Done, Reply, Request};
use levelhead_units::Sectors;

use crate::backend::{Look, Member, prepared};
use crate::blocking::carry_out;
use crate::error::HostError;
use crate::medium::Disk;

/// More commands than this inside a disk gain nothing.
const THREADS_MAX: u32 = 8;

type Order = (Request, Done);

/// See the module.
pub(crate) struct Threads<D> {
    disk: D,
    /// Absent only while it is dropped: the end of the channel is the threads' end.
    orders: Option<Sender<Order>>,
    threads: Vec<JoinHandle<()>>,
}

impl<D: Disk> Threads<D> {
    pub(crate) fn start(disk: D, window: u32) -> Result<Self, HostError> {
        let (sender, receiver) = mpsc::channel();
        let orders = Arc::new(Mutex::new(receiver));
        let mut member = Self { disk, orders: Some(sender), threads: Vec::new() };
        for _ in 0..window.min(THREADS_MAX) {
            let (orders, disk) = (Arc::clone(&orders), member.disk.clone());
            let work = move || work(&orders, disk);
            let thread = std::thread::Builder::new().name("drive".into()).spawn(work);
            member.threads.push(
                thread
                    .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?,
            );
        }
        Ok(member)
    }
}

fn work<D: Disk>(orders: &Mutex<Receiver<Order>>, mut disk: D) {
    loop {
        let order = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((request, done)) = order else { return };
        done(carry_out(&mut disk, request));
    }
}

impl<D: Disk> BlockService for Threads<D> {
    fn size(&self) -> Sectors {
        self.disk.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let Some(order) = prepared(self.size(), request, done) else { return };
        let orders = self.orders.as_ref().expect("it is there until the drop");
        if let Err(SendError((_, done))) = orders.send(order) {
            done(Reply::gone("its threads have ended"));
        }
    }
}

impl<D: Disk> Member for Threads<D> {
    fn look(&self) -> Option<Look> {
        let disk = self.disk.clone();
        Some(Box::new(move || disk.loss()))
    }
}

impl<D> Drop for Threads<D> {
    fn drop(&mut self) {
        self.orders = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}
