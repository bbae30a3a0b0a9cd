//! Time: points since the run began, and lengths, both in whole nanoseconds.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A point in time, in nanoseconds since the run began. The runtime supplies it; no core
/// reads a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Instant {
    /// When the run began.
    pub const ZERO: Self = Self(0);

    /// `nanos` nanoseconds after the run began.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the run began.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was, or nothing if it is still to come.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A length given in nanoseconds.
    #[inline]
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A length given in microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A length given in milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A length given in seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// A length given in seconds and parts of them, to the nearest nanosecond.
    ///
    /// Panics if it is negative, not a number, or longer than 584 years.
    pub fn from_secs_f64_round(secs: f64) -> Self {
        let nanos = (secs * 1e9).round();
        assert!((0.0..u64::MAX as f64).contains(&nanos), "{secs} s is not a length of time");
        Self(nanos as u64)
    }

    /// The length in nanoseconds.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The length in milliseconds and parts of them.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The length in seconds and parts of them.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - rhs`, or nothing where that would be negative.
    #[must_use]
    #[inline]
    pub const fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, rhs: Nanos) -> Self {
        Self(self.0.checked_add(rhs.0).expect("a run lasts less than 584 years"))
    }
}

impl Sub for Instant {
    type Output = Nanos;
    #[inline]
    fn sub(self, rhs: Self) -> Nanos {
        Nanos(self.0.checked_sub(rhs.0).expect("time does not run backwards"))
    }
}

impl Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, rhs: Self) -> Self {
        Self(self.0.checked_add(rhs.0).expect("a run lasts less than 584 years"))
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Nanos {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.checked_sub(rhs.0).expect("a length is not negative"))
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    #[inline]
    fn mul(self, rhs: u64) -> Self {
        Self(self.0.checked_mul(rhs).expect("a run lasts less than 584 years"))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(lengths: I) -> Self {
        lengths.fold(Self::ZERO, Self::add)
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(length: Nanos) -> Self {
        Self::from_nanos(length.0)
    }
}
