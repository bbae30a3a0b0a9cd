//! The bytes of a world whose content is looked at.

use std::collections::BTreeSet;

use levelhead_array::journal::record::{Record, checksums};
use levelhead_array::{BufId, Combine, RequestId, Submit, Sums};
use levelhead_block::{
    Aftermath, BlockDevice, Buf, Command, Memory, Outcome, Payload, Piece, Place, Request, Silent,
    SilentWrite, What,
};
use levelhead_bytes::{Buffers, Caching, Ended, GARBAGE, Platter};
use levelhead_drive::Completion;
use levelhead_erasure::Kernel;
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

/// Buffers, and the platters behind the modelled drives.
#[derive(Debug)]
pub(crate) struct WorldBytes {
    pub(crate) buffers: Buffers,
    /// Reads that have not been answered, or whose bytes have not been taken.
    pub(crate) rooms: BTreeSet<RequestId>,
    platters: Vec<Platter<Memory>>,
}

impl WorldBytes {
    /// Platters full of zeroes, which are a consistent array.
    pub(crate) fn new(cachings: impl Iterator<Item = Caching>, size: Sectors) -> Self {
        let platter = |caching| Platter::new(Memory::new(size), caching);
        // The checker computes with the kernel that defines the meaning.
        Self {
            buffers: Buffers::new(Kernel::Naive),
            rooms: BTreeSet::new(),
            platters: cachings.map(platter).collect(),
        }
    }

    /// Takes the bytes of a write, or room for those of a read.
    pub(crate) fn insert(&mut self, request: RequestId, command: &Command, buf: Buf) {
        match command {
            Command::Write { .. } | Command::WriteZeroes { .. } => {}
            Command::Trim { .. } | Command::Flush => return,
            Command::Read { .. } => {
                self.rooms.insert(request);
            }
        }
        self.buffers.insert(BufId::Client(request), buf);
    }

    pub(crate) fn acquire(&mut self, buf: BufId, sectors: Sectors) {
        let mut fresh = Buf::zeroed(sectors);
        fresh.as_mut_slice().fill(GARBAGE);
        self.buffers.insert(buf, fresh);
    }

    pub(crate) fn combine(&mut self, combine: &Combine) {
        self.buffers.combine(combine);
    }

    /// Puts the header of a record into a buffer.
    pub(crate) fn log(&mut self, into: Place, record: &Record, sums: Sums) {
        let sums = match sums {
            Sums::Known(sums) => sums,
            Sums::Of(contents) => checksums(self.buffers.share(&contents).iter().map(Piece::bytes)),
        };
        self.buffers.inscribe(into, &record.encode(&sums));
    }

    /// Whether a buffer of a command is there no more: nothing waits for a drive that the array does without.
    pub(crate) fn is_released(&self, submit: &Submit) -> bool {
        submit.segments.iter().any(|segment| !self.buffers.has(segment.place.buf))
    }

    /// Moves the bytes of a command that a drive has just ended, as well as the drive has done so.
    pub(crate) fn transfer(&mut self, submit: &Submit, done: Completion) {
        let Completion { id, outcome, silent, is_read_back, after, .. } = done;
        // Of a drive that was given up, what it was to write may have been released.
        let Outcome::Done { .. } = outcome else { return };
        let read_back = is_read_back.then_some(id);
        let Submit { drive, command, origin, segments, .. } = submit;
        let room = match command {
            Command::Read { .. } => Some(segments[0].place.buf),
            _ => None,
        };
        let payload = match (room, segments.as_slice()) {
            (Some(id), _) => Payload::Room(self.buffers.lend(id)),
            (None, []) => Payload::None,
            (None, segments) => Payload::Pieces(self.buffers.share(segments)),
        };
        let request = Request::new(*command, payload).with_origin(*origin);
        let platter = &mut self.platters[drive.as_usize()];
        let size = platter.storage_mut().size();
        let silent = within(size, command.extent(), silent);
        let after = after.into_iter().map(|one| kept(size, one)).collect();
        let Ok(reply) = platter.end(request, Ended { outcome, silent, read_back, after });
        if let Some(id) = room {
            self.buffers.give_back(id, reply.data);
        }
    }

    /// Carries out what a drive says has become of a write after its end.
    pub(crate) fn follow_up(&mut self, drive: DriveIdx, aftermath: Aftermath) {
        let platter = &mut self.platters[drive.as_usize()];
        let size = platter.storage_mut().size();
        let Ok(()) = platter.carry_out(kept(size, aftermath));
    }

    /// Whether anything may be in a drive's memory only.
    pub(crate) fn has_unwritten(&self, drive: DriveIdx) -> bool {
        self.platters[drive.as_usize()].unwritten_len() > 0
    }

    /// What a drive says it has not written stays in its memory; the rest goes to its medium.
    pub(crate) fn destage(&mut self, drive: DriveIdx, unwritten: &[Extent]) {
        let Ok(()) = self.platters[drive.as_usize()].destage(unwritten);
    }

    /// The power fails: what the drives had in memory is gone, and so are all buffers.
    pub(crate) fn lose_power(&mut self) {
        self.platters.iter_mut().for_each(Platter::lose_power);
        self.forget_buffers();
    }

    /// A program has ended: what it had in memory is gone.
    pub(crate) fn forget_buffers(&mut self) {
        self.buffers = Buffers::new(Kernel::Naive);
    }

    /// The power of one drive fails.
    pub(crate) fn lose_power_of(&mut self, drive: DriveIdx) {
        self.platters[drive.as_usize()].lose_power();
    }

    /// The bytes of one drive, to change them behind its back.
    pub(crate) fn platter_mut(&mut self, drive: DriveIdx) -> &mut Memory {
        self.platters[drive.as_usize()].storage_mut()
    }
}

/// What becomes of a write on a platter of which only the first `size` sectors are kept.
fn kept(size: Sectors, aftermath: Aftermath) -> Aftermath {
    let Aftermath { id, extent, what } = aftermath;
    let what = match what {
        What::WrittenAgain(silent) => What::WrittenAgain(within(size, Some(extent), silent)),
        What::Overwritten | What::LetGo => what,
    };
    Aftermath { id, extent, what }
}

/// The same on a platter of which only the first `size` sectors are kept: what lands past them is nowhere.
fn within(size: Sectors, extent: Option<Extent>, silent: Silent) -> Silent {
    let (Silent::Write(wrong), Some(extent)) = (&silent, extent) else { return silent };
    let Some(lba) = wrong.landed else { return silent };
    let past = (0_u32..)
        .zip(Extent::new(lba, extent.sectors).iter())
        .filter(|(_, lba)| *lba >= Lba::ZERO + size)
        .map(|(at, _)| at);
    let missing = wrong.missing.iter().chain(past).collect();
    Silent::Write(Box::new(SilentWrite { missing, ..(**wrong).clone() }))
}
