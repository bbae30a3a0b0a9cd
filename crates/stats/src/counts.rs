//! Exact 95 % intervals of a rate that was counted.
//!
//! | the count ended | what is known | interval |
//! |---|---|---|
//! | at `n` trials, `r` of them failures | binomial | Clopper and Pearson: the rates at which `r` or more, and `r` or fewer, are seen with 2.5 % |
//! | at `n` trials without a failure | binomial | 0 to `1 - 0.05^(1/n)`, about `3 / n`: one-sided |
//! | at the `r`-th failure, after `n` trials | negative binomial | the rates at which `n` or fewer, and `n` or more, trials are needed with 2.5 % |
//!
//! Counting until the `r`-th failure, `(r - 1) / (n - 1)` is unbiased; at a given number of trials, `r / n` is.

/// A rate and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountInterval {
    /// The estimate.
    pub rate: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// Of `failures` in `trials` whose number was given before.
///
/// Panics if there are more failures than trials, or no trials.
pub fn binomial_interval(failures: u64, trials: u64) -> CountInterval {
    assert!(trials > 0, "no trials, no rate");
    assert!(failures <= trials, "{failures} of {trials}");
    let rate = failures as f64 / trials as f64;
    if failures == 0 {
        return CountInterval { rate, low: 0.0, high: 1.0 - 0.05_f64.powf(1.0 / trials as f64) };
    }
    let low = solve(|p| 1.0 - at_most(failures - 1, trials, p) > TAIL);
    let high =
        if failures == trials { 1.0 } else { solve(|p| at_most(failures, trials, p) < TAIL) };
    CountInterval { rate, low, high }
}

/// Of a count that ended with the failure number `failures`, at trial number `trials`.
///
/// Panics if there are fewer than two failures, or more failures than trials.
pub fn until_failures_interval(failures: u64, trials: u64) -> CountInterval {
    assert!(failures >= 2, "an unbiased rate takes two failures, not {failures}");
    assert!(failures <= trials, "{failures} of {trials}");
    let rate = (failures - 1) as f64 / (trials - 1) as f64;
    // `trials` or fewer are needed if so many have `failures` or more; `trials` or more if one fewer have fewer.
    let low = solve(|p| 1.0 - at_most(failures - 1, trials, p) > TAIL);
    let high = if failures == trials {
        1.0
    } else {
        solve(|p| at_most(failures - 1, trials - 1, p) < TAIL)
    };
    CountInterval { rate, low, high }
}

/// What lies outside of an interval at either end.
const TAIL: f64 = 0.025;

/// The probability of at most `failures` in `trials`, fewer failures than trials, at rate `p`.
fn at_most(failures: u64, trials: u64, p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        return if p <= 0.0 { 1.0 } else { 0.0 };
    }
    let (n, odds) = (trials as f64, p.ln() - (-p).ln_1p());
    // The terms from the largest number of failures down, each from the one before, until they do not count.
    let k = failures as f64;
    let log = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
        + k * odds
        + n * (-p).ln_1p();
    let mode = (n + 1.0) * p;
    if k > mode {
        // The other tail is shorter, and as exact.
        let mut term = log.exp();
        let (mut sum, mut at) = (0.0, k);
        while at < n {
            term *= (n - at) / (at + 1.0) * odds.exp();
            sum += term;
            at += 1.0;
            if term < sum * 1e-17 {
                break;
            }
        }
        return 1.0 - sum;
    }
    let mut term = log.exp();
    let (mut sum, mut at) = (term, k);
    while at > 0.0 && term > sum * 1e-17 {
        term *= at / (n - at + 1.0) / odds.exp();
        sum += term;
        at -= 1.0;
    }
    sum
}

/// The rate from which on a condition holds, by halving its logarithm's range and then its own.
fn solve(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = if low == 0.0 { high / 16.0 } else { f64::midpoint(low, high) };
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
        if high - low <= high * 1e-13 {
            break;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    #[track_caller]
    fn close(seen: f64, expected: f64) {
        assert!((seen / expected - 1.0).abs() < 2e-3, "{seen}, not {expected}");
    }

    /// Clopper and Pearson's intervals as tables have them.
    #[test]
    fn intervals_are_those_of_the_tables() {
        let ten = binomial_interval(10, 100);
        close(ten.low, 0.049_00);
        close(ten.high, 0.176_22);
        let one = binomial_interval(1, 20);
        close(one.low, 0.001_265);
        close(one.high, 0.248_73);
        close(binomial_interval(0, 1_000).high, 0.002_991);
        assert!(binomial_interval(20, 20).high > 0.999_999);
        // r = 20: 0.61 to 1.48 times r / N, by chi-squared over 2 N.
        let twenty = until_failures_interval(20, 1_000_000);
        close(twenty.low, 12.217e-6);
        close(twenty.high, 29.671e-6);
        assert!((twenty.rate - 19.0 / 999_999.0).abs() < 1e-15);
    }

    #[test]
    fn intervals_hold_the_rate_as_often_as_they_say() {
        let mut rng = Streams::new(17).stream("counts");
        let (p, runs) = (0.05, 2_000);
        let mut held = [0, 0];
        let mut sum = 0.0;
        for _ in 0..runs {
            let failures = (0..200).filter(|_| rng.unit() < p).count() as u64;
            let interval = binomial_interval(failures, 200);
            held[0] += u32::from(interval.low <= p && p <= interval.high);
            let (mut trials, mut failures) = (0, 0);
            while failures < 10 {
                trials += 1;
                failures += u64::from(rng.unit() < p);
            }
            let interval = until_failures_interval(10, trials);
            held[1] += u32::from(interval.low <= p && p <= interval.high);
            sum += interval.rate;
        }
        // 95 % or more, within four standard errors.
        assert!(held.iter().all(|held| (1_861..=1_990).contains(held)), "{held:?} of {runs}");
        let error = p / f64::sqrt(8.0 * f64::from(runs));
        assert!((sum / f64::from(runs) - p).abs() < 4.0 * error, "{}", sum / f64::from(runs));
    }
}
