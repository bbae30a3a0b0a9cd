//! The papers' tables and figures as runs of the cores in virtual time.
//!
//! ```text
//!   Study --plan(ask)--> StudyPlan { cells, rows, drawings }
//!                                   |      ^
//!           one job a cell and seed |      | a row is a function of the cells of one seed
//!                                   v      |
//!                                Measured -+--> Results: one interval a row, over the seeds
//! ```
//!
//! A study is a value. Its [`StudyPlan`] lists *cells*, each of which can be measured on its own, and
//! *rows*, each of which says what it makes of the cells of **one** seed: a cell's mean, the ratio of
//! two, a closed form beside them. The interval of a row comes from its values over the seeds. What is *counted* is an
//! exception: the counts of all seeds are one count, and have its exact interval ([`Row::counted`]). A mean over seeds would need
//! several, each with failures enough, and says nothing where there was none.
//!
//! # Invariants
//!
//! - S1. A cell depends on the seed alone, never on another cell, so that jobs may run anywhere, in
//!   any order: on the cores of a machine, or as shards on several ([`Shard`]).
//! - S2. Cells of one seed that differ in the policy alone meet the same arrivals and the same drives,
//!   because both are drawn from streams named after what they are for. So rows that compare cells
//!   compare pairs.
//! - S3. The same question, the same bytes.
//!
//! # Adding a study
//!
//! Write a function that returns a [`Study`] in a file here and name it in [`all`]. What needs no
//! chance has no cells and rows made with [`Row::exact`]; those have one seed.
//!
//! It leaves out: files, threads, pictures and JSON; those are the caller's.

mod bed;
mod checksums;
mod eraid;
mod faults;
mod files;
mod fleet;
mod interval;
mod iraw;
mod lec;
mod level;
mod plan;
mod rebuild;
mod results;
mod sdhdd;
mod toleraid;
mod writes;

pub use bed::{Bed, Load};
pub use plan::{
    Bars, Cell, Claim, Curve, Drawing, Head, HeatMap, Measured, OneSeed, Place, Row, StudyPlan,
    Unit, Whose,
};
pub use results::{Agreement, Estimate, Job, Results, Shard};

use std::sync::Arc;

use levelhead_fleet::detect::{Label, Recording};
use levelhead_trace::Trace;

/// A table or a figure of a paper, or a question of our own.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// What it is called on the command line: `eraid.table1`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Where the paper has it, with the key of `docs/papers.md`.
    pub source: &'static str,
    /// What the paper says.
    pub says: &'static str,
    /// What it runs on: array, drives, window, host order, arrivals.
    pub bed: &'static str,
    /// How many seeds `--quick` takes.
    pub seeds_quick: u32,
    /// How many seeds a full run takes.
    pub seeds_full: u32,
    /// What it takes in place of what is made up.
    pub takes: Takes,
    /// What it runs and what it makes of it.
    pub plan: fn(&Ask) -> Result<StudyPlan, String>,
}

/// What a study takes in place of what is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// Traces of requests.
    Traces,
    /// Samples of drives' latencies, with labels of those that are slow.
    Samples,
}

/// What is asked of a study.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Fewer requests and seeds.
    pub quick: bool,
    /// The first seed; the others follow it.
    pub seed: u64,
    /// How many seeds.
    pub seeds: u32,
    /// What it takes: traces, or samples.
    pub traces: Vec<NamedTrace>,
}

/// A trace, or samples, and what to call it.
#[derive(Clone, Debug)]
pub struct NamedTrace {
    /// The file's name.
    pub name: String,
    /// Its requests; none of samples, and where parts are put together and nothing is measured any more.
    pub trace: Option<Arc<Trace>>,
    /// Its samples; none of a trace, and where parts are put together.
    pub samples: Option<Arc<Labelled>>,
}

/// Groups of drives, and which of them are known to be slow.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// The groups.
    pub groups: Vec<Recording>,
    /// Their slow drives.
    pub slow: Vec<Label>,
}

/// The most seeds of a run.
pub const SEEDS_MAX: u32 = 1_000;

impl Ask {
    /// `quick` where that was asked for, else `full`.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// The seeds, in order.
    pub fn seeds(&self) -> Vec<u64> {
        (0..u64::from(self.seeds)).map(|at| self.seed.wrapping_add(at)).collect()
    }
}

/// Every study, in the order of the papers.
pub fn all() -> Vec<Study> {
    let papers = [
        eraid::studies(),
        toleraid::studies(),
        fleet::studies(),
        lec::studies(),
        sdhdd::studies(),
        iraw::studies(),
    ];
    let ours = vec![rebuild::REBUILD, checksums::CHECKSUMS, faults::FAULTS];
    let ours = [level::studies(), writes::studies(), ours];
    [papers.concat(), ours.concat()].concat()
}

/// The study of this name.
pub fn find(name: &str) -> Option<Study> {
    all().into_iter().find(|study| study.name == name)
}

#[cfg(test)]
mod tests;
