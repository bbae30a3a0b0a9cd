//! The drives on which the loads run, and what is measured there.

use std::sync::Arc;

use levelhead_drive::{
    CacheMode, Faults, IdleVerify, Placing, Profile, QUEUE_DEPTH_MAX, Retention, Scheduler,
    Settings, Verify, VerifyStart,
};
use levelhead_stats::Streams;
use levelhead_trace::{Arrival, Server};
use levelhead_units::{Bytes, Nanos};

use super::Input;
use crate::open_loop::{OpenLoop, Outcomes};
use crate::studies::Measured;

/// 10^6 bytes.
pub(super) const MEGABYTE: u64 = 1_000_000;

/// Memory that no workload fills.
const UNLIMITED: Bytes = Bytes::new(1 << 40);

/// The memory of a drive of the paper's time: "approximately 16 MBytes".
const USUAL: Bytes = Bytes::new(16 * MEGABYTE);

/// The paper's verification: SPTF after 1 ms of idleness.
pub(super) const PAPER: IdleVerify =
    IdleVerify { wait: Nanos::from_millis(1), start: VerifyStart::AtOnce, sums: Bytes::new(0) };

/// What waits is never in want of room.
pub(super) const ROOM_FOR_ALL: Retention =
    Retention { placing: Placing::Dedicated, memory: USUAL, writes: UNLIMITED };

/// An input and the requests that it gives with one seed.
pub(super) struct Bed {
    profile: Arc<Profile>,
    streams: Streams,
    requests: Vec<Arrival>,
}

impl Bed {
    /// The requests of an input with this seed, and the drive for it: 10,000 rpm for Code Dev., 15,000 rpm for all
    /// others.
    pub(super) fn new(input: &Input, seed: u64) -> Result<Self, String> {
        let name = match input.server() {
            Some(Server::CodeDev) => "iraw-10k",
            Some(Server::Web | Server::Email | Server::UserAcc | Server::Sas) | None => "iraw-15k",
        };
        let profile = Profile::shipped(name).ok_or_else(|| format!("no drive {name}"))?;
        let requests = input.answered(seed)?.into_iter().map(|one| one.arrival).collect();
        Ok(Self { profile: Arc::new(profile), streams: Streams::new(seed), requests })
    }

    /// Serves all requests.
    pub(super) fn run(&self, verify: Verify, retention: Retention) -> Result<Outcomes, String> {
        let settings = Settings {
            queue_depth: QUEUE_DEPTH_MAX,
            scheduler: Scheduler::SOONEST,
            cache: CacheMode::Read,
            retention: Some(retention),
            verify,
            faults: Faults::NONE,
            size: None,
        };
        let profile = Arc::clone(&self.profile);
        let run = OpenLoop { profile, settings, streams: self.streams, requests: &self.requests };
        run.run(|_| ()).map_err(|error| error.to_string())
    }

    pub(super) fn requests(&self) -> &[Arrival] {
        &self.requests
    }
}

/// What a run says of verification and memory, by the names of rows.
pub(super) fn figures(outcomes: &Outcomes) -> Measured {
    let counters = outcomes.counters;
    let verify = counters.verify;
    let percent = |part: u64, whole: u64| part as f64 / whole.max(1) as f64 * 100.0;
    let response = verify.response_mean().unwrap_or(Nanos::ZERO).as_millis_f64();
    let delay = verify.delay.as_millis_f64() / verify.delayed.max(1) as f64;
    let wanted = verify.writes - verify.superseded;
    // Of nothing, nothing is left unverified.
    let validated = if wanted == 0 { 100.0 } else { percent(verify.verified, wanted) };
    Measured::default()
        .with("validated", validated)
        .with("cache", verify.room_max as f64 / MEGABYTE as f64)
        .with("memory", verify.memory_max as f64 / MEGABYTE as f64)
        .with("response", response)
        .with("delayed", percent(verify.delayed, outcomes.ended.len() as u64))
        .with("delay", delay)
        .with("longest delay", verify.delay_max.as_millis_f64())
        .with("read hits", percent(counters.read_hits, counters.reads))
}
