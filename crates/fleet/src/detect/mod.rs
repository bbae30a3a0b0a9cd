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
//mod mad;
//mod median_ratio;
mod peers;
//mod regression;
//mod tukey;

use std::fmt;
use std::str::FromStr;

pub use gather::{Gather, GatherError, Recording, Sample, Window};
pub use judge::{Label, Row, Score, cut, detect, score};
pub use level::{Level, Options};

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

