//! What the drive does on its own, and what becomes of writes that it has read back: see `disk::idle` and `verifying`.

use levelhead_block::{Aftermath, Silent, What, ZeroTail};
use levelhead_units::{Extent, Instant};

use super::Drive;
use crate::cache::{BytesGone, End, Form, Part, REPAIRS_MAX};
use crate::disk::Alone;
use crate::verifying::{misdirected, repair_origin};

impl Drive {
    /// `extent` has been written with this tail, except for what was silently wrong with that; tells of the waiting writes on which it
    /// has landed.
    pub(super) fn store(
        &mut self,
        extent: Extent,
        zero_tail: ZeroTail,
        silent: &Silent,
        mut tell: impl FnMut(Aftermath),
    ) {
        self.faults.mend(extent, silent);
        self.tails.write(extent, zero_tail, silent);
        self.verifying.wrote(extent, silent);
        let Some(landing) = misdirected(extent, silent) else { return };
        let Some(unverified) = &self.disk.idle.unverified else { return };
        let landing = self.disk.geometry.blocks(landing);
        for part in unverified.overlapping(&landing) {
            let hit = part.blocks.start.max(landing.start)..part.blocks.end.min(landing.end);
            let extent = self.disk.geometry.extent(&hit);
            self.verifying.was_hit(extent);
            if part.form == Form::Bytes {
                tell(Aftermath { id: unverified.id(part), extent, what: What::Overwritten });
            }
        }
    }

    /// What is silently wrong each time with a write that is written again until it is right.
    pub(super) fn write_again(&self, extent: Extent, origin: u64, first: &Silent) -> Vec<Silent> {
        let mut again: Vec<Silent> = Vec::new();
        let is_wrong = |silent: &Silent| *silent != Silent::Nothing;
        for attempt in 1..=REPAIRS_MAX {
            if !is_wrong(again.last().unwrap_or(first)) {
                break;
            }
            again.push(self.faults.write(extent, repair_origin(origin, attempt)));
        }
        again
    }

    /// Carries out what the drive does on its own by `now`, when no command waits.
    pub(super) fn work_alone(&mut self, now: Instant) {
        let last = self.faults.death().map_or(now, |death| death.min(now));
        if self.queue.len() == 0 {
            self.work_alone_before(last, last);
        }
    }

    /// Carries out what the drive has done on its own by `now`, of what it began before `came`.
    pub(super) fn work_alone_before(&mut self, came: Instant, now: Instant) {
        while let Some(done) = self.disk.catch_up(came, now) {
            match done {
                Alone::ReadBack(part, ended) => self.compare(&part, ended),
                Alone::WrittenAgain(part) => self.repair(&part),
            }
        }
        self.give_up();
    }

    /// A part has been written again.
    fn repair(&mut self, part: &Part) {
        let extent = self.disk.geometry.extent(&part.blocks);
        let Some(unverified) = &self.disk.idle.unverified else { return };
        let (id, origin) = (unverified.id(part), unverified.origin(part));
        let zero_tail = unverified.zero_tail(part);
        let silent = self.faults.write(extent, repair_origin(origin, part.repairs + 1));
        self.account.add_silent(&silent);
        let mut hit = Vec::new();
        self.store(extent, zero_tail, &silent, |one| hit.push(one));
        self.verifying.aftermaths.extend(hit);
        self.verifying.tell(id, extent, What::WrittenAgain(silent));
    }

    /// A part has been read back.
    fn compare(&mut self, part: &Part, ended: Instant) {
        let (start, extent) = (part.blocks.start, self.disk.geometry.extent(&part.blocks));
        let is_stale = self.verifying.is_stale(extent);
        let Some(unverified) = &mut self.disk.idle.unverified else { return };
        let counters = &mut unverified.counters;
        if !is_stale {
            counters.mended += u64::from(part.repairs > 0);
            self.disk.settle(start, End::Verified(ended));
            return;
        }
        counters.found += u64::from(part.repairs == 0);
        if part.form == Form::Bytes && part.repairs < REPAIRS_MAX {
            unverified.mark_wrong(start);
            return;
        }
        counters.unmended += 1;
        let id = unverified.id(part);
        self.verifying.tell(id, extent, What::LetGo);
        self.verifying.forget(extent);
        self.disk.settle(start, End::GivenUp);
    }

    /// Bytes of writes that have made room are not there any more.
    pub(super) fn give_up(&mut self) {
        for BytesGone { id, blocks } in self.disk.idle.take_bytes_gone() {
            let extent = self.disk.geometry.extent(&blocks);
            if !self.verifying.is_stale(extent) {
                continue;
            }
            self.verifying.tell(id, extent, What::LetGo);
            let waiting = self.disk.idle.unverified.as_ref();
            if waiting.is_none_or(|waiting| waiting.overlapping(&blocks).next().is_none()) {
                self.verifying.forget(extent);
            }
        }
    }
}
