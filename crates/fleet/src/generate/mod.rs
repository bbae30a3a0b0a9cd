//! Made-up fleets: hours tables after the field study, and healthy or sick groups for detectors.

mod fitted;
pub mod groups;
mod hours;

use std::fmt;
use std::str::FromStr;

pub use hours::{HoursGenerator, Kind, Shape};

impl Kind {
    /// What it is called: `disk` or `ssd`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Ssd => "ssd",
        }
    }

    /// What several of it are called.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Disk => "disks",
            Self::Ssd => "solid-state drives",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "disk" => Ok(Self::Disk),
            "ssd" => Ok(Self::Ssd),
            _ => Err(format!("'{text}' is no kind of drive: there are disk and ssd")),
        }
    }
}
