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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::{Buf, Piece};
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

use super::job::JobId;
use super::plan::{Plan, Target};
use super::{Attempted, Filesystem};
use crate::attempt::{Attempt, Stop};
use crate::format::extent::{CodingExtent, PagePlace, SplitPlace, Window};
use crate::ops::extents::Pages;

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

/// Sectors that pages are about to change.
#[derive(Default)]
struct Changing {
    complements: BTreeMap<Lba, Shared>,
    /// Those beside redundant sectors, which change with them.
    primaries: BTreeMap<Lba, Target>,
}

/// A complementary sector that pages share.
struct Shared {
    target: Target,
    pages: Vec<u64>,
}

/// What pages are brought with.
#[derive(Debug, Default)]
pub(super) struct Brought {
    pub(super) complements: Complements,
    /// Pages that have come meanwhile, and whose complementary sectors are to be read next.
    pub(super) later: BTreeSet<u64>,
}

/// A page with a complementary sector.
#[derive(Debug)]
pub(super) struct SplitPage {
    pub(super) page: u64,
    pub(super) place: SplitPlace,
    pub(super) extent: CodingExtent,
    /// The complementary sector's checksum, if that was written.
    pub(super) sum: Option<u32>,
    /// Whether it gets another place, for its kind.
    leaves: bool,
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

    /// Whether the block of a place is one of them.
    pub(super) fn has(&self, place: &SplitPlace) -> bool {
        self.0.contains_key(&place.complement)
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
    /// What was written of what some pages consist of, if they keep their places.
    fn changed_by(&mut self, number: u64, pages: &[u64]) -> Result<Changing, Stop> {
        let mut changing = Changing::default();
        for SplitPage { page, place, extent, sum, leaves } in self.split_places(number, pages)? {
            if leaves {
                continue;
            }
            if let Some(sum) = sum {
                let shared = changing.complements.entry(place.complement);
                let target = Target { sum, extent };
                shared.or_insert(Shared { target, pages: Vec::new() }).pages.push(page);
            }
            if let Some(sum) = self.sum(place.primary)?
                && extent.redundant > 0
            {
                changing.primaries.insert(place.primary, Target { sum, extent });
            }
        }
        Ok(changing)
    }

    /// Where those of some pages lie that have a complementary sector.
    pub(super) fn split_places(
        &mut self,
        number: u64,
        pages: &[u64],
    ) -> Result<Vec<SplitPage>, Stop> {
        let inode = self.inode(number)?;
        let mut found = Vec::new();
        let mut left = pages;
        while let Some(&page) = left.first() {
            let mapped = self.window_at(number, &inode, page)?;
            let end = mapped.map_or(page + 1, |mapped| mapped.end());
            let (here, behind) = left.split_at(left.partition_point(|&page| page < end));
            left = behind;
            let Some(mapped) = mapped else { continue };
            let extent = mapped.window.extent;
            let kind = self.superblock.kind_of_extents(inode.kind);
            for &page in here {
                let run = run_around(here, page);
                let is_all = run == Pages { from: mapped.page, to: mapped.end() };
                let leaves = extent.kind != kind && (run.are_many() || is_all);
                let at = (page - mapped.page) as u32 + mapped.window.skip;
                let PagePlace::Split(place) = extent.place(at) else { break };
                let sum = self.sum(place.complement)?;
                found.push(SplitPage { page, place, extent, sum, leaves });
            }
        }
        Ok(found)
    }
}

impl Filesystem {
    /// The complementary sectors that pages of a file are about to change. What is in no memory is read: the job is ready again then.
    /// It is read once before pages are brought: what comes meanwhile has to wait, or there would be no end.
    pub(super) fn complements(
        &mut self,
        id: JobId,
        number: u64,
        pages: &[u64],
    ) -> Attempted<Brought> {
        if self.superblock.forced.is_none() {
            return Attempted::Complete(Brought::default());
        }
        if self.is_reading(id) {
            self.go_on_reading(id);
            return Attempted::Waits;
        }
        if let Some(read) = self.take_sectors(id) {
            let file = self.files.open(number);
            let is_complement =
                |(lba, target): &(&Lba, &Target)| target.extent.page_of(**lba).is_none();
            for (lba, target) in read.plan.targets.iter().filter(is_complement) {
                let bytes = read.got.get(lba).cloned();
                file.complements.insert(*lba, Complement { sum: target.sum, bytes });
            }
        }
        let Changing { complements, primaries } =
            match self.attempt(id, |attempt| attempt.changed_by(number, pages)) {
                Attempted::Complete(changing) => changing,
                Attempted::Waits => return Attempted::Waits,
                Attempted::Failed(errno) => return Attempted::Failed(errno),
            };
        let (mut brought, mut targets) = (Brought::default(), BTreeMap::new());
        let file = self.files.open(number);
        for (lba, Shared { target, pages }) in complements {
            let logged = self.logged.get(&lba).map(|logged| logged.page.clone());
            let held = logged.or_else(|| self.sectors.get(lba, target.sum));
            let read = file.complements.get(&lba).filter(|read| read.sum == target.sum);
            let known = match (held, read) {
                (Some(bytes), _) => Some(bytes),
                (None, Some(read)) => read.bytes.clone(),
                (None, None) => {
                    targets.insert(lba, target);
                    brought.later.extend(pages);
                    continue;
                }
            };
            brought.complements.insert(lba, known);
        }
        if targets.is_empty() || (file.has_read && brought.later.len() < pages.len()) {
            return Attempted::Complete(brought);
        }
        file.has_read = true;
        // They lie beside, and what is redundant comes from how they change: read along, they are in memory then.
        let is_wanted = |(lba, target): &(Lba, Target)| {
            !self.logged.contains_key(lba) && self.sectors.get(*lba, target.sum).is_none()
        };
        targets.extend(primaries.into_iter().filter(is_wanted).collect::<Vec<_>>());
        self.read_sectors(id, Plan { targets, ..Plan::default() });
        Attempted::Waits
    }
}

/// The pages around one of them that follow one another.
fn run_around(pages: &[u64], page: u64) -> Pages {
    let at = pages.partition_point(|&other| other < page);
    let before = pages[..at].iter().rev().zip((0..page).rev());
    let behind = pages[at..].iter().zip(page..);
    let is_next = |(one, next): &(&u64, u64)| **one == *next;
    let from = page - before.take_while(is_next).count() as u64;
    Pages { from, to: page + behind.take_while(is_next).count() as u64 }
}

#[cfg(test)]
mod tests;
