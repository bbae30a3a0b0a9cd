//! The words every other crate speaks: addresses, sizes, times, rates and drive names.
//!
//! A *point* ([`Lba`], [`Instant`]) and a *distance* ([`Sectors`], [`Nanos`]) are different types.
//! Point + distance is a point, point - point is a distance, and nothing else compiles. Where a
//! conversion rounds, its name says how.
//!
//! The textual forms (`8KiB`, `20ms`, `2%`) are parsed and printed here and nowhere else, and text that somebody else wrote is
//! cleaned here: [`foreign`].

#![forbid(unsafe_code)]

mod choice;
mod drives;
mod foreign;
mod space;
mod text;
mod time;

pub use choice::meant;
pub use drives::{DriveIdx, DriveSet};
pub use foreign::{FOREIGN_MAX, escaped, escaped_lines, foreign};
pub use space::{Bytes, Extent, Lba, SECTOR_SIZE, Sectors};
pub use text::{ParseUnitError, short};
pub use time::{Instant, Nanos};

/// A share of one, such as a probability or a rate of failures. Written as a percentage.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Ratio(f64);

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self(0.0);
    /// Everything.
    pub const ONE: Self = Self(1.0);

    /// `value` out of one, or `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The share that `part` is of `whole`; zero of nothing is zero.
    pub fn of(part: u64, whole: u64) -> Self {
        assert!(part <= whole, "{part} is more than {whole}");
        if whole == 0 { Self::ZERO } else { Self(part as f64 / whole as f64) }
    }

    /// The share as a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}
