//! What the figures of several kinds are made of, and limits that messages name.

use std::fmt;

use levelhead_units::{Bytes, Nanos, Sectors};

use super::parts::{Parsed, sectors, unit};

/// The most entries of a [`RotationList`](super::RotationList).
pub const ROTATION_LIST_MAX: usize = 8;

/// The largest factor.
pub(crate) const SLOWDOWN_MAX: f64 = 1_000.0;

/// How long bursts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstLength {
    /// All bursts have this length.
    Fixed(Sectors),
    /// Each length from one sector to this one equally likely.
    Uniform(Sectors),
    /// Geometric with this mean, and at most 16 times the mean.
    Geometric(Sectors),
}

/// The longest a geometric burst is, in means.
pub(super) const CUT: u64 = 16;

/// A time, or any time of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// The least.
    pub least: Nanos,
    /// The most.
    pub most: Nanos,
}

impl BurstLength {
    /// A size, `uniform:` and the largest size, or `geometric:` and the mean.
    pub(super) fn read(text: &str) -> Parsed<Self> {
        if let Some(most) = text.strip_prefix("uniform:") {
            return sectors(most).map(Self::Uniform);
        }
        match text.strip_prefix("geometric:") {
            Some(mean) => sectors(mean).map(Self::Geometric),
            None => sectors(text).map(Self::Fixed),
        }
    }

    /// The mean length in sectors.
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed(length) => length.get() as f64,
            Self::Uniform(most) => (1.0 + most.get() as f64) / 2.0,
            Self::Geometric(mean) => {
                let (mean, longest) = (mean.get() as f64, self.longest() as f64);
                mean * (1.0 - (1.0 - 1.0 / mean).powf(longest))
            }
        }
    }

    pub(super) fn longest(self) -> u64 {
        match self {
            Self::Fixed(length) | Self::Uniform(length) => length.get(),
            Self::Geometric(mean) => mean.get().saturating_mul(CUT),
        }
    }

    pub(super) fn draw(self, unit: f64) -> u64 {
        match self {
            Self::Fixed(length) => length.get(),
            Self::Uniform(most) => (1 + (unit * most.get() as f64) as u64).min(most.get()),
            Self::Geometric(mean) => {
                let more = (1.0 - unit).ln() / (1.0 - 1.0 / mean.get() as f64).ln();
                (more as u64).saturating_add(1).min(self.longest())
            }
        }
    }
}

impl fmt::Display for BurstLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |length: &Sectors| -> Bytes { length.bytes() };
        match self {
            Self::Fixed(length) => write!(f, "{}", text(length)),
            Self::Uniform(most) => write!(f, "uniform:{}", text(most)),
            Self::Geometric(mean) => write!(f, "geometric:{}", text(mean)),
        }
    }
}

impl Between {
    /// A time, or two with a dash between.
    pub(super) fn read(text: &str) -> Parsed<Self> {
        let Some((least, most)) = text.split_once('-') else {
            return unit::<Nanos>(text).map(Into::into);
        };
        Ok(Self { least: unit(least)?, most: unit(most)? })
    }
}

impl From<Nanos> for Between {
    fn from(time: Nanos) -> Self {
        Self { least: time, most: time }
    }
}

impl fmt::Display for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { least, most } = self;
        if least == most { write!(f, "{least}") } else { write!(f, "{least}-{most}") }
    }
}
