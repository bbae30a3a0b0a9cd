//! `levelhead-lab plan ..`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use levelhead_app::AppError;
use levelhead_app_lab::plan::{
    ChecksumsAsk, CodeAsk, CodeChoice, Decoding, Files, IdleAsk, IdleLoad, ModeAsk, OverheadAsk,
    RandomAsk, RedundancyAsk, TailAsk, plan_checksums, plan_code, plan_idle, plan_mode,
    plan_overhead, plan_redundancy, plan_tail,
};
use levelhead_array::Spec;
use levelhead_drive::{IdleVerify, Placing, VerifyStart};
use levelhead_planner::Code;
use levelhead_planner::checksums::ROT_SECTORS;
use levelhead_planner::code::{Goal, least_redundant};
use levelhead_planner::decode::DecodeTime;
use levelhead_planner::system::Capacities;
use levelhead_trace::{Format, Workload};
use levelhead_units::{Bytes, Nanos};

use crate::values;
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, progress};

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Minimum redundancy for a target
    Code(CodeArgs),
    /// Redundancy by the size of a codeword, or of a whole drive with three kinds of file
    Redundancy(RedundancyArgs),
    /// Percentiles of a read's latency with and without local erasure coding
    Tail(Box<TailArgs>),
    /// Compare reads of the requested data alone and of the whole group, by their cost for all requests
    Mode(Box<ModeArgs>),
    /// Space overhead of local erasure coding, for the files of a folder or of published mixes
    Overhead(OverheadArgs),
    /// Share of a load's writes that a drive can verify while it is idle, by memory and cost
    Idle(Box<IdleArgs>),
    /// Cost of an array's checksums, and the wrong sectors that they find
    Checksums(Box<ChecksumsArgs>),
}

