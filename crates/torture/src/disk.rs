//! A disk that can lose power: what is on its medium, and what is in its cache and may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use levelhead_block::Durability;
use levelhead_stats::Rng;
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

/// What a disk does with flushes and durable writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manners {
    /// It does what it says.
    Honest,
    /// It ends them at once and keeps the bytes in its cache.
    Lying,
    /// It does what it says, and its own sectors are of 512 bytes: a power cut may leave new ones and old ones in one of
    /// the array's.
    Tearing,
}

/// What is in a sector. A clone shares it.
#[derive(Clone, Debug)]
pub(crate) struct Sector(Arc<Content>);

#[derive(Debug)]
struct Content {
    bytes: Box<[u8]>,
    /// A hash of the bytes, once somebody has asked for it.
    digest: OnceLock<u64>,
}

impl From<&[u8]> for Sector {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::new(Content { bytes: bytes.into(), digest: OnceLock::new() }))
    }
}

impl Deref for Sector {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl Hash for Sector {
    fn hash<H: Hasher>(&self, hash: &mut H) {
        let digest = self.0.digest.get_or_init(|| {
            let mut hash = DefaultHasher::new();
            self.0.bytes.hash(&mut hash);
            hash.finish()
        });
        digest.hash(hash);
    }
}

/// A sector that changes between two reads.
#[derive(Clone, Copy, Debug)]
struct Flaky {
    /// Reads until it changes.
    reads: u64,
    is_bad_then: bool,
}

/// A sector that was never written.
const ZEROES: [u8; SECTOR_SIZE] = [0; SECTOR_SIZE];

/// Bytes of a sector of a disk that tears.
const OWN_SECTOR: usize = 512;

/// A version of a sector in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) bytes: Sector,
    /// The command that has brought it, where commands are told apart.
    pub(crate) command: u64,
    /// Its number among all that came into the cache.
    number: u64,
}

/// See the module. A clone shares its sectors.
#[derive(Clone, Debug)]
pub struct Disk {
    medium: Vec<Sector>,
    /// In the order of their arrival; none is empty.
    cache: BTreeMap<Lba, Vec<Version>>,
    /// The number of the next version in the cache.
    next: u64,
    /// Sectors that it does not give until they are written.
    pub(crate) bad: BTreeSet<Lba>,
    /// Sectors that it gives for some reads more, or does not give for some.
    flaky: BTreeMap<Lba, Flaky>,
    /// Sectors that it says it has written, and has not: what was to be there.
    unstored: BTreeMap<Lba, Sector>,
    manners: Manners,
}

impl Disk {
    /// A disk full of zeroes.
    pub fn new(size: Sectors, manners: Manners) -> Self {
        let medium = vec![Sector::from(&ZEROES[..]); size.as_usize()];
        let (cache, bad, flaky, unstored) = Default::default();
        Self { medium, cache, next: 0, bad, flaky, unstored, manners }
    }

