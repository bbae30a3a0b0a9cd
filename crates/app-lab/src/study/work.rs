//! The jobs of a study on all processors.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use levelhead_lab::studies::{Job, Measured, StudyPlan};

use super::journal::Journal;
use levelhead_app::{AppError, Progress, threads};

/// Measures every job that `journal` does not have, and gives back what all of them have given. Which
/// processor takes which makes no difference to the result.
pub(super) fn measure(
    plan: &StudyPlan,
    seeds: &[u64],
    jobs: &[Job],
    journal: Journal,
    progress: &dyn Progress,
) -> Result<BTreeMap<Job, Measured>, AppError> {
    let has = |job: &Job| journal.measured().contains_key(job);
    let missing: Vec<Job> = jobs.iter().copied().filter(|job| !has(job)).collect();
    let task = progress.begin("measuring", jobs.len() as u64);
    task.reach(journal.measured().len() as u64);
    let task = Mutex::new(task);
    let next = AtomicUsize::new(0);
    let outcome = Mutex::new(Outcome { journal, problems: BTreeMap::new() });
    let work = || {
        while let Some(&job) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = plan.cells[job.cell].measure(seeds[job.seed]);
            let mut outcome = outcome.lock().expect("no worker panics with the results");
            outcome.take(job, result.map_err(AppError::usage));
            if !outcome.problems.is_empty() {
                // The other jobs are not needed any more.
                next.store(missing.len(), Ordering::Relaxed);
            }
            let count = outcome.journal.measured().len() as u64;
            drop(outcome);
            task.lock().expect("no worker panics with the bar").reach(count);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| threads::work_by(scope, workers.min(missing.len()), work));
    let outcome = outcome.into_inner().expect("no worker panics with the results");
    match outcome.problems.into_values().next() {
        Some(problem) => Err(problem),
        None => Ok(outcome.journal.into_measured()),
    }
}

/// What has come of the jobs so far.
struct Outcome {
    journal: Journal,
    /// Why jobs have no result.
    problems: BTreeMap<Job, AppError>,
}

impl Outcome {
    fn take(&mut self, job: Job, result: Result<Measured, AppError>) {
        // Once a write has failed, another would go on in the middle of a line (J3).
        let is_wanted = self.problems.is_empty();
        let kept = result.and_then(|measured| match is_wanted {
            true => self.journal.add(job, measured),
            false => Ok(()),
        });
        if let Err(problem) = kept {
            self.problems.insert(job, problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use levelhead_lab::studies::Cell;

    use super::*;
    use levelhead_app::{NoProgress, Task};

    /// Two cells that say how often they were measured.
    fn plan(count: &Arc<AtomicUsize>) -> StudyPlan {
        let cell = |add: f64| {
            let count = Arc::clone(count);
            Cell::new(format!("plus {add}"), move |seed| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(Measured::default().with("mean", seed as f64 + add))
            })
        };
        StudyPlan { cells: vec![cell(0.25), cell(0.5)], ..StudyPlan::default() }
    }

    /// What a bar was told, in order.
    #[derive(Default)]
    struct Told(Arc<Mutex<Vec<u64>>>);

    impl Progress for Told {
        fn begin(&self, _label: &str, _total: u64) -> Box<dyn Task> {
            Box::new(Self(Arc::clone(&self.0)))
        }
    }

    impl Task for Told {
        fn reach(&self, done: u64) {
            self.0.lock().unwrap().push(done);
        }
    }

    #[test]
    fn what_the_journal_has_is_not_measured_again_and_the_bar_starts_there() {
        let (count, seeds) = (Arc::default(), [7, 8, 9]);
        let plan = plan(&count);
        let jobs = plan.jobs(seeds.len());
        let whole = measure(&plan, &seeds, &jobs, Journal::in_memory(), &NoProgress).unwrap();
        assert_eq!(count.swap(0, Ordering::Relaxed), 6);

        let mut journal = Journal::in_memory();
        for job in [jobs[1], jobs[4]] {
            journal.add(job, whole[&job].clone()).unwrap();
        }
        let told = Told::default();
        assert_eq!(measure(&plan, &seeds, &jobs, journal, &told).unwrap(), whole);
        assert_eq!(count.load(Ordering::Relaxed), 4);
        let mut told = told.0.lock().unwrap().clone();
        assert_eq!(told[0], 2);
        told.sort_unstable();
        assert_eq!(told, [2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_first_job_that_fails_ends_the_work_with_its_sentence() {
        let cell = |name: &str| Cell::new(name, |_| Err("cannot be".to_owned()));
        let plan = StudyPlan { cells: vec![cell("a"), cell("b")], ..StudyPlan::default() };
        let jobs = plan.jobs(1);
        let problem = measure(&plan, &[7], &jobs[1..], Journal::in_memory(), &NoProgress);
        assert_eq!(problem.unwrap_err().to_string(), "b: cannot be");
    }
}
