//! From measured cells to rows with intervals; jobs, and their shards.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::interval;
use super::plan::{Claim, Measured, OneSeed, Ours, StudyPlan, Unit, half_of_last_digit};

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
    /// How the paper means it.
    pub claim: Claim,
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

    /// Whether our interval reaches the paper's number as far as the paper prints its digits, or its
    /// bound; nothing without a number of the paper.
    pub fn agreement(&self) -> Option<Agreement> {
        let paper = self.paper?;
        if !self.ours.is_finite() {
            return Some(Agreement::Overloaded);
        }
        if !(self.low.is_finite() && self.high.is_finite()) {
            return Some(Agreement::NoInterval);
        }
        let half = match self.claim {
            Claim::Derived(half) => half,
            Claim::Equal | Claim::AtMost | Claim::AtLeast => half_of_last_digit(paper),
        };
        let is_above = self.low > paper + half && self.claim != Claim::AtLeast;
        let is_below = self.high < paper - half && self.claim != Claim::AtMost;
        Some(if is_above || is_below { Agreement::Missed } else { Agreement::Reproduced })
    }
}

/// How our number stands to the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The paper's number lies in our interval.
    Reproduced,
    /// It does not.
    Missed,
    /// A single seed has no interval.
    NoInterval,
    /// Our array could not carry the load.
    Overloaded,
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
            let (unit, paper, claim) = (row.unit, row.paper, row.claim);
            Estimate { case, metric, unit, paper, claim, ours, low, high }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_reproduced_where_our_interval_reaches_it_as_it_is_printed() {
        use Agreement::{Missed, NoInterval, Overloaded, Reproduced};
        let row = |paper: f64, claim, [ours, low, high]: [f64; 3]| Estimate {
            case: "a".to_owned(),
            metric: "mean".to_owned(),
            unit: Unit::Percent,
            paper: Some(paper),
            claim,
            ours,
            low,
            high,
        };
        for (paper, claim, ours, want) in [
            (-44.0, Claim::Equal, [-33.7, -34.3, -33.2], Missed),
            (-44.0, Claim::Equal, [-43.0, -44.0, -42.0], Reproduced),
            // 44 is anything from 43.5 to 44.5, and 0.22 from 0.215 to 0.225.
            (44.0, Claim::Equal, [44.4; 3], Reproduced),
            (44.0, Claim::Equal, [44.6; 3], Missed),
            (44.0, Claim::Equal, [43.4; 3], Missed),
            (0.22, Claim::Equal, [0.2249; 3], Reproduced),
            (0.22, Claim::Equal, [0.23; 3], Missed),
            (1e-8, Claim::Equal, [2e-8; 3], Missed),
            (28.0, Claim::Equal, [29.0; 3], Missed),
            (1.125, Claim::Derived(0.067), [1.06, 1.042, 1.077], Reproduced),
            (1.125, Claim::Derived(0.067), [1.04, 1.03, 1.05], Missed),
            (10.0, Claim::AtMost, [4.0, 3.0, 5.0], Reproduced),
            (10.0, Claim::AtMost, [12.0, 11.0, 13.0], Missed),
            (12.0, Claim::AtLeast, [14.0, 13.0, 15.0], Reproduced),
            (12.0, Claim::AtLeast, [10.0, 9.0, 11.0], Missed),
            (10.0, Claim::Equal, [10.0, f64::NEG_INFINITY, f64::INFINITY], NoInterval),
            (10.0, Claim::Equal, [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY], Overloaded),
        ] {
            assert_eq!(
                row(paper, claim, ours).agreement(),
                Some(want),
                "{paper} {claim:?} {ours:?}"
            );
        }
        let none = Estimate { paper: None, ..row(1.0, Claim::Equal, [1.0; 3]) };
        assert_eq!(none.agreement(), None);
    }
}
