//! Writes of which the disk does not store all: a sector that cannot be written costs that sector, and not the filesystem.
//!
//! ```text
//!   write --> failed --> its halves, one after the other --> single sectors that fail --> what they were written for
//! ```
//!
//! | a sector cannot be written of | then |
//! |---|---|
//! | a coding extent | it is computed from its codeword, as one that cannot be read, and the file leaves the place when the disk is quiet |
//! | a unit | its other copies have it; superblocks say so, and from then on a reader takes the newest of several copies ([`units`](super::units)) |
//! | a record of the journal | it is computed from the record's redundancy, else the record is written again elsewhere in the journal |
//! | a superblock | the two others have it |
//! | a mark | it is there twice |
//! | a repair | a file leaves the place, as that of a coding extent; of a unit the other copies have it |
//!
//! Where that does not do, as where the disk is gone or a flush fails, nothing is written any more.
//!
//! # Invariants
//!
//! - UW1. The extent of a write stays taken ([`Inside`](super::Inside)) until all of its parts have ended.
//! - UW2. Before the journal forgets a unit a copy of it is written, and all but two copies hold no older version of it; where there are no
//!   more than two, the lead holds none. A place that was never written, or cannot be read, holds none.
//! - UW3. Before the journal forgets a unit of which a copy could not be written, all superblocks say that copies may be older, but for one
//!   that cannot be written itself. A cut before that leaves the unit in the journal, which brings it to its copies at the next mount: if one
//!   fails again, the superblocks that end this mount say so. Nothing takes it back.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::Request as BlockRequest;
use levelhead_block::{Command, Effort, Outcome, Payload, Piece, Reply};
use levelhead_units::{Extent, Lba, Sectors};

use super::{Filesystem, Purpose, SubId};
use crate::action::{Action, Event, Submit};
use crate::format::extent::CodingExtent;
use crate::format::superblock::{OLDER_COPIES, SUPERBLOCKS};
use crate::format::unit::{Head, Sector};
use crate::status::Failure;

/// The most sectors of a command that are found to fail one by one: with more of them the disk is taken to store nothing.
const FAILED_MAX: usize = 64;

/// What a write or a flush has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    All,
    /// Everything but these sectors.
    Without(Vec<Lba>),
    Nothing,
}

impl Stored {
    pub(super) fn of(extent: Option<Extent>, reply: &Reply) -> Self {
        match (&reply.outcome, extent) {
            (outcome, _) if outcome.is_good() => Self::All,
            (Outcome::Done { .. }, Some(extent)) => Self::Without(failed_in(extent, reply)),
            (Outcome::Done { .. } | Outcome::Refused | Outcome::Unreachable | Outcome::Gone, _) => {
                Self::Nothing
            }
        }
    }

    /// What has failed where that was too much.
    pub(super) fn failure(&self, failure: Failure) -> Failure {
        if matches!(self, Self::Nothing) { Failure::Disk } else { failure }
    }

    /// The sectors that are not stored; nothing if none is.
    pub(super) fn failed(&self) -> Option<&[Lba]> {
        match self {
            Self::All => Some(&[]),
            Self::Without(failed) => Some(failed),
            Self::Nothing => None,
        }
    }
}

fn failed_in(extent: Extent, reply: &Reply) -> Vec<Lba> {
    let Outcome::Done { unknown, damaged } = &reply.outcome else { return Vec::new() };
    let has = |at: u32| unknown.contains(at) || damaged.contains(at);
    extent.iter().zip(0..).filter(|&(_, at)| has(at)).map(|(lba, _)| lba).collect()
}

/// A write whose failing sectors are looked for.
#[derive(Debug)]
struct Search {
    command: Command,
    extent: Extent,
    pieces: Vec<Piece>,
    /// What is still to be written, the next one last.
    left: Vec<Extent>,
    failed: Vec<Lba>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unwritable {
    /// By the write's own command.
    searches: BTreeMap<SubId, Search>,
    /// Commands inside the disk that are parts of one.
    parts: BTreeMap<SubId, Part>,
    /// Copies of units that could not be written, as far as they have not been since.
    copies: BTreeMap<Lba, Holds>,
    /// Whether one superblock of a round could not be written.
    pub(super) is_superblock: bool,
    /// Whether superblocks are to say that copies may be older.
    saying: Saying,
}

/// How far the superblocks say what the one in memory says: that copies may be older.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Saying {
    /// They do.
    #[default]
    Said,
    Unsaid,
    /// How many are still to be written.
    Inside(u8),
}

/// What is in a place that could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Unknown,
    /// An older version of the unit.
    Older,
    /// Nothing that a reader takes for the unit.
    Nothing,
}

/// A copy of a unit of which is to be known what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unclear {
    pub(super) lead: Lba,
    copy: Lba,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    of: SubId,
    extent: Extent,
}

