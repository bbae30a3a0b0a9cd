//! `levelhead-lab ecc simulate`: failure rates of the code by Monte Carlo, on all cores.
//!
//! Threads take the numbers of blocks in turn; their counts are taken in the order of the numbers, so that the answer is the
//! same with any number of threads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use levelhead_ldpc::{
    BlockCount, Channel, ChannelKind, Kernel, Outcome, Point, Tally, Until, ZeroForcing,
};
use levelhead_report::{Column, Table, json};
use serde::Serialize;

use super::checkpoint::Checkpoint;
use levelhead_app::{AppError, Progress, Show, threads};

/// The most points of a run.
pub const POINTS_MAX: usize = 1_000;

/// How often a checkpoint is written while a point is being measured.
const KEEP_EVERY: Duration = Duration::from_secs(5);

/// What is asked.
#[derive(Clone, Debug)]
pub struct Simulate {
    /// How many zeroes the decoder knows, by curve.
    pub forced: Vec<ZeroForcing>,
    /// Raw bit error rates of each curve.
    pub bers: Vec<f64>,
    /// What of a sample the decoder is told.
    pub channel: ChannelKind,
    /// When a point ends.
    pub until: Until,
    /// The most iterations of a decoding.
    pub iterations: u32,
    /// What chance is drawn from.
    pub seed: u64,
    /// The kernel, or the fastest of this machine.
    pub kernel: Option<Kernel>,
    /// Where counts are kept, and taken from.
    pub checkpoint: Option<PathBuf>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Simulated {
    ask: Simulate,
    kernel: Kernel,
    points: Vec<(Point, Outcome)>,
}

/// Measures every point.
///
/// # Errors
///
/// A bit error rate that no channel has, too many points, a kernel that this machine lacks the instructions for, or a checkpoint
/// that cannot be read or written.
pub fn simulate(ask: &Simulate, progress: &dyn Progress) -> Result<Simulated, AppError> {
    let count = ask.forced.len() * ask.bers.len();
    if count > POINTS_MAX {
        return Err(AppError::usage(format!(
            "{count} points are too many: at most {POINTS_MAX} are measured in a run"
        )));
    }
    for &ber in &ask.bers {
        Channel::new(ask.channel, ber).map_err(AppError::usage)?;
    }
    let kernel = ask.kernel.unwrap_or_else(Kernel::best);
    if !kernel.is_available() {
        return Err(AppError::usage(format!(
            "this machine has no instructions for kernel {kernel}"
        )));
    }
    let mut checkpoint = Checkpoint::open(ask.checkpoint.as_deref())?;
    let mut points = Vec::with_capacity(count);
    for &forced in &ask.forced {
        for &ber in &ask.bers {
            let point = Point {
                forced,
                channel: ask.channel,
                ber,
                iterations: ask.iterations,
                seed: ask.seed,
            };
            let outcome = measure(&point, ask.until, kernel, &mut checkpoint, progress)?;
            points.push((point, outcome));
        }
    }
    Ok(Simulated { ask: ask.clone(), kernel, points })
}

fn measure(
    point: &Point,
    until: Until,
    kernel: Kernel,
    checkpoint: &mut Checkpoint,
    progress: &dyn Progress,
) -> Result<Outcome, AppError> {
    let mut tally = checkpoint.tally(point);
    if tally.has_ended_before_last(until) {
        // An earlier run has asked for more, and where this one would have ended is not kept.
        tally = Tally::default();
    }
    let label = format!("{} B, {}", point.forced, point.ber);
    let task = progress.begin(&label, until.failures);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (next, stop) = (AtomicU64::new(tally.blocks), AtomicBool::new(false));
    thread::scope(|scope| {
        // A thread waits here if the others are far behind: blocks that are out of their order have a bound.
        let (sender, counts) = mpsc::sync_channel::<(u64, BlockCount)>(threads);
        for at in 0..threads {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            let count_all = move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let count = point.block(number, kernel).expect("the channel was checked");
                    if sender.send((number, count)).is_err() {
                        return;
                    }
                }
            };
            match threads::start_in(scope, "decoder", count_all) {
                Err(error) if at == 0 => return Err(error),
                Err(_) => break,
                Ok(_) => {}
            }
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut kept_at = Instant::now();
        let mut result = Ok(());
        while !tally.has_ended(until) && result.is_ok() {
            let (number, count) = counts.recv().expect("threads count until they are stopped");
            early.insert(number, count);
            while !tally.has_ended(until)
                && let Some(count) = early.remove(&tally.blocks)
            {
                tally.add(count);
            }
            task.reach(tally.failures().min(until.failures));
            if kept_at.elapsed() >= KEEP_EVERY {
                result = checkpoint.keep(point, &tally);
                kept_at = Instant::now();
            }
        }
        stop.store(true, Ordering::Relaxed);
        drop(counts);
        result
    })?;
    checkpoint.keep(point, &tally)?;
    Ok(tally.outcome(until))
}

#[derive(Serialize)]
struct Json<'a> {
    kernel: &'a str,
    seed: u64,
    iterations: u32,
    failures: u64,
    frames_max: u64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    forced: usize,
    channel: &'static str,
    ber: f64,
    frames: u64,
    failures: u64,
    undetected: u64,
    rate: f64,
    low: f64,
    high: f64,
    iterations_mean: f64,
}

impl Show for Simulated {
    fn text(&self) -> String {
        let right = [
            "BER",
            "frames",
            "failures",
            "undetected",
            "failure rate",
            "95 % interval",
            "iterations",
        ]
        .map(Column::right);
        let mut table =
            Table::new([Column::right("forced"), Column::left("channel")].into_iter().chain(right));
        for (point, outcome) in &self.points {
            let Outcome { frames, failures, undetected, rate, iterations_mean } = outcome;
            let (seen, interval) = if *failures == 0 {
                (format!("< {:.2e}", rate.high), "-".to_owned())
            } else {
                (format!("{:.3e}", rate.rate), format!("{:.2e} to {:.2e}", rate.low, rate.high))
            };
            table.push(vec![
                format!("{} B", point.forced),
                point.channel.to_string(),
                point.ber.to_string(),
                frames.to_string(),
                failures.to_string(),
                undetected.to_string(),
                seen,
                interval,
                format!("{iterations_mean:.1}"),
            ]);
        }
        format!(
            "seed {}, at most {} iterations, kernel {}\n\n{}",
            self.ask.seed,
            self.ask.iterations,
            self.kernel,
            table.to_text()
        )
    }

    fn json(&self) -> String {
        let row = |(point, outcome): &(Point, Outcome)| Row {
            forced: point.forced.bytes(),
            channel: point.channel.name(),
            ber: point.ber,
            frames: outcome.frames,
            failures: outcome.failures,
            undetected: outcome.undetected,
            rate: outcome.rate.rate,
            low: outcome.rate.low,
            high: outcome.rate.high,
            iterations_mean: outcome.iterations_mean,
        };
        json::pretty(&Json {
            kernel: self.kernel.name(),
            seed: self.ask.seed,
            iterations: self.ask.iterations,
            failures: self.ask.until.failures,
            frames_max: self.ask.until.frames_max,
            rows: self.points.iter().map(row).collect(),
        })
        .expect("these are plain values")
    }
}
