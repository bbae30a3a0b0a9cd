//! What single stages find out.

use levelhead_units::Lba;

/// A sustained rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Where.
    pub lba: Lba,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// How many more or fewer they may be: half of an interval of about 95 %.
    pub error: f64,
}

/// Random reads of one sector each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtDepth {
    /// The number of reads inside the drive at a time.
    pub depth: u32,
    /// Reads a second.
    pub per_s: f64,
    /// How many more or fewer a longer run may have: half of an interval of about 95 %.
    pub error: f64,
    /// Their mean latency in seconds.
    pub mean: f64,
    /// The 99th percentile of their latency in seconds.
    pub p99: f64,
}

/// A seek.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seek {
    /// Its length in the assumed cylinders.
    pub length: u64,
    /// The time in seconds of a read at that distance without the wait for its sector: the controller, the
    /// seek and the sector itself. What the machine itself is usually late by is taken off.
    pub positioning: f64,
    /// How much more or less it may be: half of an interval of 95 % of the median of these times, what the machine's lateness leaves in
    /// doubt, and by how much ways of one length differ beyond that lateness.
    pub error: f64,
}
