//! Families as text.
//!
//! The two formats differ in what this table says; all else is the same.
//!
//! | | OpenMetrics 1.0 | text 0.0.4 |
//! |---|---|---|
//! | name in `TYPE` and `HELP` of a counter, an info | without `_total`, `_info` | with it |
//! | `info`, `stateset` | types of their own | gauges |
//! | `UNIT` | where there is one | |
//! | `"` in a help text | escaped | as it is |
//! | end | `# EOF` | |

use std::fmt::Write;

use crate::{Family, Kind, Series, Value};

/// How families are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format 0.0.4 of Prometheus.
    Prometheus,
}

impl Format {
    /// Its type in HTTP.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Families to be written.
#[derive(Clone, Copy, Debug)]
pub struct Exposition<'a>(pub &'a [Family]);

impl Exposition<'_> {
    /// All of it.
    pub fn text(&self, format: Format) -> String {
        let mut text = String::new();
        for family in self.0 {
            head(&mut text, family, format);
            for series in &family.series {
                samples(&mut text, family, series);
            }
        }
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

fn head(text: &mut String, family: &Family, format: Format) {
    let (suffix, kind) = match (format, family.kind) {
        (Format::OpenMetrics, kind) => ("", kind.name()),
        (Format::Prometheus, Kind::Counter) => ("_total", "counter"),
        (Format::Prometheus, Kind::Info) => ("_info", "gauge"),
        (Format::Prometheus, Kind::StateSet) => ("", "gauge"),
        (Format::Prometheus, kind @ (Kind::Gauge | Kind::Histogram | Kind::Summary)) => {
            ("", kind.name())
        }
    };
    let name = format!("{}{suffix}", family.name);
    line(text, format_args!("# TYPE {name} {kind}"));
    if let (Format::OpenMetrics, Some(unit)) = (format, family.unit()) {
        line(text, format_args!("# UNIT {name} {unit}"));
    }
    let mut help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
    if format == Format::OpenMetrics {
        help = help.replace('"', "\\\"");
    }
    line(text, format_args!("# HELP {name} {help}"));
}

fn samples(text: &mut String, Family { name, kind, .. }: &Family, series: &Series) {
    let labels = &series.labels;
    match &series.value {
        Value::Whole(_) | Value::Real(_) | Value::Labels => {
            let suffix = match kind {
                Kind::Counter => "_total",
                Kind::Info => "_info",
                Kind::Gauge | Kind::StateSet | Kind::Histogram | Kind::Summary => "",
            };
            let value = match &series.value {
                Value::Whole(value) => value.to_string(),
                Value::Real(value) => number(*value),
                _ => "1".to_owned(),
            };
            sample(text, name, suffix, labels, None, &value);
        }
        Value::OneOf { states, is } => {
            for state in *states {
                let value = if state == is { "1" } else { "0" };
                sample(text, name, "", labels, Some((name, state)), value);
            }
        }
        Value::Spread { bounds, counts, sum } => {
            let mut count = 0;
            let bounds = bounds.iter().copied().chain([f64::INFINITY]);
            for (bound, more) in bounds.zip(counts) {
                count += more;
                let bound = number(bound);
                sample(text, name, "_bucket", labels, Some(("le", &bound)), &count.to_string());
            }
            sample(text, name, "_sum", labels, None, &number(*sum));
            sample(text, name, "_count", labels, None, &count.to_string());
        }
        Value::Quantiles(quantiles) => {
            for (share, value) in quantiles {
                let share = number(*share);
                sample(text, name, "", labels, Some(("quantile", &share)), &number(*value));
            }
        }
    }
}

fn sample(
    text: &mut String,
    name: &str,
    suffix: &str,
    labels: &[(&'static str, String)],
    own: Option<(&str, &str)>,
    value: &str,
) {
    let labels = labels.iter().map(|(name, value)| (*name, value.as_str())).chain(own);
    let labels: Vec<String> = labels.map(|(name, value)| label(name, value)).collect();
    let labels =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    line(text, format_args!("{name}{suffix}{labels} {value}"));
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

/// A number as both formats read it, in the canonical form of bounds: `1.0`, `0.001`, `+Inf`.
fn number(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value => format!("{value:?}"),
    }
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(text, "{what}").expect("a string takes everything");
}

/// Every kind, with labels that need care.
#[cfg(test)]
pub(crate) fn every_kind() -> Vec<Family> {
    let odd = || vec![("path", "a \"b\"\\c\nd".to_owned())];
    let states = &["good", "bad"];
    vec![
        Family::new("x_reads", Kind::Counter, "Reads, \"all\" of them.")
            .with(odd(), Value::Whole(u64::MAX))
            .with(vec![("path", "b".to_owned())], Value::Whole(0)),
        Family::new("x_busy_seconds", Kind::Counter, "Time.").with(vec![], Value::Real(0.25)),
        Family::new("x_used_ratio", Kind::Gauge, "A share.").with(vec![], Value::Real(1.0)),
        Family::new("x_odd", Kind::Gauge, "A back\\slash,\na line.")
            .with(odd(), Value::Real(f64::NAN)),
        Family::new("x_drive", Kind::Info, "What it is.").with(odd(), Value::Labels),
        Family::new("x_state", Kind::StateSet, "How it is.")
            .with(odd(), Value::OneOf { states, is: "bad" }),
        Family::new("x_wait_seconds", Kind::Histogram, "How long.").with(
            odd(),
            Value::Spread { bounds: vec![0.0001, 0.5, 1.0], counts: vec![1, 0, 2, 4], sum: 17.5 },
        ),
        Family::new("x_recent_seconds", Kind::Summary, "How long lately.")
            .with(vec![], Value::Quantiles(vec![(0.5, 0.001), (0.99, 2e-9)])),
        Family::new("x_nothing", Kind::Gauge, "Without series."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_written_as_openmetrics() {
        let expected = "\
# TYPE x_reads counter
# HELP x_reads Reads, \\\"all\\\" of them.
x_reads_total{path=\"a \\\"b\\\"\\\\c\\nd\"} 18446744073709551615
x_reads_total{path=\"b\"} 0
# TYPE x_busy_seconds counter
# UNIT x_busy_seconds seconds
# HELP x_busy_seconds Time.
x_busy_seconds_total 0.25
# TYPE x_used_ratio gauge
# UNIT x_used_ratio ratio
# HELP x_used_ratio A share.
x_used_ratio 1.0
# TYPE x_odd gauge
# HELP x_odd A back\\\\slash,\\na line.
x_odd{path=\"a \\\"b\\\"\\\\c\\nd\"} NaN
# TYPE x_drive info
# HELP x_drive What it is.
x_drive_info{path=\"a \\\"b\\\"\\\\c\\nd\"} 1
# TYPE x_state stateset
# HELP x_state How it is.
x_state{path=\"a \\\"b\\\"\\\\c\\nd\",x_state=\"good\"} 0
x_state{path=\"a \\\"b\\\"\\\\c\\nd\",x_state=\"bad\"} 1
# TYPE x_wait_seconds histogram
# UNIT x_wait_seconds seconds
# HELP x_wait_seconds How long.
x_wait_seconds_bucket{path=\"a \\\"b\\\"\\\\c\\nd\",le=\"0.0001\"} 1
x_wait_seconds_bucket{path=\"a \\\"b\\\"\\\\c\\nd\",le=\"0.5\"} 1
x_wait_seconds_bucket{path=\"a \\\"b\\\"\\\\c\\nd\",le=\"1.0\"} 3
x_wait_seconds_bucket{path=\"a \\\"b\\\"\\\\c\\nd\",le=\"+Inf\"} 7
x_wait_seconds_sum{path=\"a \\\"b\\\"\\\\c\\nd\"} 17.5
x_wait_seconds_count{path=\"a \\\"b\\\"\\\\c\\nd\"} 7
# TYPE x_recent_seconds summary
# UNIT x_recent_seconds seconds
# HELP x_recent_seconds How long lately.
x_recent_seconds{quantile=\"0.5\"} 0.001
x_recent_seconds{quantile=\"0.99\"} 2e-9
# TYPE x_nothing gauge
# HELP x_nothing Without series.
# EOF
";
        assert_eq!(Exposition(&every_kind()).text(Format::OpenMetrics), expected);
    }

    #[test]
    fn older_format_has_suffixes_in_its_heads_gauges_for_states_and_no_end() {
        let text = Exposition(&every_kind()).text(Format::Prometheus);
        for line in [
            "# TYPE x_reads_total counter",
            "# HELP x_reads_total Reads, \"all\" of them.",
            "# TYPE x_drive_info gauge",
            "# TYPE x_state gauge",
            "x_drive_info{path=\"a \\\"b\\\"\\\\c\\nd\"} 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is not in {text}");
        }
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    }
}
