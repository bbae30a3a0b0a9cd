//! The bytes of one modelled drive: its medium, and what is in its memory only.

use std::convert::Infallible;

use levelhead_block::{Durability, Memory, SectorSet, Unwritten};
use levelhead_units::{Extent, SECTOR_SIZE, Sectors};

/// See the module.
#[derive(Debug)]
pub(crate) struct Platter {
    medium: Memory,
    unwritten: Unwritten,
}

impl Platter {
    /// A medium full of zeroes.
    pub(crate) fn new(size: Sectors) -> Self {
        Self { medium: Memory::new(size), unwritten: Unwritten::new() }
    }

    /// The medium alone.
    pub(crate) fn medium_mut(&mut self) -> &mut Memory {
        &mut self.medium
    }

    /// How many sectors are in memory only.
    pub(crate) fn unwritten_len(&self) -> usize {
        self.unwritten.len()
    }

    /// What a read of `extent` gives.
    pub(crate) fn read(&self, extent: Extent, bytes: &mut [u8]) {
        bytes.copy_from_slice(self.medium.bytes(extent));
        self.unwritten.overlay(extent, bytes);
    }

    /// A write has ended: durable or into memory, which [`Platter::settle`] decides for a drive that
    /// has none. The sectors in `missing` never get anywhere.
    ///
    /// Panics unless the pieces have as many bytes as `extent`.
    pub(crate) fn write<'a>(
        &mut self,
        extent: Extent,
        pieces: impl Iterator<Item = &'a [u8]>,
        durability: Durability,
        missing: &SectorSet,
    ) {
        let mut sectors = pieces.flat_map(|piece| piece.chunks_exact(SECTOR_SIZE));
        for (at, lba) in (0..).zip(extent.iter()) {
            let bytes = sectors.next().expect("as many bytes as sectors");
            match durability {
                _ if missing.contains(at) => {}
                Durability::Cached => self.unwritten.put(lba, bytes),
                Durability::Durable => {
                    self.unwritten.forget(lba);
                    let place = self.medium.bytes_mut(Extent::new(lba, Sectors::new(1)));
                    place.copy_from_slice(bytes);
                }
            }
        }
        assert!(sectors.next().is_none(), "more bytes than sectors for {extent:?}");
    }

    /// A flush has ended: all that was taken before it began is on the medium, and commands end here
    /// in the order in which they were served.
    pub(crate) fn flush(&mut self) {
        self.settle(&[]);
    }

    /// Everything but `unwritten` is on the medium by now.
    pub(crate) fn settle(&mut self, unwritten: &[Extent]) {
        let Self { medium, unwritten: waiting } = self;
        let Ok(()) = waiting.settle(unwritten, |lba, bytes| {
            medium.bytes_mut(Extent::new(lba, Sectors::new(1))).copy_from_slice(bytes);
            Ok::<(), Infallible>(())
        });
    }

    /// What was in memory is gone.
    pub(crate) fn lose_power(&mut self) {
        self.unwritten.lose();
    }
}
