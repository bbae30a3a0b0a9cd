//! The real clock, as the cores see it.

use std::time;

use levelhead_units::{Instant, Nanos};

/// Time since the array was started. Copies agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(time::Instant::now())
    }

    pub(crate) fn now(self) -> Instant {
        // 2^64 ns are 584 years.
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }

    /// How long it is until `deadline`; nothing if that has passed.
    pub(crate) fn until(self, deadline: Instant) -> Nanos {
        deadline.saturating_since(self.now())
    }
}
