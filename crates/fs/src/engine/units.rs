//! Units come into memory: from the lead, or from another copy, with which the bad ones are then written anew.
//!
//! Bitmaps and sums lie side by side at the beginning of their group, far from the files that they speak of: some that follow are
//! read along with one of them, so that a file that is read in sequence does not send the disk there for each.

use std::collections::BTreeSet;

use levelhead_block::{Buf, Effort, Outcome, Reply};
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
    /// Which copy, counted over both rounds: first each is read without retries, and then with them.
    attempt: usize,
    bad: Vec<Lba>,
    /// It was made anew meanwhile: what is on the disk is older.
    is_overtaken: bool,
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
        match run.last() {
            Some(&last) if last != lead => {
                let extent = Extent::new(lead, last - lead + Sectors::new(1));
                self.submit_read(Purpose::Units, extent, Effort::Fast);
            }
            Some(_) | None => self.read_copy(lead),
        }
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

    fn read_copy(&mut self, lead: Lba) {
        let copies = self.superblock.geometry.copies_of(lead);
        let attempt = self.unit_reads[&lead].attempt;
        let effort = if attempt < copies.len() { Effort::Fast } else { Effort::Full };
        let extent = Extent::new(copies[attempt % copies.len()], Sectors::new(1));
        self.submit_read(Purpose::Unit(lead), extent, effort);
    }

    pub(super) fn handle_unit(&mut self, lead: Lba, reply: Reply) {
        let bytes = (reply.outcome == Outcome::GOOD).then(|| reply.data.into_buf());
        self.bring_unit(lead, bytes.and_then(|buf| buf.as_slice().try_into().ok()));
    }

    /// The leads of several units have been read.
    pub(super) fn handle_units(&mut self, extent: Extent, reply: Reply) {
        let near = self.superblock.geometry.near() as usize;
        let (bytes, missing) = match reply.outcome {
            Outcome::Done { unknown, damaged } => (reply.data.into_buf(), [unknown, damaged]),
            Outcome::Refused | Outcome::Unreachable | Outcome::Gone => {
                (Buf::empty(), Default::default())
            }
        };
        for (at, lead) in extent.iter().enumerate().step_by(near) {
            let sector = bytes.as_slice().chunks_exact(SECTOR_SIZE).nth(at);
            let is_missing = missing.iter().any(|missing| missing.contains(at as u32));
            let sector = sector.filter(|_| !is_missing).and_then(|bytes| bytes.try_into().ok());
            self.bring_unit(lead, sector);
        }
    }

    /// A copy of a unit has been read, or could not be.
    fn bring_unit(&mut self, lead: Lba, sector: Option<Sector>) {
        let copies = self.superblock.geometry.copies_of(lead);
        let read = self.unit_reads.get_mut(&lead).expect("it is being read");
        let copy = copies[read.attempt % copies.len()];
        if read.attempt >= copies.len() && sector.is_some() {
            self.counts.retried += 1;
        }
        let filesystem = self.superblock.filesystem();
        let opened = sector.and_then(|sector| {
            let head = Head::open(&sector).ok()?;
            (head.filesystem == filesystem && head.lba == lead).then_some((head, sector))
        });
        let is_over = opened.is_some() || read.is_overtaken || read.waiting.is_empty();
        if is_over {
            let mut read = self.unit_reads.remove(&lead).expect("it is being read");
            if let Some((head, sector)) = opened.filter(|_| !read.is_overtaken) {
                // One that has needed retries is right.
                read.bad.retain(|&bad| bad != copy);
                self.mend_copies(&[copy], &read.bad, &sector);
                self.cache.insert_read(lead, &head, sector);
            }
            return self.wake(read.waiting);
        }
        read.bad.retain(|&bad| bad != copy);
        read.bad.push(copy);
        read.attempt += 1;
        if read.attempt < 2 * copies.len() {
            return self.read_copy(lead);
        }
        let read = self.unit_reads.remove(&lead).expect("it is being read");
        self.lost.insert(lead);
        self.actions.push_back(Action::Event(Event::MetadataLost { lead }));
        self.wake(read.waiting);
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
