//! `levelhead-lab fs replay`: operations on files, over a modelled drive in virtual time, with the code and without.

use std::path::Path;

use levelhead_drive::{Faults, Rotations};
use levelhead_fs::FileKind;
use levelhead_fs::format::ladder::Ladder;
use levelhead_lab::mounted::{Kinds, Mounted, MountedSettings};
use levelhead_planner::Code;
use levelhead_report::{Column, Table, json};
use levelhead_stats::{Streams, Summary};
use levelhead_trace::{FileList, FileWorkload, Operation, Stage, Step, Verb};
use levelhead_units::{Nanos, Ratio};
use serde::Serialize;

use crate::profiles;
use levelhead_app::{AppError, Progress, Show, files, threads};
use levelhead_app_fs::{Chosen, CodeWish, Redundancy, choose, forced};

/// The longest list.
const LIST_MAX: u64 = 256 << 20;

/// Data sectors of a coding extent without a code.
const UNCODED: u16 = 1_000;

/// What is to be done, over what.
#[derive(Clone, Debug)]
pub struct ReplayFiles {
    /// A list's file, or the name of a made-up workload.
    pub workload: String,
    /// The drive's make: a shipped profile's name, or a file.
    pub drive: String,
    /// Share of sectors whose first pass fails.
    pub retry_rate: Ratio,
    /// How many revolutions a retry takes.
    pub rotations: Rotations,
    /// The code of the longest groups.
    pub code: CodeWish,
    /// What shorter groups get.
    pub redundancy: Redundancy,
    /// The kind of all files; nothing for the filesystem's own choice.
    pub kind: Option<FileKind>,
    /// Steps of a list that may be under way at a time.
    pub outstanding: u32,
    /// What chance is drawn from.
    pub seed: u64,
}

/// The kind of this name.
///
/// # Errors
///
/// There is none.
pub fn file_kind(name: &str) -> Result<FileKind, String> {
    let kind = FileKind::ALL.into_iter().find(|kind| kind.name() == name);
    kind.ok_or_else(|| format!("'{name}' is not a kind of file: expected auto, a, b or mutable"))
}

/// What the list took, with and without the code.
#[derive(Debug, Serialize)]
pub struct ReplayedFiles {
    seed: u64,
    workload: String,
    drive: String,
    retry_rate: f64,
    code: String,
    kind: &'static str,
    runs: Vec<Run>,
}

/// One way to carry the list out.
#[derive(Debug, Serialize)]
struct Run {
    way: &'static str,
    /// Until everything was safe and redundant.
    seconds: f64,
    /// Until the last operation had ended.
    seconds_to_last: f64,
    /// As many times as long as without a code on a perfect drive.
    times_perfect: f64,
    sectors_decoded: u64,
    sectors_retried: u64,
    operations: Vec<Figures>,
}

/// The operations of one sort.
#[derive(Debug, Serialize)]
struct Figures {
    operation: &'static str,
    count: u64,
    mean_ms: f64,
    p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
}

/// A workload as it is carried out.
struct Work {
    stages: Vec<Stage>,
    /// Of each measured stage.
    operations: Vec<Vec<Operation>>,
}

/// How it is carried out.
struct Way {
    name: &'static str,
    settings: MountedSettings,
    faults: Faults,
}

/// Carries a list out over three filesystems: with the code, without one, and without one over a drive that does not fail.
///
/// # Errors
///
/// There is no such list, drive or code, or a file does not fit the drive.
pub fn replay_files(ask: &ReplayFiles, progress: &dyn Progress) -> Result<ReplayedFiles, AppError> {
    let work = work(ask)?;
    let chosen = choose(ask.code, ask.redundancy)?;
    let code = chosen.code;
    let ways = ways(ask, chosen)?;
    let runs = std::thread::scope(|scope| {
        let work = &work;
        let run = |way| threads::start_in(scope, "run", move || carry_out(way, work, progress));
        let started = ways.iter().map(run).collect::<Result<Vec<_>, AppError>>()?;
        let ended = started.into_iter().map(|run| run.join().expect("no run panics"));
        ended.collect::<Result<Vec<Run>, AppError>>()
    })?;
    Ok(ReplayedFiles::new(ask, code, runs))
}

