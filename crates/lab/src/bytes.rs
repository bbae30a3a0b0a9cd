//! The bytes of a world whose content somebody looks at.

use std::collections::VecDeque;

use levelhead_array::{BufId, Buffers, Combine, Piece, Place, Submit};
use levelhead_block::{Buf, Command, Memory, Outcome, SectorSet};
use levelhead_erasure::Kernel;
use levelhead_units::{DriveIdx, Extent, Sectors};

use crate::platter::Platter;
use crate::shelf::Record;

/// What a failed sector's buffer holds, so that nobody can use it by accident.
const GARBAGE: u8 = 0xEE;

/// Buffers, and the platters behind the modelled drives.
#[derive(Debug)]
pub(crate) struct WorldBytes {
    pub(crate) buffers: Buffers,
    platters: Vec<Platter>,
}

impl WorldBytes {
    /// Platters full of zeroes, which are a consistent array.
    pub(crate) fn new(drives: usize, size: Sectors) -> Self {
        let platters = (0..drives).map(|_| Platter::new(size)).collect();
        // The checker computes with the kernel that defines the meaning.
        Self { buffers: Buffers::new(Kernel::Naive), platters }
    }

    pub(crate) fn acquire(&mut self, buf: BufId, sectors: Sectors) {
        let mut fresh = Buf::zeroed(sectors);
        fresh.as_mut_slice().fill(GARBAGE);
        self.buffers.insert(buf, fresh);
    }

    pub(crate) fn combine(&mut self, combine: &Combine) {
        self.buffers.combine(combine);
    }

    /// Puts a sector into a buffer.
    pub(crate) fn inscribe(&mut self, into: Place, sector: &[u8]) {
        let mut buf = self.buffers.lend(into.buf);
        buf.part_mut(into.sector as usize, 1).copy_from_slice(sector);
        self.buffers.give_back(into.buf, buf);
    }

    /// Moves the bytes of a command that a drive has just ended. The sectors of a write in `missing`
    /// never reached the platter, though nobody says so.
    pub(crate) fn transfer(&mut self, submit: &Submit, outcome: &Outcome, missing: &SectorSet) {
        let Outcome::Done { unknown, damaged } = outcome else { return };
        let platter = &mut self.platters[submit.drive.as_usize()];
        match submit.command {
            Command::Read { extent, .. } => {
                let id = submit.segments[0].place.buf;
                let mut buf = self.buffers.lend(id);
                platter.read(extent, buf.as_mut_slice());
                spoil(&mut buf, unknown);
                spoil(&mut buf, damaged);
                self.buffers.give_back(id, buf);
            }
            Command::Write { extent, durability, .. } => {
                let pieces = self.buffers.share(&submit.segments);
                platter.write(extent, pieces.iter().map(Piece::bytes), durability, missing);
            }
            Command::Flush => platter.flush(),
            Command::WriteZeroes { .. } | Command::Trim { .. } => {}
        }
    }

    /// A record that its drive has ended goes to the medium when the drive has ended both copies of the next
    /// one: a canary's bug.
    pub(crate) fn postpone(&mut self, submit: &Submit, late: &mut VecDeque<Record>) {
        let Some(extent) = submit.command.extent() else { return };
        let pieces = self.buffers.share(&submit.segments);
        let sector = pieces.iter().flat_map(Piece::bytes).copied().collect();
        late.push_back(Record { lba: extent.lba, sector });
        if late.len() > 2
            && let Some(Record { lba, sector }) = late.pop_front()
        {
            let place = Extent::new(lba, Sectors::new(1));
            self.platter_mut(submit.drive).bytes_mut(place).copy_from_slice(&sector);
        }
    }

    /// Whether anything may be in a drive's memory only.
    pub(crate) fn has_unwritten(&self, drive: DriveIdx) -> bool {
        self.platters[drive.as_usize()].unwritten_len() > 0
    }

    /// What a drive says it has not written stays in its memory; the rest goes to its medium.
    pub(crate) fn settle(&mut self, drive: DriveIdx, unwritten: &[Extent]) {
        self.platters[drive.as_usize()].settle(unwritten);
    }

    /// The power fails: what the drives had in memory is gone, and so is what anybody held.
    pub(crate) fn lose_power(&mut self) {
        self.platters.iter_mut().for_each(Platter::lose_power);
        self.buffers = Buffers::new(Kernel::Naive);
    }

    /// The power of one drive fails.
    pub(crate) fn lose_power_of(&mut self, drive: DriveIdx) {
        self.platters[drive.as_usize()].lose_power();
    }

    /// The bytes of one drive, to change them behind its back.
    pub(crate) fn platter_mut(&mut self, drive: DriveIdx) -> &mut Memory {
        self.platters[drive.as_usize()].medium_mut()
    }
}

fn spoil(buf: &mut Buf, failed: &SectorSet) {
    for offset in failed.iter() {
        buf.part_mut(offset as usize, 1).fill(GARBAGE);
    }
}
