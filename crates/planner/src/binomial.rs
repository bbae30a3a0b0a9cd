//! The binomial law, exact where it is tiny.
//!
//! A term is computed from its *deviance*, how far `i` is from `n p` and `n - i` from `n (1 - p)`:
//!
//! ```text
//!   ln C(n,i) p^i (1-p)^(n-i) = s(n) - s(i) - s(n-i) - D(i, np) - D(n-i, n(1-p))
//!                               + 1/2 ln( n / (2 pi i (n-i)) )                       [Loa00]
//!   D(x, m) = x ln(x / m) + m - x
//! ```
//!
//! with `s` the remainder of Stirling's series. Nothing large cancels, so that the logarithm has an
//! absolute error of a few times 1e-16 times its own size, whatever `n` is: sums of logarithms of
//! factorials would lose a digit for each power of ten of `n`.
//!
//! # References
//!
//! - `[Loa00]` C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000.

use std::f64::consts::PI;

/// What remains of `ln n!` after Stirling's formula, for `n` from 0 to 15: there the series in `1/n`
/// is not yet good enough. `s(n) = ln n! - (n + 1/2) ln n + n - 1/2 ln(2 pi)`; at 0 it is not used.
const REMAINDERS: [f64; 16] = [
    0.0,
    0.081_061_466_795_327_26,
    0.041_340_695_955_409_3,
    0.027_677_925_684_998_34,
    0.020_790_672_103_765_093,
    0.016_644_691_189_821_193,
    0.013_876_128_823_070_748,
    0.011_896_709_945_891_77,
    0.010_411_265_261_972_096,
    0.009_255_462_182_712_733,
    0.008_330_563_433_362_87,
    0.007_573_675_487_951_841,
    0.006_942_840_107_209_53,
    0.006_408_994_188_004_207,
    0.005_951_370_112_758_848,
    0.005_554_733_551_962_801,
];

/// Terms smaller than this share of a sum are left out of it, once they fall.
const NEGLIGIBLE: f64 = 1e-18;

fn remainder(n: u64) -> f64 {
    if let Some(&known) = REMAINDERS.get(n as usize) {
        return known;
    }
    let n = n as f64;
    let square = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square)
            / square)
        / n
}

/// `x ln(x / mean) + mean - x` for `x > 0`, given the difference `x - mean` to full precision.
fn deviance(x: f64, mean: f64, difference: f64) -> f64 {
    if difference.abs() < 0.1 * (x + mean) {
        // ln(x/m) = 2 artanh(v): the series leaves nothing to cancel.
        let v = difference / (x + mean);
        let square = v * v;
        let (mut sum, mut power) = (0.0, 2.0 * x * v);
        for odd in (3..60).step_by(2) {
            power *= square;
            let term = power / f64::from(odd);
            sum += term;
            if term.abs() <= f64::EPSILON * sum.abs() {
                break;
            }
        }
        return difference * v + sum;
    }
    x * (x / mean).ln() - difference
}

/// Logarithm of the probability of exactly `i` of `n`.
///
/// # Panics
///
/// If `i` is above `n` or `p` is no probability.
pub fn ln_mass(n: u64, i: u64, p: f64) -> f64 {
    assert!(i <= n, "{i} of {n}");
    assert!((0.0..=1.0).contains(&p), "{p} is not a probability");
    let (whole, part) = (n as f64, i as f64);
    let ln_zero = |is_certain: bool| if is_certain { 0.0 } else { f64::NEG_INFINITY };
    if p <= 0.0 {
        return ln_zero(i == 0);
    }
    if p >= 1.0 {
        return ln_zero(i == n);
    }
    if i == 0 {
        return whole * (-p).ln_1p();
    }
    if i == n {
        return whole * p.ln();
    }
    let (mean, rest) = (whole * p, whole * (1.0 - p));
    let difference = part - mean;
    remainder(n)
        - remainder(i)
        - remainder(n - i)
        - deviance(part, mean, difference)
        - deviance(whole - part, rest, -difference)
        + 0.5 * (whole / (2.0 * PI * part * (whole - part))).ln()
}

/// The probability of exactly `i` of `n`.
///
/// # Panics
///
/// As [`ln_mass`].
pub fn mass(n: u64, i: u64, p: f64) -> f64 {
    ln_mass(n, i, p).exp()
}

/// Logarithm of the probability of more than `limit` of `n`; minus infinity where that cannot be.
///
/// # Panics
///
/// As [`ln_mass`].
pub fn ln_above(n: u64, limit: u64, p: f64) -> f64 {
    ln_above_weighted(n, limit, p, |_| 1.0)
}

