//! `levelhead-lab study`: the papers' tables and figures, with our numbers beside theirs.

mod journal;
mod number;
mod output;
mod record;
mod shard;
mod verdict;
mod work;

use std::path::PathBuf;
use std::sync::Arc;

use levelhead_lab::studies::{Ask, NamedTrace, Results, SEEDS_MAX, Study, Takes, all, find};
use levelhead_trace::read;
use levelhead_units::meant;

use levelhead_app::{AppError, Progress, Show, files};

pub use levelhead_lab::studies::Shard;
pub use output::{Listed, Studied};
pub use shard::Part;

use journal::Journal;
use record::Question;
use shard::Parts;

/// What to run.
#[derive(Clone, Debug)]
pub struct RunStudy {
    /// The study's name.
    pub name: String,
    /// A short run.
    pub quick: bool,
    /// The first seed.
    pub seed: u64,
    /// How many seeds, if not as many as the study says.
    pub seeds: Option<u32>,
    /// Traces or samples, for studies that take them.
    pub traces: Vec<PathBuf>,
    /// Drives of the samples that are known to be slow.
    pub labels: Option<PathBuf>,
    /// The folder for the page, if one is wanted.
    pub report: Option<PathBuf>,
    /// A part of the work only.
    pub shard: Option<Shard>,
    /// The file that keeps what is measured, and from which a later run goes on.
    pub resume: Option<PathBuf>,
}

/// Every study there is.
pub fn list() -> Listed {
    Listed::new(all())
}

/// Runs a study, or a part of it.
pub fn run(ask: &RunStudy, progress: &dyn Progress) -> Result<Box<dyn Show>, AppError> {
    let study = known(&ask.name)?;
    let question = question(&study, ask, progress)?;
    if ask.shard.is_some() && ask.report.is_some() {
        return Err(AppError::usage("a part of a study has no report: merge the parts first"));
    }
    let place = ask.report.as_deref().map(|folder| files::page_place(folder, study.name));
    let place = place.transpose()?;
    let plan = (study.plan)(&question).map_err(AppError::usage)?;
    let shard = ask.shard.unwrap_or(Shard::WHOLE);
    let jobs = shard.of(&plan.jobs(question.seeds as usize));
    let written = Question::new(&study, &question, shard);
    let journal = match &ask.resume {
        Some(path) => Journal::open(path, &written, &jobs)?,
        None => Journal::in_memory(),
    };
    let measured = work::measure(&plan, &question.seeds(), &jobs, journal, progress)?;
    if ask.shard.is_some() {
        return Ok(Box::new(Part::new(written, &measured)));
    }
    let results =
        Results::of(&plan, question.seeds as usize, &measured).map_err(AppError::usage)?;
    Ok(Box::new(Studied::new(study, question, plan, results).written(place)?))
}

/// The largest part, or journal, that is read.
const PART_MAX: u64 = 1 << 30;

/// Puts the parts of a study together.
pub fn merge(paths: &[PathBuf], report: Option<&PathBuf>) -> Result<Studied, AppError> {
    let mut parts = Vec::new();
    for path in paths {
        parts.push((path.display().to_string(), files::read_text(path, PART_MAX)?));
    }
    let parts = Parts::read(&parts).map_err(AppError::usage)?;
    let study = known(parts.study())?;
    let question = parts.question().map_err(AppError::usage)?;
    check_taken(&study, question.traces.len())?;
    let place = report.map(|folder| files::page_place(folder, study.name)).transpose()?;
    let plan = (study.plan)(&question).map_err(AppError::usage)?;
    let seeds = question.seeds as usize;
    let measured = parts.measured(&plan.jobs(seeds)).map_err(AppError::usage)?;
    let results = Results::of(&plan, seeds, &measured)
        .map_err(|problem| AppError::usage(format!("the parts are not whole: {problem}")))?;
    Studied::new(study, question, plan, results).written(place)
}

fn known(name: &str) -> Result<Study, AppError> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = all().iter().map(|study| study.name).collect();
        let expected = names.join(", ");
        let meant = meant(name, names);
        AppError::usage(format!("'{name}' is not a study: expected one of {expected}{meant}"))
    })
}

fn check_taken(study: &Study, count: usize) -> Result<(), AppError> {
    if study.takes != Takes::Nothing || count == 0 {
        return Ok(());
    }
    Err(AppError::usage(format!("{} takes no trace", study.name)))
}

/// What is asked of the study, with its traces read.
fn question(study: &Study, ask: &RunStudy, progress: &dyn Progress) -> Result<Ask, AppError> {
    let default = if ask.quick { study.seeds_quick } else { study.seeds_full };
    let seeds = ask.seeds.unwrap_or(default);
    if !(1..=SEEDS_MAX).contains(&seeds) {
        return Err(AppError::usage(format!("a study takes 1 to {SEEDS_MAX} seeds, not {seeds}")));
    }
    check_taken(study, ask.traces.len())?;
    if ask.labels.is_some() && (study.takes != Takes::Samples || ask.traces.is_empty()) {
        return Err(AppError::usage("labels are of samples that a study takes by --trace"));
    }
    let mut traces: Vec<NamedTrace> = Vec::new();
    for path in &ask.traces {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        if traces.iter().any(|other| other.name == name) {
            return Err(AppError::usage(format!("two traces are called {name}")));
        }
        if study.takes == Takes::Samples {
            let samples =
                levelhead_app_fleet::labelled(path, ask.labels.as_deref()).map(Arc::new)?;
            traces.push(NamedTrace { name, trace: None, samples: Some(samples) });
            continue;
        }
        let file = files::open(path)?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let task = progress.begin("reading", length);
        let trace = read(file, &path.display().to_string(), None, &mut |done| task.reach(done))
            .map_err(AppError::usage)?;
        traces.push(NamedTrace { name, trace: Some(Arc::new(trace)), samples: None });
    }
    Ok(Ask { quick: ask.quick, seed: ask.seed, seeds, traces })
}