impl Unwritable {
    /// How many superblocks are still to be written while it is mounted, if any are.
    pub(super) fn superblocks_left(&mut self) -> Option<&mut u8> {
        match &mut self.saying {
            Saying::Inside(left) => Some(left),
            Saying::Said | Saying::Unsaid => None,
        }
    }

    /// A round of superblocks is complete: they say what the one in memory says.
    pub(super) fn note_superblocks(&mut self) {
        self.is_superblock = false;
        self.saying = Saying::Said;
    }
}

impl Filesystem {
    /// A command has ended: which of those that were asked for has ended with it, and how, if one has.
    pub(super) fn narrow_down(&mut self, sub: SubId, reply: Reply) -> Option<(SubId, Reply)> {
        let (of, extent) = match self.unwritable.parts.remove(&sub) {
            Some(Part { of, extent }) => (of, extent),
            None => {
                let written = self.subs.get(&sub).and_then(|inside| inside.written.as_ref());
                let Some(written) = written else { return Some((sub, reply)) };
                let extent = written.command.extent().expect("a write has a place");
                let is_partial = matches!(reply.outcome, Outcome::Done { .. });
                if !is_partial || reply.outcome == Outcome::GOOD {
                    return Some((sub, reply));
                }
                let (command, pieces) = (written.command, written.pieces.clone());
                let (left, failed) = Default::default();
                let search = Search { command, extent, pieces, left, failed };
                self.unwritable.searches.insert(sub, search);
                (sub, extent)
            }
        };
        if !matches!(reply.outcome, Outcome::Done { .. }) {
            self.unwritable.searches.remove(&of);
            return Some((of, reply));
        }
        let search = self.unwritable.searches.get_mut(&of).expect("it is being looked for");
        search.split(extent, &failed_in(extent, &reply));
        if search.failed.len() > FAILED_MAX {
            self.unwritable.searches.remove(&of);
            return Some((of, Reply::bare(Outcome::Gone)));
        }
        let Some(next) = search.left.pop() else {
            let search = self.unwritable.searches.remove(&of).expect("it was found");
            return Some((of, Reply::bare(search.outcome())));
        };
        let first = (next.lba - search.extent.lba).get();
        let pieces = Piece::slice(&search.pieces, first, next.sectors);
        let command = match search.command {
            Command::Write { durability, zero_tail, .. } => {
                Command::Write { extent: next, durability, zero_tail }
            }
            other => unreachable!("{other:?} writes nothing"),
        };
        self.sub_last += 1;
        let sub = SubId(self.sub_last);
        self.unwritable.parts.insert(sub, Part { of, extent: next });
        let request = BlockRequest::new(command, Payload::Pieces(pieces));
        self.actions.push_back(Action::Submit(Submit { sub, request }));
        None
    }

    fn note_unwritable(&mut self, lba: Lba) {
        self.counts.unwritable += 1;
        self.actions.push_back(Action::Event(Event::Unwritable { lba }));
    }

    /// Sectors of a file's coding extent could not be written: whether they can be computed, and the file leaves the place.
    pub(super) fn leave_failed(
        &mut self,
        inode: impl Into<Option<u64>>,
        extent: &CodingExtent,
        failed: &[Lba],
    ) -> bool {
        let failed: Vec<Lba> =
            failed.iter().copied().filter(|&lba| extent.all().contains(lba)).collect();
        if failed.is_empty() {
            return true;
        }
        let bad: BTreeSet<Lba> =
            self.repairs.worn.inside(extent.all()).chain(failed.iter().copied()).collect();
        let mut words: BTreeMap<u32, u32> = BTreeMap::new();
        for lba in bad {
            let sector = (lba - extent.lba).get() as u32;
            *words.entry(extent.symbol(sector).word).or_default() += 1;
        }
        if words.values().any(|&bad| bad > u32::from(extent.redundant)) {
            return false;
        }
        for lba in failed {
            if self.repairs.worn.insert(lba) {
                self.note_unwritable(lba);
            }
        }
        // Of one that a crash has left it is not known whose it is: the next read of it finds that.
        if let Some(inode) = inode.into() {
            self.leave_places(inode);
        }
        true
    }

