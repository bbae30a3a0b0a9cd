//! `levelhead-lab plan code`: the least redundancy for a target.

use std::path::PathBuf;

use levelhead_planner::code::{
    Goal, failure, failure_bound_correlated, failure_rate_max, least_redundant_of_all,
};
use levelhead_planner::{Code, metadata};
use levelhead_report::{Axis, Column, Figure, Series, Table};

use super::answer::{Answer, Row};
use super::{INDEPENDENT, MDS, percent, probability};
use levelhead_app::{AppError, files};

/// What is asked.
#[derive(Clone, Debug)]
pub struct CodeAsk {
    /// Soft failures, which a retry would mend.
    pub soft: Goal,
    /// Hard failures, which lose the sector.
    pub hard: Option<Goal>,
    /// Symbols in a codeword.
    pub length: u64,
    /// How many times as likely a sector fails next to a failed one; at least 1.
    pub correlation: f64,
    /// Where an HTML page goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// Codes listed on either side of the one chosen.
const NEIGHBOURS: u64 = 2;

/// The code to choose, and what its neighbours would do.
///
/// # Errors
///
/// No code of this length meets the goals, or the page cannot be written.
pub fn plan_code(ask: &CodeAsk) -> Result<Answer, AppError> {
    if let Some(path) = &ask.report {
        files::check_place(path)?;
    }
    let raised = ask.correlation * ask.soft.failure_rate;
    if raised > 1.0 {
        return Err(AppError::usage(format!(
            "correlation {} times failure rate {:e} is {}: a probability is at most 1",
            plain(ask.correlation),
            ask.soft.failure_rate,
            plain(raised)
        )));
    }
    let goals: Vec<Goal> = std::iter::once(ask.soft).chain(ask.hard).collect();
    let Some(code) = least_redundant_of_all(ask.length, &goals) else {
        let wanted: Vec<String> = goals
            .iter()
            .map(|goal| format!("{:e} at failure rate {:e}", goal.target, goal.failure_rate))
            .collect();
        return Err(AppError::usage(format!(
            "no code of length {} reaches {}: at most {} of its symbols can be redundant",
            ask.length,
            wanted.join(" and "),
            ask.length - 1
        )));
    };
    let mut answer = Answer::new("code", "The least redundancy for a target");
    answer.facts = vec![
        ("failure rate", format!("{:e}", ask.soft.failure_rate)),
        ("target", format!("{:e}", ask.soft.target)),
        ("length", ask.length.to_string()),
        ("code", format!("{code} (redundant,data)")),
    ];
    if let Some(hard) = ask.hard {
        answer.facts.push(("hard failure rate", format!("{:e}", hard.failure_rate)));
        answer.facts.push(("hard target", format!("{:e}", hard.target)));
    }
    answer.tables = vec![("", table(ask, code))];
    rows(&mut answer, ask, code);
    let replicas = metadata::replicas(ask.soft.failure_rate, ask.soft.target);
    let highest = failure_rate_max(code, ask.soft.target);
    answer.remarks = vec![
        if highest > 0.0 {
            format!("{code} meets the target up to a failure rate of {highest:.3e}.")
        } else {
            "No code meets a target of 0 where sectors fail.".to_owned()
        },
        match replicas {
            Some(1) => "Metadata meets it in one copy.".to_owned(),
            Some(copies) => format!("Metadata meets it in {copies} copies of each sector."),
            None => "No number of copies of metadata meets it.".to_owned(),
        },
    ];
    answer.assumptions = vec![INDEPENDENT.to_owned(), MDS.to_owned()];
    if ask.correlation > 1.0 {
        answer.assumptions.push(format!(
            "the bound lets a sector next to a failed one fail {} times as often; the code is chosen \
             without it",
            plain(ask.correlation)
        ));
        if bound(ask, code).is_none() {
            answer.remarks.push(
                "A bound marked - is none: for so many symbols and so large a correlation the paper's \
                 expression falls below the law of independent failures."
                    .to_owned(),
            );
        }
    }
    answer.figures = vec![figure(ask, code)];
    answer.with_report(ask.report.as_deref())
}

fn table(ask: &CodeAsk, chosen: Code) -> Table {
    let mut columns =
        vec![Column::left("code"), Column::right("redundancy"), Column::right("decoding fails")];
    if ask.hard.is_some() {
        columns.push(Column::right("data is lost"));
    }
    if ask.correlation > 1.0 {
        columns.push(Column::right("bound, correlated"));
    }
    columns.push(Column::left(""));
    let mut table = Table::new(columns);
    let first = chosen.redundant.saturating_sub(NEIGHBOURS);
    let last = (chosen.redundant + NEIGHBOURS).min(ask.length - 1);
    for redundant in first..=last {
        let code = Code { data: ask.length - redundant, redundant };
        let mut cells = vec![
            code.to_string(),
            percent(code.redundancy()),
            probability(failure(code, ask.soft.failure_rate)),
        ];
        if let Some(hard) = ask.hard {
            cells.push(probability(failure(code, hard.failure_rate)));
        }
        if ask.correlation > 1.0 {
            cells.push(bound(ask, code).map_or("-".to_owned(), probability));
        }
        cells.push(if code == chosen { "<- least that suffices" } else { "" }.to_owned());
        table.push(cells);
    }
    table
}

/// A factor as people write it, and not in 300 digits.
fn plain(factor: f64) -> String {
    if factor < 1e6 { format!("{factor}") } else { format!("{factor:e}") }
}

/// The paper's bound, where it is one.
fn bound(ask: &CodeAsk, code: Code) -> Option<f64> {
    let bound = failure_bound_correlated(code, ask.soft.failure_rate, ask.correlation);
    (bound >= failure(code, ask.soft.failure_rate)).then_some(bound.min(1.0))
}

fn rows(answer: &mut Answer, ask: &CodeAsk, code: Code) {
    let case = format!("length {}, failure rate {:e}", ask.length, ask.soft.failure_rate);
    let mut add = |metric: &str, unit, value| {
        answer.rows.push(Row::new(case.clone(), metric, unit, value));
    };
    add("redundant", "count", code.redundant as f64);
    add("data", "count", code.data as f64);
    add("redundancy", "%", code.redundancy() * 100.0);
    add("decoding fails", "probability", failure(code, ask.soft.failure_rate));
    if let Some(hard) = ask.hard {
        add("data is lost", "probability", failure(code, hard.failure_rate));
    }
    if ask.correlation > 1.0
        && let Some(bound) = bound(ask, code)
    {
        add("bound, correlated", "probability", bound);
    }
    add("failure rate, highest", "probability", failure_rate_max(code, ask.soft.target));
    if let Some(copies) = metadata::replicas(ask.soft.failure_rate, ask.soft.target) {
        add("copies of metadata", "count", copies as f64);
    }
}

fn figure(ask: &CodeAsk, chosen: Code) -> Figure {
    let last = (chosen.redundant * 2 + 4).min(ask.length - 1);
    let point = |redundant: u64| {
        let code = Code { data: ask.length - redundant, redundant };
        (redundant as f64, failure(code, ask.soft.failure_rate))
    };
    let series = vec![
        Series::line("decoding fails", (0..=last).map(point).filter(|point| point.1 > 1e-300)),
        Series::line(
            "target",
            [(0.0, ask.soft.target), (last as f64, ask.soft.target)]
                .into_iter()
                .filter(|point| point.1 > 0.0),
        ),
    ];
    Figure::lines(
        format!("Failure of a codeword of {} symbols", ask.length),
        Axis::linear("redundant symbols"),
        Axis::log("probability"),
        series,
    )
}
