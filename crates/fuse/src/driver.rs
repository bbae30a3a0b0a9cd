//! The thread that drives the core: it hands requests in and answers out, carries commands to the drive, and keeps the clock.
//!
//! ```text
//!   Serving --Leave--> Leaving (requests end, then the core brings everything to its place) --> ended
//!      |                  |
//!      +---- a panic -----+--> Broken (every request fails) --Leave--> ended
//! ```

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{self, Duration, SystemTime};

use levelhead_block::{BlockService, Reply, RequestId};
use levelhead_fs::{Action, Answer, Errno, Event, Filesystem, Request, Status, SubId, Submit};
use levelhead_units::Instant;

use crate::gate::{Ask, Input, Share, Told};
use crate::{status, translate};

/// Inputs that are taken before the core's outputs are carried out.
const BATCH_MAX: usize = 64;

/// What the driver drives: the core, or what a test puts in its place.
pub(crate) trait Core: Send {
    fn handle_request(&mut self, now: Instant, request: Request);
    fn handle_done(&mut self, now: Instant, sub: SubId, reply: Reply);
    fn handle_timeout(&mut self, now: Instant);
    fn deadline(&self) -> Option<Instant>;
    fn poll(&mut self) -> Option<Action>;
    fn unmount(&mut self, now: Instant);
    fn is_unmounted(&self) -> bool;
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

    fn is_unmounted(&self) -> bool {
        self.is_unmounted()
    }

    fn status(&self) -> Status {
        self.status()
    }
}

/// Told of what happens.
pub(crate) type OnEvent = Box<dyn FnMut(Event) + Send>;

/// How the driver has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Everything is in its place, and the disk says so.
    InOrder,
    /// Something has panicked, with this message: what was acknowledged is in the journal.
    Broken(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Serving,
    Leaving,
}

/// See the module.
pub(crate) struct Driver<C> {
    pub(crate) core: C,
    pub(crate) service: Arc<dyn BlockService>,
    pub(crate) on_event: OnEvent,
    pub(crate) inputs: Receiver<Input>,
    /// For what the drive says.
    pub(crate) sender: Sender<Input>,
    /// The clock's beginning.
    pub(crate) begun: time::Instant,
}

/// Who waits for a request's answer.
struct Client {
    told: Told,
    /// Given back with the answer.
    _share: Share,
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

impl<C: Core> Driver<C> {
    /// Drives until nothing more is asked and all is in its place.
    pub(crate) fn run(mut self) -> Ended {
        let mut clients = Clients::default();
        let driven = catch_unwind(AssertUnwindSafe(|| self.drive(&mut clients)));
        let Err(panic) = driven else { return Ended::InOrder };
        // FU2: not even its destructor runs.
        let Self { core, inputs, sender, .. } = self;
        std::mem::forget(core);
        drop(sender);
        for (_, client) in clients.waiting.drain() {
            fail(client.told);
        }
        for input in inputs {
            match input {
                Input::Ask(Ask { told, .. }) | Input::Status(told) => fail(told),
                Input::Done { .. } | Input::Broken => {}
                Input::Leave => break,
            }
        }
        Ended::Broken(message(panic.as_ref()))
    }

    fn drive(&mut self, clients: &mut Clients) {
        let (mut state, mut is_asked) = (State::Serving, false);
        loop {
            self.carry_out(clients);
            match state {
                State::Leaving if !is_asked && clients.waiting.is_empty() => {
                    is_asked = true;
                    self.core.unmount(self.now());
                    continue;
                }
                State::Leaving if is_asked && self.core.is_unmounted() => return,
                State::Serving | State::Leaving => {}
            }
            let Some(input) = self.next_input() else {
                self.core.handle_timeout(self.now());
                continue;
            };
            let now = self.now();
            state = self.handle(input, state, clients, now);
            for _ in 1..BATCH_MAX {
                // One at a time: what is in the channel when something panics fails as well, FU1.
                let Ok(input) = self.inputs.try_recv() else { break };
                state = self.handle(input, state, clients, now);
            }
        }
    }

    fn handle(&mut self, input: Input, state: State, clients: &mut Clients, now: Instant) -> State {
        match input {
            Input::Ask(Ask { caller, what, told, share }) => {
                let id = clients.add(Client { told, _share: share });
                let day = translate::moment(SystemTime::now());
                self.core.handle_request(now, Request { id, caller, now: day, what });
            }
            Input::Done { sub, reply } => self.core.handle_done(now, sub, reply),
            Input::Status(told) => {
                let text = status::text(&self.core.status());
                told(Answer::Bytes(text.into_bytes()));
            }
            Input::Broken => panic!("what stands between the kernel and the core panicked"),
            Input::Leave => return State::Leaving,
        }
        state
    }

    /// Waits for an input, or for the core's deadline.
    fn next_input(&self) -> Option<Input> {
        // The driver holds a sender itself, so that the channel never closes.
        let closed = "the driver holds a sender";
        let Some(deadline) = self.core.deadline() else {
            return Some(self.inputs.recv().expect(closed));
        };
        let left = deadline.saturating_since(self.now());
        match self.inputs.recv_timeout(Duration::from_nanos(left.get())) {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("{closed}"),
        }
    }

    fn carry_out(&mut self, clients: &mut Clients) {
        while let Some(action) = self.core.poll() {
            match action {
                Action::Submit(Submit { sub, request }) => {
                    let sender = self.sender.clone();
                    let done = move |reply| drop(sender.send(Input::Done { sub, reply }));
                    self.service.submit(request, Box::new(done));
                }
                Action::Reply { id, answer } => {
                    let client =
                        clients.waiting.remove(&id).expect("FU1: a request is answered once");
                    (client.told)(answer);
                }
                Action::Event(event) => (self.on_event)(event),
            }
        }
    }

    fn now(&self) -> Instant {
        // 2^64 ns are 584 years.
        Instant::from_nanos(self.begun.elapsed().as_nanos() as u64)
    }
}

fn fail(told: Told) {
    // One that panics is the last to know; the others are told all the same.
    drop(catch_unwind(AssertUnwindSafe(|| told(Answer::Failed(Errno::Io)))));
}

/// What a panic has said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

#[cfg(test)]
mod tests;
