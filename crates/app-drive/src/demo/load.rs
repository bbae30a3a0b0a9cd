//! The load: 80 kB reads through the client, open or closed loop, for a fixed time.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use levelhead_block::{BlockService, Data, Effort, Request};
use levelhead_nbd::Client;
use levelhead_stats::{Streams, Summary};
use levelhead_units::{Extent, Lba, Nanos, SECTOR_SIZE, Sectors};

use super::interrupted;
use super::lateness::Watch;
use levelhead_app::{AppError, Stop, Task};

/// Sectors of one read: 80 kB.
const READ: Sectors = Sectors::new(20);

/// Mean time between arrivals in the open loop.
const INTERVAL: Nanos = Nanos::from_millis(8);

/// Different places that are read, in turn. A drive without a cache does not know a place again, and
/// fewer of them are sooner written before the runs and removed after them.
const PLACES: usize = 512;

/// Reads in flight in the closed loop.
pub(super) const OUTSTANDING: usize = 4;

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// As a Poisson process, whatever the array does.
    Open,
    /// The next one when one is answered.
    Closed,
}

/// What is read, and what must be there.
pub(super) struct Workload {
    streams: Streams,
    length: Duration,
    extents: Vec<Extent>,
    arrivals: Vec<(Nanos, Extent)>,
}

/// What a run has measured.
pub(super) struct Measured {
    pub(super) latencies: Vec<Nanos>,
    pub(super) unfinished: u64,
    pub(super) verified_bytes: u64,
    /// How late the machine woke threads up meanwhile.
    pub(super) lateness: Summary,
}

impl Workload {
    /// The places, and the arrivals in `length`.
    pub(super) fn draw(size: Sectors, streams: Streams, length: Duration) -> Self {
        let (mut gaps, mut places) = (streams.stream("demo/gaps"), streams.stream("demo/places"));
        let place = |_| Extent::new(Lba::new(places.below((size - READ).get() + 1)), READ);
        let extents: Vec<Extent> = (0..PLACES).map(place).collect();
        let mut turns = extents.iter().copied().cycle();
        let mut arrivals = Vec::new();
        let mut at = gaps.exponential(INTERVAL);
        while Duration::from(at) < length {
            arrivals.extend(turns.next().map(|extent| (at, extent)));
            at += gaps.exponential(INTERVAL);
        }
        Self { streams, length, extents, arrivals }
    }

    /// How long a run lasts.
    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// The places, in the order in which they are read, over and over.
    pub(super) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// When reads come in the open loop, after the start, and where.
    pub(super) fn arrivals(&self) -> &[(Nanos, Extent)] {
        &self.arrivals
    }

    /// What the sectors of `extent` hold: a function of their address and the seed.
    pub(super) fn content(&self, extent: Extent, bytes: &mut [u8]) {
        for (lba, sector) in extent.iter().zip(bytes.chunks_exact_mut(SECTOR_SIZE)) {
            self.streams.stream(&format!("demo/sector/{}", lba.get())).fill(sector);
        }
    }
}

/// A finished read, on its way to the verifier.
struct Finished {
    extent: Extent,
    due: Instant,
    at: Instant,
    good: bool,
    data: Data,
}

/// Runs the load for its length.
pub(super) fn run(
    client: &Client,
    workload: &Workload,
    shape: Shape,
    stop: &Stop,
    task: &dyn Task,
) -> Result<Measured, AppError> {
    let (sender, finished) = mpsc::channel();
    let watch = Watch::start();
    let start = Instant::now();
    let source = Source { client, sender, pending: Arc::default() };
    let end = start + workload.length();
    let mut tally = match shape {
        Shape::Open => open(&source, workload, &finished, (start, end), stop, task)?,
        Shape::Closed => closed(&source, workload, &finished, (start, end), stop, task)?,
    };
    // Under the lock every read is either pending or told.
    let pending = source.pending.lock().unwrap_or_else(PoisonError::into_inner);
    let mut late: Vec<Instant> = pending.clone();
    for finished in finished.try_iter() {
        let bytes = check(workload, &finished)?;
        tally.verified_bytes += bytes;
        if finished.at <= end {
            tally.latencies.push(finished.latency());
        } else {
            late.push(finished.due);
        }
    }
    drop(pending);
    let Tally { mut latencies, verified_bytes } = tally;
    let unfinished = late.len() as u64;
    latencies.extend(late.into_iter().map(|due| nanos(end.saturating_duration_since(due))));
    Ok(Measured { latencies, unfinished, verified_bytes, lateness: watch.end() })
}

