//! Sectors that are written anew because a read did not bring them, or not right.
//!
//! Until such a write has ended and a flush has followed, a power cut may leave nothing of the sector: what it is computed from has to last
//! that long.
//!
//! A sector that was written anew and fails at the very next read has a place that does not hold it: its file leaves it
//! ([`rewriting`](super::rewriting)). By chance alone one failing sector in two hundred does so on a drive where that share of reads fails.
//!
//! # Invariants
//!
//! - RP1. A sector of a file is written anew only while its codeword can do without it and without all others of it that are not safe.
//! - RP2. A copy of a unit is written anew only while another right copy is safe, and nothing else is on its way there.
//! - RP3. A record that makes a coding extent's redundancy void after a cut is written when its repairs are safe, and nothing of the
//!   extent is written anew from then on until its redundancy counts again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::{Buf, Durability, Piece, Reply};
use levelhead_units::{Extent, Lba, Sectors};

use super::job::JobId;
use super::unwritable::Stored;
use super::{Filesystem, Purpose, SubId, is_stored};
use crate::action::{Action, Event};
use crate::format::extent::CodingExtent;
use crate::format::unit::Sector;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// On their way.
    inside: BTreeMap<Lba, Repair>,
    /// Those that have ended since the last flush, each with the number of its end.
    ended: BTreeMap<Lba, u64>,
    ends: u64,
    /// Flushes that are inside, and how many had ended when they were sent.
    flushes: BTreeMap<SubId, u64>,
    /// Sectors of files that were written anew and not read since, with the last command that was sent before that had ended.
    mended: BTreeMap<Lba, SubId>,
    /// Those that could not be read then.
    pub(super) worn: Worn,
    /// Sectors of files that were found lost, each with the checksum that it should have.
    lost: BTreeMap<Lba, u32>,
}

/// What is written again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Repair {
    /// A copy of a unit.
    Copy,
    /// A sector of a coding extent, and the file that has it, if that is known.
    Sector { extent: CodingExtent, inode: Option<u64> },
    /// What the journal has, and can bring no other way.
    Logged,
}

/// Sectors whose places do not hold them. None of these is taken again before the next mount.
#[derive(Clone, Debug, Default)]
pub(super) struct Worn(Arc<BTreeSet<Lba>>);

impl Worn {
    /// Those in an extent.
    pub(super) fn inside(&self, extent: Extent) -> impl Iterator<Item = Lba> + '_ {
        self.0.range(extent.lba..extent.end()).copied()
    }

    /// Whether one of the sectors is such.
    pub(super) fn has_any(&self, extent: Extent) -> bool {
        self.inside(extent).next().is_some()
    }

    pub(super) fn insert(&mut self, lba: Lba) -> bool {
        self.0.len() < MENDED_MAX && Arc::make_mut(&mut self.0).insert(lba)
    }
}

/// The most sectors of which is known that they were written anew, and as many that are worn or lost.
const MENDED_MAX: usize = 1 << 16;

impl Repairs {
    /// A flush is sent.
    pub(super) fn note_flush(&mut self, sub: SubId) {
        self.flushes.insert(sub, self.ends);
    }

    /// A command has ended; whether it was such a flush.
    fn note_done(&mut self, sub: SubId, reply: &Reply) -> bool {
        let Some(ends) = self.flushes.remove(&sub) else { return false };
        if is_stored(reply) {
            self.ended.retain(|_, end| *end > ends);
        }
        true
    }

    /// A sector of a file is written anew.
    pub(super) fn note_mended(&mut self, lba: Lba) {
        if self.mended.len() < MENDED_MAX {
            self.mended.insert(lba, SubId(u64::MAX));
        }
    }

    /// A sector was read by this command, or could not be; whether its place is seen not to hold it. (What can be read and is wrong may be
    /// what its owner has written since.)
    pub(super) fn note_read(&mut self, sub: SubId, lba: Lba, is_there: bool) -> bool {
        // A read that was sent before may have what was there then.
        if self.mended.get(&lba).is_none_or(|&before| before >= sub) {
            return false;
        }
        self.mended.remove(&lba);
        !is_there && self.worn.insert(lba)
    }

