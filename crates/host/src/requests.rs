//! A client's request on its way through the engine: how it is answered whatever happens, and what
//! is counted about it.

use std::collections::VecDeque;

use levelhead_array::Cost;
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

/// What an array has done for its clients since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests answered; one of more than 1 MiB counts once for every 1 MiB.
    pub requests: u64,
    /// What they took, all together.
    pub subs: u64,
    /// Commands withdrawn before a drive had them.
    pub removed: u64,
    /// Commands that asked again, with retries.
    pub redispatched: u64,
    /// Codewords of which a part was computed from redundancy.
    pub decoded: u64,
}

/// [`Served`], and the latencies of the last requests.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) served: Served,
    latencies: VecDeque<Nanos>,
}

impl Account {
    pub(crate) fn add(&mut self, cost: Cost, latency: Nanos) {
        let served = &mut self.served;
        served.requests += 1;
        served.subs += u64::from(cost.subs);
        served.removed += u64::from(cost.removed);
        served.redispatched += u64::from(cost.redispatched);
        served.decoded += u64::from(cost.decoded);
        if self.latencies.len() == LATENCIES {
            self.latencies.pop_front();
        }
        self.latencies.push_back(latency);
    }

    pub(crate) fn latency(&self) -> Summary {
        let mut latencies: Vec<Nanos> = self.latencies.iter().copied().collect();
        Summary::of(&mut latencies)
    }
}
