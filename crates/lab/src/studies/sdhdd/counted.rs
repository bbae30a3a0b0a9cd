//! What zeroes leave of a failure rate by the curves of the drive's own code, instead of what the planner assumes.
//!
//! The curves are the committed ones: `sdhdd.fig1` counts them again. Their band is that of counts drawn again.

use levelhead_ldpc::{Bootstrap, CURVES, ChannelKind, Count, Counted, Fit, Fitted, ZeroForcing};

/// Failure rates of the paper, without zeroes.
pub(super) const RATES: [f64; 4] = [1e-3, 5e-3, 8e-3, 1e-2];

/// What all say whose rows take the failure rate under zeroes from the curves.
pub(super) fn p_z_counted() -> String {
    let left = RATES.map(|rate| format!("{:.1e} of {rate:e}", forced_rate(rate)));
    format!(
        "Rows with \"p_z counted\" take it from the curves of our own code (sdhdd.fig1): 256 bytes of zeroes leave {}.",
        left.join(", ")
    )
}

/// The failure rate of sectors that end in 256 zeroes, where `failure_rate` of those without zeroes fail.
pub(super) fn forced_rate(failure_rate: f64) -> f64 {
    CURVES[0].under(ZeroForcing::B256, failure_rate)
}

/// The committed counts of a curve, drawn again.
fn drawn(forced: ZeroForcing) -> Bootstrap {
    let rows = Counted::of(ChannelKind::Soft, forced);
    let counts: Vec<Count> = rows.map(|row| row.count()).collect();
    let fitted = Fitted::of(forced, &counts).expect("the committed counts have a curve");
    Bootstrap::new(&fitted, &counts, Bootstrap::RESAMPLES, 1)
}

/// The curves of sectors without zeroes and of those with, by the committed counts drawn again.
#[derive(Debug)]
pub(super) struct Bands {
    plain: Bootstrap,
    forced: Bootstrap,
    of: ZeroForcing,
}

impl Bands {
    pub(super) fn new(forced: ZeroForcing) -> Self {
        Self { plain: drawn(ZeroForcing::None), forced: drawn(forced), of: forced }
    }

    /// What follows from the rate that zeroes leave of `failure_rate`: the number and the ends of its band.
    pub(super) fn left(&self, failure_rate: f64, value: impl Fn(f64) -> f64) -> [f64; 3] {
        let under = |plain: &Fit, forced: &Fit| value(forced.failure(plain.sigma_at(failure_rate)));
        let band = self.plain.band_with(&self.forced, under);
        [value(CURVES[0].under(self.of, failure_rate)), band.low, band.high]
    }
}
