//! A bound on what one connection has in flight, and its way to the bytes that all have together.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::budget::{Budget, Share};
use crate::socket::Socket;

/// What one connection may have in flight.
pub(super) const LIMITS: Limits = Limits { requests: 128, bytes: 64 << 20 };

/// What may be in flight at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Requests, from their arrival until their answers are sent. A write arrives with its head.
    pub(super) requests: usize,
    /// Bytes of these requests and their answers. A single request may be larger.
    pub(super) bytes: usize,
}

/// Counts what is in flight and lets further requests wait.
pub(super) struct InFlight {
    limits: Limits,
    budget: Arc<Budget>,
    /// The connection's, for the budget.
    socket: Arc<Socket>,
    used: Mutex<Used>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Used {
    requests: usize,
    /// Those of them that the service has yet to answer.
    unanswered: usize,
    bytes: usize,
    /// Threads that wait for any of this to change: without one, nothing is told.
    waiting: usize,
}

/// A request in flight. Over when dropped.
pub(super) struct Permit {
    in_flight: Arc<InFlight>,
    bytes: usize,
    /// Its part of the budget; a request without bytes has none.
    share: Option<Share>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Unanswered,
    Answered,
}

impl InFlight {
    pub(super) fn new(limits: Limits, budget: Arc<Budget>, socket: Arc<Socket>) -> Arc<Self> {
        let (used, freed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { limits, budget, socket, used, freed })
    }

    /// Waits until there is room for a request of `bytes` bytes, here and in the budget. Nothing if
    /// the budget has been closed.
    pub(super) fn enter(self: &Arc<Self>, bytes: usize) -> Option<Permit> {
        let full = |used: &Used| {
            let too_many = used.requests >= self.limits.requests;
            let too_large = used.requests > 0 && used.bytes + bytes > self.limits.bytes;
            too_many || too_large
        };
        let mut used = self.wait_while(full);
        used.requests += 1;
        used.unanswered += 1;
        used.bytes += bytes;
        drop(used);
        let in_flight = Arc::clone(self);
        let mut permit = Permit { in_flight, bytes, share: None, stage: Stage::Unanswered };
        if bytes > 0 {
            permit.share = Some(self.budget.take(bytes, &self.socket)?);
        }
        Some(permit)
    }

    /// Waits until the service has answered all that is in flight.
    pub(super) fn wait_answered(&self) {
        drop(self.wait_while(|used| used.unanswered > 0));
    }

    /// Waits until nothing is in flight.
    pub(super) fn wait_empty(&self) {
        drop(self.wait_while(|used| used.requests > 0));
    }

    fn wait_while(&self, is_busy: impl Fn(&Used) -> bool) -> MutexGuard<'_, Used> {
        let mut used = self.lock();
        while is_busy(&used) {
            used.waiting += 1;
            used = self.freed.wait(used).unwrap_or_else(PoisonError::into_inner);
            used.waiting -= 1;
        }
        used
    }

    /// Tells those that wait, if there are any: that takes a call of the system.
    fn note_freed(&self, used: MutexGuard<'_, Used>) {
        let is_awaited = used.waiting > 0;
        drop(used);
        if is_awaited {
            self.freed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Its bytes have yet to come.
    pub(super) fn announced(&self) {
        self.share.iter().for_each(Share::leave_to_client);
    }

    /// Its bytes have come.
    pub(super) fn received(&self) {
        self.share.iter().for_each(Share::leave_to_service);
    }

    /// The service has answered; the answer has yet to be sent.
    pub(super) fn answered(&mut self) {
        if self.stage == Stage::Unanswered {
            self.stage = Stage::Answered;
            self.share.iter().for_each(Share::leave_to_client);
            let mut used = self.in_flight.lock();
            used.unanswered -= 1;
            self.in_flight.note_freed(used);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.answered();
        let mut used = self.in_flight.lock();
        used.requests -= 1;
        used.bytes -= self.bytes;
        self.in_flight.note_freed(used);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn in_flight(limits: Limits) -> Arc<InFlight> {
        let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let budget = Budget::new(usize::MAX, std::time::Duration::MAX);
        InFlight::new(limits, budget, Arc::new(Socket::Unix(socket)))
    }

    #[test]
    fn request_past_either_limit_waits_for_another_to_end() {
        for (limits, bytes) in
            [(Limits { requests: 2, bytes: 100 }, 1), (Limits { requests: 9, bytes: 100 }, 40)]
        {
            let in_flight = in_flight(limits);
            let held = [in_flight.enter(bytes).unwrap(), in_flight.enter(bytes).unwrap()];
            let (sender, receiver) = mpsc::channel();
            let third = Arc::clone(&in_flight);
            let waiter = thread::spawn(move || {
                let permit = third.enter(bytes).unwrap();
                sender.send(third.lock().requests).unwrap();
                drop(permit);
            });
            assert_eq!(in_flight.lock().requests, 2, "the third cannot be in");
            drop(held);
            assert!(receiver.recv().unwrap() <= 2);
            waiter.join().unwrap();
            in_flight.wait_empty();
        }
    }

    #[test]
    fn request_larger_than_the_limit_runs_alone() {
        let in_flight = in_flight(Limits { requests: 2, bytes: 100 });
        let mut permit = in_flight.enter(1_000).unwrap();
        assert_eq!(in_flight.lock().bytes, 1_000);
        permit.answered();
        in_flight.wait_answered();
        assert_eq!(in_flight.lock().requests, 1, "its answer is yet to be sent");
        drop(permit);
        in_flight.wait_empty();
    }
}
