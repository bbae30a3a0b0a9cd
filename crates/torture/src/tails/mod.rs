//! Swarms with the tail as an invariant: whatever up to `k` drives do, reads are hardly slower than without those drives.
//!
//! ```text
//!   seed --> layout, drives that are bad, load --> requests --+--> array with the bad drives --> right? p99, waits
//!                                                             |                                     | at most
//!                                                             +--> the same array without them --> B times p99
//! ```
//!
//! The server itself stands still now and then, with commands under way. Bad drives are slow, hang, retry, fail or lie about flushes; there are never more of them than the layout can lose.
//! The load is 10 to 60 % of what the array carries without them, in spells with pauses between.
//!
//! # Invariants
//!
//! - Y1. Every request is answered once, and in the end nothing is under way.
//! - Y2. Every sector that is read has the bytes that were last written to it, and none is missing.
//! - Y3. A drive's queue is no longer than what the outstanding requests can ask of it, and the array itself.
//! - Y4. The 99th percentile of the reads is at most [`TIMES_MAX`] times that of the same requests on the array without
//!   the bad drives.
//! - Y5. While a drive hangs no read waits longer than [`WAIT_MAX`], if it does not on the array without that drive.
//! - Y6. A standstill of the server (0.1 s to 10 h) costs no drive its place: only a drive that hangs fails for its silence.
//!
//! Reads that break Y4 or Y5 are of a [`Kind`], by what kept them. The array is known to break both by some kinds
//! ([`Aim::KNOWN`]), and by no other.
//!
//! Beside the requests lost drives are replaced and filled, and the array is scrubbed; in the end of some runs all lost
//! drives are replaced, sectors are corrupted silently, a scrub must repair what it can locate and leave all else alone,
//! and everything is read.
//!
//! It leaves out: silently wrong sectors while clients read, which nothing notices before a scrub; drives that become bad
//! while others are being mended.

mod care;
mod draw;
mod kinds;
mod pass;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use levelhead_array::{Content, Policy};
use levelhead_stats::Summary;
use levelhead_trace::{Arrival, Kind as Access};
use levelhead_units::{Instant, Nanos, Ratio};

use self::draw::{Script, Shape};
pub use self::kinds::Kind;
use self::kinds::Ways;
use self::pass::{Events, Outcomes};
use levelhead_lab::World;
use levelhead_lab::replay::{self, Sending};

/// How many times as long as without the bad drives the 99th percentile may be.
pub const TIMES_MAX: f64 = 2.5;

/// The longest time that a read waits for a drive that hangs.
pub const WAIT_MAX: Nanos = Nanos::from_secs(1);

/// What an array carries is measured with this number of requests outstanding,
const OUTSTANDING: usize = 64;

/// over this number of requests.
const REQUESTS: u64 = 600;

/// What a run is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aim {
    /// How the array reads.
    pub policy: Policy,
    /// The share of reads in percent; drawn if it is not said.
    pub reads: Option<u64>,
    /// The layout; drawn if it is not said.
    pub layout: Option<&'static str>,
    /// Whether there is a journal; drawn if it is not said.
    pub has_journal: Option<bool>,
    /// What is wrong with every bad drive all the time; drawn if it is not said.
    pub faults: Option<&'static str>,
    /// After how many seconds, on average, every bad drive hangs, and again; drawn, as whether one does, if it is not said.
    pub hangs_after: Option<u64>,
    /// Whether the array is scrubbed early on.
    pub scrubs: bool,
    /// What is wrong with the world, for a canary.
    pub planted: Planted,
}

impl Aim {
    /// The array as it is served by default.
    pub const DEFAULT: Self = Self {
        policy: Policy::DEFAULT,
        reads: None,
        layout: None,
        has_journal: None,
        faults: None,
        hangs_after: None,
        scrubs: false,
        planted: Planted::None,
    };

    /// Drives that hang while a journal takes writes.
    const HANGS: Self =
        Self { hangs_after: Some(15), has_journal: Some(true), reads: Some(80), ..Self::DEFAULT };

    /// The same during a scrub.
    const SCRUBS: Self = Self {
        scrubs: true,
        hangs_after: Some(2),
        layout: Some("raid5:5+1,chunk=16KiB"),
        ..Self::HANGS
    };

    /// Slow drives that hang at once. Nothing is written.
    const SLOW: Self = Self {
        reads: Some(100),
        layout: Some("raid6:6+2,chunk=64KiB"),
        faults: Some("slowdown=40"),
        hangs_after: Some(0),
        ..Self::DEFAULT
    };

    /// An aim at each kind that the array is known to have, and a seed that finds it: tests assert that it is found.
    pub const KNOWN: [(Kind, Self, u64); 6] = [
        (Kind::Unjournaled, Self { has_journal: Some(false), ..Self::HANGS }, 2),
        (Kind::FewRings, Self { layout: Some("raid1:3,chunk=64KiB"), ..Self::HANGS }, 2),
        (Kind::Held, Self { layout: Some("raid10:4,chunk=16KiB"), ..Self::HANGS }, 4),
        (Kind::OwnWork, Self::SCRUBS, 0),
        (Kind::AskedLate, Self::SLOW, 3),
        (Kind::Slow, Self::DEFAULT, 5_003_298),
    ];
}

