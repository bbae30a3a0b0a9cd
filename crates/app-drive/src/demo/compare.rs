//! Real time beside virtual time: does the model say what the emulation does?

use levelhead_report::{Column, Table};
use levelhead_stats::Summary;
use levelhead_units::Nanos;

use super::Row;
use super::predict::{BEGINNINGS, Prediction};

/// The largest difference, as a share, at which two means or two medians agree.
const CENTRE: f64 = 0.10;

/// The same for two 99th percentiles: of a run's 1500 reads, 15 are slower.
const TAIL: f64 = 0.15;

/// What is compared.
struct Figure {
    name: &'static str,
    of: fn(&Summary) -> Nanos,
    tolerance: f64,
}

const FIGURES: [Figure; 3] = [
    Figure { name: "mean", of: |summary| summary.mean, tolerance: CENTRE },
    Figure { name: "p50", of: |summary| summary.p50, tolerance: CENTRE },
    Figure { name: "p99", of: |summary| summary.p99, tolerance: TAIL },
];

impl Figure {
    /// What was measured, in units of what was predicted.
    fn ratio(&self, measured: &Summary, predicted: &Summary) -> f64 {
        (self.of)(measured).get() as f64 / (self.of)(predicted).get() as f64
    }

    fn agrees(&self, measured: &Summary, predicted: &Summary) -> bool {
        let [measured, predicted] = [measured, predicted].map(|summary| (self.of)(summary).get());
        measured.abs_diff(predicted) as f64 <= self.tolerance * predicted as f64
    }
}

/// Whether all figures agree.
pub(super) fn agree(measured: &Summary, predicted: &Summary) -> bool {
    FIGURES.iter().all(|figure| figure.agrees(measured, predicted))
}

/// Rows with a prediction, and their predictions.
fn predicted(rows: &[Row]) -> impl Iterator<Item = (&Row, &Prediction)> {
    rows.iter().filter_map(|row| Some((row, row.predicted.as_ref()?)))
}

/// Each figure of each run beside its prediction; nothing where nothing was predicted.
pub(super) fn table(rows: &[Row]) -> Option<Table> {
    predicted(rows).next()?;
    let left = ["scenario", "policy"].map(Column::left);
    let columns =
        |figure: &Figure| [format!("{} ms", figure.name), "virtual".into(), "ratio".into()];
    let figures = FIGURES.iter().flat_map(columns).map(Column::right);
    let agree = std::iter::once(Column::left("agree"));
    let mut table = Table::new(left.into_iter().chain(figures).chain(agree));
    for (row, prediction) in predicted(rows) {
        let (measured, predicted) = (&row.measured.summary, &prediction.all.summary);
        let mut cells = vec![row.scenario.to_owned(), row.policy.to_string()];
        for figure in &FIGURES {
            cells.extend([measured, predicted].map(|summary| millis((figure.of)(summary))));
            let mark = if figure.agrees(measured, predicted) { "" } else { "!" };
            cells.push(format!("{:.3}{mark}", figure.ratio(measured, predicted)));
        }
        cells.push(if self::agree(measured, predicted) { "yes" } else { "no" }.to_owned());
        table.push(cells);
    }
    Some(table)
}

/// What comes of it, in sentences; none where nothing was predicted.
pub(super) fn sentences(rows: &[Row]) -> Vec<String> {
    let verdicts: Vec<bool> = predicted(rows)
        .map(|(row, prediction)| agree(&row.measured.summary, &prediction.all.summary))
        .collect();
    if verdicts.is_empty() {
        return Vec::new();
    }
    let (good, all) = (verdicts.iter().filter(|&&agrees| agrees).count(), verdicts.len());
    let (centre, tail) = (CENTRE * 100.0, TAIL * 100.0);
    let mut sentences = vec![format!(
        "{good} of {all} pairs agree: mean and p50 within {centre:.0} %, p99 within {tail:.0} %."
    )];
    sentences.extend(predicted(rows).flat_map(|(row, prediction)| disagreements(row, prediction)));
    sentences.push(format!(
        "virtual: the same reads, array, drives and failures in virtual time, {BEGINNINGS} times from \
         as many places of the platters."
    ));
    let late = |of: fn(&Summary) -> Nanos| rows.iter().map(|row| of(&row.lateness)).max();
    let (p99, most) = (late(|summary| summary.p99), late(|summary| summary.max));
    sentences.push(format!(
        "This machine woke threads up to {} ms late (p99 of a run: up to {} ms); in virtual time \
         nothing is.",
        millis(most.unwrap_or_default()),
        millis(p99.unwrap_or_default())
    ));
    sentences
}

