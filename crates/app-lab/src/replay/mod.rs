//! `levelhead-lab replay`: what would each policy have made of this load?
//!
//! The load, a trace or a made-up one, is sent to one array in virtual time once for each policy.
//! The drives fail the same sectors for the same requests each time.

mod input;
mod output;
mod page;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use levelhead_array::{Content, HostOrder, Policy, Spec};
use levelhead_drive::{CacheMode, Faults, QUEUE_DEPTH_MAX, Scheduler, Verify};
use levelhead_lab::replay::account::Accounting;
use levelhead_lab::replay::{Run, Sending};
use levelhead_lab::{World, WorldSettings, replay};
use levelhead_trace::{Arrival, Format, Placement, Workload};
use levelhead_units::DriveIdx;

use crate::profiles;
use levelhead_app::{AppError, Progress, files, threads};

pub use levelhead_lab::replay::IN_ARRAY_MAX as OUTSTANDING_MAX;
pub use output::Replayed;

/// What to replay, over what.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The load.
    pub load: Load,
    /// The array's shape.
    pub spec: Spec,
    /// The drives' make: a shipped profile's name, or a file.
    pub drive: String,
    /// How the drives fail.
    pub faults: Faults,
    /// Only these drives fail reads; all of them if there is none here.
    pub failing: Vec<u8>,
    /// Drives that are slower than the others, and how many times.
    pub slow: BTreeMap<u8, f64>,
    /// The order in which a drive serves the commands inside it.
    pub scheduler: Scheduler,
    /// What the drives use their memory for. No replay cuts the power.
    pub cache: CacheMode,
    /// The policies, each run once.
    pub policies: Vec<Policy>,
    /// Commands inside a drive at a time.
    pub window: u32,
    /// The order of the host's queues.
    pub order: HostOrder,
    /// How many requests are outstanding at all times; without it they arrive at their times.
    pub closed_loop: Option<usize>,
    /// What chance is drawn from.
    pub seed: u64,
    /// Where one line per request goes, if anywhere.
    pub csv: Option<PathBuf>,
    /// Where the HTML report goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// Where the requests come from.
#[derive(Clone, Debug)]
pub enum Load {
    /// A trace file.
    Trace {
        /// The file.
        path: PathBuf,
        /// Its format, if it cannot be told.
        format: Option<Format>,
        /// How addresses get onto the array, if not as recorded where they fit.
        placement: Option<Placement>,
        /// How many times as fast as recorded.
        rate: f64,
    },
    /// A made-up one.
    Synthetic(Workload),
}

/// Replays.
pub fn replay(ask: &Replay, progress: &dyn Progress) -> Result<Replayed, AppError> {
    check_places(ask)?;
    let settings = worlds(ask)?;
    let size = World::new(&settings[0]).map_err(AppError::usage)?.size();
    let input = input::load(ask, size, progress)?;
    let runs = run_all(ask, &settings, &input.arrivals, progress)?;
    let replayed = Replayed::new(ask, &input, runs);
    replayed.write_lines(ask, &input.arrivals)?;
    if let Some(path) = &ask.report {
        let html = page::page(&replayed).to_html();
        files::write_whole(path, |out| out.write_all(html.as_bytes()))?;
    }
    Ok(replayed)
}

/// Whether the results can be written, before they are worked for.
fn check_places(ask: &Replay) -> Result<(), AppError> {
    let places = [&ask.csv, &ask.report];
    places.into_iter().flatten().try_for_each(|path| files::check_place(path))?;
    match &ask.csv {
        Some(path) if ask.csv == ask.report => {
            let path = path.display();
            Err(AppError::usage(format!("{path} cannot hold both the lines and the page")))
        }
        Some(_) | None => Ok(()),
    }
}

/// One world a policy.
fn worlds(ask: &Replay) -> Result<Vec<WorldSettings>, AppError> {
    let profile = profiles::load(&ask.drive)?;
    if ask.spec.journals() > 0 {
        return Err(AppError::usage(format!(
            "{}: a replay keeps no journal, and so has no drives for one",
            ask.spec
        )));
    }
    let count = ask.spec.drives();
    let named = ask.failing.iter().chain(ask.slow.keys());
    if let Some(drive) = named.copied().find(|&drive| usize::from(drive) >= count) {
        let last = count - 1;
        return Err(AppError::usage(format!(
            "drive {drive} does not exist: {} has drives 0 to {last}",
            ask.spec
        )));
    }
    let drives: Vec<_> = (0..count)
        .map(|idx| {
            let name = DriveIdx::from_usize(idx).as_usize() as u8;
            let fails = ask.failing.is_empty() || ask.failing.contains(&name);
            let faults = if fails { ask.faults } else { Faults::NONE };
            levelhead_drive::Settings {
                queue_depth: QUEUE_DEPTH_MAX,
                scheduler: ask.scheduler,
                cache: ask.cache,
                retention: None,
                verify: Verify::Off,
                faults: Faults {
                    slowdown: ask.slow.get(&name).copied().unwrap_or(faults.slowdown),
                    ..faults
                },
                size: None,
            }
        })
        .collect();
    if ask.policies.is_empty() {
        return Err(AppError::usage("no policy was named"));
    }
    let world = |&policy: &Policy| WorldSettings {
        spec: ask.spec,
        policy,
        window: ask.window,
        order: ask.order,
        content: Content::Absent,
        profile: profile.clone(),
        drives: drives.clone(),
        area: None,
        journal: None,
        seed: ask.seed,
    };
    Ok(ask.policies.iter().map(world).collect())
}

/// Runs every world over the same arrivals, as many at a time as there are processors.
fn run_all(
    ask: &Replay,
    settings: &[WorldSettings],
    arrivals: &[Arrival],
    progress: &dyn Progress,
) -> Result<Vec<Run>, AppError> {
    let sending = ask.closed_loop.map_or(Sending::Open, Sending::Closed);
    // The page alone shows it.
    let accounting = if ask.report.is_some() { Accounting::On } else { Accounting::Off };
    let ask = replay::Ask { sending, accounting, ..replay::Ask::open(arrivals) };
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        while let Some(world) = settings.get(next.fetch_add(1, Ordering::Relaxed)) {
            let task = progress.begin(&world.policy.to_string(), arrivals.len() as u64);
            let run = replay::run(world, &ask, &mut |served| task.reach(served));
            done.lock().expect("no worker panics with the list").push((world.policy, run));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| threads::work_by(scope, workers.min(settings.len()), work));
    let mut done = done.into_inner().expect("no worker panics with the list");
    let place = |policy| settings.iter().position(|world| world.policy == policy);
    done.sort_by_key(|(policy, _)| place(*policy));
    done.into_iter().map(|(_, run)| run.map_err(AppError::usage)).collect()
}
