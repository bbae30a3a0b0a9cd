//! A disk for tests that fails as it is told to.
//!
//! Differs from the real thing: it is memory, and what fails does so at once and every time.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use levelhead_block::{Durability, Memory, Piece};
use levelhead_bytes::Storage;
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};
use rustix::io::Errno;

use crate::medium::Disk;

/// See the module. Clones are the same disk.
#[derive(Clone)]
pub(crate) struct Flawed(Arc<Mutex<Flaws>>);

/// What is wrong with it, and what it was asked.
pub(crate) struct Flaws {
    memory: Memory,
    /// Sectors that cannot be read.
    pub(crate) bad: BTreeSet<Lba>,
    /// What every read, write and sync ends with.
    pub(crate) read: Option<Errno>,
    pub(crate) write: Option<Errno>,
    pub(crate) sync: Option<Errno>,
    pub(crate) reads: Vec<Extent>,
    pub(crate) writes: u32,
}

impl Flawed {
    /// A disk whose sectors are full of their numbers.
    pub(crate) fn new(size: u64) -> Self {
        let mut memory = Memory::new(Sectors::new(size));
        for lba in 0..size {
            memory.bytes_mut(Extent::new(Lba::new(lba), Sectors::new(1))).fill(lba as u8);
        }
        Self(Arc::new(Mutex::new(Flaws {
            memory,
            bad: BTreeSet::new(),
            read: None,
            write: None,
            sync: None,
            reads: Vec::new(),
            writes: 0,
        })))
    }

    /// The same with these sectors unreadable.
    pub(crate) fn with_bad(self, bad: impl IntoIterator<Item = u64>) -> Self {
        self.flaws().bad.extend(bad.into_iter().map(Lba::new));
        self
    }

    pub(crate) fn flaws(&self) -> MutexGuard<'_, Flaws> {
        self.0.lock().unwrap()
    }
}

fn result(errno: Option<Errno>) -> io::Result<()> {
    errno.map_or(Ok(()), |errno| Err(errno.into()))
}

impl Storage for Flawed {
    type Error = io::Error;

    fn read(&mut self, lba: Lba, bytes: &mut [u8]) -> io::Result<()> {
        let mut flaws = self.flaws();
        let extent = Extent::new(lba, Sectors::new((bytes.len() / SECTOR_SIZE) as u64));
        flaws.reads.push(extent);
        result(flaws.read)?;
        if extent.iter().any(|lba| flaws.bad.contains(&lba)) {
            return Err(Errno::IO.into());
        }
        let Ok(()) = flaws.memory.read(lba, bytes);
        Ok(())
    }

    fn write(&mut self, lba: Lba, pieces: &[Piece], durability: Durability) -> io::Result<()> {
        let mut flaws = self.flaws();
        flaws.writes += 1;
        result(flaws.write)?;
        let Ok(()) = flaws.memory.write(lba, pieces, durability);
        Ok(())
    }

    fn write_sector(&mut self, lba: Lba, bytes: &[u8]) -> io::Result<()> {
        let mut flaws = self.flaws();
        flaws.writes += 1;
        result(flaws.write)?;
        let Ok(()) = flaws.memory.write_sector(lba, bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        result(self.flaws().sync)
    }
}

impl Disk for Flawed {
    fn size(&self) -> Sectors {
        levelhead_block::BlockDevice::size(&self.flaws().memory)
    }

    fn loss(&self) -> Option<String> {
        None
    }
}
