//! A bound on the bytes that all connections of a server have in flight together.
//!
//! A request takes its bytes before there is memory for them, and gives them back when it is over.
//!
//! # Invariants
//!
//! - B1. At most `bytes_max` bytes are taken; more only by a single request, while no other has any.
//! - B2. Requests take their bytes in the order in which they ask, so that small ones do not pass a
//!   large one again and again. A request without bytes does not ask.
//! - B3. While one request waits, no other is with its client for longer than twice `hold_max`:
//!   waiting for its own bytes, or for its answer to be taken. The socket of such a client is shut
//!   down, and everything that it holds is given back.
//! - B4. After [`Budget::close`] no request waits.
//!
//! A request that holds its bytes asks for nothing more, so requests never wait for each other in a
//! circle. What the device below takes is not limited here: a device that does not answer keeps the
//! bytes it was given.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::socket::Socket;

/// The bytes that all connections may have in flight together.
pub(super) struct Budget {
    bytes_max: usize,
    hold_max: Duration,
    state: Mutex<BudgetState>,
    changed: Condvar,
}

#[derive(Default)]
struct BudgetState {
    taken: usize,
    /// Requests that have asked so far. Each is known by how many asked before it.
    asked: u64,
    /// Those of them that had their turn.
    served: u64,
    holders: BTreeMap<u64, Holder>,
    closed: bool,
}

/// A request that holds bytes.
struct Holder {
    socket: Arc<Socket>,
    held_by: HeldBy,
}

/// Who has to act before a request gives its bytes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldBy {
    Service,
    /// The client, since then.
    Client(Instant),
}

/// The bytes of one request. Given back when dropped.
pub(super) struct Share {
    budget: Arc<Budget>,
    request: u64,
    bytes: usize,
}

