//! The disk of a filesystem's crash swarm: what a power cut makes of its commands, and sectors that cannot be written.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use levelhead_block::Durability;
use levelhead_fs::geometry::Geometry;
use levelhead_stats::Rng;
use levelhead_units::{Lba, Sectors};

use crate::disk::{self, Manners, Sector, Version};

/// What a power cut makes of writes that no flush has made safe, and of those that were inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing of them is there.
    Lost,
    /// All of them are.
    Kept,
    /// The commands that came first are there: half of them.
    First,
    /// All but one command are.
    AllButOne,
    /// One command is.
    One,
    /// Each command is there or not.
    Commands,
    /// Each sector is there or not, and some are old and new by parts, or cannot be read.
    Sectors,
}

impl Fate {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Lost,
        Self::Kept,
        Self::First,
        Self::AllButOne,
        Self::One,
        Self::Commands,
        Self::Sectors,
    ];
}

/// A sector that is written and not safe.
#[derive(Clone, Debug)]
pub(crate) struct Coming {
    pub(crate) lba: Lba,
    pub(crate) bytes: Sector,
    /// The command that writes it.
    pub(crate) command: u64,
}

/// See the module. A clone shares its sectors.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    under: disk::Disk,
    /// Sectors that were on their way when the power failed, and were not written since.
    pub(crate) cut_off: BTreeSet<Lba>,
    /// Sectors that cannot be written: what is read of them is what was there before.
    pub(crate) unwritable: BTreeSet<Lba>,
    /// Sectors that the filesystem has ever written anew because a read had not brought them, as it says.
    pub(crate) rewritten: BTreeSet<Lba>,
}

impl Deref for Disk {
    type Target = disk::Disk;

    fn deref(&self) -> &disk::Disk {
        &self.under
    }
}

impl DerefMut for Disk {
    fn deref_mut(&mut self) -> &mut disk::Disk {
        &mut self.under
    }
}

impl Disk {
    /// A disk full of zeroes.
    pub(crate) fn new(size: Sectors) -> Self {
        let (cut_off, unwritable, rewritten) = Default::default();
        Self { under: disk::Disk::new(size, Manners::Tearing), cut_off, unwritable, rewritten }
    }

    /// A sector of a write that has ended.
    pub(crate) fn write(&mut self, coming: Coming, durability: Durability) {
        let Coming { lba, bytes, command } = coming;
        self.cut_off.remove(&lba);
        self.under.put_of(command, lba, bytes, durability);
    }

    /// One sector in this number cannot be written any more, of the superblocks, and of the copies of a unit that may lie there, never more
    /// than one.
    pub(crate) fn wear_out(&mut self, every: u64, geometry: &Geometry, rng: &mut Rng) {
        for from in (0..self.size().get() - every).step_by(every as usize) {
            self.unwritable.insert(Lba::new(from + rng.below(every)));
        }
        let leads = (0..geometry.sectors).map(Lba::new).filter(|&lead| geometry.may_lead(lead));
        let units = leads.map(|lead| geometry.copies_of(lead));
        for copies in units.chain([geometry.superblocks().to_vec()]) {
            let worn = copies.iter().filter(|copy| self.unwritable.contains(copy)).skip(1);
            for copy in worn.copied().collect::<Vec<Lba>>() {
                self.unwritable.remove(&copy);
            }
        }
    }

    /// Whether a sector may be bad without anybody's mistake: it cannot be written, or was being written anew when the power failed.
    pub(crate) fn may_be_bad(&self, lba: Lba) -> bool {
        let was_rewritten = self.bad.contains(&lba) && self.rewritten.contains(&lba);
        was_rewritten || self.unwritable.contains(&lba)
    }

    /// The power fails while some sectors are on their way.
    pub(crate) fn cut(&mut self, fate: Fate, inside: Vec<Coming>, rng: &mut Rng) {
        let mut all: Vec<Coming> = Vec::new();
        for (lba, versions) in self.under.take_cache() {
            let coming = |Version { command, bytes, .. }| Coming { lba, bytes, command };
            all.extend(versions.into_iter().map(coming));
        }
        self.cut_off.extend(inside.iter().map(|coming| coming.lba));
        all.extend(inside);
        let commands: BTreeSet<u64> = all.iter().map(|coming| coming.command).collect();
        let commands: Vec<u64> = commands.into_iter().collect();
        if commands.is_empty() {
            return;
        }
        let at = rng.below(commands.len() as u64) as usize;
        let kept: BTreeSet<u64> = match fate {
            Fate::Lost => BTreeSet::new(),
            Fate::Kept | Fate::Sectors => commands.iter().copied().collect(),
            Fate::First => commands[..at].iter().copied().collect(),
            Fate::AllButOne => {
                commands.iter().copied().filter(|&one| one != commands[at]).collect()
            }
            Fate::One => BTreeSet::from([commands[at]]),
            Fate::Commands => commands.iter().copied().filter(|_| rng.below(2) == 0).collect(),
        };
        for Coming { lba, bytes, command } in all {
            if !kept.contains(&command) {
                continue;
            }
            let is_torn = fate == Fate::Sectors;
            match if is_torn { rng.below(16) } else { 0 } {
                _ if !is_torn => self.put(lba, bytes),
                0..6 => self.put(lba, bytes),
                6..11 => {}
                11 => drop(self.bad.insert(lba)),
                _ => {
                    let torn = self.torn(lba, &bytes, rng);
                    self.put(lba, torn);
                }
            }
        }
    }

    fn put(&mut self, lba: Lba, bytes: Sector) {
        if !self.unwritable.contains(&lba) {
            self.under.store(lba, bytes);
        }
    }

    /// A sector cannot be read any more, or has other bytes. One that could not be read stays so.
    pub(crate) fn damage(&mut self, lba: Lba, rng: &mut Rng) {
        assert!(self.versions().is_empty(), "a disk that is at rest is damaged");
        match rng.below(2) {
            0 => drop(self.bad.insert(lba)),
            _ => {
                let mut bytes = self.sector(lba).to_vec();
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 + rng.below(255) as u8;
                let was_bad = self.bad.contains(&lba);
                self.under.store(lba, bytes.as_slice().into());
                if was_bad {
                    self.bad.insert(lba);
                }
            }
        }
    }
}
