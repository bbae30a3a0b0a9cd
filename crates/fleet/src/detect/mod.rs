//! Detectors: which members of a group are slow, from windows of five minutes, without looking ahead.
//!
//! A detector is told of each window once, in the order of time, and may change a verdict only then. `watch` feeds the same detectors
//! with what this host does, so that a record of its samples gives the same verdicts.

/// Seconds of a window.
pub const WINDOW: i64 = 300;

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

/// What a detector knows of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The verdict now.
    pub verdict: Verdict,
    /// The member's latency over the median of its peers', and an interval of it.
    pub ratio: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// When it was first found slow (end of that window, unix seconds).
    pub decided_at: Option<i64>,
    /// Hours of usable windows until then, or until now.
    pub busy_hours: f64,
}

/// One rule, with its state over one group.
pub trait Detector {
    /// A window of the group, `at` its beginning in unix seconds: one reading for each member, always in the same order.
    fn handle_window(&mut self, at: i64, members: &[Option<Reading>]);

    /// What it says of each member.
    fn findings(&self) -> Vec<Finding>;
}
