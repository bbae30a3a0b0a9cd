//! How much a pass looks at.

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Slowdowns of drive hours and the largest of group hours.
    Slowdown,
    /// Load, time, age and what followed as well.
    Everything,
}
