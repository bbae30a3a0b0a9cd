//! A bound on the bytes that all connections of a server have in flight together.
//!
//! ```text
//!   bytes_max   [ shared by all                              | floor | floor | floor | .. ]
//!                                                              one for each connection
//! ```
//!
//! A request takes its bytes before there is memory for them, and gives them back when it is over.
//!
//! # Invariants
//!
//! - B1. At most `bytes_max` bytes are taken; more only by a single request that is larger than all that is
//!   shared, while no other has any of that.
//! - B2. Only a write that is larger than its connection's floor waits for other connections: in the order in which
//!   they ask, so that small ones do not pass a large one again and again. A connection asks for one request at a
//!   time, so connections take turns. All others take what is shared if there is some at once, and use the floor
//!   otherwise: a read that is larger goes through it [piece by piece](super::pieces). A request without bytes does
//!   not ask.
//! - B3. When a request does not find room in what is shared, and while one waits for it or for its connection's own
//!   bytes, the socket of a client is shut down that has kept some of what is shared for `hold_max`, or for `stall_max`
//!   without taking a byte of its answers, or sending one of its write: everything that it holds is given back.
//! - B4. After [`Budget::close`] no request waits for other connections.
//!
//! A request that holds its bytes asks for nothing more, so requests never wait for each other in a
//! circle. What the device below takes is not limited here: a device that does not answer keeps the
//! bytes it was given.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use levelhead_block::semaphore::{Class, Limit, Permit, Semaphore, Weight};
use levelhead_units::SECTOR_SIZE;

use super::Bounds;
use crate::socket::Socket;

/// The largest floor of a connection. Smaller ones are for servers with more connections than usual: all floors
/// together are a quarter of the bytes at most.
pub(super) const FLOOR_MAX: usize = 1 << 20;

/// The first request that waits looks so often for overdue clients in the time that one may stall.
const LOOKS: u32 = 8;

/// The bytes that all connections may have in flight together.
pub(super) struct Budget {
    shared: Arc<Semaphore>,
    floor: usize,
    stall_max: Duration,
    hold_max: Duration,
    holders: Mutex<Holders>,
    /// Times are counted from here on.
    since: Instant,
}

/// The requests that hold some of what is shared, by the order of their coming.
#[derive(Default)]
struct Holders {
    next: u64,
    /// When [`Budget::look`] is due.
    next_look: Duration,
    holders: BTreeMap<u64, Holder>,
}

/// A request that holds bytes.
struct Holder {
    account: Arc<Account>,
    held_by: HeldBy,
}

/// Who has to act before a request gives its bytes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldBy {
    Service,
    /// The client, since then: it has yet to send the bytes of a write, or to take its answer.
    Client(Wait, Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    ForBytes,
    ForTaking,
}

/// What one connection has of the budget.
pub(super) struct Account {
    budget: Arc<Budget>,
    socket: Arc<Socket>,
    floor: Arc<Semaphore>,
    /// When the client has last sent something, in nanoseconds.
    sent: AtomicU64,
    /// When it has last taken something.
    taken: AtomicU64,
    /// Whether it was disconnected for what it held.
    is_ended: AtomicBool,
}

/// The bytes of one request. Given back when dropped.
pub(super) struct Share {
    account: Arc<Account>,
    /// Its number among those that hold some of what is shared.
    holder: Option<u64>,
    _bytes: Permit,
}

impl Budget {
    pub(super) fn new(bounds: &Bounds) -> Arc<Self> {
        let Bounds { bytes_max, connections_max, stall_max, hold_max, .. } = *bounds;
        let floor = (bytes_max / 4 / connections_max.max(1)).min(FLOOR_MAX);
        let floor = floor / SECTOR_SIZE * SECTOR_SIZE;
        let shared = bytes_max - floor * connections_max;
        let limit = Weight { requests: u32::MAX, bytes: shared as u64 };
        let shared = Semaphore::new(Limit::of(limit));
        let (holders, since) = (Mutex::default(), Instant::now());
        Arc::new(Self { shared, floor, stall_max, hold_max, holders, since })
    }

