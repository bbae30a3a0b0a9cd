//! Why there are no figures.

use std::fmt;

use levelhead_units::Sectors;

/// What cannot be measured.
#[derive(Clone, Debug, PartialEq)]
pub enum MeasureError {
    /// The drive is too small.
    TooSmall {
        /// Its size.
        size: Sectors,
        /// The least that will do.
        least: Sectors,
    },
    /// Large reads take no longer than small ones.
    NoRate,
    /// No period fits the ends of the reads: nothing turns.
    NoRotation,
    /// The machine itself was too late to say when reads ended.
    Late {
        /// The share of wake-ups that were more than a millisecond late.
        share: f64,
        /// The 99th percentile of their lateness in seconds.
        p99: f64,
    },
    /// The reads agree too little on a figure.
    Unsure {
        /// Which.
        what: Figure,
        /// Its error, as its part.
        share: f64,
        /// The greatest error at which it would be told.
        most: f64,
    },
    /// The rates jump from place to place.
    Unsteady,
}

/// What is not known well enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// The time of a revolution.
    Rotation,
    /// The sustained rate at this sector.
    Rate {
        /// The sector.
        lba: u64,
    },
    /// Random reads a second with this many inside the drive.
    Random {
        /// Their number.
        depth: u32,
    },
    /// The seek over this part of the stroke.
    Seek {
        /// From 0 to 1.
        stroke: f64,
    },
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { size, least } => {
                write!(f, "{} are too little to measure: {} or more", size.bytes(), least.bytes())
            }
            Self::NoRate => {
                f.write_str("large reads take no longer than small ones: is it a disk?")
            }
            Self::NoRotation => {
                f.write_str("reads end at no particular angle: nothing seems to turn in it")
            }
            Self::Late { share, p99 } => write!(
                f,
                "this machine is too busy to measure a disk: {:.1} % of this program's own waits ended more than a \
                 millisecond late and 1 % more than {:.1} ms, so that no profile was written; measure again when it has \
                 nothing else to do",
                share * 100.0,
                p99 * 1e3
            ),
            Self::Unsure { what, share, most } => {
                match what {
                    Figure::Rotation => f.write_str("the time of a revolution")?,
                    Figure::Rate { lba } => write!(f, "the rate at sector {lba}")?,
                    Figure::Random { depth } => {
                        write!(f, "the rate of random reads, {depth} at a time,")?;
                    }
                    Figure::Seek { stroke } => {
                        write!(f, "the seek over {:.3} % of the stroke", stroke * 100.0)?;
                    }
                }
                // An error that is no number, or of nothing, is not told.
                match share.is_finite() {
                    true => write!(
                        f,
                        " is known within {:.1} % only, and {:.1} % are wanted",
                        share * 100.0,
                        most * 100.0
                    )?,
                    false => f.write_str(" is not known")?,
                }
                f.write_str(
                    ", so that no profile was written: the drive or the machine had other things to do, measure again \
                     when it has not",
                )
            }
            Self::Unsteady => f.write_str(
                "the rates jump from place to place, so that no profile was written: the drive or the machine had other \
                 things to do, measure again when it has not",
            ),
        }
    }
}

impl std::error::Error for MeasureError {}
