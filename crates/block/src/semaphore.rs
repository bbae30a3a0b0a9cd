//! A weighted semaphore: what may be in flight at a time, and who is next.
//!
//! ```text
//!   enter --- room, and none before it ---> inside --- the permit is dropped ---> left
//!     |                                       ^
//!     +---------------> queue ----------------+  as soon as there is room, in order
//! ```
//!
//! # Invariants
//!
//! - SE1. Inside are at most `requests` and `bytes` of the limit. A request that is larger than the limit goes
//!   in alone.
//! - SE2. Changes take at most their part of the limit, so that changes which wait for a drive that hangs leave
//!   room for reads.
//! - SE3. Requests enter in the order in which they ask. The exception: a read passes changes that wait for the
//!   changes' part alone.
//! - SE4. Once it is open or closed, nothing waits.
//!
//! [`Queue`] decides, and is a value; [`Semaphore`] makes the threads wait that it does not let in.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a request takes of a limit, and what a limit allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Requests.
    pub requests: u32,
    /// Bytes of them.
    pub bytes: u64,
}

impl Weight {
    /// One request of this many bytes.
    pub const fn request(bytes: u64) -> Self {
        Self { requests: 1, bytes }
    }

    /// Whether one more stays within a limit; one that is larger than that goes alone (SE1).
    fn has_room(self, more: Self, limit: Self) -> bool {
        let requests = self.requests.saturating_add(more.requests);
        let bytes = self.bytes.saturating_add(more.bytes);
        self.requests == 0 || (requests <= limit.requests && bytes <= limit.bytes)
    }

    fn add(&mut self, more: Self) {
        self.requests += more.requests;
        self.bytes += more.bytes;
    }

    fn subtract(&mut self, less: Self) {
        self.requests -= less.requests;
        self.bytes -= less.bytes;
    }
}

/// Whether a request changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It does not: a read, or a flush.
    Read,
    /// It does.
    Change,
}

/// The most that may be inside at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// All requests.
    pub all: Weight,
    /// Those that change something (SE2).
    pub changes: Weight,
}

impl Limit {
    /// No limit: what is inside is counted, and can be waited for.
    pub const NONE: Self = Self::of(Weight { requests: u32::MAX, bytes: u64::MAX });

    /// The same limit for all kinds of requests.
    pub const fn of(all: Weight) -> Self {
        Self { all, changes: all }
    }
}

/// Who is inside, and who waits, in order.
#[derive(Debug)]
struct Queue {
    limit: Limit,
    inside: Weight,
    /// The part of it that changes something.
    changes: Weight,
    waiting: VecDeque<Waiting>,
    /// The number of the next one that asks.
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u64,
    weight: Weight,
    class: Class,
}

impl Queue {
    fn new(limit: Limit) -> Self {
        assert!(limit.all.requests >= 1);
        let (inside, changes) = Default::default();
        Self { limit, inside, changes, waiting: VecDeque::new(), next: 0 }
    }

    /// Puts a request at the end of the queue: its number. It may be inside already.
    fn ask(&mut self, weight: Weight, class: Class) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.push_back(Waiting { number, weight, class });
        self.advance();
        number
    }

    fn is_waiting(&self, number: u64) -> bool {
        self.waiting.iter().any(|waiting| waiting.number == number)
    }

    /// A request does not wait any more. Whether another one has come in.
    fn give_up(&mut self, number: u64) -> bool {
        self.waiting.retain(|waiting| waiting.number != number);
        self.advance()
    }

    /// Lets a request in that does not ask.
    fn add(&mut self, weight: Weight, class: Class) {
        self.inside.add(weight);
        if class == Class::Change {
            self.changes.add(weight);
        }
    }

    /// A request has left. Whether another one has come in.
    fn leave(&mut self, weight: Weight, class: Class) -> bool {
        self.inside.subtract(weight);
        if class == Class::Change {
            self.changes.subtract(weight);
        }
        self.advance()
    }

    /// Lets in those for whom there is room (SE3). Whether there was one.
    fn advance(&mut self) -> bool {
        let Self { limit, inside, changes, waiting, .. } = self;
        let before = waiting.len();
        let (mut is_full, mut is_full_of_changes) = (false, false);
        waiting.retain(|&Waiting { weight, class, .. }| {
            let is_change = class == Class::Change;
            is_full_of_changes |= is_change && !changes.has_room(weight, limit.changes);
            if is_change && is_full_of_changes {
                return true;
            }
            is_full |= !inside.has_room(weight, limit.all);
            if !is_full {
                inside.add(weight);
                if is_change {
                    changes.add(weight);
                }
            }
            is_full
        });
        waiting.len() < before
    }
}