/// Something wrong that must be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Nothing.
    None,
    /// One answer never arrives.
    Swallow,
    /// One answer arrives twice.
    Twice,
    /// Drives flip bits as they store sectors.
    Flips,
    /// The server takes time in which it did not run for time in which the drives were silent.
    Unnoticed,
    /// The array is asked hundreds of times what it was asked once.
    Crowd,
}

/// What one run has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What everything was drawn from.
    pub seed: u64,
    /// The array, its drives and its load.
    pub what: String,
    /// Reads.
    pub reads: u64,
    /// Sectors read and found right, on both arrays.
    pub verified: u64,
    /// Codewords decoded by the array with the bad drives.
    pub decoded: u64,
    /// Drives replaced.
    pub replaced: u64,
    /// Sectors corrupted in the end, and found by a scrub.
    pub corrupted: u64,
    /// The 99th percentile of its reads.
    pub p99: Nanos,
    /// That of the array without them.
    pub p99_without: Nanos,
    /// How long the array with the bad drives ran.
    pub time: Nanos,
    /// How much of that it had requests to serve.
    pub time_busy: Nanos,
    /// The hashes of all that happened, on both arrays.
    pub logs: [u64; 2],
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, what, reads, verified, decoded, p99, p99_without, time, logs, .. } = self;
        let [p99, without] = [p99, p99_without].map(|time| time.as_millis_f64());
        write!(
            f,
            "seed {seed}: {what}: {reads} reads, p99 {p99:.2} ms, {without:.2} ms without, {verified} sectors right, \
             {decoded} codewords decoded, {:.1} s, logs {:016x} {:016x}",
            time.as_secs_f64(),
            logs[0],
            logs[1],
        )
    }
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The seed of the run.
    pub seed: u64,
    /// The array, its drives and its load.
    pub what: String,
    /// Which one, and how.
    pub how: How,
}

/// Which invariant did not hold.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    /// Y1, Y2 or Y3, in a sentence.
    Wrong(String),
    /// Y4.
    Tail {
        /// The 99th percentile.
        p99: Nanos,
        /// That without the bad drives.
        without: Nanos,
        /// The kind of reads without which the next ones would be as late, or none.
        kind: Kind,
    },
    /// Y5.
    Waits {
        /// The read's place in the list.
        index: u64,
        /// How long it waited.
        time: Nanos,
        /// What kept it.
        kind: Kind,
    },
}

impl Broken {
    /// What kept the reads.
    pub fn kind(&self) -> Option<Kind> {
        match self.how {
            How::Wrong(_) => None,
            How::Tail { kind, .. } | How::Waits { kind, .. } => Some(kind),
        }
    }

    /// Whether the array is known to break it so.
    pub fn is_known(&self) -> bool {
        self.kind().is_some_and(Kind::is_known)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, {}: ", self.seed, self.what)?;
        match &self.how {
            How::Wrong(sentence) => f.write_str(sentence),
            How::Tail { p99, without, kind } => {
                let times = p99.as_secs_f64() / without.as_secs_f64();
                let [p99, without] = [p99, without].map(|time| time.as_millis_f64());
                write!(
                    f,
                    "Y4: p99 {p99:.2} ms is {times:.2} times the {without:.2} ms without: {kind}"
                )
            }
            How::Waits { index, time, kind } => {
                write!(f, "Y5: read {index} waited {:.2} s: {kind}", time.as_secs_f64())
            }
        }
    }
}

/// Runs seeds. What arrays of one shape carry is measured once.
#[derive(Debug, Default)]
pub struct Swarm {
    carried: BTreeMap<Shape, f64>,
}

impl Swarm {
    /// Runs one seed. What comes of it does not depend on the seeds before.
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold.
    pub fn run(&mut self, seed: u64, aim: &Aim) -> Result<Report, Broken> {
        let script = Script::draw(seed, aim);
        let broken = |how| Broken { seed, what: script.to_string(), how };
        self.run_script(&script, aim).map_err(broken)
    }