    /// Lets no request wait for other connections any more.
    pub(super) fn close(&self) {
        self.shared.close();
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// The same as [`Budget::end_overdue`], if that is due: what is refused room comes often.
    fn look(&self) {
        let now = self.now();
        let is_due = {
            let mut holders = self.lock();
            let is_due = holders.next_look <= now;
            if is_due {
                holders.next_look = now + self.stall_max / LOOKS;
            }
            is_due
        };
        if is_due {
            self.end_overdue();
        }
    }

    /// Shuts down the socket of every client that has held a request for too long (B3).
    fn end_overdue(&self) {
        let now = self.now();
        for Holder { account, held_by } in self.lock().holders.values() {
            let HeldBy::Client(wait, since) = *held_by else { continue };
            let moved = match wait {
                Wait::ForBytes => &account.sent,
                Wait::ForTaking => &account.taken,
            };
            let moved = Duration::from_nanos(moved.load(Ordering::Relaxed)).max(since);
            let is_stalled = now.saturating_sub(moved) >= self.stall_max;
            if is_stalled || now.saturating_sub(since) >= self.hold_max {
                account.is_ended.store(true, Ordering::Relaxed);
                account.socket.shutdown(Shutdown::Both);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Holders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// Of the client at `socket`.
    pub(super) fn new(budget: Arc<Budget>, socket: Arc<Socket>) -> Arc<Self> {
        let limit = Weight { requests: u32::MAX, bytes: budget.floor as u64 };
        let floor = Semaphore::new(Limit::of(limit));
        let [sent, taken] = [(); 2].map(|()| AtomicU64::new(0));
        Arc::new(Self { budget, socket, floor, sent, taken, is_ended: AtomicBool::new(false) })
    }

    /// The most bytes of a request that never waits for other connections.
    pub(super) fn floor(&self) -> usize {
        self.budget.floor
    }

    /// Waits until `bytes` bytes can be had for a request: the bytes, held by the service, or nothing if the
    /// budget is closed, or the client was disconnected meanwhile.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        if let Some(share) = self.take_at_once(bytes) {
            return Some(share);
        }
        let Budget { shared, floor, stall_max, .. } = &*self.budget;
        if bytes <= *floor {
            return self.take_own(bytes);
        }
        let watch = || self.budget.end_overdue();
        let weight = Weight::request(bytes as u64);
        let bytes = shared.enter_watching(weight, Class::Read, *stall_max / LOOKS, watch)?;
        self.share(bytes)
    }

    /// The bytes if there is room now.
    pub(super) fn take_at_once(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let weight = Weight::request(bytes as u64);
        if bytes <= self.budget.floor
            && let Some(bytes) = self.floor.enter_at_once(weight, Class::Read)
        {
            return Some(Share { account: Arc::clone(self), holder: None, _bytes: bytes });
        }
        match self.budget.shared.enter_at_once(weight, Class::Read) {
            Some(bytes) => self.share(bytes),
            None => {
                self.budget.look();
                None
            }
        }
    }

    /// Waits for bytes of the connection's own. Of more than these there is only one request at a time.
    pub(super) fn take_own(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let weight = Weight::request(bytes as u64);
        let watch = || self.budget.end_overdue();
        let pause = self.budget.stall_max / LOOKS;
        let bytes = self.floor.enter_watching(weight, Class::Read, pause, watch)?;
        Some(Share { account: Arc::clone(self), holder: None, _bytes: bytes })
    }

    /// These bytes of what is shared.
    fn share(self: &Arc<Self>, bytes: Permit) -> Option<Share> {
        if self.is_ended.load(Ordering::Relaxed) {
            return None;
        }
        let mut holders = self.budget.lock();
        let number = holders.next;
        holders.next += 1;
        let holder = Holder { account: Arc::clone(self), held_by: HeldBy::Service };
        holders.holders.insert(number, holder);
        drop(holders);
        Some(Share { account: Arc::clone(self), holder: Some(number), _bytes: bytes })
    }

    /// The client has sent something.
    pub(super) fn note_sent(&self) {
        self.sent.store(self.nanos(), Ordering::Relaxed);
    }

    /// The client has taken something, or its socket has for it.
    pub(super) fn note_taken(&self) {
        self.taken.store(self.nanos(), Ordering::Relaxed);
    }

    fn nanos(&self) -> u64 {
        self.budget.now().as_nanos() as u64
    }
}

impl Share {
    /// The client has to send the request's bytes before it goes on.
    pub(super) fn leave_to_sender(&self) {
        self.hold_by(Some(Wait::ForBytes));
    }

    /// The client has to take the answer.
    pub(super) fn leave_to_taker(&self) {
        self.hold_by(Some(Wait::ForTaking));
    }

    /// The service has to answer before the request goes on.
    pub(super) fn leave_to_service(&self) {
        self.hold_by(None);
    }

    fn hold_by(&self, wait: Option<Wait>) {
        let Some(number) = self.holder else { return };
        let budget = &self.account.budget;
        let held_by = wait.map_or(HeldBy::Service, |wait| HeldBy::Client(wait, budget.now()));
        let mut holders = budget.lock();
        let holder = holders.holders.get_mut(&number);
        holder.expect("a share that is not dropped is held").held_by = held_by;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(number) = self.holder {
            self.account.budget.lock().holders.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_secs(3600);

    /// A hundred sectors: 76 that are shared, and floors of eight for three connections.
    fn budget(stall_max: Duration, hold_max: Duration) -> Arc<Budget> {
        let (bytes_max, connections_max) = (100 * SECTOR_SIZE, 3);
        Budget::new(&Bounds {
            bytes_max,
            connections_max,
            stall_max,
            hold_max,
            ..Bounds::default()
        })
    }

    /// A connection: the server's part, and the client's end.
    fn connection(budget: &Arc<Budget>) -> (Arc<Account>, UnixStream) {
        let (server, client) = UnixStream::pair().unwrap();
        (Account::new(Arc::clone(budget), Arc::new(Socket::Unix(server))), client)
    }

    fn sectors(count: usize) -> usize {
        count * SECTOR_SIZE
    }

    fn is_ended(client: &mut UnixStream) -> bool {
        client.set_nonblocking(true).unwrap();
        client.read(&mut [0]).is_ok()
    }

    #[test]
    fn floor_of_a_connection_is_its_own_whoever_holds_the_rest() {
        let budget = budget(LONG, LONG);
        let [(one, _client), (other, _other_client)] = [(); 2].map(|()| connection(&budget));
        let all = one.take(sectors(1_000)).unwrap();
        let own = [one.take(sectors(8)).unwrap(), other.take(sectors(3)).unwrap()];
        let own_too = other.take(sectors(5)).unwrap();
        assert_eq!(budget.shared.inside(), Weight::request(sectors(1_000) as u64));
        assert!(other.take_at_once(sectors(1)).is_none());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| other.take(sectors(1)).map(drop));
            while other.floor.waiting() == 0 {
                thread::yield_now();
            }
            drop(own_too);
            assert!(waiting.join().unwrap().is_some(), "it waits for its own alone");
        });
        assert_eq!(budget.shared.inside(), Weight::request(sectors(1_000) as u64));
        drop((own, all));
        assert_eq!(budget.shared.inside(), Weight::default());
    }

    #[test]
    fn client_that_stalls_while_another_waits_is_shut_down_and_one_that_moves_is_not() {
        let budget = budget(Duration::from_millis(40), LONG);
        let [stalling, moving, serving, waiting] = [(); 4].map(|()| connection(&budget));
        let kept = [&stalling, &moving, &serving].map(|(it, _)| it.take(sectors(20)).unwrap());
        kept[0].leave_to_taker();
        kept[1].leave_to_sender();
        thread::scope(|scope| {
            let asking = scope.spawn(|| waiting.0.take(sectors(20)).map(drop));
            let (mut its_client, mut moving_client) = (stalling.1, moving.1);
            while !is_ended(&mut its_client) {
                moving.0.note_sent();
                thread::sleep(Duration::from_millis(1));
            }
            assert!(!is_ended(&mut moving_client), "it sends");
            drop(kept);
            assert!(asking.join().unwrap().is_some());
        });
        assert!(stalling.0.take(sectors(20)).is_none(), "it is disconnected");
        let (_, mut served) = serving;
        assert!(!is_ended(&mut served), "the service's time is not the client's");
    }

    #[test]
    fn client_that_moves_and_keeps_it_too_long_all_the_same_is_shut_down() {
        let budget = budget(Duration::from_millis(40), Duration::from_millis(80));
        let [(keeping, mut its_client), (waiting, _client)] = [(); 2].map(|()| connection(&budget));
        let kept = keeping.take(sectors(70)).unwrap();
        kept.leave_to_taker();
        thread::scope(|scope| {
            let asking = scope.spawn(|| waiting.take(sectors(20)).map(drop));
            while !is_ended(&mut its_client) {
                keeping.note_taken();
                thread::sleep(Duration::from_millis(1));
            }
            drop(kept);
            assert!(asking.join().unwrap().is_some());
        });
    }

    #[test]
    fn closed_budget_sends_away_all_that_wait() {
        let budget = budget(LONG, LONG);
        let (account, _client) = connection(&budget);
        let first = account.take(sectors(76)).unwrap();
        thread::scope(|scope| {
            let waiting = [100, 10].map(|count| {
                let account = &account;
                scope.spawn(move || account.take(sectors(count)).is_none())
            });
            while budget.shared.waiting() < 2 {
                thread::yield_now();
            }
            budget.close();
            assert!(waiting.into_iter().all(|one| one.join().unwrap()));
        });
        drop(first);
    }
}
