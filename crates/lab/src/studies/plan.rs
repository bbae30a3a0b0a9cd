//! What a study runs and what it makes of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use super::interval;

/// What a study runs, and what it makes of it.
#[derive(Debug, Default)]
pub struct StudyPlan {
    /// What is measured, each with every seed.
    pub cells: Vec<Cell>,
    /// What comes out.
    pub rows: Vec<Row>,
    /// How it is drawn.
    pub drawings: Vec<Drawing>,
    /// Sentences that belong to the result.
    pub remarks: Vec<String>,
}

/// How a cell is measured with a seed.
type Measure = Box<dyn Fn(u64) -> Result<Measured, String> + Send + Sync>;

/// Something that can be measured on its own.
pub struct Cell {
    /// What rows call it. No two cells of a plan share a name.
    pub name: String,
    measure: Measure,
}

impl Cell {
    /// A cell of this name; `measure` gets a seed.
    pub fn new(
        name: impl Into<String>,
        measure: impl Fn(u64) -> Result<Measured, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), measure: Box::new(measure) }
    }

    /// Measures it.
    ///
    /// # Errors
    ///
    /// A world that cannot be, in one sentence.
    pub fn measure(&self, seed: u64) -> Result<Measured, String> {
        (self.measure)(seed).map_err(|problem| format!("{}: {problem}", self.name))
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cell").field(&self.name).finish()
    }
}

/// What a cell gave with one seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Its figures by name. One without bound (an overloaded run's latency) is infinite; none is NaN.
    pub values: BTreeMap<String, f64>,
    /// A distribution, if it has one: the values at the shares of [`Measured::SHARES`].
    pub quantiles: Vec<f64>,
}

impl Measured {
    /// The shares at which a distribution is kept: every percent, and the tail.
    pub const SHARES: [f64; 120] = shares();

    /// With one figure more.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        assert!(!value.is_nan(), "{name} is not a number");
        self.values.insert(name.to_owned(), value);
        self
    }
}

/// 0 to 99 %, then to 99.9 % and to 99.99 % in ten steps each.
const fn shares() -> [f64; 120] {
    let mut shares = [0.0; 120];
    let mut at = 0;
    while at < 120 {
        shares[at] = match at {
            0..100 => at as f64 / 100.0,
            100..110 => 0.99 + (at - 99) as f64 * 0.0009,
            _ => 0.999 + (at - 109) as f64 * 0.00009,
        };
        at += 1;
    }
    shares
}

/// All cells of one seed.
#[derive(Debug)]
pub struct OneSeed<'a> {
    pub(super) cells: BTreeMap<&'a str, &'a Measured>,
    /// The first figure that was asked for and is not there: a part that was made or changed by hand
    /// may lack any.
    pub(super) missing: RefCell<Option<String>>,
}

impl OneSeed<'_> {
    /// A figure of a cell; infinite, and no result comes out, if it has not been measured.
    ///
    /// # Panics
    ///
    /// If there is no such cell: a study asks for its own.
    pub fn get(&self, cell: &str, value: &str) -> f64 {
        let measured = self.cells.get(cell).unwrap_or_else(|| panic!("no cell '{cell}'"));
        measured.values.get(value).copied().unwrap_or_else(|| {
            let mut missing = self.missing.borrow_mut();
            missing.get_or_insert_with(|| format!("{cell} has no '{value}'"));
            f64::INFINITY
        })
    }
}

/// In what a row is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 0 to 100.
    Percent,
    /// Milliseconds.
    Millis,
    /// A factor.
    Times,
    /// A number of things.
    Count,
    /// 0 to 1.
    Probability,
    /// Requests in a second.
    PerSecond,
    /// 10^6 bytes.
    Megabytes,
    /// 10^6 bytes in a second.
    MegabytesPerSecond,
}

impl Unit {
    /// As results have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Percent => "%",
            Self::Millis => "ms",
            Self::Times => "x",
            Self::Count => "count",
            Self::Probability => "probability",
            Self::PerSecond => "/s",
            Self::Megabytes => "MB",
            Self::MegabytesPerSecond => "MB/s",
        }
    }
}

