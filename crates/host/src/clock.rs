//! The real clock, as the cores see it.

use std::num::NonZeroU64;
use std::time;

use levelhead_units::{Instant, Nanos};

/// Lets this thread wake up from its waits as soon as they are over. Without it the kernel takes up to 50 microseconds more
/// (`PR_SET_TIMERSLACK` in prctl(2)), which is as much as a tenth of the shortest seek of an emulated drive.
pub(crate) fn precise_timers() {
    // Where it is not allowed, the thread is as late as others.
    let _refused = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

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
