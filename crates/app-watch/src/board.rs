//! What the last sample has left for scrapes, so that none of them waits for the watch.
//!
//! - BO1. A lock is held as long as it takes to put a finished list there or to copy one, never while something is asked.
//! - BO2. What is older than some samples is not shown: absent is better than stale.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use levelhead_fleet::watch::{DriveVerdict, Tail};
use levelhead_metrics::Source;

use super::DriveAudit;
use super::metrics::{self, Shown};

/// Periods without a sample after which the last one is not shown any more.
const STALE_PERIODS: u32 = 4;

/// See the module.
pub(super) struct Board {
    shown: Arc<Mutex<Shown>>,
    every: Duration,
}

impl Board {
    /// Of a watch that samples once in this time.
    pub(super) fn new(every: Duration) -> Self {
        Self { shown: Arc::default(), every }
    }

    pub(super) fn put(&self, verdicts: Vec<DriveVerdict>, tails: Vec<Tail>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.at = Some(Instant::now());
        shown.samples += 1;
        shown.verdicts = verdicts.into();
        shown.tails = tails.into();
    }

    pub(super) fn put_audits(&self, audits: Vec<DriveAudit>) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).audits = audits.into();
    }

    /// Answers scrapes.
    pub(super) fn source(&self) -> Source {
        let shown = Arc::clone(&self.shown);
        let stale = self.every * STALE_PERIODS;
        Box::new(move || {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let age = shown.at.map(|at| at.elapsed());
            if age.is_none_or(|age| age > stale) {
                shown = Shown { at: shown.at, samples: shown.samples, ..Shown::default() };
            }
            metrics::families(&shown, age)
        })
    }
}
