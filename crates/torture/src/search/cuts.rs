//! What a power cut may leave: every version of every sector in a cache, and every part of every write that was inside.

use levelhead_block::Durability;
use levelhead_units::{DriveIdx, Lba, SECTOR_SIZE};

use crate::crash::image::{Image, Replaced, Torn, has_metadata};
use crate::disk::Sector;

/// The most images of one power cut that are taken.
const IMAGES_MAX: u64 = 4_096;

/// All images, or the first of them if there are too many; and whether there were.
pub(super) fn all(image: &Image) -> (Vec<Image>, bool) {
    let torn: Vec<(DriveIdx, Lba, Sector, Durability)> =
        image.torn.iter().flat_map(sectors).collect();
    let mut base = image.clone();
    base.torn = Vec::new();
    let parts = 1_u64.checked_shl(torn.len() as u32).unwrap_or(u64::MAX);
    let (mut images, mut is_capped) = (Vec::new(), parts > IMAGES_MAX);
    for part in 0..parts.min(IMAGES_MAX) {
        let mut image = base.clone();
        for (at, (drive, lba, sector, durability)) in torn.iter().enumerate() {
            if part >> at & 1 == 1 {
                image.disks[drive.as_usize()].put(*lba, sector.clone(), *durability);
            }
        }
        let versions: Vec<(usize, Lba, u64)> = (0..image.disks.len())
            .flat_map(|at| image.disks[at].versions().into_iter().map(move |(lba, n)| (at, lba, n)))
            .collect();
        let count = versions.iter().try_fold(1_u64, |all, (.., n)| all.checked_mul(n + 1));
        let count = count.unwrap_or(u64::MAX);
        is_capped |= count > IMAGES_MAX;
        for choice in 0..count.min(IMAGES_MAX) {
            if images.len() as u64 >= IMAGES_MAX {
                is_capped = true;
                break;
            }
            let mut image = image.clone();
            let mut rest = choice;
            for &(at, lba, n) in &versions {
                image.disks[at].keep_version(lba, rest % (n + 1));
                rest /= n + 1;
            }
            put_old_ones_back(&mut image);
            images.push(image);
        }
    }
    (images, is_capped)
}

/// The sectors of a write, each by itself.
fn sectors(torn: &Torn) -> impl Iterator<Item = (DriveIdx, Lba, Sector, Durability)> {
    let Torn { drive, extent, durability, ref bytes } = *torn;
    let bytes = bytes.chunks_exact(SECTOR_SIZE).map(Sector::from);
    extent.iter().zip(bytes).map(move |(lba, sector)| (drive, lba, sector, durability))
}

/// Where a new drive has no metadata yet, the old one is there.
fn put_old_ones_back(image: &mut Image) {
    for Replaced { drive, mut disk } in std::mem::take(&mut image.replaced) {
        disk.settle();
        let new = &mut image.disks[drive.as_usize()];
        if !has_metadata(new) {
            *new = disk;
            image.lost = image.lost.with(drive);
        }
    }
}