/// The list, or what the name of a workload stands for.
fn work(ask: &ReplayFiles) -> Result<Work, AppError> {
    let is_made_up = ["hibench:", "ycsb:"].iter().any(|begin| ask.workload.starts_with(begin));
    if is_made_up {
        let workload: FileWorkload = ask.workload.parse().map_err(AppError::usage)?;
        let stages = workload.stages(Streams::new(ask.seed));
        let measured = stages.iter().filter(|stage| stage.is_measured);
        let operations = measured.map(each_step).collect();
        return Ok(Work { stages, operations });
    }
    let text = files::read_text(Path::new(&ask.workload), LIST_MAX)?;
    let list = FileList::read(text.as_bytes(), &ask.workload, ask.outstanding);
    let FileList { prepared, run, operations } = list.map_err(AppError::usage)?;
    Ok(Work { stages: prepared.into_iter().chain([run]).collect(), operations: vec![operations] })
}

/// Each step of a made-up workload is an operation, but that files are made.
fn each_step(stage: &Stage) -> Vec<Operation> {
    let verb = |step: &Step| match step {
        Step::Create { .. } => None,
        Step::Read { .. } => Some(Verb::Read),
        Step::Write { .. } => Some(Verb::Write),
        Step::Sync(_) => Some(Verb::Sync),
        Step::Remove(_) => Some(Verb::Remove),
        Step::Compute(_) => Some(Verb::Think),
    };
    let steps = stage.steps.iter().enumerate();
    steps
        .filter_map(|(at, step)| Some(Operation { verb: verb(step)?, steps: at..at + 1 }))
        .collect()
}

fn ways(ask: &ReplayFiles, chosen: Chosen) -> Result<Vec<Way>, AppError> {
    let Chosen { ladder, failure_rate, .. } = chosen;
    let profile = profiles::load(&ask.drive)?;
    let bare = Ladder::without_redundancy(UNCODED).expect("there is such a ladder");
    let bare = MountedSettings::new(profile, bare, ask.seed);
    let mut coded = MountedSettings { ladder, ..bare.clone() };
    if let Some(kind) = ask.kind {
        coded.kinds = Kinds::All(kind);
        coded.forced = match kind {
            FileKind::Auto | FileKind::A => None,
            FileKind::B | FileKind::Mutable => Some(forced(failure_rate, ask.redundancy)?),
        };
    }
    let faults = Faults { retry_rate: ask.retry_rate, rotations: ask.rotations, ..Faults::NONE };
    let way = |name, settings: &MountedSettings, faults| {
        let settings = settings.clone();
        Way { name, settings, faults }
    };
    Ok(vec![
        way("with the code", &coded, faults),
        way("no code", &bare, faults),
        way("no code, perfect drive", &bare, Faults::NONE),
    ])
}

fn carry_out(way: &Way, work: &Work, progress: &dyn Progress) -> Result<Run, AppError> {
    let task = progress.begin(way.name, work.stages.len() as u64);
    let blame = |error| AppError::usage(format!("{}: {error}", way.name));
    let mut mounted = Mounted::new(way.settings.clone()).map_err(blame)?;
    let mut latencies: Vec<Vec<Nanos>> = vec![Vec::new(); Verb::ALL.len()];
    let (mut all, mut last) = (Nanos::ZERO, Nanos::ZERO);
    let (mut decoded, mut retried) = (0, 0);
    let mut measured = work.operations.iter();
    let mut is_failing = false;
    for (done, stage) in (1..).zip(&work.stages) {
        if stage.is_measured && !is_failing {
            mounted.set_faults(way.faults).map_err(blame)?;
            is_failing = true;
        }
        let took = mounted.carry_out(stage).map_err(blame)?;
        task.reach(done);
        if !stage.is_measured {
            continue;
        }
        all += took.all;
        last += took.ends.iter().max().copied().unwrap_or_default();
        decoded += took.status.sectors_decoded;
        retried += took.status.sectors_retried;
        for Operation { verb, steps } in measured.next().into_iter().flatten() {
            let begins = steps.clone().map(|at| took.ends[at].saturating_sub(took.steps[at]));
            let begun = begins.min().unwrap_or_default();
            let ended = steps.clone().map(|at| took.ends[at]).max().unwrap_or_default();
            latencies[*verb as usize].push(ended.saturating_sub(begun));
        }
    }
    let figures = Verb::ALL.iter().zip(&mut latencies);
    let operations = figures.filter(|(_, each)| !each.is_empty());
    Ok(Run {
        way: way.name,
        seconds: all.as_secs_f64(),
        seconds_to_last: last.as_secs_f64(),
        times_perfect: 1.0,
        sectors_decoded: decoded,
        sectors_retried: retried,
        operations: operations.map(|(verb, each)| Figures::of(verb.name(), each)).collect(),
    })
}

