//! The clients of a server: their connections, each with a place on the [roll](super::roll).

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use levelhead_block::Pool;

use super::in_flight::InFlight;
use super::roll::{Roll, Stage};
use crate::socket::{Origin, Socket};
use crate::tls::TlsServer;

/// How long answers may take to reach clients once the server is stopping.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a client may have to wait for those that were dropped to end.
const CROWD_MAX: Duration = Duration::from_secs(2);

/// The pause after a client was dropped that had said nothing: so that one which connects without end leaves others
/// the time to say something.
const DROP_PAUSE: Duration = Duration::from_micros(200);

/// A client's socket, and what it has in flight.
pub(super) struct Connection {
    /// One that no other connection of the server has had.
    pub(super) number: u64,
    pub(super) socket: Arc<Socket>,
    pub(super) in_flight: InFlight,
    /// The time for the handshake, all of it.
    pub(super) handshake_max: Duration,
    /// Memory for the bytes of writes.
    pub(super) pool: Pool,
    /// What it is encrypted with, if it has to be.
    pub(super) tls: Option<TlsServer>,
    /// What is counted of all connections.
    pub(super) counts: Arc<Counts>,
}

/// What is counted of all connections.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) agreed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) requests: AtomicU64,
}

/// See the module.
pub(super) struct Clients {
    counts: Arc<Counts>,
    state: Mutex<State>,
    left: Condvar,
}

struct State {
    roll: Roll<Origin>,
    connections: BTreeMap<u64, Arc<Connection>>,
}

/// A connection's place, left when it is dropped.
pub(super) struct Seat {
    clients: Arc<Clients>,
    number: u64,
}

impl Clients {
    pub(super) fn new(agreed_max: usize) -> Arc<Self> {
        let (roll, connections) = (Roll::new(agreed_max), BTreeMap::new());
        let state = Mutex::new(State { roll, connections });
        Arc::new(Self { counts: Arc::default(), state, left: Condvar::new() })
    }

    pub(super) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// All that are connected.
    pub(super) fn count(&self) -> usize {
        self.lock().connections.len()
    }

    /// Those that have chosen an export.
    pub(super) fn agreed(&self) -> usize {
        self.lock().roll.count(Stage::Agreed)
    }

    /// A place for a connection with a number higher than all others, perhaps in the place of an older one.
    /// None if too many have yet to end.
    pub(super) fn enter(
        self: &Arc<Self>,
        number: u64,
        origin: Origin,
        connection: Arc<Connection>,
    ) -> Option<Seat> {
        let crowded = |state: &mut State| state.roll.is_crowded();
        let waited = self.left.wait_timeout_while(self.lock(), CROWD_MAX, crowded);
        let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        state.roll.enter(number, origin);
        state.connections.insert(number, connection);
        let mut has_dropped = false;
        while let Some(surplus) = state.roll.surplus(Stage::Silent) {
            // What it has said may not have been read yet.
            if state.connections[&surplus].socket.has_bytes() {
                self.speak(&mut state, surplus);
            } else {
                self.drop_one(&mut state, surplus);
                has_dropped = true;
            }
        }
        drop(state);
        if has_dropped {
            thread::sleep(DROP_PAUSE);
        }
        Some(Seat { clients: Arc::clone(self), number })
    }

    fn speak(&self, state: &mut State, number: u64) {
        state.roll.speak(number);
        if let Some(surplus) = state.roll.surplus(Stage::Talking) {
            self.drop_one(state, surplus);
        }
    }

    fn drop_one(&self, state: &mut State, number: u64) {
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        state.roll.drop(number);
        state.connections[&number].socket.shutdown(Shutdown::Both);
    }

    /// Closes every connection, after the answers to what is in flight. None may enter any more.
    pub(super) fn close(&self) {
        let connections: Vec<Arc<Connection>> = self.lock().connections.values().cloned().collect();
        for connection in &connections {
            connection.socket.shutdown(Shutdown::Read);
        }
        for connection in &connections {
            connection.in_flight.wait_answered();
        }
        let some = |state: &mut State| !state.connections.is_empty();
        let waited = self.left.wait_timeout_while(self.lock(), FAREWELL, some);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let left = state.connections.values();
        left.for_each(|connection| connection.socket.shutdown(Shutdown::Both));
        drop(self.left.wait_while(state, some).unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// The client has said something.
    pub(super) fn speak(&self) {
        self.clients.speak(&mut self.clients.lock(), self.number);
    }

    /// The client wants an export. Whether it may have it: not if there are too many.
    pub(super) fn agree(&self) -> bool {
        let may = self.clients.lock().roll.agree(self.number);
        let Counts { agreed, refused, .. } = &*self.clients.counts;
        let count = if may { agreed } else { refused };
        count.fetch_add(1, Ordering::Relaxed);
        may
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.clients.lock();
        state.roll.leave(self.number);
        state.connections.remove(&self.number);
        drop(state);
        self.clients.left.notify_all();
    }
}
