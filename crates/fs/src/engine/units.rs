//! Units come into memory, and copies of them that are bad are written again.
//!
//! ```text
//!   the first copy --> the second one --> ... --> the first one with retries --> ...        the first one that is good counts
//!
//!   some copy could not be written once, as the superblock says:
//!   the near copies, in one command --> those of them that are bad --> the far one --> the near ones with retries --> the far one
//!              |                                     |                       |                     |                        |
//!              +-------------------------------------+-----------------------+---------------------+---> enough could be read
//! ```
//!
//! A copy that could not be written holds an older version, so that from then on one copy alone proves nothing: all but one of them must
//! have been read, and the newest version counts. Of the versions that a durable record had, two copies at least were written (UW2), so
//! that the newest is among those. A unit that is read when the first write of a copy fails is not one of those that are written.
//!
//! Bitmaps and sums lie side by side at the beginning of their group, far from the files that they speak of: some that follow are
//! read along with one of them, so that a file that is read in sequence does not send the disk there for each.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::{Buf, Effort, Outcome, Reply, SectorSet};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use super::job::JobId;
use super::{Filesystem, Purpose};
use crate::action::{Action, Event};
use crate::format::unit::{Head, Sector};
use crate::geometry::Geometry;

/// A unit that is being read.
#[derive(Debug, Default)]
pub(super) struct UnitRead {
    /// Jobs that wait for it.
    waiting: BTreeSet<JobId>,
    choice: Choice,
    /// The commands that were for it, less one.
    pass: usize,
    /// Whether the disk tries as hard as it can.
    is_full: bool,
    /// What its copies hold, of those that were read; nothing in one that is bad.
    copies: BTreeMap<Lba, Option<Box<Version>>>,
    /// It was made anew meanwhile: what is on the disk is older.
    is_overtaken: bool,
}

/// A unit as a copy has it.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    head: Head,
    sector: Sector,
}

/// Which of its copies is the unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Choice {
    /// The first one that is good.
    #[default]
    First,
    /// The newest one of all but one of them.
    Newest,
}

impl Choice {
    /// How many neighbours the first command reads.
    fn width(self, geometry: &Geometry) -> Sectors {
        match self {
            Self::First => Sectors::new(1),
            Self::Newest => Sectors::new(geometry.near()),
        }
    }

    /// How many copies must be good.
    fn least(self, copies: usize) -> usize {
        match self {
            Self::First => 1,
            Self::Newest => (copies - 1).max(1),
        }
    }

    /// What is read, one command after the other, until enough copies are good: neighbours, and how hard the disk is to try.
    fn passes(self, geometry: &Geometry, lead: Lba) -> Vec<(Vec<Lba>, Effort)> {
        let copies = geometry.copies_of(lead);
        let each = |effort: Effort| copies.iter().map(move |&copy| (vec![copy], effort));
        let (near, far) = copies.split_at(geometry.near() as usize);
        let (near, far) = (near.to_vec(), far.to_vec());
        match self {
            Self::First => each(Effort::Fast).chain(each(Effort::Full)).collect(),
            Self::Newest => vec![
                (near.clone(), Effort::Fast),
                // A turn of the disk, where the far copy takes a seek.
                (near.clone(), Effort::Fast),
                (far.clone(), Effort::Fast),
                (near, Effort::Full),
                (far, Effort::Full),
            ],
        }
    }
}

impl UnitRead {
    /// The newest version that was read; of several copies that have it the first one.
    fn newest(&self) -> Option<&Version> {
        let versions = self.copies.values().flatten().map(Box::as_ref);
        versions.reduce(
            |best, other| {
                if other.head.generation > best.head.generation { other } else { best }
            },
        )
    }
}

/// Units that are read together: 32 sectors with two near copies, which take less than a turn of the disk.
const RUN: u64 = 16;

/// The same where the one before is in memory: a file is read in sequence. They speak of 504 MiB.
const RUN_IN_SEQUENCE: u64 = 128;

impl Filesystem {
    /// Reads units that a job needs.
    pub(super) fn fetch_units(&mut self, job: JobId, leads: &[Lba]) {
        assert!(!leads.is_empty(), "{job:?} needs nothing");
        for &lead in leads {
            self.fetch_unit(lead);
            self.unit_reads.get_mut(&lead).expect("it is being read").waiting.insert(job);
        }
    }

    /// Reads a unit and some that follow it, for nobody yet: one that does not come at once is left alone.
    pub(super) fn fetch_unit(&mut self, lead: Lba) {
        if self.unit_reads.contains_key(&lead) {
            return;
        }
        let choice = match self.superblock.has_older_copies() {
            true => Choice::Newest,
            false => Choice::First,
        };
        let run = self.run_from(lead);
        for &other in &run {
            self.unit_reads.insert(other, UnitRead { choice, ..UnitRead::default() });
        }
        let last = *run.last().expect("it is one of them");
        let width = choice.width(&self.superblock.geometry);
        let extent = Extent::new(lead, last - lead + width);
        self.submit_read(Purpose::Units, extent, Effort::Fast);
    }

    /// A unit and those behind it that are not in memory, as far as they are read together.
    fn run_from(&self, lead: Lba) -> Vec<Lba> {
        let near = Sectors::new(self.superblock.geometry.near());
        let is_known = |lead: Lba| {
            self.cache.has(lead) || self.lost.contains(&lead) || self.unit_reads.contains_key(&lead)
        };
        let before = lead.get().checked_sub(near.get()).map(Lba::new);
        let most = match before.is_some_and(|before| self.cache.has(before)) {
            true => RUN_IN_SEQUENCE,
            false => RUN,
        };
        // The one that is needed must still be in memory when all have come.
        let room = (self.cache.most() / 4).max(1) as u64;
        let most = self.superblock.geometry.fixed_from(lead).clamp(1, most.min(room));
        let leads = (0..most).map(|at| lead + Sectors::new(at * near.get()));
        leads.take_while(|&other| other == lead || !is_known(other)).collect()
    }

