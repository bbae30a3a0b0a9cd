//! Sectors of files in memory.

use std::collections::BTreeMap;

use levelhead_block::Piece;
use levelhead_units::Lba;

/// Sectors of files in memory, those that were used last, each with its checksum: what lies in its place is another one when that
/// has changed.
#[derive(Debug)]
pub(super) struct SectorCache {
    sectors: BTreeMap<Lba, Held>,
    order: BTreeMap<u64, Lba>,
    clock: u64,
    most: usize,
}

#[derive(Debug)]
struct Held {
    bytes: Piece,
    sum: u32,
    used: u64,
}

impl SectorCache {
    pub(super) fn new(most: usize) -> Self {
        Self { sectors: BTreeMap::new(), order: BTreeMap::new(), clock: 0, most }
    }

    /// How many sectors it has at most.
    pub(super) fn most(&self) -> u64 {
        self.most as u64
    }

    /// The sector that has this checksum.
    pub(super) fn get(&mut self, lba: Lba, sum: u32) -> Option<Piece> {
        let held = self.sectors.get_mut(&lba).filter(|held| held.sum == sum)?;
        self.order.remove(&held.used);
        self.clock += 1;
        held.used = self.clock;
        self.order.insert(self.clock, lba);
        Some(held.bytes.clone())
    }

    /// Keeps a copy: the buffer that a sector has come in has thousands of others.
    pub(super) fn insert(&mut self, lba: Lba, bytes: &Piece, sum: u32) {
        let bytes = bytes.packed();
        self.clock += 1;
        self.order.insert(self.clock, lba);
        let held = Held { bytes, sum, used: self.clock };
        if let Some(older) = self.sectors.insert(lba, held) {
            self.order.remove(&older.used);
        }
        while self.sectors.len() > self.most {
            let (_, oldest) = self.order.pop_first().expect("there are some");
            self.sectors.remove(&oldest);
        }
    }
}
