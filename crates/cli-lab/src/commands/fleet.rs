//! `levelhead-lab fleet ..`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use levelhead_app::AppError;
use levelhead_app_fleet::{
    Analyze, Detect, Detector, DriveKind, Episodes, Generate, GenerateSamples, GroupsOptions,
    Import, LatencyUnit, Prometheus, Queries, Range, Reduce, Rules, Scope, Shape, Summarise,
    analyze, detect, explain, generate, generate_samples, import, map, query, reduce,
};
use levelhead_host::words;

use crate::values;
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, progress};

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Generate a synthetic fleet after the field study: an hours table
    Generate(GenerateArgs),
    /// Convert recorded data to an hours table (.parquet) or samples (.csv)
    Import(ImportArgs),
    /// Compute every table and figure of the field study for your fleet
    Analyze(AnalyzeArgs),
    /// Summarise a part of a fleet, for reduce
    Map(MapArgs),
    /// Combine summaries of parts: the results of analyze for all of them
    Reduce(ReduceArgs),
    /// Print a query for SQL engines that computes a part of analyze's results
    Sql(SqlArgs),
    /// Find drives that are slow compared with the others of their group; exit code 1 if one is
    Detect(DetectArgs),
}

#[derive(Args)]
pub(crate) struct GenerateArgs {
    /// Groups of drives; of hours 12 drives (ssd: 7) on average
    #[arg(long, value_name = "N", value_parser = shared::whole::<usize>, allow_negative_numbers = true)]
    groups: usize,
    /// Hours, of which each group's records lack a tenth
    #[arg(
        long,
        value_name = "N",
        value_parser = shared::whole::<usize>,
        allow_negative_numbers = true,
        required_unless_present = "samples",
        conflicts_with = "samples"
    )]
    hours: Option<usize>,
    /// Seed of random choices
    #[arg(long, default_value_t = 7, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Kind of drives: disk or ssd
    #[arg(long, default_value_t = DriveKind::Disk, conflicts_with = "samples")]
    kind: DriveKind,
    /// Output file of the table: .parquet or .csv; samples are .csv
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Output file of the drives' events: CSV
    #[arg(long, value_name = "FILE", conflicts_with = "samples")]
    events: Option<PathBuf>,
    #[command(flatten)]
    of_samples: SamplesArgs,
}

/// Samples, and not hours.
#[derive(Args)]
#[command(next_help_heading = "Samples for fleet detect")]
pub(crate) struct SamplesArgs {
    /// Generate samples of groups, one every five minutes, instead of hours
    #[arg(long)]
    samples: bool,
    /// Days of samples
    #[arg(
        long,
        value_name = "N",
        default_value_t = 28,
        requires = "samples",
        value_parser = shared::whole::<usize>,
        allow_negative_numbers = true
    )]
    days: usize,
    /// Busy hours of a day
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        requires = "samples",
        value_parser = shared::whole::<usize>,
        allow_negative_numbers = true
    )]
    hours_per_day: usize,
    /// Drives of a group, drawn uniformly
    #[arg(long, value_name = "A..B", default_value = "5..24", requires = "samples", value_parser = counts)]
    drives: RangeInclusive<usize>,
    /// Standard deviation of the logarithm of a latency, one a group
    #[arg(long, value_name = "A..B", default_value = "0.03..0.25", requires = "samples", value_parser = spreads)]
    noise: RangeInclusive<f64>,
    /// Standard deviation of the logarithm of what drives differ by lastingly
    #[arg(
        long,
        value_name = "SD",
        default_value_t = 0.02,
        requires = "samples",
        value_parser = shared::number,
        allow_negative_numbers = true
    )]
    lasting: f64,
    /// Share of samples that are missing
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        requires = "samples",
        value_parser = shared::number,
        allow_negative_numbers = true
    )]
    missing: f64,
    /// Share of drives that are slow
    #[arg(long, value_name = "SHARE", requires = "samples", value_parser = shared::number, allow_negative_numbers = true)]
    slow: Option<f64>,
    /// Latency of slow drives over that of healthy ones
    #[arg(
        long,
        value_name = "RATIO",
        default_value_t = 1.5,
        requires = "slow",
        value_parser = shared::number,
        allow_negative_numbers = true
    )]
    slow_ratio: f64,
    /// First day on which they are slow, from 0
    #[arg(
        long,
        value_name = "DAY",
        default_value_t = 0,
        requires = "slow",
        value_parser = shared::whole::<usize>,
        allow_negative_numbers = true
    )]
    slow_from: usize,
    /// File that lists the slow drives: CSV, as fleet detect --labels takes it
    #[arg(long, value_name = "FILE", requires = "slow")]
    slow_labels: Option<PathBuf>,
}

