//! What is written down of a study: what was asked, and each job with what came of it.
//!
//! Numbers are written so that they read back exactly; one without bound is `null`.

use std::collections::BTreeMap;

use levelhead_lab::studies::{Ask, Job, Measured, Shard, Study};
use serde::{Deserialize, Serialize};

use levelhead_app::VERSION;

/// What was asked of which study, and of which program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) study: String,
    pub(super) version: String,
    pub(super) seed: u64,
    pub(super) options: Options,
    pub(super) shard: String,
}

/// What else was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Options {
    pub(super) quick: bool,
    pub(super) seeds: u32,
    /// The traces' names.
    pub(super) traces: Vec<String>,
}

/// One job and what came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Done {
    cell: usize,
    seed: usize,
    values: BTreeMap<String, Option<f64>>,
    quantiles: Vec<f64>,
}

impl Question {
    pub(super) fn new(study: &Study, ask: &Ask, shard: Shard) -> Self {
        let traces = ask.traces.iter().map(|trace| trace.name.clone()).collect();
        Self {
            study: study.name.to_owned(),
            version: VERSION.to_owned(),
            seed: ask.seed,
            options: Options { quick: ask.quick, seeds: ask.seeds, traces },
            shard: shard.to_string(),
        }
    }

    /// The first thing in which `self` is not `other`.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let facts = |question: &Self| {
            let Self { study, version, seed, options, shard } = question;
            let Options { quick, seeds, traces } = options;
            // Texts may come from a file: what a terminal would obey is written out.
            [
                ("study", study.escape_debug().to_string()),
                ("version", version.escape_debug().to_string()),
                ("seed", seed.to_string()),
                ("run", if *quick { "quick" } else { "full" }.to_owned()),
                ("number of seeds", seeds.to_string()),
                ("list of traces", format!("{traces:?}")),
                ("part", shard.escape_debug().to_string()),
            ]
        };
        let pairs = facts(self).into_iter().zip(facts(other));
        let mut differences = pairs.filter(|(own, others)| own != others);
        differences
            .next()
            .map(|((name, own), (_, others))| format!("its {name} is {own}, not {others}"))
    }
}

impl Done {
    pub(super) fn new(job: Job, measured: &Measured) -> Self {
        let number = |(name, value): (&String, &f64)| {
            let value = value.is_finite().then_some(*value);
            (name.clone(), value)
        };
        Self {
            cell: job.cell,
            seed: job.seed,
            values: measured.values.iter().map(number).collect(),
            quantiles: measured.quantiles.clone(),
        }
    }

    pub(super) fn job(&self) -> Job {
        Job { cell: self.cell, seed: self.seed }
    }

    /// What was measured.
    pub(super) fn measured(&self) -> Measured {
        let number =
            |(name, value): (&String, &Option<f64>)| (name.clone(), value.unwrap_or(f64::INFINITY));
        let values = self.values.iter().map(number).collect();
        Measured { values, quantiles: self.quantiles.clone() }
    }

    /// Whether its distribution, if it has one, is the whole of it.
    pub(super) fn is_whole(&self) -> bool {
        [0, Measured::SHARES.len()].contains(&self.quantiles.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_exactly() {
        let odd = [0.1 + 0.2, -0.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, 1.0 / 3.0, f64::INFINITY];
        let mut measured = Measured { quantiles: odd[..6].to_vec(), ..Measured::default() };
        for (at, value) in odd.into_iter().enumerate() {
            measured = measured.with(&at.to_string(), value);
        }
        let text = serde_json::to_string(&Done::new(Job { cell: 3, seed: 1 }, &measured)).unwrap();
        let done: Done = serde_json::from_str(&text).unwrap();
        let bits = |measured: &Measured| -> Vec<u64> {
            measured.values.values().chain(&measured.quantiles).map(|v| v.to_bits()).collect()
        };
        assert_eq!(bits(&done.measured()), bits(&measured), "{text}");
        assert_eq!(done.job(), Job { cell: 3, seed: 1 });
    }

    #[test]
    fn questions_differ_in_something_that_can_be_named() {
        let first = Question {
            study: "level.all".to_owned(),
            version: "0.1.0".to_owned(),
            seed: 7,
            options: Options { quick: false, seeds: 2, traces: vec!["a, b".to_owned()] },
            shard: "1/2".to_owned(),
        };
        assert_eq!(first.difference(&first), None);
        let changed = |change: fn(&mut Question)| {
            let mut other = first.clone();
            change(&mut other);
            first.difference(&other).unwrap()
        };
        assert_eq!(changed(|q| q.study.push('\n')), "its study is level.all, not level.all\\n");
        assert_eq!(changed(|q| q.version.push('1')), "its version is 0.1.0, not 0.1.01");
        assert_eq!(changed(|q| q.seed = 8), "its seed is 7, not 8");
        assert_eq!(changed(|q| q.options.quick = true), "its run is full, not quick");
        assert_eq!(changed(|q| q.options.seeds = 3), "its number of seeds is 2, not 3");
        assert_eq!(
            changed(|q| q.options.traces = vec!["a".to_owned(), "b".to_owned()]),
            "its list of traces is [\"a, b\"], not [\"a\", \"b\"]"
        );
        assert_eq!(changed(|q| q.shard = "2/2".to_owned()), "its part is 1/2, not 2/2");
    }
}
