//! Commands inside the disks of a machine: what may meet there, and what they do when they end.

use std::collections::BTreeSet;

use levelhead_array::Submit;
use levelhead_block::{Command, Data, Outcome, Piece, SectorSet};
use levelhead_units::{Extent, Instant, Lba};

use super::{Coming, Machine};

/// A command inside a disk, and what it writes.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    pub(super) of: Of,
    /// When it went in.
    pub(super) since: Instant,
    pub(super) submit: Submit,
    pub(super) pieces: Vec<Piece>,
    /// What a flush covers.
    pub(super) covers: u64,
    /// Sectors of a read that were being written meanwhile: it may bring anything for them.
    pub(super) met: BTreeSet<Lba>,
}

/// Which disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The one in its place.
    Place,
    /// The one that is coming there.
    Coming,
    /// One that was there, or was to come.
    Gone,
}

impl Inside {
    /// Sectors that it has in common with another command of the same disk.
    fn common(&self, of: Of, submit: &Submit) -> Option<Extent> {
        if self.of != of || self.submit.drive != submit.drive {
            return None;
        }
        let (own, other) = (self.submit.command.extent()?, submit.command.extent()?);
        let (lba, end) = (own.lba.max(other.lba), own.end().min(other.end()));
        (lba < end).then(|| Extent::new(lba, end - lba))
    }
}

impl Machine {
    /// A command goes into a disk. What is being written there is not written meanwhile, and what a read brings of it is never
    /// used: it may be anything.
    pub(super) fn take(&mut self, of: Of, submit: Submit) {
        let mut met = BTreeSet::new();
        for other in &mut self.inside {
            let Some(common) = other.common(of, &submit) else { continue };
            match (submit.command.is_write(), other.submit.command.is_write()) {
                (true, true) => panic!("J6: {submit:?} meets {other:?}"),
                (true, false) => other.met.extend(common.iter()),
                (false, true) => met.extend(common.iter()),
                (false, false) => {}
            }
        }
        let pieces = match submit.command {
            Command::Write { .. } => self.buffers.share(&submit.segments),
            _ => Vec::new(),
        };
        let covers = match of {
            Of::Place => self.disks[submit.drive.as_usize()].begin_flush(),
            Of::Coming => self.coming.as_ref().map_or(0, |coming| coming.disk.begin_flush()),
            Of::Gone => 0,
        };
        self.inside.push(Inside { of, since: self.now, submit, pieces, covers, met });
    }

    /// Some commands are inside disks that are nothing to the array any more.
    pub(super) fn leave(&mut self, is_meant: impl Fn(&Inside) -> bool) {
        for inside in self.inside.iter_mut().filter(|inside| is_meant(inside)) {
            inside.of = Of::Gone;
        }
    }

    /// A command ends: in this way, or as what it is if there is none.
    pub(super) fn conclude(&mut self, inside: Inside, how: Option<Outcome>) {
        let outcome = how.unwrap_or_else(|| match inside.of {
            Of::Place => self.execute(&inside),
            Of::Coming => self.execute_coming(&inside),
            Of::Gone => Outcome::Gone,
        });
        let Inside { submit, .. } = inside; // Its pieces are let go of.
        self.array.handle_done(self.now, submit.sub, &outcome);
        self.carry_out();
    }

    fn execute(&mut self, inside: &Inside) -> Outcome {
        let Inside { submit, pieces, covers, met, .. } = inside;
        let Submit { drive, command, segments, .. } = submit;
        if self.array.away().contains(*drive) {
            return Outcome::Gone;
        }
        let disk = &mut self.disks[drive.as_usize()];
        match *command {
            Command::Read { extent, .. } => {
                let id = segments[0].place.buf;
                let mut buf = self.buffers.lend(id);
                buf.as_mut_slice().copy_from_slice(&disk.read(extent));
                let bad = (0..).zip(extent.iter()).filter(|(_, lba)| disk.bad.contains(lba));
                let damaged: SectorSet = bad.map(|(offset, _)| offset).collect();
                let met = (0..).zip(extent.iter()).filter(|(_, lba)| met.contains(lba));
                for offset in damaged.iter().chain(met.map(|(offset, _)| offset)) {
                    buf.part_mut(offset as usize, 1).fill(0xEE);
                }
                self.buffers.give_back(id, Data::Buf(buf));
                disk.wear(extent);
                Outcome::Done { unknown: SectorSet::EMPTY, damaged }
            }
            Command::Write { extent, durability, .. } => {
                self.store(*drive, extent, durability, &bytes_of(pieces));
                Outcome::GOOD
            }
            Command::Flush => {
                disk.end_flush(*covers);
                Outcome::GOOD
            }
            Command::WriteZeroes { .. } | Command::Trim { .. } => {
                unreachable!("an array never asks a drive for {command:?}")
            }
        }
    }

    fn execute_coming(&mut self, inside: &Inside) -> Outcome {
        let Inside { submit: Submit { command, .. }, pieces, covers, .. } = inside;
        let Coming { disk, has_copy } = self.coming.as_mut().expect("a disk is coming");
        match *command {
            Command::Write { extent, durability, .. } => {
                let bytes = bytes_of(pieces);
                *has_copy |= bytes.iter().any(|&byte| byte != 0);
                disk.write_as(extent, &bytes, durability);
            }
            Command::Flush => disk.end_flush(*covers),
            command => unreachable!("a disk that is coming is never asked for {command:?}"),
        }
        Outcome::GOOD
    }
}

/// The bytes of a write.
pub(super) fn bytes_of(pieces: &[Piece]) -> Vec<u8> {
    pieces.iter().map(Piece::bytes).collect::<Vec<&[u8]>>().concat()
}
