//! The bytes of a world whose content somebody looks at.

use levelhead_array::{BufId, Buffers, Combine, Submit};
use levelhead_block::{Buf, Command, Memory, Outcome, SectorSet};
use levelhead_erasure::Kernel;
use levelhead_units::{DriveIdx, Sectors};

/// What a failed sector's buffer holds, so that nobody can use it by accident.
const GARBAGE: u8 = 0xEE;

/// Buffers, and the platters behind the modelled drives.
#[derive(Debug)]
pub(crate) struct WorldBytes {
    pub(crate) buffers: Buffers,
    platters: Vec<Memory>,
}

impl WorldBytes {
    /// Platters full of zeroes, which are a consistent array.
    pub(crate) fn new(drives: usize, size: Sectors) -> Self {
        let platters = (0..drives).map(|_| Memory::new(size)).collect();
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

    /// Moves the bytes of a command that a drive has just ended.
    pub(crate) fn transfer(&mut self, submit: &Submit, outcome: &Outcome) {
        let Outcome::Done { unknown, damaged } = outcome else { return };
        let platter = &mut self.platters[submit.drive.as_usize()];
        match submit.command {
            Command::Read { extent, .. } => {
                let id = submit.segments[0].place.buf;
                let mut buf = self.buffers.lend(id);
                buf.as_mut_slice().copy_from_slice(platter.bytes(extent));
                spoil(&mut buf, unknown);
                spoil(&mut buf, damaged);
                self.buffers.give_back(id, buf);
            }
            Command::Write { extent, .. } => {
                let mut rest = platter.bytes_mut(extent);
                for piece in self.buffers.share(&submit.segments) {
                    let (next, after) = rest.split_at_mut(piece.bytes().len());
                    next.copy_from_slice(piece.bytes());
                    rest = after;
                }
                assert!(rest.is_empty(), "{submit:?} has fewer bytes than sectors");
            }
            Command::WriteZeroes { .. } | Command::Trim { .. } | Command::Flush => {}
        }
    }

    /// The bytes of one drive, to change them behind its back.
    pub(crate) fn platter_mut(&mut self, drive: DriveIdx) -> &mut Memory {
        &mut self.platters[drive.as_usize()]
    }
}

fn spoil(buf: &mut Buf, failed: &SectorSet) {
    for offset in failed.iter() {
        buf.part_mut(offset as usize, 1).fill(GARBAGE);
    }
}
