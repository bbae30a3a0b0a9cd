//! The middle of latencies, after `[TAIL16]`, section 2: a drive is slow against the median of its group in the same hour.

/// The median: of an even number of values the mean of the two in the middle. The values are left in another order.
///
/// Panics for no values, and for one that is not a number.
pub fn median_of(values: &mut [f64]) -> f64 {
    assert!(!values.is_empty(), "no values have no median");
    let (middle, is_odd) = (values.len() / 2, values.len() % 2 == 1);
    let by_value = |a: &f64, b: &f64| a.partial_cmp(b).expect("a latency is a number");
    let (below, upper, _) = values.select_nth_unstable_by(middle, by_value);
    let upper = *upper;
    if is_odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (lower + upper) / 2.0
}