#[derive(Args)]
pub(crate) struct CodeArgs {
    /// Probability that a sector's first pass fails: 1e-3, or 0.1%
    #[arg(long, value_name = "P", value_parser = shared::probability, allow_negative_numbers = true)]
    failure_rate: f64,
    /// Probability that may remain after decoding
    #[arg(long, value_name = "P", default_value = "1e-6", value_parser = shared::probability, allow_negative_numbers = true)]
    target: f64,
    /// Symbols of a codeword
    #[arg(long, default_value = "255", value_parser = values::symbols, allow_negative_numbers = true)]
    length: u64,
    /// Probability that a sector is lost, retries or not
    #[arg(long, value_name = "P", value_parser = shared::probability, allow_negative_numbers = true)]
    hard_failure_rate: Option<f64>,
    /// Probability that a sector may be lost with after decoding
    #[arg(long, value_name = "P", default_value = "1e-12", value_parser = shared::probability, allow_negative_numbers = true)]
    hard_target: f64,
    /// How many times as likely a sector fails next to a failed one, for a bound beside the law
    #[arg(long, default_value = "1", value_parser = values::at_least_one, allow_negative_numbers = true)]
    correlation: f64,
    /// Write an HTML page to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct RedundancyArgs {
    /// Probabilities that a sector's first pass fails
    #[arg(long, value_name = "P,..", value_delimiter = ',', default_value = "1e-4,5e-4,1e-3,5e-3", value_parser = shared::probability, allow_negative_numbers = true)]
    failure_rate: Vec<f64>,
    /// Probability that may remain after decoding
    #[arg(long, value_name = "P", default_value = "1e-8", value_parser = shared::probability, allow_negative_numbers = true)]
    target: f64,
    /// Data symbols of a codeword
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "8,16,32,64,128,256,512,1024,2048,4096", value_parser = values::symbols, allow_negative_numbers = true)]
    data: Vec<u64>,
    /// Capacities of files read in sequence, read at random, and mutable: the redundancy of a whole
    /// drive instead (90:8:2)
    #[arg(long, value_name = "A:B:M", value_parser = values::capacities)]
    capacities: Option<Capacities>,
    /// Codeword length of files read in sequence
    #[arg(long, default_value = "1023", value_parser = values::symbols, allow_negative_numbers = true)]
    sequential_length: u64,
    /// Codeword length of files read at random
    #[arg(long, default_value = "127", value_parser = values::symbols, allow_negative_numbers = true)]
    random_length: u64,
    /// Failure rate under 256 bytes of zeros, instead of the assumed one
    #[arg(long, value_name = "P", value_parser = shared::probability, allow_negative_numbers = true)]
    forced_rate: Option<f64>,
    /// Write an HTML page to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct TailArgs {
    /// Sectors of 4 KiB of a read
    #[arg(long, default_value = "10000", value_parser = values::read_sectors, allow_negative_numbers = true)]
    sectors: u64,
    /// Probability that a sector's first pass fails: 1e-3, or 0.1%
    #[arg(long, value_name = "P", default_value = "1e-3", value_parser = shared::probability, allow_negative_numbers = true)]
    failure_rate: f64,
    /// The code, REDUNDANT,DATA, instead of the least for a length and a target
    #[arg(long, value_name = "CODE", conflicts_with_all = ["length", "target"])]
    code: Option<Code>,
    /// Symbols of a codeword
    #[arg(long, default_value = "255", value_parser = values::symbols, allow_negative_numbers = true)]
    length: u64,
    /// Probability that may remain after decoding
    #[arg(long, value_name = "P", default_value = "1e-6", value_parser = shared::probability, allow_negative_numbers = true)]
    target: f64,
    /// Time in which a sector passes under the head
    #[arg(long, default_value = "33us", value_parser = shared::short_time)]
    sector_time: Nanos,
    /// Time of a sector's retry
    #[arg(long, default_value = "20ms", value_parser = shared::short_time)]
    retry_time: Nanos,
    /// Bytes a second that one erased symbol's share of decoding passes; the default is the paper's
    /// software, 400 MB/s at ten erasures
    #[arg(long, value_name = "SIZE", default_value = "4GB", value_parser = values::rate)]
    decode_rate: Bytes,
    /// Measure the time of decoding on this machine instead
    #[arg(long, conflicts_with = "decode_rate")]
    measure_decode: bool,
    /// The percentiles
    #[arg(long, value_name = "PERCENT,..", value_delimiter = ',', default_value = "50,99,99.9", value_parser = values::percentile, allow_negative_numbers = true)]
    percentile: Vec<f64>,
    /// Short random reads with this number of them in the queue, instead of one long read
    #[arg(long, value_name = "COUNT", value_parser = values::depth, allow_negative_numbers = true)]
    queue_depth: Option<u64>,
    /// Time of moving the head, for random reads
    #[arg(long, default_value = "10ms", value_parser = shared::short_time, requires = "queue_depth")]
    seek_time: Nanos,
    /// Failure rate under 256 bytes of zeros: shows zero forcing beside, for random reads
    #[arg(long, value_name = "P", value_parser = shared::probability, requires = "queue_depth", allow_negative_numbers = true)]
    forced_rate: Option<f64>,
    /// Write an HTML page to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ModeArgs {
    /// Drives of a group
    #[arg(long, default_value = "6", value_parser = values::drives, allow_negative_numbers = true)]
    drives: u64,
    /// Those of them with requested data
    #[arg(long, default_value = "5", value_parser = values::drives, allow_negative_numbers = true)]
    wanted: u64,
    /// Requested sectors on each of those
    #[arg(long, default_value = "2", value_parser = values::symbols, allow_negative_numbers = true)]
    sectors: u64,
    /// Probability that a sector's first pass fails
    #[arg(long, value_name = "P", default_value = "1e-2", value_parser = shared::probability, allow_negative_numbers = true)]
    failure_rate: f64,
    /// Time of a retry
    #[arg(long, default_value = "25ms", value_parser = shared::short_time)]
    retry_time: Nanos,
    /// Time of a sub-request without retries
    #[arg(long, default_value = "5ms", value_parser = shared::short_time)]
    service_time: Nanos,
    /// Probability that a sub-request is removed before the drive begins
    #[arg(long, value_name = "P", default_value = "0.1", value_parser = shared::probability, allow_negative_numbers = true)]
    removal: f64,
    /// Sub-requests waiting at each drive
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "0,1,4,16", value_parser = values::queued, allow_negative_numbers = true)]
    queued: Vec<u64>,
    /// Shares of time that the drives are busy
    #[arg(long, value_name = "P,..", value_delimiter = ',', default_value = "20%,50%,80%,95%", value_parser = shared::probability, allow_negative_numbers = true)]
    load: Vec<f64>,
    /// Write an HTML page to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct OverheadArgs {
    /// Take the sizes of all files below this folder
    #[arg(long, value_name = "DIR", conflicts_with = "sizes")]
    scan: Option<PathBuf>,
    /// Take the sizes from a table, one SIZE or SIZE,COUNT a line; without either, the mixes that the
    /// paper describes
    #[arg(long, value_name = "FILE")]
    sizes: Option<PathBuf>,
    /// A code, REDUNDANT,DATA, and more by repeating; by default the paper's eight
    #[arg(long, value_name = "CODE")]
    code: Vec<Code>,
    /// Write an HTML page to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct IdleArgs {
    /// The trace; of several devices in it, the one with the most requests
    #[arg(value_name = "TRACE", required_unless_present = "synthetic")]
    trace: Option<PathBuf>,
    /// Format of the trace, where the file does not show it: msr, msr-cut, mqsim, vscsi, spc, systor17, blkparse or fio
    #[arg(long, value_name = "FORMAT", requires = "trace")]
    format: Option<Format>,
    /// A synthetic load instead: iraw:web, or size=8KiB,interval=8ms,count=20000,reads=70%
    #[arg(long, value_name = "WORKLOAD", conflicts_with = "trace")]
    synthetic: Option<Workload>,
    /// Model of the drive: a shipped profile, or the path of a TOML file
    #[arg(long, value_name = "PROFILE", default_value = "nearline-2tb")]
    drive: String,
    /// What is evicted first: mru-lru, mru-mru, stay, adaptive, or dedicated, where unverified writes have memory of
    /// their own
    #[arg(long, value_name = "POLICY", default_value = "dedicated")]
    retention: Placing,
    /// Memory for reads, with dedicated
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = values::drive_memory)]
    memory: Bytes,
    /// Sizes of the memory that unverified writes have, or share
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "1MiB,2MiB,4MiB,8MiB,16MiB,64MiB", value_parser = values::drive_memory)]
    cache: Vec<Bytes>,
    /// Idle times before the drive verifies
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "1ms,5ms,20ms", value_parser = values::idle_wait)]
    wait: Vec<Nanos>,
    /// When the arm sets out for a verification: late or at-once
    #[arg(long, value_name = "START", default_value = "late")]
    start: VerifyStart,
    /// Memory for checksums of writes whose data was evicted
    #[arg(long, value_name = "SIZE", default_value = "0B", value_parser = values::sums)]
    sums: Bytes,
    /// Share of the writes to verify, for the smallest cache
    #[arg(long, value_name = "P", default_value = "99%", value_parser = shared::probability, allow_negative_numbers = true)]
    goal: f64,
    /// Seed of random choices
    #[arg(long, default_value = "7", value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Write an HTML page to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ChecksumsArgs {
    /// The array, which need not name checksums: raid5:5+1, or raid6:6+2,chunk=256KiB
    array: Spec,
    /// Model of the drives: a shipped profile, or the path of a TOML file
    #[arg(long, value_name = "PROFILE", default_value = "nearline-2tb")]
    drive: String,
    /// Data that clients use at random; by default all of it
    #[arg(long, value_name = "SIZE")]
    working_set: Option<Bytes>,
    /// Random reads a second that a busy drive completes without checksums
    #[arg(long, value_name = "RATE", default_value = "188", value_parser = shared::positive, allow_negative_numbers = true)]
    read_rate: f64,
    /// Small writes a second that a busy drive completes without checksums: a read and a write of it each
    #[arg(long, value_name = "RATE", default_value = "90", value_parser = shared::positive, allow_negative_numbers = true)]
    write_rate: f64,
    /// Times a year that clients read all data
    #[arg(long, value_name = "COUNT", default_value = "12", value_parser = shared::positive, allow_negative_numbers = true)]
    reads: f64,
    /// Scrubs of all data in a year
    #[arg(long, value_name = "COUNT", default_value = "26", value_parser = shared::positive, allow_negative_numbers = true)]
    scrubs: f64,
    /// Share of the drives that develop rotten sectors in a year; by default 0.47 %, from a field study, with its range
    #[arg(long, value_name = "P", value_parser = shared::probability, allow_negative_numbers = true)]
    rot: Option<f64>,
    /// Rotten sectors of such a drive, on average
    #[arg(long, value_name = "COUNT", default_value_t = ROT_SECTORS, value_parser = shared::positive, allow_negative_numbers = true)]
    rot_sectors: f64,
    /// Share of the drives that lose a write in a year; by default 0.0065 %, from the same study
    #[arg(long, value_name = "P", value_parser = shared::probability, allow_negative_numbers = true)]
    lost: Option<f64>,
    /// Share of the drives that store a write elsewhere in a year; by default 0.0065 %, from the same study
    #[arg(long, value_name = "P", value_parser = shared::probability, allow_negative_numbers = true)]
    misdirected: Option<f64>,
    /// Write an HTML page to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::Code(args) => output.print(&plan_code(&CodeAsk {
            soft: Goal { failure_rate: args.failure_rate, target: args.target },
            hard: args
                .hard_failure_rate
                .map(|failure_rate| Goal { failure_rate, target: args.hard_target }),
            length: args.length,
            correlation: args.correlation,
            report: args.report,
        })?),
        Options::Redundancy(args) => output.print(&plan_redundancy(&RedundancyAsk {
            failure_rates: args.failure_rate,
            target: args.target,
            data: args.data,
            capacities: args.capacities,
            lengths: [args.sequential_length, args.random_length],
            forced_rate: args.forced_rate,
            report: args.report,
        })?),
        Options::Tail(args) => output.print(&plan_tail(&tail(*args))?),
        Options::Mode(args) => output.print(&plan_mode(&ModeAsk {
            drives: args.drives,
            wanted: args.wanted,
            sectors: args.sectors,
            failure_rate: args.failure_rate,
            retry_time: args.retry_time,
            service_time: args.service_time,
            removal: args.removal,
            queued: args.queued,
            loads: args.load,
            report: args.report,
        })?),
        Options::Checksums(args) => output.print(&plan_checksums(&checksums(*args))?),
        Options::Idle(args) => {
            let ask = idle(*args)?;
            output.print(&plan_idle(&ask, progress::bars(output).as_ref())?)
        }
        Options::Overhead(args) => {
            let ask = overhead(args);
            output.print(&plan_overhead(&ask, progress::bars(output).as_ref())?)
        }
    }
}

