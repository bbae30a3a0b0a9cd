//! A drive that stores versions of sectors, and its one fault.

use levelhead_stats::Rng;

use super::GROUP;

/// What an array knows of a sector that it has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its checksum. No two contents share one.
    pub(super) sum: u64,
    /// Stamp of the write that stored it; 0 where that is not known.
    pub(super) own: u32,
    /// Of a redundant sector: the stamps of the stripe's data when this was written.
    pub(super) of: [u32; 2],
}

/// A tag sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tags {
    /// The group that it is for.
    pub(super) group: usize,
    pub(super) entries: [Option<Entry>; GROUP],
}

/// What lies in a sector of a drive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored {
    /// Data or redundancy. A checksum in the same command says `sum` and `home`, the position it was written for.
    Sector {
        value: u64,
        sum: u64,
        home: usize,
    },
    Tags(Tags),
    /// Neither: no checksum fits.
    Garbage,
}

/// What a drive does once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Rot,
    Lost,
    Torn,
    Misdirected,
    Burst,
}

/// What a drive will do to its next commands.
#[derive(Clone, Debug)]
enum Armed {
    Drop(u64),
    Tear(Rng),
    Misdirect(Rng),
}

#[derive(Clone, Debug)]
pub(super) struct Drive {
    pub(super) sectors: Vec<Stored>,
    armed: Option<Armed>,
}

impl Drive {
    pub(super) fn new(sectors: Vec<Stored>) -> Self {
        Self { sectors, armed: None }
    }

    /// The fault happens now, or to the next command.
    pub(super) fn arm(&mut self, fault: Fault, mut rng: Rng) {
        self.armed = match fault {
            Fault::Rot => {
                let at = rng.below(self.sectors.len() as u64) as usize;
                self.sectors[at] = Stored::Garbage;
                None
            }
            Fault::Lost => Some(Armed::Drop(1)),
            Fault::Burst => Some(Armed::Drop(2 + rng.below(6))),
            Fault::Torn => Some(Armed::Tear(rng)),
            Fault::Misdirected => Some(Armed::Misdirect(rng)),
        };
    }

    /// A command that is acknowledged, whatever the drive makes of it.
    pub(super) fn write(&mut self, first: usize, sectors: &[Stored]) {
        match self.armed.take() {
            None => self.store(first, sectors),
            Some(Armed::Drop(count)) => {
                self.armed = (count > 1).then_some(Armed::Drop(count - 1));
            }
            Some(Armed::Tear(mut rng)) => {
                // At one of the 512-byte blocks of the command.
                let stored = rng.below(8 * sectors.len() as u64) as usize;
                self.store(first, &sectors[..stored / 8]);
                if !stored.is_multiple_of(8) {
                    self.sectors[first + stored / 8] = Stored::Garbage;
                }
            }
            Some(Armed::Misdirect(mut rng)) => {
                let places = (self.sectors.len() - sectors.len()) as u64;
                let other = rng.below(places) as usize;
                self.store(other + usize::from(other >= first), sectors);
            }
        }
    }

    fn store(&mut self, first: usize, sectors: &[Stored]) {
        self.sectors[first..][..sectors.len()].copy_from_slice(sectors);
    }
}
