//! What a replay shows: a table, JSON, one line per request, and a page.

use levelhead_host::words;
use levelhead_lab::replay::{BACKLOG_MAX, End, Run, Verdict};
use levelhead_report::{Column, Table, csv, json};
use levelhead_stats::Summary;
use levelhead_trace::{Arrival, Kind};
use serde::Serialize;

use super::Replay;
use super::input::Input;
use levelhead_app::{AppError, Show, files};

/// What a replay has found.
#[derive(Debug)]
pub struct Replayed {
    seed: u64,
    trace: String,
    array: String,
    /// Nothing is redundant.
    is_bare: bool,
    options: Vec<(&'static str, String)>,
    pub(super) account: String,
    pub(super) closed_loop: Option<usize>,
    pub(super) runs: Vec<Run>,
    /// Latencies of the reads alone, for loads that also write.
    reads: Option<Vec<Summary>>,
}

#[derive(Serialize)]
struct Json<'a> {
    seed: u64,
    trace: &'a str,
    array: &'a str,
    runs: Vec<JsonRun>,
}

#[derive(Serialize)]
struct JsonRun {
    policy: String,
    requests: u64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
    subrequests_per_request: f64,
    removed_per_request: f64,
    redispatched: u64,
    /// Present only in a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_per_second: Option<f64>,
    /// Present, and true, only where the run did not go to its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    overloaded: bool,
}

impl Replayed {
    pub(super) fn new(ask: &Replay, input: &Input, runs: Vec<Run>) -> Self {
        let is_read = |index: u64| input.arrivals[index as usize].kind == Kind::Read;
        let mixed = input.arrivals.iter().any(|arrival| arrival.kind == Kind::Write);
        let reads = mixed
            .then(|| runs.iter().map(|run| Summary::of(&mut run.latencies(is_read))).collect());
        let faults = ask.faults;
        let mut options = vec![("drive", ask.drive.clone())];
        // A table takes the place of these.
        if faults.ecc.is_none() {
            options.extend([
                ("retry rate", faults.retry_rate.to_string()),
                ("rotations", faults.rotations.to_string()),
                ("adjacency", faults.adjacency.to_string()),
                ("hard rate", faults.hard_rate.to_string()),
            ]);
        }
        options.extend([
            ("faults", faults.to_string()),
            ("window", ask.window.to_string()),
            ("host order", ask.order.to_string()),
            ("drive order", ask.scheduler.to_string()),
            ("drive cache", ask.cache.to_string()),
        ]);
        if let Some(outstanding) = ask.closed_loop {
            options.push(("closed loop", format!("{outstanding} requests outstanding")));
        }
        if !ask.failing.is_empty() {
            let failing: Vec<String> = ask.failing.iter().map(u8::to_string).collect();
            options.push(("failing drives", failing.join(", ")));
        }
        if !ask.slow.is_empty() {
            let slow = ask.slow.iter().map(|(drive, times)| format!("{drive} ({times} times)"));
            options.push(("slow drives", slow.collect::<Vec<_>>().join(", ")));
        }
        Self {
            seed: ask.seed,
            trace: input.name.clone(),
            array: ask.spec.to_string(),
            is_bare: ask.spec.redundant() == 0,
            options,
            account: input.account.clone(),
            closed_loop: ask.closed_loop,
            runs,
            reads,
        }
    }

    /// Writes one line a request, where that was asked for.
    pub(super) fn write_lines(&self, ask: &Replay, arrivals: &[Arrival]) -> Result<(), AppError> {
        match &ask.csv {
            Some(path) => files::write_whole(path, |out| self.write_csv(arrivals, out)),
            None => Ok(()),
        }
    }

    pub(super) fn table(&self) -> Table {
        let names = [
            "requests",
            "mean ms",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
            "sub-requests",
            "removed",
            "re-dispatched",
        ];
        let rate = self.closed_loop.map(|_| "requests/s");
        let names = names.into_iter().chain(rate).map(Column::right);
        let mut table = Table::new(std::iter::once(Column::left("policy")).chain(names));
        for run in &self.runs {
            let summary = run.summary();
            let mut row = vec![label(run), summary.count.to_string()];
            row.extend(figures(&summary));
            row.push(format!("{:.3}", run.mean_of(|cost| cost.subs)));
            row.push(format!("{:.3}", run.mean_of(|cost| cost.removed)));
            row.push(run.redispatched().to_string());
            row.extend(rate.map(|_| format!("{:.1}", run.rate())));
            table.push(row);
        }
        table
    }

    pub(super) fn reads_table(&self) -> Option<Table> {
        let names = ["reads", "mean ms", "p50 ms", "p99 ms", "p99.9 ms", "max ms"];
        let columns = std::iter::once(Column::left("policy")).chain(names.map(Column::right));
        let mut table = Table::new(columns);
        for (run, summary) in self.runs.iter().zip(self.reads.as_ref()?) {
            let mut row = vec![label(run), summary.count.to_string()];
            row.extend(figures(summary));
            table.push(row);
        }
        Some(table)
    }

