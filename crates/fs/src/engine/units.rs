//! Units come into memory: from the lead, or from another copy, with which the bad ones are then written anew.

use std::collections::BTreeSet;

use levelhead_block::{Effort, Outcome, Reply};
use levelhead_units::{Extent, Lba, Sectors};

use super::job::JobId;
use super::{Filesystem, Purpose};
use crate::action::{Action, Event};
use crate::format::unit::{Head, Sector};

/// A unit that is being read.
#[derive(Debug)]
pub(super) struct UnitRead {
    /// Jobs that wait for it.
    waiting: BTreeSet<JobId>,
    /// Which copy, counted over both rounds: first each is read without retries, and then with them.
    attempt: usize,
    bad: Vec<Lba>,
}

impl Filesystem {
    /// Reads units that a job needs.
    pub(super) fn fetch_units(&mut self, job: JobId, leads: &[Lba]) {
        assert!(!leads.is_empty(), "{job:?} needs nothing");
        for &lead in leads {
            let is_new = !self.unit_reads.contains_key(&lead);
            let read = self.unit_reads.entry(lead).or_insert_with(|| UnitRead {
                waiting: BTreeSet::new(),
                attempt: 0,
                bad: Vec::new(),
            });
            read.waiting.insert(job);
            if is_new {
                self.read_copy(lead);
            }
        }
    }

    fn read_copy(&mut self, lead: Lba) {
        let copies = self.superblock.geometry.copies_of(lead);
        let attempt = self.unit_reads[&lead].attempt;
        let effort = if attempt < copies.len() { Effort::Fast } else { Effort::Full };
        let extent = Extent::new(copies[attempt % copies.len()], Sectors::new(1));
        self.submit_read(Purpose::Unit(lead), extent, effort);
    }

    pub(super) fn handle_unit(&mut self, lead: Lba, reply: Reply) {
        let copies = self.superblock.geometry.copies_of(lead);
        let read = self.unit_reads.get_mut(&lead).expect("it is being read");
        let copy = copies[read.attempt % copies.len()];
        if read.attempt >= copies.len() && reply.outcome == Outcome::GOOD {
            self.counts.retried += 1;
        }
        let bytes = (reply.outcome == Outcome::GOOD).then(|| reply.data.into_buf());
        let sector: Option<Sector> = bytes.and_then(|buf| buf.as_slice().try_into().ok());
        let filesystem = self.superblock.filesystem();
        let opened = sector.and_then(|sector| {
            let head = Head::open(&sector).ok()?;
            (head.filesystem == filesystem && head.lba == lead).then_some((head, sector))
        });
        if let Some((head, sector)) = opened {
            let mut read = self.unit_reads.remove(&lead).expect("it is being read");
            // One that has needed retries is right.
            read.bad.retain(|&bad| bad != copy);
            self.mend_copies(&[copy], &read.bad, &sector);
            self.cache.insert_read(lead, &head, sector);
            self.wake(read.waiting);
            return;
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
