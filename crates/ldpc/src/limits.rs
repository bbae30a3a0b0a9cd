//! How much noise a code of this length and rate could bear at best.
//!
//! A bit is +1 or -1, noise of standard deviation `sigma` is added, and the sum `y` is known exactly. What a sample says of its bit,
//! in bits, is
//!
//! ```text
//!   i(y) = 1 - log2(1 + exp(-2 y / sigma^2)),   y ~ N(1, sigma)
//!   C = E i(y)     capacity: longer codes of this rate need a C of k / n at least
//!   V = Var i(y)   dispersion: with n bits   k = n C - sqrt(n V) Q^-1(failure rate) + log2(n) / 2
//! ```
//!
//! With zero forcing both the data and the codeword are shorter: the zeroes are known, and the redundant bits stay.
//!
//! # References
//!
//! - `[PPV10]`: the normal approximation.

use levelhead_stats::Normal;

use crate::code::ZeroForcing;
use crate::shape::{CODE_BITS, DATA_BITS};

/// Mean and variance of what a sample says of its bit, in bits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Information {
    mean: f64,
    variance: f64,
}

impl Information {
    /// By Simpson's rule over 10 standard deviations to either side.
    fn under(sigma: f64) -> Self {
        const PIECES: u32 = 4_000;
        const REACH: f64 = 10.0;
        let width = 2.0 * REACH / f64::from(PIECES);
        let (mut mean, mut square) = (0.0, 0.0);
        for at in 0..=PIECES {
            let x = f64::from(at) * width - REACH;
            let weight = match at {
                0 | PIECES => 1.0,
                at if at % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let share = weight * width / 3.0 * density;
            let exponent = -2.0 * (1.0 + sigma * x) / (sigma * sigma);
            // ln(1 + e^x) without a number that is too large.
            let soft = exponent.max(0.0) + (-exponent.abs()).exp().ln_1p();
            let information = 1.0 - soft / std::f64::consts::LN_2;
            mean += share * information;
            square += share * information * information;
        }
        Self { mean, variance: square - mean * mean }
    }
}

impl ZeroForcing {
    /// Bits that a decoder has to find, and bits that it is told of.
    fn sizes(self) -> [f64; 2] {
        let known = 8 * self.bytes();
        [(DATA_BITS - known) as f64, (CODE_BITS - known) as f64]
    }

    /// The largest raw bit error rate of the soft channel at which codes of this rate, however long, can be decoded.
    pub fn ber_at_capacity(self) -> f64 {
        let [data, code] = self.sizes();
        largest(|sigma| Information::under(sigma).mean >= data / code)
    }

    /// The raw bit error rate of the soft channel at which the best code of this length and rate would fail with this probability, by the
    /// normal approximation.
    ///
    /// Panics if `failure_rate` is not above 0 and below 1.
    pub fn ber_of_best_code(self, failure_rate: f64) -> f64 {
        assert!(failure_rate > 0.0 && failure_rate < 1.0, "{failure_rate} of all sectors");
        let [data, code] = self.sizes();
        let deviations = -Normal::STANDARD.quantile(failure_rate);
        largest(|sigma| {
            let Information { mean, variance } = Information::under(sigma);
            code * mean - (code * variance).sqrt() * deviations + 0.5 * code.log2() >= data
        })
    }
}

/// The bit error rate of the most noise that can be borne.
fn largest(is_borne: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.1, 2.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if is_borne(middle) { low = middle } else { high = middle }
    }
    Normal::STANDARD.above(1.0 / low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table value of the capacity of two inputs: half a bit at a sigma of 0.979 (0.187 dB of Eb/N0 at rate 1/2).
    #[test]
    fn half_a_bit_comes_through_at_the_noise_of_the_tables() {
        let half = Information::under(0.978_7);
        assert!((half.mean - 0.5).abs() < 1e-4, "{half:?}");
    }

    #[test]
    fn limits_are_those_of_shortened_codes() {
        let limits = [0.0259, 0.0275, 0.0293, 0.0339];
        let best = [0.0243, 0.0258, 0.0276, 0.0318];
        for (at, forced) in ZeroForcing::ALL.into_iter().enumerate() {
            let (limit, of_best) = (forced.ber_at_capacity(), forced.ber_of_best_code(1e-2));
            assert!((limit - limits[at]).abs() < 5e-5, "{forced}: {limit}");
            assert!((of_best - best[at]).abs() < 5e-5, "{forced}: {of_best}");
            assert!(forced.ber_of_best_code(1e-6) < of_best);
        }
    }
}
