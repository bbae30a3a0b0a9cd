//! What is printed: one report, as a table for people or as JSON.

use std::fmt;

use levelhead_units::{Bytes, Nanos};
use serde::Serialize;

use crate::lateness;
use crate::rig::{Measured, WINDOW};
use crate::sample::Pace;
use crate::scenario::{DRIVE_SIZE, DRIVES, PROFILE, Scenario, System};

/// Everything about one call.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    drives: String,
    window: u32,
    guest: Versions,
    cores: usize,
    seed: u64,
    seconds: f64,
    /// The host's load average before the first run.
    load_before: f64,
    rows: Vec<Row>,
}

/// Of what others made.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Versions {
    pub(crate) kernel: String,
    pub(crate) qemu: String,
    pub(crate) mdadm: String,
    pub(crate) integritysetup: String,
}

/// One run.
#[derive(Debug, Serialize)]
struct Row {
    chunk_kib: u64,
    scenario: &'static str,
    trouble: String,
    load: String,
    system: &'static str,
    overloaded: bool,
    reads: u64,
    unfinished: u64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
    /// From when a read was due until the client sent it, 99th percentile.
    client_wake_p99_ms: f64,
    /// By how much a thread of the host overslept 5 ms, 99th percentile.
    host_wake_p99_ms: f64,
    /// The host's load average over the last minute at the end of the run, the run itself included.
    host_load: f64,
}

impl Report {
    /// Without rows so far.
    pub(crate) fn new(guest: Versions, seed: u64, length: Nanos) -> Self {
        Self {
            drives: format!("{DRIVES} emulated {PROFILE} of {}", DRIVE_SIZE.short()),
            window: WINDOW,
            guest,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            seed,
            seconds: length.as_millis_f64() / 1e3,
            load_before: lateness::load(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn add(
        &mut self,
        system: System,
        scenario: &Scenario,
        chunk: Bytes,
        measured: &Measured,
    ) {
        let Measured { figures, lateness } = measured;
        let latency = figures.latency;
        self.rows.push(Row {
            chunk_kib: chunk.get() >> 10,
            scenario: scenario.name,
            trouble: scenario.trouble_text(),
            load: scenario.load_text(),
            system: system.name(),
            overloaded: figures.pace == Pace::Overloaded,
            reads: latency.count,
            unfinished: figures.unfinished,
            mean_ms: millis(latency.mean),
            p50_ms: millis(latency.p50),
            p99_ms: millis(latency.p99),
            p999_ms: millis(latency.p999),
            max_ms: millis(latency.max),
            client_wake_p99_ms: millis(figures.wake.p99),
            host_wake_p99_ms: millis(lateness.naps.p99),
            host_load: lateness.load,
        });
    }
}

/// To a microsecond.
pub(crate) fn millis(time: Nanos) -> f64 {
    (time.as_millis_f64() * 1e3).round() / 1e3
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { drives, window, guest, cores, seed, seconds, load_before, rows } = self;
        writeln!(
            f,
            "* {drives}, at most {window} commands in each; seed {seed}; {seconds} s a run"
        )?;
        writeln!(f, "* MD: Linux {}, {}", guest.kernel, guest.mdadm)?;
        writeln!(f, "* Guest: {}, TCG, one CPU; host: {cores} CPUs", guest.qemu)?;
        writeln!(f, "* Load average before: {load_before:.2}")?;
        let mut chunk = None;
        for row in rows {
            if chunk != Some(row.chunk_kib) {
                chunk = Some(row.chunk_kib);
                writeln!(f, "\nRAID-5 of 5+1 in chunks of {} KiB\n", row.chunk_kib)?;
                write!(f, "| drives | load | system | mean ms | p50 ms | p99 ms | p99.9 ms ")?;
                writeln!(f, "| unfinished | late client, host, ms | load |")?;
                writeln!(f, "|-|-|-|-:|-:|-:|-:|-:|-:|-:|")?;
            }
            writeln!(f, "{row}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latencies = if self.overloaded {
            ["overloaded".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()]
        } else {
            let p999 = if self.reads < 1000 { "-".to_owned() } else { digits(self.p999_ms) };
            [digits(self.mean_ms), digits(self.p50_ms), digits(self.p99_ms), p999]
        };
        let late = format!("{:.1}, {:.1}", self.client_wake_p99_ms, self.host_wake_p99_ms);
        let mut cells = vec![self.trouble.clone(), self.load.clone(), self.system.to_owned()];
        cells.extend(latencies);
        cells.push(format!("{} of {}", self.unfinished, self.reads));
        cells.push(late);
        cells.push(format!("{:.1}", self.host_load));
        write!(f, "| {} |", cells.join(" | "))
    }
}

/// Whole milliseconds, and tenths of small ones.
pub(crate) fn digits(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    const LENGTH: Nanos = Nanos::from_millis(80);

    fn report(lines: &[&str]) -> Report {
        let scenario: Scenario = "slow-drive-busy".parse().expect("it is there");
        let sample = Sample::parse(lines.iter().copied()).expect("the lines are right");
        let figures = sample.figures(LENGTH).expect("none failed");
        let measured = Measured { figures, lateness: lateness::Watch::start().end() };
        let versions = ["6.1", "QEMU 7.2", "mdadm 4.2", "integritysetup 2.6"];
        let [kernel, qemu, mdadm, integritysetup] = versions.map(str::to_owned);
        let versions = Versions { kernel, qemu, mdadm, integritysetup };
        let mut report = Report::new(versions, 7, LENGTH);
        report.add(System::Md, &scenario, Bytes::new(8 << 10), &measured);
        report
    }

    #[test]
    fn a_row_has_figures_of_a_system_that_keeps_pace() {
        let text = report(&["begin 2", "read 0 9500 50", "read 40000 20400 50", "end"]).to_string();
        let row =
            "| one drive ten times slower | 40 kB every 40 ms | MD | 15 | 9.5 | 20 | - | 0 of 2 |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("seed 7; 0.08 s a run"), "{text}");
    }

    #[test]
    fn a_row_has_no_latency_of_a_system_that_falls_behind() {
        let mut lines = vec!["begin 20".to_owned()];
        lines.extend((0..20).map(|idx| format!("waits {} {}", 4000 * idx, 80_000 - 4000 * idx)));
        lines.push("end".to_owned());
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = report(&lines).to_string();
        assert!(text.contains("| MD | overloaded | - | - | - | 20 of 20 |"), "{text}");
    }
}
