//! A list of arrivals, sent to an array once for each policy.
//!
//! Open loop: requests arrive when the list says, whatever the array does. The array takes at most
//! [`IN_ARRAY_MAX`] at a time; what comes on top waits outside and its latency counts from its
//! arrival. A run whose oldest request has waited [`BACKLOG_MAX`] stops and says `overloaded`: its
//! latencies are those of a queue that grows without bound, and mean nothing.

use std::collections::VecDeque;

use levelhead_array::{DriveEvent, Policy, RequestId};
use levelhead_block::{Command, Durability, Effort, Outcome, ZeroTail};
use levelhead_stats::Summary;
use levelhead_trace::{Arrival, Kind};
use levelhead_units::{DriveSet, Instant, Nanos};

use crate::{World, WorldError, WorldSettings};

/// Requests inside the array at a time.
pub const IN_ARRAY_MAX: usize = 4096;

/// A request older than this ends the run.
pub const BACKLOG_MAX: Nanos = Nanos::from_secs(60);

/// One request's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its place in the list of arrivals.
    pub index: u64,
    /// From its arrival to its answer.
    pub latency: Nanos,
    /// Sub-requests put into queues.
    pub subs: u32,
    /// Those of them withdrawn.
    pub removed: u32,
    /// Those of them that asked again with retries.
    pub redispatched: u32,
    /// Codewords decoded.
    pub decoded: u32,
    /// Whether every sector was had.
    pub verdict: Verdict,
}

/// Whether a request was served in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Good,
    /// Some sectors could not be had.
    Damaged,
}

/// Whether a run went to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every arrival was served.
    Complete,
    /// The backlog grew past [`BACKLOG_MAX`].
    Overloaded,
}

/// A policy's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The policy.
    pub policy: Policy,
    /// Every served request, in the order of the answers.
    pub served: Vec<Served>,
    /// Whether it went to its end.
    pub end: End,
    /// Commands that drives were given.
    pub submitted: u64,
    /// What happened to drives' standings.
    pub drive_events: Vec<DriveEvent>,
    /// How many events that took: arrivals, and those of the world.
    pub events: u64,
    /// The hash of all that happened.
    pub log: u64,
}

impl Run {
    /// The figures of all served requests' latencies.
    pub fn summary(&self) -> Summary {
        Summary::of(&mut self.latencies(|_| true))
    }

    /// The latencies of the requests that `select` picks by their place in the list of arrivals.
    pub fn latencies(&self, select: impl Fn(u64) -> bool) -> Vec<Nanos> {
        let picked = self.served.iter().filter(|served| select(served.index));
        picked.map(|served| served.latency).collect()
    }

    /// Requests of which some sector was asked for again, with retries.
    pub fn redispatched(&self) -> u64 {
        self.served.iter().filter(|served| served.redispatched > 0).count() as u64
    }

    /// Requests that could not be served in full.
    pub fn damaged(&self) -> u64 {
        self.served.iter().filter(|served| served.verdict == Verdict::Damaged).count() as u64
    }

    /// The mean of a cost over all served requests.
    pub fn mean_of(&self, cost: impl Fn(&Served) -> u32) -> f64 {
        let total: u64 = self.served.iter().map(|served| u64::from(cost(served))).sum();
        total as f64 / self.served.len().max(1) as f64
    }
}

/// Sends the arrivals, which are in order of time and fit the array, to a world of these settings.
/// `progress` is told how many of them have been served.
pub fn run(
    settings: &WorldSettings,
    arrivals: &[Arrival],
    progress: &mut dyn FnMut(u64),
) -> Result<Run, WorldError> {
    run_told(settings, DriveSet::EMPTY, arrivals, progress)
}

/// The same, with an array that was told at the start not to read these drives.
///
/// Panics if the layout cannot do without them.
pub fn run_told(
    settings: &WorldSettings,
    sat_out: DriveSet,
    arrivals: &[Arrival],
    progress: &mut dyn FnMut(u64),
) -> Result<Run, WorldError> {
    let mut world = World::new(settings)?;
    for drive in sat_out.iter() {
        world.sit_out(Instant::ZERO, drive).expect("the layout can do without it");
    }
    let mut replay = Replay {
        world,
        arrivals,
        sent: 0,
        outside: VecDeque::new(),
        served: Vec::with_capacity(arrivals.len()),
        answered: vec![false; arrivals.len()],
        oldest: 0,
    };
    let mut end = End::Complete;
    while replay.served.len() < arrivals.len() {
        replay.step();
        progress(replay.served.len() as u64);
        if replay.is_overloaded() {
            end = End::Overloaded;
            break;
        }
    }
    let (log, events) = (replay.world.log().get(), replay.sent as u64 + replay.world.events());
    Ok(Run {
        policy: settings.policy,
        served: replay.served,
        end,
        submitted: replay.world.submitted(),
        drive_events: replay.world.take_drive_events(),
        events,
        log,
    })
}

struct Replay<'a> {
    world: World,
    arrivals: &'a [Arrival],
    /// Arrivals whose time has come.
    sent: usize,
    /// Those of them for which the array had no room yet.
    outside: VecDeque<usize>,
    served: Vec<Served>,
    answered: Vec<bool>,
    /// No arrival before this one is unanswered.
    oldest: usize,
}

impl Replay<'_> {
    fn step(&mut self) {
        match self.arrivals.get(self.sent) {
            Some(arrival) if arrival.at <= self.world.next_at() => {
                self.outside.push_back(self.sent);
                self.sent += 1;
                self.admit(arrival.at);
            }
            Some(_) | None => {
                self.world.step();
                self.admit(self.world.now());
            }
        }
    }

    fn admit(&mut self, now: Instant) {
        loop {
            self.collect();
            let inside = self.sent - self.outside.len() - self.served.len();
            if inside >= IN_ARRAY_MAX {
                return;
            }
            let Some(next) = self.outside.pop_front() else { return };
            let Arrival { kind, extent, .. } = self.arrivals[next];
            let command = match kind {
                Kind::Read => Command::Read { extent, effort: Effort::Full },
                Kind::Write => {
                    let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
                    Command::Write { extent, durability, zero_tail }
                }
            };
            self.world.submit(now, RequestId(next as u64), command, None);
        }
    }

    fn collect(&mut self) {
        for (at, answer) in self.world.take_answers() {
            let index = answer.request.0;
            self.answered[index as usize] = true;
            self.served.push(Served {
                index,
                latency: at - self.arrivals[index as usize].at,
                subs: answer.cost.subs,
                removed: answer.cost.removed,
                redispatched: answer.cost.redispatched,
                decoded: answer.cost.decoded,
                verdict: if answer.outcome == Outcome::GOOD {
                    Verdict::Good
                } else {
                    Verdict::Damaged
                },
            });
        }
    }

    fn is_overloaded(&mut self) -> bool {
        while self.answered.get(self.oldest) == Some(&true) {
            self.oldest += 1;
        }
        self.oldest < self.sent
            && self.world.now().saturating_since(self.arrivals[self.oldest].at) > BACKLOG_MAX
    }
}
