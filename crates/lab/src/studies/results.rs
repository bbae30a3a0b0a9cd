//! From measured cells to rows with intervals; jobs, and their shards.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::interval;
use super::plan::{Measured, OneSeed, Ours, StudyPlan, Unit};

/// One cell with one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// Its place among the plan's cells.
    pub cell: usize,
    /// Its place among the seeds.
    pub seed: usize,
}

impl StudyPlan {
    /// Every job, the cells of a seed together.
    pub fn jobs(&self, seeds: usize) -> Vec<Job> {
        let cells = self.cells.len();
        (0..seeds).flat_map(|seed| (0..cells).map(move |cell| Job { cell, seed })).collect()
    }
}

/// A part of the jobs: number `index` of `count` parts, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

impl Shard {
    /// All jobs.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Its share of the jobs: every `count`-th.
    pub fn of(self, jobs: &[Job]) -> Vec<Job> {
        let (skip, step) = (self.index as usize - 1, self.count as usize);
        jobs.iter().copied().skip(skip).step_by(step).collect()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts =
            parts.and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match parts {
            Some((index, count)) if 1 <= index && index <= count => Ok(Self { index, count }),
            Some(_) | None => {
                Err(format!("'{text}' is not a shard: expected I/N with I from 1 to N, as in 2/3"))
            }
        }
    }
}

/// A row's number over all seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Under what circumstances.
    pub case: String,
    /// What is counted.
    pub metric: String,
    /// In what.
    pub unit: Unit,
    /// The paper's number.
    pub paper: Option<f64>,
    /// Ours: the mean over the seeds. Not finite where a run was overloaded.
    pub ours: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// Whether nothing was counted, so that the interval's upper end is all that is known.
    pub fn is_bound_only(&self) -> bool {
        self.unit == Unit::Probability && self.ours == 0.0 && self.high > 0.0
    }
}

/// What a study has found.
#[derive(Clone, Debug)]
pub struct Results {
    /// One a row of the plan.
    pub rows: Vec<Estimate>,
    /// The distribution of each cell that has one, by name: the mean over the seeds of the values at
    /// [`Measured::SHARES`].
    pub distributions: BTreeMap<String, Vec<f64>>,
}

impl Results {
    /// Works out the rows of `plan` from all its jobs with `seeds` seeds.
    ///
    /// # Errors
    ///
    /// A figure was not measured that a row needs.
    ///
    /// # Panics
    ///
    /// If a job is missing, or there is no seed.
    pub fn of(
        plan: &StudyPlan,
        seeds: usize,
        measured: &BTreeMap<Job, Measured>,
    ) -> Result<Self, String> {
        let one_seed = |seed: usize| OneSeed {
            cells: plan
                .cells
                .iter()
                .enumerate()
                .map(|(cell, one)| (one.name.as_str(), &measured[&Job { cell, seed }]))
                .collect(),
            missing: RefCell::default(),
        };
        let every: Vec<OneSeed<'_>> = (0..seeds).map(one_seed).collect();
        let rows = plan.rows.iter().map(|row| {
            let [ours, low, high] = match &row.ours {
                Ours::Exact(ours) => *ours,
                Ours::Together(formula) => formula(&every),
                Ours::Measured(formula) => {
                    interval::of_mean(&every.iter().map(formula).collect::<Vec<_>>())
                }
            };
            let (case, metric) = (row.case.clone(), row.metric.clone());
            Estimate { case, metric, unit: row.unit, paper: row.paper, ours, low, high }
        });
        let rows = rows.collect();
        if let Some(problem) = every.iter().find_map(|seed| seed.missing.take()) {
            return Err(problem);
        }
        let distributions = plan.cells.iter().filter_map(|cell| {
            let all: Vec<&[f64]> = every
                .iter()
                .map(|seed| seed.cells[cell.name.as_str()].quantiles.as_slice())
                .collect();
            let mean = |at: usize| all.iter().map(|one| one[at]).sum::<f64>() / all.len() as f64;
            let count = all.iter().map(|one| one.len()).min()?;
            (count > 0).then(|| (cell.name.clone(), (0..count).map(mean).collect()))
        });
        Ok(Self { rows, distributions: distributions.collect() })
    }

    /// The row of this case and metric.
    pub fn row(&self, case: &str, metric: &str) -> Option<&Estimate> {
        self.rows.iter().find(|row| row.case == case && row.metric == metric)
    }
}
