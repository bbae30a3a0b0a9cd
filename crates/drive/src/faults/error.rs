//! What no drive's misbehaviour can be.

use std::fmt;

use levelhead_units::{Nanos, Ratio, Sectors};

use super::values::{Between, BurstLength, ROTATION_LIST_MAX, SLOWDOWN_MAX};
use crate::mechanics::ROTATIONS_MAX;

/// What no drive's misbehaviour can be, with the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultsError {
    /// Failed neighbours would be rarer than chance, or more frequent than pairs allow.
    Adjacency {
        /// The adjacency asked for.
        adjacency: f64,
        /// The retry rate.
        rate: Ratio,
        /// The most that rate allows.
        most: f64,
    },
    /// Bursts would be longer than the gap between them, or without length.
    Bursts {
        /// The mean distance of their beginnings.
        gap: Sectors,
        /// Their length.
        length: BurstLength,
    },
    /// A retry would take no time, or too long.
    Rotations {
        /// The revolutions asked for.
        rotations: u32,
    },
    /// The most would be less than the least.
    RotationRange {
        /// The least.
        first: u32,
        /// The most.
        last: u32,
    },
    /// The mean of a geometric retry is out of range.
    RotationMean {
        /// The mean asked for.
        mean: f64,
    },
    /// A list of revolutions is empty or too long.
    RotationCount {
        /// How many entries there are.
        count: usize,
    },
    /// The probabilities of a list of revolutions do not add up to one.
    RotationShares {
        /// Their sum.
        sum: f64,
    },
    /// The drive would be faster than its make, or hardly move.
    Slowdown {
        /// The slowdown asked for.
        slowdown: f64,
    },
    /// A time is out of range.
    Time {
        /// The name of the time.
        what: &'static str,
        /// The time asked for.
        time: Nanos,
        /// The least.
        least: Nanos,
        /// The most.
        most: Nanos,
    },
    /// A periodic slowness would last longer than its period, or begin later, or a range is empty.
    Periodic {
        /// The period.
        period: Between,
        /// How long it lasts.
        duration: Between,
    },
    /// A factor of the field's would hardly ever change.
    Persistence {
        /// The probability that it stays.
        persistence: Ratio,
    },
    /// A stall would last longer than the time between two.
    Stalls {
        /// The mean time between the beginnings of two.
        gap: Nanos,
        /// How long one lasts.
        duration: Nanos,
    },
    /// Something is stated that the table of the drive's code says.
    Ecc {
        /// The table's name.
        table: &'static str,
        /// What is stated beside it.
        key: &'static str,
    },
    /// Sectors would fail more often with more zeroes at their ends.
    ZeroTails {
        /// The share asked for.
        rate: Ratio,
        /// The share with fewer zeroes.
        most: Ratio,
    },
}

impl fmt::Display for FaultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adjacency { adjacency, most, .. } if most.is_infinite() => {
                write!(f, "an adjacency is a finite number of at least 1, not {adjacency}")
            }
            Self::Adjacency { adjacency, rate, most } => write!(
                f,
                "at a retry rate of {rate} the adjacency is 1 to {most:.2}, not {adjacency}"
            ),
            Self::Bursts { gap, length } => write!(
                f,
                "bad stretches begin 64KiB to 1PiB apart and are no longer than that, not {length} every \
                 {}",
                gap.bytes()
            ),
            Self::Rotations { rotations } => {
                write!(f, "a retry takes 1 to {ROTATIONS_MAX} revolutions, not {rotations}")
            }
            Self::RotationRange { first, last } => {
                write!(f, "the most revolutions of a retry are at least {first}, not {last}")
            }
            Self::RotationMean { mean } => {
                write!(f, "a retry takes 1 to {ROTATIONS_MAX} revolutions on average, not {mean}")
            }
            Self::RotationCount { count } => {
                write!(f, "a retry has 1 to {ROTATION_LIST_MAX} lengths, not {count}")
            }
            Self::RotationShares { sum } => {
                let percent = (sum * 1e8).round() / 1e6;
                write!(f, "the shares of a retry's lengths add up to 100%, not {percent}%")
            }
            Self::Slowdown { slowdown } => {
                write!(f, "a drive is slowed down 1 to {SLOWDOWN_MAX} times, not {slowdown} times")
            }
            Self::Time { what, time, least, most } => {
                write!(f, "{what} is {least} to {most}, not {time}")
            }
            Self::Periodic { period, duration } => write!(
                f,
                "slowness every {period} begins within that time and ends before the next, not after \
                 {duration}"
            ),
            Self::Persistence { persistence } => {
                write!(f, "a slowdown of the field's stays with 0% to 99%, not {persistence}")
            }
            Self::Stalls { gap, duration } => {
                write!(f, "a stall every {gap} lasts at most {gap}, not {duration}")
            }
            Self::Ecc { table, key } => write!(
                f,
                "the retry table '{table}' says how sectors fail and recover: {key} cannot be stated beside ecc"
            ),
            Self::ZeroTails { rate, most } => write!(
                f,
                "a sector with zeroes at its end fails at most as often as one with fewer: {most}, not \
                 {rate}"
            ),
        }
    }
}

impl std::error::Error for FaultsError {}
