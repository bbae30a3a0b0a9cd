//! What is on a disk whose filesystem is not mounted, shown as it is: superblocks, a file, a sector, the journal. Nothing is written:
//! what a cut has left is put in order in memory first, as the next mount would, but for the journal, which is shown as it lies there.
//!
//! Like a check it asks for sectors and waits.

mod files;
mod journal;
mod sectors;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use levelhead_block::BlockDevice;
use levelhead_erasure::Kernel;
use levelhead_units::Lba;

use crate::attempt::{Attempt, Ground, RoomLeft, Stop};
use crate::cache::Cache;
use crate::check::disk::Disk;
use crate::check::settle::Laid;
use crate::check::{CannotCheck, find_superblock, in_order, superblocks};
use crate::format::superblock::{NoSuperblock, Superblock};
use crate::format::unit::{Head, Sector};
use crate::recent::Recent;
use crate::request::Errno;

pub use self::files::{FileFound, FileWindow};
pub use self::journal::{Journal, JournalRecord, read_journal};
pub use self::sectors::{CopyState, FoundSector, Member, SectorState, SectorUse, UnitCopy};

/// Units that stay in memory: 32 MiB.
const CACHED_MAX: usize = 1 << 13;

/// Reads after which an attempt is given up.
const READS_MAX: u32 = 1 << 16;

/// A place of the superblock, and what is there.
#[derive(Clone, Debug)]
pub struct SuperblockCopy {
    /// Where.
    pub lba: Lba,
    /// What is there.
    pub found: Result<Superblock, NoSuperblock>,
    /// Whether it is the one that counts.
    pub counts: bool,
}

/// How much there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Inodes that are not the filesystem's own.
    pub inodes: u64,
    /// Files on the list of those with lost sectors.
    pub files_damaged: u64,
    /// Sectors that nothing has taken.
    pub free_sectors: u64,
}

/// The superblock that counts, and what is in each of its places.
///
/// # Errors
///
/// There is none, or not for this program.
pub fn superblock_copies(
    device: &mut dyn BlockDevice,
) -> Result<(Superblock, Vec<SuperblockCopy>), CannotCheck> {
    let superblock = find_superblock(device)?;
    let mut disk = Disk::new(device);
    let mut copies: Vec<SuperblockCopy> = Vec::new();
    for lba in superblock.geometry.superblocks() {
        let found = superblocks::read(&mut disk, lba);
        let is_first = copies.iter().all(|copy| !copy.counts);
        let counts = is_first && found.as_ref() == Ok(&superblock);
        copies.push(SuperblockCopy { lba, found, counts });
    }
    match disk.trouble() {
        Some(reason) => Err(CannotCheck::Device { reason: reason.to_owned() }),
        None => Ok((superblock, copies)),
    }
}

/// A filesystem that is only looked at.
pub struct Inspector<'a> {
    device: Laid<'a>,
    superblock: Superblock,
    kernel: Kernel,
    cache: Cache,
    recent: Recent,
    lost: BTreeSet<Lba>,
}

/// Why something cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotInspect {
    /// There is no filesystem that could be looked at.
    Filesystem(CannotCheck),
    /// A record of the journal that counts is lost.
    JournalLost,
    /// What leads there cannot be read, or nothing is there.
    Failed(Errno),
    /// The filesystem ends before this sector.
    Beyond {
        /// Its sectors.
        sectors: u64,
    },
}

impl From<CannotCheck> for CannotInspect {
    fn from(why: CannotCheck) -> Self {
        Self::Filesystem(why)
    }
}

impl<'a> Inspector<'a> {
    /// Puts in order, in memory, what a cut has left.
    ///
    /// # Errors
    ///
    /// There is no filesystem, or not for this program, or its journal is lost.
    pub fn open(device: &'a mut dyn BlockDevice, kernel: Kernel) -> Result<Self, CannotInspect> {
        let mut device = Laid::new(device);
        let superblock = in_order(&mut device, kernel)?.ok_or(CannotInspect::JournalLost)?;
        let (cache, recent, lost) = (Cache::new(CACHED_MAX), Recent::default(), BTreeSet::new());
        Ok(Self { device, superblock, kernel, cache, recent, lost })
    }

    /// The superblock as the next mount would have it.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// How much there is.
    ///
    /// # Errors
    ///
    /// The lists of the filesystem's own, or the summary, cannot be read.
    pub fn counts(&mut self) -> Result<Counts, CannotInspect> {
        self.attempt(|attempt| {
            Ok(Counts {
                inodes: attempt.inodes_used()?,
                files_damaged: attempt.damaged_files()?,
                free_sectors: attempt.free_in_all()?,
            })
        })
    }

    /// What an operation brings that changes nothing.
    fn attempt<T>(
        &mut self,
        operation: impl Fn(&mut Attempt<'_>) -> Result<T, Stop>,
    ) -> Result<T, CannotInspect> {
        for _ in 0..READS_MAX {
            let Self { superblock, recent, cache, lost, .. } = self;
            let room = RoomLeft::default();
            let mut attempt = Attempt::new(Ground { superblock, recent, room, cache, lost });
            let brought = operation(&mut attempt);
            let missing = attempt.take_missing();
            match brought {
                Ok(brought) => return Ok(brought),
                Err(Stop::Need) if !missing.is_empty() => self.fetch(missing)?,
                Err(Stop::Need) => break,
                Err(Stop::Fail(errno)) => return Err(CannotInspect::Failed(errno)),
            }
        }
        Err(CannotInspect::Failed(Errno::Io))
    }

    /// Units come into memory, from their best copies.
    fn fetch(&mut self, missing: Vec<Lba>) -> Result<(), CannotInspect> {
        let (geometry, filesystem) = (self.superblock.geometry, self.superblock.filesystem());
        let mut disk = Disk::new(&mut self.device);
        for lead in missing {
            if !geometry.may_lead(lead) {
                self.lost.insert(lead);
                continue;
            }
            let got = disk.read(geometry.copies_of(lead));
            let mut best: Option<(Head, &Sector)> = None;
            for sector in geometry.copies_of(lead).into_iter().filter_map(|lba| got.sector(lba)) {
                let Ok(head) = Head::open(sector) else { continue };
                let is_its = (head.filesystem, head.lba) == (filesystem, lead);
                if is_its && best.is_none_or(|(known, _)| known.generation < head.generation) {
                    best = Some((head, sector));
                }
            }
            match best {
                Some((head, sector)) => self.cache.insert_read(lead, &head, *sector),
                None => drop(self.lost.insert(lead)),
            }
        }
        match disk.trouble() {
            Some(reason) => Err(CannotCheck::Device { reason: reason.to_owned() }.into()),
            None => Ok(()),
        }
    }
}
