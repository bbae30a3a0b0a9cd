//! Failure rates as curves: a straight line in the probit of the rate over the noise.
//!
//! ```text
//!   failure rate = Phi(slope (sigma - centre))
//!
//!   counts: (sigma, frames, failures) --likelihood--> Fitted: centre, slope, chi-squared
//!                                                       |
//!                                     drawn again from the curve, and fitted again
//!                                                       v
//!                                                   Bootstrap: a band around whatever follows from the curve
//! ```
//!
//! - `likelihood`: the curve that makes the counts most likely;
//! - `bootstrap`: how far it may be off;
//! - `counts`: what was counted of the committed code. [`FITS`] follows from it, and a test says so.
//!
//! A code's waterfall is Gaussian in the channel's parameter: that is a law of long codes, and an assumption about this one. Chi-squared says
//! whether the counts contradict it. Below the rates that were counted a curve is a continuation, and an error floor
//! would lie above it.
//!
//! # References
//!
//! - `[AMRU09]`: the shape of the curves.

use levelhead_stats::Normal;

use crate::channel::sigma_of;
use crate::code::ZeroForcing;

mod bootstrap;
mod counts;
mod likelihood;

pub use bootstrap::{Band, Bootstrap};
pub use counts::{COUNTS, Counted};
pub use likelihood::{Count, End, Fitted};

/// The curve of one number of zeroes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The zeroes that the decoder knows.
    pub forced: ZeroForcing,
    /// The noise at which half of the sectors fail, as a share of a bit's amplitude.
    pub centre: f64,
    /// How steep the curve is, above 0.
    pub slope: f64,
}

/// The curves of the committed code on the soft channel with 50 iterations, from [`COUNTS`].
pub const FITS: [Fit; 4] = [
    Fit { forced: ZeroForcing::None, centre: 0.483856, slope: 301.2 },
    Fit { forced: ZeroForcing::B256, centre: 0.490111, slope: 287.1 },
    Fit { forced: ZeroForcing::B512, centre: 0.496618, slope: 277.4 },
    Fit { forced: ZeroForcing::B1024, centre: 0.512129, slope: 258.0 },
];

/// The curves of one number of iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curves {
    /// The most iterations of a decoding.
    pub iterations: u32,
    /// One for each number of zeroes, the fewest first.
    pub fits: [Fit; 4],
}

/// The curves of every number of iterations that was measured, the usual one first.
pub const CURVES: [Curves; 3] = [
    Curves { iterations: 50, fits: FITS },
    Curves {
        iterations: 20,
        fits: [
            Fit { forced: ZeroForcing::None, centre: 0.482742, slope: 304.5 },
            Fit { forced: ZeroForcing::B256, centre: 0.488634, slope: 301.0 },
            Fit { forced: ZeroForcing::B512, centre: 0.495663, slope: 272.0 },
            Fit { forced: ZeroForcing::B1024, centre: 0.510563, slope: 268.4 },
        ],
    },
    Curves {
        iterations: 200,
        fits: [
            Fit { forced: ZeroForcing::None, centre: 0.48422, slope: 301.5 },
            Fit { forced: ZeroForcing::B256, centre: 0.489981, slope: 301.1 },
            Fit { forced: ZeroForcing::B512, centre: 0.497298, slope: 271.7 },
            Fit { forced: ZeroForcing::B1024, centre: 0.511471, slope: 292.9 },
        ],
    },
];

impl Curves {
    /// The curve of this number of zeroes.
    pub fn fit(&self, forced: ZeroForcing) -> Fit {
        *self.fits.iter().find(|fit| fit.forced == forced).expect("there is one of each number")
    }

    /// What is left of a failure rate under zeroes: the rate of sectors that end in `forced` zeroes, under the noise by which
    /// `failure_rate` of those without zeroes fail.
    ///
    /// Panics if `failure_rate` is not above 0 and below 1.
    pub fn under(&self, forced: ZeroForcing, failure_rate: f64) -> f64 {
        self.fit(forced).failure(self.fit(ZeroForcing::None).sigma_at(failure_rate))
    }
}

impl Fit {
    /// The failure rate under noise of this standard deviation, as a share of a bit's amplitude.
    pub fn failure(&self, sigma: f64) -> f64 {
        Normal::STANDARD.below(self.slope * (sigma - self.centre))
    }

    /// The failure rate at this raw bit error rate, above 0 and below 0.5.
    pub fn failure_at(&self, ber: f64) -> f64 {
        self.failure(sigma_of(ber))
    }

    /// The standard deviation of the noise under which this share of sectors fails.
    ///
    /// Panics if `failure_rate` is not above 0 and below 1.
    pub fn sigma_at(&self, failure_rate: f64) -> f64 {
        assert!(failure_rate > 0.0 && failure_rate < 1.0, "{failure_rate} of all sectors");
        self.centre + Normal::STANDARD.quantile(failure_rate) / self.slope
    }

    /// The raw bit error rate at which this share of sectors fails.
    ///
    /// Panics if `failure_rate` is not above 0 and below 1.
    pub fn ber_at(&self, failure_rate: f64) -> f64 {
        Normal::STANDARD.above(1.0 / self.sigma_at(failure_rate))
    }
}

#[cfg(test)]
mod tests;
