//! The waist: what a block request *is*, and the two traits of everything that stores sectors.
//!
//! ```text
//!   who asks        NBD server, array engine, filesystem, tests
//!                        |  Request { command, buf }            ^  Reply { outcome, buf }
//!                        v                                      |
//!   who answers     memory, file, emulated drive, array, NBD client, decorators over any of them
//! ```
//!
//! Everything here counts 4096-byte sectors.
//!
//! # How a read ends
//!
//! A read says how hard the device should try ([`Effort`]) and ends as an [`Outcome`]:
//!
//! - W1. `Fast` and `Limited` reads yield only *unknown* sectors: the device stopped trying. Nobody may
//!   conclude that they are damaged, rewrite them or count an error.
//! - W2. Only `Full` reads yield *damaged* sectors: the device tried everything it had.
//! - W3. Cancelled is not failed, and neither is gone data.
//! - W4. The sectors that are neither unknown nor damaged hold what was last written there.
//!
//! [`BlockService::submit`] has many requests in flight; [`BlockDevice::run`] waits for a batch.
//! [`adapter`] leads from each to the other, [`conformance`] runs on both, [`faulty`] and
//! [`crash`] are decorators that misbehave on purpose.

#![forbid(unsafe_code)]

pub mod adapter;
mod buf;
mod command;
pub mod conformance;
pub mod crash;
pub mod faulty;
mod health;
mod memory;
mod unwritten;

pub use buf::{Buf, Pool, PoolExhausted};
pub use command::{Command, Durability, Effort, Outcome, SectorSet, ZeroTail};
pub use health::Health;
pub use memory::Memory;
pub use unwritten::Unwritten;

use levelhead_units::Sectors;

/// One command and its bytes.
#[derive(Debug)]
pub struct Request {
    /// What to do.
    pub command: Command,
    /// As many sectors as the command carries: what to write, or room for what is read. Empty for
    /// commands without bytes.
    pub buf: Buf,
}

impl Request {
    /// `command` with `buf` as its bytes.
    ///
    /// Panics unless `buf` has as many sectors as the command carries.
    pub fn new(command: Command, buf: Buf) -> Self {
        assert_eq!(buf.sectors(), command.payload(), "{command:?} with another size of buffer");
        Self { command, buf }
    }

    /// A command that carries no bytes.
    pub fn bare(command: Command) -> Self {
        Self::new(command, Buf::empty())
    }
}

/// How a request ended, and its bytes back.
#[derive(Debug)]
pub struct Reply {
    /// How it ended.
    pub outcome: Outcome,
    /// The request's buffer; after a read, filled except where the outcome says otherwise.
    pub buf: Buf,
}

/// What to call when a request has ended.
pub type Done = Box<dyn FnOnce(Reply) + Send>;

/// Sectors behind a queue: many requests in flight, each answered exactly once, in any order.
pub trait BlockService: Send + Sync {
    /// How many sectors it has.
    fn size(&self) -> Sectors;

    /// Starts a request. `done` is called once, perhaps on another thread, perhaps before this
    /// returns.
    ///
    /// Panics if the command's extent does not fit the size: whoever takes addresses from outside
    /// checks them first.
    fn submit(&self, request: Request, done: Done);
}

/// Sectors that are asked for in batches.
pub trait BlockDevice: Send {
    /// How many sectors it has.
    fn size(&self) -> Sectors;

    /// Runs a batch and waits for all of it; replies come in the order of the requests. Requests
    /// of one batch may run in any order and must not overlap where one writes.
    ///
    /// Panics if an extent does not fit the size.
    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply>;
}

impl<D: BlockDevice + ?Sized> BlockDevice for Box<D> {
    fn size(&self) -> Sectors {
        (**self).size()
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        (**self).run(batch)
    }
}
