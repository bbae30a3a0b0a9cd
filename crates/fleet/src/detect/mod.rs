//! Detectors: which members of a group are slow, from windows of five minutes, without looking ahead.
//!
//! ```text
//!   samples --> gather --> windows of a group --> a detector --> findings --> judge: against labels
//!                              (one at a time)
//! ```
//!
//! A detector is told of each window once, in the order of time, and may change a verdict only then. `watch` feeds the same detectors
//! with what this host does, so that a record of its samples gives the same verdicts.
//!
//! # Invariants
//!
//! - D1. A finding depends on the windows handled so far alone.
//! - D2. What a detector keeps is bounded by the count of members, however many windows it is told of.
//! - D3. Members exchanged give the same findings, exchanged.
//! - D4. Nothing in a reading makes a detector panic: a latency that is not above 0, or not finite, counts as none.

mod gather;
mod history;
mod judge;
mod level;
mod mad;
mod median_ratio;
mod peers;
mod regression;
mod tukey;

use std::fmt;
use std::str::FromStr;

pub use gather::{Gather, GatherError, Recording, Sample, Window};
pub use judge::{Label, Row, Score, cut, detect, score};
pub use level::{Level, Options};
pub use mad::Mad;
pub use median_ratio::MedianRatio;
pub use regression::Regression;
pub use tukey::Tukey;

/// Seconds of a window.
pub const WINDOW: i64 = 300;

/// Windows of a busy hour.
pub const WINDOWS_PER_HOUR: usize = 12;

/// What one member did in one window; a member that was not there, or of which nothing usable came, has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Mean latency, in microseconds, above 0.
    pub latency_us: f64,
    /// Load, in whatever unit all members share: requests or bytes a second.
    pub load: f64,
}

/// What is said of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As its peers.
    Fine,
    /// Slower than them, for longer than chance explains.
    Slow,
    /// Nothing can be said: too few peers, or too few usable windows.
    CannotTell,
}

impl Verdict {
    /// The verdict in a word or two.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Slow => "slow",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// What a detector knows of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The verdict now.
    pub verdict: Verdict,
    /// The member's latency over the median of its peers', of late; not a number while there is no usable window.
    pub ratio: f64,
    /// Lower end of the ratio's 95 % interval.
    pub low: f64,
    /// Upper end of the ratio's 95 % interval.
    pub high: f64,
    /// When it was first found slow (end of that window, unix seconds).
    pub decided_at: Option<i64>,
    /// Hours of usable windows until then, or until now.
    pub busy_hours: f64,
}

/// One rule, with its state over one group.
pub trait Detector {
    /// A window of the group, `at` its beginning in unix seconds: one reading for each member, always in the same order.
    ///
    /// Panics if the count of members changes.
    fn handle_window(&mut self, at: i64, members: &[Option<Reading>]);

    /// What it says of each member.
    fn findings(&self) -> Vec<Finding>;
}

/// A detector by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// See [`Level`].
    Level,
    /// See [`MedianRatio`].
    MedianRatio,
    /// See [`Mad`].
    Mad,
    /// See [`Tukey`].
    Tukey,
    /// See [`Regression`].
    Regression,
}

impl Kind {
    /// All of them, this project's own first.
    pub const ALL: [Self; 5] =
        [Self::Level, Self::MedianRatio, Self::Mad, Self::Tukey, Self::Regression];

    /// The name by which it is asked for.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::MedianRatio => "median-ratio",
            Self::Mad => "mad",
            Self::Tukey => "tukey",
            Self::Regression => "regression",
        }
    }

    /// A detector for a group of this number of members, which has seen nothing yet.
    pub fn detector(self, member_count: usize) -> Box<dyn Detector> {
        match self {
            Self::Level => Box::new(Level::new(member_count, Options::FROZEN)),
            Self::MedianRatio => Box::new(MedianRatio::new(member_count)),
            Self::Mad => Box::new(Mad::new(member_count)),
            Self::Tukey => Box::new(Tukey::new(member_count)),
            Self::Regression => Box::new(Regression::new(member_count)),
        }
    }

    /// The rule and each of its constants, as text of several lines.
    pub fn explain(self) -> String {
        match self {
            Self::Level => Options::FROZEN.explain(),
            Self::MedianRatio => median_ratio::explain(),
            Self::Mad => mad::explain(),
            Self::Tukey => tukey::explain(),
            Self::Regression => regression::explain(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|kind| kind.name()).collect();
            format!("no detector is called '{name}', but {}", names.join(", "))
        })
    }
}
