//! The usual figures of a sample of latencies.

use levelhead_units::Nanos;

/// Mean and quantiles of a sample. Quantiles are exact: nothing is binned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many values.
    pub count: u64,
    /// Their mean, rounded down to a nanosecond.
    pub mean: Nanos,
    /// The median.
    pub p50: Nanos,
    /// 90 of 100 are at most this.
    pub p90: Nanos,
    /// 99 of 100 are at most this.
    pub p99: Nanos,
    /// 999 of 1000 are at most this.
    pub p999: Nanos,
    /// The largest.
    pub max: Nanos,
}

impl Summary {
    /// The figures of `values`, which is left sorted. All zero for an empty sample.
    pub fn of(values: &mut [Nanos]) -> Self {
        values.sort_unstable();
        let Some(&max) = values.last() else { return Self::default() };
        let total: u128 = values.iter().map(|value| u128::from(value.get())).sum();
        let mean = u64::try_from(total / values.len() as u128).expect("a mean is at most the max");
        Self {
            count: values.len() as u64,
            mean: Nanos::new(mean),
            p50: quantile_of_sorted(values, 0.5),
            p90: quantile_of_sorted(values, 0.9),
            p99: quantile_of_sorted(values, 0.99),
            p999: quantile_of_sorted(values, 0.999),
            max,
        }
    }
}

/// The smallest value that at least a share `q` of the sample does not exceed: the value of rank
/// `ceil(q * count)`.
///
/// Panics if the sample is empty or `q` is outside 0 to 1.
pub fn quantile_of_sorted(sorted: &[Nanos], q: f64) -> Nanos {
    assert!(!sorted.is_empty(), "an empty sample has no quantiles");
    assert!((0.0..=1.0).contains(&q), "{q} is not a share");
    // The tolerance undoes the rounding of products such as 0.99 * 200 to just above 198.
    let rank = (q * sorted.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    sorted[rank - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_members_of_the_sample_at_the_right_rank() {
        let mut values: Vec<Nanos> = (1..=200).rev().map(Nanos::new).collect();
        let summary = Summary::of(&mut values);
        assert_eq!(summary.p50, Nanos::new(100));
        assert_eq!(summary.p90, Nanos::new(180));
        assert_eq!(summary.p99, Nanos::new(198));
        assert_eq!(summary.p999, Nanos::new(200));
        assert_eq!(summary.max, Nanos::new(200));
        assert_eq!(summary.mean, Nanos::new(100));
        assert_eq!(quantile_of_sorted(&values, 0.0), Nanos::new(1));
    }

    #[test]
    fn empty_sample_is_all_zero() {
        assert_eq!(Summary::of(&mut []), Summary::default());
    }
}
