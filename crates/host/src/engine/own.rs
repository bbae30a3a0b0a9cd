//! The drives whose commands the engine's own thread sees to, without another thread between: files and
//! devices behind its ring, and files in memory ([`medium`](crate::medium)), which need none.
//!
//! A command for a file in memory is carried out when its turn comes and not where it is submitted: so its end
//! is handled like every other one, after the actions that the array has asked for before, and other inputs
//! are looked at in between.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use levelhead_array::SubId;
use levelhead_block::{Data, Reply, Request};
use levelhead_units::DriveIdx;

use super::Ended;
use super::inbox::Inbox;
use crate::backend::prepare;
use crate::blocking::carry_out;
use crate::error::HostError;
use crate::medium::{Medium, Shared};
use crate::uring::{self, Driver, Kernel, Under};

/// The engine's ring, which a test puts another kernel into.
pub(crate) type Ring = Driver<Box<dyn Kernel>, Tag>;

/// What the engine knows a command by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    pub(crate) drive: DriveIdx,
    pub(crate) sub: SubId,
}

/// What becomes of what is under way when an engine has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing is.
    Nothing,
    /// Commands are in the kernel, and even the end of the thread would wait for them.
    Commands,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Own {
    ring: Option<Ring>,
    /// For files in memory, first come, first served.
    at_once: VecDeque<AtOnce>,
}

/// A command whose turn will come.
struct AtOnce {
    tag: Tag,
    medium: Arc<Medium>,
    request: Request,
}

impl Own {
    pub(crate) fn new(ring: Option<Ring>) -> Self {
        Self { ring, at_once: VecDeque::new() }
    }

    /// Takes a command for the ring's drive of this number; it is on its way after the next
    /// [`Own::wait`].
    pub(super) fn submit(&mut self, lane: usize, request: Request, tag: Tag) {
        let ring = self.ring.as_mut().expect("a drive of the ring comes with it");
        let command = request.command;
        match prepare(ring.under(lane).medium.size(), request) {
            Some(request) => ring.submit(lane, request, tag),
            None => ring.pass(tag, command),
        }
    }

    /// Takes a command for a file in memory; it ends when its turn comes.
    pub(super) fn submit_at_once(&mut self, medium: &Arc<Medium>, request: Request, tag: Tag) {
        self.at_once.push_back(AtOnce { tag, medium: Arc::clone(medium), request });
    }

    /// Whether a command for this file waits for its turn.
    pub(super) fn has_for(&self, medium: &Arc<Medium>) -> bool {
        self.at_once.iter().any(|waiting| Arc::ptr_eq(&waiting.medium, medium))
    }

    /// Lets go of the ring's drive of this number, which is given nothing any more. Whether it has: not while it has something
    /// inside.
    pub(super) fn release(&mut self, lane: usize) -> bool {
        self.ring.as_mut().is_none_or(|ring| ring.release(lane))
    }

    /// Waits until there is an input, which it gives, a command has ended, or for this long.
    pub(super) fn wait<T>(&mut self, inbox: &Inbox<T>, patience: Duration) -> Option<T> {
        let patience = if self.at_once.is_empty() { patience } else { Duration::ZERO };
        match &mut self.ring {
            Some(ring) if !ring.is_idle() => {
                inbox.wait_in_ring(patience, |patience| ring.wait(Some(patience)))
            }
            Some(_) | None => inbox.wait(patience),
        }
    }

    /// A command that has ended in the ring.
    pub(super) fn next_ended(&mut self) -> Option<Ended> {
        let uring::Ended { tag: Tag { drive, sub }, command, reply } =
            self.ring.as_mut()?.next_ended()?;
        Some(Ended { drive, sub, command, reply })
    }

    /// Carries out the command whose turn it is.
    pub(super) fn carry_out_next(&mut self) -> Option<Ended> {
        let AtOnce { tag: Tag { drive, sub }, medium, request } = self.at_once.pop_front()?;
        let command = request.command;
        let reply = match prepare(medium.size(), request) {
            Some(request) => carry_out(&mut Shared(medium), request),
            None => Reply::good(Data::None),
        };
        Some(Ended { drive, sub, command, reply })
    }

    /// What would be left behind now.
    pub(super) fn rest(&self) -> Rest {
        let is_idle = self.ring.as_ref().is_none_or(Driver::is_idle);
        if is_idle { Rest::Nothing } else { Rest::Commands }
    }
}

/// What a ring for these drives is made of, with `window` commands inside each at a time.
pub(crate) fn ring(
    drives: Vec<Arc<Under>>,
    window: u32,
    wrap: impl FnOnce(Box<dyn Kernel>) -> Box<dyn Kernel>,
) -> Result<(Ring, crate::bell::Bell), HostError> {
    let (kernel, bell) = uring::open(&drives, window)?;
    Ok((Driver::new(wrap(Box::new(kernel)), drives, window), bell))
}
