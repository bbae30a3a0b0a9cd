//! What drives the core: it hands requests in and answers out, carries commands to the drive, and keeps the clock.
//!
//! There is one seat, and each thread that brings an input may take it: the kernel's for a request, the drive's for what has
//! ended. One that finds it taken leaves its input to the thread that sits there, and waits for nothing. So a request for which
//! everything is in memory is answered by the thread that brought it. One thread more waits for the core's deadlines.
//!
//! ```text
//!   Serving --Leave--> Leaving (requests end, then the core brings everything to its place) --> Over
//!      |                  |
//!      | a panic          +-- a panic --> Over
//!      v
//!   Broken (every request fails) --Leave--> Over
//! ```

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{self, Duration, SystemTime};

use levelhead_block::semaphore::Permit;
use levelhead_block::{
    BlockService, Command, Payload, Pool, Reply, Request as BlockRequest, RequestId,
};
use levelhead_fs::{Action, Answer, Errno, Event, Filesystem, Request, Status, SubId, Submit};
use levelhead_units::{Instant, Sectors};

use crate::gate::{Ask, Input, Inputs, Told};
use crate::{status, translate};

/// Inputs that are handled before the answers to them are given.
const BATCH_MAX: usize = 64;

/// Memory for reads that is used again: as much as a reader in sequence has on its way. Fresh memory is mapped page by page, which takes as long
/// as the rest of a read.
const POOL: Sectors = Sectors::new(1 << 14);

/// A read gets room of ours.
fn with_room(request: BlockRequest, pool: &Pool) -> BlockRequest {
    match (&request.command, &request.payload) {
        (Command::Read { extent, .. }, Payload::None) => {
            // The drive fills all of it.
            let room = Payload::Room(pool.take_to_fill(extent.sectors));
            BlockRequest { payload: room, ..request }
        }
        _ => request,
    }
}

/// What the driver drives: the core, or what a test puts in its place.
pub(crate) trait Core: Send {
    fn handle_request(&mut self, now: Instant, request: Request);
    fn handle_done(&mut self, now: Instant, sub: SubId, reply: Reply);
    fn handle_timeout(&mut self, now: Instant);
    fn deadline(&self) -> Option<Instant>;
    fn poll(&mut self) -> Option<Action>;
    fn unmount(&mut self, now: Instant);
    fn ended(&self) -> Option<levelhead_fs::Ended>;
    fn status(&self) -> Status;
}

impl Core for Filesystem {
    fn handle_request(&mut self, now: Instant, request: Request) {
        self.handle_request(now, request);
    }

    fn handle_done(&mut self, now: Instant, sub: SubId, reply: Reply) {
        self.handle_done(now, sub, reply);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline()
    }

    fn poll(&mut self) -> Option<Action> {
        self.poll()
    }

    fn unmount(&mut self, now: Instant) {
        self.unmount(now);
    }

    fn ended(&self) -> Option<levelhead_fs::Ended> {
        self.ended()
    }

    fn status(&self) -> Status {
        self.status()
    }
}

/// Told of what happens.
pub(crate) type OnEvent = Box<dyn FnMut(Event) + Send>;

/// Told of an inode whose attributes the kernel must not keep, before the answer by which they have changed.
pub(crate) type OnInvalidate = Box<dyn FnMut(u64) + Send>;

/// How the driver has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Everything is in its place, and the disk says so.
    InOrder,
    /// Something that was written is not on the disk: what was synced is in the journal.
    NotStored,
    /// Something has panicked, with this message: what was acknowledged is in the journal.
    Broken(String),
}

/// What a driver is made of.
pub(crate) struct Parts<C> {
    pub(crate) core: C,
    pub(crate) service: Arc<dyn BlockService>,
    pub(crate) on_event: OnEvent,
    pub(crate) on_invalidate: OnInvalidate,
    /// The clock's beginning.
    pub(crate) begun: time::Instant,
}

/// See the module.
pub(crate) struct Driver<C> {
    /// Itself, for what the drive says.
    itself: Weak<Self>,
    inputs: Mutex<VecDeque<Input>>,
    seat: Mutex<Seat<C>>,
    watch: Mutex<Watch>,
    /// Rung when there is an earlier deadline, or it is over.
    bell: Condvar,
    begun: time::Instant,
}

/// What the thread that sits here may touch.
struct Seat<C> {
    state: State<C>,
    /// Nothing once it is over: whose thread lets go of the driver last must not be the one that ends the drive.
    service: Option<Arc<dyn BlockService>>,
    on_event: OnEvent,
    on_invalidate: OnInvalidate,
    clients: Clients,
    /// Memory for what is read.
    pool: Pool,
    /// How it has ended, until the thread is told that keeps the clock.
    ended: Option<Ended>,
}

