//! `levelhead-lab replay`.

use std::path::PathBuf;

use clap::Args;
use levelhead_app::AppError;
use levelhead_app_lab::replay::{Load, Replay, replay};
use levelhead_array::{HostOrder, Policy, Spec};
use levelhead_drive::{CacheMode, Faults, Rotations, Scheduler};
use levelhead_trace::{Format, Placement, Workload};
use levelhead_units::Ratio;

use crate::values;
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, faults, policies, progress};

/// What `--faults` is.
const FAULTS: &str = "All faults of the drives in one option";

#[derive(Args)]
pub(crate) struct Options {
    /// The trace file, plain or compressed with zstd or gzip; without it, a synthetic load
    trace: Option<PathBuf>,
    /// The synthetic load; keys that are left out keep their defaults. Or a server's: iraw:web, iraw:email, iraw:user-acc,
    /// iraw:code-dev or iraw:sas, and its first hour with iraw:web,length=1h
    #[arg(
        long,
        value_name = "KEYS",
        default_value = "size=40KiB,interval=8ms,count=20000,reads=100%",
        conflicts_with = "trace"
    )]
    synthetic: Workload,
    /// Format of the trace, where the file does not show it: msr, msr-cut, mqsim, vscsi, spc,
    /// systor17, blkparse or fio
    #[arg(long, requires = "trace", conflicts_with = "synthetic")]
    format: Option<Format>,
    /// How the trace's addresses are placed on the array: wrap (modulo its size) or scale; by default as
    /// recorded where they fit, else scaled
    #[arg(long, requires = "trace", conflicts_with = "synthetic", value_parser = placement)]
    placement: Option<Placement>,
    /// How many times as fast as recorded the trace is replayed
    #[arg(
        long,
        requires = "trace",
        conflicts_with = "synthetic",
        default_value = "1",
        value_parser = shared::positive,
        allow_negative_numbers = true
    )]
    rate: f64,
    /// The array
    #[arg(long, default_value = "eraid:5+1,e=2,chunk=8KiB")]
    array: Spec,
    /// Model of the drives: a shipped profile, or the path of a TOML file
    #[arg(long, value_name = "PROFILE", default_value = "nearline-2tb")]
    drive: String,
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "0%",
        help = faults::one("retry-rate")
    )]
    retry_rate: Ratio,
    #[arg(
        long,
        default_value = "3",
        allow_negative_numbers = true,
        help = faults::one("rotations")
    )]
    rotations: Rotations,
    #[arg(
        long,
        default_value_t = 2.0,
        value_parser = shared::number,
        allow_negative_numbers = true,
        help = faults::one("adjacency")
    )]
    adjacency: f64,
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "0%",
        help = faults::one("hard-rate")
    )]
    hard_rate: Ratio,
    #[arg(
        long,
        value_name = "KEYS",
        help = faults::all(FAULTS),
        long_help = faults::each(FAULTS),
        value_parser = levelhead_host::read_faults,
        conflicts_with_all = ["retry_rate", "rotations", "adjacency", "hard_rate"]
    )]
    faults: Option<Faults>,
    /// Drives that fail reads, all of them by default: 0,3
    #[arg(long, value_name = "DRIVES", value_delimiter = ',', value_parser = shared::drive)]
    failing: Vec<u8>,
    /// A drive, and the factor by which it takes longer for everything: 3=10
    #[arg(long, value_name = "DRIVE=FACTOR", value_parser = values::slow_drive)]
    slow: Vec<(u8, f64)>,
    /// The order in which a drive serves the commands inside it: fcfs, sstf, clook or sptf
    #[arg(long, default_value = "sptf")]
    drive_order: Scheduler,
    /// What the drives use their memory for: off, read or write-back
    #[arg(long, default_value = "off")]
    drive_cache: CacheMode,
    /// How much of its positioning time a waiting command may save in a drive, per time waited; only
    /// with the drive order sptf
    #[arg(long, default_value_t = 0.0, value_parser = shared::number, allow_negative_numbers = true)]
    age_weight: f64,
    /// The policies to compare; --help describes each
    #[arg(long, value_delimiter = ',', default_value = "normal,assisted,pro-active,level")]
    #[arg(long_help = policies::each("The policies to compare"))]
    policy: Vec<Policy>,
    /// Commands inside a drive at a time, 1 to 32
    #[arg(long, default_value_t = 32, value_parser = shared::window, allow_negative_numbers = true)]
    window: u32,
    /// Order of the host's queues: fcfs, elevator or paper32
    #[arg(long, default_value = "elevator")]
    host_order: HostOrder,
    /// Keep N requests outstanding, 1 to 4096, instead of sending them at their times
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "rate",
        value_parser = values::outstanding,
        allow_negative_numbers = true
    )]
    closed_loop: Option<usize>,
    /// Seed of random choices
    #[arg(long, default_value_t = 7, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Write one line per request to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write an HTML page with the latencies' distributions to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

fn placement(text: &str) -> Result<Placement, String> {
    match text {
        "wrap" => Ok(Placement::Wrap),
        "scale" => Ok(Placement::Scale),
        other => Err(format!("'{other}' is not a placement: expected wrap or scale")),
    }
}

fn scheduler(order: Scheduler, age_weight: f64) -> Result<Scheduler, AppError> {
    match order {
        Scheduler::Sptf { .. } => Ok(Scheduler::Sptf { age_weight }),
        Scheduler::Fcfs | Scheduler::Sstf | Scheduler::Clook if age_weight == 0.0 => Ok(order),
        Scheduler::Fcfs | Scheduler::Sstf | Scheduler::Clook => Err(AppError::usage(format!(
            "an age weight goes with the drive order sptf, not with {order}"
        ))),
    }
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    let load = match options.trace {
        Some(path) => Load::Trace {
            path,
            format: options.format,
            placement: options.placement,
            rate: options.rate,
        },
        None => Load::Synthetic(options.synthetic),
    };
    let ask = Replay {
        load,
        spec: options.array,
        drive: options.drive,
        faults: options.faults.unwrap_or(Faults {
            retry_rate: options.retry_rate,
            adjacency: options.adjacency,
            rotations: options.rotations,
            hard_rate: options.hard_rate,
            ..Faults::NONE
        }),
        failing: options.failing,
        slow: options.slow.into_iter().collect(),
        scheduler: scheduler(options.drive_order, options.age_weight)?,
        cache: options.drive_cache,
        policies: options.policy,
        window: options.window,
        order: options.host_order,
        closed_loop: options.closed_loop,
        seed: options.seed,
        csv: options.csv,
        report: options.report,
    };
    output.print(&replay(&ask, progress::bars(output).as_ref())?)
}
