//! Sectors of files come from the journal to their places, and what is redundant beside them is computed anew.
//!
//! ```text
//!   stale --> committed --> Reading the rest of the data --> Writing data and redundancy --> Written --> flushed
//!     ^                                                                                                    |
//!     |  changed meanwhile                                                                                 v
//!     +------------------------------------------------------------- durable <-- Noting the new sums, in a transaction
//! ```
//!
//! Until then its record stays in the journal: after a crash all of this is done once more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::{Buf, Durability, Piece};
use levelhead_units::{Instant, Lba, Sectors};

use super::job::{Job, JobId, PAGE};
use super::plan::Plan;
use super::reencode::{Sources, Way};
use super::repairs::Repair;
use super::stale::{Due, InPlace, Placing, StaleExtent};
use super::unwritable::Stored;
use super::{Attempted, Failure, Filesystem, Phase, Purpose, SubId};
use crate::settings::RedundancyComes;
use crate::sums::sum_of;

/// Coding extents that are on their way at a time.
const PLACES_MAX: usize = 32;

impl Filesystem {
    /// Begins to place what is committed, if it is time.
    pub(super) fn place_on(&mut self, now: Instant) -> bool {
        self.end_noted();
        let has_begun = self.begin_settling(now);
        let to = match self.settings.redundancy {
            RedundancyComes::AtOnce => Some(u64::MAX),
            RedundancyComes::Together => self.settles_to(),
        };
        let Some(to) = to.filter(|_| !self.is_read_only()) else {
            return has_begun;
        };
        let durable = self.journal.durable();
        let room = PLACES_MAX.saturating_sub(self.stale.begun());
        let groups = self.stale.waiting_behind(self.placed_last, room, Due { to, durable });
        for &group in &groups {
            self.placed_last = group;
            let job = self.new_job(Job::Place(group));
            self.stale.edit(group, |stale| {
                stale.state = Placing::Reading { job, as_of: stale.changed, way: None };
            });
            self.ready.push_back(job);
        }
        has_begun || !groups.is_empty()
    }

    pub(super) fn run_place(&mut self, id: JobId, group: Lba) {
        let is_its =
            |stale: &&StaleExtent| matches!(stale.state, Placing::Reading { job, .. } if job == id);
        let Some(extent) = self.stale.get(group).filter(is_its).map(|stale| stale.extent) else {
            self.page_reads.remove(&id);
            return; // It was freed.
        };
        if self.is_reading(id) {
            self.keep(id, Job::Place(group));
            return self.go_on_reading(id);
        }
        if let Some(read) = self.take_sectors(id) {
            if read.lost.is_empty() || self.stale.way(group) != Some(Way::Difference) {
                return self.write_places(group, &read.got);
            }
            // What has changed cannot be told from what was.
            self.stale.set_way(group, Way::Scratch);
        }
        let summed = self.attempt(id, |attempt| {
            let mut sums = BTreeMap::new();
            for lba in extent.all().iter() {
                sums.insert(lba, attempt.sum(lba)?);
            }
            Ok(sums)
        });
        match summed {
            Attempted::Complete(sums) => {
                let is_untouched = self.stale.get(group).is_some_and(StaleExtent::is_untouched);
                let may_differ = is_untouched && self.stale.way(group).is_none();
                let Sources { way, targets, got } = self.sources_of(extent, &sums, may_differ);
                self.stale.set_way(group, way);
                self.keep(id, Job::Place(group));
                self.read_sectors(id, Plan { targets, held: got, ..Plan::default() });
            }
            Attempted::Failed(_) => self.give_up_place(group),
            Attempted::Waits => self.keep(id, Job::Place(group)),
        }
    }

    /// The checksums of a coding extent are lost: what is known of it comes to its place, and nothing more can be done for it.
    fn give_up_place(&mut self, group: Lba) {
        let Some(stale) = self.stale.remove(group) else { return };
        for lba in stale.extent.data().iter() {
            if let Some(logged) = self.logged.remove(&lba) {
                self.rewrite(lba, logged.page, Repair::Logged);
            }
        }
    }

