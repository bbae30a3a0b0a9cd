//! How far a resync is, as people are told.

/// How far the array is with making its redundancy valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resync {
    /// Nothing is under way; there may be stripes left to do.
    Idle,
    /// A step is under way.
    Running,
    /// It cannot go on: a drive is lost, or data of the next stripes cannot be read. A write to those
    /// stripes lets it try again.
    Stuck,
}

/// How far a resync is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResyncProgress {
    /// Stripes whose redundancy is valid, from the first on.
    pub synced: u64,
    /// All stripes.
    pub stripes: u64,
}
