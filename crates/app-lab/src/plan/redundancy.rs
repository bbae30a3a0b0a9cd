//! `levelhead-lab plan redundancy`: redundancy over the size of a codeword, or of a whole drive.

use std::path::PathBuf;

use levelhead_planner::Code;
use levelhead_planner::code::{Goal, least_redundant, least_redundant_for_data};
use levelhead_planner::system::{Capacities, forced_failure_rate, redundancy};
use levelhead_report::{Axis, Column, Figure, Series, Table};

use super::answer::{Answer, Row};
use super::{INDEPENDENT, MDS, percent};
use levelhead_app::{AppError, files};

/// What is asked.
#[derive(Clone, Debug)]
pub struct RedundancyAsk {
    /// Failure rates, one curve each.
    pub failure_rates: Vec<f64>,
    /// What may remain after decoding.
    pub target: f64,
    /// Data symbols of a codeword.
    pub data: Vec<u64>,
    /// Capacities of sequential, random and mutable files: the redundancy of a whole drive as well.
    pub capacities: Option<Capacities>,
    /// Codeword lengths of sequential and random files.
    pub lengths: [u64; 2],
    /// Failure rate under zero forcing, instead of the assumed one.
    pub forced_rate: Option<f64>,
    /// Where an HTML page goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// Redundancy for each failure rate.
///
/// # Errors
///
/// No code meets the target on a whole drive, or the page cannot be written.
pub fn plan_redundancy(ask: &RedundancyAsk) -> Result<Answer, AppError> {
    if let Some(path) = &ask.report {
        files::check_place(path)?;
    }
    let mut answer = Answer::new("redundancy", "Redundancy that a target needs");
    answer.facts = vec![("target", format!("{:e}", ask.target))];
    answer.assumptions = vec![INDEPENDENT.to_owned(), MDS.to_owned()];
    match ask.capacities {
        Some(capacities) => whole_drive(&mut answer, ask, capacities)?,
        None => by_size(&mut answer, ask),
    }
    answer.with_report(ask.report.as_deref())
}

fn by_size(answer: &mut Answer, ask: &RedundancyAsk) {
    let columns = std::iter::once(Column::right("data symbols"))
        .chain(ask.failure_rates.iter().map(|rate| Column::right(format!("rate {rate:e}"))));
    let mut table = Table::new(columns);
    let mut curves = vec![Vec::new(); ask.failure_rates.len()];
    for &data in &ask.data {
        let mut cells = vec![data.to_string()];
        for (&failure_rate, curve) in ask.failure_rates.iter().zip(&mut curves) {
            let goal = Goal { failure_rate, target: ask.target };
            let Some(code) = least_redundant_for_data(data, goal) else {
                cells.push("none".to_owned());
                continue;
            };
            cells.push(format!("{} ({})", percent(code.redundancy()), code.redundant));
            let ratio = code.redundancy() * 100.0;
            curve.push((data as f64, ratio));
            let case = format!("data {data}, failure rate {failure_rate:e}");
            answer.rows.push(Row::new(case.clone(), "redundancy", "%", ratio));
            answer.rows.push(Row::new(case, "redundant", "count", code.redundant as f64));
        }
        table.push(cells);
    }
    answer.tables = vec![("redundancy and redundant symbols", table)];
    let series = ask.failure_rates.iter().zip(curves);
    answer.figures = vec![Figure::lines(
        "Redundancy by size of the codeword",
        Axis::log("data symbols"),
        Axis::log("redundancy (%)"),
        series.map(|(rate, curve)| Series::line(format!("rate {rate:e}"), curve)).collect(),
    )];
}

fn whole_drive(
    answer: &mut Answer,
    ask: &RedundancyAsk,
    capacities: Capacities,
) -> Result<(), AppError> {
    let Capacities { sequential, random, mutable } = capacities;
    answer.facts.push(("capacities", format!("{sequential}:{random}:{mutable}")));
    answer.facts.push(("lengths", format!("{} and {}", ask.lengths[0], ask.lengths[1])));
    let names = ["failure rate", "under zero forcing", "sequential", "random", "redundancy"];
    let mut table = Table::new(names.map(Column::right));
    let mut curve = Vec::new();
    let code = |length, failure_rate| -> Result<Code, AppError> {
        let target = ask.target;
        least_redundant(length, Goal { failure_rate, target }).ok_or_else(|| {
            AppError::usage(format!(
                "no code of length {length} reaches {target:e} at failure rate {failure_rate:e}"
            ))
        })
    };
    for &rate in &ask.failure_rates {
        let forced = ask.forced_rate.unwrap_or_else(|| forced_failure_rate(rate));
        let codes = [code(ask.lengths[0], rate)?, code(ask.lengths[1], forced)?];
        let whole = redundancy(capacities, codes[0], codes[1]);
        table.push([
            format!("{rate:e}"),
            format!("{forced:.2e}"),
            codes[0].to_string(),
            codes[1].to_string(),
            percent(whole),
        ]);
        curve.push((rate, whole * 100.0));
        let case = format!("failure rate {rate:e}");
        answer.rows.push(Row::new(case.clone(), "redundancy", "%", whole * 100.0));
        answer.rows.push(Row::new(case, "rate under zero forcing", "probability", forced));
    }
    answer.tables = vec![("whole drive", table)];
    answer.assumptions.push(match ask.forced_rate {
        Some(rate) => format!("256 bytes of zeros lower any failure rate to {rate:e}, as given"),
        None => {
            "256 bytes of zeros lower a failure rate p to 0.2 p^2: ours, chosen to agree with what \
                 the paper says of its own curve"
                .to_owned()
        }
    });
    answer.assumptions.push(
        "mutable files have 512 bytes of zeros, two complementary sectors to seven, and no code"
            .to_owned(),
    );
    answer.figures = vec![Figure::lines(
        "Redundancy of a whole drive",
        Axis::log("failure rate"),
        Axis::linear("redundancy (%)"),
        vec![Series::line("redundancy", curve)],
    )];
    Ok(())
}
