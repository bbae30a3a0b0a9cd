//! What lives in virtual time as a device that is asked in batches: time runs until the batch is
//! answered.
//!
//! Differs from the real thing: no time passes between two batches.

use std::collections::{BTreeMap, VecDeque};

use levelhead_array::RequestId;
use levelhead_block::{BlockDevice, Buf, Command, Data, Payload, Piece, Reply, Request};
use levelhead_units::Sectors;

use crate::{Lone, World};

/// Something in virtual time that answers requests.
pub trait Pump: Send {
    /// How many sectors it has.
    fn size(&self) -> Sectors;

    /// Whether it can take another request now.
    fn has_room(&self) -> bool;

    /// A request arrives now, under a name of its own.
    fn begin(&mut self, name: u64, request: Request);

    /// Lets time pass until something may have ended; what has.
    fn pump(&mut self) -> Vec<(u64, Reply)>;
}

/// See the module.
#[derive(Debug)]
pub struct Pumped<P> {
    inner: P,
    name_last: u64,
}

impl<P: Pump> Pumped<P> {
    /// Asks `inner`, of which nothing else has been asked.
    pub fn new(inner: P) -> Self {
        Self { inner, name_last: 0 }
    }
}

impl<P: Pump> BlockDevice for Pumped<P> {
    fn size(&self) -> Sectors {
        self.inner.size()
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        let first = self.name_last + 1;
        self.name_last += batch.len() as u64;
        let mut waiting: VecDeque<(u64, Request)> = (first..).zip(batch).collect();
        let mut replies = BTreeMap::new();
        let count = waiting.len();
        while replies.len() < count {
            while self.inner.has_room()
                && let Some((name, request)) = waiting.pop_front()
            {
                self.inner.begin(name, request);
            }
            for (name, reply) in self.inner.pump() {
                let before = replies.insert(name, reply);
                assert!(before.is_none(), "request {name} was answered twice");
            }
        }
        replies.into_values().collect()
    }
}

impl Pump for Lone {
    fn size(&self) -> Sectors {
        self.size()
    }

    fn has_room(&self) -> bool {
        self.has_room()
    }

    fn begin(&mut self, name: u64, request: Request) {
        self.submit(self.now(), name, request);
    }

    fn pump(&mut self) -> Vec<(u64, Reply)> {
        self.run_on()
    }
}

/// A world whose bytes are carried.
impl Pump for World {
    fn size(&self) -> Sectors {
        self.size()
    }

    fn has_room(&self) -> bool {
        true
    }

    fn begin(&mut self, name: u64, request: Request) {
        let Request { command, payload, .. } = request;
        let buf = match (payload, command) {
            (Payload::Room(buf), _) => buf,
            (Payload::Pieces(pieces), _) => Piece::gather(pieces),
            (Payload::None, Command::WriteZeroes { extent, .. } | Command::Read { extent, .. }) => {
                Buf::zeroed(extent.sectors)
            }
            (Payload::None, Command::Write { .. } | Command::Trim { .. } | Command::Flush) => {
                Buf::empty()
            }
        };
        self.submit(self.now(), RequestId(name), command, Some(buf));
    }

    fn pump(&mut self) -> Vec<(u64, Reply)> {
        let mut answers = self.take_answers();
        if answers.is_empty() {
            self.step();
            answers = self.take_answers();
        }
        let reply = |(_, answer): (_, levelhead_array::Answer)| {
            let buf = self.take_buf(answer.request).expect("bytes are carried");
            let reply = Reply { data: Data::Buf(buf), ..Reply::bare(answer.outcome) };
            (answer.request.0, reply)
        };
        answers.into_iter().map(reply).collect()
    }
}