fn counts(text: &str) -> Result<RangeInclusive<usize>, String> {
    range(text)
        .ok_or_else(|| format!("'{text}' is not a range of counts: expected A..B, as in 5..24"))
}

fn spreads(text: &str) -> Result<RangeInclusive<f64>, String> {
    range(text).ok_or_else(|| {
        format!("'{text}' is not a range of numbers: expected A..B, as in 0.03..0.25")
    })
}

fn range<T: FromStr + Copy>(text: &str) -> Option<RangeInclusive<T>> {
    match text.split_once("..") {
        Some((from, to)) => Some(from.parse().ok()?..=to.parse().ok()?),
        None => text.parse().ok().map(|value| value..=value),
    }
}

#[derive(Args)]
pub(crate) struct ImportArgs {
    /// Hours tables in any order, PERSEUS files and folders, what `watch` recorded, saved answers of Prometheus, or its address
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<String>,
    /// The file to write: .parquet for hours, .csv for samples
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// For Prometheus: a CSV of group, drive and the labels that name a drive's series
    #[arg(long, value_name = "CSV")]
    members: Option<PathBuf>,
    /// Unit of the latencies in Prometheus: s, ms or us
    #[arg(long, default_value = "s", requires = "members", value_parser = latency_unit)]
    unit: LatencyUnit,
    /// The query: a mean latency, one series a drive
    #[arg(long, value_name = "PROMQL", requires_all = ["members", "start", "end", "step"])]
    query: Option<String>,
    /// Start, as 2026-01-01T00:00:00Z or in seconds since 1970
    #[arg(long, value_name = "TIME", requires = "query", value_parser = values::clock_time, allow_negative_numbers = true)]
    start: Option<i64>,
    /// End, in the same form
    #[arg(long, value_name = "TIME", requires = "query", value_parser = values::clock_time, allow_negative_numbers = true)]
    end: Option<i64>,
    /// Time from one value to the next, as 5m or in seconds
    #[arg(long, value_name = "TIME", requires = "query", value_parser = values::step, allow_negative_numbers = true)]
    step: Option<u32>,
}

fn latency_unit(text: &str) -> Result<LatencyUnit, String> {
    match text {
        "s" => Ok(LatencyUnit::Seconds),
        "ms" => Ok(LatencyUnit::Millis),
        "us" => Ok(LatencyUnit::Micros),
        _ => Err(format!("'{text}' is not a latency unit: expected s, ms or us")),
    }
}

/// What is read, and how.
#[derive(Args)]
pub(crate) struct Tables {
    /// Hours tables: Parquet, .csv or .csv.zst, sorted by hour, raid and drive
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Analyse slowdowns only, not load, time, age and models
    #[arg(long, value_name = "WHAT", value_parser = ["slowdown"])]
    only: Option<String>,
    /// Minimum number of requests of a drive hour that is not idle
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = values::requests_min, allow_negative_numbers = true)]
    ios_min: i32,
    /// Number of threads; by default one per processor
    #[arg(long, value_name = "N", value_parser = shared::whole::<usize>, allow_negative_numbers = true)]
    threads: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Shown {
    /// Kind of drives of the study to compare with: disk or ssd
    #[arg(long, default_value_t = DriveKind::Disk)]
    kind: DriveKind,
    /// Write an HTML page with the figures into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct AnalyzeArgs {
    #[command(flatten)]
    tables: Tables,
    /// Events of drives: a CSV of hour, drive and kind (unplug or replug)
    #[arg(long, value_name = "CSV")]
    events: Option<PathBuf>,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Args)]
pub(crate) struct MapArgs {
    #[command(flatten)]
    tables: Tables,
    /// Output file of the summary
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Args)]
pub(crate) struct ReduceArgs {
    /// Summaries that map or reduce has written
    #[arg(value_name = "SUMMARY", required = true)]
    files: Vec<PathBuf>,
    /// Output file of the combined summary
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Args)]
pub(crate) struct SqlArgs {
    /// Name of the query; without it, list all
    name: Option<String>,
}

