//! The normal distribution, to the last digits also far out in its tails.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// A normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation, above zero.
    pub deviation: f64,
}

impl Normal {
    /// Mean 0, standard deviation 1.
    pub const STANDARD: Self = Self { mean: 0.0, deviation: 1.0 };

    /// The probability of a value below `x`.
    pub fn below(self, x: f64) -> f64 {
        0.5 * libm::erfc(-(x - self.mean) / self.deviation * FRAC_1_SQRT_2)
    }

    /// The probability of a value above `x`: of the standard distribution, `Q(x)`.
    pub fn above(self, x: f64) -> f64 {
        0.5 * libm::erfc((x - self.mean) / self.deviation * FRAC_1_SQRT_2)
    }

    /// The value below which others lie with this probability, from 0 to 1: minus infinity and infinity at the ends.
    ///
    /// Panics if `probability` is no probability.
    pub fn quantile(self, probability: f64) -> f64 {
        assert!((0.0..=1.0).contains(&probability), "{probability} is not a probability");
        if probability > 0.5 {
            // Exact where the other tail is small enough to be told from nothing.
            return self.mean - self.deviation * standard_quantile(1.0 - probability);
        }
        self.mean + self.deviation * standard_quantile(probability)
    }
}

/// Of a probability of at most one half.
fn standard_quantile(probability: f64) -> f64 {
    if probability == 0.0 {
        return f64::NEG_INFINITY;
    }
    // Q(x) ~ exp(-x^2 / 2) / (x sqrt(2 pi)) in the far tail: a place to begin. The logarithm of the tail is concave, so
    // that Newton's steps in it converge from anywhere.
    let mut x = -(-2.0 * (2.0 * probability).ln()).max(0.0).sqrt();
    for _ in 0..60 {
        let below = Normal::STANDARD.below(x);
        let density = (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
        let step = (below.ln() - probability.ln()) * below / density;
        x -= step;
        if step.abs() <= 1e-15 * x.abs().max(1.0) {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table values of Q and its inverse.
    #[test]
    fn tails_and_quantiles_are_those_of_the_tables() {
        let normal = Normal::STANDARD;
        for (x, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457),
            (3.0, 1.349_898_031_630_09e-3),
            (6.0, 9.865_876_450_377e-10),
            (10.0, 7.619_853_024_160_5e-24),
        ] {
            assert!((normal.above(x) / tail - 1.0).abs() < 1e-12, "{x}: {}", normal.above(x));
            assert!((normal.below(-x) / tail - 1.0).abs() < 1e-12, "{x}");
            assert!((normal.quantile(tail) + x).abs() < 1e-11, "{x}: {}", normal.quantile(tail));
        }
        assert!((normal.quantile(0.975) - 1.959_963_984_540_05).abs() < 1e-11);
        assert!(normal.quantile(0.0) == f64::NEG_INFINITY && normal.quantile(1.0) == f64::INFINITY);
        let other = Normal { mean: 3.0, deviation: 2.0 };
        assert!((other.below(5.0) - normal.below(1.0)).abs() < 1e-15);
    }

    #[test]
    fn quantiles_turn_probabilities_back_however_small() {
        for power in 1..300 {
            let probability = 0.37 * 10_f64.powi(-power);
            let back = Normal::STANDARD.below(Normal::STANDARD.quantile(probability));
            assert!((back / probability - 1.0).abs() < 1e-9, "1e-{power}: {back}");
        }
    }
}
