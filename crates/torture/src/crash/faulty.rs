//! A drive that reports write commands as complete and has not stored them as they were sent.

use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

/// What a faulty drive does with a write command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It stores nothing.
    Lost,
    /// It stores the bytes elsewhere, and nothing at the target.
    Misdirected,
    /// It stores a part of the sectors, or of a single one.
    Torn,
}

/// What a write command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Data or redundancy, perhaps with tag sectors.
    Place,
    /// One tag sector.
    Tag,
    /// A record of the journal, or a list of checksums.
    Record,
    /// A superblock or metadata.
    Metadata,
}

/// What becomes of a write command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Stored,
    Lost,
    /// It lands on the sectors from this one on.
    Elsewhere(Lba),
    /// The sectors at these offsets are stored.
    Part(Vec<u64>),
    /// Parts of its only sector are stored.
    Within,
}

/// See the module. It errs in a run of consecutive write commands, and never again.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    pub(crate) drive: DriveIdx,
    way: Way,
    /// What the first of them writes; anything if there is none.
    first: Option<Kind>,
    /// How many of them are left.
    left: u64,
    rng: Rng,
    /// What it has done.
    pub(crate) done: Vec<(Extent, Fate)>,
}

impl Faulty {
    pub(crate) fn new(drive: DriveIdx, way: Way, count: u64, rng: &mut Rng) -> Self {
        let first = match rng.below(16) {
            0..9 => Some(Kind::Place),
            9..12 => Some(Kind::Tag),
            12..15 => Some(Kind::Record),
            _ => None,
        };
        let rng = Streams::new(rng.bits()).stream("rot/faulty");
        Self { drive, way, first, left: count, rng, done: Vec::new() }
    }

    /// It stores everything from now on.
    pub(crate) fn behave(&mut self) {
        self.left = 0;
    }

    /// What becomes of a command that writes these sectors of a drive of this size.
    pub(crate) fn fate(
        &mut self,
        drive: DriveIdx,
        extent: Extent,
        kind: Kind,
        size: Sectors,
    ) -> Fate {
        let has_begun = !self.done.is_empty();
        let is_meant = has_begun || self.first.is_none_or(|first| first == kind);
        if drive != self.drive || self.left == 0 || !is_meant {
            return Fate::Stored;
        }
        self.left -= 1;
        let fate = match self.way {
            Way::Lost => Fate::Lost,
            Way::Misdirected => Fate::Elsewhere(self.elsewhere(extent, size)),
            Way::Torn if extent.sectors == Sectors::new(1) => Fate::Within,
            Way::Torn => Fate::Part(self.part(extent.sectors.get())),
        };
        self.done.push((extent, fate.clone()));
        fate
    }

    /// Another place for a command: often near the target.
    fn elsewhere(&mut self, extent: Extent, size: Sectors) -> Lba {
        let last = (size - extent.sectors).get();
        let near = extent.lba.get().saturating_sub(8) + self.rng.below(17);
        let at = if self.rng.below(2) == 0 { near.min(last) } else { self.rng.below(last + 1) };
        match at == extent.lba.get() {
            true => Lba::new(if at == 0 { 1 } else { at - 1 }),
            false => Lba::new(at),
        }
    }

    /// Some of this number of sectors, not all: the first ones, the last ones, or any.
    fn part(&mut self, sectors: u64) -> Vec<u64> {
        let cut = 1 + self.rng.below(sectors - 1);
        match self.rng.below(3) {
            0 => (0..cut).collect(),
            1 => (cut..sectors).collect(),
            _ => (0..sectors).filter(|&at| at != cut && self.rng.below(2) == 0).collect(),
        }
    }
}
