//! A bound on what one connection has in flight.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What one connection may have in flight, the request that is being received apart.
pub(super) const LIMITS: Limits = Limits { requests: 128, bytes: 64 << 20 };

/// What may be in flight at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Requests, from their arrival until their answers are sent.
    pub(super) requests: usize,
    /// Bytes of these requests and their answers. A single request may be larger.
    pub(super) bytes: usize,
}

/// Counts what is in flight and makes whoever brings more wait.
#[derive(Debug)]
pub(super) struct Gate {
    limits: Limits,
    used: Mutex<Used>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Used {
    requests: usize,
    /// Those of them that the service has yet to answer.
    unanswered: usize,
    bytes: usize,
}

/// A request in flight. Over when dropped.
#[derive(Debug)]
pub(super) struct Permit {
    gate: Arc<Gate>,
    bytes: usize,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Unanswered,
    Answered,
}

impl Gate {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, used: Mutex::default(), freed: Condvar::new() })
    }

    /// Waits until there is room for a request of so many bytes.
    pub(super) fn enter(self: &Arc<Self>, bytes: usize) -> Permit {
        let full = |used: &mut Used| {
            let too_many = used.requests >= self.limits.requests;
            let too_large = used.requests > 0 && used.bytes + bytes > self.limits.bytes;
            too_many || too_large
        };
        let mut used =
            self.freed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        used.requests += 1;
        used.unanswered += 1;
        used.bytes += bytes;
        Permit { gate: Arc::clone(self), bytes, stage: Stage::Unanswered }
    }

    /// Waits until the service has answered all that is in flight.
    pub(super) fn wait_answered(&self) {
        let busy = |used: &mut Used| used.unanswered > 0;
        drop(self.freed.wait_while(self.lock(), busy).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until nothing is in flight.
    pub(super) fn wait_empty(&self) {
        let busy = |used: &mut Used| used.requests > 0;
        drop(self.freed.wait_while(self.lock(), busy).unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// The service has answered; the answer has yet to be sent.
    pub(super) fn answered(&mut self) {
        if self.stage == Stage::Unanswered {
            self.stage = Stage::Answered;
            self.gate.lock().unanswered -= 1;
            self.gate.freed.notify_all();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.answered();
        let mut used = self.gate.lock();
        used.requests -= 1;
        used.bytes -= self.bytes;
        drop(used);
        self.gate.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn request_past_either_limit_waits_for_another_to_end() {
        for (limits, bytes) in
            [(Limits { requests: 2, bytes: 100 }, 1), (Limits { requests: 9, bytes: 100 }, 40)]
        {
            let gate = Gate::new(limits);
            let held = [gate.enter(bytes), gate.enter(bytes)];
            let (sender, receiver) = mpsc::channel();
            let third = Arc::clone(&gate);
            let waiter = thread::spawn(move || {
                let permit = third.enter(bytes);
                sender.send(third.lock().requests).unwrap();
                drop(permit);
            });
            assert_eq!(gate.lock().requests, 2, "the third cannot be in");
            drop(held);
            assert!(receiver.recv().unwrap() <= 2);
            waiter.join().unwrap();
            gate.wait_empty();
        }
    }

    #[test]
    fn request_larger_than_the_limit_runs_alone() {
        let gate = Gate::new(Limits { requests: 2, bytes: 100 });
        let mut permit = gate.enter(1_000);
        assert_eq!(gate.lock().bytes, 1_000);
        permit.answered();
        gate.wait_answered();
        assert_eq!(gate.lock().requests, 1, "its answer is yet to be sent");
        drop(permit);
        gate.wait_empty();
    }
}
