//! Pages of kinds with forced zeroes: each has its last bytes in a sector that it shares with others, which has to be known before one of
//! them is changed.
//!
//! ```text
//!   pages to be flushed --> complementary sectors that they change --> in memory, or read --> changed, in the same transaction
//! ```
//!
//! # Invariants
//!
//! - CP1. A page's primary and all copies of its complementary sector come into one transaction: the page is old or new, never mixed.
//! - CP2. A complementary sector is changed only as the checksum says that it is; where it is lost, pages leave its block instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_block::{Buf, Piece};
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

use super::job::JobId;
use super::reads::{Plan, Target};
use super::{Attempted, Filesystem};
use crate::attempt::{Attempt, Stop};
use crate::format::extent::{CodingExtent, PagePlace, SplitPlace, Window};

/// A complementary sector as it was read.
#[derive(Clone, Debug)]
pub(super) struct Complement {
    /// The checksum that it had then.
    sum: u32,
    /// Nothing if it is lost.
    bytes: Option<Piece>,
}

/// Those that pages are about to change.
pub(super) type Complements = BTreeMap<Lba, Option<Piece>>;

/// Blocks that are being changed, by their complementary sector.
#[derive(Debug, Default)]
pub(super) struct OpenBlocks(BTreeMap<Lba, OpenBlock>);

#[derive(Debug)]
struct OpenBlock {
    extent: CodingExtent,
    place: SplitPlace,
    bytes: Box<[u8; SECTOR_SIZE]>,
}

/// A sector that is to have other bytes.
#[derive(Debug)]
pub(super) struct NewSector {
    pub(super) lba: Lba,
    pub(super) bytes: Piece,
    pub(super) extent: CodingExtent,
}

impl OpenBlocks {
    /// Complementary sectors that are to be written.
    pub(super) fn sectors(&self) -> usize {
        self.0.values().map(|block| block.place.blocks.complements() as usize).sum()
    }

    /// Sectors that changing the block of a place takes beside the primary: none if that has begun.
    pub(super) fn sectors_for(&self, place: &SplitPlace) -> usize {
        match self.0.contains_key(&place.complement) {
            true => 0,
            false => place.blocks.complements() as usize,
        }
    }

    /// Puts a page into its block; returns its primary. `known` is the complementary sector as it was, nothing if that was zeroes.
    pub(super) fn put(
        &mut self,
        extent: CodingExtent,
        place: SplitPlace,
        page: &[u8],
        known: Option<&Piece>,
    ) -> NewSector {
        let block = self.0.entry(place.complement).or_insert_with(|| {
            let mut bytes = Box::new([0; SECTOR_SIZE]);
            if let Some(known) = known {
                bytes.copy_from_slice(known.bytes());
            }
            OpenBlock { extent, place, bytes }
        });
        let mut primary = Buf::zeroed(Sectors::new(1));
        place.blocks.split(place.slot, page, primary.as_mut_slice(), &mut block.bytes[..]);
        NewSector { lba: place.primary, bytes: Piece::whole(Arc::new(primary)), extent }
    }

    /// All complementary sectors as they are to be, both copies of those that have two.
    pub(super) fn close(self) -> impl Iterator<Item = NewSector> {
        self.0.into_values().flat_map(|OpenBlock { extent, place, bytes }| {
            let bytes = Piece::whole(Arc::new(Buf::copy_of(&bytes[..])));
            let sector = move |lba| NewSector { lba, bytes: bytes.clone(), extent };
            [Some(place.complement), place.twin].into_iter().flatten().map(sector)
        })
    }
}

/// The data sectors of a coding extent that is written as a whole, from its pages.
pub(super) fn lay_out<'a>(
    extent: &CodingExtent,
    pages: impl Iterator<Item = &'a Piece>,
) -> Vec<Piece> {
    let mut blocks = OpenBlocks::default();
    let mut sectors: BTreeMap<Lba, Piece> = BTreeMap::new();
    for (place, page) in Window::whole(*extent).places().zip(pages) {
        match place {
            PagePlace::Whole(lba) => drop(sectors.insert(lba, page.clone())),
            PagePlace::Split(place) => {
                let primary = blocks.put(*extent, place, page.bytes(), None);
                sectors.insert(primary.lba, primary.bytes);
            }
        }
    }
    sectors.extend(blocks.close().map(|sector| (sector.lba, sector.bytes)));
    sectors.into_values().collect()
}

impl Attempt<'_> {
    /// Complementary sectors that were written and that some pages are to change, in ascending order.
    fn complements_of(
        &mut self,
        number: u64,
        pages: &[u64],
    ) -> Result<BTreeMap<Lba, Target>, Stop> {
        let inode = self.inode(number)?;
        let mut found = BTreeMap::new();
        let mut left = pages;
        while let Some(&page) = left.first() {
            let mapped = self.window_at(number, &inode, page)?;
            let end = mapped.map_or(page + 1, |mapped| mapped.end());
            let (here, behind) = left.split_at(left.partition_point(|&page| page < end));
            left = behind;
            let Some(mapped) = mapped else { continue };
            let extent = mapped.window.extent;
            for &page in here {
                let at = (page - mapped.page) as u32 + mapped.window.skip;
                let PagePlace::Split(place) = extent.place(at) else { break };
                if let Some(sum) = self.sum(place.complement)? {
                    found.insert(place.complement, Target { sum, extent });
                }
            }
        }
        Ok(found)
    }
}

impl Filesystem {
    /// The complementary sectors that pages of a file are about to change. What is in no memory is read: the job is ready again then.
    pub(super) fn complements(
        &mut self,
        id: JobId,
        number: u64,
        pages: &[u64],
    ) -> Attempted<Complements> {
        if self.superblock.forced.is_none() {
            return Attempted::Complete(BTreeMap::new());
        }
        if self.is_reading(id) {
            self.go_on_reading(id);
            return Attempted::Waits;
        }
        if let Some(read) = self.take_sectors(id) {
            let file = self.files.entry(number).or_default();
            for (lba, target) in &read.plan.targets {
                let bytes = read.got.get(lba).cloned();
                file.complements.insert(*lba, Complement { sum: target.sum, bytes });
            }
        }
        let wanted = match self.attempt(id, |attempt| attempt.complements_of(number, pages)) {
            Attempted::Complete(wanted) => wanted,
            Attempted::Waits => return Attempted::Waits,
            Attempted::Failed(errno) => return Attempted::Failed(errno),
        };
        let (mut known, mut targets) = (Complements::new(), BTreeMap::new());
        let file = self.files.entry(number).or_default();
        for (lba, target) in wanted {
            let logged = self.logged.get(&lba).map(|logged| logged.page.clone());
            let held = logged.or_else(|| self.sectors.get(lba, target.sum));
            let read = file.complements.get(&lba).filter(|read| read.sum == target.sum);
            match (held, read) {
                (Some(bytes), _) => drop(known.insert(lba, Some(bytes))),
                (None, Some(read)) => drop(known.insert(lba, read.bytes.clone())),
                (None, None) => drop(targets.insert(lba, target)),
            }
        }
        if targets.is_empty() {
            return Attempted::Complete(known);
        }
        self.read_sectors(id, Plan { targets, ..Plan::default() });
        Attempted::Waits
    }
}

#[cfg(test)]
mod tests;
