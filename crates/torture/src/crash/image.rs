//! What is left of a machine whose power fails, and what its disks then say of their array.

use std::hash::{Hash, Hasher};

use levelhead_array::assembly::{self, Assembly, Found, Refusal};
use levelhead_array::superblock::{Superblock, copies_of_unknown};
use levelhead_block::Durability;
use levelhead_stats::Rng;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, SECTOR_SIZE, Sectors};

use super::lies::Doubts;
use super::promise::Promise;
use crate::disk::Disk;

/// A write that was inside a disk when the power failed.
#[derive(Clone, Debug)]
pub(crate) struct Torn {
    pub(crate) drive: DriveIdx,
    pub(crate) extent: Extent,
    pub(crate) durability: Durability,
    pub(crate) bytes: Vec<u8>,
}

/// A disk whose place has another one.
#[derive(Clone, Debug)]
pub(crate) struct Replaced {
    pub(crate) drive: DriveIdx,
    pub(crate) disk: Disk,
}

/// What is left of a machine whose power fails at some moment.
#[derive(Clone, Debug)]
pub struct Image {
    pub(crate) disks: Vec<Disk>,
    pub(crate) torn: Vec<Torn>,
    pub(crate) promise: Promise,
    /// Disks that the array did without, also one whose place had a new one.
    pub(crate) lost: DriveSet,
    /// Those of them that never come back.
    pub(crate) dead: DriveSet,
    /// Disks that it was filling, or that were lost while they were filled.
    pub(crate) unfilled: DriveSet,
    /// Disks whose places have others.
    pub(crate) replaced: Vec<Replaced>,
    /// Disks with a sector of a journal that has become unreadable since the last recovery was over.
    pub(crate) spoilt: DriveSet,
    pub(crate) doubts: Doubts,
    /// Stripes, from the first on, of which the array had recorded on enough disks that their redundancy is valid.
    pub(crate) recorded: u64,
    /// Writes of earlier connections and servers that may land yet.
    pub(crate) late: Vec<Torn>,
    /// Whether there are, or were, more faults than the layout survives.
    pub(crate) is_beyond: bool,
    /// Earlier states of disks.
    pub(crate) earlier: Vec<(DriveIdx, Disk)>,
}

impl Image {
    /// Of an array that was never started.
    pub(crate) fn new(disks: Vec<Disk>, promise: Promise) -> Self {
        Self {
            disks,
            torn: Vec::new(),
            promise,
            lost: DriveSet::EMPTY,
            dead: DriveSet::EMPTY,
            unfilled: DriveSet::EMPTY,
            replaced: Vec::new(),
            spoilt: DriveSet::EMPTY,
            doubts: Doubts::default(),
            recorded: 0,
            late: Vec::new(),
            earlier: Vec::new(),
            is_beyond: false,
        }
    }

    /// The server dies and the members live on: what is inside them may land at any later moment.
    pub(crate) fn leave_late(&mut self, of: DriveSet, rng: &mut Rng) {
        for torn in std::mem::take(&mut self.torn) {
            match of.contains(torn.drive) && rng.below(2) == 0 {
                true => self.late.push(torn),
                false => self.torn.push(torn),
            }
        }
    }

    /// A disk is in an earlier state of its own when the array is started.
    pub(crate) fn go_back(&mut self, rng: &mut Rng) -> Option<DriveIdx> {
        let (drive, disk) = drawn(&mut self.earlier, rng)?;
        self.disks[drive.as_usize()] = disk;
        Some(drive)
    }

    /// Some sectors that the array keeps for itself on a disk are in an earlier state of their own when it is started.
    pub(crate) fn go_back_in_part(&mut self, rng: &mut Rng) -> bool {
        let Some((drive, earlier)) = drawn(&mut self.earlier, rng) else { return false };
        put_back_some(&mut self.disks[drive.as_usize()], &earlier, rng)
    }

    /// The power fails: what was inside the disks is carried out in part, and what was in their caches may be gone.
    pub fn crash(&mut self, rng: &mut Rng) {
        for Torn { drive, extent, durability, bytes } in std::mem::take(&mut self.torn) {
            let disk = &mut self.disks[drive.as_usize()];
            let how = rng.below(4);
            for (lba, sector) in extent.iter().zip(bytes.chunks_exact(SECTOR_SIZE)) {
                let is_written = match how {
                    0 => false,
                    1 => true,
                    _ => rng.below(2) == 0,
                };
                if is_written {
                    disk.tear(lba, sector, durability, rng);
                }
            }
        }
        self.disks.iter_mut().for_each(|disk| disk.crash(rng));
        for Replaced { drive, mut disk } in std::mem::take(&mut self.replaced) {
            disk.crash(rng);
            let new = &mut self.disks[drive.as_usize()];
            if !has_metadata(new) {
                self.late.retain(|torn| torn.drive != drive);
                self.earlier.retain(|&(of, _)| of != drive);
                *new = disk; // It is there, too, and the new one is nothing to the array yet.
                self.lost = self.lost.with(drive); // The last run did without it.
            }
        }
    }

    /// Disks that count like lost ones: some sector of theirs cannot be read that the array may need.
    pub(crate) fn faults(&self) -> DriveSet {
        self.spoilt.or(with_bad_places(&self.disks))
    }
}

/// Some sectors that the array keeps for itself on a member are in an earlier state: that of `earlier`.
fn put_back_some(disk: &mut Disk, earlier: &Disk, rng: &mut Rng) -> bool {
    let Some(superblock) = superblock_of(disk) else { return false };
    let reserved = superblock.own.reserved.iter().flat_map(|reserved| reserved.extent.iter());
    let changed: Vec<Lba> = reserved.filter(|&lba| disk.differs(earlier, lba)).collect();
    let mut is_older = false;
    for lba in changed {
        if rng.below(2) == 0 {
            let one = Extent::new(lba, Sectors::new(1));
            disk.write_as(one, &earlier.read(one), Durability::Durable);
            is_older = true;
        }
    }
    is_older
}

