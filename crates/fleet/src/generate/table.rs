//! What is asked for.

use std::fmt;
use std::str::FromStr;

/// The kind of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Magnetic disks.
    Disk,
    /// Solid-state drives.
    Ssd,
}

/// What is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The kind of drives.
    pub kind: Kind,
    /// How many groups; at most a million.
    pub group_count: usize,
    /// How many hours; a tenth of each group's is missing.
    pub hour_count: usize,
    /// What chance is drawn from.
    pub seed: u64,
}

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
            _ => Err(format!("'{text}' is not a kind of drive: expected disk or ssd")),
        }
    }
}