    fn run_script(&mut self, script: &Script, aim: &Aim) -> Result<Report, How> {
        let carried = *self.carried.entry(script.shape.clone()).or_insert_with(|| carried(script));
        let mut troubled = script.troubled();
        if aim.planted == Planted::Flips {
            troubled.drives.iter_mut().for_each(|drive| drive.faults.flip_rate = Ratio::of(2, 100));
        }
        let size =
            World::new(&script.degraded(Content::Absent)).expect("the world is possible").size();
        let arrivals = script.arrivals(size, carried * script.load as f64 / 100.0);
        let standstills = &script.standstills;
        let (care, planted) = (script.care, aim.planted);
        let events = Events { mishaps: &script.mishaps, standstills, care, planted };
        let with = pass::run(&troubled, &arrivals, events).map_err(How::Wrong)?;
        let degraded = script.degraded(Content::Carried);
        let without = pass::run(&degraded, &arrivals, Events::of_server(standstills));
        let without =
            without.map_err(|what| How::Wrong(format!("without the bad drives: {what}")))?;
        judge(script, &arrivals, &with, &without)?;
        let all = |_: usize| true;
        Ok(Report {
            seed: script.seed,
            what: script.to_string(),
            reads: arrivals.iter().filter(|arrival| arrival.kind == Access::Read).count() as u64,
            verified: with.verified + without.verified,
            decoded: with.decoded,
            replaced: with.replaced,
            corrupted: with.corrupted,
            p99: p99(&arrivals, &with, all),
            p99_without: p99(&arrivals, &without, all),
            time: with.span,
            time_busy: busy(&arrivals, &with),
            logs: [with.log, without.log],
        })
    }
}

/// What the array carries without its bad drives: requests in a second. The journal's early answers do not count.
fn carried(script: &Script) -> f64 {
    let (settings, fixed) = script.gauge();
    let size = World::new(&settings).expect("the world is possible").size();
    let mut arrivals = fixed.arrivals(size, 1_000.0);
    arrivals.truncate(REQUESTS as usize);
    let ask = replay::Ask { sending: Sending::Closed(OUTSTANDING), ..replay::Ask::open(&arrivals) };
    replay::run(&settings, &ask, &mut |_| {}).expect("the world is possible").rate()
}

/// Y4 and Y5. Of several reads, and of several kinds, one is named that is not known.
fn judge(
    script: &Script,
    arrivals: &[Arrival],
    with: &Outcomes,
    without: &Outcomes,
) -> Result<(), How> {
    let ways = Ways { script, arrivals, outcomes: with };
    let is_read = |&index: &usize| arrivals[index].kind == Access::Read;
    let waits = (0..arrivals.len()).filter(is_read).filter(|&index| {
        let [time, other] = [with, without].map(|one| one.latencies[index]);
        let (from, until) = (arrivals[index].at, arrivals[index].at + time);
        let mut hangs = script.mishaps.iter().flat_map(|mishap| &mishap.hangs);
        time > WAIT_MAX && other <= WAIT_MAX && hangs.any(|hang| from < hang[1] && until > hang[0])
    });
    let kept = waits.map(|index| (ways.kind(index), index));
    if let Some((kind, index)) = kept.min_by_key(|&(kind, index)| (kind.is_known(), index)) {
        return Err(How::Waits { index: index as u64, time: with.latencies[index], kind });
    }
    let [p, q] = [with, without].map(|one| p99(arrivals, one, |_| true));
    if !is_late(p, q) {
        return Ok(());
    }
    let is_slower = |&index: &usize| {
        let [time, other] = [with, without].map(|one| one.latencies[index]);
        is_late(time, q) && !is_late(other, q)
    };
    let late = (0..arrivals.len()).filter(is_read).filter(is_slower);
    let kinds: Vec<Kind> = late.map(|index| ways.kind(index)).collect();
    let count = |kind: &Kind| kinds.iter().filter(|&one| one == kind).count();
    let (mut left_out, mut worst) = (BTreeSet::new(), None);
    while is_late(p99(arrivals, with, |index| !left_out.contains(&ways.kind(index))), q) {
        let rest = Kind::ALL.into_iter().filter(|kind| !left_out.contains(kind));
        let kind = rest.max_by_key(count).expect("some reads are late");
        left_out.insert(kind);
        if worst.is_none_or(|worst: Kind| worst.is_known() && !kind.is_known()) {
            worst = Some(kind);
        }
    }
    Err(How::Tail { p99: p, without: q, kind: worst.expect("the reads are late") })
}

fn is_late(p99: Nanos, without: Nanos) -> bool {
    p99.as_secs_f64() > without.as_secs_f64() * TIMES_MAX
}

/// The 99th percentile of the reads that `counts`.
fn p99(arrivals: &[Arrival], outcomes: &Outcomes, counts: impl Fn(usize) -> bool) -> Nanos {
    let reads = arrivals.iter().enumerate().filter(|(_, arrival)| arrival.kind == Access::Read);
    let counted = reads.filter(|&(index, _)| counts(index));
    Summary::of(&mut counted.map(|(index, _)| outcomes.latencies[index]).collect::<Vec<_>>()).p99
}

/// How long at least one request was unanswered.
fn busy(arrivals: &[Arrival], outcomes: &Outcomes) -> Nanos {
    let (mut busy, mut until) = (Nanos::ZERO, Instant::ZERO);
    for (arrival, &latency) in arrivals.iter().zip(&outcomes.latencies) {
        let end = arrival.at + latency;
        busy += end.saturating_since(until.max(arrival.at));
        until = until.max(end);
    }
    busy
}
