//! How a filesystem stands.

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Coding extents whose redundancy is not what it should be yet.
    pub groups_stale: u64,
    /// Sectors that were written anew because they could not be read or were wrong.
    pub sectors_repaired: u64,
    /// Sectors of files that were found lost, each counted once.
    pub sectors_lost: u64,
    /// Sectors that were computed from others for a reader.
    pub sectors_decoded: u64,
    /// Sectors that the disk gave only after retries.
    pub sectors_retried: u64,
    /// Files with sectors that are lost.
    pub files_damaged: u64,
}
