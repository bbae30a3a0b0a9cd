//! Parts of a study, worked out on different machines: what one leaves behind, and how all of them
//! become one again.
//!
//! A part has what was measured, and no rows: those are functions of all the cells.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_lab::studies::{Ask, Job, Measured, NamedTrace, SEEDS_MAX, Shard};
use levelhead_report::json;
use serde::{Deserialize, Serialize};

use super::record::{Done, Options, Question};
use levelhead_app::{Show, VERSION};

/// A part of a study.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    #[serde(flatten)]
    question: Question,
    jobs: Vec<Done>,
}

impl Part {
    pub(super) fn new(question: Question, measured: &BTreeMap<Job, Measured>) -> Self {
        let jobs = measured.iter().map(|(job, measured)| Done::new(*job, measured)).collect();
        Self { question, jobs }
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
                .map_err(|error| format!("{name} is not a part of a study: {error}"))?;
            let question = &part.question;
            let shard: Shard =
                question.shard.parse().map_err(|error| format!("{name}: {error}"))?;
            if question.version != VERSION {
                let version = question.version.escape_debug();
                return Err(format!(
                    "{name} was measured by levelhead {version}: this is {VERSION}"
                ));
            }
            if let Some((first_name, first_shard, first)) = parts.first() {
                let first = &first.question;
                let same = (&question.study, question.seed, &question.options)
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
        &self.first().1.question.study
    }

    /// What was asked of the study.
    pub(super) fn question(&self) -> Result<Ask, String> {
        let (name, first) = self.first();
        let Question { seed, options, .. } = &first.question;
        let Options { quick, seeds, traces } = options;
        if !(1..=SEEDS_MAX).contains(seeds) {
            return Err(format!("{name}: a study takes 1 to {SEEDS_MAX} seeds, not {seeds}"));
        }
        if let Some(odd) = traces.iter().find(|trace| trace.contains(char::is_control)) {
            return Err(format!("{name}: '{}' is not a trace's name", odd.escape_debug()));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = traces.iter().find(|trace| !names.insert(*trace)) {
            return Err(format!("{name}: two traces are called {twice}"));
        }
        let named = |name: &String| NamedTrace { name: name.clone(), trace: None, samples: None };
        let traces = traces.iter().map(named).collect();
        Ok(Ask { quick: *quick, seed: *seed, seeds: *seeds, traces })
    }

    /// What was measured: every part its own share of `jobs` and nothing else.
    pub(super) fn measured(&self, jobs: &[Job]) -> Result<BTreeMap<Job, Measured>, String> {
        let mut measured = BTreeMap::new();
        for (name, shard, part) in &self.parts {
            let own: BTreeSet<Job> = shard.of(jobs).into_iter().collect();
            let done: BTreeMap<Job, Measured> =
                part.jobs.iter().map(|done| (done.job(), done.measured())).collect();
            if done.len() != part.jobs.len() || !done.keys().eq(own.iter()) {
                return Err(format!(
                    "{name} has {} measurements that are not the {} of part {shard} of {}",
                    part.jobs.len(),
                    own.len(),
                    part.question.study
                ));
            }
            if !part.jobs.iter().all(Done::is_whole) {
                return Err(format!("{name} has a distribution that is cut short"));
            }
            measured.extend(done);
        }
        Ok(measured)
    }
}

impl Show for Part {
    fn text(&self) -> String {
        format!(
            "part {} of {}: {} measurements; keep them with --json and join all parts with \
             levelhead-lab study merge",
            self.question.shard,
            self.question.study,
            self.jobs.len()
        )
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
