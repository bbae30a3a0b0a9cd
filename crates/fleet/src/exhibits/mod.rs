//! The tables and figures of `[TAIL16]` over any fleet: from summaries to rows beside the study's numbers, and to curves.
//!
//! ```text
//!   Fleet --> Exhibit::lines   "S >= 2: 0.22 %", with the study's number of disks or of solid-state drives
//!         \-> Exhibit::picture curves over two axes
//! ```
//!
//! An [`Exhibit`] is a value: its name in the study, what it says, and two functions of a fleet. A line of which a fleet has no
//! data is left out, and never 0. The study gives no values of its curves beyond those in its text and its tables.

mod events;
mod load;
mod tables;
#[cfg(test)]
mod tests;
mod time;

use crate::analysis::Summary;
use crate::events::EventsSummary;
use crate::generate::Kind;

/// A table or a figure of the study.
#[derive(Clone, Copy, Debug)]
pub struct Exhibit {
    /// Its name: `table1`, `fig4`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What the study says of it.
    pub says: &'static str,
    lines: fn(&Fleet<'_>) -> Vec<Line>,
    picture: Option<fn(&Fleet<'_>) -> Picture>,
}

/// What is known of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct Fleet<'a> {
    /// Its hours.
    pub hours: &'a Summary,
    /// What happened to its drives, if that is known.
    pub events: Option<&'a EventsSummary>,
}

impl Exhibit {
    /// Its name as a reader of the study says it: `table 1`, `figure 4`.
    pub fn label(&self) -> String {
        let (kind, number) = match self.name.strip_prefix("fig") {
            Some(number) => ("figure", number),
            None => ("table", self.name.trim_start_matches("table")),
        };
        format!("{kind} {number}")
    }

    /// Its numbers, of those for which the fleet has data.
    pub fn lines(&self, fleet: &Fleet<'_>) -> Vec<Line> {
        (self.lines)(fleet)
    }

    /// Its curves, if it has any.
    pub fn picture(&self, fleet: &Fleet<'_>) -> Option<Picture> {
        self.picture.map(|picture| picture(fleet))
    }
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What is counted.
    pub metric: String,
    /// In what.
    pub unit: Unit,
    /// The study's numbers.
    pub paper: Paper,
    /// The number.
    pub value: f64,
}

/// In what a line is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 0 to 100.
    Percent,
    /// A factor.
    Times,
    /// A number of things.
    Count,
}

/// The study's numbers of both kinds of drives, where it has them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paper {
    /// Of disks.
    pub disk: Option<f64>,
    /// Of solid-state drives.
    pub ssd: Option<f64>,
}

impl Paper {
    /// The number of this kind of drives.
    pub fn of(self, kind: Kind) -> Option<f64> {
        match kind {
            Kind::Disk => self.disk,
            Kind::Ssd => self.ssd,
        }
    }
}

/// Curves over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What the horizontal axis counts.
    pub across: &'static str,
    /// How it is divided.
    pub across_scale: Scale,
    /// What the vertical axis counts.
    pub up: &'static str,
    /// How it is divided.
    pub up_scale: Scale,
    /// What is drawn.
    pub curves: Vec<Curve>,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By factors.
    Log,
    /// By the distance to a share of 1, by factors: one nine, two nines.
    Tail,
}

/// Points that are joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it is called.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Along the horizontal axis.
    pub across: f64,
    /// Along the vertical one.
    pub up: f64,
}

/// All tables and figures, in the order of the study.
pub fn all() -> Vec<Exhibit> {
    vec![
        tables::TABLE1,
        tables::FIG2,
        tables::TABLE3,
        tables::FIG4,
        time::FIG5,
        time::FIG6,
        load::FIG7,
        load::FIG8,
        load::FIG9,
        load::FIG10,
        events::FIG11,
    ]
}

/// A line whose value may be missing.
fn line(metric: impl Into<String>, unit: Unit, paper: Paper, value: Option<f64>) -> Option<Line> {
    let metric = metric.into();
    value.filter(|value| value.is_finite()).map(|value| Line { metric, unit, paper, value })
}

const NO_PAPER: Paper = Paper { disk: None, ssd: None };

const fn paper(disk: f64, ssd: f64) -> Paper {
    Paper { disk: Some(disk), ssd: Some(ssd) }
}

/// `part` of `whole` in percent; nothing of nothing.
fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}
