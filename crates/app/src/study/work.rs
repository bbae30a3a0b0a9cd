//! The jobs of a study on all processors.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use levelhead_lab::studies::{Job, Measured, Plan};

use crate::{AppError, Progress};

/// Measures every job. Which processor takes which makes no difference to the result.
pub(super) fn measure(
    plan: &Plan,
    seeds: &[u64],
    jobs: &[Job],
    progress: &dyn Progress,
) -> Result<BTreeMap<Job, Measured>, AppError> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new((BTreeMap::new(), 0_u64));
    let task = Mutex::new(progress.begin("measuring", jobs.len() as u64));
    let work = || {
        while let Some(&job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = plan.cells[job.cell].measure(seeds[job.seed]);
            let has_failed = result.is_err();
            let count = {
                let mut done = done.lock().expect("no worker panics with the results");
                done.0.insert(job, result);
                done.1 += 1;
                done.1
            };
            task.lock().expect("no worker panics with the bar").reach(count);
            if has_failed {
                // Nobody needs the rest.
                next.store(jobs.len(), Ordering::Relaxed);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (0..workers.min(jobs.len())).for_each(|_| drop(scope.spawn(work)));
    });
    let (done, _) = done.into_inner().expect("no worker panics with the results");
    done.into_iter().map(|(job, result)| Ok((job, result.map_err(AppError::usage)?))).collect()
}
