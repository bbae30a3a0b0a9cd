//! What studies run on: an array over modelled drives, and a load.

use std::sync::Arc;

use levelhead_array::{Content, HostOrder, Policy};
use levelhead_drive::{CacheMode, Faults, Profile, QUEUE_DEPTH_MAX, Scheduler, Verify};
use levelhead_stats::{Streams, Summary, quantile_of_sorted};
use levelhead_trace::{Arrival, Kind, Mapping, Trace, Workload, onto_array};
use levelhead_units::{Nanos, Sectors};

use super::plan::{Cell, Measured};
use crate::replay::{self, End, Run, Sending};
use crate::{World, WorldSettings};

/// An array, its drives and how they are driven.
#[derive(Clone, Debug)]
pub struct Bed {
    /// The array: `raid5:6,chunk=8KiB`.
    pub array: String,
    /// The drives' make, shipped.
    pub drive: &'static str,
    /// Commands inside a drive at a time.
    pub window: u32,
    /// The order of the host's queues.
    pub order: HostOrder,
    /// How much of its positioning time a waiting command may save in a drive, per time waited.
    pub age_weight: f64,
    /// How each drive misbehaves; the last entry stands for all further drives.
    pub faults: Vec<Faults>,
    /// When requests are sent.
    pub sending: Sending,
}

/// What is asked of the array.
#[derive(Clone, Debug)]
pub enum Load {
    /// Made up with the seed.
    Synthetic(Workload),
    /// As recorded, the first `most` requests. Only the drives depend on the seed.
    Recorded {
        /// The trace; without it nothing can be measured.
        trace: Option<Arc<Trace>>,
        /// How many times as fast as recorded.
        rate: f64,
        /// The number of requests taken, from the first on.
        most: usize,
    },
}

impl Load {
    /// Poisson reads of these sizes (`8KiB`, or `8KiB/16KiB` for an even mix), one every 8 ms as in
    /// `[ERAID]`.
    ///
    /// # Panics
    ///
    /// If `sizes` are none: a study brings its own.
    pub fn reads(sizes: &str, count: u64) -> Self {
        Self::synthetic(&format!("sizes={sizes},interval=8ms,count={count}"))
    }

    /// A load in the form that [`Workload`] reads.
    ///
    /// # Panics
    ///
    /// If it is none: a study brings its own.
    pub fn synthetic(text: &str) -> Self {
        Self::Synthetic(text.parse().unwrap_or_else(|error| panic!("{error}")))
    }

    fn arrivals(&self, size: Sectors, seed: u64) -> Result<Vec<Arrival>, String> {
        match self {
            Self::Synthetic(workload) => {
                workload.generate(size, Streams::new(seed)).map_err(|error| error.to_string())
            }
            Self::Recorded { trace, rate, most } => {
                let trace = trace.as_ref().ok_or("there is only a name of this trace")?;
                let recorded = Mapping::as_recorded(trace, size);
                let mapping = Mapping { rate: *rate, ..recorded };
                let (mut arrivals, _) =
                    onto_array(trace, mapping).map_err(|error| error.to_string())?;
                arrivals.truncate(*most);
                Ok(arrivals)
            }
        }
    }
}

impl Bed {
    /// The test bed of `[ERAID]`: six 7200 rpm drives of 2 TB, chunks of 8 KiB, 32 host queues a
    /// drive with one command of each inside it.
    pub fn paper() -> Self {
        Self {
            array: "raid5:6,chunk=8KiB".to_owned(),
            drive: "nearline-2tb",
            window: 32,
            order: HostOrder::Paper32,
            age_weight: 0.0,
            faults: vec![Faults::NONE],
            sending: Sending::Open,
        }
    }

