//! How much room is kept back.

use crate::geometry::Geometry;

/// Sectors that a page in memory may come to need, redundancy and metadata included.
pub(super) const PAGE_COST: u64 = 3;

/// The most pages in memory that no transaction has: 64 MiB.
pub(super) const DIRTY_MAX: u64 = 1 << 14;

/// Sectors that only deleting may take.
pub(super) fn floor(geometry: &Geometry) -> u64 {
    (geometry.sectors / 256).clamp(32, 4_096)
}
