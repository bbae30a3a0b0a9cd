//! Parts of a study, worked out on different machines: what one leaves behind, and how all of them
//! become one again.
//!
//! A part has what was measured, and no rows: those are functions of all the cells. Numbers are
//! written so that they read back exactly; one without bound is `null`.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_lab::studies::{Ask, Job, Measured, NamedTrace, SEEDS_MAX, Shard, Study};
use levelhead_report::json;
use serde::{Deserialize, Serialize};

use crate::{Show, VERSION};

/// A part of a study.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    study: String,
    version: String,
    seed: u64,
    options: Options,
    shard: String,
    jobs: Vec<Done>,
}

/// What else was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Options {
    quick: bool,
    seeds: u32,
    traces: Vec<String>,
}

/// One job and what came of it.
#[derive(Debug, Serialize, Deserialize)]
struct Done {
    cell: usize,
    seed: usize,
    values: BTreeMap<String, Option<f64>>,
    quantiles: Vec<f64>,
}

impl Part {
    pub(super) fn new(
        study: &Study,
        ask: &Ask,
        shard: Shard,
        measured: BTreeMap<Job, Measured>,
    ) -> Self {
        let done = |(job, measured): (Job, Measured)| {
            let number = |(name, value): (String, f64)| (name, value.is_finite().then_some(value));
            Done {
                cell: job.cell,
                seed: job.seed,
                values: measured.values.into_iter().map(number).collect(),
                quantiles: measured.quantiles,
            }
        };
        let traces = ask.traces.iter().map(|trace| trace.name.clone()).collect();
        Self {
            study: study.name.to_owned(),
            version: VERSION.to_owned(),
            seed: ask.seed,
            options: Options { quick: ask.quick, seeds: ask.seeds, traces },
            shard: shard.to_string(),
            jobs: measured.into_iter().map(done).collect(),
        }
    }
}

/// All parts of one run, each with the name of its file.
pub(super) struct Parts<'a> {
    parts: Vec<(&'a str, Shard, Part)>,
}

impl<'a> Parts<'a> {
    /// Reads the parts, each a name and a text, and checks that they belong together and to this
    /// program, and that none is missing.
    pub(super) fn read(texts: &'a [(String, String)]) -> Result<Self, String> {
        let mut parts: Vec<(&str, Shard, Part)> = Vec::new();
        let mut shards = BTreeSet::new();
        for (name, text) in texts {
            let part: Part = serde_json::from_str(text)
                .map_err(|error| format!("{name} is no part of a study: {error}"))?;
            let shard: Shard = part.shard.parse().map_err(|error| format!("{name}: {error}"))?;
            if part.version != VERSION {
                let version = part.version.escape_debug();
                return Err(format!(
                    "{name} was measured by levelhead {version}: this is {VERSION}"
                ));
            }
            if let Some((first_name, first_shard, first)) = parts.first() {
                let same = (&part.study, part.seed, &part.options)
                    == (&first.study, first.seed, &first.options);
                if !same || shard.count != first_shard.count {
                    return Err(format!("{name} and {first_name} are not parts of the same run"));
                }
            }
            if !shards.insert(shard.index) {
                return Err(format!("part {shard} is there twice"));
            }
            parts.push((name, shard, part));
        }
        let Some((_, Shard { count, .. }, _)) = parts.first() else {
            return Err("no part was named".to_owned());
        };
        if let Some(missing) = (1..=*count).find(|index| !shards.contains(index)) {
            return Err(format!("part {missing}/{count} is missing"));
        }
        Ok(Self { parts })
    }

    fn first(&self) -> (&'a str, &Part) {
        let (name, _, part) = self.parts.first().expect("there is one: they were read");
        (name, part)
    }

    /// The study's name.
    pub(super) fn study(&self) -> &str {
        &self.first().1.study
    }

    /// What was asked of the study.
    pub(super) fn question(&self) -> Result<Ask, String> {
        let (name, first) = self.first();
        let Options { quick, seeds, traces } = &first.options;
        if !(1..=SEEDS_MAX).contains(seeds) {
            return Err(format!("{name}: a study takes 1 to {SEEDS_MAX} seeds, not {seeds}"));
        }
        if let Some(odd) = traces.iter().find(|trace| trace.contains(char::is_control)) {
            return Err(format!("{name}: '{}' is no trace's name", odd.escape_debug()));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = traces.iter().find(|trace| !names.insert(*trace)) {
            return Err(format!("{name}: two traces are called {twice}"));
        }
        let named = |name: &String| NamedTrace { name: name.clone(), trace: None };
        let traces = traces.iter().map(named).collect();
        Ok(Ask { quick: *quick, seed: first.seed, seeds: *seeds, traces })
    }

    /// What was measured: every part its own share of `jobs` and nothing else.
    pub(super) fn measured(&self, jobs: &[Job]) -> Result<BTreeMap<Job, Measured>, String> {
        let mut measured = BTreeMap::new();
        for (name, shard, part) in &self.parts {
            let own: BTreeSet<Job> = shard.of(jobs).into_iter().collect();
            let done: BTreeMap<Job, Measured> = part.jobs.iter().map(Done::read).collect();
            if done.len() != part.jobs.len() || !done.keys().eq(own.iter()) {
                return Err(format!(
                    "{name} has {} measurements that are not the {} of part {shard} of {}",
                    part.jobs.len(),
                    own.len(),
                    part.study
                ));
            }
            let is_whole =
                |one: &Measured| [0, Measured::SHARES.len()].contains(&one.quantiles.len());
            if !done.values().all(is_whole) {
                return Err(format!("{name} has a distribution that is cut short"));
            }
            measured.extend(done);
        }
        Ok(measured)
    }
}

impl Done {
    fn read(&self) -> (Job, Measured) {
        let number =
            |(name, value): (&String, &Option<f64>)| (name.clone(), value.unwrap_or(f64::INFINITY));
        let values = self.values.iter().map(number).collect();
        let measured = Measured { values, quantiles: self.quantiles.clone() };
        (Job { cell: self.cell, seed: self.seed }, measured)
    }
}

impl Show for Part {
    fn text(&self) -> String {
        format!(
            "part {} of {}: {} measurements; keep them with --json and join all parts with \
             levelhead study merge",
            self.shard,
            self.study,
            self.jobs.len()
        )
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
