//! What lies between the kernel's threads and the driver, and a bound on what waits behind it.

use std::sync::Arc;

use levelhead_block::Reply;
use levelhead_block::semaphore::{Class, Limit, Permit, Semaphore, Weight};
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
    /// What it takes of the bound until its answer is given; one without an answer takes nothing.
    pub(crate) share: Option<Permit>,
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
    waiting: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new(inputs: Arc<dyn Inputs>) -> Self {
        let limit = Weight { requests: u32::MAX, bytes: WAITING_MAX as u64 };
        Self { inputs, waiting: Semaphore::new(Limit::of(limit)) }
    }

    /// Hands a request to the driver once there is room for it, FU4.
    pub(crate) fn ask(&self, caller: Caller, what: What, told: Told) {
        let weight = Weight::request((REQUEST + payload(&what)) as u64);
        let share = self.waiting.enter(weight, Class::Read);
        self.inputs.send(Input::Ask(Ask { caller, what, told, share }));
    }

    /// The same of a request that no answer follows, without waiting, by what gives an answer.
    pub(crate) fn tell(&self, caller: Caller, what: What) {
        self.inputs.put(Input::Ask(Ask { caller, what, told: Box::new(drop), share: None }));
    }

    /// Hands on what is no request.
    pub(crate) fn send(&self, input: Input) {
        self.inputs.send(input);
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
        // 63 MiB and what the requests take are less than the bound, with one more it is past.
        while held.len() < 63 {
            held.push(inputs.recv().unwrap());
        }
        assert!(inputs.try_recv().is_err(), "FU4");
        held.clear();
        assert_eq!(inputs.iter().count(), 7);
        asked.join().unwrap();
    }
}
