//! How many revolutions a retry takes.
//!
//! | law | mean | drawn from `u` in [0, 1) |
//! |---|---|---|
//! | fixed `r` | `r` | `r` |
//! | uniform `a..=b` | `(a + b) / 2` | `a + floor(u (b - a + 1))` |
//! | geometric of mean `m`, cut at `R` = 1000 | `m (1 - (1 - 1/m)^R)` | `1 + floor(ln(1 - u) / ln(1 - 1/m))` |
//! | listed `(r_i, p_i)` | `sum p_i r_i` | the first `r_i` with `p_1 + .. + p_i > u` |
//!
//! The draw is a hash of the drive, the request's origin and the first sector that failed: the same
//! sub-request takes as long again under another policy.

use std::fmt;
use std::str::FromStr;

use levelhead_units::Ratio;

use super::parts::{Parsed, unit};
use super::text::Value;
use super::values::ROTATION_LIST_MAX;
use super::{Faults, FaultsError, ParseFaultsError};
use crate::mechanics::ROTATIONS_MAX;

/// How many revolutions a retry takes, each from 1 to 1000.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rotations {
    /// Always this number: `r` of `[ERAID]`.
    Fixed(u32),
    /// Each number from `first` to `last` equally likely.
    Uniform {
        /// The least.
        first: u32,
        /// The most.
        last: u32,
    },
    /// Every further revolution mends with the same probability.
    Geometric {
        /// The mean, from 1 to 1000; a retry that would take more than 1000 takes 1000.
        mean: f64,
    },
    /// Some numbers, each with its probability.
    Listed(RotationList),
}

/// Numbers of revolutions with their probabilities, which add up to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotationList {
    /// The entries, and as many empty ones as there is room for.
    entries: [(u32, Ratio); ROTATION_LIST_MAX],
    len: usize,
}

impl RotationList {
    /// A list of 1 to [`ROTATION_LIST_MAX`] entries. Refused if a number is out of range, or if the
    /// probabilities do not add up to one within a millionth.
    pub fn new(list: &[(u32, Ratio)]) -> Result<Self, FaultsError> {
        let count = list.len();
        if !(1..=ROTATION_LIST_MAX).contains(&count) {
            return Err(FaultsError::RotationCount { count });
        }
        list.iter().try_for_each(|(rotations, _)| check_count(*rotations))?;
        let sum: f64 = list.iter().map(|(_, share)| share.get()).sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(FaultsError::RotationShares { sum });
        }
        let mut entries = [(0, Ratio::ZERO); ROTATION_LIST_MAX];
        entries[..count].copy_from_slice(list);
        Ok(Self { entries, len: count })
    }

    /// The entries.
    pub fn entries(&self) -> &[(u32, Ratio)] {
        &self.entries[..self.len]
    }
}

impl Rotations {
    /// The mean number of revolutions.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Fixed(rotations) => rotations.into(),
            Self::Uniform { first, last } => f64::from(first).midpoint(last.into()),
            Self::Geometric { mean } => {
                mean * (1.0 - (1.0 - 1.0 / mean).powi(ROTATIONS_MAX as i32))
            }
            Self::Listed(list) => {
                list.entries().iter().map(|(r, share)| f64::from(*r) * share.get()).sum()
            }
        }
    }

    /// Whether a drive can retry like that.
    pub(crate) fn check(&self) -> Result<(), FaultsError> {
        match *self {
            Self::Fixed(rotations) => check_count(rotations),
            Self::Uniform { first, last } => {
                check_count(first)?;
                check_count(last)?;
                if first > last {
                    return Err(FaultsError::RotationRange { first, last });
                }
                Ok(())
            }
            Self::Geometric { mean } => {
                if !(1.0..=f64::from(ROTATIONS_MAX)).contains(&mean) {
                    return Err(FaultsError::RotationMean { mean });
                }
                Ok(())
            }
            Self::Listed(_) => Ok(()), // Checked when it was made.
        }
    }

    /// The number at the quantile that `unit` gives, from 0 to 1; it is asked only if it matters.
    pub(crate) fn draw(&self, unit: impl FnOnce() -> f64) -> u32 {
        match self {
            Self::Fixed(rotations) => *rotations,
            Self::Uniform { first, last } => {
                let count = f64::from(last - first + 1);
                (first + (unit() * count) as u32).min(*last)
            }
            Self::Geometric { mean } => {
                let more = (1.0 - unit()).ln() / (1.0 - 1.0 / mean).ln();
                // A conversion to a whole number stays in range by itself.
                (more as u32).saturating_add(1).min(ROTATIONS_MAX)
            }
            Self::Listed(list) => {
                let (unit, mut sum) = (unit(), 0.0);
                let entries = list.entries();
                let found = entries.iter().find(|(_, share)| {
                    sum += share.get();
                    unit < sum
                });
                // The sum may end a rounding short of one.
                found.unwrap_or(&entries[entries.len() - 1]).0
            }
        }
    }
}

fn check_count(rotations: u32) -> Result<(), FaultsError> {
    if (1..=ROTATIONS_MAX).contains(&rotations) {
        return Ok(());
    }
    Err(FaultsError::Rotations { rotations })
}