/// The probability of more than `limit` of `n`.
///
/// # Panics
///
/// As [`ln_mass`].
pub fn above(n: u64, limit: u64, p: f64) -> f64 {
    let (first, mean) = (limit.saturating_add(1), n as f64 * p);
    if limit >= n || first as f64 > mean {
        return ln_above(n, limit, p).exp();
    }
    // Most of the law is above: what is below is the smaller number.
    (1.0 - sum_down(n, limit, p)).max(0.0)
}

/// `ln sum_(i > limit) weight(i) C(n,i) p^i (1-p)^(n-i)`, for weights from 0 to 1 that do not grow
/// with `i`.
pub(crate) fn ln_above_weighted(n: u64, limit: u64, p: f64, weight: impl Fn(u64) -> f64) -> f64 {
    assert!((0.0..=1.0).contains(&p), "{p} is not a probability");
    if limit >= n || p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return weight(n).ln();
    }
    // Everything relative to the largest term, so that nothing underflows.
    let peak = ((n as f64 * p) as u64).clamp(limit + 1, n);
    let ln_scale = ln_mass(n, peak, p);
    let odds = p / (1.0 - p);
    let mut sum = weight(peak);
    let mut term = 1.0;
    for i in peak..n {
        term *= (n - i) as f64 / (i + 1) as f64 * odds;
        sum += term * weight(i + 1);
        if term < NEGLIGIBLE * sum {
            break;
        }
    }
    let mut term = 1.0;
    for i in (limit + 1..peak).rev() {
        term *= (i + 1) as f64 / (n - i) as f64 / odds;
        sum += term * weight(i);
        if term < NEGLIGIBLE * sum {
            break;
        }
    }
    ln_scale + sum.ln()
}

/// The probability of at most `limit` of `n`, for a limit below the mean.
fn sum_down(n: u64, limit: u64, p: f64) -> f64 {
    if p >= 1.0 {
        return 0.0;
    }
    let odds = p / (1.0 - p);
    let mut term = mass(n, limit, p);
    let mut sum = term;
    for i in (0..limit).rev() {
        term *= (i + 1) as f64 / (n - i) as f64 / odds;
        sum += term;
        if term < NEGLIGIBLE * sum {
            break;
        }
    }
    sum
}

/// The smallest count that with a probability of at least `share` is not exceeded.
///
/// # Panics
///
/// If `share` is outside 0 to 1, and as [`ln_mass`].
pub fn quantile(n: u64, p: f64, share: f64) -> u64 {
    assert!((0.0..=1.0).contains(&share), "{share} is not a share");
    // above() falls with its limit: bisection, for n may be millions.
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if above(n, middle, p) <= 1.0 - share { high = middle } else { low = middle + 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_sum_to_one() {
        for (n, p) in [(1, 0.3), (255, 1e-3), (1023, 0.5), (20_000, 0.01)] {
            let sum: f64 = (0..=n).map(|i| mass(n, i, p)).sum();
            assert!((sum - 1.0).abs() < 1e-12, "n {n}, p {p}: {sum}");
        }
    }

    #[test]
    fn small_cases_are_the_definition() {
        assert!((mass(4, 2, 0.5) - 0.375).abs() < 1e-15);
        assert!((above(4, 1, 0.5) - 11.0 / 16.0).abs() < 1e-15);
        assert!((above(2, 1, 1e-20) / 1e-40 - 1.0).abs() < 1e-14);
        assert!((above(1, 0, 1e-300) / 1e-300 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn certain_and_impossible_events_are_numbers() {
        for (n, limit, p, want) in
            [(5, 5, 0.3, 0.0), (5, 2, 0.0, 0.0), (5, 4, 1.0, 1.0), (0, 0, 0.5, 0.0)]
        {
            assert!((above(n, limit, p) - want).abs() < f64::EPSILON, "{n} {limit} {p}");
        }
    }

    #[test]
    fn above_is_the_same_from_both_sides_of_the_mean() {
        for limit in 0..100 {
            let direct: f64 = (limit + 1..=100).map(|i| mass(100, i, 0.37)).sum();
            assert!((above(100, limit, 0.37) - direct).abs() < 1e-14, "{limit}");
            assert!((ln_above(100, limit, 0.37).exp() - direct).abs() < 1e-14, "{limit}");
        }
    }

    #[test]
    fn quantile_is_the_smallest_count_that_suffices() {
        assert_eq!(quantile(10_000, 1e-3, 0.99), 18);
        assert_eq!(quantile(10, 0.5, 0.0), 0);
        assert_eq!(quantile(10, 0.5, 1.0), 10);
        assert_eq!(quantile(10, 0.0, 0.99), 0);
    }
}