/// Each figure that does not agree, beside what single runs in virtual time give, the part of chance, and
/// how late threads were, the machine's part.
fn disagreements(row: &Row, prediction: &Prediction) -> Vec<String> {
    let (measured, predicted) = (&row.measured.summary, &prediction.all.summary);
    let apart = FIGURES.iter().filter(|figure| !figure.agrees(measured, predicted));
    apart
        .map(|figure| {
            let of_runs = || prediction.runs.iter().map(figure.of);
            let (low, high) = (of_runs().min(), of_runs().max());
            format!(
                "{}, {}: {} {} ms is {:+.0} % off; single runs in virtual time give {} to {} ms, and \
                 threads woke up to {} ms late (p99 {} ms).",
                row.scenario,
                row.policy,
                figure.name,
                millis((figure.of)(measured)),
                (figure.ratio(measured, predicted) - 1.0) * 100.0,
                millis(low.unwrap_or_default()),
                millis(high.unwrap_or_default()),
                millis(row.lateness.max),
                millis(row.lateness.p99)
            )
        })
        .collect()
}

fn millis(time: Nanos) -> String {
    format!("{:.1}", time.as_millis_f64())
}

#[cfg(test)]
mod tests {
    use levelhead_array::Policy;

    use super::super::Sample;
    use super::*;

    /// A hundred reads of which `slow` took as long as that, and the others as long as `fast`.
    fn sample(fast: u64, slow: usize, slowest: u64) -> Sample {
        let times = (0..100).map(|at| if at < slow { slowest } else { fast });
        Sample::of(times.map(Nanos::from_millis).collect(), 0)
    }

    /// With a prediction from two runs, one of which took 50 ms for everything.
    fn row(measured: Sample, predicted: Option<Sample>) -> Row {
        let prediction = |all: Sample| {
            let runs = vec![all.summary, sample(50, 0, 0).summary];
            Prediction { all, runs }
        };
        Row {
            scenario: "healthy",
            policy: Policy::Normal,
            measured,
            verified_bytes: 0,
            predicted: predicted.map(prediction),
            lateness: Summary::of(&mut [250, 9_000].map(Nanos::from_micros)),
        }
    }

    #[test]
    fn every_figure_has_its_own_limit() {
        let base = sample(100, 2, 300);
        for (measured, expected) in [
            (base.clone(), true),
            (sample(110, 2, 330), true),
            (sample(111, 2, 300), false),
            (sample(90, 2, 300), true),
            (sample(89, 2, 300), false),
            (sample(100, 2, 345), true),
            (sample(100, 2, 346), false),
            (sample(100, 2, 254), false),
        ] {
            assert_eq!(agree(&measured.summary, &base.summary), expected, "{:?}", measured.summary);
        }
        // The mean alone: by the many slow ones, which are no part of the median.
        assert!(!agree(&sample(100, 10, 300).summary, &sample(100, 20, 300).summary));
    }

    #[test]
    fn what_disagrees_is_marked_and_counted() {
        let base = sample(100, 2, 300);
        let rows = [
            row(base.clone(), Some(base.clone())),
            row(sample(100, 2, 400), Some(base.clone())),
            row(base, None),
        ];
        let text = table(&rows).unwrap().to_text();
        assert_eq!(text.matches("1.000 ").count() + text.matches("1.019 ").count(), 5, "{text}");
        assert_eq!(text.matches("1.333!").count(), 1, "{text}");
        let sentences = sentences(&rows);
        assert_eq!(sentences[0], "1 of 2 pairs agree: mean and p50 within 10 %, p99 within 15 %.");
        assert_eq!(
            sentences[1],
            "healthy, normal: p99 400.0 ms is +33 % off; single runs in virtual time give 50.0 to \
             300.0 ms, and threads woke up to 9.0 ms late (p99 9.0 ms)."
        );
        assert!(sentences[3].contains("up to 9.0 ms late"), "{}", sentences[3]);
    }

    #[test]
    fn without_predictions_there_is_nothing_to_compare() {
        let rows = [row(sample(100, 2, 300), None)];
        assert!(table(&rows).is_none());
        assert!(sentences(&rows).is_empty());
    }
}