pub(super) fn check(faults: &Faults) -> Result<(), FaultsError> {
    faults.rotations.check()
}

impl FromStr for Rotations {
    type Err = ParseFaultsError;

    fn from_str(text: &str) -> Result<Self, ParseFaultsError> {
        const FORMS: &str =
            "a number of revolutions: expected 3, uniform:1-7, geometric:3 or 1:80%+30:20%";
        let wrong = || ParseFaultsError::new(format!("'{text}' is not {FORMS}"));
        let count = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let rotations = if let Some(range) = text.strip_prefix("uniform:") {
            let (first, last) = range.split_once('-').ok_or_else(wrong)?;
            Self::Uniform { first: count(first)?, last: count(last)? }
        } else if let Some(mean) = text.strip_prefix("geometric:") {
            Self::Geometric { mean: mean.trim().parse().map_err(|_| wrong())? }
        } else if text.contains(':') {
            let mut list = Vec::new();
            for entry in text.split('+') {
                let (rotations, share) = entry.split_once(':').ok_or_else(wrong)?;
                list.push((count(rotations)?, unit(share)?));
            }
            Self::Listed(RotationList::new(&list)?)
        } else {
            Self::Fixed(count(text)?)
        };
        rotations.check()?;
        Ok(rotations)
    }
}

impl Value for Rotations {
    fn read(text: &str) -> Parsed<Self> {
        text.parse()
    }

    fn shown(&self, good: &Self) -> Option<String> {
        (self != good).then(|| self.to_string())
    }
}

impl From<u32> for Rotations {
    fn from(rotations: u32) -> Self {
        Self::Fixed(rotations)
    }
}

impl fmt::Display for Rotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(rotations) => write!(f, "{rotations}"),
            Self::Uniform { first, last } => write!(f, "uniform:{first}-{last}"),
            Self::Geometric { mean } => write!(f, "geometric:{mean}"),
            Self::Listed(list) => {
                list.entries().iter().enumerate().try_for_each(|(at, (rotations, share))| {
                    let plus = if at == 0 { "" } else { "+" };
                    write!(f, "{plus}{rotations}:{share}")
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    fn listed() -> Rotations {
        let shares = [(1, 0.5), (3, 0.3), (20, 0.2)];
        let list = shares.map(|(r, share)| (r, Ratio::new(share).unwrap()));
        Rotations::Listed(RotationList::new(&list).unwrap())
    }

    /// Every share of a number, and the mean, within four standard errors.
    #[track_caller]
    fn check_law(rotations: Rotations, law: impl Fn(u32) -> f64) {
        rotations.check().unwrap();
        let mut rng = Streams::new(1).stream("rotations");
        let n = 200_000;
        let mut counts = vec![0_u32; ROTATIONS_MAX as usize + 1];
        (0..n).for_each(|_| counts[rotations.draw(|| rng.unit()) as usize] += 1);
        let (mut mean, mut square, mut total) = (0.0, 0.0, 0.0);
        for (r, &count) in (0_u32..).zip(&counts) {
            let (share, law) = (f64::from(count) / f64::from(n), law(r));
            let error = (law * (1.0 - law) / f64::from(n)).sqrt();
            assert!((share - law).abs() <= 4.0 * error + 2e-5, "{rotations} {r}: {share}, {law}");
            mean += f64::from(r) * share;
            square += f64::from(r).powi(2) * law;
            total += law;
        }
        assert!((total - 1.0).abs() < 1e-9, "{rotations}: {total}");
        let error = ((square - rotations.mean().powi(2)).max(0.0) / f64::from(n)).sqrt();
        assert!((mean - rotations.mean()).abs() <= 4.0 * error + 1e-9, "{rotations}: {mean}");
    }

    #[test]
    fn draws_have_the_law_asked_for() {
        check_law(Rotations::Fixed(5), |r| f64::from(u32::from(r == 5)));
        check_law(Rotations::Uniform { first: 2, last: 9 }, |r| {
            if (2..=9).contains(&r) { 1.0 / 8.0 } else { 0.0 }
        });
        for mean in [1.0, 3.0, 400.0] {
            let fails = 1.0 - 1.0 / mean;
            check_law(Rotations::Geometric { mean }, |r| match r {
                0 => 0.0,
                ROTATIONS_MAX => fails.powi(ROTATIONS_MAX as i32 - 1),
                r => fails.powi(r as i32 - 1) / mean,
            });
        }
        check_law(listed(), |r| match r {
            1 => 0.5,
            3 => 0.3,
            20 => 0.2,
            _ => 0.0,
        });
        assert!((listed().mean() - 5.4).abs() < 1e-12);
    }

    #[test]
    fn the_ends_of_the_quantiles_stay_in_range() {
        let highest = 1.0 - f64::EPSILON / 2.0;
        for (rotations, first, last) in [
            (Rotations::Uniform { first: 1, last: 1_000 }, 1, 1_000),
            (Rotations::Geometric { mean: 1.0 }, 1, 1),
            (Rotations::Geometric { mean: 1_000.0 }, 1, 1_000),
            (listed(), 1, 20),
        ] {
            let ends = (rotations.draw(|| 0.0), rotations.draw(|| highest));
            assert_eq!(ends, (first, last), "{rotations}");
        }
    }
}
