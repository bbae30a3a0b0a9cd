//! What zeroes at the end of a sector leave of its chance to fail (zero forcing).
//!
//! A drive that knows of them pins them when it decodes, so that the same redundancy has fewer bits to find:
//! `[SDHDD]` sec. 3.1. The paper gives the rates as curves (Fig. 1), whose numbers are not in its text. For a
//! sector that fails with the probability `p` without zeroes,
//!
//! ```text
//! 256 bytes   0.2 p^2                                  5e-6 at 5e-3, 2e-5 at 1e-2
//! 512 bytes   1e-9, or 0.008 p^4 where that is more, or 0.2 p^2 where that is less
//! ```
//!
//! The first is the planner's assumption, within all that Table 2 and Fig. 6 say. The second is ours too: "far below
//! 1e-8" at 1e-3 (sec. 3.1); above 2e-2, where the paper says nothing, the first law applied twice. `zero-tails`
//! replaces both.
//!
//! # Which failures
//!
//! Those of single sectors, soft and hard, which the paper holds for the noise of a denser medium (end of
//! sec. 3.1). Bad stretches (`bursts`) are as bad with zeroes as without.
//!
//! # The same drive
//!
//! A sector has the same coins whatever its end: only the probability that they are compared with is another one.
//! So what fails with more zeroes is part of what fails with fewer.

use levelhead_block::ZeroTail;
use levelhead_units::Ratio;

use super::parts::{Parsed, fields, unit};
use super::text::Form;
use super::{Faults, FaultsError};

/// Shares of sectors whose first read fails although the drive knows of zeroes at their ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailRates {
    /// With 256 bytes of zeroes; at most the retry rate.
    pub b256: Ratio,
    /// With 512 bytes of zeroes; at most the share with 256.
    pub b512: Ratio,
}

/// The failure rate that 512 bytes of zeroes leave in the range that the paper looks at.
const B512: f64 = 1e-9;

/// The failure rate that a tail leaves of `failure_rate`. See the module.
pub fn rate_under(tail: ZeroTail, failure_rate: f64) -> f64 {
    let b256 = |rate: f64| 0.2 * rate * rate;
    match tail {
        ZeroTail::None => failure_rate,
        ZeroTail::B256 => b256(failure_rate),
        ZeroTail::B512 => B512.max(b256(b256(failure_rate))).min(b256(failure_rate)),
    }
}

impl Faults {
    /// The probability that the first pass over a sector with this tail fails and a retry mends it, bursts apart; by a table, that
    /// the first pass fails.
    pub fn retry_rate_under(&self, tail: ZeroTail) -> f64 {
        if let Some(ecc) = self.ecc {
            return ecc.first_pass_rate(tail);
        }
        match (self.zero_tails, tail) {
            (None, _) | (_, ZeroTail::None) => rate_under(tail, self.retry_rate.get()),
            (Some(rates), ZeroTail::B256) => rates.b256.get(),
            (Some(rates), ZeroTail::B512) => rates.b512.get(),
        }
    }
}

pub(super) fn check(faults: &Faults) -> Result<(), FaultsError> {
    let Some(TailRates { b256, b512 }) = faults.zero_tails else { return Ok(()) };
    for (rate, most) in [(b256, faults.retry_rate), (b512, b256)] {
        if rate.get() > most.get() {
            return Err(FaultsError::ZeroTails { rate, most });
        }
    }
    Ok(())
}

impl Form for TailRates {
    fn read(text: &str) -> Parsed<Self> {
        let [b256, b512] = fields(text, "SHARE/SHARE, as in 0.1%/0.001%")?;
        Ok(Self { b256: unit(b256)?, b512: unit(b512)? })
    }

    fn show(&self) -> String {
        let Self { b256, b512 } = self;
        format!("{b256}/{b512}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `[SDHDD]` says of 512 bytes: sec. 3.1 at 1e-3, sec. 3.2 (below 1e-6) at all that it looks at.
    #[test]
    fn rates_are_within_what_the_paper_says_and_fall_with_every_zero() {
        assert!(rate_under(ZeroTail::B512, 1e-3) < 1e-8);
        assert!(rate_under(ZeroTail::B512, 1e-2) < 1e-6);
        let tails = [ZeroTail::None, ZeroTail::B256, ZeroTail::B512];
        let rates = [0.0, 1e-12, 1e-6, 1e-4, 1e-3, 5e-3, 1e-2, 0.1, 0.5, 1.0];
        for rate in rates {
            let [none, b256, b512] = tails.map(|tail| rate_under(tail, rate));
            assert!(none >= b256 && b256 >= b512, "{rate}: {b256} {b512}");
            assert!((none - rate).abs() <= 0.0, "{rate}");
        }
        for tail in tails {
            let left = rates.map(|rate| rate_under(tail, rate));
            assert!(left.is_sorted(), "{tail:?}: {left:?}");
        }
    }

    #[test]
    fn rates_of_ones_own_replace_the_law_and_cannot_grow_with_zeroes() {
        let own: Faults = "retry-rate=20%,zero-tails=10%/1%".parse().unwrap();
        for (tail, rate) in [(ZeroTail::None, 0.2), (ZeroTail::B256, 0.1), (ZeroTail::B512, 0.01)] {
            assert!((own.retry_rate_under(tail) - rate).abs() < 1e-12, "{tail:?}");
        }
        for (text, expected) in [
            (
                "zero-tails=1%/1%",
                "a sector with zeroes at its end fails at most as often as one with fewer: 0%, not 1%",
            ),
            (
                "retry-rate=5%,zero-tails=1%/2%",
                "a sector with zeroes at its end fails at most as often as one with fewer: 1%, not 2%",
            ),
            ("zero-tails=1%", "'zero-tails=1%': '1%' is not SHARE/SHARE, as in 0.1%/0.001%"),
        ] {
            assert_eq!(text.parse::<Faults>().unwrap_err().to_string(), expected);
        }
    }
}