    /// A sector of a file is lost, which should have this checksum; whether that was not known. Beyond the most that are remembered it
    /// never was.
    pub(super) fn note_lost(&mut self, lba: Lba, sum: u32) -> bool {
        if self.lost.get(&lba) == Some(&sum) {
            return false;
        }
        if self.lost.len() < MENDED_MAX {
            self.lost.insert(lba, sum);
        }
        true
    }

    /// Sectors are of no file any more.
    pub(super) fn forget(&mut self, extent: Extent) {
        let mended = self.mended.range(extent.lba..extent.end()).map(|(&lba, _)| lba);
        let lost = self.lost.range(extent.lba..extent.end()).map(|(&lba, _)| lba);
        let gone: BTreeSet<Lba> = mended.chain(lost).collect();
        for lba in gone {
            self.mended.remove(&lba);
            self.lost.remove(&lba);
        }
    }

    /// Whether one of the sectors is on its way.
    pub(super) fn is_inside(&self, extent: Extent) -> bool {
        self.inside.range(extent.lba..extent.end()).next().is_some()
    }

    /// Whether a power cut may take one of the sectors.
    pub(super) fn is_unsafe(&self, extent: Extent) -> bool {
        self.is_inside(extent) || self.ended.range(extent.lba..extent.end()).next().is_some()
    }
}

impl Filesystem {
    /// A sector is written anew.
    pub(super) fn rewrite(&mut self, lba: Lba, piece: Piece, what: Repair) {
        self.repairs.inside.insert(lba, what);
        if !matches!(what, Repair::Logged) {
            self.actions.push_back(Action::Event(Event::Repaired { lba }));
        }
        self.submit_write(Purpose::Repair, lba, vec![piece], Durability::Cached);
    }

    pub(super) fn handle_rewritten(&mut self, extent: Extent, stored: &Stored) {
        let lba = extent.lba;
        let what = self.repairs.inside.remove(&lba).expect("it was on its way");
        match (what, stored.failed()) {
            (Repair::Copy | Repair::Sector { .. }, Some([])) => {
                self.counts.repaired += 1;
            }
            // RP1: the rest of the codeword has it.
            (Repair::Sector { extent, inode }, Some(failed)) => {
                self.leave_failed(inode, &extent, failed);
            }
            (Repair::Copy | Repair::Logged, _) | (Repair::Sector { .. }, None) => {}
        }
        if let (Repair::Copy, Some(failed)) = (what, stored.failed()) {
            self.note_copies(extent, failed, &BTreeSet::new());
        }
        if let Some(before) = self.repairs.mended.get_mut(&lba) {
            *before = SubId(self.sub_last);
        }
        self.repairs.ends += 1;
        let end = self.repairs.ends;
        self.repairs.ended.insert(lba, end);
        self.ready.extend(std::mem::take(&mut self.after_repairs));
    }

    /// A command has ended.
    pub(super) fn note_repairs_done(&mut self, sub: SubId, reply: &Reply) {
        if self.repairs.note_done(sub, reply) {
            self.ready.extend(std::mem::take(&mut self.after_repairs));
        }
    }

    /// A job goes on when those are safe that are on their way, or have ended.
    pub(super) fn await_repairs(&mut self, job: JobId) {
        self.after_repairs.push(job);
        let is_flushing = self.repairs.flushes.values().any(|&ends| ends == self.repairs.ends);
        if self.repairs.inside.is_empty() && !is_flushing {
            self.submit_flush(Purpose::FlushRepairs);
        }
    }

    /// Writes bad copies of a unit anew, of which `right` were read and are right; returns how many are written.
    pub(super) fn mend_copies(&mut self, right: &[Lba], bad: &[Lba], sector: &Sector) -> u64 {
        let one = |lba: Lba| Extent::new(lba, Sectors::new(1));
        let is_safe = |&&lba: &&Lba| !bad.contains(&lba) && !self.repairs.is_unsafe(one(lba));
        // RP2
        if self.is_read_only() || right.iter().filter(is_safe).count() == 0 {
            return 0;
        }
        let mut mended = 0;
        for &lba in bad {
            if self.is_being_written(one(lba)) {
                continue;
            }
            mended += 1;
            self.rewrite(lba, Piece::whole(Arc::new(Buf::copy_of(sector))), Repair::Copy);
        }
        mended
    }
}

#[cfg(test)]
mod tests;
