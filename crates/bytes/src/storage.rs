//! Where sectors are kept: memory, or a file.

use std::convert::Infallible;

use levelhead_block::{Durability, Memory, Piece};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

/// Sectors that are read and written one call after the other.
pub trait Storage {
    /// Why a call failed.
    type Error;

    /// Fills `bytes`, which are whole sectors, from sector `lba` on.
    fn read(&mut self, lba: Lba, bytes: &mut [u8]) -> Result<(), Self::Error>;

    /// Stores the pieces one after the other, from sector `lba` on.
    fn write(
        &mut self,
        lba: Lba,
        pieces: &[Piece],
        durability: Durability,
    ) -> Result<(), Self::Error>;

    /// Stores the bytes of one sector.
    fn write_sector(&mut self, lba: Lba, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Puts everything written so far where a power failure does not reach it.
    fn sync(&mut self) -> Result<(), Self::Error>;
}

impl Storage for Memory {
    type Error = Infallible;

    fn read(&mut self, lba: Lba, bytes: &mut [u8]) -> Result<(), Infallible> {
        let sectors = Sectors::new((bytes.len() / SECTOR_SIZE) as u64);
        bytes.copy_from_slice(self.bytes(Extent::new(lba, sectors)));
        Ok(())
    }

    fn write(&mut self, lba: Lba, pieces: &[Piece], _: Durability) -> Result<(), Infallible> {
        let extent = Extent::new(lba, Piece::count(pieces));
        let places = self.bytes_mut(extent).chunks_exact_mut(SECTOR_SIZE);
        let sectors = places.zip(Piece::each_sector(pieces));
        sectors.for_each(|(place, sector)| place.copy_from_slice(sector));
        Ok(())
    }

    fn write_sector(&mut self, lba: Lba, bytes: &[u8]) -> Result<(), Infallible> {
        self.bytes_mut(Extent::new(lba, Sectors::new(1))).copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
