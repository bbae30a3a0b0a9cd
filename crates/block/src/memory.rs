//! Sectors in memory: the device that never misbehaves, and the meaning of all others.

use levelhead_units::{Extent, SECTOR_SIZE, Sectors};

use crate::{BlockDevice, Buf, Command, Data, Payload, Piece, Reply, Request};

/// A device whose medium is memory.
#[derive(Clone, Debug)]
pub struct Memory {
    bytes: Vec<u8>,
}

impl Memory {
    /// A device of `size` zeroed sectors.
    pub fn new(size: Sectors) -> Self {
        Self { bytes: vec![0; size.as_usize() * SECTOR_SIZE] }
    }

    /// The bytes of `extent`.
    pub fn bytes(&self, extent: Extent) -> &[u8] {
        &self.bytes[range(extent)]
    }

    /// The bytes of `extent`, to change them behind the device's back.
    pub fn bytes_mut(&mut self, extent: Extent) -> &mut [u8] {
        &mut self.bytes[range(extent)]
    }

    fn carry_out(&mut self, command: &Command, payload: Payload) -> Data {
        match (*command, payload) {
            (Command::Read { extent, .. }, Payload::Room(mut buf)) => {
                buf.as_mut_slice().copy_from_slice(self.bytes(extent));
                return Data::Buf(buf);
            }
            (Command::Read { extent, .. }, _) => {
                return Data::Buf(Buf::copy_of(self.bytes(extent)));
            }
            (Command::Write { extent, .. }, Payload::Pieces(pieces)) => {
                let places = self.bytes_mut(extent).chunks_exact_mut(SECTOR_SIZE);
                let sectors = places.zip(Piece::each_sector(&pieces));
                sectors.for_each(|(place, sector)| place.copy_from_slice(sector));
            }
            (Command::WriteZeroes { extent, .. } | Command::Trim { extent }, _) => {
                self.bytes_mut(extent).fill(0);
            }
            (Command::Write { .. } | Command::Flush, _) => {}
        }
        Data::None
    }
}

fn range(extent: Extent) -> std::ops::Range<usize> {
    let start = extent.lba.get() as usize * SECTOR_SIZE;
    start..start + extent.sectors.as_usize() * SECTOR_SIZE
}

impl BlockDevice for Memory {
    fn size(&self) -> Sectors {
        Sectors::new((self.bytes.len() / SECTOR_SIZE) as u64)
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        let run = |Request { command, payload, .. }| {
            assert!(command.fits(self.size()), "{command:?} past the end");
            Reply::good(self.carry_out(&command, payload))
        };
        batch.into_iter().map(run).collect()
    }
}
