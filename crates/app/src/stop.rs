//! A wish to stop, from a signal or a control socket to whoever waits.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A wish to stop. Clones are the same wish.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Nobody wishes to stop yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stop.
    pub fn wish(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Whether somebody wishes to stop.
    pub fn is_wished(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until somebody wishes to stop.
    pub fn wait(&self) {
        let wished = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_while(wished, |wished| !*wished));
    }

    /// Waits for `at`, or until somebody wishes to stop. Returns whether somebody does.
    pub fn wait_until(&self, at: Instant) -> bool {
        let wished = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = at.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return *wished;
        }
        let waited = self.0.1.wait_timeout_while(wished, left, |wished| !*wished);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