    /// With these faults on every drive.
    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults: vec![faults], ..self }
    }

    /// With another array.
    #[must_use]
    pub fn with_array(self, array: &str) -> Self {
        Self { array: array.to_owned(), ..self }
    }

    /// With another window and order.
    #[must_use]
    pub fn with_queue(self, window: u32, order: HostOrder) -> Self {
        Self { window, order, ..self }
    }

    /// The world of this bed under a policy.
    pub fn world(&self, policy: Policy, seed: u64) -> Result<WorldSettings, String> {
        let spec: levelhead_array::Spec =
            self.array.parse().map_err(|error| format!("{}: {error}", self.array))?;
        let profile = Profile::shipped(self.drive)
            .ok_or_else(|| format!("'{}' is not a drive profile", self.drive))?;
        let last = self.faults.last().copied().unwrap_or(Faults::NONE);
        let drive = |idx: usize| levelhead_drive::Settings {
            queue_depth: QUEUE_DEPTH_MAX,
            scheduler: Scheduler::Sptf { age_weight: self.age_weight },
            cache: CacheMode::Off,
            retention: None,
            verify: Verify::Off,
            faults: self.faults.get(idx).copied().unwrap_or(last),
            size: None,
        };
        Ok(WorldSettings {
            spec,
            policy,
            window: self.window,
            order: self.order,
            content: Content::Absent,
            profile: Arc::new(profile),
            drives: (0..spec.drives()).map(drive).collect(),
            area: None,
            journal: None,
            seed,
        })
    }

    /// A cell: this bed under `policy` and `load`. The first tenth of the requests, while queues
    /// fill, does not count.
    pub fn cell(&self, name: impl Into<String>, policy: Policy, load: &Load) -> Cell {
        let (bed, load) = (self.clone(), load.clone());
        Cell::new(name, move |seed| bed.measure(policy, &load, seed))
    }

    pub(super) fn measure(
        &self,
        policy: Policy,
        load: &Load,
        seed: u64,
    ) -> Result<Measured, String> {
        let (run, arrivals) = self.send(policy, load, seed)?;
        measured(&run, &arrivals)
    }

    /// Sends the load once.
    pub(super) fn run(&self, policy: Policy, load: &Load, seed: u64) -> Result<Run, String> {
        Ok(self.send(policy, load, seed)?.0)
    }

    fn send(&self, policy: Policy, load: &Load, seed: u64) -> Result<(Run, Vec<Arrival>), String> {
        let settings = self.world(policy, seed)?;
        let size = World::new(&settings).map_err(|error| error.to_string())?.size();
        let arrivals = load.arrivals(size, seed)?;
        let ask = replay::Ask { sending: self.sending, ..replay::Ask::open(&arrivals) };
        let run = replay::run(&settings, &ask, &mut |_| {}).map_err(|e| e.to_string())?;
        Ok((run, arrivals))
    }
}

/// The figures of a run. Latencies are those of reads after the first tenth; there must be some.
fn measured(run: &Run, arrivals: &[Arrival]) -> Result<Measured, String> {
    let first = arrivals.len() as u64 / 10;
    let latencies_of =
        |kind: Kind| run.latencies(|index| index >= first && arrivals[index as usize].kind == kind);
    let mut latencies = latencies_of(Kind::Read);
    let writes = Summary::of(&mut latencies_of(Kind::Write));
    let all = Summary::of(&mut run.latencies(|index| index >= first));
    if latencies.is_empty() && run.end == End::Complete {
        return Err(format!("no read among {} requests after the first tenth", arrivals.len()));
    }
    let summary = Summary::of(&mut latencies);
    let bound = |time: Nanos| match run.end {
        End::Complete => time.as_millis_f64(),
        End::Overloaded => f64::INFINITY,
    };
    let served = run.served.len().max(1) as f64;
    let quantiles = match latencies.is_empty() {
        true => Vec::new(),
        false => Measured::SHARES.map(|q| quantile_of_sorted(&latencies, q).as_millis_f64()).into(),
    };
    let kept = run.mean_of(|one| one.subs) - run.mean_of(|one| one.removed);
    let measured = Measured { quantiles, ..Measured::default() }
        .with("mean", bound(summary.mean))
        .with("p50", bound(summary.p50))
        .with("p99", bound(summary.p99))
        .with("p99.9", bound(summary.p999))
        .with("max", bound(summary.max))
        .with("mean of writes", bound(writes.mean))
        .with("mean of all", bound(all.mean))
        .with("p99 of all", bound(all.p99))
        .with("sub-requests", run.mean_of(|one| one.subs))
        .with("rate", run.rate())
        .with("span", run.span.as_secs_f64())
        .with("last arrival", arrivals.last().map_or(0.0, |last| last.at.as_nanos() as f64 / 1e9))
        .with("changes of standing", run.drive_events.len() as f64)
        .with("reads", kept)
        .with("removed", run.mean_of(|one| one.removed))
        .with("re-dispatched", run.redispatched() as f64 / served);
    Ok(measured.with("damaged", run.damaged() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_without_reads_has_no_latency_and_is_refused() {
        let load = Load::synthetic("size=4KiB,interval=8ms,count=50,reads=0%");
        let cell = Bed::paper().cell("writes", Policy::Normal, &load);
        let error = cell.measure(7).unwrap_err();
        assert_eq!(error, "writes: no read among 50 requests after the first tenth");
    }
}