fn checksums(args: ChecksumsArgs) -> ChecksumsAsk {
    ChecksumsAsk {
        array: args.array,
        drive: args.drive,
        working_set: args.working_set,
        read_rate: args.read_rate,
        write_rate: args.write_rate,
        reads: args.reads,
        scrubs: args.scrubs,
        rot: args.rot,
        rot_sectors: args.rot_sectors,
        lost: args.lost,
        misdirected: args.misdirected,
        report: args.report,
    }
}

fn idle(args: IdleArgs) -> Result<IdleAsk, AppError> {
    let load = match (args.trace, args.synthetic) {
        (Some(path), _) => IdleLoad::Trace { path, format: args.format },
        (None, Some(workload)) => IdleLoad::Synthetic(workload),
        (None, None) => return Err(AppError::usage("expected a trace, or --synthetic")),
    };
    Ok(IdleAsk {
        load,
        drive: args.drive,
        placing: args.retention,
        memory: args.memory,
        caches: args.cache,
        waits: args.wait,
        how: IdleVerify { start: args.start, sums: args.sums, ..IdleVerify::DEFAULT },
        goal: args.goal,
        seed: args.seed,
        report: args.report,
    })
}

fn tail(args: TailArgs) -> TailAsk {
    TailAsk {
        sectors: args.sectors,
        failure_rate: args.failure_rate,
        code: match args.code {
            Some(code) => CodeChoice::Given(code),
            None => CodeChoice::Least { length: args.length, target: args.target },
        },
        sector_time: args.sector_time,
        retry_time: args.retry_time,
        decoding: if args.measure_decode {
            Decoding::Measured
        } else {
            Decoding::Given(DecodeTime::PerRow(args.decode_rate))
        },
        shares: args.percentile,
        random: args.queue_depth.map(|depth| RandomAsk {
            depth,
            seek_time: args.seek_time,
            forced_rate: args.forced_rate,
        }),
        report: args.report,
    }
}

/// Failure rates for which the paper lists codes.
const PAPERS_RATES: [f64; 4] = [1e-4, 5e-4, 1e-3, 5e-3];

fn overhead(args: OverheadArgs) -> OverheadAsk {
    let papers = [255, 1023].into_iter().flat_map(|length| {
        let code = move |failure_rate| least_redundant(length, Goal { failure_rate, target: 1e-6 });
        PAPERS_RATES.into_iter().filter_map(code)
    });
    OverheadAsk {
        files: match (args.scan, args.sizes) {
            (Some(folder), _) => Files::Scan(folder),
            (None, Some(table)) => Files::Csv(table),
            (None, None) => Files::Published,
        },
        codes: if args.code.is_empty() { papers.collect() } else { args.code },
        report: args.report,
    }
}
