//! A file or block device behind a few threads, each of which waits for one command at a time.
//!
//! Differs from a drive that knows efforts: a file is read as hard as the machine tries, and `Fast`
//! only decides what a failure is called.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// Commands that wait for a thread. Each wakes one thread, and none that is busy.
#[derive(Default)]
struct Orders {
    waiting: Mutex<Waiting>,
    more: Condvar,
}

#[derive(Default)]
struct Waiting {
    orders: VecDeque<Order>,
    /// Nothing more will come.
    is_over: bool,
    /// Threads that there are.
    threads: usize,
}

/// A thread, until this is dropped.
struct Worker(Arc<Orders>);

impl Orders {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, order: Order) {
        let mut waiting = self.lock();
        if waiting.threads == 0 {
            drop(waiting);
            return gone(order);
        }
        waiting.orders.push_back(order);
        drop(waiting);
        self.more.notify_one();
    }

    /// The next one; nothing at the end.
    fn next(&self) -> Option<Order> {
        let mut waiting = self.lock();
        loop {
            match waiting.orders.pop_front() {
                None if !waiting.is_over => {
                    waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                }
                order => return order,
            }
        }
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.more.notify_all();
    }
}

/// See the module.
pub(crate) struct Threads<D> {
    disk: D,
    orders: Arc<Orders>,
    threads: Vec<JoinHandle<()>>,
}

impl<D: Disk> Threads<D> {
    pub(crate) fn start(disk: D, window: u32) -> Result<Self, HostError> {
        let orders = Arc::<Orders>::default();
        let mut member = Self { disk, orders: Arc::clone(&orders), threads: Vec::new() };
        for _ in 0..window.min(THREADS_MAX) {
            orders.lock().threads += 1;
            let (worker, disk) = (Worker(Arc::clone(&orders)), member.disk.clone());
            let work = move || work(&worker.0, disk);
            let thread = std::thread::Builder::new().name("drive".into()).spawn(work);
            member.threads.push(
                thread
                    .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?,
            );
        }
        Ok(member)
    }
}

impl Drop for Worker {
    /// One that panics ends, and what waits when the last one does is told so.
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.threads -= 1;
        let left =
            if waiting.threads == 0 { mem::take(&mut waiting.orders) } else { VecDeque::new() };
        drop(waiting);
        left.into_iter().for_each(gone);
    }
}

fn gone((_, done): Order) {
    done(Reply::gone("its threads have ended"));
}

fn work<D: Disk>(orders: &Orders, mut disk: D) {
    while let Some((request, done)) = orders.next() {
        done(carry_out(&mut disk, request));
    }
}

impl<D: Disk> BlockService for Threads<D> {
    fn size(&self) -> Sectors {
        self.disk.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let Some(order) = prepared(self.size(), request, done) else { return };
        self.orders.push(order);
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
        self.orders.end();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}
