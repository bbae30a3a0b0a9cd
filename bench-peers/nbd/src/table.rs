//! What is printed: one report, as a table for people or as JSON.

use std::fmt;

use serde::Serialize;

use crate::jobs::{Figure, Job};
use crate::servers::System;
use crate::{Measured, is_better};

/// Everything about one call.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    nbdkit: String,
    cores: usize,
    rounds: u32,
    seconds: u32,
    rows: Vec<Row>,
}

/// One job.
#[derive(Debug, Serialize)]
struct Row {
    job: &'static str,
    unit: &'static str,
    bar: f64,
    /// What each run came to, in the row's unit.
    nbdkit: Vec<f64>,
    levelhead: Vec<f64>,
    #[serde(skip)]
    of: Job,
    #[serde(skip)]
    runs: Vec<(System, Measured)>,
    /// Ours over nbdkit's.
    best_ratio: f64,
    median_ratio: f64,
}

impl Report {
    /// Without rows so far.
    pub(crate) fn new(nbdkit: String, rounds: u32, seconds: u32) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { nbdkit, cores, rounds, seconds, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, system: System, job: Job, measured: Measured) {
        let at = self.rows.iter().position(|row| row.job == job.name).unwrap_or_else(|| {
            self.rows.push(Row::new(job));
            self.rows.len() - 1
        });
        self.rows[at].add(system, measured);
    }
}

impl Row {
    fn new(job: Job) -> Self {
        let unit = match job.figure {
            Figure::Rate => "MiB/s",
            Figure::Latency => "us",
        };
        let (nbdkit, levelhead, runs) = (Vec::new(), Vec::new(), Vec::new());
        let (best_ratio, median_ratio) = (0.0, 0.0);
        let (job, bar, of) = (job.name, job.bar, job);
        Self { job, unit, bar, nbdkit, levelhead, of, runs, best_ratio, median_ratio }
    }

    fn add(&mut self, system: System, measured: Measured) {
        let figure = self.figure(measured);
        match system {
            System::Nbdkit => self.nbdkit.push(figure),
            System::Ours => self.levelhead.push(figure),
        }
        self.runs.push((system, measured));
        let [theirs, ours] = System::BOTH.map(|system| self.best(system));
        self.best_ratio = ours / theirs;
        self.median_ratio = median(&self.levelhead) / median(&self.nbdkit);
    }

    /// In the row's unit, to a hundredth.
    fn figure(&self, Measured { rate, latency }: Measured) -> f64 {
        let figure = match self.of.figure {
            Figure::Rate => rate / f64::from(1 << 20),
            Figure::Latency => latency,
        };
        (figure * 100.0).round() / 100.0
    }

    fn best(&self, system: System) -> f64 {
        let runs = self.runs.iter().filter(|(of, _)| *of == system).map(|&(_, run)| run);
        let best = runs.reduce(|best, run| if is_better(self.of, run, best) { run } else { best });
        best.map_or(f64::NAN, |best| self.figure(best))
    }

    fn reaches(&self) -> bool {
        match self.of.figure {
            Figure::Rate => self.best_ratio >= self.bar,
            Figure::Latency => self.best_ratio <= self.bar,
        }
    }
}

/// The lower median; not a number where there is none.
fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nbdkit, cores, rounds, seconds, rows } = self;
        writeln!(f, "* {nbdkit}; {cores} CPUs; {rounds} rounds of {seconds} s")?;
        writeln!(f, "\n| job | nbdkit, best | levelhead, best | ratio | of medians | bar | |")?;
        writeln!(f, "|-|-:|-:|-:|-:|-:|-|")?;
        for row in rows {
            let [theirs, ours] = System::BOTH.map(|system| row.best(system));
            let Row { job, unit, best_ratio, median_ratio, bar, .. } = row;
            let least = match row.of.figure {
                Figure::Rate => "at least",
                Figure::Latency => "at most",
            };
            let verdict = if row.reaches() { "reached" } else { "missed" };
            writeln!(
                f,
                "| {job} | {theirs:.0} {unit} | {ours:.0} {unit} | {best_ratio:.2} | \
                 {median_ratio:.2} | {least} {bar} | {verdict} |"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs;

    #[test]
    fn best_runs_are_compared_and_medians_told() {
        let mut report = Report::new("nbdkit 1".to_owned(), 3, 1);
        let [rate, .., latency, _] = jobs::ALL;
        for (at, mib) in [4.0, 1.0, 2.0].into_iter().enumerate() {
            let run =
                |times: f64| Measured { rate: mib * times * 1_048_576.0, latency: mib * times };
            report.add(System::Nbdkit, rate, run(10.0));
            report.add(System::Ours, rate, run(if at == 0 { 9.5 } else { 5.0 }));
            report.add(System::Nbdkit, latency, run(10.0));
            report.add(System::Ours, latency, run(30.0));
        }
        let text = report.to_string();
        assert!(text.contains("| read-1m | 40 MiB/s | 38 MiB/s | 0.95 | 0.50 |"), "{text}");
        assert!(text.contains("at least 0.9 | reached |"), "{text}");
        assert!(text.contains("| latency-4k | 10 us | 30 us | 3.00 | 3.00 |"), "{text}");
        assert!(text.contains("at most 2 | missed |"), "{text}");
    }
}
