//! One metric: its name, kind and meaning, and a series for each set of labels.
//!
//! - N1. Names are of lower-case letters, digits and underscores, and say their unit at the end if they have one:
//!   seconds, bytes or ratio. What the formats add to them (`_total`, `_bucket`, `_info`) is not part of them.
//! - N2. Label names are of the same letters; values may be any text.
//! - N3. All series of a family have its kind of value.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number as it is now.
    Gauge,
    /// Labels that are the message.
    Info,
    /// One of several states.
    StateSet,
    /// How many values were at most so large, for some bounds.
    Histogram,
    /// Quantiles of values.
    Summary,
}

impl Kind {
    /// Its name in OpenMetrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Info => "info",
            Self::StateSet => "stateset",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
        }
    }
}

/// One metric with what it shows now.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) help: String,
    pub(crate) series: Vec<Series>,
}

/// What one set of labels has.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
    /// What it has.
    pub value: Value,
}

/// What a series has.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number, of a counter or a gauge.
    Whole(u64),
    /// Any number, of a counter or a gauge.
    Real(f64),
    /// Nothing but the labels, of an info.
    Labels,
    /// One of these, of a state set.
    OneOf {
        /// All there are.
        states: &'static [&'static str],
        /// The present one.
        is: &'static str,
    },
    /// How values are spread, of a histogram.
    Spread {
        /// The bounds, lowest first, without the infinite one.
        bounds: Vec<f64>,
        /// How many values were at most the bound and more than the one before; the last ones above all bounds.
        counts: Vec<u64>,
        /// The sum of the values.
        sum: f64,
    },
    /// Shares and the values that they do not exceed, of a summary.
    Quantiles(Vec<(f64, f64)>),
}

impl Value {
    fn fits(&self, kind: Kind) -> bool {
        match self {
            Self::Whole(_) => matches!(kind, Kind::Counter | Kind::Gauge),
            Self::Real(value) => {
                kind == Kind::Gauge || kind == Kind::Counter && *value >= 0.0 && value.is_finite()
            }
            Self::Labels => kind == Kind::Info,
            Self::OneOf { states, is } => kind == Kind::StateSet && states.contains(is),
            Self::Spread { bounds, counts, .. } => {
                kind == Kind::Histogram && bounds.len() + 1 == counts.len() && bounds.is_sorted()
            }
            Self::Quantiles(_) => kind == Kind::Summary,
        }
    }
}

impl Family {
    /// A metric without any series.
    ///
    /// Panics if the name is none (N1).
    pub fn new(name: impl Into<String>, kind: Kind, help: impl Into<String>) -> Self {
        let name = name.into();
        assert!(is_name(&name), "N1: '{name}'");
        let added = ["_total", "_info", "_bucket", "_count", "_sum"];
        assert!(!added.iter().any(|suffix| name.ends_with(suffix)), "N1: '{name}'");
        Self { name, kind, help: help.into(), series: Vec::new() }
    }

    /// The same with one more series.
    ///
    /// Panics if the value is of another kind (N3) or a label's name is none (N2).
    #[must_use]
    pub fn with(mut self, labels: Vec<(&'static str, String)>, value: Value) -> Self {
        self.push(labels, value);
        self
    }

    /// One more series.
    ///
    /// Panics if the value is of another kind (N3) or a label's name is none (N2).
    pub fn push(&mut self, labels: Vec<(&'static str, String)>, value: Value) {
        assert!(value.fits(self.kind), "N3: {} is no {}: {value:?}", self.name, self.kind.name());
        assert!(labels.iter().all(|(name, _)| is_name(name)), "N2: {labels:?}");
        self.series.push(Series { labels, value });
    }

    /// Its name, without what formats add.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it means.
    pub fn help(&self) -> &str {
        &self.help
    }

    /// What it shows.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// The unit that its name ends in.
    pub fn unit(&self) -> Option<&'static str> {
        let ends = |unit: &&str| self.name.strip_suffix(*unit).is_some_and(|it| it.ends_with('_'));
        ["seconds", "bytes", "ratio"].into_iter().find(ends)
    }
}

fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_is_the_end_of_the_name() {
        let unit = |name: &str| Family::new(name, Kind::Gauge, "").unit();
        assert_eq!(unit("read_bytes"), Some("bytes"));
        assert_eq!(unit("nanoseconds"), None);
        assert_eq!(unit("requests"), None);
    }

    #[test]
    #[should_panic(expected = "N3")]
    fn value_of_another_kind_is_a_mistake() {
        drop(Family::new("x", Kind::Counter, "").with(Vec::new(), Value::Real(-1.0)));
    }

    #[test]
    #[should_panic(expected = "N1")]
    fn name_with_what_formats_add_is_a_mistake() {
        Family::new("requests_total", Kind::Counter, "");
    }
}
