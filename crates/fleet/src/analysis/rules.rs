//! How much a pass looks at, and of what.

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Slowdowns of drive hours and the largest of group hours.
    Slowdown,
    /// Load, time, age, model and what followed as well.
    Everything,
}

/// What the pass counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What is looked at.
    pub scope: Scope,
    /// Fewest requests of a drive hour that is not idle.
    pub ios_min: i32,
}