    /// Sentences about what did not go as it should.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.is_bare && self.runs.len() > 1 {
            remarks.push(format!("{} has no redundancy: every policy is normal", self.array));
        }
        for run in &self.runs {
            if run.end == End::Overloaded {
                let count = run.served.len();
                remarks.push(format!(
                    "{}: overloaded: after {count} requests the oldest had waited {BACKLOG_MAX}; \
                     its latencies are those of a queue that grows without bound",
                    run.policy
                ));
            }
            if run.damaged() > 0 {
                let damaged = words::counted(run.damaged(), "request");
                remarks.push(format!("{}: {damaged} could not be served in full", run.policy));
            }
        }
        remarks
    }

    /// The conditions under which the verdict holds, in one line.
    pub(super) fn conditions(&self) -> String {
        let shown = [
            "load",
            "closed loop",
            "array",
            "drive",
            "faults",
            "failing drives",
            "slow drives",
            "seed",
        ];
        let facts = self.facts();
        let of = |name: &str| facts.iter().find(|fact| fact.0 == name);
        let parts = shown.iter().filter_map(|name| of(name));
        let parts: Vec<String> = parts.map(|(name, value)| format!("{name} {value}")).collect();
        format!("Conditions: {}.", parts.join("; "))
    }

    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("seed", self.seed.to_string()), ("load", self.trace.clone())];
        facts.push(("array", self.array.clone()));
        facts.extend(self.options.iter().cloned());
        facts
    }

    fn write_csv(&self, arrivals: &[Arrival], out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let mut writer = csv::Writer::new(out);
        writer.write_row([
            "policy",
            "request",
            "arrival_ns",
            "kind",
            "lba",
            "sectors",
            "latency_ns",
            "subrequests",
            "removed",
            "redispatched",
            "decoded",
            "verdict",
        ])?;
        for run in &self.runs {
            let mut served = run.served.clone();
            served.sort_unstable_by_key(|served| served.index);
            for served in served {
                let Arrival { at, kind, extent } = arrivals[served.index as usize];
                writer.write_row([
                    run.policy.to_string(),
                    served.index.to_string(),
                    at.as_nanos().to_string(),
                    if kind == Kind::Read { "read" } else { "write" }.to_owned(),
                    extent.lba.get().to_string(),
                    extent.sectors.get().to_string(),
                    served.latency.get().to_string(),
                    served.cost.subs.to_string(),
                    served.cost.removed.to_string(),
                    served.cost.redispatched.to_string(),
                    served.cost.decoded.to_string(),
                    if served.verdict == Verdict::Good { "good" } else { "damaged" }.to_owned(),
                ])?;
            }
        }
        Ok(())
    }
}

pub(super) fn label(run: &Run) -> String {
    match run.end {
        End::Complete => run.policy.to_string(),
        End::Overloaded => format!("{} (overloaded)", run.policy),
    }
}

fn figures(summary: &Summary) -> [String; 5] {
    [summary.mean, summary.p50, summary.p99, summary.p999, summary.max]
        .map(|time| format!("{:.3}", time.as_millis_f64()))
}

impl Show for Replayed {
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.facts() {
            text.push_str(&format!("{name}: {value}\n"));
        }
        text.push_str(&format!("{}\n\n{}", self.account.trim_end(), self.table().to_text()));
        if let Some(reads) = self.reads_table() {
            text.push_str(&format!("\nreads alone:\n{}", reads.to_text()));
        }
        for remark in self.remarks() {
            text.push_str(&format!("{remark}\n"));
        }
        text
    }

    fn json(&self) -> String {
        let run = |run: &Run| {
            let summary = run.summary();
            JsonRun {
                policy: run.policy.to_string(),
                requests: summary.count,
                mean_ms: summary.mean.as_millis_f64(),
                p50_ms: summary.p50.as_millis_f64(),
                p99_ms: summary.p99.as_millis_f64(),
                p999_ms: summary.p999.as_millis_f64(),
                max_ms: summary.max.as_millis_f64(),
                subrequests_per_request: run.mean_of(|cost| cost.subs),
                removed_per_request: run.mean_of(|cost| cost.removed),
                redispatched: run.redispatched(),
                requests_per_second: self.closed_loop.map(|_| run.rate()),
                overloaded: run.end == End::Overloaded,
            }
        };
        let (seed, trace, array) = (self.seed, self.trace.as_str(), self.array.as_str());
        let runs = self.runs.iter().map(run).collect();
        json::pretty(&Json { seed, trace, array, runs }).expect("numbers and names are JSON")
    }
}
