//! The middle of values and how far they lie from it, for what a few of them must not decide: a median and a median deviation move
//! little for outliers.

/// The median: of an even number of values the mean of the two in the middle. The values are left in another order.
///
/// # Panics
///
/// For no value, and for one that is not a number.
pub fn median_of(values: &mut [f64]) -> f64 {
    assert!(!values.is_empty(), "no values have no median");
    let (middle, is_odd) = (values.len() / 2, values.len() % 2 == 1);
    let by_value = |a: &f64, b: &f64| a.partial_cmp(b).expect("what has a median is a number");
    let (below, upper, _) = values.select_nth_unstable_by(middle, by_value);
    let upper = *upper;
    if is_odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(lower, upper)
}

/// The median of values in rising order.
///
/// # Panics
///
/// For no value.
pub fn median_of_sorted(sorted: &[f64]) -> f64 {
    let upper = sorted[sorted.len() / 2];
    if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[sorted.len() / 2 - 1], upper) }
}

/// The value in the middle: of an even number of values the lower of the two there, so that it is one of them. The values are left in
/// another order.
///
/// # Panics
///
/// For no value.
pub fn low_median_of(values: &mut [f64]) -> f64 {
    let middle = (values.len() - 1) / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// The values' distances from `middle`, in their place: their median is the median absolute deviation.
pub fn distances_from(middle: f64, values: &mut [f64]) {
    values.iter_mut().for_each(|value| *value = (*value - middle).abs());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    #[test]
    fn medians_are_those_of_sorted_values() {
        let mut rng = Streams::new(7).stream("middle");
        for len in 1..40 {
            let mut values: Vec<f64> = (0..len).map(|_| rng.below(9) as f64 - 4.0).collect();
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let (upper, lower) = (sorted[len / 2], sorted[(len - 1) / 2]);
            for median in [median_of(&mut values), median_of_sorted(&sorted)] {
                assert!((median - f64::midpoint(lower, upper)).abs() < 1e-12, "{sorted:?}");
            }
            assert!(low_median_of(&mut values).total_cmp(&lower).is_eq(), "{sorted:?}");
        }
    }

    #[test]
    fn a_deviation_moves_little_for_an_outlier() {
        let mut values = [1.0, 2.0, 3.0, 4.0, 1000.0];
        let middle = median_of(&mut values);
        distances_from(middle, &mut values);
        assert!((median_of(&mut values) - 1.0).abs() < 1e-12);
    }
}
