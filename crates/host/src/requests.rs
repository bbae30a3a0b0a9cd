//! A client's request on its way through the engine: how it is answered whatever happens, and how long
//! the last ones took.

use std::collections::VecDeque;

use levelhead_block::{Command, Data, Done, Outcome, Reply};
use levelhead_stats::Summary;
use levelhead_units::{Instant, Nanos};

use crate::gate::Permit;

/// How many latencies are kept.
const LATENCIES: usize = 4_096;

/// A request that has not been answered. If it is dropped, it is answered as [`Outcome::Gone`]: no
/// client waits for an engine that has ended.
pub(crate) struct Pending {
    pub(crate) command: Command,
    pub(crate) submitted: Instant,
    /// Absent once it has been answered.
    done: Option<(Done, Permit)>,
}

impl Pending {
    pub(crate) fn new(command: Command, submitted: Instant, done: Done, permit: Permit) -> Self {
        Self { command, submitted, done: Some((done, permit)) }
    }

    /// Answers it; there is room for another one before the client hears of it.
    pub(crate) fn answer(mut self, outcome: Outcome, data: Data) {
        let (done, permit) = self.done.take().expect("a request is answered once");
        drop(permit);
        done(Reply { outcome, data, reason: None });
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some((done, permit)) = self.done.take() {
            drop(permit);
            done(Reply::gone("the array is not running any more"));
        }
    }
}

/// The latencies of the last requests.
#[derive(Debug, Default)]
pub(crate) struct Latencies(VecDeque<Nanos>);

impl Latencies {
    pub(crate) fn note(&mut self, latency: Nanos) {
        if self.0.len() == LATENCIES {
            self.0.pop_front();
        }
        self.0.push_back(latency);
    }

    pub(crate) fn summary(&self) -> Summary {
        let mut latencies: Vec<Nanos> = self.0.iter().copied().collect();
        Summary::of(&mut latencies)
    }
}