struct Source<'a> {
    client: &'a Client,
    sender: Sender<Finished>,
    /// When each read in flight was due.
    pending: Arc<Mutex<Vec<Instant>>>,
}

impl Source<'_> {
    fn send(&self, extent: Extent, due: Instant) {
        let (sender, pending) = (self.sender.clone(), Arc::clone(&self.pending));
        pending.lock().unwrap_or_else(PoisonError::into_inner).push(due);
        let request = Request::read(extent, Effort::Full);
        let done = move |reply: levelhead_block::Reply| {
            let (at, good) = (Instant::now(), reply.outcome.is_good());
            let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
            // Its end is told under the lock: it is either pending or told, never both.
            let told = sender.send(Finished { extent, due, at, good, data: reply.data });
            if told.is_ok()
                && let Some(place) = pending.iter().position(|other| *other == due)
            {
                pending.swap_remove(place);
            }
        };
        self.client.submit(request, Box::new(done));
    }
}

#[derive(Default)]
struct Tally {
    latencies: Vec<Nanos>,
    verified_bytes: u64,
}

impl Tally {
    fn add(&mut self, workload: &Workload, finished: &Finished) -> Result<(), AppError> {
        self.verified_bytes += check(workload, finished)?;
        self.latencies.push(finished.latency());
        Ok(())
    }
}

impl Finished {
    fn latency(&self) -> Nanos {
        nanos(self.at.saturating_duration_since(self.due))
    }
}

/// How many bytes of a read were found right: all of them, or it is an error.
fn check(workload: &Workload, finished: &Finished) -> Result<u64, AppError> {
    let Finished { extent, good, data, .. } = finished;
    if !good {
        return Err(AppError::trouble(format!("the read of {extent:?} failed")));
    }
    let mut expected = vec![0; extent.sectors.bytes().get() as usize];
    workload.content(*extent, &mut expected);
    if !data.holds(&expected) {
        return Err(AppError::trouble(format!("{extent:?} holds other bytes than were written")));
    }
    Ok(expected.len() as u64)
}

fn nanos(length: Duration) -> Nanos {
    Nanos::new(u64::try_from(length.as_nanos()).expect("a run is short"))
}

fn open(
    source: &Source<'_>,
    workload: &Workload,
    finished: &Receiver<Finished>,
    (start, end): (Instant, Instant),
    stop: &Stop,
    task: &dyn Task,
) -> Result<Tally, AppError> {
    let mut tally = Tally::default();
    for &(at, extent) in &workload.arrivals {
        let due = start + Duration::from(at);
        if stop.wait_until(due) {
            return Err(interrupted());
        }
        source.send(extent, due);
        task.reach(start.elapsed().as_millis() as u64);
        for finished in finished.try_iter() {
            tally.add(workload, &finished)?;
        }
    }
    if stop.wait_until(end) {
        return Err(interrupted());
    }
    Ok(tally)
}

fn closed(
    source: &Source<'_>,
    workload: &Workload,
    finished: &Receiver<Finished>,
    (start, end): (Instant, Instant),
    stop: &Stop,
    task: &dyn Task,
) -> Result<Tally, AppError> {
    let mut tally = Tally::default();
    let mut extents = workload.extents.iter().cycle();
    let mut send = || source.send(*extents.next().expect("a cycle has no end"), Instant::now());
    (0..OUTSTANDING).for_each(|_| send());
    loop {
        // Not longer, so that a wish to stop is heard.
        let patience = Duration::from_millis(100);
        match finished.recv_timeout(patience.min(end.saturating_duration_since(Instant::now()))) {
            Ok(finished) => {
                send();
                tally.add(workload, &finished)?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("the source holds a sender"),
        }
        task.reach(start.elapsed().as_millis() as u64);
        if stop.is_wished() {
            return Err(interrupted());
        }
        if Instant::now() >= end {
            return Ok(tally);
        }
    }
}
