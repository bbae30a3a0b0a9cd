//! One drive without an array, for other programs to build on.
//!
//! Commands beyond what a drive holds wait here, first come, first served. Zeroes are moved like any
//! other bytes, and trimmed sectors keep what they held.
//!
//! ```text
//!   submit --> Message::Request --+
//!                                 +--> [ one thread: queue, buffers ] --> backend
//!   backend's end --> Ended ------+
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use levelhead_array::{BufId, Buffers, Place, RequestId, Segment, SubId};
use levelhead_block::{BlockService, Buf, Command, Done, Outcome, Reply, Request, ZeroTail};
use levelhead_drive::QUEUE_DEPTH_MAX;
use levelhead_erasure::Kernel;
use levelhead_units::Sectors;

use crate::backend::{Backend, Ended, Order, Payload, Report};
use crate::clock::Clock;
use crate::emulated::EmulatedDrive;
use crate::error::HostError;
use crate::medium::Medium;
use crate::member::MemberSpec;
use crate::service::PIECE_MAX;
use crate::split;
use crate::threads::Threads;

/// See the module. Dropping it waits for what is under way, [`LoneDrive::abandon`] does not.
pub struct LoneDrive {
    size: Sectors,
    messages: Mutex<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Request(Request, Done),
    Ended(Ended),
    Stop,
}

impl LoneDrive {
    /// Opens a member exclusively; creates the file of an emulated one that says its size and is not
    /// there.
    pub fn open(member: &MemberSpec) -> Result<Self, HostError> {
        if let Some(size) = member.size_wanted()
            && !member.path().exists()
        {
            member.check_size(size)?;
            Medium::create(member.path(), size)?;
        }
        let medium = Arc::new(member.open()?);
        let size = medium.size();
        let (sender, messages) = mpsc::channel();
        let ends = sender.clone();
        // A drive that has been closed does not care any more.
        let report: Report = Arc::new(move |ended| drop(ends.send(Message::Ended(ended))));
        let backend: Box<dyn Backend> = match member.model(size, QUEUE_DEPTH_MAX, "drive/0")? {
            Some(model) => Box::new(EmulatedDrive::start(&model, medium, Clock::start(), report)?),
            None => Box::new(Threads::start(&medium, QUEUE_DEPTH_MAX, &report)?),
        };
        let state = State {
            backend,
            buffers: Buffers::new(Kernel::best()),
            waiting: VecDeque::new(),
            inside: BTreeMap::new(),
            sub_next: 0,
        };
        let thread = std::thread::Builder::new()
            .name("lone drive".into())
            .spawn(move || state.run(&messages))
            .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?;
        Ok(Self { size, messages: Mutex::new(sender), thread: Some(thread) })
    }

    /// Lets go of it at once: what is under way ends when it ends, and is told then.
    pub fn abandon(mut self) {
        // The thread goes on by itself until nothing is inside the drive.
        drop(self.thread.take());
    }

    fn send(&self, message: Message) {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.send(message).expect("the thread lives as long as the drive");
    }
}

impl BlockService for LoneDrive {
    fn size(&self) -> Sectors {
        self.size
    }

    fn submit(&self, request: Request, done: Done) {
        let command = request.command;
        assert!(command.fits(self.size), "{command:?} is past the drive's end");
        split::run(request, done, PIECE_MAX, &mut |request, done| {
            self.send(Message::Request(request, done));
        });
    }
}

