//! What the demo shows.

use std::time::Duration;

use levelhead_report::{Column, Figure, Page, Table, json};
use levelhead_units::{Bytes, Nanos};
use serde::Serialize;

use super::predict::Prediction;
use super::{Demo, Row, Sample, compare};
use levelhead_app::{AppError, Show, VERSION, files};

/// What the demo has shown.
#[derive(Debug)]
pub struct Demonstrated {
    seed: u64,
    length: Duration,
    bed: String,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Json {
    seed: u64,
    rows: Vec<JsonRow>,
}

#[derive(Serialize)]
struct JsonRow {
    scenario: &'static str,
    policy: String,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    verified_bytes: u64,
    #[serde(flatten)]
    comparison: Option<JsonComparison>,
}

/// Present only where the comparison was asked for.
#[derive(Serialize)]
struct JsonComparison {
    predicted_mean_ms: f64,
    predicted_p50_ms: f64,
    predicted_p99_ms: f64,
    agrees: bool,
}

impl Demonstrated {
    pub(super) fn new(ask: &Demo, bed: String, rows: Vec<Row>) -> Self {
        Self { seed: ask.seed, length: ask.length, bed, rows }
    }

    pub(super) fn write_report(&self, ask: &Demo) -> Result<(), AppError> {
        let Some(path) = &ask.report else { return Ok(()) };
        let page = self.page().to_html();
        files::write_whole(path, |out| out.write_all(page.as_bytes()))
    }

    fn table(&self) -> Table {
        let left = ["scenario", "policy"].map(Column::left);
        let names = ["reads", "mean ms", "p50 ms", "p99 ms", "unfinished", "verified"];
        let mut table = Table::new(left.into_iter().chain(names.map(Column::right)));
        for row in &self.rows {
            let summary = &row.measured.summary;
            let figures = [summary.mean, summary.p50, summary.p99]
                .map(|time| format!("{:.1}", time.as_millis_f64()));
            let mut cells = vec![row.scenario.to_owned(), row.policy.to_string()];
            cells.push(summary.count.to_string());
            cells.extend(figures);
            cells.push(row.measured.unfinished.to_string());
            cells.push(format!("{:.1} MiB", row.verified_bytes as f64 / (1 << 20) as f64));
            table.push(cells);
        }
        table
    }

    /// What the default policy has made of each trouble, in a sentence.
    fn sentences(&self) -> Vec<String> {
        let pairs = self.rows.windows(2).filter(|pair| pair[0].scenario == pair[1].scenario);
        pairs
            .map(|pair| {
                let [before, after] = [&pair[0], &pair[1]].map(|row| row.measured.summary);
                let percent = |before: Nanos, after: Nanos| {
                    (after.as_secs_f64() / before.as_secs_f64() - 1.0) * 100.0
                };
                format!(
                    "{}: {} against normal: mean {:+.0} %, p99 {:+.0} %",
                    pair[0].scenario,
                    pair[1].policy,
                    percent(before.mean, after.mean),
                    percent(before.p99, after.p99)
                )
            })
            .collect()
    }

    /// The page with the distributions of both worlds, if both are there.
    fn with_comparison(&self, mut page: Page) -> Page {
        let Some(table) = compare::table(&self.rows) else { return page };
        page = page.table("Real time against virtual time", table);
        for sentence in compare::sentences(&self.rows) {
            page = page.paragraph(sentence);
        }
        for row in &self.rows {
            let Some(predicted) = &row.predicted else { continue };
            let (measured, predicted) = (row.measured.millis(), predicted.all.millis());
            let series = [("real time", measured.as_slice()), ("virtual time", &predicted)];
            page = page.figure(Figure::cdf(name(row), "latency (ms)", &series));
        }
        page
    }

