//! What a device says about itself.

use levelhead_units::{Instant, Nanos, Ratio};

/// A device's own account of itself, as S.M.A.R.T. pages give it: counts of its whole life, rates and
/// means of its recent past. Every field may be
/// missing; what an array *infers* about a drive is kept elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// When the device was asked.
    pub as_of: Instant,
    /// Reads and writes that have ended, since the device was new.
    pub commands: Option<u64>,
    /// Sectors whose first pass failed, since the device was new.
    pub first_pass_failures: Option<u64>,
    /// Reads that were retried, since the device was new.
    pub retries: Option<u64>,
    /// Share of sectors read whose first pass failed: the `p_f` of `[ERAID]`, per sector.
    pub retry_rate: Option<Ratio>,
    /// Mean time spent on retries by reads that needed them: `tau_retry` of `[ERAID]`.
    pub retry_latency_mean: Option<Nanos>,
    /// Mean time of one command inside the device's mechanics, without its wait in the queue and
    /// without retries: `tau_hdd` of `[ERAID]`.
    pub service_time_mean: Option<Nanos>,
}
