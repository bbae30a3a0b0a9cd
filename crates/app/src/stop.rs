//! A wish to stop, from a signal or a control socket to the threads that wait for it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A wish to stop. Clones are the same wish.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// No stop was asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stop.
    pub fn wish(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Whether a stop was asked for.
    pub fn is_wished(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a stop is asked for.
    pub fn wait(&self) {
        let wished = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_while(wished, |wished| !*wished));
    }

    /// Waits for `at`, or until a stop is asked for. Returns whether it was.
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
