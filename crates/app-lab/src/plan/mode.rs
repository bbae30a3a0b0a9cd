//! `levelhead-lab plan mode`: reading the requested data or the whole group, over queues and loads.

use std::path::PathBuf;

use levelhead_planner::mode::{Delayed, Drive, Mode, choice, net_latency};
use levelhead_report::{Axis, Column, Figure, Series, Table};
use levelhead_units::Nanos;

use super::answer::{Answer, Row};
use super::typed_percent;
use levelhead_app::{AppError, files};

/// What is asked: one read of a group whose drives are all alike.
#[derive(Clone, Debug)]
pub struct ModeAsk {
    /// Drives of a group.
    pub drives: u64,
    /// Those of them with requested data.
    pub wanted: u64,
    /// Requested sectors on each of those.
    pub sectors: u64,
    /// Probability that a sector's first pass fails.
    pub failure_rate: f64,
    /// Time of a retry.
    pub retry_time: Nanos,
    /// Time of a sub-request without retries.
    pub service_time: Nanos,
    /// Probability that a sub-request is removed before the drive begins.
    pub removal: f64,
    /// Sub-requests waiting at each drive.
    pub queued: Vec<u64>,
    /// Shares of time that the drives are busy.
    pub loads: Vec<f64>,
    /// Where an HTML page goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// What each form of the net latency chooses.
///
/// # Errors
///
/// More drives hold requested data than there are, or the page cannot be written.
pub fn plan_mode(ask: &ModeAsk) -> Result<Answer, AppError> {
    if let Some(path) = &ask.report {
        files::check_place(path)?;
    }
    if ask.wanted > ask.drives {
        return Err(AppError::usage(format!(
            "{} drives with requested data are more than the group's {}",
            ask.wanted, ask.drives
        )));
    }
    let mut answer = Answer::new("mode", "Requested data alone, or the whole group");
    answer.facts = vec![
        ("drives", format!("{} of {} hold requested data", ask.wanted, ask.drives)),
        ("sectors on each", ask.sectors.to_string()),
        ("failure rate", format!("{:e}", ask.failure_rate)),
        ("time of a retry", ask.retry_time.to_string()),
        ("time of a sub-request", ask.service_time.to_string()),
        ("removed before they begin", format!("{} %", typed_percent(ask.removal))),
    ];
    let columns = [Column::right("queued"), Column::right("load")].into_iter().chain(
        Delayed::ALL.iter().flat_map(|form| {
            [Column::right(format!("tau ms, {}", form.name())), Column::left("mode")]
        }),
    );
    let mut table = Table::new(columns);
    let mut curves = vec![Vec::new(); Delayed::ALL.len()];
    let middle = ask.queued[ask.queued.len() / 2];
    let (mut cells, mut agree) = (0_u32, 0_u32);
    for &queued in &ask.queued {
        for &load in &ask.loads {
            let mut row = vec![queued.to_string(), format!("{} %", typed_percent(load))];
            let mut modes = Vec::new();
            for (form, curve) in Delayed::ALL.into_iter().zip(&mut curves) {
                let tau = net_latency(form, &shares(ask, queued, load));
                let mode = choice(tau);
                row.push(format!("{:.3}", tau * 1e3));
                row.push(name(mode).to_owned());
                modes.push(mode);
                let case = format!("queued {queued}, load {} %", typed_percent(load));
                let metric = format!("tau, {}", form.name());
                answer.rows.push(Row::new(case, metric, "ms", tau * 1e3));
                if queued == middle {
                    curve.push((load, tau * 1e3));
                }
            }
            cells += 1;
            agree += u32::from(modes.iter().all(|mode| *mode == modes[0]));
            table.push(row);
        }
    }
    answer.tables = vec![("", table)];
    answer.remarks = vec![
        format!("All three forms choose the same mode in {agree} of {cells} cells."),
        "The drives being alike, every term has the same E[n]: its form moves the size of tau, and its \
         sign only where E[n] is 0 (exact, empty queue)."
            .to_owned(),
    ];
    answer.assumptions = vec![
        "Poisson arrivals, constant service times, drives alike and independent".to_owned(),
        "a load above 98 % counts as 98 %".to_owned(),
        "a sub-request of b sectors fails with 1 - (1-p)^b".to_owned(),
        "tau adds means: that the fifth of six answers comes sooner than the last of five is not in it"
            .to_owned(),
    ];
    // The paper's sum is a hundred times the others where drives are busy.
    let is_log = curves.iter().flatten().all(|&(_, tau)| tau > 0.0);
    let axis = if is_log { Axis::log("tau (ms)") } else { Axis::linear("tau (ms)") };
    let series = Delayed::ALL.iter().zip(curves);
    answer.figures = vec![Figure::lines(
        format!("Net latency that reading the group saves, {middle} queued"),
        Axis::linear("load"),
        axis,
        series.map(|(form, curve)| Series::line(form.name(), curve)).collect(),
    )];
    answer.with_report(ask.report.as_deref())
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Normal => "normal",
        Mode::Assisted => "assisted",
    }
}

fn shares(ask: &ModeAsk, queued: u64, load: f64) -> Vec<(Drive, u64)> {
    let drive = Drive {
        queued,
        load,
        removal: ask.removal,
        failure_rate: ask.failure_rate,
        retry_time: ask.retry_time.as_secs_f64(),
        service_time: ask.service_time.as_secs_f64(),
    };
    (0..ask.drives).map(|at| (drive, if at < ask.wanted { ask.sectors } else { 0 })).collect()
}
