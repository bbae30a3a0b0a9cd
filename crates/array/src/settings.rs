//! What an array is started with.

use levelhead_units::{DriveSet, Sectors};

use crate::drives::queue::HostOrder;
use crate::policy::Policy;
use crate::shape::Spec;

/// Everything an array needs to know when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Its shape.
    pub spec: Spec,
    /// Sectors of every drive that are the array's; the smallest drive counts.
    pub drive_size: Sectors,
    /// How reads are served.
    pub policy: Policy,
    /// Commands inside a drive at a time.
    pub window: u32,
    /// In which order commands leave the host's queues.
    pub order: HostOrder,
    /// Whether buffers have bytes.
    pub content: Content,
    /// Redundancy of stripes below this number is valid; all of it when that is `u64::MAX`.
    pub synced: u64,
    /// Drives that are not there.
    pub lost: DriveSet,
}

/// Whether buffers have bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// They do: arithmetic is asked for.
    Carried,
    /// A timing study: nobody looks at bytes, and no [`Action::Combine`] is asked for.
    Absent,
}
