//! Confidence intervals.

/// An estimate and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom, from the standard tables.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The 95 % interval of the mean of independent values, such as one per seed, by Student's t. A
/// single value has an interval without ends.
///
/// Panics if there is no value.
pub fn mean_interval(values: &[f64]) -> Interval {
    assert!(!values.is_empty(), "no values, no mean");
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() == 1 {
        return Interval { mean, low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // Beyond 30 degrees the normal limit with its first correction is within 0.001 of the table.
    let freedom = n - 1.0;
    let t = T_95.get(values.len() - 2).copied().unwrap_or(1.960 + 2.372 / freedom);
    let half = t * (variance / n).sqrt();
    Interval { mean, low: mean - half, high: mean + half }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    #[test]
    fn interval_holds_the_mean_as_often_as_it_says() {
        let mut rng = Streams::new(11).stream("intervals");
        let held = (0..4_000)
            .filter(|_| {
                // Sums of twelve uniform draws are close enough to normal for this.
                let values: Vec<f64> =
                    (0..5).map(|_| (0..12).map(|_| rng.unit()).sum::<f64>()).collect();
                let interval = mean_interval(&values);
                interval.low <= 6.0 && 6.0 <= interval.high
            })
            .count();
        assert!((3_740..=3_860).contains(&held), "{held} of 4000, expected 3800");
    }

    #[test]
    fn one_value_says_nothing_about_its_spread() {
        let interval = mean_interval(&[3.0]);
        assert_eq!(interval.low.to_bits(), f64::NEG_INFINITY.to_bits());
        assert_eq!(interval.high.to_bits(), f64::INFINITY.to_bits());
    }
}