impl Figures {
    fn of(operation: &'static str, each: &mut [Nanos]) -> Self {
        let Summary { count, mean, p50, p90, p99, p999, max } = Summary::of(each);
        Self {
            operation,
            count,
            mean_ms: mean.as_millis_f64(),
            p50_ms: p50.as_millis_f64(),
            p90_ms: p90.as_millis_f64(),
            p99_ms: p99.as_millis_f64(),
            p999_ms: p999.as_millis_f64(),
            max_ms: max.as_millis_f64(),
        }
    }
}

impl ReplayedFiles {
    fn new(ask: &ReplayFiles, code: Code, mut runs: Vec<Run>) -> Self {
        let perfect = runs.last().map_or(0.0, |run| run.seconds);
        for run in &mut runs {
            // A list that only thinks for no time takes none.
            run.times_perfect = if perfect > 0.0 { run.seconds / perfect } else { 1.0 };
        }
        Self {
            seed: ask.seed,
            workload: ask.workload.clone(),
            drive: ask.drive.clone(),
            retry_rate: ask.retry_rate.get(),
            code: code.to_string(),
            kind: ask.kind.unwrap_or(FileKind::Auto).name(),
            runs,
        }
    }
}

impl Show for ReplayedFiles {
    fn text(&self) -> String {
        let Self { workload, drive, retry_rate, code, kind, seed, .. } = self;
        let mut text = format!(
            "workload: {workload}\ndrive: {drive}, retry rate {retry_rate:e}\ncode: {code}, files of kind {kind}\nseed: {seed}\n\n"
        );
        let names = ["s", "s to the last", "times perfect", "decoded", "retried"];
        let columns = std::iter::once(Column::left("way")).chain(names.map(Column::right));
        let mut table = Table::new(columns);
        for run in &self.runs {
            table.push(vec![
                run.way.to_owned(),
                format!("{:.3}", run.seconds),
                format!("{:.3}", run.seconds_to_last),
                format!("{:.3}", run.times_perfect),
                run.sectors_decoded.to_string(),
                run.sectors_retried.to_string(),
            ]);
        }
        text.push_str(&table.to_text());
        let names = ["count", "mean ms", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"];
        let columns = ["operation", "way"].map(Column::left).into_iter();
        let mut table = Table::new(columns.chain(names.map(Column::right)));
        for verb in Verb::ALL {
            for run in &self.runs {
                let of = run.operations.iter().find(|figures| figures.operation == verb.name());
                let Some(figures) = of else { continue };
                let Figures { count, mean_ms, p50_ms, p90_ms, p99_ms, p999_ms, max_ms, .. } =
                    figures;
                let mut row = vec![verb.name().to_owned(), run.way.to_owned(), count.to_string()];
                let times = [mean_ms, p50_ms, p90_ms, p99_ms, p999_ms, max_ms];
                row.extend(times.map(|time| format!("{time:.3}")));
                table.push(row);
            }
        }
        text.push('\n');
        text.push_str(&table.to_text());
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}
