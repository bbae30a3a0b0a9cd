//! Sectors in memory: the device that never misbehaves, and the meaning of all others.

use levelhead_units::{Extent, SECTOR_SIZE, Sectors};

use crate::{BlockDevice, Command, Outcome, Reply, Request};

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
        batch
            .into_iter()
            .map(|Request { command, mut buf }| {
                assert!(command.fits(self.size()), "{command:?} past the end");
                match command {
                    Command::Read { extent, .. } => {
                        buf.as_mut_slice().copy_from_slice(self.bytes(extent));
                    }
                    Command::Write { extent, .. } => {
                        self.bytes_mut(extent).copy_from_slice(buf.as_slice());
                    }
                    Command::WriteZeroes { extent, .. } | Command::Trim { extent } => {
                        self.bytes_mut(extent).fill(0);
                    }
                    Command::Flush => {}
                }
                Reply { outcome: Outcome::GOOD, buf }
            })
            .collect()
    }
}
