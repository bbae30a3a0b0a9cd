//! The bytes of a world whose content somebody looks at.

use levelhead_array::{BufId, Buffers, Combine, Submit};
use levelhead_block::{Buf, Command, Memory, Outcome, SectorSet};
use levelhead_erasure::Kernel;
use levelhead_units::{DriveIdx, SECTOR_SIZE, Sectors};

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

    /// Moves the bytes of a command that a drive has just ended. The sectors of a write in `missing`
    /// never reached the platter, though nobody says so.
    pub(crate) fn transfer(&mut self, submit: &Submit, outcome: &Outcome, missing: &SectorSet) {
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
                let pieces = self.buffers.share(&submit.segments);
                let sectors =
                    pieces.iter().flat_map(|piece| piece.bytes().chunks_exact(SECTOR_SIZE));
                let mut places = (0..).zip(platter.bytes_mut(extent).chunks_exact_mut(SECTOR_SIZE));
                for bytes in sectors {
                    let (at, place) = places.next().expect("as many bytes as sectors");
                    if !missing.contains(at) {
                        place.copy_from_slice(bytes);
                    }
                }
                assert!(places.next().is_none(), "{submit:?} has fewer bytes than sectors");
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
