//! The drives that an array has lost, and which it can lose besides.

use levelhead_units::DriveSet;

use super::Spec;

/// What an array of a shape has lost.
#[derive(Clone, Copy, Debug)]
pub struct Losses {
    /// Its shape.
    pub spec: Spec,
    /// The drives that it does without already.
    pub lost: DriveSet,
}

impl Losses {
    /// Whether all data can be had without these drives, too.
    pub fn can_spare(&self, drives: DriveSet) -> bool {
        self.spec.survives(self.lost.or(drives))
    }
}
