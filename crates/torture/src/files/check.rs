//! What lies on a disk is in order, without repair: as `levelhead_fs::check` sees it.

use levelhead_block::{
    BlockDevice, Buf, Command, Data, Effort, Outcome, Reply, Request, SectorSet,
};
use levelhead_erasure::Kernel;
use levelhead_fs::check::{CheckOptions, Depth, Problem, check};
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

use super::disk::Disk;
use super::survey::newest;

/// What may be wrong with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Nothing: all of it was read, and what was bad was written anew.
    Scrubbed,
    /// It was left in order. A sector that the filesystem had written anew when the power failed, because a read had not brought it, may be
    /// unreadable since: what it is computed from is there (RP1 and RP2 in `fs/src/engine/repairs.rs`), and the next read of it, or a
    /// scrub, repairs it.
    Whole,
    /// The power failed: the same, and one superblock, of which one at a time is written, may be unreadable.
    Cut,
}

/// A disk from which is read alone.
struct Still<'a>(&'a Disk);

impl BlockDevice for Still<'_> {
    fn size(&self) -> Sectors {
        self.0.size()
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        batch.iter().map(|request| read(self.0, &request.command)).collect()
    }
}

fn read(disk: &Disk, command: &Command) -> Reply {
    let &Command::Read { extent, effort } = command else {
        panic!("a check without repair asks for {command:?}")
    };
    let mut buf = Buf::zeroed(extent.sectors);
    let mut missing = Vec::new();
    for ((at, lba), into) in
        (0..).zip(extent.iter()).zip(buf.as_mut_slice().chunks_mut(SECTOR_SIZE))
    {
        match disk.bad.contains(&lba) {
            true => missing.push(at),
            false => into.copy_from_slice(disk.sector(lba)),
        }
    }
    let missing: SectorSet = missing.into_iter().collect();
    let outcome = match effort {
        Effort::Full | Effort::Medium => {
            Outcome::Done { unknown: SectorSet::EMPTY, damaged: missing }
        }
        Effort::Fast | Effort::Limited { .. } => {
            Outcome::Done { unknown: missing, damaged: SectorSet::EMPTY }
        }
    };
    Reply { data: Data::Buf(buf), ..Reply::bare(outcome) }
}

/// Whether everything is in order, but for what may be wrong; how many inodes have no names.
pub(crate) fn look(disk: &Disk, trust: Trust) -> Result<u64, String> {
    let options = CheckOptions { depth: Depth::Data, ..CheckOptions::new(Kernel::best()) };
    let report = check(&mut Still(disk), &options).map_err(|how| format!("no check: {how:?}"))?;
    let may_be_bad = |lba: &Lba| disk.may_be_bad(*lba);
    let is_superblock = |problem: &Problem| match problem {
        Problem::Superblock { lba } => !disk.unwritable.contains(lba),
        _ => false,
    };
    let superblocks = report.listed.iter().filter(|listed| is_superblock(&listed.problem)).count();
    let may_be = |problem: &Problem| match (trust, problem) {
        (Trust::Scrubbed, _) => false,
        (_, Problem::Superblock { lba }) if disk.unwritable.contains(lba) => true,
        (Trust::Cut, Problem::Superblock { lba }) => disk.bad.contains(lba) && superblocks == 1,
        (_, Problem::Data { lba, .. } | Problem::Redundant { lba, .. }) => may_be_bad(lba),
        (_, Problem::Copies { lead, bad, .. }) => {
            let rewritten = copies(disk, *lead).iter().filter(|lba| may_be_bad(lba)).count();
            rewritten as u64 >= u64::from(*bad)
        }
        _ => false,
    };
    match report.listed.iter().find(|listed| !may_be(&listed.problem)) {
        Some(listed) => Err(format!("a check says: {}", listed.problem)),
        None => Ok(report.orphans),
    }
}

fn copies(disk: &Disk, lead: Lba) -> Vec<Lba> {
    newest(disk).map_or(Vec::new(), |superblock| superblock.geometry.copies_of(lead))
}
