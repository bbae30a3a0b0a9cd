//! A disk in memory that has room only for what was written, and that counts what is asked of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::{
    BlockDevice, Buf, Command, Data, Outcome, Payload, Piece, Reply, Request, SectorSet,
};
use levelhead_fs::format::unit::Sector;
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

/// Sectors that one story may ask for: many times what its disk has.
const ASKED_MAX: u64 = 400_000;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    size: Sectors,
    sectors: BTreeMap<u64, Arc<Sector>>,
    /// Those that cannot be read until they are written.
    pub(crate) bad: BTreeSet<u64>,
    asked: u64,
    /// Whether a write is a mistake.
    pub(crate) is_read_only: bool,
}

impl Disk {
    pub(crate) fn new(size: Sectors) -> Self {
        let (sectors, bad) = Default::default();
        Self { size, sectors, bad, asked: 0, is_read_only: false }
    }

    /// The same, to which nothing may be written.
    pub(crate) fn read_only(&self) -> Self {
        Self { is_read_only: true, asked: 0, ..self.clone() }
    }

    /// The same content, of which nothing was asked yet.
    pub(crate) fn fresh(&self) -> Self {
        Self { asked: 0, ..self.clone() }
    }

    /// Sectors that were written, in ascending order.
    pub(crate) fn written(&self) -> Vec<u64> {
        self.sectors.keys().copied().collect()
    }

    pub(crate) fn sector(&self, lba: Lba) -> Sector {
        self.sectors.get(&lba.get()).map_or([0; SECTOR_SIZE], |sector| **sector)
    }

    pub(crate) fn put(&mut self, lba: Lba, bytes: &Sector) {
        assert!(lba.get() < self.size.get(), "{lba:?} of {:?}", self.size);
        self.bad.remove(&lba.get());
        self.sectors.insert(lba.get(), Arc::new(*bytes));
    }

    fn carry_out(&mut self, request: Request) -> Reply {
        let Request { command, payload, .. } = request;
        assert!(command.fits(self.size), "{command:?} past the end");
        self.asked += command.payload().get() + 1;
        assert!(self.asked < ASKED_MAX, "it asks without an end, now for {command:?}");
        match (command, payload) {
            (Command::Read { extent, .. }, _) => {
                let mut buf = Buf::zeroed(extent.sectors);
                let places = buf.as_mut_slice().chunks_exact_mut(SECTOR_SIZE);
                for (lba, into) in extent.iter().zip(places) {
                    if let Some(sector) = self.sectors.get(&lba.get()) {
                        into.copy_from_slice(&sector[..]);
                    }
                }
                let is_bad = |&at: &u32| self.bad.contains(&(extent.lba.get() + u64::from(at)));
                let damaged: SectorSet = (0..extent.sectors.get() as u32).filter(is_bad).collect();
                let outcome = Outcome::Done { unknown: SectorSet::EMPTY, damaged };
                Reply { data: Data::Buf(buf), ..Reply::bare(outcome) }
            }
            (Command::Write { extent, .. }, Payload::Pieces(pieces)) => {
                assert!(!self.is_read_only, "{command:?} to what is only read");
                for (lba, bytes) in extent.iter().zip(Piece::each_sector(&pieces)) {
                    self.put(lba, bytes.try_into().expect("a sector"));
                }
                Reply::bare(Outcome::GOOD)
            }
            (Command::Flush, _) => Reply::bare(Outcome::GOOD),
            (other, _) => panic!("a filesystem does not ask for {other:?}"),
        }
    }
}

impl BlockDevice for Disk {
    fn size(&self) -> Sectors {
        self.size
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        batch.into_iter().map(|request| self.carry_out(request)).collect()
    }
}