    pub(crate) fn page(&self) -> Page {
        let values: Vec<(String, Vec<f64>)> =
            self.rows.iter().map(|row| (name(row), row.measured.millis())).collect();
        let figure = |title: &str, scenario: &str| {
            let picked = values
                .iter()
                .filter(|(name, _)| name.starts_with(scenario) || name.starts_with("healthy"));
            let series: Vec<(&str, &[f64])> =
                picked.map(|(name, values)| (name.as_str(), values.as_slice())).collect();
            Figure::cdf(title, "latency (ms)", &series)
        };
        let facts = [("seed", self.seed.to_string()), ("program", format!("levelhead {VERSION}"))];
        let mut page = Page::new("Levelhead demo")
            .paragraph(self.bed.as_str())
            .facts(facts)
            .table("Latency of 80 kB reads", self.table())
            .figure(figure("2 % of sector reads fail on every drive", "retries"))
            .figure(figure("One drive ten times slower", "slow-drive"));
        for sentence in self.sentences() {
            page = page.paragraph(sentence);
        }
        self.with_comparison(page)
    }
}

/// The page with synthetic numbers.
#[cfg(feature = "specimens")]
pub fn specimen() -> Page {
    use levelhead_array::Policy;
    use levelhead_stats::Summary;

    let latencies = |body: u64, step: u64| {
        Sample::of((0..400).map(|at| Nanos::from_millis(body + at * at * step / 900)).collect(), 0)
    };
    let row = |(idx, (scenario, policy)): (usize, (&'static str, Policy))| {
        let (body, step) = (12 + 3 * idx as u64, 1 + idx as u64);
        let all = latencies(body + 1, step);
        Row {
            scenario,
            policy,
            measured: latencies(body, step),
            verified_bytes: 400 * 81_920,
            predicted: Some(Prediction { runs: vec![all.summary], all }),
            lateness: Summary::default(),
        }
    };
    let rows = [
        ("healthy", Policy::Normal),
        ("retries", Policy::Normal),
        ("retries", Policy::DEFAULT),
        ("slow-drive", Policy::Normal),
        ("slow-drive", Policy::DEFAULT),
    ];
    let rows = rows.into_iter().enumerate().map(row).collect();
    let length = Duration::from_secs(12);
    let ask = Demo { seed: 7, length, folder: None, report: None };
    Demonstrated::new(&ask, "Six emulated drives, as the demo has them.".to_owned(), rows).page()
}

fn name(row: &Row) -> String {
    format!("{}, {}", row.scenario, row.policy)
}

fn comparison(row: &Row, predicted: &Prediction) -> JsonComparison {
    let Sample { summary, .. } = &predicted.all;
    JsonComparison {
        predicted_mean_ms: summary.mean.as_millis_f64(),
        predicted_p50_ms: summary.p50.as_millis_f64(),
        predicted_p99_ms: summary.p99.as_millis_f64(),
        agrees: compare::agree(&row.measured.summary, summary),
    }
}

impl Show for Demonstrated {
    fn text(&self) -> String {
        let (seed, bed) = (self.seed, &self.bed);
        let verified: u64 = self.rows.iter().map(|row| row.verified_bytes).sum();
        let mut text = format!("seed: {seed}\n{bed}\n\n{}", self.table().to_text());
        text.push_str(&format!(
            "\n80 kB reads in runs of {} s. retries: 2 % of sector reads fail on every drive, a retry \
             takes 3 rotations; Poisson, 8 ms.\nslow-drive: one drive takes ten times as long; closed \
             loop, 4 outstanding. Unfinished reads count with their age.\nAll {verified} bytes read \
             ({:.0} MiB) are what was written.\n",
            self.length.as_secs(),
            Bytes::new(verified).get() as f64 / (1 << 20) as f64,
        ));
        for sentence in self.sentences() {
            text.push_str(&format!("{sentence}\n"));
        }
        if let Some(table) = compare::table(&self.rows) {
            text.push_str(&format!("\nReal time against virtual time:\n\n{}\n", table.to_text()));
        }
        for sentence in compare::sentences(&self.rows) {
            text.push_str(&format!("{sentence}\n"));
        }
        text
    }

    fn json(&self) -> String {
        let row = |row: &Row| JsonRow {
            scenario: row.scenario,
            policy: row.policy.to_string(),
            mean_ms: row.measured.summary.mean.as_millis_f64(),
            p50_ms: row.measured.summary.p50.as_millis_f64(),
            p99_ms: row.measured.summary.p99.as_millis_f64(),
            verified_bytes: row.verified_bytes,
            comparison: row.predicted.as_ref().map(|predicted| comparison(row, predicted)),
        };
        let value = Json { seed: self.seed, rows: self.rows.iter().map(row).collect() };
        json::pretty(&value).expect("numbers and names are JSON")
    }
}

#[cfg(test)]
mod tests {
    use levelhead_array::Policy;
    use levelhead_stats::Summary;
    use serde_json::Value;

    use super::*;

    fn sample(millis: u64) -> Sample {
        Sample::of(vec![Nanos::from_millis(millis); 10], 0)
    }

    fn demonstrated(predicted: Option<Sample>) -> Demonstrated {
        let row = Row {
            scenario: "healthy",
            policy: Policy::Normal,
            measured: sample(100),
            verified_bytes: 819_200,
            predicted: predicted.map(|all| Prediction { runs: vec![all.summary], all }),
            lateness: Summary::default(),
        };
        let length = Duration::from_secs(1);
        let ask = Demo { seed: 7, length, folder: None, report: None };
        Demonstrated::new(&ask, "a bed".to_owned(), vec![row])
    }

    fn keys(demonstrated: &Demonstrated) -> Vec<String> {
        let value: Value = serde_json::from_str(&demonstrated.json()).unwrap();
        value["rows"][0].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn prediction_shows_where_there_is_one_and_nowhere_else() {
        let (plain, compared) = (demonstrated(None), demonstrated(Some(sample(120))));
        let usual = ["mean_ms", "p50_ms", "p99_ms", "policy", "scenario", "verified_bytes"];
        assert_eq!(keys(&plain), usual);
        let added = ["agrees", "predicted_mean_ms", "predicted_p50_ms", "predicted_p99_ms"];
        let mut expected = [added.as_slice(), &usual].concat();
        expected.sort_unstable();
        assert_eq!(keys(&compared), expected);
        for (demonstrated, tables, figures) in [(plain, 0, 2), (compared, 1, 3)] {
            let title = "Real time against virtual time";
            assert_eq!(demonstrated.text().matches(title).count(), tables);
            let page = demonstrated.page().to_html();
            assert_eq!(page.matches(title).count(), tables);
            assert_eq!(page.matches("class=\"lh-fig\"").count(), figures);
        }
    }
}
