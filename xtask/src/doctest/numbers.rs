//! The numbers of studies that pages quote, beside what a quick run of today's program says:
//! `cargo xtask doctest --numbers [STUDY..]`.
//!
//! ```text
//!   Made by `levelhead-lab study run STUDY` at COMMIT.
//!
//!   <!-- numbers: STUDY [OPTION..]
//!   CASE | METRIC | NUMBER           as the section above says it: this text stands there
//!   -->
//!
//!   levelhead-lab study run STUDY --quick [OPTION..] --json --> the row of CASE and METRIC
//!        NUMBER lies within the row's interval, give or take what the page has rounded
//! ```
//!
//! The same seed gives the same bytes: what holds once holds until the program or the page changes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// What a quick run of a study may take, in seconds.
const STUDY_MAX: u32 = 300;

/// Numbers of one study in one section of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quoted {
    /// Where they are listed, from 1.
    pub(super) line: usize,
    pub(super) study: String,
    options: Vec<String>,
    numbers: Vec<Number>,
}

/// A number that a page quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Number {
    case: String,
    metric: String,
    text: String,
}

/// The lists of a page; or the line and what is wrong there.
pub(super) fn quoted(page: &str) -> Result<Vec<Quoted>, String> {
    let lines: Vec<&str> = page.lines().collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(asked) = line.trim().strip_prefix("<!-- numbers: ") else { continue };
        let at_line = |error: &str| format!("{}: {error}", at + 1);
        let mut words = asked.split_whitespace().map(str::to_owned);
        let study = words.next().ok_or_else(|| at_line("expected the name of a study"))?;
        let length = lines[at + 1..].iter().position(|line| line.trim() == "-->");
        let length = length.ok_or_else(|| at_line("a list of numbers without an end"))?;
        let section = section(&lines[..at]);
        if !section.lines().any(|line| is_source(line, &study)) {
            return Err(at_line(&format!("expected a line above: {MADE_BY}{study}` at COMMIT")));
        }
        let mut numbers = Vec::new();
        for (below, line) in lines[at + 1..][..length].iter().enumerate() {
            let number = Number::read(line).filter(|number| number.interval().is_some());
            let number = number.ok_or_else(|| {
                format!("{}: expected CASE | METRIC | NUMBER, got '{line}'", at + 2 + below)
            })?;
            if !section.contains(&number.text) {
                let text = &number.text;
                return Err(format!(
                    "{}: {text} does not stand in the section above",
                    at + 2 + below
                ));
            }
            numbers.push(number);
        }
        all.push(Quoted { line: at + 1, study, options: words.collect(), numbers });
    }
    Ok(all)
}

/// How a line begins that says where a section's numbers come from.
const MADE_BY: &str = "Made by `levelhead-lab study run ";

