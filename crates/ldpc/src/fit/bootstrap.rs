//! How far a curve may be off: counts are drawn again from the curve, and fitted again.
//!
//! A count that ended with a failure is drawn until it has as many, one that ended with a number of frames over as many frames; both by the
//! distances from one failure to the next, which are geometric.

use levelhead_stats::{Rng, Streams};

use super::Fit;
use super::likelihood::{Count, End, Fitted};

/// The ends of a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// The lower one.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

/// The curves of counts that were drawn again.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    fits: Vec<Fit>,
}

impl Bootstrap {
    /// How many curves are drawn where nothing else is said.
    pub const RESAMPLES: usize = 1_000;

    /// Draws `counts` again from their curve, `resamples` times. Draws through which no curve goes are made anew.
    ///
    /// Panics if `resamples` is 0, or if hardly any of the draws has a curve.
    pub fn new(fitted: &Fitted, counts: &[Count], resamples: usize, seed: u64) -> Self {
        assert!(resamples > 0, "no curves, no band");
        let fit = fitted.fit;
        let mut rng = Streams::new(seed).stream(&format!("ldpc/bootstrap/{}", fit.forced));
        let mut fits = Vec::with_capacity(resamples);
        for _ in 0..resamples * 10 {
            let drawn: Vec<Count> =
                counts.iter().map(|count| draw(&fit, count, &mut rng)).collect();
            fits.extend(Fitted::of(fit.forced, &drawn).map(|again| again.fit));
            if fits.len() == resamples {
                return Self { fits };
            }
        }
        panic!("{counts:?} are too few failures for a band");
    }

    /// The curves.
    pub fn fits(&self) -> &[Fit] {
        &self.fits
    }

    /// The band of what follows from a curve: a rate at some noise, a bit error rate at some rate.
    pub fn band(&self, value: impl Fn(&Fit) -> f64) -> Band {
        Band::of(self.fits.iter().map(value).collect())
    }

    /// The band of what follows from two curves whose counts are independent of each other.
    ///
    /// Panics if there are more curves of one than of the other.
    pub fn band_with(&self, other: &Self, value: impl Fn(&Fit, &Fit) -> f64) -> Band {
        assert_eq!(self.fits.len(), other.fits.len(), "curves come in pairs");
        let pairs = self.fits.iter().zip(&other.fits);
        Band::of(pairs.map(|(one, other)| value(one, other)).collect())
    }
}

impl Band {
    /// What leaves out 2.5 % of the values at either end.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let cut = values.len() * 25 / 1_000;
        Self { low: values[cut], high: values[values.len() - 1 - cut] }
    }
}

/// A count like `count`, of frames that fail as the curve says.
fn draw(fit: &Fit, count: &Count, rng: &mut Rng) -> Count {
    let log_kept = (-fit.failure(count.sigma)).ln_1p();
    // Frames up to the next failure, this one included.
    let mut gap = || 1.0 + ((1.0 - rng.unit()).ln() / log_kept).floor();
    match count.end {
        End::Failure => {
            let frames: f64 = (0..count.failures).map(|_| gap()).sum();
            Count { frames: frames as u64, ..*count }
        }
        End::Frames => {
            let (mut at, mut failures) = (gap(), 0);
            while at <= count.frames as f64 {
                failures += 1;
                at += gap();
            }
            Count { failures, ..*count }
        }
    }
}