    /// A new one of the same kind.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.size(), self.manners)
    }

    /// How many sectors it has.
    pub fn size(&self) -> Sectors {
        Sectors::new(self.medium.len() as u64)
    }

    /// What a read gives, but for sectors that are bad.
    pub fn read(&self, extent: Extent) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(extent.sectors.as_usize() * SECTOR_SIZE);
        extent.iter().for_each(|lba| bytes.extend_from_slice(self.sector(lba)));
        bytes
    }

    /// What a read gives of a sector, unless that is bad.
    pub(crate) fn sector(&self, lba: Lba) -> &[u8] {
        let newest = self.cache.get(&lba).and_then(|versions| versions.last());
        newest.map_or(&self.medium[lba.get() as usize], |newest| &newest.bytes)
    }

    /// Whether a sector is anything but zeroes.
    pub(crate) fn holds_something(&self, lba: Lba) -> bool {
        *self.sector(lba) != ZEROES
    }

    /// Whether a sector is not as on another disk.
    pub(crate) fn differs(&self, other: &Self, lba: Lba) -> bool {
        *self.sector(lba) != *other.sector(lba)
    }

    /// Cannot give a sector any more, until that is written.
    pub(crate) fn spoil(&mut self, lba: Lba) {
        self.bad.insert(lba);
    }

    /// Cannot give a sector any more after this many reads, or before them, until that is written.
    pub(crate) fn spoil_between(&mut self, lba: Lba, reads: u64, is_bad_then: bool) {
        self.flaky.insert(lba, Flaky { reads, is_bad_then });
        if !is_bad_then {
            self.bad.insert(lba);
        }
    }

    /// It gives every sector again.
    pub(crate) fn heal(&mut self) {
        self.bad.clear();
        self.flaky.clear();
    }

    /// A sector is read: some change by that.
    pub(crate) fn wear(&mut self, extent: Extent) {
        if self.flaky.is_empty() {
            return;
        }
        for lba in extent.iter() {
            let Some(Flaky { reads, is_bad_then }) = self.flaky.get_mut(&lba) else { continue };
            *reads = reads.saturating_sub(1);
            if *reads == 0 {
                match *is_bad_then {
                    true => self.bad.insert(lba),
                    false => self.bad.remove(&lba),
                };
                self.flaky.remove(&lba);
            }
        }
    }

    /// Sectors that it does not give, or may not.
    pub(crate) fn unreliable(&self) -> impl Iterator<Item = Lba> {
        self.bad.iter().chain(self.flaky.keys()).copied()
    }

    /// A write into the cache has ended.
    pub fn write(&mut self, extent: Extent, bytes: &[u8]) {
        self.write_as(extent, bytes, Durability::Cached);
    }

    /// A write has ended. A durable one goes past the cache: what else is there stays there.
    pub(crate) fn write_as(&mut self, extent: Extent, bytes: &[u8], durability: Durability) {
        for (lba, sector) in extent.iter().zip(bytes.chunks_exact(SECTOR_SIZE)) {
            self.put(lba, sector.into(), durability);
        }
    }

    /// The same of one sector.
    pub(crate) fn put(&mut self, lba: Lba, sector: Sector, durability: Durability) {
        self.put_of(0, lba, sector, durability);
    }

    /// A sector of a write has come, of this command.
    pub(crate) fn put_of(&mut self, command: u64, lba: Lba, bytes: Sector, durability: Durability) {
        self.bad.remove(&lba);
        self.flaky.remove(&lba);
        self.unstored.remove(&lba);
        match durability {
            Durability::Durable if self.manners != Manners::Lying => {
                self.cache.remove(&lba);
                self.medium[lba.get() as usize] = bytes;
            }
            Durability::Durable | Durability::Cached => {
                let version = Version { bytes, command, number: self.next };
                self.cache.entry(lba).or_default().push(version);
                self.next += 1;
            }
        }
    }

    /// A write has ended well, and nothing of it was stored.
    pub(crate) fn pretend(&mut self, extent: Extent, bytes: &[u8]) {
        for (lba, sector) in extent.iter().zip(bytes.chunks_exact(SECTOR_SIZE)) {
            self.unstored.insert(lba, sector.into());
        }
    }

    /// Sectors of writes that it has not stored, and that were not written since.
    pub(crate) fn unstored(&self) -> impl Iterator<Item = Lba> {
        self.unstored.keys().copied()
    }

    /// Whether a sector is not what was written there last.
    pub(crate) fn is_stale(&self, lba: Lba) -> bool {
        self.unstored.get(&lba).is_some_and(|bytes| bytes[..] != *self.sector(lba))
    }

    /// What a flush that begins now covers: all writes that have ended.
    pub(crate) fn begin_flush(&self) -> u64 {
        self.next
    }

    /// A flush has ended. It covers what had ended when it began, and nothing that has ended since.
    pub(crate) fn end_flush(&mut self, covers: u64) {
        if self.manners == Manners::Lying {
            return;
        }
        let Self { cache, medium, .. } = self;
        cache.retain(|lba, versions| {
            let safe = versions.iter().take_while(|version| version.number < covers).count();
            if let Some(last) = versions.drain(..safe).next_back() {
                medium[lba.get() as usize] = last.bytes;
            }
            !versions.is_empty()
        });
    }

    /// What a flush covers that began then: of each sector in the cache the number of versions.
    pub(crate) fn covered(&self, covers: u64) -> Vec<(Lba, u64)> {
        let counted = self.cache.iter().map(|(&lba, versions)| {
            (lba, versions.iter().filter(|version| version.number < covers).count() as u64)
        });
        counted.filter(|&(_, count)| count > 0).collect()
    }

    /// Sectors in the cache, and how many versions of each.
    pub(crate) fn versions(&self) -> Vec<(Lba, u64)> {
        self.covered(u64::MAX)
    }

    /// The power fails: of this sector the version of that number is left, from 1 on, or none of those in the cache.
    pub(crate) fn keep_version(&mut self, lba: Lba, number: u64) {
        let versions = self.cache.remove(&lba).unwrap_or_default();
        if let Some(version) = number.checked_sub(1).and_then(|at| versions.get(at as usize)) {
            self.medium[lba.get() as usize] = version.bytes.clone();
        }
    }

    /// Everything is stored, whatever its manners.
    pub fn settle(&mut self) {
        let honest = std::mem::replace(&mut self.manners, Manners::Honest);
        self.end_flush(self.next);
        self.manners = honest;
    }

    /// The power has failed: what was in the cache, which is left to the caller.
    pub(crate) fn take_cache(&mut self) -> impl Iterator<Item = (Lba, Vec<Version>)> + use<> {
        std::mem::take(&mut self.cache).into_iter()
    }

    /// A sector on the medium is another now, and can be read.
    pub(crate) fn store(&mut self, lba: Lba, bytes: Sector) {
        self.bad.remove(&lba);
        self.medium[lba.get() as usize] = bytes;
    }

    /// Whether a sector is in the cache.
    pub(crate) fn is_cached(&self, lba: Lba) -> bool {
        self.cache.contains_key(&lba)
    }

    /// The power fails while this sector is being written.
    pub(crate) fn tear(&mut self, lba: Lba, bytes: &[u8], durability: Durability, rng: &mut Rng) {
        let bytes = self.left_of(lba, bytes, rng);
        self.put(lba, bytes, durability);
    }

    /// What is left of a sector that is being written when the power fails.
    fn left_of(&self, lba: Lba, bytes: &[u8], rng: &mut Rng) -> Sector {
        match self.manners == Manners::Tearing && rng.below(2) == 0 {
            true => self.torn(lba, bytes, rng),
            false => bytes.into(),
        }
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
        left.as_slice().into()
    }

    /// The power fails. Of every sector in the cache any version may have come to the medium, or none.
    pub fn crash(&mut self, rng: &mut Rng) {
        for (lba, versions) in self.take_cache() {
            let chosen = rng.below(versions.len() as u64 + 1) as usize;
            if let Some(version) = chosen.checked_sub(1).map(|at| &versions[at]) {
                self.medium[lba.get() as usize] = self.left_of(lba, &version.bytes, rng);
            }
        }
    }
}

/// Two disks are the same if they hold the same, whatever the numbers of their writes are.
impl Hash for Disk {
    fn hash<H: Hasher>(&self, hash: &mut H) {
        self.medium.hash(hash);
        for (lba, versions) in &self.cache {
            versions.iter().for_each(|version| (lba, &version.bytes).hash(hash));
        }
        self.bad.hash(hash);
    }
}
