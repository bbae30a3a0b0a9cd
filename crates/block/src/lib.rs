//! The waist: what a block request *is*, and the two traits of everything that stores sectors.
//!
//! ```text
//!   who asks        NBD server, array engine, filesystem, tests
//!                        |  Request { command, origin, payload }   ^  Reply { outcome, data, reason }
//!                        v                                         |
//!   who answers     memory, file, emulated drive, array, NBD client, decorators over any of them
//! ```
//!
//! Everything here counts 4096-byte sectors.
//!
//! # How a read ends
//!
//! A read says how hard the device should try ([`Effort`]) and ends as an [`Outcome`]:
//!
//! - W1. `Fast` and `Limited` reads yield only *unknown* sectors: the device stopped trying. The
//!   caller must not conclude that they are damaged, rewrite them or count an error.
//! - W2. Only `Full` and `Medium` reads yield *damaged* sectors: the device tried everything it had.
//! - W3. Refused and unreachable are not failed: the machine did not carry the command out, or was not reached, and it may
//!   be sent again. Only what is refused says that the device itself is there.
//! - W4. The sectors that are neither unknown nor damaged hold what was last written there.
//! - W5. A `Medium` read gives what a power cut at its end would leave, also where that is not what was last
//!   written: it is how a lost write is found. Where nothing is wrong W4 holds as well.
//!
//! [`BlockService::submit`] has many requests in flight; [`BlockDevice::run`] waits for a batch.
//! [`adapter`] leads from each to the other, [`conformance`] runs on both, [`faulty`] and
//! [`crash`] are decorators that misbehave on purpose. [`semaphore`] bounds what callers have in flight.

#![forbid(unsafe_code)]

pub mod adapter;
mod buf;
mod command;
pub mod conformance;
pub mod crash;
pub mod faulty;
mod health;
mod memory;
mod names;
mod request;
pub mod semaphore;
mod silent;

pub use buf::{Buf, Pool};
pub use command::{Command, Durability, Effort, Outcome, SectorSet, ZeroTail};
pub use health::Health;
pub use memory::Memory;
pub use names::{BufId, Combine, Place, RequestId, Segment};
pub use request::{Data, Payload, Piece, Reply, Request};
pub use silent::{Aftermath, Flip, Silent, SilentWrite, What};

use levelhead_units::Sectors;

/// What to call when a request has ended.
pub type Done = Box<dyn FnOnce(Reply) + Send>;

/// Sectors behind a queue: many requests in flight, each answered exactly once, in any order.
pub trait BlockService: Send + Sync {
    /// How many sectors it has.
    fn size(&self) -> Sectors;

    /// Starts a request. `done` is called once, perhaps on another thread, perhaps before this
    /// returns.
    ///
    /// Panics if the command's extent does not fit the size: a caller that takes addresses from
    /// outside checks them first.
    fn submit(&self, request: Request, done: Done);

    /// Nothing more will be asked of it. What it has may end; it begins nothing by itself from now on, and what keeps its
    /// sectors right on its own stops doing that.
    fn leave(&self) {}
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
