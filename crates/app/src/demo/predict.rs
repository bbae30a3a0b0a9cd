//! What a run should give: the same load, array, drives and failures in virtual time.
//!
//! | the same in both | alike only |
//! |---|---|
//! | times at which reads are due, and their places | when the array hears of them |
//! | the array's core, its seed, window and order | the order in which drives' answers meet it |
//! | drives: make, size, order, slowness | where each platter is when a run begins |
//! | which sectors fail for which read, and what a retry takes | whether the array asks for them |
//!
//! Failures are the same because they hang on seed, drive, read and sector, and on no order (see the
//! faults of `drive`), and both worlds name the reads alike. Where the platters are is chance: a run in
//! real time begins whenever its client has connected. So the prediction is of runs that begin at
//! evenly spaced moments of one revolution, all latencies put together.

use levelhead_lab::WorldSettings;
use levelhead_lab::timed::{self, Load};
use levelhead_stats::Summary;
use levelhead_units::{Instant, Nanos};

use super::Sample;
use super::load::{OUTSTANDING, Shape, Workload};
use crate::AppError;

/// The number of runs in virtual time. Each begins `1 / BEGINNINGS` of a revolution after the one before.
pub(super) const BEGINNINGS: u64 = 16;

/// What virtual time says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prediction {
    /// All reads of all runs.
    pub(super) all: Sample,
    /// Each run alone, to see what is chance.
    pub(super) runs: Vec<Summary>,
}

/// What this load gives in a world of these settings.
pub(super) fn run(
    settings: &WorldSettings,
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
        let start = begin(settings.profile.rpm(), beginning);
        let mut timed = timed::run(settings, load, start, length).map_err(AppError::trouble)?;
        runs.push(Summary::of(&mut timed.latencies));
        latencies.extend(timed.latencies);
        unfinished += timed.unfinished;
    }
    Ok(Prediction { all: Sample::of(latencies, unfinished), runs })
}

/// The start of one of the runs, all of which are in the drives' first revolution.
fn begin(rpm: u32, beginning: u64) -> Instant {
    Instant::from_nanos(60_000_000_000 * beginning / (u64::from(rpm) * BEGINNINGS))
}
