//! Units come into memory: the newest version that is in their copies, with which the other copies are written again.
//!
//! ```text
//!   the near copies, in one command --> those of them that are bad --> the far one --> the near ones with retries --> the far one
//!              |                                     |                       |                     |                        |
//!              +-------------------------------------+-----------------------+---------------------+---> enough could be read
//! ```
//!
//! A copy that could not be written holds an older version, so that one copy alone proves nothing: all but one of them must have been
//! read. Of the versions that a durable record had, two copies at least were written (UW2), so that the newest is among those.
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

/// A unit that is being read.
#[derive(Debug, Default)]
pub(super) struct UnitRead {
    /// Jobs that wait for it.
    waiting: BTreeSet<JobId>,
    pass: Pass,
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

/// Which copies of a unit are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pass {
    #[default]
    Near,
    /// A turn of the disk, where the far copy takes a seek.
    NearTwice,
    Far,
    NearAgain,
    FarAgain,
}

impl Pass {
    fn next(self) -> Option<Self> {
        match self {
            Self::Near => Some(Self::NearTwice),
            Self::NearTwice => Some(Self::Far),
            Self::Far => Some(Self::NearAgain),
            Self::NearAgain => Some(Self::FarAgain),
            Self::FarAgain => None,
        }
    }

    fn is_near(self) -> bool {
        matches!(self, Self::Near | Self::NearTwice | Self::NearAgain)
    }

    fn effort(self) -> Effort {
        match self {
            Self::Near | Self::NearTwice | Self::Far => Effort::Fast,
            Self::NearAgain | Self::FarAgain => Effort::Full,
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
        let run = self.run_from(lead);
        for &other in &run {
            self.unit_reads.insert(other, UnitRead::default());
        }
        let near = Sectors::new(self.superblock.geometry.near());
        let last = *run.last().expect("it is one of them");
        let extent = Extent::new(lead, last - lead + near);
        self.submit_read(Purpose::Units, extent, Pass::Near.effort());
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
        let copies = self.superblock.geometry.copies_of(lead);
        let (near, far) = copies.split_at(self.superblock.geometry.near() as usize);
        let read = self.unit_reads.get_mut(&lead).expect("it is being read");
        while let Some(pass) = read.pass.next() {
            read.pass = pass;
            let part = if pass.is_near() { near } else { far };
            let is_missing = |copy: &Lba| !matches!(read.copies.get(copy), Some(Some(_)));
            let mut missing = part.iter().copied().filter(is_missing);
            if let Some(first) = missing.next() {
                let last = missing.next_back().unwrap_or(first);
                let extent = Extent::new(first, last - first + Sectors::new(1));
                self.submit_read(Purpose::Unit(lead), extent, pass.effort());
                return true;
            }
        }
        false
    }

    /// Copies of a unit have been read.
    pub(super) fn handle_unit(&mut self, lead: Lba, extent: Extent, reply: Reply) {
        self.bring_unit(lead, extent, &Got::of(reply));
    }

    /// The near copies of several units have been read.
    pub(super) fn handle_units(&mut self, extent: Extent, reply: Reply) {
        let near = Sectors::new(self.superblock.geometry.near());
        let mut got = Got::of(reply);
        for lead in extent.iter().step_by(near.as_usize()) {
            got.first = (lead - extent.lba).as_usize();
            self.bring_unit(lead, Extent::new(lead, near), &got);
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
            if is_new && version.is_some() && read.pass.effort() == Effort::Full {
                self.counts.retried += 1;
            }
            if is_new {
                read.copies.insert(copy, version);
            }
        }
        let all = self.superblock.geometry.copies_of(lead).len();
        let is_enough = read.copies.values().flatten().count() >= (all - 1).max(1);
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
