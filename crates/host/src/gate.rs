//! The bound on what clients have in flight: those who ask for more wait.
//!
//! Writes may take three quarters of it. Those that wait for a drive which hangs leave room for reads of what
//! lies elsewhere.

use levelhead_block::semaphore::{Limit, Weight};
use levelhead_units::Sectors;

/// What may be in flight at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Requests.
    pub requests: u32,
    /// Sectors of their bytes.
    pub sectors: Sectors,
}

impl Bound {
    /// 256 requests, 64 MiB.
    pub const DEFAULT: Self = Self { requests: 256, sectors: Sectors::new(16_384) };

    /// As a limit for all requests, and for changes.
    pub(crate) fn limit(self) -> Limit {
        let (requests, bytes) = (self.requests, self.sectors.bytes().get());
        let changes = Weight { requests: (requests * 3 / 4).max(1), bytes: bytes / 4 * 3 };
        Limit { all: Weight { requests, bytes }, changes }
    }
}