impl Budget {
    pub(super) fn new(bytes_max: usize, hold_max: Duration) -> Arc<Self> {
        Arc::new(Self { bytes_max, hold_max, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Waits until `bytes` bytes can be had for a request of the client at `socket`: the bytes, held
    /// by the service, or nothing if the budget is closed.
    pub(super) fn take(self: &Arc<Self>, bytes: usize, socket: &Arc<Socket>) -> Option<Share> {
        let mut state = self.lock();
        let request = state.asked;
        state.asked += 1;
        loop {
            if state.closed {
                return None;
            }
            if state.served == request {
                if state.taken == 0 || state.taken + bytes <= self.bytes_max {
                    break;
                }
                // The one whose turn it is watches over those that hold what it waits for.
                let waited = self.changed.wait_timeout(state, self.hold_max);
                (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
                state.end_overdue(self.hold_max);
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state.served += 1;
        state.taken += bytes;
        let socket = Arc::clone(socket);
        state.holders.insert(request, Holder { socket, held_by: HeldBy::Service });
        self.note_changed(state);
        Some(Share { budget: Arc::clone(self), request, bytes })
    }

    /// Lets no request wait any more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Tells the requests that wait, if there are any: that takes a call of the system.
    fn note_changed(&self, state: MutexGuard<'_, BudgetState>) {
        let is_awaited = state.asked > state.served;
        drop(state);
        if is_awaited {
            self.changed.notify_all();
        }
    }

    /// Bytes taken, and requests that wait.
    #[cfg(test)]
    fn figures(&self) -> (usize, u64) {
        let state = self.lock();
        (state.taken, state.asked - state.served)
    }

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetState {
    /// Shuts down the socket of every client that has held a request for `hold_max`.
    fn end_overdue(&self, hold_max: Duration) {
        for Holder { socket, held_by } in self.holders.values() {
            match held_by {
                HeldBy::Client(since) if since.elapsed() >= hold_max => {
                    socket.shutdown(Shutdown::Both);
                }
                HeldBy::Client(_) | HeldBy::Service => {}
            }
        }
    }
}

impl Share {
    /// The client has to send the request's bytes, or to take its answer, before it goes on.
    pub(super) fn leave_to_client(&self) {
        self.hold_by(HeldBy::Client(Instant::now()));
    }

    /// The service has to answer before the request goes on.
    pub(super) fn leave_to_service(&self) {
        self.hold_by(HeldBy::Service);
    }

    fn hold_by(&self, held_by: HeldBy) {
        let mut state = self.budget.lock();
        let holder = state.holders.get_mut(&self.request);
        holder.expect("a share that is not dropped is held").held_by = held_by;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.budget.lock();
        state.holders.remove(&self.request);
        state.taken -= self.bytes;
        self.budget.note_changed(state);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{self, Receiver};
    use std::thread;

    use super::*;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_secs(3600);

    /// A connection: the server's end, and the client's.
    fn connection() -> (Arc<Socket>, UnixStream) {
        let (server, client) = UnixStream::pair().unwrap();
        (Arc::new(Socket::Unix(server)), client)
    }

    /// Asks on a thread of its own, and returns once that waits or has what it asked for.
    fn ask(budget: &Arc<Budget>, bytes: usize) -> Receiver<Option<Share>> {
        let (sender, receiver) = mpsc::channel();
        let asked = budget.lock().asked;
        let asking = Arc::clone(budget);
        let (socket, _) = connection();
        thread::spawn(move || sender.send(asking.take(bytes, &socket)));
        while budget.lock().asked == asked {
            thread::yield_now();
        }
        receiver
    }

    fn share(receiver: &Receiver<Option<Share>>) -> Share {
        receiver.recv().unwrap().expect("the budget is open")
    }

    #[test]
    fn requests_wait_for_room_and_take_it_in_the_order_they_ask() {
        let budget = Budget::new(100, LONG);
        let first = share(&ask(&budget, 60));
        let large = ask(&budget, 90);
        let small = ask(&budget, 10);
        assert_eq!(budget.figures(), (60, 2), "the small one would fit, and waits its turn");
        drop(first);
        let large = share(&large);
        let small = share(&small);
        assert_eq!(budget.figures(), (100, 0));
        drop((large, small));
        assert_eq!(budget.figures(), (0, 0));
    }

    #[test]
    fn request_larger_than_all_there_is_goes_alone() {
        let budget = Budget::new(100, LONG);
        let first = share(&ask(&budget, 1));
        let huge = ask(&budget, 1_000);
        assert_eq!(budget.figures(), (1, 1));
        drop(first);
        let huge = share(&huge);
        let after = ask(&budget, 1);
        assert_eq!(budget.figures(), (1_000, 1));
        drop(huge);
        drop(share(&after));
    }

    #[test]
    fn client_that_keeps_what_another_waits_for_is_shut_down() {
        let budget = Budget::new(100, Duration::from_millis(20));
        let (keeping, mut its_client) = connection();
        let (serving, mut other_client) = connection();
        let kept = budget.take(50, &keeping).unwrap();
        let served = budget.take(50, &serving).unwrap();
        kept.leave_to_client();
        served.leave_to_client();
        served.leave_to_service();
        let waiting = ask(&budget, 50);
        assert_eq!(its_client.read(&mut [0]).unwrap(), 0, "its socket is shut down");
        other_client.set_nonblocking(true).unwrap();
        assert!(other_client.read(&mut [0]).is_err(), "the service's time is not the client's");
        drop(kept);
        drop(share(&waiting));
        drop(served);
    }

    #[test]
    fn closed_budget_sends_away_all_that_wait() {
        let budget = Budget::new(100, LONG);
        let first = share(&ask(&budget, 100));
        let waiting = [ask(&budget, 100), ask(&budget, 1)];
        budget.close();
        for receiver in &waiting {
            assert!(receiver.recv().unwrap().is_none());
        }
        assert!(ask(&budget, 1).recv().unwrap().is_none());
        drop(first);
        assert_eq!(budget.lock().taken, 0);
    }
}
