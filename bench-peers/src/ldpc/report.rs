//! What is printed.

use std::fmt;

use levelhead_ldpc::{Kernel, ZeroForcing};
use serde::Serialize;

use super::toolbox::{PEERS, Peer, VERSION};
use super::{ITERATIONS, Measured};
use crate::table::Machine;

/// Everything about one run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    /// Of ldpc-toolbox.
    peer_version: &'static str,
    rounds: usize,
    iterations: u32,
    rows: Vec<Row>,
    bars: Vec<Bar>,
}

/// A decoder under one bit error rate.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// `ours`, or ldpc-toolbox's name.
    decoder: &'static str,
    /// Ours have one.
    kernel: Option<&'static str>,
    ber: f64,
    /// Bytes of zeroes that the decoder knows.
    forced: usize,
    /// Per second of CPU time, the median of the rounds.
    frames_per_s: f64,
    /// Whether the time includes drawing the noise, and all else that a count of failures takes.
    with_noise: bool,
    frames: u64,
    failures: u64,
    /// `frames_per_s` divided by that of HLAminstari8 under the same bit error rate without zeroes.
    ratio: Option<f64>,
    /// What noise and first syndrome take of a frame's time.
    begun_share: Option<f64>,
}

impl Row {
    pub(super) fn peer(peer: Peer, ber: f64, measured: &Measured) -> Self {
        Self {
            decoder: peer.name,
            kernel: None,
            ber,
            forced: 0,
            frames_per_s: tenths(measured.frames_per_s),
            with_noise: false,
            frames: measured.frames,
            failures: measured.failures,
            ratio: None,
            begun_share: None,
        }
    }

    pub(super) fn ours(kernel: Kernel, ber: f64, forced: ZeroForcing, measured: &Measured) -> Self {
        Self {
            decoder: "ours",
            kernel: Some(kernel.name()),
            ber,
            forced: forced.bytes(),
            frames_per_s: tenths(measured.frames_per_s),
            with_noise: true,
            frames: measured.frames,
            failures: measured.failures,
            ratio: None,
            begun_share: None,
        }
    }

    /// Compared with a decoder of this many frames per second.
    pub(super) fn against(self, frames_per_s: f64) -> Self {
        Self { ratio: Some(tenths(self.frames_per_s / frames_per_s)), ..self }
    }

    /// With what comes before the first iteration, as it was measured alone.
    pub(super) fn begun(self, begun: &Measured) -> Self {
        let share = self.frames_per_s / begun.frames_per_s;
        Self { begun_share: Some((share * 1e3).round() / 1e3), ..self }
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// What was promised of a kernel, and what was measured.
#[derive(Debug, Serialize)]
struct Bar {
    kernel: &'static str,
    ber: f64,
    what: &'static str,
    limit: f64,
    measured: f64,
    reached: bool,
}

/// The least ratio to HLAminstari8 that was promised.
fn goal(kernel: &str) -> Option<f64> {
    match kernel {
        "avx512" => Some(130.0),
        "avx2" => Some(70.0),
        "portable" => Some(30.0),
        _ => None,
    }
}

/// The most that noise and first syndrome were to take of a frame's time.
const BEGUN_SHARE_MAX: f64 = 0.2;

fn bars(rows: &[Row]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for row in rows.iter().filter(|row| row.forced == 0) {
        let (Some(kernel), ber) = (row.kernel, row.ber) else { continue };
        bars.extend(goal(kernel).zip(row.ratio).map(|(limit, measured)| Bar {
            kernel,
            ber,
            what: "times HLAminstari8, at least",
            limit,
            measured,
            reached: measured >= limit,
        }));
        bars.extend(row.begun_share.map(|measured| Bar {
            kernel,
            ber,
            what: "noise and first syndrome, a share of a frame's time, at most",
            limit: BEGUN_SHARE_MAX,
            measured,
            reached: measured <= BEGUN_SHARE_MAX,
        }));
    }
    bars
}

impl Report {
    /// The report on these figures.
    pub(super) fn new(rounds: usize, rows: Vec<Row>) -> Self {
        let bars = bars(&rows);
        let (machine, peer_version) = (Machine::here(), VERSION);
        Self { machine, peer_version, rounds, iterations: ITERATIONS, rows, bars }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, peer_version, rounds, iterations, rows, bars } = self;
        writeln!(f, "{machine}")?;
        let peers = PEERS.map(|peer| peer.name).join(", ");
        writeln!(f, "* ldpc-toolbox {peer_version}: {peers}")?;
        writeln!(f, "* Median of {rounds} interleaved rounds; at most {iterations} iterations\n")?;
        writeln!(
            f,
            "| decoder | kernel | BER | zeroes | with noise | frames/s | x {} | noise, first syndrome | frames | failures |",
            PEERS[0].name
        )?;
        writeln!(f, "|-|-|-:|-:|-|-:|-:|-:|-:|-:|")?;
        for row in rows {
            writeln!(f, "{row}")?;
        }
        writeln!(f, "\n| kernel | BER | what | limit | measured | reached |\n|-|-:|-|-:|-:|-|")?;
        for bar in bars {
            writeln!(f, "{bar}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dash = || "-".to_owned();
        let cells = [
            self.decoder.to_owned(),
            self.kernel.map_or_else(dash, str::to_owned),
            format!("{:.4}", self.ber),
            self.forced.to_string(),
            if self.with_noise { "yes" } else { "no" }.to_owned(),
            format!("{:.0}", self.frames_per_s),
            self.ratio.map_or_else(dash, |ratio| format!("{ratio:.0}")),
            self.begun_share.map_or_else(dash, |share| format!("{:.0} %", share * 100.0)),
            self.frames.to_string(),
            self.failures.to_string(),
        ];
        write!(f, "| {} |", cells.join(" | "))
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, ber, what, limit, measured, reached } = self;
        let reached = if *reached { "yes" } else { "**no**" };
        write!(f, "| {kernel} | {ber:.4} | {what} | {limit} | {measured} | {reached} |")
    }
}
