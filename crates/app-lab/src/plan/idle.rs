//! `levelhead-lab plan idle`: what a drive could verify of this load while it is idle, in how much memory, and at what
//! cost.
//!
//! The one plan that is no closed form: the load runs over the drive model, once for each size and wait.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use levelhead_drive::{
    CacheMode, Counters, Faults, IdleVerify, Placing, Profile, QUEUE_DEPTH_MAX, Retention,
    Scheduler, Settings, Verify,
};
use levelhead_lab::open_loop::{OpenLoop, Outcomes, Responses};
use levelhead_report::{Axis, Column, Figure, Series, Table};
use levelhead_stats::Streams;
use levelhead_trace::{Arrival, Format, Kind, Workload, read, recorded};
use levelhead_units::{Bytes, Nanos};

use super::answer::{Answer, Row};
use crate::profiles;
use levelhead_app::{AppError, Progress, files, threads};

/// What is asked.
#[derive(Clone, Debug)]
pub struct IdleAsk {
    /// The requests.
    pub load: IdleLoad,
    /// The drive's make: a shipped profile's name, or a file.
    pub drive: String,
    /// Which segments of its memory make room first.
    pub placing: Placing,
    /// The memory for reads, where writes have their own.
    pub memory: Bytes,
    /// The memory that unverified writes have or share.
    pub caches: Vec<Bytes>,
    /// How long the drive idles before it verifies.
    pub waits: Vec<Nanos>,
    /// How the drive verifies besides: the start, checksums.
    pub how: IdleVerify,
    /// The share of the writes that is to be verified by the least cache that is looked for.
    pub goal: f64,
    /// What chance is drawn from.
    pub seed: u64,
    /// Where an HTML page goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// Where the requests come from.
#[derive(Clone, Debug)]
pub enum IdleLoad {
    /// A trace file: the requests to the device with the most of them.
    Trace {
        /// The file.
        path: PathBuf,
        /// Its format, if it cannot be told.
        format: Option<Format>,
    },
    /// A made-up one.
    Synthetic(Workload),
}

/// The most sizes and waits.
const CHOICES_MAX: usize = 32;

/// Memory that nothing fills.
const UNLIMITED: Bytes = Retention::MEMORY_MAX;

/// Memory is given out in units of this size.
const UNIT: u64 = Retention::UNIT.get();

/// Validation, delays and response against cache and wait.
///
/// # Errors
///
/// A load that cannot be read or has no write, a drive that cannot be, or a page that cannot be written.
pub fn plan_idle(ask: &IdleAsk, progress: &dyn Progress) -> Result<Answer, AppError> {
    if let Some(path) = &ask.report {
        files::check_place(path)?;
    }
    for (count, what) in [(ask.caches.len(), "sizes"), (ask.waits.len(), "waits")] {
        if !(1..=CHOICES_MAX).contains(&count) {
            return Err(AppError::usage(format!(
                "expected 1 to {CHOICES_MAX} {what}, got {count}"
            )));
        }
    }
    let profile = profiles::load(&ask.drive)?;
    let (name, requests) = load(ask, &profile, progress)?;
    let writes = requests.iter().filter(|one| one.kind == Kind::Write).count();
    if writes == 0 {
        return Err(AppError::usage(format!("{name}: no write among {} requests", requests.len())));
    }
    let bench = Bench { ask, profile: &profile, requests: &requests };
    let found = bench.measure(progress)?;
    let mut answer = Answer::new("idle", "Writes verified while the drive is idle");
    answer.facts = vec![
        ("load", name),
        ("requests", format!("{}, {writes} of them writes", requests.len())),
        ("drive", profile.name().to_owned()),
        ("memory", format!("{}, {} for reads", ask.placing.name(), ask.memory)),
        ("verification", format!("{}, checksums in {}", ask.how.start, ask.how.sums)),
    ];
    if ask.placing != Placing::Dedicated {
        answer.facts[3] = ("memory", format!("{}, for reads and writes", ask.placing.name()));
    }
    fill(&mut answer, ask, &found);
    answer.assumptions = vec![
        "requests come when they came, whatever the drive does; what it has no room for waits".to_owned(),
        "up to 32 requests inside the drive, the one that can begin soonest first; writes go to the medium".to_owned(),
        "of a trace with several devices, the one with the most requests; places past the drive's end count around"
            .to_owned(),
        "foreground is compared with the same drive and memory without verification".to_owned(),
    ];
    answer.with_report(ask.report.as_deref())
}

fn load(
    ask: &IdleAsk,
    profile: &Profile,
    progress: &dyn Progress,
) -> Result<(String, Vec<Arrival>), AppError> {
    match &ask.load {
        IdleLoad::Synthetic(workload) => {
            let arrivals = workload.generate(profile.size(), Streams::new(ask.seed));
            Ok((workload.to_string(), arrivals.map_err(AppError::usage)?))
        }
        IdleLoad::Trace { path, format } => {
            let file = files::open(path)?;
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            let name = path.display().to_string();
            let task = progress.begin("reading", length);
            let trace = read(file, &name, *format, &mut |done| task.reach(done));
            let trace = trace.map_err(AppError::usage)?;
            // The times of answers play no part.
            let arrivals = recorded(&trace, Nanos::ZERO).into_iter().map(|one| one.arrival);
            Ok((name, arrivals.collect()))
        }
    }
}

/// A load over one make of drive.
struct Bench<'a> {
    ask: &'a IdleAsk,
    profile: &'a std::sync::Arc<Profile>,
    requests: &'a [Arrival],
}

