//! `levelhead demo`: what Levelhead is for, on emulated drives that it makes itself.
//!
//! Six emulated drives in a temporary folder, an eRAID(2) array over them, a client on its NBD socket,
//! in real time. Each trouble is met first as any RAID would (`normal`), then under the default
//! policy. Every byte read is compared with what was written.
//!
//! ```text
//!   fill (the files as plain drives)    five runs (the same files as emulated drives)
//!   write every sector to be read ----> assemble, serve, connect, load, verify, stop
//!                                                   |
//!                                       with a virtual clock: the same there, for a moment
//! ```

mod bed;
mod compare;
mod lateness;
mod load;
mod output;
mod predict;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use levelhead_array::Policy;
use levelhead_stats::{Streams, Summary};
use levelhead_units::Nanos;

use bed::{Bed, Trouble};
use levelhead_app::{AppError, Progress, Stop, files};
use load::{Shape, Workload};
use predict::Prediction;

pub use output::Demonstrated;
#[cfg(feature = "specimens")]
pub use output::specimen;
pub use predict::{InVirtualTime, Load, Ran, VirtualBed, VirtualRun};

/// What to show.
#[derive(Clone, Debug)]
pub struct Demo {
    /// What chance is drawn from.
    pub seed: u64,
    /// How long each of the five runs lasts.
    pub length: Duration,
    /// Where the files go; the system's folder for temporary files if nowhere else.
    pub folder: Option<PathBuf>,
    /// Where the HTML report goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// One line of the result.
#[derive(Debug)]
struct Row {
    scenario: &'static str,
    policy: Policy,
    measured: Sample,
    verified_bytes: u64,
    /// Present if it was asked for.
    predicted: Option<Prediction>,
    /// How late the machine woke threads up meanwhile.
    lateness: Summary,
}

/// Latencies, of which those of requests unfinished at the end of the run are their ages then.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sample {
    /// In ascending order.
    latencies: Vec<Nanos>,
    summary: Summary,
    unfinished: u64,
}

impl Sample {
    fn of(mut latencies: Vec<Nanos>, unfinished: u64) -> Self {
        let summary = Summary::of(&mut latencies);
        Self { latencies, summary, unfinished }
    }

    /// In ascending order, in milliseconds.
    fn millis(&self) -> Vec<f64> {
        self.latencies.iter().copied().map(Nanos::as_millis_f64).collect()
    }
}

struct Scenario {
    name: &'static str,
    policy: Policy,
    trouble: Trouble,
    shape: Shape,
}

fn scenarios() -> [Scenario; 5] {
    let (ours, normal) = (Policy::DEFAULT, Policy::Normal);
    let scenario = |name, policy, trouble, shape| Scenario { name, policy, trouble, shape };
    [
        scenario("healthy", normal, Trouble::None, Shape::Open),
        scenario("retries", normal, Trouble::Retries, Shape::Open),
        scenario("retries", ours, Trouble::Retries, Shape::Open),
        scenario("slow-drive", normal, Trouble::SlowDrive, Shape::Closed),
        scenario("slow-drive", ours, Trouble::SlowDrive, Shape::Closed),
    ]
}

/// Shows it, and what virtual time predicts where that can be asked. Leaves nothing behind but the report, also when stopped
/// early.
///
/// # Errors
///
/// There is no room, a read gave other bytes than were written, the report cannot be written, or it was stopped.
pub fn demo(
    ask: &Demo,
    in_virtual_time: Option<&InVirtualTime<'_>>,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Demonstrated, AppError> {
    if let Some(path) = &ask.report {
        files::check_place(path)?;
    }
    let bed = Bed::make(ask)?;
    let workload = Workload::draw(bed.size(), Streams::new(ask.seed), ask.length);
    bed.fill(&workload, stop, progress)?;
    let mut rows = Vec::new();
    for scenario in scenarios() {
        let label = format!("{} {}", scenario.name, scenario.policy);
        let millis = ask.length.as_millis() as u64;
        let task = progress.begin(&label, millis);
        let measured = bed.run(&workload, &scenario, stop, task.as_ref())?;
        // Not while the run is on: it would be in its way.
        let predict = |carry_out| {
            predict::run(carry_out, &bed.modelled(&scenario)?, &workload, scenario.shape)
        };
        let predicted = in_virtual_time.map(predict);
        rows.push(Row {
            scenario: scenario.name,
            policy: scenario.policy,
            measured: Sample::of(measured.latencies, measured.unfinished),
            verified_bytes: measured.verified_bytes,
            predicted: predicted.transpose()?,
            lateness: measured.lateness,
        });
    }
    let demonstrated = Demonstrated::new(ask, bed.describe(), rows);
    demonstrated.write_report(ask)?;
    Ok(demonstrated)
}

/// The error of a demo that was stopped before its end.
fn interrupted() -> AppError {
    AppError::trouble("stopped before the end; nothing is left behind")
}