#[derive(Args)]
pub(crate) struct DetectArgs {
    /// Samples: PERSEUS (Parquet, host_N.csv, host_N.csv.zst, or a folder of those), or what `watch` recorded
    #[arg(value_name = "FILE", required_unless_present = "explain")]
    files: Vec<PathBuf>,
    /// The rule: level, median-ratio, mad, tukey or regression
    #[arg(long, default_value = "level")]
    detector: Detector,
    /// Compare with drives known to be slow: a CSV with columns host (or group) and disk_id (or drive), and cluster if there are several
    #[arg(long, value_name = "CSV")]
    labels: Option<PathBuf>,
    /// Print the rule and its constants only
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::Generate(args) => args.run(output),
        Options::Import(args) => args.run(output),
        Options::Analyze(AnalyzeArgs { tables, events, shown: Shown { kind, report } }) => {
            let ask = Analyze { of: tables.ask(), events, kind, report };
            output.print(&analyze(&ask, progress::bars(output).as_ref())?)
        }
        Options::Map(MapArgs { tables, out }) => {
            map(&tables.ask(), &out, progress::bars(output).as_ref())
        }
        Options::Reduce(ReduceArgs { files, out, shown: Shown { kind, report } }) => {
            let ask = Reduce { files, out, kind, report };
            output.print(&reduce(&ask, progress::bars(output).as_ref())?)
        }
        Options::Sql(SqlArgs { name: Some(name) }) => output.print(&query(&name)?),
        Options::Sql(SqlArgs { name: None }) => output.print(&Queries),
        Options::Detect(args) => args.run(output),
    }
}

impl GenerateArgs {
    fn run(self, output: Output) -> Result<(), AppError> {
        let Self { groups, hours, seed, kind, out, events, of_samples } = self;
        let bars = progress::bars(output);
        let Some(hour_count) = hours else {
            let labels = of_samples.slow_labels.clone();
            let options = of_samples.options(groups);
            let ask = GenerateSamples { options, seed, out, labels };
            return generate_samples(&ask, bars.as_ref());
        };
        let shape = Shape { kind, group_count: groups, hour_count, seed };
        generate(&Generate { shape, out, events }, bars.as_ref())
    }
}

impl SamplesArgs {
    fn options(self, groups: usize) -> GroupsOptions {
        let Self { days, hours_per_day, drives, noise, lasting, missing, .. } = self;
        let episodes = self.slow.map(|share| Episodes {
            share,
            ratio: self.slow_ratio,
            first_day: self.slow_from,
            days: usize::MAX,
        });
        GroupsOptions { groups, drives, days, hours_per_day, noise, lasting, missing, episodes }
    }
}

impl ImportArgs {
    fn run(self, output: Output) -> Result<(), AppError> {
        let Self { sources, out, members, unit, query, start, end, step } = self;
        let range = match (query, start, end, step) {
            (Some(query), Some(start), Some(end), Some(step)) => {
                Some(Range { query, start, end, step })
            }
            _ => None,
        };
        let prometheus = members.map(|members| Prometheus { members, unit, range });
        let ask = Import { sources, out, prometheus };
        output.print(&import(&ask, progress::bars(output).as_ref())?)
    }
}

impl Tables {
    fn ask(self) -> Summarise {
        let Self { files, only, ios_min, threads } = self;
        let scope = if only.is_some() { Scope::Slowdown } else { Scope::Everything };
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.unwrap_or_else(processors);
        Summarise { files, rules: Rules { scope, ios_min }, threads }
    }
}

impl DetectArgs {
    fn run(self, output: Output) -> Result<(), AppError> {
        let Self { files, detector, labels, explain: is_explained } = self;
        if is_explained {
            return output.print(&explain(detector));
        }
        let ask = Detect { files, detector, labels };
        let detected = detect(&ask, progress::bars(output).as_ref())?;
        output.print(&detected)?;
        match detected.slow_count() {
            0 => Ok(()),
            slow => {
                let all = detected.drive_count();
                let (all, are) = (words::counted(all, "drive"), words::is_or_are(slow));
                Err(AppError::trouble(format!("{slow} of {all} {are} slow")))
            }
        }
    }
}