/// What a row makes of the cells of one seed.
type Formula = Box<dyn Fn(&OneSeed<'_>) -> f64 + Send + Sync>;

/// What a row makes of the cells of all seeds.
type Together = Box<dyn Fn(&[OneSeed<'_>]) -> [f64; 3] + Send + Sync>;

/// One number of a paper, and ours.
pub struct Row {
    /// Under what circumstances.
    pub case: String,
    /// What is counted.
    pub metric: String,
    /// In what.
    pub unit: Unit,
    /// The paper's, if it has one.
    pub paper: Option<f64>,
    /// How the paper's number is meant.
    pub claim: Claim,
    pub(super) ours: Ours,
}

/// How a paper means a number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Claim {
    /// As a result.
    #[default]
    Equal,
    /// As an upper bound: "below 10 %".
    AtMost,
    /// As a lower bound: "above 12 %".
    AtLeast,
    /// Not itself: it is a ratio of two of its results, and may be off by this much as those are rounded.
    Derived(f64),
}

/// Half a unit of the last digit that `number` is written with: of 44 a half, of 0.22 five thousandths.
pub(super) fn half_of_last_digit(number: f64) -> f64 {
    let text = number.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    // Written with a power of ten, which stays exact for decimals without end.
    0.5 * 10_f64.powi(-(decimals as i32))
}

/// What a row of a study is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Under what circumstances.
    pub case: String,
    /// What is counted.
    pub metric: String,
}

impl Head {
    /// This case and this metric.
    pub fn new(case: impl Into<String>, metric: impl Into<String>) -> Self {
        Self { case: case.into(), metric: metric.into() }
    }
}

/// Where our number comes from.
pub(super) enum Ours {
    /// A calculation without chance: the number and the ends of its interval, which are the number itself if nothing about it is uncertain.
    Exact([f64; 3]),
    /// The cells of each seed, one seed at a time.
    Measured(Formula),
    /// The cells of all seeds together: the number and the ends of its interval.
    Together(Together),
}

impl Row {
    fn with(Head { case, metric }: Head, unit: Unit, ours: Ours) -> Self {
        Self { case, metric, unit, paper: None, claim: Claim::Equal, ours }
    }

    /// A row whose number is worked out from the cells of one seed.
    pub fn new(
        head: Head,
        unit: Unit,
        ours: impl Fn(&OneSeed<'_>) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let ours = Ours::Measured(Box::new(ours));
        Self::with(head, unit, ours)
    }

    /// A row whose number needs no chance: a closed form, a count.
    pub fn exact(head: Head, unit: Unit, ours: f64) -> Self {
        Self::within(head, unit, [ours; 3])
    }

    /// A row whose number needs no chance here, but follows from what was measured elsewhere: the number and the ends of its interval.
    pub fn within(head: Head, unit: Unit, ours: [f64; 3]) -> Self {
        Self::with(head, unit, Ours::Exact(ours))
    }

    /// The share of failures of all that was counted in cells, over all seeds, with the exact interval of a count whose size was given before
    /// (Clopper and Pearson's). Without a failure the share is 0, and the interval's upper end is what is known.
    ///
    /// Cells have the figures `trials` and `failures`. Seeds are further trials, and not values to take the mean of: of what is rare a
    /// seed may have none.
    pub fn counted(head: Head, cells: Vec<String>) -> Self {
        Self::together(head, Unit::Probability, move |seeds| {
            let [failures, trials] = ["failures", "trials"].map(|value| sum(seeds, &cells, value));
            interval::of_count(failures, trials)
        })
    }

    /// What a figure of cells adds up to, over all seeds.
    pub fn sum(head: Head, unit: Unit, value: &'static str, cells: Vec<String>) -> Self {
        Self::together(head, unit, move |seeds| [sum(seeds, &cells, value); 3])
    }

    /// A figure of a cell as it is. `case` is also the cell's name.
    pub fn of(cell: impl Into<String>, metric: impl Into<String>, unit: Unit) -> Self {
        let (cell, metric) = (cell.into(), metric.into());
        let (case, name) = (cell.clone(), metric.clone());
        Self::new(Head::new(case, name), unit, move |seed| seed.get(&cell, &metric))
    }

    /// How much a figure of one cell differs from that of another, in percent of the other.
    pub fn change(head: Head, value: &'static str, [cell, base]: [String; 2]) -> Self {
        Self::new(head, Unit::Percent, move |seed| {
            (seed.get(&cell, value) / seed.get(&base, value) - 1.0) * 100.0
        })
    }

    /// The ratio of a figure of one cell to that of another.
    pub fn ratio(head: Head, value: &'static str, [cell, base]: [String; 2]) -> Self {
        Self::new(head, Unit::Times, move |seed| seed.get(&cell, value) / seed.get(&base, value))
    }

    /// The ratio of two figures' sums over all seeds: for rare events, of which a seed may have none.
    pub fn ratio_of_sums(head: Head, value: &'static str, [cell, base]: [String; 2]) -> Self {
        Self::ratio_of_totals(head, Unit::Times, move |seed| {
            [seed.get(&cell, value), seed.get(&base, value)]
        })
    }

    /// The ratio of what two expressions add up to over all seeds, where one seed's may be near zero by
    /// chance. The interval is the jackknife's.
    pub fn ratio_of_totals(
        head: Head,
        unit: Unit,
        parts: impl Fn(&OneSeed<'_>) -> [f64; 2] + Send + Sync + 'static,
    ) -> Self {
        Self::together(head, unit, move |seeds| {
            interval::of_ratio(&seeds.iter().map(&parts).collect::<Vec<_>>())
        })
    }

    /// The ratio of a figure of one cell to that of the best of others: the one with the least mean
    /// over all seeds. Seeds are compared in pairs.
    pub fn over_best(head: Head, value: &'static str, cell: String, others: Vec<String>) -> Self {
        Self::together(head, Unit::Times, move |seeds| {
            let sum = |other: &String| seeds.iter().map(|seed| seed.get(other, value)).sum::<f64>();
            let best = others.iter().min_by(|a, b| sum(a).total_cmp(&sum(b)));
            let best = best.expect("there is something to compare with");
            let ratio = |seed: &OneSeed<'_>| seed.get(&cell, value) / seed.get(best, value);
            interval::of_mean(&seeds.iter().map(ratio).collect::<Vec<_>>())
        })
    }

    pub(super) fn together(
        head: Head,
        unit: Unit,
        ours: impl Fn(&[OneSeed<'_>]) -> [f64; 3] + Send + Sync + 'static,
    ) -> Self {
        let ours = Ours::Together(Box::new(ours));
        Self::with(head, unit, ours)
    }

    /// Beside the paper's number.
    #[must_use]
    pub fn paper(mut self, number: f64) -> Self {
        self.paper = Some(number);
        self
    }

    /// Beside the ratio of two numbers of the paper.
    #[must_use]
    pub fn paper_ratio(mut self, part: f64, whole: f64) -> Self {
        let ratio = part / whole;
        let share = half_of_last_digit(part) / part + half_of_last_digit(whole) / whole;
        (self.paper, self.claim) = (Some(ratio), Claim::Derived(ratio * share));
        self
    }

    /// Beside the paper's number, if it has one.
    #[must_use]
    pub fn maybe_paper(mut self, number: Option<f64>) -> Self {
        self.paper = number;
        self
    }

    /// The paper's number, if there is one, is an upper bound.
    #[must_use]
    pub fn at_most(self) -> Self {
        Self { claim: Claim::AtMost, ..self }
    }

    /// The paper's number, if there is one, is a lower bound.
    #[must_use]
    pub fn at_least(self) -> Self {
        Self { claim: Claim::AtLeast, ..self }
    }
}

/// What a figure of these cells adds up to, over all seeds.
pub(super) fn sum(seeds: &[OneSeed<'_>], cells: &[String], value: &str) -> f64 {
    seeds.iter().flat_map(|seed| cells.iter().map(|cell| seed.get(cell, value))).sum()
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row").field("case", &self.case).field("metric", &self.metric).finish()
    }
}

/// How a part of the result is drawn.
#[derive(Clone, Debug)]
pub enum Drawing {
    /// Bars in groups.
    Bars {
        /// What stands above it.
        title: String,
        /// What the vertical axis counts.
        axis: String,
        /// Whether that axis is logarithmic.
        is_log: bool,
        /// The groups' names.
        groups: Vec<String>,
        /// One bar a group.
        bars: Vec<Bars>,
    },
    /// Distributions of cells, the horizontal axis logarithmic.
    Distributions {
        /// What stands above it.
        title: String,
        /// What the horizontal axis counts.
        axis: String,
        /// Names and cells.
        cells: Vec<(String, String)>,
    },
    /// The largest of our numbers in each field of a grid.
    HeatMap(HeatMap),
    /// Points over a linear horizontal and a logarithmic vertical axis.
    Curves {
        /// What stands above it.
        title: String,
        /// What the horizontal axis counts.
        across: String,
        /// What the vertical axis counts.
        up: String,
        /// What is drawn between them.
        curves: Vec<Curve>,
    },
}

/// Points under one name.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the legend calls it.
    pub name: String,
    /// Across and up. A point of which nothing was counted, so that its number is zero, is left out.
    pub points: Vec<[Place; 2]>,
    /// Whether lines join the points.
    pub is_joined: bool,
}

/// Where a point lies along an axis.
#[derive(Clone, Debug)]
pub enum Place {
    /// At a number.
    At(f64),
    /// At our number in a row, by case and metric.
    Row(String, String),
}

/// A grid whose fields are coloured by the largest of our numbers in them.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// What stands above it.
    pub title: String,
    /// What stands over each column.
    pub columns: Vec<String>,
    /// What stands beside each row of the grid.
    pub rows: Vec<String>,
    /// For each row of the grid and each column the results' rows, by case and metric.
    pub bins: Vec<Vec<Vec<(String, String)>>>,
}

/// One bar a group.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What the legend calls it.
    pub name: String,
    /// The row of each group, by case and metric.
    pub rows: Vec<(String, String)>,
    /// Which of the row's numbers.
    pub whose: Whose,
}

/// One of a row's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The paper's.
    Paper,
    /// Ours.
    Ours,
}

impl Drawing {
    /// Two bars a case and metric, the paper's and ours; `names` are the groups' with their cases.
    pub fn beside_paper(
        title: impl Into<String>,
        axis: impl Into<String>,
        metrics: &[&str],
        names: &[(String, String)],
    ) -> Self {
        let bars = metrics.iter().flat_map(|metric| {
            [(Whose::Paper, "paper"), (Whose::Ours, "ours")].map(|(whose, label)| Bars {
                name: if metrics.len() == 1 {
                    label.to_owned()
                } else {
                    format!("{metric}, {label}")
                },
                rows: names.iter().map(|(_, case)| (case.clone(), (*metric).to_owned())).collect(),
                whose,
            })
        });
        Self::Bars {
            title: title.into(),
            axis: axis.into(),
            is_log: false,
            groups: names.iter().map(|(group, _)| group.clone()).collect(),
            bars: bars.collect(),
        }
    }
}
