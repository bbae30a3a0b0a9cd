//! Failure rates as curves: a straight line in the probit of the rate over the noise.
//!
//! ```text
//!   failure rate = Phi(slope (sigma - centre))
//! ```
//!
//! A code's waterfall is Gaussian in the channel's parameter. What the curves of the committed code were fitted to
//! is in [`FITS`].

use levelhead_stats::Normal;

use crate::code::ZeroForcing;

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

/// The curves of the committed code on the soft channel with 50 iterations.
pub const FITS: [Fit; 4] = [
    Fit { forced: ZeroForcing::None, centre: 0.48414, slope: 292.0 },
    Fit { forced: ZeroForcing::B256, centre: 0.48911, slope: 314.0 },
    Fit { forced: ZeroForcing::B512, centre: 0.49629, slope: 287.0 },
    Fit { forced: ZeroForcing::B1024, centre: 0.51333, slope: 231.0 },
];

/// The curves of one number of iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curves {
    /// The most iterations of a decoding.
    pub iterations: u32,
    /// One for each number of zeroes, the fewest first.
    pub fits: [Fit; 4],
}

/// The curves of every number of iterations that was measured.
pub const CURVES: &[Curves] = &[Curves { iterations: 50, fits: FITS }];

impl Curves {
    /// The curve of this number of zeroes.
    pub fn fit(&self, forced: ZeroForcing) -> Fit {
        *self.fits.iter().find(|fit| fit.forced == forced).expect("there is one of each number")
    }
}

impl Fit {
    /// The failure rate under noise of this standard deviation, as a share of a bit's amplitude.
    pub fn failure(&self, sigma: f64) -> f64 {
        Normal::STANDARD.below(self.slope * (sigma - self.centre))
    }
}
