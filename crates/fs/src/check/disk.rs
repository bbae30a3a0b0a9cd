//! The disk under a check: sectors are read in batches, neighbours with one command.

use std::collections::BTreeSet;

use levelhead_block::{BlockDevice, Buf, Command, Durability, Effort, Outcome, Request, SectorSet};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use crate::format::unit::Sector;

/// Neighbours with no more than this between them are read with one command.
const GAP_MAX: u64 = 16;

/// The most sectors of one command: 1 MiB.
const COMMAND_MAX: u64 = 256;

/// Sectors that wait to be written: 4 MiB.
const WRITES_MAX: usize = 1_024;

/// The most sectors that cannot be written: with more of them the device is taken to store nothing.
const UNWRITABLE_MAX: usize = 4_096;

/// See the module.
pub(crate) struct Disk<'a> {
    device: &'a mut dyn BlockDevice,
    writes: Vec<(Lba, Box<Sector>)>,
    /// Sectors that could not be written.
    unwritable: BTreeSet<Lba>,
    /// Why the device does not answer any more, or does not store what it should.
    trouble: Option<String>,
}

/// What was read.
pub(crate) struct Got(Vec<Run>);

struct Run {
    extent: Extent,
    buf: Buf,
    unknown: SectorSet,
    damaged: SectorSet,
}

impl Got {
    /// A sector that was asked for; nothing if it could not be read.
    pub(crate) fn sector(&self, lba: Lba) -> Option<&Sector> {
        let at = self.0.partition_point(|run| run.extent.end() <= lba);
        let run = self.0.get(at).filter(|run| run.extent.contains(lba))?;
        let offset = (lba - run.extent.lba).get();
        if run.unknown.contains(offset as u32) || run.damaged.contains(offset as u32) {
            return None;
        }
        let bytes = run.buf.as_slice().get(offset as usize * SECTOR_SIZE..)?;
        bytes.get(..SECTOR_SIZE)?.try_into().ok()
    }
}

impl<'a> Disk<'a> {
    pub(crate) fn new(device: &'a mut dyn BlockDevice) -> Self {
        Self { device, writes: Vec::new(), unwritable: BTreeSet::new(), trouble: None }
    }

    pub(crate) fn size(&self) -> Sectors {
        self.device.size()
    }

    /// Why it does not do what it should.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Sectors that could not be written.
    pub(crate) fn unwritable(&self) -> &BTreeSet<Lba> {
        &self.unwritable
    }

    /// Reads these sectors, with retries.
    pub(crate) fn read(&mut self, mut wanted: Vec<Lba>) -> Got {
        // What is on its way is what counts.
        self.write_out();
        wanted.sort_unstable();
        let mut runs: Vec<Extent> = Vec::new();
        for lba in wanted {
            match runs.last_mut() {
                Some(run)
                    if lba.get() <= run.end().get() + GAP_MAX
                        && lba.get() - run.lba.get() < COMMAND_MAX =>
                {
                    let sectors = lba - run.lba + Sectors::new(1);
                    run.sectors = run.sectors.max(sectors);
                }
                Some(_) | None => runs.push(Extent::new(lba, Sectors::new(1))),
            }
        }
        let requests = runs.iter().map(|&run| Request::read(run, Effort::Full)).collect();
        let replies = self.device.run(requests);
        let mut got = Vec::new();
        for (extent, reply) in runs.into_iter().zip(replies) {
            match reply.outcome {
                Outcome::Done { unknown, damaged } => {
                    let buf = reply.data.into_buf();
                    got.push(Run { extent, buf, unknown, damaged });
                }
                Outcome::Refused | Outcome::Unreachable | Outcome::Gone => {
                    self.note_trouble(reply.reason);
                }
            }
        }
        Got(got)
    }

    /// One sector.
    pub(crate) fn read_one(&mut self, lba: Lba) -> Option<Box<Sector>> {
        self.read(vec![lba]).sector(lba).map(|sector| Box::new(*sector))
    }

    /// Writes a sector, by the next read or flush.
    pub(crate) fn write(&mut self, lba: Lba, bytes: &Sector) {
        self.writes.push((lba, Box::new(*bytes)));
        if self.writes.len() >= WRITES_MAX {
            self.write_out();
        }
    }

    fn write_out(&mut self) {
        if self.writes.is_empty() {
            return;
        }
        let mut writes = std::mem::take(&mut self.writes);
        // The sort is stable: of several for a place the last one counts.
        writes.sort_by_key(|(lba, _)| *lba);
        let mut last: Vec<(Lba, Box<Sector>)> = Vec::with_capacity(writes.len());
        for (lba, bytes) in writes {
            match last.last_mut() {
                Some((known, old)) if *known == lba => *old = bytes,
                Some(_) | None => last.push((lba, bytes)),
            }
        }
        let request = |(lba, bytes): (Lba, Box<Sector>)| {
            let extent = Extent::new(lba, Sectors::new(1));
            Request::write(extent, Durability::Cached, Buf::copy_of(&bytes[..]))
        };
        self.run(last.into_iter().map(request).collect());
    }

    /// Everything that was written is durable.
    pub(crate) fn flush(&mut self) {
        self.write_out();
        self.run(vec![Request::bare(Command::Flush)]);
    }

    fn run(&mut self, batch: Vec<Request>) {
        let commands: Vec<Command> = batch.iter().map(|request| request.command).collect();
        for (command, reply) in commands.into_iter().zip(self.device.run(batch)) {
            match (&reply.outcome, command) {
                (outcome, _) if outcome.is_good() => {}
                (Outcome::Done { .. }, Command::Write { extent, .. })
                    if self.unwritable.len() < UNWRITABLE_MAX =>
                {
                    self.unwritable.insert(extent.lba);
                }
                _ => self.note_trouble(reply.reason),
            }
        }
    }

    pub(crate) fn note_trouble(&mut self, reason: Option<String>) {
        let reason = reason.unwrap_or_else(|| "it does not answer or store any more".to_owned());
        self.trouble.get_or_insert(reason);
    }
}
