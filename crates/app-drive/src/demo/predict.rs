//! What a run should give: the same load, array, drives and failures in virtual time.
//!
//! | the same in both | alike only |
//! |---|---|
//! | times at which reads are due, and their places | when the array hears of them |
//! | the array's core, its seed, window and order | the order in which drives' answers meet it |
//! | drives: model, size, order, slowness | where each platter is when a run begins |
//! | which sectors fail for which read, and what a retry takes | whether the array asks for them |
//!
//! Failures are the same because they hang on seed, drive, read and sector, and on no order (see the
//! faults of `drive`), and both worlds name the reads alike. Where the platters are is chance: a run in
//! real time begins whenever its client has connected. So the prediction is of runs that begin at
//! evenly spaced moments of one revolution, all latencies put together.
//!
//! The virtual clock is not here: whoever asks for the comparison brings it ([`InVirtualTime`]).

use levelhead_app::AppError;
use levelhead_array::{Area, HostOrder, Policy, Spec};
use levelhead_host::Model;
use levelhead_stats::Summary;
use levelhead_units::{Extent, Instant, Nanos};

use super::Sample;
use super::load::{OUTSTANDING, Shape, Workload};

/// The number of runs in virtual time. Each begins `1 / BEGINNINGS` of a revolution after the one before.
pub(super) const BEGINNINGS: u64 = 16;

/// Carries out one run in virtual time.
pub type InVirtualTime<'a> = dyn Fn(&VirtualRun<'_>) -> Result<Ran, AppError> + 'a;

/// An array over emulated drives, as one run of the demo has it.
#[derive(Debug)]
pub struct VirtualBed {
    /// Its shape.
    pub spec: Spec,
    /// How reads are served.
    pub policy: Policy,
    /// Commands inside a drive at most.
    pub window: u32,
    /// The order in which the array's queues give commands to drives.
    pub order: HostOrder,
    /// Its drives; all are of one model.
    pub models: Vec<Model>,
    /// What of each drive is the array's.
    pub area: Area,
    /// What the array draws from.
    pub seed: u64,
}

/// One run over it.
#[derive(Clone, Copy, Debug)]
pub struct VirtualRun<'a> {
    /// The array.
    pub bed: &'a VirtualBed,
    /// How reads come.
    pub load: Load<'a>,
    /// When the first may come; drives are at rest until then.
    pub start: Instant,
    /// For how long they come.
    pub length: Nanos,
}

/// How reads come.
#[derive(Clone, Copy, Debug)]
pub enum Load<'a> {
    /// At these times after the start, in order, whatever the array does.
    Open(&'a [(Nanos, Extent)]),
    /// A fixed number of reads at a time; the extents are read in turn, over and over.
    Closed {
        /// What is read. Not empty.
        extents: &'a [Extent],
        /// Reads in flight.
        outstanding: usize,
    },
}

/// What a run gave.
#[derive(Debug)]
pub struct Ran {
    /// From each read's coming to its answer or, without one, to the end.
    pub latencies: Vec<Nanos>,
    /// How many were without one.
    pub unfinished: u64,
}

/// What virtual time predicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prediction {
    /// All reads of all runs.
    pub(super) all: Sample,
    /// Each run alone, to see what is chance.
    pub(super) runs: Vec<Summary>,
}

/// What this load gives.
pub(super) fn run(
    carry_out: &InVirtualTime<'_>,
    bed: &VirtualBed,
    workload: &Workload,
    shape: Shape,
) -> Result<Prediction, AppError> {
    let load = match shape {
        Shape::Open => Load::Open(workload.arrivals()),
        Shape::Closed => Load::Closed { extents: workload.extents(), outstanding: OUTSTANDING },
    };
    let length = Nanos::from_millis(workload.length().as_millis() as u64);
    let (mut latencies, mut unfinished, mut runs) = (Vec::new(), 0, Vec::new());
    for beginning in 0..BEGINNINGS {
        let start = begin(bed.models[0].profile.rpm(), beginning);
        let mut ran = carry_out(&VirtualRun { bed, load, start, length })?;
        runs.push(Summary::of(&mut ran.latencies));
        latencies.extend(ran.latencies);
        unfinished += ran.unfinished;
    }
    Ok(Prediction { all: Sample::of(latencies, unfinished), runs })
}

/// The start of one of the runs, all of which are in the drives' first revolution.
fn begin(rpm: u32, beginning: u64) -> Instant {
    Instant::from_nanos(60_000_000_000 * beginning / (u64::from(rpm) * BEGINNINGS))
}
