//! `levelhead-lab ecc table`: how often each step of a drive's retries fails, from curves and wandering heads.

use std::path::PathBuf;

use levelhead_ldpc::{RetryModel, RetryTable, ShownStep};
use levelhead_report::{Column, Table, json};
use serde::Serialize;

use levelhead_app::{AppError, Show, files};

/// What is asked.
#[derive(Clone, Debug)]
pub struct TableAsk {
    /// What the tries of the drive follow from.
    pub model: RetryModel,
    /// Where the table goes that a drive can be given (`ecc=FILE`).
    pub output: Option<PathBuf>,
}

/// The table, to be shown.
#[derive(Clone, Debug)]
pub struct TableShown {
    ask: TableAsk,
    sigma: f64,
    table: RetryTable,
}

/// Computes the table, and writes it if a file is named.
///
/// # Errors
///
/// No drive is like that, or the file cannot be written.
pub fn retry_table(ask: &TableAsk) -> Result<TableShown, AppError> {
    let sigma = ask.model.sigma().map_err(AppError::usage)?;
    let name = ask.output.as_ref().map_or("table".to_owned(), |path| path.display().to_string());
    let table = ask.model.table(&name).map_err(AppError::usage)?;
    if let Some(path) = &ask.output {
        files::write_whole(path, |out| write!(out, "{table}"))?;
    }
    Ok(TableShown { ask: ask.clone(), sigma, table })
}

#[derive(Serialize)]
struct Json {
    failure_rate: f64,
    written_offset: f64,
    pass_offset: f64,
    sigma: f64,
    classes: usize,
    steps: Vec<StepJson>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct StepJson {
    revolutions: u32,
    aim: f64,
    averaged: u32,
    iterations: u32,
}

#[derive(Serialize)]
struct Row {
    forced: usize,
    step: usize,
    revolutions: u32,
    fails: f64,
}

/// A share in percent, without what binary fractions add.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

impl Show for TableShown {
    fn text(&self) -> String {
        let model = &self.ask.model;
        let columns = ["step", "revolutions", "aim", "passes averaged", "iterations"];
        let levels = ["0 B", "256 B", "512 B", "1024 B"];
        let mut table = Table::new(columns.into_iter().chain(levels).map(Column::right));
        let rows = self.table.rows();
        for (at, step) in model.steps.iter().enumerate() {
            let shown: Vec<&ShownStep> = rows.iter().filter(|row| row.step == at).collect();
            let head = [
                at.to_string(),
                shown[0].revolutions.to_string(),
                format!("{} %", percent(step.aim)),
                step.averaged.to_string(),
                step.iterations.to_string(),
            ];
            let fails = shown.iter().map(|row| format!("{:.2e}", row.fails));
            table.push(head.into_iter().chain(fails));
        }
        format!(
            "first passes fail at {}, heads write {} % and read {} % of the track pitch off (standard deviations)\n\
             the share of sectors on which this step and all before it fail, by the zeroes at their ends\n\n{}",
            model.failure_rate,
            percent(model.written_offset),
            percent(model.pass_offset),
            table.to_text()
        )
    }

    fn json(&self) -> String {
        let model = &self.ask.model;
        let step = |step: &levelhead_ldpc::Step| StepJson {
            revolutions: step.revolutions,
            aim: step.aim,
            averaged: step.averaged,
            iterations: step.iterations,
        };
        let row = |row: ShownStep| Row {
            forced: row.forced.bytes(),
            step: row.step,
            revolutions: row.revolutions,
            fails: row.fails,
        };
        json::pretty(&Json {
            failure_rate: model.failure_rate,
            written_offset: model.written_offset,
            pass_offset: model.pass_offset,
            sigma: self.sigma,
            classes: self.table.class_count(),
            steps: model.steps.iter().map(step).collect(),
            rows: self.table.rows().into_iter().map(row).collect(),
        })
        .expect("these are plain values")
    }
}