    /// Reads more copies of a unit; whether there are any that were not read.
    fn read_on(&mut self, lead: Lba) -> bool {
        let read = self.unit_reads.get_mut(&lead).expect("it is being read");
        let passes = read.choice.passes(&self.superblock.geometry, lead);
        for (part, effort) in passes.into_iter().skip(read.pass + 1) {
            read.pass += 1;
            read.is_full = effort == Effort::Full;
            let is_missing = |copy: &Lba| !matches!(read.copies.get(copy), Some(Some(_)));
            let mut missing = part.into_iter().filter(is_missing);
            if let Some(first) = missing.next() {
                let last = missing.next_back().unwrap_or(first);
                let extent = Extent::new(first, last - first + Sectors::new(1));
                self.submit_read(Purpose::Unit(lead), extent, effort);
                return true;
            }
        }
        false
    }

    /// Copies of a unit have been read.
    pub(super) fn handle_unit(&mut self, lead: Lba, extent: Extent, reply: Reply) {
        self.bring_unit(lead, extent, &Got::of(reply));
    }

    /// Copies of several units have been read: of each the first one, or all near ones.
    pub(super) fn handle_units(&mut self, extent: Extent, reply: Reply) {
        let geometry = self.superblock.geometry;
        let mut got = Got::of(reply);
        for lead in extent.iter().step_by(geometry.near() as usize) {
            got.first = (lead - extent.lba).as_usize();
            let width = self.unit_reads[&lead].choice.width(&geometry);
            self.bring_unit(lead, Extent::new(lead, width), &got);
        }
    }

    /// Copies of a unit have been read, or could not be.
    fn bring_unit(&mut self, lead: Lba, extent: Extent, got: &Got) {
        let filesystem = self.superblock.filesystem();
        let read = self.unit_reads.get_mut(&lead).expect("it is being read");
        for (at, copy) in extent.iter().enumerate() {
            let version = got.sector(at).and_then(|sector| {
                let head = Head::open(sector).ok()?;
                let is_its = head.filesystem == filesystem && head.lba == lead;
                is_its.then(|| Box::new(Version { head, sector: *sector }))
            });
            let is_new = !matches!(read.copies.get(&copy), Some(Some(_)));
            if is_new && version.is_some() && read.is_full {
                self.counts.retried += 1;
            }
            if is_new {
                read.copies.insert(copy, version);
            }
        }
        let all = self.superblock.geometry.copies_of(lead).len();
        let is_enough = read.copies.values().flatten().count() >= read.choice.least(all);
        let is_over = is_enough || read.is_overtaken || read.waiting.is_empty();
        if !is_over && self.read_on(lead) {
            return;
        }
        let read = self.unit_reads.remove(&lead).expect("it is being read");
        if !read.is_overtaken && (is_enough || !read.waiting.is_empty()) {
            self.take_newest(lead, &read);
        }
        self.wake(read.waiting);
    }

    /// The newest version of a unit is the unit.
    fn take_newest(&mut self, lead: Lba, read: &UnitRead) {
        let Some(newest) = read.newest() else {
            self.lost.insert(lead);
            self.actions.push_back(Action::Event(Event::MetadataLost { lead }));
            return;
        };
        let is_right = |copy: &Lba| read.copies[copy].as_deref() == Some(newest);
        let (right, bad): (Vec<Lba>, Vec<Lba>) = read.copies.keys().copied().partition(is_right);
        self.mend_copies(&right, &bad, &newest.sector);
        self.cache.insert_read(lead, &newest.head, newest.sector);
    }

    /// A unit is made anew, whatever is read of it.
    pub(super) fn overtake_unit(&mut self, lead: Lba) {
        if let Some(read) = self.unit_reads.get_mut(&lead) {
            read.is_overtaken = true;
        }
    }

    /// Jobs of which something has come may be attempted again once nothing else is missing.
    pub(super) fn wake(&mut self, jobs: BTreeSet<JobId>) {
        for job in jobs {
            let still_waits = self.unit_reads.values().any(|read| read.waiting.contains(&job));
            if !still_waits && self.jobs.contains_key(&job) {
                self.ready.push_back(job);
            }
        }
    }
}

/// What a read has brought.
struct Got {
    buf: Buf,
    unknown: SectorSet,
    damaged: SectorSet,
    /// The sector with which what is looked at begins.
    first: usize,
}

impl Got {
    fn of(reply: Reply) -> Self {
        let (buf, unknown, damaged) = match reply.outcome {
            Outcome::Done { unknown, damaged } => (reply.data.into_buf(), unknown, damaged),
            Outcome::Refused | Outcome::Unreachable | Outcome::Gone => {
                (Buf::empty(), SectorSet::EMPTY, SectorSet::EMPTY)
            }
        };
        Self { buf, unknown, damaged, first: 0 }
    }

    /// A sector; nothing if it could not be read.
    fn sector(&self, at: usize) -> Option<&Sector> {
        let at = self.first + at;
        if self.unknown.contains(at as u32) || self.damaged.contains(at as u32) {
            return None;
        }
        self.buf.as_slice().chunks_exact(SECTOR_SIZE).nth(at)?.try_into().ok()
    }
}
