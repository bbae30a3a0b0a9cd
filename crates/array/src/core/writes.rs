//! Clients' writes: those that were carried out, those that may be gone with a drive, and those that were given up.

use levelhead_units::Sectors;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientWrites {
    /// Those that have been carried out.
    pub(crate) ended: u64,
    /// Those of them that a flush has made safe.
    pub(crate) flushed: u64,
    /// Whether writes that were not flushed may be gone with a drive, so that the next flush must fail.
    pub(crate) has_lost: bool,
    /// Memory of those that were given up and are still being carried out.
    pub(crate) given_up: Sectors,
}