/// One way to verify, with a size of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    verify: Verify,
    cache: Bytes,
}

/// What one way to verify has given.
struct Verified {
    wait: Nanos,
    cache: Bytes,
    counters: Counters,
    responses: Responses,
}

/// What was measured.
struct Found {
    /// Without verification, by cache.
    none: Vec<Responses>,
    /// Every write read back at once, with the last cache.
    raw: Responses,
    /// By wait, and for each wait by cache.
    idle: Vec<Verified>,
    /// The least cache that reaches the goal, and what it verifies; none where no cache does.
    least: Option<(Bytes, f64)>,
    /// What waits at most where everything may.
    room: Bytes,
}

impl Bench<'_> {
    fn retention(&self, cache: Bytes) -> Retention {
        let IdleAsk { placing, memory, .. } = *self.ask;
        match placing {
            Placing::Dedicated => Retention { placing, memory, writes: cache },
            Placing::MruLru | Placing::MruMru | Placing::Stay | Placing::Adaptive => {
                Retention::new(placing, cache)
            }
        }
    }

    fn run(&self, way: Way, progress: &dyn Progress) -> Result<Outcomes, AppError> {
        let settings = Settings {
            queue_depth: QUEUE_DEPTH_MAX,
            scheduler: Scheduler::SOONEST,
            cache: CacheMode::Read,
            retention: Some(self.retention(way.cache)),
            verify: way.verify,
            faults: Faults::NONE,
            size: None,
        };
        let run = OpenLoop {
            profile: self.profile.clone(),
            settings,
            streams: Streams::new(self.ask.seed),
            requests: self.requests,
        };
        let label = match way.verify {
            Verify::Idle(idle) => format!("idle {}, {}", idle.wait, way.cache),
            Verify::Off | Verify::Raw => way.verify.to_string(),
        };
        let task = progress.begin(&label, self.requests.len() as u64);
        run.run(|come| task.reach(come as u64)).map_err(AppError::usage)
    }

    /// Runs all of them, as many at a time as there are processors.
    fn run_all(&self, ways: &[Way], progress: &dyn Progress) -> Result<Vec<Outcomes>, AppError> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(way) = ways.get(at) else { break };
                let outcome = self.run(*way, progress);
                done.lock().expect("no worker panics with the list").push((at, outcome));
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| threads::work_by(scope, workers.min(ways.len()), work));
        let mut done = done.into_inner().expect("no worker panics with the list");
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, outcome)| outcome).collect()
    }

    fn measure(&self, progress: &dyn Progress) -> Result<Found, AppError> {
        let IdleAsk { caches, waits, how, goal, .. } = self.ask;
        let choices: Vec<(Nanos, Bytes)> =
            waits.iter().flat_map(|&wait| caches.iter().map(move |&cache| (wait, cache))).collect();
        let idle = choices.iter().map(|&(wait, cache)| {
            let verify = Verify::Idle(IdleVerify { wait, ..*how });
            Way { verify, cache }
        });
        let middle = waits[waits.len() / 2];
        let bytes_alone = IdleVerify { wait: middle, sums: Bytes::new(0), ..*how };
        let all = Way { verify: Verify::Idle(bytes_alone), cache: UNLIMITED };
        let none = caches.iter().map(|&cache| Way { verify: Verify::Off, cache });
        let last = caches.last().copied().unwrap_or(UNLIMITED);
        let raw = Way { verify: Verify::Raw, cache: last };
        let ways: Vec<Way> = none.chain([raw, all]).chain(idle).collect();
        let mut outcomes = self.run_all(&ways, progress)?.into_iter();
        let none: Vec<Outcomes> = outcomes.by_ref().take(caches.len()).collect();
        let mut next = || outcomes.next().expect("one for each way");
        let (raw, all_fit) = (next(), next());
        let room = Bytes::new(all_fit.counters.verify.room_max);
        let least = self.least(all, &all_fit, *goal, progress)?;
        let verified = |((wait, cache), outcomes): ((Nanos, Bytes), Outcomes)| Verified {
            wait,
            cache,
            counters: outcomes.counters,
            responses: outcomes.responses(self.requests),
        };
        Ok(Found {
            none: none.iter().map(|one| one.responses(self.requests)).collect(),
            raw: raw.responses(self.requests),
            idle: choices.into_iter().zip(outcomes).map(verified).collect(),
            least,
            room,
        })
    }

    /// The least cache, to a twentieth, that validates this share of the writes with bytes alone.
    fn least(
        &self,
        all: Way,
        all_fit: &Outcomes,
        goal: f64,
        progress: &dyn Progress,
    ) -> Result<Option<(Bytes, f64)>, AppError> {
        if validated(&all_fit.counters) < goal {
            return Ok(None);
        }
        // With two units for each that waits at most, whatever the sizes of writes.
        let mut high = (all_fit.counters.verify.room_max / UNIT + 1) * 16;
        let (mut low, mut best) = (0, None);
        while best.is_none() || high - low > (high / 20).max(1) {
            let middle = if best.is_none() { high } else { low.midpoint(high) };
            let cache = Bytes::new(middle * UNIT);
            let share = validated(&self.run(Way { cache, ..all }, progress)?.counters);
            match (share >= goal, best.is_some()) {
                (true, _) => (high, best) = (middle, Some((cache, share))),
                (false, true) => low = middle,
                (false, false) => return Ok(None),
            }
        }
        Ok(best)
    }
}