enum State<C> {
    Serving(C),
    /// Nothing more will be asked.
    Leaving {
        core: C,
        /// Whether the core was told.
        is_told: bool,
    },
    /// FU2: there is no core to be called.
    Broken(String),
    Over,
}

/// What the thread waits for that keeps the clock.
#[derive(Default)]
struct Watch {
    deadline: Option<Instant>,
    ended: Option<Ended>,
}

/// Who waits for a request's answer.
struct Client {
    told: Told,
    /// Given back with the answer.
    share: Option<Permit>,
}

/// All of them, by their requests.
#[derive(Default)]
struct Clients {
    waiting: HashMap<RequestId, Client>,
    last: u64,
}

impl Clients {
    fn add(&mut self, client: Client) -> RequestId {
        self.last += 1;
        let id = RequestId(self.last);
        self.waiting.insert(id, client);
        id
    }
}

/// An answer that is given once the seat is free.
struct Due {
    told: Told,
    answer: Answer,
    _share: Option<Permit>,
}

impl<C: Core + 'static> Inputs for Driver<C> {
    fn put(&self, input: Input) {
        lock(&self.inputs).push_back(input);
    }

    fn send(&self, input: Input) {
        self.put(input);
        self.work();
    }
}

impl<C: Core + 'static> Driver<C> {
    pub(crate) fn new(parts: Parts<C>) -> Arc<Self> {
        let Parts { core, service, on_event, on_invalidate, begun } = parts;
        Arc::new_cyclic(|itself| {
            let (state, clients) = (State::Serving(core), Clients::default());
            let (service, pool) = (Some(service), Pool::new(POOL));
            let seat = Seat { state, service, on_event, on_invalidate, clients, pool, ended: None };
            Self {
                itself: itself.clone(),
                inputs: Mutex::default(),
                seat: Mutex::new(seat),
                watch: Mutex::default(),
                bell: Condvar::new(),
                begun,
            }
        })
    }

    /// Keeps the clock until it is over.
    pub(crate) fn run(&self) -> Ended {
        // What the core wants at its beginning.
        self.send(Input::Time);
        let mut watch = lock(&self.watch);
        loop {
            if let Some(ended) = watch.ended.take() {
                return ended;
            }
            let left = watch.deadline.map(|deadline| deadline.saturating_since(self.now()).get());
            watch = match left {
                None => self.bell.wait(watch).unwrap_or_else(PoisonError::into_inner),
                Some(0) => {
                    watch.deadline = None;
                    drop(watch);
                    self.send(Input::Time);
                    lock(&self.watch)
                }
                Some(left) => {
                    let waited = self.bell.wait_timeout(watch, Duration::from_nanos(left));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Handles what has come, unless another thread does.
    fn work(&self) {
        loop {
            let mut seat = match self.seat.try_lock() {
                Ok(seat) => seat,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // The thread that sits there looks for inputs once more after leaving it.
                Err(TryLockError::WouldBlock) => return,
            };
            let due = self.take_turn(&mut seat);
            drop(seat);
            for Due { told, answer, .. } in due {
                let is_told = catch_unwind(AssertUnwindSafe(|| told(answer)));
                if is_told.is_err() {
                    self.put(Input::Broken);
                }
            }
            if lock(&self.inputs).is_empty() {
                return;
            }
        }
    }

    /// Handles some of what has come; returns the answers.
    fn take_turn(&self, seat: &mut Seat<C>) -> Vec<Due> {
        let mut due = Vec::new();
        let turn = catch_unwind(AssertUnwindSafe(|| {
            let now = self.now();
            for _ in 0..BATCH_MAX {
                // One at a time: what has come when something panics fails as well, FU1.
                let Some(input) = lock(&self.inputs).pop_front() else { break };
                seat.handle(input, now, &mut due);
            }
            self.carry_out(seat, &mut due);
        }));
        if let Err(panic) = turn {
            seat.break_down(message(panic.as_ref()), &mut due);
        }
        self.look(seat);
        due
    }

    fn carry_out(&self, seat: &mut Seat<C>, due: &mut Vec<Due>) {
        let Seat { state, service, on_event, on_invalidate, clients, pool, .. } = seat;
        let (Some(core), Some(service)) = (state.core(), service) else { return };
        while let Some(action) = core.poll() {
            match action {
                Action::Submit(Submit { sub, request }) => {
                    let driver = self.itself.clone();
                    let done = move |reply| {
                        if let Some(driver) = driver.upgrade() {
                            driver.send(Input::Done { sub, reply });
                        }
                    };
                    service.submit(with_room(request, pool), Box::new(done));
                }
                Action::Reply { id, answer } => {
                    let client = clients.waiting.remove(&id);
                    let Client { told, share } = client.expect("FU1: a request is answered once");
                    due.push(Due { told, answer, _share: share });
                }
                Action::Invalidate { inode } => on_invalidate(inode),
                Action::Event(event) => on_event(event),
            }
        }
        if let State::Leaving { core, is_told } = state
            && !*is_told
            && clients.waiting.is_empty()
        {
            *is_told = true;
            core.unmount(self.now());
            self.put(Input::Time);
        }
    }

    /// Looks whether it is over, and for which moment the clock is to be kept.
    fn look(&self, seat: &mut Seat<C>) {
        if let State::Leaving { core, is_told: true } = &seat.state
            && let Some(ended) = core.ended()
        {
            seat.end(match ended {
                levelhead_fs::Ended::Clean => Ended::InOrder,
                levelhead_fs::Ended::NotStored => Ended::NotStored,
            });
        }
        let wanted = seat.state.core().and_then(|core| core.deadline());
        let mut watch = lock(&self.watch);
        let known = mem::replace(&mut watch.deadline, wanted);
        let is_earlier = wanted.is_some_and(|wanted| known.is_none_or(|known| wanted < known));
        if let Some(ended) = seat.ended.take() {
            watch.ended = Some(ended);
        } else if !is_earlier {
            // One who waits for an earlier moment looks again by itself.
            return;
        }
        self.bell.notify_all();
    }

    fn now(&self) -> Instant {
        // 2^64 ns are 584 years.
        Instant::from_nanos(self.begun.elapsed().as_nanos() as u64)
    }
}

impl<C: Core> Seat<C> {
    fn handle(&mut self, input: Input, now: Instant, due: &mut Vec<Due>) {
        match (input, &mut self.state) {
            (
                Input::Ask(Ask { caller, what, told, share }),
                State::Serving(core) | State::Leaving { core, is_told: false },
            ) => {
                let id = self.clients.add(Client { told, share });
                let day = translate::moment(SystemTime::now());
                core.handle_request(now, Request { id, caller, now: day, what });
            }
            (Input::Ask(Ask { told, share, .. }), _) => due.push(Due::failed(told, share)),
            (Input::Status(told), state) => due.push(match state.core() {
                Some(core) => {
                    let text = status::text(&core.status());
                    Due { told, answer: Answer::Bytes(text.into_bytes()), _share: None }
                }
                None => Due::failed(told, None),
            }),
            (Input::Done { sub, reply }, state) => {
                if let Some(core) = state.core() {
                    core.handle_done(now, sub, reply);
                }
            }
            (Input::Time, state) => {
                if let Some(core) = state.core() {
                    core.handle_timeout(now);
                }
            }
            (Input::Broken, state) => {
                let is_there = state.core().is_some();
                assert!(!is_there, "what stands between the kernel and the core panicked");
            }
            (Input::Leave, _) => self.leave(),
        }
    }

    fn leave(&mut self) {
        match mem::replace(&mut self.state, State::Over) {
            State::Serving(core) => self.state = State::Leaving { core, is_told: false },
            State::Broken(message) => self.end(Ended::Broken(message)),
            other @ (State::Leaving { .. } | State::Over) => self.state = other,
        }
    }

    /// Something has panicked.
    fn break_down(&mut self, message: String, due: &mut Vec<Due>) {
        // FU2: not even the core's destructor runs.
        match mem::replace(&mut self.state, State::Over) {
            State::Serving(core) => {
                mem::forget(core);
                self.state = State::Broken(message);
            }
            State::Leaving { core, .. } => {
                mem::forget(core);
                self.end(Ended::Broken(message));
            }
            other @ (State::Broken(_) | State::Over) => self.state = other,
        }
        let waiting = self.clients.waiting.drain();
        due.extend(waiting.map(|(_, Client { told, share })| Due::failed(told, share)));
    }

    fn end(&mut self, ended: Ended) {
        self.state = State::Over;
        self.service = None;
        // Nothing will happen any more: one who listens until the end need not wait for our own.
        (self.on_event, self.on_invalidate) = (Box::new(|_| {}), Box::new(|_| {}));
        self.ended = Some(ended);
    }
}

impl<C> State<C> {
    /// The core, if it may be called.
    fn core(&mut self) -> Option<&mut C> {
        match self {
            Self::Serving(core) | Self::Leaving { core, .. } => Some(core),
            Self::Broken(_) | Self::Over => None,
        }
    }
}

impl Due {
    fn failed(told: Told, share: Option<Permit>) -> Self {
        Self { told, answer: Answer::Failed(Errno::Io), _share: share }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a panic has said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

#[cfg(test)]
mod tests;