    /// Copies of units could not be written, or were. What has to be read to know whether that is enough (UW2); nothing if it is not.
    pub(super) fn note_copies(
        &mut self,
        extent: Extent,
        failed: &[Lba],
        leads: &BTreeSet<Lba>,
    ) -> Option<Vec<Unclear>> {
        let failed_before = !self.unwritable.copies.is_empty();
        for lba in extent.iter().filter(|lba| failed_before && !failed.contains(lba)) {
            self.unwritable.copies.remove(&lba);
        }
        for &lba in failed {
            if let Entry::Vacant(vacant) = self.unwritable.copies.entry(lba) {
                vacant.insert(Holds::Unknown);
                self.note_unwritable(lba);
            }
        }
        if !failed.is_empty() && !self.superblock.has_older_copies() {
            self.superblock.incompatible |= OLDER_COPIES;
            self.unwritable.saying = Saying::Unsaid;
        }
        let mut unclear = Vec::new();
        for &lead in leads.iter().filter(|_| !failed.is_empty()) {
            unclear.extend(self.judge_copies(lead)?);
        }
        Some(unclear)
    }

    /// What has to be read to know whether enough copies of a unit are written; nothing if they are not.
    fn judge_copies(&self, lead: Lba) -> Option<Vec<Unclear>> {
        let copies = self.superblock.geometry.copies_of(lead);
        let holds = |copy: &Lba| self.unwritable.copies.get(copy).copied();
        let older = copies.iter().filter(|copy| holds(copy) == Some(Holds::Older)).count();
        let is_unknown = |copy: &&Lba| holds(copy) == Some(Holds::Unknown);
        let unknown: Vec<Unclear> =
            copies.iter().filter(is_unknown).map(|&copy| Unclear { lead, copy }).collect();
        let most = match (copies.len(), holds(&lead)) {
            (1..=2, None) => copies.len(),
            (1..=2, Some(_)) => 0,
            (all, _) => all - 2,
        };
        let is_any = copies.iter().any(|copy| holds(copy).is_none());
        match older + unknown.len() <= most {
            _ if !is_any || older > most => None,
            true => Some(Vec::new()),
            false => Some(unknown),
        }
    }

    /// Reads a copy of a unit that could not be written.
    pub(super) fn read_back(&mut self, unclear: Unclear) -> SubId {
        let one = Extent::new(unclear.copy, Sectors::new(1));
        self.submit_read(Purpose::ReadBack(unclear), one, Effort::Full)
    }

    /// It has been read.
    pub(super) fn handle_read_back(&mut self, sub: SubId, unclear: Unclear, reply: Reply) {
        let Unclear { lead, copy } = unclear;
        let is_there = reply.outcome == Outcome::GOOD;
        let sector: Option<Sector> =
            is_there.then(|| reply.data.into_buf()).and_then(|buf| buf.as_slice().try_into().ok());
        let head = sector.and_then(|sector| Head::open(&sector).ok());
        let filesystem = self.superblock.filesystem();
        let is_older = head.is_some_and(|head| head.filesystem == filesystem && head.lba == lead);
        if let Some(holds) = self.unwritable.copies.get_mut(&copy) {
            *holds = if is_older { Holds::Older } else { Holds::Nothing };
        }
        if self.judge_copies(lead).is_none() {
            self.break_down(Failure::Metadata);
        }
        self.end_copies(sub);
        self.end_placing(sub);
    }

    /// Whether the journal must keep what could not be written to all of its copies (UW3).
    pub(super) fn is_saying_older(&self) -> bool {
        self.unwritable.saying != Saying::Said
    }

    /// Begins to say on the disk that copies may be older, if that is to be said; whether it does.
    pub(super) fn say_older(&mut self) -> bool {
        if self.unwritable.saying != Saying::Unsaid {
            return false;
        }
        self.unwritable.saying = Saying::Inside(SUPERBLOCKS);
        self.superblock.generation += 1;
        self.write_superblock(0);
        true
    }

    /// A sector of the journal, or a superblock, could not be written, and need not be.
    pub(super) fn do_without(&mut self, failed: &[Lba]) {
        failed.iter().for_each(|&lba| self.note_unwritable(lba));
    }
}

impl Search {
    /// Of a part these sectors have failed.
    fn split(&mut self, part: Extent, failed: &[Lba]) {
        let mut runs: Vec<Extent> = Vec::new();
        for &lba in failed {
            match runs.last_mut() {
                Some(run) if run.end() == lba => {
                    *run = Extent::new(run.lba, run.sectors + Sectors::new(1));
                }
                Some(_) | None => runs.push(Extent::new(lba, Sectors::new(1))),
            }
        }
        for run in runs.into_iter().rev() {
            match run.sectors.get() {
                1 if part.sectors.get() == 1 => self.failed.push(run.lba),
                count if run == part => {
                    let half = Sectors::new(count / 2);
                    self.left.push(Extent::new(run.lba + half, run.sectors - half));
                    self.left.push(Extent::new(run.lba, half));
                }
                _ => self.left.push(run),
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let at = |lba: &Lba| (*lba - self.extent.lba).get() as u32;
        let damaged = self.failed.iter().map(at).collect();
        Outcome::Done { unknown: levelhead_block::SectorSet::EMPTY, damaged }
    }
}

#[cfg(test)]
mod tests;
