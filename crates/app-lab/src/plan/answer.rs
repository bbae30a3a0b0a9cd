//! What a plan shows: facts, a table, assumptions; the same as JSON and as a page.

use std::path::Path;

use levelhead_report::{Figure, Page, Table, json};
use serde::Serialize;

use levelhead_app::{AppError, Show, VERSION, files};

/// The answer to one question of `levelhead-lab plan`.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What was asked, and what the answer is called.
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) tables: Vec<(&'static str, Table)>,
    pub(super) rows: Vec<Row>,
    pub(super) remarks: Vec<String>,
    pub(super) assumptions: Vec<String>,
    pub(super) figures: Vec<Figure>,
}

/// One number, as studies print them.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) case: String,
    pub(super) metric: String,
    pub(super) unit: &'static str,
    paper: Option<f64>,
    pub(super) ours: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Row {
    /// A number that needs no interval. `unit` is `%`, `ms`, `x`, `count` or `probability`.
    pub(super) fn new(
        case: impl Into<String>,
        metric: impl Into<String>,
        unit: &'static str,
        ours: f64,
    ) -> Self {
        let (case, metric) = (case.into(), metric.into());
        Self { case, metric, unit, paper: None, ours, low: ours, high: ours }
    }

    /// With bounds.
    pub(super) fn between(mut self, low: f64, high: f64) -> Self {
        (self.low, self.high) = (low, high);
        self
    }
}

#[derive(Serialize)]
struct Json<'a> {
    plan: &'a str,
    options: std::collections::BTreeMap<&'a str, &'a str>,
    assumptions: &'a [String],
    remarks: &'a [String],
    rows: &'a [Row],
}

impl Answer {
    pub(super) fn new(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            facts: Vec::new(),
            tables: Vec::new(),
            rows: Vec::new(),
            remarks: Vec::new(),
            assumptions: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// Writes the page, if one was asked for.
    pub(super) fn with_report(self, path: Option<&Path>) -> Result<Self, AppError> {
        if let Some(path) = path {
            let html = self.page().to_html();
            files::write_whole(path, |out| out.write_all(html.as_bytes()))?;
        }
        Ok(self)
    }

    fn page(&self) -> Page {
        let version = ("program", format!("levelhead {VERSION}"));
        let mut page = Page::new(self.title).facts(self.facts.iter().cloned().chain([version]));
        for (caption, table) in &self.tables {
            page = page.table(*caption, table.clone());
        }
        for figure in &self.figures {
            page = page.figure(figure.clone());
        }
        for remark in &self.remarks {
            page = page.paragraph(remark);
        }
        page = page.heading("Assumptions");
        for assumption in &self.assumptions {
            page = page.paragraph(assumption);
        }
        page
    }
}

impl Show for Answer {
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.facts {
            text.push_str(&format!("{name}: {value}\n"));
        }
        for (caption, table) in &self.tables {
            let head = if caption.is_empty() { String::new() } else { format!("{caption}:\n") };
            text.push_str(&format!("\n{head}{}", table.to_text()));
        }
        if !self.remarks.is_empty() {
            text.push_str(&format!("\n{}\n", self.remarks.join("\n")));
        }
        text.push_str("\nassumed:\n");
        for assumption in &self.assumptions {
            text.push_str(&format!("  {assumption}\n"));
        }
        text
    }

    fn json(&self) -> String {
        let options = self.facts.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let Self { name, assumptions, remarks, rows, .. } = self;
        json::pretty(&Json { plan: name, options, assumptions, remarks, rows })
            .expect("rows are plain values")
    }
}
