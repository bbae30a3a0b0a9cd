//! A list of arrivals, sent to an array once for each policy.
//!
//! Open loop ([`Sending::Open`]): requests arrive when the list says, whatever the array does. The array
//! takes at most [`IN_ARRAY_MAX`] at a time; what comes on top waits outside and its latency counts from
//! its arrival. A run whose oldest request has waited [`BACKLOG_MAX`] stops and says `overloaded`: its
//! latencies are those of a queue that grows without bound, and mean nothing.
//! [`Sending::OpenToTheEnd`] goes on all the same, for those who ask how long a backlog takes to drain.
//!
//! Closed loop ([`Sending::Closed`]): a fixed number of requests is outstanding at all times, and the
//! next one of the list is sent when one is answered; the list's times do not count, and a latency runs
//! from the sending. The figure of a closed loop is its [rate](Run::rate).

pub mod account;

use std::collections::VecDeque;

use levelhead_array::{Cost, Counters, DriveEvent, Patience, Policy, RequestId};
use levelhead_block::{Command, Durability, Effort, Outcome, ZeroTail};
use levelhead_stats::Summary;
use levelhead_trace::{Arrival, Kind};
use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

use account::{Account, Accounting, Keeper};

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
    /// When it was answered.
    pub at: Instant,
    /// From its arrival, or in a closed loop from its sending, to its answer.
    pub latency: Nanos,
    /// What it took.
    pub cost: Cost,
    /// Whether it was served in full.
    pub verdict: Verdict,
}

/// Whether a request was served in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every sector was read or written.
    Good,
    /// Some sectors were not.
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
    /// From the start to the last answer.
    pub span: Nanos,
    /// Commands that drives were given.
    pub submitted: u64,
    /// What the array counted.
    pub counters: Counters,
    /// What happened to drives' standings.
    pub drive_events: Vec<DriveEvent>,
    /// Where the time went, if that was asked.
    pub account: Option<Account>,
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

    /// Requests served a second, from the start to the last answer.
    pub fn rate(&self) -> f64 {
        let secs = self.span.as_secs_f64();
        if secs > 0.0 { self.served.len() as f64 / secs } else { 0.0 }
    }

    /// Requests of which some sector was asked for again, with retries.
    pub fn redispatched(&self) -> u64 {
        self.served.iter().filter(|served| served.cost.redispatched > 0).count() as u64
    }

    /// Requests that could not be served in full.
    pub fn damaged(&self) -> u64 {
        self.served.iter().filter(|served| served.verdict == Verdict::Damaged).count() as u64
    }

    /// The mean of a cost over all served requests.
    pub fn mean_of(&self, of: impl Fn(&Cost) -> u32) -> f64 {
        let total: u64 = self.served.iter().map(|served| u64::from(of(&served.cost))).sum();
        total as f64 / self.served.len().max(1) as f64
    }
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// At the times of the list; a run whose backlog grows without bound ends early.
    Open,
    /// At the times of the list, however long the backlog.
    OpenToTheEnd,
    /// This number of requests is outstanding at all times, 1 to [`IN_ARRAY_MAX`].
    Closed(usize),
}

/// What to send, and how.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The requests, in order of time, each of which fits the array.
    pub arrivals: &'a [Arrival],
    /// When they are sent.
    pub sending: Sending,
    /// Drives that the array is told at the start not to read.
    pub sat_out: DriveSet,
    /// A drive that says nothing for a while.
    pub hang: Option<Hang>,
    /// Whether the run says where its time went.
    pub accounting: Accounting,
}

/// A drive that hangs: nothing is heard of it for a time, and then of all that it has ended meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Hang {
    /// Which drive.
    pub drive: DriveIdx,
    /// Since when.
    pub from: Instant,
    /// For how long.
    pub time: Nanos,
}

impl<'a> Ask<'a> {
    /// These requests at their times, to an array that is told nothing.
    pub const fn open(arrivals: &'a [Arrival]) -> Self {
        Self {
            arrivals,
            sending: Sending::Open,
            sat_out: DriveSet::EMPTY,
            hang: None,
            accounting: Accounting::Off,
        }
    }
}

