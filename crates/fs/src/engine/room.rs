//! How much room is kept back.

use super::Filesystem;
use crate::attempt::RoomLeft;
use crate::format::inode::FileKind;
use crate::format::superblock::Superblock;
use crate::geometry::Geometry;

/// Sectors that a page in memory may come to need: itself, what is redundant or complementary if it stands alone, and its share of the
/// tree.
pub(super) fn page_cost(superblock: &Superblock) -> u64 {
    let alone = |kind| superblock.shape(superblock.kind_of_extents(kind), 1).all().sectors.get();
    1 + FileKind::ALL.into_iter().map(alone).max().expect("there are kinds")
}

/// The most pages in memory that no transaction has: 64 MiB.
pub(super) const DIRTY_MAX: u64 = 1 << 14;

/// Sectors that contents of files leave free: half of them are for metadata, the other half for deleting alone.
pub(super) fn floor(geometry: &Geometry) -> u64 {
    (geometry.sectors / 128).clamp(64, 8_192)
}

/// Places that are reserved for units: as many as half of what contents of files leave free has room for.
pub(super) fn spares(geometry: &Geometry) -> usize {
    (floor(geometry) / 2 / u64::from(geometry.copies)) as usize
}

impl Filesystem {
    /// What a request that needs metadata may take, and was promised nothing.
    pub(super) fn room_beside(&self) -> RoomLeft {
        let geometry = &self.superblock.geometry;
        let kept = self.reserved() + floor(geometry) / 2 + self.recent.sectors();
        RoomLeft { free: self.free, kept, spares_kept: spares(geometry) / 2 }
    }

    /// Sectors that new contents of files leave free.
    pub(super) fn kept_from_files(&self) -> u64 {
        self.reserved() + floor(&self.superblock.geometry) + self.recent.sectors()
    }

    /// What an attempt may take that was promised room, or gives some back.
    pub(super) fn room_in_all(&self) -> RoomLeft {
        RoomLeft { free: self.free, kept: 0, spares_kept: 0 }
    }

    /// Sectors that many pages of a file take, with what is redundant or complementary, where room is not in pieces.
    pub(super) fn sectors_for(&self, kind: FileKind, pages: u64) -> u64 {
        let kind = self.superblock.kind_of_extents(kind);
        let whole = u64::from(self.superblock.pages_max(kind));
        let sectors = |pages: u64| self.superblock.shape(kind, pages as u32).all().sectors.get();
        let rest = pages % whole;
        let rest = if rest == 0 { 0 } else { sectors(rest) };
        pages / whole * sectors(whole) + rest
    }

    /// Sectors that pages in memory may come to need.
    pub(super) fn reserved(&self) -> u64 {
        self.dirty * self.page_cost
    }
}
