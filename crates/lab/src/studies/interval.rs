//! A number over the seeds and the ends of its 95 % interval.

use levelhead_stats::{binomial_interval, mean_interval};

/// No number: something was overloaded.
pub(super) const NONE: [f64; 3] = [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY];

/// The mean of one value a seed, and its interval by Student's t. Values without bound have no mean.
pub(super) fn of_mean(values: &[f64]) -> [f64; 3] {
    if values.iter().any(|value| !value.is_finite()) {
        return NONE;
    }
    let interval = mean_interval(values);
    [interval.mean, interval.low, interval.high]
}

/// The ratio of two sums, of which each seed has given a part: for what is rare, so that a seed may
/// have none of it, and for differences, which may be near zero in one seed. The interval is the
/// jackknife's: Student's t over the pseudo-values that leaving one seed out each time gives.
pub(super) fn of_ratio(pairs: &[[f64; 2]]) -> [f64; 3] {
    let ratio = |without: Option<usize>| {
        let kept = pairs.iter().enumerate().filter(|(at, _)| Some(*at) != without);
        let [top, bottom]: [f64; 2] =
            kept.fold([0.0; 2], |sum, (_, pair)| [sum[0] + pair[0], sum[1] + pair[1]]);
        top / bottom
    };
    let (count, whole) = (pairs.len() as f64, ratio(None));
    let pseudo = |at| count * whole - (count - 1.0) * ratio(Some(at));
    let [_, low, high] = of_mean(&(0..pairs.len()).map(pseudo).collect::<Vec<_>>());
    [whole, low, high]
}

/// A share of what was counted, and the exact interval of a count of so many.
pub(super) fn of_count(failures: f64, trials: f64) -> [f64; 3] {
    // Figures of a part that was changed by hand may be anything.
    if !(trials.is_finite()
        && (1.0..=COUNT_MAX).contains(&trials)
        && (0.0..=trials).contains(&failures))
    {
        return NONE;
    }
    let interval = binomial_interval(failures as u64, trials as u64);
    [interval.rate, interval.low, interval.high]
}

/// The largest count that a figure holds to the last digit.
const COUNT_MAX: f64 = 9e15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_of_sums_is_not_a_mean_of_ratios() {
        // A seed with hardly any of it would rule a mean of ratios: (2 + 2 + 100) / 3.
        let [ratio, low, high] = of_ratio(&[[20.0, 10.0], [20.0, 10.0], [10.0, 0.1]]);
        assert!((ratio - 50.0 / 20.1).abs() < 1e-12, "{ratio}");
        assert!(low < ratio && ratio < high, "{low} to {high}");
        // Where every seed has the same ratio, nothing is uncertain.
        let [ratio, low, high] = of_ratio(&[[4.0, 2.0], [6.0, 3.0], [2.0, 1.0]]);
        assert!([ratio, low, high].iter().all(|end| (end - 2.0).abs() < 1e-12));
        // One seed says nothing about others.
        let [_, low, high] = of_ratio(&[[1.0, 2.0]]);
        assert!(low.is_infinite() && high.is_infinite());
    }

    #[test]
    fn a_count_has_an_exact_interval_and_an_upper_end_where_nothing_failed() {
        let [rate, low, high] = of_count(10.0, 100.0);
        assert!((rate - 0.1).abs() < 1e-12);
        assert!((low - 0.0490).abs() < 1e-4 && (high - 0.1762).abs() < 1e-4, "{low} to {high}");
        let [rate, low, high] = of_count(0.0, 1e6);
        assert!(rate.abs() < 1e-300 && low.abs() < 1e-300 && (high - 3e-6).abs() < 1e-8, "{high}");
        for [failures, trials] in [[1.0, 0.0], [2.0, 1.0], [-1.0, 5.0], [f64::INFINITY; 2]] {
            assert!(of_count(failures, trials)[0].is_infinite());
        }
    }
}