/// Sends requests to a world of these settings. `progress` is told how many of them have been served.
///
/// # Errors
///
/// A world that cannot be.
///
/// # Panics
///
/// If a closed loop has no request outstanding, or more than [`IN_ARRAY_MAX`]; if the layout cannot do
/// without the drives to sit out.
pub fn run(
    settings: &WorldSettings,
    ask: &Ask<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Run, WorldError> {
    let arrivals = ask.arrivals;
    if let Sending::Closed(outstanding) = ask.sending {
        assert!((1..=IN_ARRAY_MAX).contains(&outstanding), "{outstanding} requests outstanding");
    }
    let mut world = World::new(settings)?;
    if ask.hang.is_some() {
        world.be_patient(Patience::DEFAULT);
    }
    for drive in ask.sat_out.iter() {
        world.sit_out(Instant::ZERO, drive).expect("the layout can do without it");
    }
    let keeper = match ask.accounting {
        Accounting::Off => None,
        Accounting::On => {
            world.trail().keep();
            Some(Keeper::new(world.drives.len()))
        }
    };
    let mut replay = Replay {
        world,
        keeper,
        arrivals,
        sending: ask.sending,
        hang: ask.hang,
        sent_at: Vec::with_capacity(arrivals.len()),
        outside: VecDeque::new(),
        served: Vec::with_capacity(arrivals.len()),
        answered: vec![false; arrivals.len()],
        oldest: 0,
        last: Instant::ZERO,
    };
    let mut end = End::Complete;
    while replay.served.len() < arrivals.len() {
        replay.step();
        progress(replay.served.len() as u64);
        if ask.sending == Sending::Open && replay.is_overloaded() {
            end = End::Overloaded;
            break;
        }
    }
    let sent = replay.sent_at.len() as u64;
    let (log, events) = (replay.world.log().get(), sent + replay.world.events());
    Ok(Run {
        policy: settings.policy,
        served: replay.served,
        end,
        span: replay.last - Instant::ZERO,
        counters: replay.world.array().counters(),
        submitted: replay.world.submitted(),
        drive_events: replay.world.take_drive_events(),
        account: replay.keeper.map(Keeper::into_account),
        events,
        log,
    })
}

struct Replay<'a> {
    world: World,
    keeper: Option<Keeper>,
    arrivals: &'a [Arrival],
    sending: Sending,
    /// The hang that is still to come.
    hang: Option<Hang>,
    /// When each request came whose time has come.
    sent_at: Vec<Instant>,
    /// Those of them for which the array had no room yet.
    outside: VecDeque<usize>,
    served: Vec<Served>,
    answered: Vec<bool>,
    /// No arrival before this one is unanswered.
    oldest: usize,
    /// The time of the last answer.
    last: Instant,
}

impl Replay<'_> {
    fn step(&mut self) {
        let arrival = self.next_arrival();
        self.count(arrival);
        if let Some(hang) = self.hang
            && hang.from <= self.world.next_at()
            && arrival.is_none_or(|at| hang.from <= at)
        {
            self.hang = None;
            return self.world.stall(hang.from, hang.drive, hang.from + hang.time);
        }
        match arrival {
            Some(at) if at <= self.world.next_at() => {
                self.outside.push_back(self.sent_at.len());
                self.sent_at.push(at);
                self.admit(at);
            }
            Some(_) | None => {
                self.world.step();
                self.admit(self.world.now());
            }
        }
    }

    /// Accounts for the time until the next event, in which no queue changes.
    fn count(&mut self, arrival: Option<Instant>) {
        if let Some(keeper) = &mut self.keeper {
            let next = self.world.next_at();
            let until = arrival.map_or(next, |at| at.min(next));
            keeper.count(until, self.world.queue_lens());
        }
    }

    /// When the next request comes, if that is known already.
    fn next_arrival(&self) -> Option<Instant> {
        let sent = self.sent_at.len();
        let arrival = self.arrivals.get(sent)?;
        match self.sending {
            Sending::Open | Sending::OpenToTheEnd => Some(arrival.at),
            Sending::Closed(outstanding) => {
                (sent - self.served.len() < outstanding).then_some(self.world.now())
            }
        }
    }

    fn admit(&mut self, now: Instant) {
        loop {
            self.collect();
            let inside = self.sent_at.len() - self.outside.len() - self.served.len();
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
            if let Some(keeper) = &mut self.keeper {
                keeper.take(next as u64, self.sent_at[next], now);
            }
            self.world.submit(now, RequestId(next as u64), command, None);
        }
    }

    fn collect(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            self.world.trail().take().into_iter().for_each(|step| keeper.note(step));
        }
        for (at, answer) in self.world.drain_answers() {
            let index = answer.request.0;
            if let Some(keeper) = &mut self.keeper {
                keeper.answer(index, at);
            }
            self.answered[index as usize] = true;
            self.last = at;
            self.served.push(Served {
                index,
                at,
                latency: at - self.sent_at[index as usize],
                cost: answer.cost,
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
        let oldest = self.sent_at.get(self.oldest);
        oldest.is_some_and(|&at| self.world.now().saturating_since(at) > BACKLOG_MAX)
    }
}
