//! An attempt at an operation: reads units that are in memory, and changes copies of them.
//!
//! ```text
//!   operation --> attempt --> all that it needed was there --> its changes become part of a transaction, all at once
//!       ^            |
//!       |            +------> a unit is not in memory --> nothing has happened; it is read
//!       |                                                          |
//!       +----------------------------------------------------------+
//! ```
//!
//! So no operation waits while it holds anything, and none sees another one half done: there are no locks.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_units::{Extent, Lba};

use crate::cache::{Cache, Unit};
use crate::format::superblock::Superblock;
use crate::format::unit::{HEAD, Kind, Sector};
use crate::recent::Recent;
use crate::request::Errno;

/// Why an attempt has ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Some units are not in memory.
    Need,
    /// It cannot be done.
    Fail(Errno),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Fail(errno)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) superblock: &'a Superblock,
    /// What was freed lately, and may not be taken before that is durable.
    pub(crate) recent: &'a Recent,
    room: RoomLeft,
    /// Sectors that it has freed; less than nothing if it has taken more.
    gained: i64,
    cache: &'a mut Cache,
    /// Units that could not be read.
    lost: &'a BTreeSet<Lba>,
    missing: Vec<Lba>,
    changed: BTreeMap<Lba, Unit>,
    freed: Vec<Extent>,
    /// Leads of units that are there no more.
    freed_units: Vec<Lba>,
    /// Pages that have left their places.
    pub(crate) cut: Vec<CutPages>,
}

/// What an attempt has changed.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) units: BTreeMap<Lba, Unit>,
    /// Sectors of files that are free now.
    pub(crate) freed: Vec<Extent>,
    /// Leads of units that are there no more.
    pub(crate) freed_units: Vec<Lba>,
    /// How many more sectors are free now.
    pub(crate) gained: i64,
    /// Pages that have left their places.
    pub(crate) cut: Vec<CutPages>,
}

/// Pages of a file that have no place any more, or another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CutPages {
    pub(crate) inode: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// How many sectors an attempt may take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoomLeft {
    /// Free sectors, once they were counted.
    pub(crate) free: Option<u64>,
    /// Those of them that it has to leave: for what was promised, and for deleting.
    pub(crate) kept: u64,
    /// Places reserved for units that it has to leave.
    pub(crate) spares_kept: usize,
}

