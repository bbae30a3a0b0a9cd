//! The disk of a filesystem's crash swarm: what it has stored for good, and what a power cut makes of the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::Durability;
use levelhead_fs::geometry::Geometry;
use levelhead_stats::Rng;
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

/// The bytes of a sector. Copies of a disk share them.
type Sector = Arc<[u8]>;

/// Bytes of a sector of the drive's own: a power cut leaves each of them old or new.
const OWN_SECTOR: usize = 512;

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

/// A version of a sector in the disk's memory.
#[derive(Clone, Debug)]
struct Cached {
    /// The command that has brought it.
    command: u64,
    /// Which of all the sectors that ever came this is.
    arrival: u64,
    bytes: Sector,
}

/// See the module. A clone shares its sectors.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    medium: Vec<Sector>,
    /// Versions of a sector that may be lost, in the order of their arrival.
    cache: BTreeMap<Lba, Vec<Cached>>,
    arrivals: u64,
    /// Sectors that cannot be read until they are written.
    pub(crate) bad: BTreeSet<Lba>,
    /// Sectors that were on their way when the power failed, and were not written since.
    pub(crate) cut_off: BTreeSet<Lba>,
    /// Sectors that cannot be written: what is read of them is what was there before.
    pub(crate) unwritable: BTreeSet<Lba>,
    /// Sectors that the filesystem has ever written anew because a read had not brought them, as it says.
    pub(crate) rewritten: BTreeSet<Lba>,
}

impl Disk {
    /// A disk full of zeroes.
    pub(crate) fn new(size: Sectors) -> Self {
        let zeroes: Sector = vec![0; SECTOR_SIZE].into();
        let medium = vec![zeroes; size.as_usize()];
        let (bad, cut_off, unwritable, rewritten) = Default::default();
        Self { medium, cache: BTreeMap::new(), arrivals: 0, bad, cut_off, unwritable, rewritten }
    }

    /// How many sectors it has.
    pub(crate) fn size(&self) -> Sectors {
        Sectors::new(self.medium.len() as u64)
    }

    /// The bytes of a sector, as a read gives them.
    pub(crate) fn sector(&self, lba: Lba) -> &[u8] {
        match self.cache.get(&lba).and_then(|versions| versions.last()) {
            Some(cached) => &cached.bytes,
            None => &self.medium[lba.get() as usize],
        }
    }

    /// How many sectors have arrived: a flush makes those safe that had when it was sent.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// A sector of a write that has ended.
    pub(crate) fn write(&mut self, coming: Coming, durability: Durability) {
        let Coming { lba, bytes, command } = coming;
        self.bad.remove(&lba);
        self.cut_off.remove(&lba);
        match durability {
            Durability::Durable => {
                self.cache.remove(&lba);
                self.medium[lba.get() as usize] = bytes;
            }
            Durability::Cached => {
                self.arrivals += 1;
                let arrival = self.arrivals;
                self.cache.entry(lba).or_default().push(Cached { command, arrival, bytes });
            }
        }
    }

    /// A sector is stored for good, by whichever command.
    pub(crate) fn store(&mut self, lba: Lba, bytes: &[u8]) {
        let coming = Coming { lba, bytes: bytes.into(), command: 0 };
        self.write(coming, Durability::Durable);
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

    /// A flush has ended: what had arrived by then is safe.
    pub(crate) fn flush(&mut self, arrived: u64) {
        self.cache.retain(|lba, versions| {
            let safe = versions.iter().take_while(|cached| cached.arrival <= arrived).count();
            if let Some(last) = versions.drain(..safe).next_back() {
                self.medium[lba.get() as usize] = last.bytes;
            }
            !versions.is_empty()
        });
    }

    /// The power fails while some sectors are on their way.
    pub(crate) fn cut(&mut self, fate: Fate, inside: Vec<Coming>, rng: &mut Rng) {
        let mut all: Vec<Coming> = Vec::new();
        for (lba, versions) in std::mem::take(&mut self.cache) {
            all.extend(versions.into_iter().map(|Cached { command, bytes, .. }| Coming {
                lba,
                bytes,
                command,
            }));
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
        if self.unwritable.contains(&lba) {
            return;
        }
        self.bad.remove(&lba);
        self.medium[lba.get() as usize] = bytes;
    }

    /// Parts of a sector are new, and others old.
    pub(crate) fn torn(&self, lba: Lba, bytes: &[u8], rng: &mut Rng) -> Sector {
        let mut left = bytes.to_vec();
        let old = self.sector(lba).chunks_exact(OWN_SECTOR);
        for (new, old) in left.chunks_exact_mut(OWN_SECTOR).zip(old) {
            if rng.below(2) == 0 {
                new.copy_from_slice(old);
            }
        }
        left.into()
    }

    /// A sector cannot be read any more, or has other bytes.
    pub(crate) fn damage(&mut self, lba: Lba, rng: &mut Rng) {
        assert!(self.cache.is_empty(), "a disk that is at rest is damaged");
        match rng.below(2) {
            0 => drop(self.bad.insert(lba)),
            _ => {
                let mut bytes = self.sector(lba).to_vec();
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 + rng.below(255) as u8;
                self.medium[lba.get() as usize] = bytes.into();
            }
        }
    }
}
