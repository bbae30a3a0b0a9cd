//! What lies between the kernel's threads and the driver, and a bound on what waits behind it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use levelhead_block::Reply;
use levelhead_fs::{Answer, Caller, SubId, What};

/// The most bytes of requests that wait for their answers: 64 MiB.
pub const WAITING_MAX: usize = 64 << 20;

/// What a request takes beside its bytes.
const REQUEST: usize = 4096;

/// Told of a request's answer.
pub(crate) type Told = Box<dyn FnOnce(Answer) + Send>;

/// What the driver is told.
pub(crate) enum Input {
    /// The kernel asks for something.
    Ask(Ask),
    /// The drive has ended a command.
    Done {
        /// Which one.
        sub: SubId,
        /// How.
        reply: Reply,
    },
    /// Time has passed.
    Time,
    /// How does the filesystem stand?
    Status(Told),
    /// What stands between the kernel and the core has panicked.
    Broken,
    /// Nothing more will be asked.
    Leave,
}

/// A request and what becomes of its answer.
pub(crate) struct Ask {
    pub(crate) caller: Caller,
    pub(crate) what: What,
    pub(crate) told: Told,
    pub(crate) share: Share,
}

/// Where inputs go.
pub(crate) trait Inputs: Send + Sync {
    /// Hands one over for a thread that looks for inputs next: of those that give answers each does.
    fn put(&self, input: Input);

    /// Hands one over, and sees to it.
    fn send(&self, input: Input);
}

/// The kernel's way to the driver.
#[derive(Clone)]
pub(crate) struct Gate {
    inputs: Arc<dyn Inputs>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    bytes: Mutex<usize>,
    fewer: Condvar,
}

/// What a request takes of the bound until this is dropped.
pub(crate) struct Share {
    waiting: Arc<Waiting>,
    bytes: usize,
}

impl Gate {
    pub(crate) fn new(inputs: Arc<dyn Inputs>) -> Self {
        Self { inputs, waiting: Arc::default() }
    }

    /// Hands a request to the driver once there is room for it, FU4.
    pub(crate) fn ask(&self, caller: Caller, what: What, told: Told) {
        let share = self.take(REQUEST + payload(&what));
        self.inputs.send(Input::Ask(Ask { caller, what, told, share }));
    }

    /// The same of a request that no answer follows, without waiting, by what gives an answer.
    pub(crate) fn tell(&self, caller: Caller, what: What) {
        let share = Share { waiting: Arc::clone(&self.waiting), bytes: 0 };
        self.inputs.put(Input::Ask(Ask { caller, what, told: Box::new(drop), share }));
    }

    /// Hands on what is no request.
    pub(crate) fn send(&self, input: Input) {
        self.inputs.send(input);
    }

    fn take(&self, bytes: usize) -> Share {
        let Waiting { bytes: taken, fewer } = &*self.waiting;
        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = fewer.wait_while(taken, |taken| *taken >= WAITING_MAX);
        *has_room.unwrap_or_else(PoisonError::into_inner) += bytes;
        Share { waiting: Arc::clone(&self.waiting), bytes }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        *self.waiting.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.waiting.fewer.notify_all();
    }
}

/// Bytes that a request brings or will be answered with.
fn payload(what: &What) -> usize {
    match what {
        What::Write { bytes, .. } => bytes.len(),
        What::Read { count, .. } => *count as usize,
        What::SetExtended { value, .. } => value.len(),
        What::Lookup(_)
        | What::Forget { .. }
        | What::GetAttributes(_)
        | What::SetAttributes { .. }
        | What::Make { .. }
        | What::MakeLink { .. }
        | What::ReadLink(_)
        | What::Link { .. }
        | What::Remove { .. }
        | What::Rename { .. }
        | What::ReadDirectory { .. }
        | What::Sync { .. }
        | What::Allocate { .. }
        | What::Seek { .. }
        | What::GetExtended { .. }
        | What::ListExtended(_)
        | What::RemoveExtended { .. }
        | What::Scrub { .. }
        | What::Room
        | What::Damaged => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    struct Channel(mpsc::Sender<Input>);

    impl Inputs for Channel {
        fn put(&self, input: Input) {
            drop(self.0.send(input));
        }

        fn send(&self, input: Input) {
            self.put(input);
        }
    }

    const CALLER: Caller = Caller { uid: 0, gid: 0 };

    #[test]
    fn request_beyond_the_bound_waits_for_an_answer() {
        let (sender, inputs) = mpsc::channel();
        let gate = Gate::new(Arc::new(Channel(sender)));
        let write = || What::Write { inode: 2, offset: 0, bytes: vec![0; 1 << 20], appends: false };
        let asked = thread::spawn(move || {
            for _ in 0..70 {
                gate.ask(CALLER, write(), Box::new(drop));
            }
        });
        let mut held = Vec::new();
        // 63 MiB and what the requests take are less than the bound, one more is not.
        while held.len() < 64 {
            held.push(inputs.recv().unwrap());
        }
        assert!(inputs.try_recv().is_err(), "FU4");
        held.clear();
        assert_eq!(inputs.iter().count(), 6);
        asked.join().unwrap();
    }
}