/// Whether a line names the command and the commit that made a study's numbers.
fn is_source(line: &str, study: &str) -> bool {
    let is_name = |word: &str| word.trim_matches(|c: char| c == '`' || c == ',') == study;
    let is_commit = |word: &str| {
        let word = word.trim_end_matches(['.', ',', ';']);
        word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    line.starts_with(MADE_BY) && line.split(' ').any(is_name) && line.split(' ').any(is_commit)
}

/// What is shown between the last heading and here.
fn section(lines: &[&str]) -> String {
    let start = lines.iter().rposition(|line| line.starts_with('#')).unwrap_or(0);
    let mut is_hidden = false;
    let mut shown = Vec::new();
    for line in &lines[start..] {
        is_hidden |= line.trim().starts_with("<!--");
        if !is_hidden {
            shown.push(*line);
        }
        is_hidden &= !line.trim().ends_with("-->");
    }
    shown.join("\n")
}

impl Number {
    fn read(line: &str) -> Option<Self> {
        let mut parts = line.split(" | ").map(|part| part.trim().to_owned());
        let number = Self { case: parts.next()?, metric: parts.next()?, text: parts.next()? };
        parts.next().is_none().then_some(number)
    }

    /// What the text may have been before it was rounded.
    fn interval(&self) -> Option<(f64, f64)> {
        let text = self.text.replace(',', "");
        let value: f64 = text.strip_prefix('+').unwrap_or(&text).parse().ok()?;
        let (digits, exponent) = match text.split_once('e') {
            Some((digits, exponent)) => (digits, exponent.parse().ok()?),
            None => (text.as_str(), 0),
        };
        let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
        let half = 0.5 * 10f64.powi(exponent - i32::try_from(decimals).ok()?);
        // A hair more, for numbers that lie on the edge.
        let half = half * (1.0 + 1e-9);
        value.is_finite().then_some((value - half, value + half))
    }
}

#[derive(Deserialize)]
struct Said {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    case: String,
    metric: String,
    ours: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl Quoted {
    /// How many numbers hold; or all that do not.
    pub(super) fn check(&self, programs: &Path) -> anyhow::Result<usize> {
        let start = Instant::now();
        let mut study = Command::new("timeout");
        study.arg(STUDY_MAX.to_string()).arg(programs.join("levelhead-lab"));
        study.args(["study", "run", &self.study, "--quick", "--json"]).args(&self.options);
        let output = study.stdin(Stdio::null()).output().context("timeout cannot be run")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} {}: {}", self.study, output.status, error.trim());
        let said: Said = serde_json::from_slice(&output.stdout).context("rows of a study")?;
        let stale: Vec<String> =
            self.numbers.iter().filter_map(|number| number.stale(&said.rows)).collect();
        let (count, seconds) = (self.numbers.len(), start.elapsed().as_secs_f64());
        if !stale.is_empty() {
            bail!("{}:\n  {}", self.study, stale.join("\n  "));
        }
        println!("{}: {count} numbers hold, {seconds:.0} s", self.study);
        Ok(count)
    }
}

impl Number {
    /// What is wrong with it.
    fn stale(&self, rows: &[Row]) -> Option<String> {
        let Self { case, metric, text } = self;
        let Some(row) = rows.iter().find(|row| row.case == *case && row.metric == *metric) else {
            let cases: Vec<&str> = rows.iter().map(|row| row.case.as_str()).collect();
            let has_case = cases.contains(&case.as_str());
            let missing = if has_case { "has no such metric" } else { "is not a case" };
            return Some(format!("{case} | {metric}: {missing}"));
        };
        let (first, last) = self.interval()?;
        // A run of one seed has no interval: the same seed gives the same bytes.
        match (row.low.or(row.ours), row.high.or(row.ours)) {
            (Some(low), Some(high)) if first <= high && low <= last => None,
            (Some(low), Some(high)) => {
                Some(format!("{case} | {metric}: the page has {text}, a quick run {low} to {high}"))
            }
            _ => Some(format!("{case} | {metric}: the page has {text}, a quick run nothing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A study

A mean of 44.6 ms, 1.460e-3 and -33.6 %.

Made by `levelhead-lab study run eraid.fig5 --seed 7` at 410a55b8.

<!-- numbers: eraid.fig5 --seed 7
24 kB, 1 %, normal | mean | 44.6
1 % | closed form | 1.460e-3
-->
";

    #[test]
    fn lists_are_read() {
        let quoted = quoted(PAGE).unwrap();
        let [list] = &quoted[..] else { panic!("{quoted:?}") };
        assert_eq!((list.line, list.study.as_str()), (7, "eraid.fig5"));
        assert_eq!(list.options, ["--seed", "7"]);
        assert_eq!(list.numbers.len(), 2);
        assert_eq!(list.numbers[0].case, "24 kB, 1 %, normal");
    }

    #[test]
    fn what_does_not_stand_in_the_section_is_refused() {
        let error = quoted(&PAGE.replace("A mean of 44.6", "A mean of 45.6")).unwrap_err();
        assert_eq!(error, "8: 44.6 does not stand in the section above");
        for (from, to) in [
            ("| 44.6\n", "| fast\n"),
            ("| mean |", ","),
            ("-->", ""),
            (": eraid.fig5 --seed 7", ": eraid.fig6"),
            (" at 410a55b8", " at last"),
        ] {
            assert!(quoted(&PAGE.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_stale_number_is_seen() {
        let row = |ours, low, high| Row { case: "c".into(), metric: "m".into(), ours, low, high };
        let number =
            |text: &str| Number { case: "c".into(), metric: "m".into(), text: text.into() };
        for (text, low, high, holds) in [
            ("44.6", 44.0, 45.0, true),
            ("44.6", 44.65, 45.0, true),
            ("44.6", 44.66, 45.0, false),
            ("0.19", 33.0, 34.0, false),
            ("1.46e-3", 1.4559e-3, 1.4559e-3, true),
            ("1.46e-3", 1.454e-3, 1.454e-3, false),
            ("3,000,000", 2_999_999.7, 2_999_999.7, true),
            ("-33.6", -33.62, -33.58, true),
            ("+3.2", 3.2, 3.2, true),
        ] {
            let stale = number(text).stale(&[row(None, Some(low), Some(high))]);
            assert_eq!(stale.is_none(), holds, "{text} {low} {stale:?}");
        }
        assert!(number("1").stale(&[row(None, None, None)]).is_some());
        assert!(number("1").stale(&[row(Some(2.0), None, None)]).is_some());
        assert!(number("1").stale(&[row(Some(1.2), None, None)]).is_none());
        assert!(number("1").stale(&[]).is_some());
    }

    #[test]
    fn the_pages_quote_what_stands_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for page in super::super::all_pages(root).unwrap() {
            let text = std::fs::read_to_string(&page).unwrap();
            if let Err(error) = quoted(&text) {
                panic!("{}:{error}", page.display());
            }
        }
    }
}