/// The share of the writes that were verified, of those that no later one overwrote before, from 0 to 1.
fn validated(counters: &Counters) -> f64 {
    let verify = counters.verify;
    verify.verified as f64 / (verify.writes - verify.superseded).max(1) as f64
}

fn fill(answer: &mut Answer, ask: &IdleAsk, found: &Found) {
    let columns = ["idle wait", "cache", "validated %", "delayed %", "delay ms", "response ms"]
        .into_iter()
        .chain(["read hits %", "mean over none", "p99 over none"]);
    let mut table = Table::new(columns.map(Column::right));
    let mut curves = vec![Vec::new(); ask.waits.len()];
    let requests = found.raw.count().max(1) as f64;
    let ratio = |one: f64, other: f64| if other > 0.0 { one / other } else { 1.0 };
    for (at, Verified { wait, cache, counters, responses: of }) in found.idle.iter().enumerate() {
        let verify = counters.verify;
        let none = &found.none[at % ask.caches.len()];
        let figures = [
            ("validated", "%", validated(counters) * 100.0),
            ("delayed", "%", verify.delayed as f64 / requests * 100.0),
            ("delay", "ms", verify.delay.as_millis_f64() / verify.delayed.max(1) as f64),
            ("response", "ms", verify.response_mean().unwrap_or(Nanos::ZERO).as_millis_f64()),
            ("read hits", "%", counters.read_hits as f64 / counters.reads.max(1) as f64 * 100.0),
            ("mean over none", "x", ratio(of.mean_ms(), none.mean_ms())),
            ("p99 over none", "x", ratio(of.quantile_ms(0.99), none.quantile_ms(0.99))),
        ];
        let case = format!("{wait}, {cache}");
        let digits = |unit| if unit == "x" { 4 } else { 2 };
        let shown = figures.iter().map(|(_, unit, value)| format!("{value:.*}", digits(*unit)));
        table.push([wait.to_string(), cache.to_string()].into_iter().chain(shown));
        curves[at / ask.caches.len()].push((cache.get() as f64 / 1e6, figures[0].2));
        let rows = figures.map(|(metric, unit, value)| Row::new(case.clone(), metric, unit, value));
        answer.rows.extend(rows);
    }
    let none = found.none.last().expect("there is a cache");
    let raw = [
        ("mean over none", ratio(found.raw.mean_ms(), none.mean_ms())),
        ("p99 over none", ratio(found.raw.quantile_ms(0.99), none.quantile_ms(0.99))),
    ];
    answer.rows.extend(raw.map(|(metric, value)| Row::new("raw", metric, "x", value)));
    answer.rows.push(Row::new("all", "room", "MB", found.room.get() as f64 / 1e6));
    answer.remarks = vec![
        format!(
            "Reading every write back at once (RAW) makes the mean response {:.2} times and p99 {:.2} times as long.",
            raw[0].1, raw[1].1
        ),
        format!("Where nothing makes room, {} wait at most.", found.room.short()),
    ];
    let goal = ask.goal * 100.0;
    answer.remarks.push(match found.least {
        Some((cache, share)) => {
            answer.rows.push(Row::new(
                format!("{goal} %"),
                "cache",
                "MB",
                cache.get() as f64 / 1e6,
            ));
            format!("{} validate {goal} % of the writes ({:.2} %).", cache.short(), share * 100.0)
        }
        None => format!("No cache validates {goal} % of the writes."),
    });
    answer.tables = vec![("", table)];
    let series = ask.waits.iter().zip(curves);
    answer.figures = vec![Figure::lines(
        "Writes verified against cache",
        Axis::log("cache (MB)"),
        Axis::linear("validated (%)"),
        series.map(|(wait, curve)| Series::line(format!("wait {wait}"), curve)).collect(),
    )];
}
