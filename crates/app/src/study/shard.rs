//! Parts of a study, worked out on different machines: what one leaves behind, and how all of them
//! become one again.
//!
//! A part has what was measured, and no rows: those are functions of all the cells. Numbers are
//! written so that they read back exactly; one without bound is `null`.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_lab::studies::{Ask, Job, Measured, NamedTrace, Shard, Study};
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

/// The study, the question and the measurements of all parts; each is a name and a text.
pub(super) fn join(
    parts: &[(String, String)],
) -> Result<(String, Ask, BTreeMap<Job, Measured>), String> {
    let mut read: Vec<(&str, Part)> = Vec::new();
    for (name, text) in parts {
        let part = serde_json::from_str(text)
            .map_err(|error| format!("{name} is no part of a study: {error}"))?;
        read.push((name, part));
    }
    let Some((first_name, first)) = read.first() else {
        return Err("no part was named".to_owned());
    };
    let mut shards = BTreeSet::new();
    let mut measured = BTreeMap::new();
    let count = first.shard.parse::<Shard>()?.count;
    for (name, part) in &read {
        let same = (&part.study, &part.version, part.seed, &part.options)
            == (&first.study, &first.version, first.seed, &first.options);
        let shard: Shard = part.shard.parse().map_err(|error| format!("{name}: {error}"))?;
        if !same || shard.count != count {
            return Err(format!("{name} and {first_name} are not parts of the same run"));
        }
        if !shards.insert(shard.index) {
            return Err(format!("part {shard} is there twice"));
        }
        measured.extend(part.jobs.iter().map(Done::read));
    }
    if let Some(missing) = (1..=count).find(|index| !shards.contains(index)) {
        return Err(format!("part {missing}/{count} is missing"));
    }
    let named = |name: &String| NamedTrace { name: name.clone(), trace: None };
    let Options { quick, seeds, traces } = &first.options;
    let traces = traces.iter().map(named).collect();
    let ask = Ask { quick: *quick, seed: first.seed, seeds: *seeds, traces };
    Ok((first.study.clone(), ask, measured))
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
