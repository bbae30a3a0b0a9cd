//! The bytes that a drive remembers where its medium has others.
//!
//! For a runtime that keeps the bytes of a drive that reads back what it has written. Such a drive has the bytes of a
//! write in its memory until the write has been verified or its room is needed. While it has them, reads
//! give them, whatever the medium has; a repair takes them from there; once it has let them go, the medium
//! alone answers.
//!
//! Only sectors that went astray are held, under the name of the write whose bytes they are: what the drive says of an older
//! write does not touch those of a newer one.

use std::collections::BTreeMap;

use levelhead_units::{Extent, Lba, SECTOR_SIZE};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    sectors: BTreeMap<Lba, Sector>,
}

#[derive(Clone, Debug)]
struct Sector {
    write: u64,
    bytes: Box<[u8]>,
}

impl Held {
    pub(crate) const fn new() -> Self {
        Self { sectors: BTreeMap::new() }
    }

    /// The drive has these bytes of the write of this name, and the medium has others.
    pub(crate) fn put(&mut self, lba: Lba, write: u64, bytes: &[u8]) {
        assert_eq!(bytes.len(), SECTOR_SIZE, "one sector at a time");
        self.sectors.insert(lba, Sector { write, bytes: bytes.into() });
    }

    /// Whether bytes of that write are held for `lba`.
    pub(crate) fn has(&self, lba: Lba, write: u64) -> bool {
        self.sectors.get(&lba).is_some_and(|sector| sector.write == write)
    }

    /// The sector is written anew, or what waited for it is.
    pub(crate) fn remove(&mut self, lba: Lba) {
        self.sectors.remove(&lba);
    }

    /// The sectors of `extent` that are held of that write, with their bytes, which are held no more.
    pub(crate) fn take(&mut self, extent: Extent, write: u64) -> Vec<(Lba, Box<[u8]>)> {
        let of_it = |(_, sector): &(&Lba, &Sector)| sector.write == write;
        let range = self.sectors.range(extent.lba..extent.end()).filter(of_it);
        let lbas: Vec<Lba> = range.map(|(&lba, _)| lba).collect();
        let take = |lba: Lba| self.sectors.remove(&lba).map(|sector| (lba, sector.bytes));
        lbas.into_iter().filter_map(take).collect()
    }

    /// Puts what is held over `bytes`, which were read from the medium at `extent`.
    pub(crate) fn overlay(&self, extent: Extent, bytes: &mut [u8]) {
        for (&lba, sector) in self.sectors.range(extent.lba..extent.end()) {
            let start = (lba - extent.lba).as_usize() * SECTOR_SIZE;
            bytes[start..start + SECTOR_SIZE].copy_from_slice(&sector.bytes);
        }
    }

    /// The power fails.
    pub(crate) fn lose(&mut self) {
        self.sectors.clear();
    }
}