/// What an attempt is made over.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) superblock: &'a Superblock,
    pub(crate) recent: &'a Recent,
    pub(crate) room: RoomLeft,
    pub(crate) cache: &'a mut Cache,
    pub(crate) lost: &'a BTreeSet<Lba>,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(ground: Ground<'a>) -> Self {
        let Ground { superblock, recent, room, cache, lost } = ground;
        let (missing, changed) = (Vec::new(), BTreeMap::new());
        let (freed, freed_units, cut) = (Vec::new(), Vec::new(), Vec::new());
        let gained = 0;
        Self {
            superblock,
            recent,
            room,
            gained,
            cache,
            lost,
            missing,
            changed,
            freed,
            freed_units,
            cut,
        }
    }

    /// The body of a unit of a kind; of an inode's own units the inode is the owner, of others 0 is.
    pub(crate) fn read(&mut self, lead: Lba, kind: Kind, owner: u64) -> Result<&[u8], Stop> {
        self.check(lead, kind, owner)?;
        let unit = match self.changed.get(&lead) {
            Some(unit) => unit,
            None => self.cache.get(lead).expect("it was found"),
        };
        Ok(&unit.bytes[HEAD..])
    }

    /// The same, to be changed.
    pub(crate) fn change(&mut self, lead: Lba, kind: Kind, owner: u64) -> Result<&mut [u8], Stop> {
        self.check(lead, kind, owner)?;
        if !self.changed.contains_key(&lead) {
            let unit = self.cache.get(lead).expect("it was found").clone();
            self.changed.insert(lead, unit);
        }
        let unit = self.changed.get_mut(&lead).expect("it is there");
        Ok(&mut Arc::make_mut(&mut unit.bytes)[HEAD..])
    }

    /// A unit whose body is zeroes, whatever was there.
    pub(crate) fn create(&mut self, lead: Lba, kind: Kind, owner: u64) -> &mut [u8] {
        let bytes: Arc<Sector> = Arc::new([0; HEAD + crate::format::unit::BODY]);
        self.changed.insert(lead, Unit { kind, owner, bytes });
        let unit = self.changed.get_mut(&lead).expect("it is there");
        &mut Arc::make_mut(&mut unit.bytes)[HEAD..]
    }

    /// A unit is there no more.
    pub(crate) fn forget(&mut self, lead: Lba) {
        self.changed.remove(&lead);
        self.freed_units.push(lead);
    }

    /// Sectors of files are free from now on; their bits are cleared by the caller.
    pub(crate) fn note_freed(&mut self, extent: Extent) {
        self.freed.push(extent);
    }

    /// What may not be taken: what was freed lately, and what this attempt has freed itself.
    pub(crate) fn held_back(&self) -> Cow<'a, Recent> {
        if self.freed.is_empty() {
            return Cow::Borrowed(self.recent);
        }
        let mut held_back = self.recent.clone();
        self.freed.iter().for_each(|&extent| held_back.add(extent));
        Cow::Owned(held_back)
    }

    /// Counts sectors that were freed, or, below zero, taken.
    pub(crate) fn gain(&mut self, sectors: i64) {
        self.gained += sectors;
    }

    /// How many sectors are free, if they were counted before.
    pub(crate) fn counted_free(&self) -> Option<u64> {
        self.room.free.map(|free| free.saturating_add_signed(self.gained))
    }

    /// Sectors that it has to leave.
    pub(crate) fn kept(&self) -> u64 {
        self.room.kept
    }

    /// A place reserved for a unit that it may take, one of those nearest to a sector.
    pub(crate) fn spare_near(&self, near: Lba) -> Option<Lba> {
        let is_left = |lead: &Lba| {
            let was_freed = self.freed.iter().any(|extent| extent.contains(*lead));
            !was_freed && !self.changed.contains_key(lead)
        };
        let left: Vec<Lba> = self.recent.spares().filter(is_left).collect();
        if left.len() <= self.room.spares_kept {
            return None;
        }
        left.iter().copied().find(|&lead| lead >= near).or_else(|| left.last().copied())
    }

    /// Whether no copy of a unit could be read.
    pub(crate) fn is_lost(&self, lead: Lba) -> bool {
        self.lost.contains(&lead) && !self.changed.contains_key(&lead)
    }

    /// Whether a unit is in memory, or lost; asks for it if not. For units that are not needed yet.
    pub(crate) fn want(&mut self, lead: Lba) -> bool {
        let is_there =
            self.changed.contains_key(&lead) || self.cache.has(lead) || self.lost.contains(&lead);
        if !is_there {
            self.missing.push(lead);
        }
        is_there
    }

    fn check(&mut self, lead: Lba, kind: Kind, owner: u64) -> Result<(), Stop> {
        if !self.superblock.geometry.may_lead(lead) || self.is_lost(lead) {
            return Err(Stop::Fail(Errno::Io));
        }
        let unit = match self.changed.get(&lead) {
            Some(unit) => Some(unit),
            None => self.cache.get(lead),
        };
        match unit {
            Some(unit) if (unit.kind, unit.owner) == (kind, owner) => Ok(()),
            Some(_) => Err(Stop::Fail(Errno::Io)),
            None => {
                self.missing.push(lead);
                Err(Stop::Need)
            }
        }
    }

    /// Units that were not in memory.
    pub(crate) fn take_missing(&mut self) -> Vec<Lba> {
        std::mem::take(&mut self.missing)
    }

    /// What it has changed.
    pub(crate) fn finish(self) -> Changed {
        let Self { changed: units, freed, freed_units, gained, cut, .. } = self;
        Changed { units, freed, freed_units, gained, cut }
    }
}

/// A sector is not what it should be, although its checksum is right.
pub(crate) fn broken<T>(found: Option<T>) -> Result<T, Stop> {
    found.ok_or(Stop::Fail(Errno::Io))
}