/// How a semaphore treats those who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They wait for room.
    Bounded,
    /// They enter at once.
    Open,
    /// They are sent away.
    Closed,
}

#[derive(Debug)]
struct State {
    queue: Queue,
    mode: Mode,
    /// Threads that wait until nothing is inside.
    leaving: u32,
}

/// See the module.
#[derive(Debug)]
pub struct Semaphore {
    state: Mutex<State>,
    changed: Condvar,
}

/// A place inside, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    semaphore: Arc<Semaphore>,
    weight: Weight,
    class: Class,
}

impl Semaphore {
    /// A semaphore in which nothing is inside. Panics if the limit allows no request.
    pub fn new(limit: Limit) -> Arc<Self> {
        let state = State { queue: Queue::new(limit), mode: Mode::Bounded, leaving: 0 };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Waits until there is room. Nothing if the semaphore has been closed.
    pub fn enter(self: &Arc<Self>, weight: Weight, class: Class) -> Option<Permit> {
        self.enter_watching(weight, class, Duration::MAX, || {})
    }

    /// The same. While the request is the first of those that wait, `watch` is called again and again after
    /// this pause: it may have room made.
    pub fn enter_watching(
        self: &Arc<Self>,
        weight: Weight,
        class: Class,
        pause: Duration,
        watch: impl Fn(),
    ) -> Option<Permit> {
        let mut state = self.lock();
        match state.mode {
            Mode::Closed => return None,
            Mode::Open => {
                drop(state);
                return Some(self.force(weight, class));
            }
            Mode::Bounded => {}
        }
        let number = state.queue.ask(weight, class);
        while state.queue.is_waiting(number) {
            if state.mode != Mode::Bounded {
                let (is_open, has_freed) = (state.mode == Mode::Open, state.queue.give_up(number));
                drop(state);
                self.tell(has_freed);
                return is_open.then(|| self.force(weight, class));
            }
            let is_first = state.queue.waiting.front().is_some_and(|first| first.number == number);
            if !is_first || pause == Duration::MAX {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = self.changed.wait_timeout(state, pause);
            let (again, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = again;
            if timeout.timed_out() && state.queue.is_waiting(number) {
                drop(state);
                watch();
                state = self.lock();
            }
        }
        drop(state);
        Some(Permit { semaphore: Arc::clone(self), weight, class })
    }

    /// Enters if there is room and none waits before it.
    pub fn enter_at_once(self: &Arc<Self>, weight: Weight, class: Class) -> Option<Permit> {
        let mut state = self.lock();
        let number = state.queue.ask(weight, class);
        if state.queue.is_waiting(number) {
            state.queue.give_up(number);
            return None;
        }
        drop(state);
        Some(Permit { semaphore: Arc::clone(self), weight, class })
    }

    /// Enters at once, past the limit if need be: for a thread that itself makes the room.
    pub fn force(self: &Arc<Self>, weight: Weight, class: Class) -> Permit {
        self.lock().queue.add(weight, class);
        Permit { semaphore: Arc::clone(self), weight, class }
    }

    /// Waits until nothing is inside.
    pub fn wait_idle(&self) {
        let mut state = self.lock();
        while state.queue.inside.requests > 0 {
            state.leaving += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.leaving -= 1;
        }
    }

    /// From now on all enter at once: none is left that would make room.
    pub fn open(&self) {
        self.lock().mode = Mode::Open;
        self.changed.notify_all();
    }

    /// From now on none enters.
    pub fn close(&self) {
        self.lock().mode = Mode::Closed;
        self.changed.notify_all();
    }

    /// What is inside.
    pub fn inside(&self) -> Weight {
        self.lock().queue.inside
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.lock().queue.waiting.len()
    }

    /// Tells those that wait, if that is of use to one of them: it takes a call of the system.
    fn tell(&self, is_of_use: bool) {
        if is_of_use {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.semaphore.lock();
        let has_entered = state.queue.leave(self.weight, self.class);
        let is_idle = state.leaving > 0 && state.queue.inside.requests == 0;
        // The next one in the queue watches from now on.
        drop(state);
        self.semaphore.tell(has_entered || is_idle);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const fn weight(requests: u32, bytes: u64) -> Weight {
        Weight { requests, bytes }
    }

    fn read(queue: &mut Queue, bytes: u64) -> u64 {
        queue.ask(Weight::request(bytes), Class::Read)
    }

    #[test]
    fn requests_enter_in_the_order_in_which_they_ask() {
        let mut queue = Queue::new(Limit::of(weight(9, 100)));
        read(&mut queue, 60);
        let (large, small) = (read(&mut queue, 90), read(&mut queue, 10));
        assert!(queue.is_waiting(large) && queue.is_waiting(small), "it would fit, and waits");
        assert!(queue.leave(Weight::request(60), Class::Read));
        assert!(!queue.is_waiting(large) && !queue.is_waiting(small));
        assert_eq!(queue.inside, weight(2, 100));
    }

    #[test]
    fn request_larger_than_the_limit_goes_alone() {
        let mut queue = Queue::new(Limit::of(weight(9, 100)));
        read(&mut queue, 1);
        let (huge, after) = (read(&mut queue, 1_000), read(&mut queue, 1));
        assert!(queue.leave(Weight::request(1), Class::Read));
        assert!(!queue.is_waiting(huge) && queue.is_waiting(after));
        assert!(queue.leave(Weight::request(1_000), Class::Read));
        assert!(!queue.is_waiting(after));
    }

    #[test]
    fn one_that_gives_up_lets_the_next_one_in() {
        let mut queue = Queue::new(Limit::of(weight(2, 100)));
        read(&mut queue, 60);
        let (large, small) = (read(&mut queue, 90), read(&mut queue, 10));
        assert!(queue.give_up(large));
        assert!(!queue.is_waiting(small));
    }

    /// By requests, and by bytes. A read passes changes that wait for their own part, and none that waits for
    /// all there is.
    #[test]
    fn changes_take_their_part_and_leave_the_rest_to_reads() {
        for bytes in [1, 10] {
            let limit = Limit { all: weight(8, 80), changes: weight(6, 60) };
            let mut queue = Queue::new(limit);
            let request = Weight::request(bytes);
            for _ in 0..6 {
                queue.ask(request, Class::Change);
            }
            let seventh = queue.ask(request, Class::Change);
            assert!(queue.is_waiting(seventh));
            let reads = [(); 3].map(|()| queue.ask(request, Class::Read));
            assert_eq!(reads.map(|number| queue.is_waiting(number)), [false, false, true]);
            assert!(!queue.leave(request, Class::Change) || !queue.is_waiting(seventh));
            assert_eq!(queue.inside.requests, 8, "SE1");
        }
    }

    #[test]
    fn no_more_are_inside_than_the_limit_allows() {
        let semaphore = Semaphore::new(Limit::of(weight(4, 10)));
        let inside = Mutex::new(Weight::default());
        thread::scope(|scope| {
            for thread in 0..8 {
                let (semaphore, inside) = (&semaphore, &inside);
                scope.spawn(move || {
                    for round in 0..500 {
                        // Up to 12: more than the limit.
                        let request = Weight::request((thread + round) % 13);
                        let permit = semaphore.enter(request, Class::Read).unwrap();
                        let now = {
                            let mut inside = inside.lock().unwrap();
                            inside.add(request);
                            *inside
                        };
                        assert!(now.requests <= 4 && (now.bytes <= 10 || now.requests == 1));
                        inside.lock().unwrap().subtract(request);
                        drop(permit);
                    }
                });
            }
        });
        semaphore.wait_idle();
    }

    #[test]
    fn closed_one_sends_away_all_that_wait_and_an_open_one_lets_them_in() {
        for is_open in [false, true] {
            let semaphore = Semaphore::new(Limit::of(weight(1, 1)));
            let first = semaphore.enter(Weight::request(1), Class::Read).unwrap();
            assert!(semaphore.enter_at_once(Weight::request(1), Class::Read).is_none());
            let urgent = semaphore.force(Weight::request(1), Class::Read);
            thread::scope(|scope| {
                let ask = || semaphore.enter(Weight::request(1), Class::Read).is_some();
                let waiting = [scope.spawn(ask), scope.spawn(ask)];
                while semaphore.waiting() < 2 {
                    thread::yield_now();
                }
                if is_open {
                    semaphore.open();
                } else {
                    semaphore.close();
                }
                waiting.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), is_open));
                assert_eq!(ask(), is_open);
            });
            drop((first, urgent));
            semaphore.wait_idle();
        }
    }

    #[test]
    fn first_that_waits_watches_and_the_next_one_after_it() {
        let semaphore = Semaphore::new(Limit::of(weight(1, 1)));
        let held = Mutex::new(semaphore.enter(Weight::request(1), Class::Read));
        let (sender, watched) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..2 {
                let (semaphore, held, sender) = (&semaphore, &held, sender.clone());
                scope.spawn(move || {
                    let pause = Duration::from_millis(1);
                    let watch = || {
                        sender.send(()).unwrap();
                        drop(held.lock().unwrap().take());
                    };
                    let request = Weight::request(1);
                    let permit = semaphore.enter_watching(request, Class::Read, pause, watch);
                    *held.lock().unwrap() = permit;
                });
            }
        });
        assert!(watched.try_iter().count() >= 2);
    }
}