/// Whether an array of all these is refused in which this one is a copy of another one.
pub(crate) fn refuses_twin(disks: &[Disk], shown: DriveSet, drive: DriveIdx, of: DriveIdx) -> bool {
    let found = shown.iter().map(|at| find(&disks[if at == drive { of } else { at }.as_usize()]));
    assembly::assemble(&found.collect::<Vec<Found>>()).is_err()
}

/// One of the earlier states.
pub(crate) fn drawn(
    earlier: &mut Vec<(DriveIdx, Disk)>,
    rng: &mut Rng,
) -> Option<(DriveIdx, Disk)> {
    if earlier.is_empty() {
        return None;
    }
    Some(earlier.swap_remove(rng.below(earlier.len() as u64) as usize))
}

/// Disks with an unreadable sector outside their journals.
pub(crate) fn with_bad_places(disks: &[Disk]) -> DriveSet {
    let has_some = |(at, disk): (usize, &Disk)| {
        disk.unreliable().next()?;
        let journal = journal_of(disk).unwrap_or_default();
        let is_place = |lba: Lba| !journal.iter().any(|extent| extent.contains(lba));
        disk.unreliable().any(is_place).then(|| DriveIdx::from_usize(at))
    };
    disks.iter().enumerate().filter_map(has_some).collect()
}

/// How a start that was refused is reported.
const REFUSED: &str = "the array was refused";

/// Whether a start has failed because the array was refused.
pub(crate) fn is_refusal(how: &str) -> bool {
    how.starts_with(REFUSED)
}

/// Which disks are the array.
#[derive(Clone, Debug)]
pub(crate) struct Assembled {
    pub(crate) assembly: Assembly,
    /// Disks that were not shown, or hold old data.
    pub(crate) absent: DriveSet,
    /// Those of them that were shown and may be caught up.
    pub(crate) returning: DriveSet,
}

/// Finds the array on its disks, except for those that are `hidden`. A disk with old data is left out; where two
/// disks went different ways, those are that the last run did without.
pub(crate) fn assemble(
    disks: &[Disk],
    hidden: DriveSet,
    last_lost: DriveSet,
) -> Result<Assembled, String> {
    let mut hidden = hidden;
    loop {
        let shown: Vec<usize> =
            (0..disks.len()).filter(|&at| !hidden.contains(DriveIdx::from_usize(at))).collect();
        let found: Vec<Found> = shown.iter().map(|&at| find(&disks[at])).collect();
        hidden = match assembly::assemble(&found) {
            Ok(assembly) => {
                let absent = assembly.absent;
                let returning = assembly.returning.iter().map(|back| back.own.drive).collect();
                return Ok(Assembled { assembly, absent, returning });
            }
            // A disk that has come into a place and has not been given a superblock, or one that cannot say what it has.
            Err(Refusal::Stranger { found: stale })
            | Err(Refusal::Unreadable { found: stale })
            | Err(Refusal::NoNewest { found: stale })
            | Err(Refusal::Stale { found: [stale, _], .. })
            | Err(Refusal::LeftBehind { found: stale, .. })
            | Err(Refusal::Replaced { found: stale, .. }) => {
                hidden.with(DriveIdx::from_usize(shown[stale]))
            }
            Err(Refusal::DifferentWays { .. }) if !last_lost.without(hidden).is_empty() => {
                hidden.or(last_lost)
            }
            Err(refusal) => return Err(format!("{REFUSED}: {refusal:?}")),
        };
    }
}

/// What is on a member: nothing of what has a sector that cannot be read.
pub(crate) fn find(disk: &Disk) -> Found {
    let is_good = |extent: &Extent| !extent.iter().any(|lba| disk.bad.contains(&lba));
    Found::read(disk.size(), |extent| is_good(&extent).then(|| disk.read(extent)))
}

/// The superblock of a disk that says that it is part of an array.
fn superblock_of(disk: &Disk) -> Option<Superblock> {
    let copies = copies_of_unknown(disk.size()).into_iter();
    let mut read = copies.map(|lba| Superblock::decode(disk.sector(lba)));
    read.find_map(Result::ok)
}

/// Whether a disk says that it is part of an array.
pub(crate) fn is_member(disk: &Disk) -> bool {
    superblock_of(disk).is_some()
}

/// Whether a disk was given metadata of the array that it says it is part of.
pub(crate) fn has_metadata(disk: &Disk) -> bool {
    find(disk).word().is_some_and(|word| word.metadata.is_some())
}

/// Where the journal of a member lies.
pub(crate) fn journal_of(disk: &Disk) -> Option<Vec<Extent>> {
    Some(superblock_of(disk)?.own.journal())
}

/// Where the data of a member lies.
pub(crate) fn places_of(disk: &Disk) -> Option<Vec<Extent>> {
    let superblock = superblock_of(disk)?;
    let area = superblock.own.area(&superblock.spec, superblock.drive_size)?;
    Some(area.runs().collect())
}

/// Two images are the same if nothing that follows can tell them apart; those of a search have no faults of their own.
impl Hash for Image {
    fn hash<H: Hasher>(&self, hash: &mut H) {
        (&self.disks, &self.promise, self.recorded).hash(hash);
        for set in [self.lost, self.dead, self.unfilled] {
            set.hash(hash);
        }
    }
}
