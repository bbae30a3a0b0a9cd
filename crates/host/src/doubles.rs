//! A disk for tests that fails as it is told to.
//!
//! Differs from the real thing: it is memory, and what fails does so at once and every time.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use levelhead_block::{Durability, Effort, Memory, Outcome, Piece, Request, SectorSet};
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

/// What a client hears of a command of two sectors that ended with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Refused,
    Gone,
    Unknown,
    Damaged,
}

impl Heard {
    pub(crate) fn from(outcome: &Outcome) -> Self {
        let all = SectorSet::first(Sectors::new(2));
        match outcome {
            Outcome::Refused | Outcome::Unreachable => Self::Refused,
            Outcome::Gone => Self::Gone,
            Outcome::Done { unknown, damaged } if *unknown == all && damaged.is_empty() => {
                Self::Unknown
            }
            Outcome::Done { unknown, damaged } if *damaged == all && unknown.is_empty() => {
                Self::Damaged
            }
            Outcome::Done { .. } => panic!("{outcome:?} is not all of it"),
        }
    }
}

/// What clients hear where every command ends with this error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    pub(crate) errno: Errno,
    pub(crate) full_read: Heard,
    pub(crate) fast_read: Heard,
    pub(crate) write: Heard,
    pub(crate) flush: Heard,
}

/// The table of `errno` as clients hear it, spelled out.
pub(crate) fn fates() -> Vec<Fate> {
    let failed = [Errno::IO, Errno::TIMEDOUT, Errno::REMOTEIO, Errno::ILSEQ];
    let failed = failed.into_iter().chain([Errno::BADMSG, Errno::TIME, Errno::NODATA, Errno::ROFS]);
    let failed = failed.map(|errno| Fate {
        errno,
        full_read: Heard::Damaged,
        fast_read: Heard::Unknown,
        write: Heard::Damaged,
        flush: Heard::Gone,
    });
    let all = |heard| {
        move |errno| Fate {
            errno,
            full_read: heard,
            fast_read: heard,
            write: heard,
            flush: Heard::Gone,
        }
    };
    let refused =
        [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::NOMEM, Errno::NOBUFS, Errno::BUSY];
    let host = [Errno::MFILE, Errno::NFILE, Errno::PERM, Errno::ACCESS, Errno::AGAIN, Errno::INTR];
    let refused = refused.into_iter().chain(host).map(all(Heard::Refused));
    let gone = [Errno::NXIO, Errno::NODEV].map(all(Heard::Gone));
    let cancelled = Fate { flush: Heard::Refused, ..all(Heard::Refused)(Errno::CANCELED) };
    failed.chain(refused).chain(gone).chain([cancelled]).collect()
}

/// Commands of two sectors, and what is heard of each.
pub(crate) fn commands(fate: Fate) -> Vec<(Request, Heard)> {
    let extent = Extent::new(Lba::new(3), Sectors::new(2));
    let buf = || levelhead_block::Buf::zeroed(extent.sectors);
    let read = |effort| Request::read_into(extent, effort, buf());
    let write = |durability| Request::write(extent, durability, buf());
    vec![
        (read(Effort::Full), fate.full_read),
        (read(Effort::Fast), fate.fast_read),
        (write(Durability::Cached), fate.write),
        (write(Durability::Durable), fate.write),
        (Request::bare(levelhead_block::Command::Flush), fate.flush),
    ]
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