    fn write_places(&mut self, group: Lba, got: &BTreeMap<Lba, Piece>) {
        let filesystem = self.superblock.filesystem();
        let stale = self.stale.get(group).expect("it is being placed");
        let Placing::Reading { as_of, way, .. } = stale.state else { unreachable!("it was read") };
        let extent = stale.extent;
        let is_changed = stale.changed != as_of;
        // RP3: its record was not written before that.
        assert!(!self.repairs.is_unsafe(extent.all()));
        if is_changed {
            self.stale.edit(group, |stale| stale.state = Placing::Waiting);
            return;
        }
        let redundant = extent.all().sectors - extent.data().sectors;
        let mut buf = Buf::zeroed(redundant);
        let way = way.expect("it was decided");
        self.compute_redundancy(extent, way, got, buf.as_mut_slice());
        let first = extent.data().end();
        let sums: Vec<(Lba, u32)> = (first.get()..)
            .map(Lba::new)
            .zip(buf.as_slice().chunks(PAGE as usize))
            .map(|(lba, bytes)| (lba, sum_of(filesystem, lba, bytes)))
            .collect();
        let mut runs: Vec<(Lba, Vec<Piece>)> = Vec::new();
        let mut brings = InPlace { extent, sums: BTreeMap::new() };
        let logged = self.logged.range(extent.lba..first);
        brings.sums.extend(logged.clone().map(|(&lba, logged)| (lba, Some(logged.sum))));
        brings.sums.extend(sums.iter().map(|&(lba, sum)| (lba, Some(sum))));
        let logged: Vec<(Lba, Piece)> =
            logged.map(|(&lba, logged)| (lba, logged.page.clone())).collect();
        let behind = (extent.redundant > 0).then(|| (first, Piece::whole(Arc::new(buf))));
        for (lba, piece) in logged.into_iter().chain(behind) {
            match runs.last_mut() {
                Some((from, pieces)) if *from + Piece::count(pieces) == lba => pieces.push(piece),
                Some(_) | None => runs.push((lba, vec![piece])),
            }
        }
        let mut subs = BTreeSet::new();
        for (lba, pieces) in runs {
            subs.insert(self.submit_write(Purpose::Place(group), lba, pieces, Durability::Cached));
        }
        // Without redundancy nothing is left to be written where a crash has left everything in its place.
        let state = match subs.is_empty() {
            true => Placing::Written { as_of, sums },
            false => Placing::Writing { subs, as_of, sums, brings },
        };
        self.stale.begin_writing(group, state);
    }

    pub(super) fn handle_placed(&mut self, group: Lba, sub: SubId, stored: &Stored) {
        let of = self.stale.get(group).map(|stale| (stale.inode, stale.extent));
        let is_stored = match (stored.failed(), of) {
            (Some([]), _) | (Some(_), None) => true, // None: it was freed.
            (Some(failed), Some((inode, extent))) => self.leave_failed(inode, &extent, failed),
            (None, _) => false,
        };
        if !is_stored {
            return self.break_down(stored.failure(Failure::Content));
        }
        self.stale.edit(group, |stale| {
            let Placing::Writing { subs, as_of, sums, brings } = &mut stale.state else { return };
            subs.remove(&sub);
            if subs.is_empty() {
                stale.in_place = Some(brings.clone());
                stale.state = Placing::Written { as_of: *as_of, sums: std::mem::take(sums) };
            }
        });
        self.wake_readers_of(Some(group));
    }

    /// They are safe.
    pub(super) fn note_places(&mut self, groups: &[Lba]) {
        for group in groups {
            let is_written = |stale: &StaleExtent| matches!(stale.state, Placing::Written { .. });
            if !self.stale.get(*group).is_some_and(is_written) {
                continue; // It was freed.
            }
            let job = self.new_job(Job::Placed(*group));
            self.stale.edit(*group, |stale| {
                if let Placing::Written { as_of, sums } = &mut stale.state {
                    let (as_of, sums) = (*as_of, std::mem::take(sums));
                    stale.state = Placing::Noting { job, as_of, sums };
                }
            });
            self.ready.push_back(job);
        }
    }

    pub(super) fn run_placed(&mut self, id: JobId, group: Lba) {
        let Some(stale) = self.stale.get(group) else { return };
        let (as_of, sums) = match &stale.state {
            Placing::Noting { job, as_of, sums } if *job == id => (*as_of, sums.clone()),
            _ => return,
        };
        if stale.changed != as_of {
            // Once more.
            self.stale.edit(group, |stale| stale.state = Placing::Waiting);
            return;
        }
        let noted = self.attempt(id, |attempt| {
            sums.iter().try_for_each(|&(lba, sum)| attempt.set_sum(lba, Some(sum)))
        });
        match noted {
            Attempted::Complete(()) => {
                // Without redundancy there is nothing to be noted.
                let is_noted = !sums.is_empty();
                if is_noted {
                    self.running.settled.insert(group);
                }
                let in_record = if is_noted { self.running.record } else { self.journal.durable() };
                self.running.wants_commit |=
                    self.journal.is_filling() || matches!(self.phase, Phase::Unmounting);
                self.stale.edit(group, |stale| stale.state = Placing::Noted { in_record, as_of });
            }
            Attempted::Failed(_) => self.give_up_place(group),
            Attempted::Waits => self.keep(id, Job::Placed(group)),
        }
    }

    /// What was noted in a durable record is stale no more.
    fn end_noted(&mut self) {
        for group in self.stale.noted_up_to(self.journal.durable()) {
            let stale = self.stale.get(group).expect("it was noted");
            let Placing::Noted { as_of, .. } = stale.state else { unreachable!("it was noted") };
            let extent = stale.extent;
            if stale.changed != as_of {
                self.stale.edit(group, |stale| stale.state = Placing::Waiting);
                continue;
            }
            self.stale.remove(group);
            let data = extent.data();
            let placed: Vec<Lba> = self
                .logged
                .range(data.lba..data.end())
                .filter(|(_, logged)| logged.record <= as_of)
                .map(|(&lba, _)| lba)
                .collect();
            for lba in placed {
                let logged = self.logged.remove(&lba).expect("it was found");
                self.sectors.insert(lba, &logged.page, logged.sum);
            }
        }
    }
}

const _: () = assert!(Sectors::new(PLACES_MAX as u64).get() > 0);

#[cfg(test)]
mod tests;
