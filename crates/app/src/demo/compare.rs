//! Real time beside virtual time: does the model say what the emulation does?

use levelhead_report::{Column, Table};
use levelhead_stats::Summary;
use levelhead_units::Nanos;

use super::predict::BEGINNINGS;
use super::{Row, Sample};

/// So far apart may two means, or two medians, be and still agree.
const CENTRE: f64 = 0.10;

/// So far apart may two 99th percentiles be: of a run's 1500 reads, 15 are slower.
const TAIL: f64 = 0.15;

/// A figure of both worlds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    measured: Nanos,
    predicted: Nanos,
    tolerance: f64,
}

impl Pair {
    /// What was measured, in units of what was predicted.
    fn ratio(self) -> f64 {
        self.measured.get() as f64 / self.predicted.get() as f64
    }

    fn agrees(self) -> bool {
        let apart = self.measured.get().abs_diff(self.predicted.get());
        apart as f64 <= self.tolerance * self.predicted.get() as f64
    }
}

/// Mean, p50 and p99.
fn pairs(measured: &Summary, predicted: &Summary) -> [Pair; 3] {
    let pair = |measured, predicted, tolerance| Pair { measured, predicted, tolerance };
    [
        pair(measured.mean, predicted.mean, CENTRE),
        pair(measured.p50, predicted.p50, CENTRE),
        pair(measured.p99, predicted.p99, TAIL),
    ]
}

/// Whether all figures of two samples agree.
pub(super) fn agree(measured: &Sample, predicted: &Sample) -> bool {
    pairs(&measured.summary, &predicted.summary).into_iter().all(Pair::agrees)
}

/// Rows with a prediction, and their predictions.
fn predicted(rows: &[Row]) -> impl Iterator<Item = (&Row, &Sample)> {
    rows.iter().filter_map(|row| Some((row, row.predicted.as_ref()?)))
}

/// Each figure of each run beside its prediction; nothing where nothing was predicted.
pub(super) fn table(rows: &[Row]) -> Option<Table> {
    let figures = ["mean ms", "p50 ms", "p99 ms"];
    let figures = figures.iter().flat_map(|&name| [name, "virtual", "ratio"]).map(Column::right);
    let left = ["scenario", "policy"].map(Column::left);
    let agree = std::iter::once(Column::left("agree"));
    let mut table = Table::new(left.into_iter().chain(figures).chain(agree));
    let mut count = 0;
    for (row, predicted) in predicted(rows) {
        let mut cells = vec![row.scenario.to_owned(), row.policy.to_string()];
        for pair in pairs(&row.measured.summary, &predicted.summary) {
            cells.extend(
                [pair.measured, pair.predicted].map(|time| format!("{:.1}", time.as_millis_f64())),
            );
            let mark = if pair.agrees() { "" } else { "!" };
            cells.push(format!("{:.3}{mark}", pair.ratio()));
        }
        cells.push(if self::agree(&row.measured, predicted) { "yes" } else { "no" }.to_owned());
        table.push(cells);
        count += 1;
    }
    (count > 0).then_some(table)
}

/// What comes of it, in sentences; none where nothing was predicted.
pub(super) fn sentences(rows: &[Row]) -> Vec<String> {
    let all = predicted(rows).count();
    if all == 0 {
        return Vec::new();
    }
    let good = predicted(rows).filter(|(row, other)| agree(&row.measured, other)).count();
    let (centre, tail) = (CENTRE * 100.0, TAIL * 100.0);
    let mut sentences = vec![
        format!(
            "{good} of {all} pairs agree: mean and p50 within {centre:.0} %, p99 within {tail:.0} %."
        ),
        format!(
            "virtual: the same reads, array, drives and failures in virtual time, {BEGINNINGS} times \
             from as many places of the platters."
        ),
    ];
    let mut late: Vec<Nanos> = rows.iter().flat_map(|row| row.lateness.iter().copied()).collect();
    let late = Summary::of(&mut late);
    sentences.push(format!(
        "This machine sent reads {:.2} ms after they were due (p50; p99 {:.2} ms, most {:.1} ms); \
         virtual time is never late.",
        late.p50.as_millis_f64(),
        late.p99.as_millis_f64(),
        late.max.as_millis_f64()
    ));
    sentences
}

#[cfg(test)]
mod tests {
    use levelhead_array::Policy;

    use super::*;

    /// A hundred reads of which `slow` took as long as that, and the others 100 ms.
    fn sample(fast: u64, slow: usize, slowest: u64) -> Sample {
        let times = (0..100).map(|at| if at < slow { slowest } else { fast });
        Sample::of(times.map(Nanos::from_millis).collect(), 0)
    }

    fn row(measured: Sample, predicted: Option<Sample>) -> Row {
        Row {
            scenario: "healthy",
            policy: Policy::Normal,
            measured,
            verified_bytes: 0,
            predicted,
            lateness: vec![Nanos::from_micros(250)],
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
            assert_eq!(agree(&measured, &base), expected, "{:?}", measured.summary);
        }
        // The mean alone: by the many slow ones, which are no part of the median.
        assert!(!agree(&sample(100, 10, 300), &sample(100, 20, 300)));
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
        assert!(sentences[2].contains("0.25 ms after"), "{}", sentences[2]);
    }

    #[test]
    fn without_predictions_there_is_nothing_to_compare() {
        let rows = [row(sample(100, 2, 300), None)];
        assert!(table(&rows).is_none());
        assert!(sentences(&rows).is_empty());
    }
}
