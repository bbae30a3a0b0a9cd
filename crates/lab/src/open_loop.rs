//! Requests over one modelled drive without its bytes: what they wait for, and what the drive does meanwhile.
//!
//! An open loop: requests come when they come, whatever the drive does. What it has no room for waits in front of it,
//! first come, first served.

use std::collections::VecDeque;
use std::sync::Arc;

use levelhead_block::{Command, Durability, Effort, ZeroTail};
use levelhead_drive::{Completion, Counters, Drive, Profile, Settings, SettingsError};
use levelhead_stats::{Streams, quantile_of_sorted};
use levelhead_trace::{Arrival, Kind};
use levelhead_units::{Extent, Instant, Lba, Nanos, Sectors};

/// How long a drive is left alone after the last request: it has verified everything long before.
const AFTERWARDS: Nanos = Nanos::from_secs(3_600);

/// One drive, and what comes to it.
#[derive(Clone, Debug)]
pub struct OpenLoop<'a> {
    /// Its make.
    pub profile: Arc<Profile>,
    /// What it is besides.
    pub settings: Settings,
    /// Where its chance comes from.
    pub streams: Streams,
    /// What comes, ordered by time. Requests past the drive's end come to the place that is as far from its start,
    /// counted around.
    pub requests: &'a [Arrival],
}

/// What has become of the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcomes {
    /// When each of them ended, in the order in which they came.
    pub ended: Vec<Instant>,
    /// What the drive has done, an hour after the last of them.
    pub counters: Counters,
}

impl OpenLoop<'_> {
    /// Serves all requests. `progress` is told how many have come, now and then.
    ///
    /// # Errors
    ///
    /// A drive that cannot be.
    pub fn run(&self, mut progress: impl FnMut(usize)) -> Result<Outcomes, SettingsError> {
        let drive = Drive::new(Arc::clone(&self.profile), self.settings, self.streams, "drive/0")?;
        let ended = vec![Instant::ZERO; self.requests.len()];
        let mut run = Run { drive, requests: self.requests, waiting: VecDeque::new(), ended };
        for (idx, request) in self.requests.iter().enumerate() {
            if idx % PROGRESS_EVERY == 0 {
                progress(idx);
            }
            run.feed(request.at);
            run.waiting.push_back(idx);
            run.submit(request.at);
        }
        run.drain();
        Ok(Outcomes { ended: run.ended, counters: run.drive.counters() })
    }
}

const PROGRESS_EVERY: usize = 4_096;

struct Run<'a> {
    drive: Drive,
    requests: &'a [Arrival],
    /// Requests that the drive has had no room for.
    waiting: VecDeque<usize>,
    ended: Vec<Instant>,
}

impl Run<'_> {
    /// Lets the drive serve until `now`, and gives it what waits as it makes room.
    fn feed(&mut self, now: Instant) {
        while !self.waiting.is_empty()
            && let Some(at) = self.drive.deadline().filter(|&at| at <= now)
        {
            self.drive.handle_timeout(at);
            self.submit(at);
        }
        self.drive.handle_timeout(now);
        self.collect();
    }

    fn submit(&mut self, now: Instant) {
        self.collect();
        while self.drive.has_room()
            && let Some(idx) = self.waiting.pop_front()
        {
            let command = command(&self.requests[idx], self.drive.size());
            self.drive.handle_submit(now, idx as u64, command, idx as u64);
        }
    }

    fn collect(&mut self) {
        while let Some(Completion { id, ended, .. }) = self.drive.poll() {
            self.ended[id as usize] = ended;
        }
    }

    fn drain(&mut self) {
        let mut last = self.requests.last().map_or(Instant::ZERO, |request| request.at);
        while self.drive.queue_len() > 0
            && let Some(at) = self.drive.deadline()
        {
            self.drive.handle_timeout(at);
            self.submit(at);
            last = last.max(at);
        }
        self.drive.settle(last + AFTERWARDS);
        self.collect();
    }
}

/// What a request asks of a drive of `size`.
fn command(request: &Arrival, size: Sectors) -> Command {
    let sectors = request.extent.sectors.min(size);
    let places = size.get() - sectors.get() + 1;
    let extent = Extent::new(Lba::new(request.extent.lba.get() % places), sectors);
    match request.kind {
        Kind::Read => Command::Read { extent, effort: Effort::Full },
        Kind::Write => {
            Command::Write { extent, durability: Durability::Cached, zero_tail: ZeroTail::None }
        }
    }
}

impl Outcomes {
    /// From the coming of each request to its end.
    pub fn responses(&self, requests: &[Arrival]) -> Responses {
        let mut all: Vec<Nanos> =
            self.ended.iter().zip(requests).map(|(ended, one)| *ended - one.at).collect();
        all.sort_unstable();
        Responses { sorted: all }
    }

    /// How many requests ended in each window of this length, from the first on.
    pub fn per_window(&self, window: Nanos) -> Vec<u64> {
        let of = |ended: Instant| ((ended - Instant::ZERO).get() / window.get()) as usize;
        let mut counts = vec![0; self.ended.iter().map(|&ended| of(ended) + 1).max().unwrap_or(0)];
        for &ended in &self.ended {
            counts[of(ended)] += 1;
        }
        counts
    }
}

/// The response times of all requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Responses {
    sorted: Vec<Nanos>,
}

impl Responses {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Their mean, in milliseconds; 0 of none.
    pub fn mean_ms(&self) -> f64 {
        let total: f64 = self.sorted.iter().map(|one| one.as_millis_f64()).sum();
        total / self.sorted.len().max(1) as f64
    }

    /// The quantile at this share, in milliseconds; 0 of none.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        if self.sorted.is_empty() {
            return 0.0;
        }
        quantile_of_sorted(&self.sorted, share).as_millis_f64()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn settings() -> Settings {
        Settings { queue_depth: 4, ..Settings::PLAIN }
    }

    #[test]
    fn every_request_ends_once_however_many_wait() {
        let profile = Arc::new(Profile::shipped("iraw-15k").unwrap());
        // A hundred at once, of which four fit; then one alone, past the end of the drive.
        let request = |at_ms: u64, lba: u64| Arrival {
            at: Instant::ZERO + Nanos::from_millis(at_ms),
            kind: if lba.is_multiple_of(2) { Kind::Read } else { Kind::Write },
            extent: Extent::new(Lba::new(lba), Sectors::new(4)),
        };
        let mut requests: Vec<Arrival> = (0..100).map(|at| request(10, at * 1_001)).collect();
        requests.push(request(5_000, 1 << 40));
        let run = OpenLoop {
            profile,
            settings: settings(),
            streams: Streams::new(1),
            requests: &requests,
        };
        let outcomes = run.run(|_| ()).unwrap();
        assert_eq!(outcomes, run.run(|_| ()).unwrap());
        assert_eq!((outcomes.counters.commands, outcomes.counters.reads), (101, 51));
        let mut ended = outcomes.ended.clone();
        ended.sort_unstable();
        ended.dedup();
        assert_eq!(ended.len(), 101, "one after the other");
        assert_eq!(outcomes.per_window(Nanos::from_secs(1)), [100, 0, 0, 0, 0, 1]);
        let responses = outcomes.responses(&requests);
        assert!(responses.mean_ms() > responses.quantile_ms(0.01));
    }
}
