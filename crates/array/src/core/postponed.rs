//! Commands that wait for another attempt.

use levelhead_units::Instant;

use crate::names::SubId;

/// A command that was refused, and when it is sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Postponed {
    pub(crate) at: Instant,
    pub(crate) sub: SubId,
}
