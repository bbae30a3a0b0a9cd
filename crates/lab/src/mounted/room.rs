//! A disk that is full but for some places: what a new filesystem says then of which sectors are taken.
//!
//! The allocator of an empty filesystem lays files one behind the other, so that a few GB of them lie in a corner of the disk, and reads at
//! random hardly move the head. Where the rest of the disk is taken by something else, as on a disk in use, they lie all over it.

use levelhead_fs::NewFilesystem;
use levelhead_fs::format::unit::{HEAD, Head, Kind, Sector};
use levelhead_fs::geometry::{Geometry, GroupIdx, SUMS};
use levelhead_units::{SECTOR_SIZE, Sectors};

use super::Compact;

/// What is free of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Places of the same size, at even distances, in pairs half a disk apart.
    pub pairs: u64,
    /// About how much is free in each; at most a group of the filesystem, 1 GiB.
    pub size: Sectors,
}

impl Room {
    /// The groups that have room.
    fn groups(&self, geometry: &Geometry) -> Vec<GroupIdx> {
        let half = geometry.groups() / 2;
        let first = (0..self.pairs).map(|pair| pair * half / self.pairs.max(1));
        first.flat_map(|group| [group, group + half]).map(GroupIdx).collect()
    }

    /// Changes what was laid out anew on `storage`: all else is taken.
    pub(super) fn restrict(&self, new: &NewFilesystem, storage: &mut Compact) {
        let geometry = new.superblock.geometry;
        let open = self.groups(&geometry);
        let mut free = vec![0; geometry.groups() as usize];
        for &group in &open {
            free[group.0 as usize] = self.open(new, group, storage);
        }
        let mut first = 0;
        for written in &new.first {
            let Ok(head) = Head::open(&written.bytes) else { continue };
            // Each unit of the summary is there in several copies; all of its groups follow those of the one before.
            if head.kind != Kind::Summary || head.lba != written.lba {
                continue;
            }
            let mut bytes = written.bytes.clone();
            for (at, free) in bytes[HEAD..].chunks_exact_mut(4).zip(&free[first..]) {
                at.copy_from_slice(&(*free as u32 + 1).to_le_bytes());
            }
            first = free.len().min(first + (bytes.len() - HEAD) / 4);
            put_unit(&geometry, head, bytes, storage);
        }
    }

    /// Writes the bitmaps of a group; returns how many sectors are free.
    fn open(&self, new: &NewFilesystem, group: GroupIdx, storage: &mut Compact) -> u64 {
        let geometry = new.superblock.geometry;
        let extent = geometry.group(group);
        // Sums are written anew where no sector is taken that they speak of: all of one unit of them, or none.
        let wanted = geometry.unit_zone().end + self.size.get();
        let end = wanted.next_multiple_of(SUMS).min(extent.sectors.get());
        let is_free = |offset: u64| {
            let lba = extent.lba + Sectors::new(offset);
            let is_reserved = offset < geometry.fixed_end() || geometry.journal().contains(lba);
            offset < end && !is_reserved
        };
        let mut free = 0;
        for (bitmap, lead) in (0..).zip(geometry.bitmaps(group)) {
            let known = new.first.iter().find(|written| written.lba == lead);
            let mut bytes =
                known.map_or_else(|| Box::new([0; SECTOR_SIZE]), |known| known.bytes.clone());
            let bits = geometry.bits_of(group, bitmap);
            for offset in bits.clone() {
                let bit = offset - bits.start;
                let (byte, mask) = (&mut bytes[HEAD + (bit / 8) as usize], 1 << (bit % 8));
                if !is_free(offset) {
                    *byte |= mask;
                }
                free += u64::from(*byte & mask == 0);
            }
            let filesystem = new.superblock.filesystem();
            let head = Head { kind: Kind::Bitmap, filesystem, lba: lead, generation: 0, owner: 0 };
            put_unit(&geometry, head, bytes, storage);
        }
        free
    }
}

fn put_unit(geometry: &Geometry, head: Head, mut bytes: Box<Sector>, storage: &mut Compact) {
    head.seal(&mut bytes);
    for lba in geometry.copies_of(head.lba) {
        storage.put(lba, &bytes[..]);
    }
}