impl Drop for LoneDrive {
    fn drop(&mut self) {
        self.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

/// What the thread owns.
struct State {
    backend: Box<dyn Backend>,
    buffers: Buffers,
    waiting: VecDeque<(Request, Done)>,
    /// Commands inside the drive; one that carries no bytes of its own keeps its buffer here.
    inside: BTreeMap<SubId, (Done, Option<Buf>)>,
    sub_next: u64,
}

impl State {
    fn run(mut self, messages: &Receiver<Message>) {
        let mut stopping = false;
        while !stopping || !self.inside.is_empty() || !self.waiting.is_empty() {
            match messages.recv() {
                Ok(Message::Request(request, done)) => self.waiting.push_back((request, done)),
                Ok(Message::Ended(ended)) => self.finish(ended),
                Ok(Message::Stop) => stopping = true,
                Err(_) => unreachable!("the backend holds a sender"),
            }
            self.admit();
        }
    }

    fn admit(&mut self) {
        while self.inside.len() < QUEUE_DEPTH_MAX as usize {
            let Some((request, done)) = self.waiting.pop_front() else { return };
            self.begin(request, done);
        }
    }

    fn begin(&mut self, Request { command, buf }: Request, done: Done) {
        if let Command::Trim { .. } = command {
            return done(Reply { outcome: Outcome::GOOD, buf });
        }
        self.sub_next += 1;
        let id = buf_id(self.sub_next);
        let (buf, kept) = match command {
            Command::WriteZeroes { extent, .. } => (Buf::zeroed(extent.sectors), Some(buf)),
            Command::Read { .. }
            | Command::Write { .. }
            | Command::Flush
            | Command::Trim { .. } => (buf, None),
        };
        let sectors = buf.sectors().get() as u32;
        self.buffers.insert(id, buf);
        let whole = [Segment { place: Place { buf: id, sector: 0 }, sectors }];
        let (command, payload) = match command {
            Command::Read { .. } => (command, Payload::Fill(self.buffers.lend(id))),
            Command::Write { .. } => (command, Payload::Pieces(self.buffers.share(&whole))),
            Command::WriteZeroes { extent, durability } => {
                let command = Command::Write { extent, durability, zero_tail: ZeroTail::None };
                (command, Payload::Pieces(self.buffers.share(&whole)))
            }
            Command::Flush | Command::Trim { .. } => (command, Payload::None),
        };
        let sub = SubId(self.sub_next);
        self.inside.insert(sub, (done, kept));
        self.backend.submit(Order { sub, command, payload, origin: self.sub_next });
    }

    fn finish(&mut self, Ended { sub, outcome, buf, error: _ }: Ended) {
        let id = buf_id(sub.0);
        if let Some(buf) = buf {
            self.buffers.give_back(id, buf);
        }
        let (done, kept) = self.inside.remove(&sub).expect("an order ends once");
        let buf = self.buffers.remove(id);
        done(Reply { outcome, buf: kept.unwrap_or(buf) });
    }
}

fn buf_id(sub: u64) -> BufId {
    BufId::Client(RequestId(sub))
}

#[cfg(test)]
mod tests {
    use levelhead_block::Effort;
    use levelhead_block::conformance::{Plan, check_service};
    use levelhead_units::{Extent, Lba};

    use super::*;

    #[test]
    fn an_abandoned_drive_is_not_waited_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("slow.img");
        let member = format!("emu:{}?size=256KiB&slowdown=1000", file.display());
        let drive = LoneDrive::open(&member.parse().unwrap()).unwrap();
        let (sender, ends) = mpsc::channel();
        for lba in (0..4).map(Lba::new) {
            let extent = Extent::new(lba, Sectors::new(1));
            let command = Command::Read { extent, effort: Effort::Full };
            let sender = sender.clone();
            let done = move |reply: Reply| drop(sender.send(reply.outcome));
            drive.submit(Request::new(command, Buf::zeroed(extent.sectors)), Box::new(done));
        }
        drive.abandon();
        assert!(ends.try_recv().is_err(), "seconds of reads were waited for");
    }

    #[test]
    fn a_lone_drive_conforms_emulated_or_real() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("real.img");
        std::fs::File::create(&file).unwrap().set_len(64 * 4096).unwrap();
        let emulated = format!("emu:{}?size=256KiB", folder.path().join("emulated.img").display());
        let with_memory = format!("{emulated}&cache=write-back");
        for (member, requests) in
            [(file.display().to_string(), 400), (emulated, 40), (with_memory, 40)]
        {
            let drive = LoneDrive::open(&member.parse().unwrap()).unwrap();
            let plan = Plan { seed: 5, requests, sectors_max: 9, batch_max: 6 };
            check_service(Arc::new(drive), plan);
        }
    }
}
