//! Which sectors are taken.
//!
//! # Invariants
//!
//! - SP1. A sector's bit is set from the transaction that takes it to the one that frees it.
//! - SP2. A sector that was freed is not taken before that is durable, and no read of it is under way ([`Recent`]): a crash may
//!   bring back what was there.
//! - SP3. The summary of a group says how many of its bits are clear; zero means that nothing was ever taken of it, and then its
//!   bitmaps need not have been written.
//! - SP4. The sums of sectors of which none is taken need not have been written: who takes the first of them writes them anew.
//! - SP5. Some places for units are reserved: no file takes them, and of units only those take the last half of them without which
//!   nothing could be deleted, or which were promised room. Units go there when there is no other place.

use std::collections::BTreeSet;

use levelhead_units::{Extent, Lba, Sectors};

use crate::attempt::{Attempt, Stop, broken};
use crate::format::fields::{Fields, FieldsMut};
use crate::format::unit::{BODY, Kind};
use crate::geometry::{BITS, Geometry, GroupIdx, SUMS, SumPlace};
use crate::request::Errno;

/// Where a file may have its sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// Where units are not wanted.
    Files,
    Any,
}

/// Groups in which a run that is as long as wanted is looked for.
pub(crate) const LOOKED_MAX: usize = 16;

/// Groups' worth of free sectors with which there is much room.
const ROOMY: u64 = 8;

/// Groups that one unit of the summary speaks of.
const SUMMARIES: u64 = BODY as u64 / 4;

/// How long a run of free sectors is wanted, and how long it must be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Sectors that would be best.
    pub(crate) most: u64,
    /// Fewer are of no use.
    pub(crate) least: u64,
}

/// The leads of the summary's units.
pub(crate) fn summary_leads(geometry: &Geometry, first: Lba) -> impl Iterator<Item = Lba> {
    let units = geometry.groups().div_ceil(SUMMARIES);
    let near = geometry.near();
    (0..units).map(move |unit| first + Sectors::new(unit * near))
}

/// Bits of a group that are set before anything is taken.
pub(crate) fn is_reserved(geometry: &Geometry, lba: Lba) -> bool {
    geometry.offset(lba) < geometry.fixed_end() || geometry.journal().contains(lba)
}

/// How many sectors of a group are free before anything is taken.
pub(crate) fn free_at_first(geometry: &Geometry, group: GroupIdx) -> u64 {
    let all = geometry.group(group);
    let journal = geometry.journal();
    let reserved = if all.contains(journal.lba) { journal.sectors.get() } else { 0 };
    all.sectors.get() - geometry.fixed_end() - reserved
}

impl Attempt<'_> {
    fn geometry(&self) -> Geometry {
        self.superblock.geometry
    }

    fn summary_of(&self, group: GroupIdx) -> SumPlace {
        let unit = group.0 / SUMMARIES;
        let lead = self.superblock.summary + Sectors::new(unit * self.geometry().near());
        SumPlace { lead, at: (group.0 % SUMMARIES) as usize }
    }

    /// Free sectors of a group; nothing if none was ever taken.
    pub(crate) fn free_of(&mut self, group: GroupIdx) -> Result<Option<u64>, Stop> {
        let SumPlace { lead, at } = self.summary_of(group);
        let stored = Fields(self.read(lead, Kind::Summary, 0)?).u32(4 * at);
        Ok(stored.checked_sub(1).map(u64::from))
    }

    fn set_free(&mut self, group: GroupIdx, free: u64) -> Result<(), Stop> {
        let before = self.free_of(group)?;
        let before = before.unwrap_or_else(|| free_at_first(&self.geometry(), group));
        self.gain(free as i64 - before as i64);
        let SumPlace { lead, at } = self.summary_of(group);
        FieldsMut(self.change(lead, Kind::Summary, 0)?).put_u32(4 * at, free as u32 + 1);
        Ok(())
    }

    /// Sectors that are free, those included that were freed lately.
    pub(crate) fn free_in_all(&mut self) -> Result<u64, Stop> {
        if let Some(free) = self.counted_free() {
            return Ok(free);
        }
        let geometry = self.geometry();
        let mut free = 0;
        for group in (0..geometry.groups()).map(GroupIdx) {
            free += self.free_of(group)?.unwrap_or_else(|| free_at_first(&geometry, group));
        }
        Ok(free)
    }

    /// Writes the bitmaps of a group for the first time (SP3).
    fn open_group(&mut self, group: GroupIdx) -> Result<(), Stop> {
        let geometry = self.geometry();
        if self.free_of(group)?.is_some() {
            return Ok(());
        }
        let first = geometry.group(group).lba;
        for (bitmap, lead) in (0..).zip(geometry.bitmaps(group)) {
            let bits = geometry.bits_of(group, bitmap);
            let reserved: Vec<u64> = bits
                .clone()
                .filter(|&offset| is_reserved(&geometry, first + Sectors::new(offset)))
                .map(|offset| offset - bits.start)
                .collect();
            let body = self.create(lead, Kind::Bitmap, 0);
            for bit in reserved {
                body[(bit / 8) as usize] |= 1 << (bit % 8);
            }
        }
        self.set_free(group, free_at_first(&geometry, group))
    }

    /// The leads of a group's bitmaps and sums that were ever written.
    pub(crate) fn fixed_units_written(&mut self, group: GroupIdx) -> Result<Vec<Lba>, Stop> {
        let geometry = self.geometry();
        if self.free_of(group)?.is_none() {
            return Ok(Vec::new());
        }
        let mut leads: Vec<Lba> = geometry.bitmaps(group).collect();
        let all = geometry.group(group);
        let missing = leads.iter().filter(|&&lead| !self.want(lead)).count();
        if missing > 0 {
            return Err(Stop::Need);
        }
        for from in (0..all.sectors.get()).step_by(SUMS as usize) {
            let to = (from + SUMS).min(all.sectors.get());
            for offset in from..to {
                let lba = all.lba + Sectors::new(offset);
                if !is_reserved(&geometry, lba) && self.is_taken(lba)? {
                    leads.push(geometry.sum_of(lba).lead);
                    break;
                }
            }
        }
        Ok(leads)
    }

    pub(crate) fn is_taken(&mut self, lba: Lba) -> Result<bool, Stop> {
        let geometry = self.geometry();
        let lead = geometry.bitmap_of(lba);
        let bit = geometry.offset(lba) % BITS;
        let body = self.read(lead, Kind::Bitmap, 0)?;
        Ok(body[(bit / 8) as usize] >> (bit % 8) & 1 == 1)
    }

    /// Sets or clears the bits of a run, which lies in one group.
    fn mark(&mut self, extent: Extent, is_taken: bool) -> Result<(), Stop> {
        let geometry = self.geometry();
        let mut lba = extent.lba;
        while lba < extent.end() {
            let lead = geometry.bitmap_of(lba);
            let from = geometry.offset(lba) % BITS;
            let count = (extent.end() - lba).get().min(BITS - from);
            let body = self.change(lead, Kind::Bitmap, 0)?;
            for bit in from..from + count {
                let (byte, mask) = (&mut body[(bit / 8) as usize], 1 << (bit % 8));
                if (*byte & mask != 0) == is_taken {
                    return Err(Stop::Fail(Errno::Io)); // The disk contradicts itself.
                }
                *byte ^= mask;
            }
            lba = lba + Sectors::new(count);
        }
        let group = geometry.group_of(extent.lba);
        let free = self.free_of(group)?.ok_or(Stop::Fail(Errno::Io))?;
        let count = extent.sectors.get();
        let left = if is_taken { free.checked_sub(count) } else { free.checked_add(count) };
        self.set_free(group, left.ok_or(Stop::Fail(Errno::Io))?)
    }

    /// Takes a run, and writes the sums anew of which none was taken (SP4).
    fn take(&mut self, extent: Extent) -> Result<(), Stop> {
        let geometry = self.geometry();
        let group = geometry.group(geometry.group_of(extent.lba));
        let (first, last) =
            (geometry.offset(extent.lba), geometry.offset(extent.lba) + extent.sectors.get() - 1);
        for sums in first / SUMS..=last / SUMS {
            let range = sums * SUMS..((sums + 1) * SUMS).min(group.sectors.get());
            let mut is_first = true;
            for offset in range {
                let lba = group.lba + Sectors::new(offset);
                if !is_reserved(&geometry, lba) && self.is_taken(lba)? {
                    is_first = false;
                    break;
                }
            }
            let lead = geometry.sum_of(group.lba + Sectors::new(sums * SUMS)).lead;
            if is_first {
                self.create(lead, Kind::Sums, 0);
            }
        }
        self.mark(extent, true)
    }

    /// Takes just these sectors, which nothing has, when a filesystem is made.
    pub(crate) fn take_here(&mut self, extent: Extent) -> Result<(), Stop> {
        self.open_group(self.geometry().group_of(extent.lba))?;
        self.take(extent)
    }

    /// Takes consecutive sectors for a file: as many as wanted, from `near` on or where there is room.
    pub(crate) fn take_run(&mut self, near: Lba, wanted: Wanted) -> Result<Extent, Stop> {
        self.check_room(wanted.least)?;
        let mut run = self.find_run(near, wanted, Whose::Files)?;
        if run.is_none() {
            run = self.find_run(near, wanted, Whose::Any)?;
        }
        let run = run.ok_or(Stop::Fail(Errno::NoSpace))?;
        self.take(run)?;
        Ok(run)
    }

    /// A run that is as long as wanted, or the longest of the first groups that have one which is long enough.
    fn find_run(
        &mut self,
        near: Lba,
        wanted: Wanted,
        whose: Whose,
    ) -> Result<Option<Extent>, Stop> {
        let geometry = self.geometry();
        let near = if near.get() < geometry.sectors { near } else { Lba::ZERO };
        let home = geometry.group_of(near);
        let zone = geometry.unit_zone();
        let least = match whose {
            Whose::Files => wanted.least + (zone.end - zone.start),
            Whose::Any => wanted.least,
        };
        let mut best: Option<Extent> = None;
        let mut looked = BTreeSet::new();
        for group in geometry.fill_order(home) {
            for group in [self.less_full(group)?, group] {
                let free = self.free_of(group)?;
                let free = free.unwrap_or_else(|| free_at_first(&geometry, group));
                if free < least || !looked.insert(group) {
                    continue;
                }
                self.open_group(group)?;
                let from = if group == home { geometry.offset(near) } else { 0 };
                let run = self.find_run_of(group, from, wanted.most, whose)?;
                if let Some(run) = run.filter(|run| run.sectors.get() >= wanted.least)
                    && best.is_none_or(|best| best.sectors < run.sectors)
                {
                    best = Some(run);
                }
                let is_last = looked.len() >= LOOKED_MAX;
                if best.is_some_and(|best| is_last || best.sectors.get() >= wanted.most) {
                    return Ok(best);
                }
            }
        }
        Ok(best)
    }

    /// Takes the sectors right behind a place, if they are free and not those that units have first.
    pub(crate) fn take_behind(&mut self, extent: Extent) -> Result<bool, Stop> {
        let geometry = self.geometry();
        if extent.end().get() > geometry.sectors {
            return Ok(false);
        }
        let last = extent.end().get() - 1;
        // SP3. Behind the last sector of a group lie fixed units of the next one, whose bitmaps may not have been written yet.
        let is_in_group = geometry.group_of(extent.lba) == geometry.group_of(Lba::new(last));
        if !is_in_group || is_reserved(&geometry, extent.lba) {
            return Ok(false);
        }
        let (zone, from) = (geometry.unit_zone(), geometry.offset(extent.lba));
        if from < zone.end && zone.start < from + extent.sectors.get() {
            return Ok(false);
        }
        for lba in extent.iter() {
            if self.held_back().end_over(lba.get()).is_some() || self.is_taken(lba)? {
                return Ok(false);
            }
        }
        self.take(extent)?;
        Ok(true)
    }

    /// A group, or its fellow if that is far less full: both fill alike, so that units, which need room at the same place of both, find it
    /// until the end. As long as there is much room, one is filled before the other, so that a file is read without going to and fro.
    fn less_full(&mut self, group: GroupIdx) -> Result<GroupIdx, Stop> {
        let geometry = self.geometry();
        let fellow = geometry.fellow(group);
        let mut free = [0; 2];
        for (free, group) in free.iter_mut().zip([group, fellow]) {
            let known = self.free_of(group)?;
            *free = known.unwrap_or_else(|| free_at_first(&geometry, group));
        }
        let is_roomy =
            self.counted_free().is_some_and(|free| free > ROOMY * geometry.group_sectors);
        let eighths = if is_roomy { 7 } else { 1 };
        let is_less = free[1] > free[0] + geometry.group_sectors / 8 * eighths;
        Ok(if is_less { fellow } else { group })
    }

    /// The first run of that length from an offset of a group on, and then from its beginning; or the longest one.
    fn find_run_of(
        &mut self,
        group: GroupIdx,
        from: u64,
        most: u64,
        whose: Whose,
    ) -> Result<Option<Extent>, Stop> {
        let mut longest: Option<Extent> = None;
        let geometry = self.geometry();
        let size = geometry.group(group).sectors.get();
        let zone = geometry.unit_zone();
        let ranges = match whose {
            Whose::Files => {
                let from = from.max(zone.end);
                [from..size, zone.end..from.min(size), 0..zone.start.min(size)]
            }
            Whose::Any => [from..size, 0..from, 0..0],
        };
        for range in ranges {
            let run = if range.is_empty() { None } else { self.find_run_in(group, range, most)? };
            if let Some(run) = run
                && longest.is_none_or(|longest| longest.sectors < run.sectors)
            {
                longest = Some(run);
            }
            if longest.is_some_and(|run| run.sectors.get() >= most) {
                break;
            }
        }
        Ok(longest)
    }

    fn find_run_in(
        &mut self,
        group: GroupIdx,
        range: std::ops::Range<u64>,
        most: u64,
    ) -> Result<Option<Extent>, Stop> {
        let geometry = self.geometry();
        let first = geometry.group(group).lba.get();
        let recent = self.held_back();
        let leads: Vec<Lba> = geometry.bitmaps(group).collect();
        let are_there = leads.iter().filter(|&&lead| self.want(lead)).count();
        if are_there < leads.len() {
            return Err(Stop::Need);
        }
        // Nothing is taken where it is not known what is.
        if leads.iter().any(|&lead| self.is_lost(lead)) {
            return Ok(None);
        }
        let (mut longest, mut begun): (Option<Extent>, Option<u64>) = (None, None);
        let mut note = |from: u64, to: u64| {
            let run = Extent::new(Lba::new(first + from), Sectors::new((to - from).min(most)));
            if to > from && longest.is_none_or(|longest| longest.sectors < run.sectors) {
                longest = Some(run);
            }
            to - from >= most
        };
        let (mut offset, mut next_recent) = (range.start, 0);
        while offset < range.end {
            // A bitmap is looked up once, however many words of it are looked at.
            let body = self.read(leads[(offset / BITS) as usize], Kind::Bitmap, 0)?;
            let end = range.end.min((offset / BITS + 1) * BITS);
            while offset < end {
                if next_recent <= offset {
                    if let Some(end) = recent.end_over(first + offset) {
                        if begun.take().is_some_and(|from| note(from, offset)) {
                            return Ok(longest);
                        }
                        offset = end - first;
                        continue;
                    }
                    next_recent = recent.next(first + offset).map_or(u64::MAX, |next| next - first);
                }
                let bit = offset % BITS;
                let word = Fields(body).u64((bit / 64 * 8) as usize) >> (bit % 64);
                let limit = (64 - bit % 64).min(end - offset).min(next_recent - offset);
                let (is_taken, count) = match word & 1 {
                    1 => (true, u64::from(word.trailing_ones()).min(limit)),
                    _ => (false, u64::from(word.trailing_zeros()).min(limit)),
                };
                match (is_taken, begun) {
                    (true, Some(from)) => {
                        begun = None;
                        if note(from, offset) {
                            return Ok(longest);
                        }
                    }
                    (false, None) => begun = Some(offset),
                    (true, None) => {}
                    (false, Some(from)) => {
                        if offset - from >= most {
                            note(from, offset);
                            return Ok(longest);
                        }
                    }
                }
                offset += count;
            }
        }
        if let Some(from) = begun {
            note(from, range.end);
        }
        Ok(longest)
    }

    /// Gives back what this attempt has taken itself, and does not need.
    pub(crate) fn give_back(&mut self, extent: Extent) -> Result<(), Stop> {
        self.mark(extent, false)
    }

    /// Frees a run of a file (SP2).
    pub(crate) fn free_run(&mut self, extent: Extent) -> Result<(), Stop> {
        let geometry = self.geometry();
        let is_inside = extent.end().get() <= geometry.sectors;
        if !is_inside || extent.iter().any(|lba| is_reserved(&geometry, lba)) {
            return Err(Stop::Fail(Errno::Io));
        }
        let mut lba = extent.lba;
        while lba < extent.end() {
            let group = geometry.group(geometry.group_of(lba));
            let sectors = (extent.end().min(group.end())) - lba;
            self.mark(Extent::new(lba, sectors), false)?;
            lba = lba + sectors;
        }
        self.note_freed(extent);
        Ok(())
    }

    /// Whether there is room for some sectors beside those that are to be left.
    fn check_room(&mut self, sectors: u64) -> Result<(), Stop> {
        if self.kept() > 0 && self.free_in_all()? < self.kept() + sectors {
            return Err(Stop::Fail(Errno::NoSpace));
        }
        Ok(())
    }

    /// Takes the sectors of a new unit, and makes it.
    pub(crate) fn take_unit(
        &mut self,
        near: Lba,
        kind: Kind,
        owner: impl Fn(Lba) -> u64,
    ) -> Result<Lba, Stop> {
        let geometry = self.geometry();
        self.check_room(u64::from(geometry.copies))?;
        let home =
            geometry.group_of(if near.get() < geometry.sectors { near } else { Lba::ZERO }).0;
        for step in 0..geometry.groups() {
            let group = GroupIdx((home + step) % geometry.groups());
            let fellow = geometry.fellow(group);
            for group in [group, fellow] {
                if self.free_of(group)?.unwrap_or(geometry.near()) >= geometry.near() {
                    self.open_group(group)?;
                }
            }
            let from = if step == 0 { geometry.offset(near) } else { 0 };
            if let Some(lead) = self.find_unit(group, from)? {
                return self.take_unit_at(lead, kind, owner);
            }
        }
        // SP5
        let spare = self.spare_near(near).ok_or(Stop::Fail(Errno::NoSpace))?;
        self.take_unit_at(spare, kind, owner)
    }

    fn take_unit_at(
        &mut self,
        lead: Lba,
        kind: Kind,
        owner: impl Fn(Lba) -> u64,
    ) -> Result<Lba, Stop> {
        for sectors in self.geometry().unit_extents(lead) {
            self.take(sectors)?;
        }
        let owner = owner(lead);
        self.create(lead, kind, owner);
        Ok(lead)
    }

    /// A free place for a unit from a sector on, in one of some groups, to be reserved (SP5): where to go on looking, and the place if
    /// there is one.
    pub(crate) fn find_spare(&mut self, from: Lba) -> Result<Option<Lba>, Stop> {
        let geometry = self.geometry();
        let home = geometry.group_of(from);
        for step in 0..geometry.groups().min(LOOKED_MAX as u64) {
            let group = GroupIdx((home.0 + step) % geometry.groups());
            // SP3: of one of which nothing was taken there is no bitmap, and room enough.
            let (own, fellow) = (self.free_of(group)?, self.free_of(geometry.fellow(group))?);
            let has_room = |free: Option<u64>, least: u64| free.is_some_and(|free| free >= least);
            if !has_room(own, geometry.near()) || !has_room(fellow, 1) {
                continue;
            }
            let offset = if step == 0 { geometry.offset(from) } else { 0 };
            if let Some(lead) = self.find_unit(group, offset)? {
                return Ok(Some(lead));
            }
        }
        Ok(None)
    }

    /// The first place for a unit from an offset of a group on, and then from its beginning.
    fn find_unit(&mut self, group: GroupIdx, from: u64) -> Result<Option<Lba>, Stop> {
        let geometry = self.geometry();
        let near = geometry.near();
        let fellow = geometry.group(geometry.fellow(group));
        let most = geometry.group(group).sectors.min(fellow.sectors).get();
        let zone = geometry.unit_zone();
        let from = if zone.contains(&from) { from } else { zone.start };
        let ranges = [from..zone.end, zone.start..from, zone.end..most, 0..zone.start];
        for range in ranges {
            let range = range.start..range.end.min(most);
            let mut offset = range.start;
            while offset < range.end {
                let run = self.find_run_in(group, offset..range.end, near)?;
                let Some(run) = run.filter(|run| run.sectors.get() >= near) else { break };
                let far = fellow.lba + Sectors::new(geometry.offset(run.lba));
                let is_free = !geometry.has_far()
                    || (!self.is_taken(far)? && self.held_back().end_over(far.get()).is_none());
                if is_free {
                    return Ok(Some(run.lba));
                }
                // The next place that is free in the fellow: what is taken there may be long.
                let next = geometry.offset(run.lba) + 1;
                let other = geometry.fellow(group);
                let Some(free) = self.find_run_in(other, next..range.end, 1)? else { break };
                offset = geometry.offset(free.lba);
            }
        }
        Ok(None)
    }

    /// Frees a unit with all its copies.
    pub(crate) fn free_unit(&mut self, lead: Lba) -> Result<(), Stop> {
        let geometry = self.geometry();
        broken(geometry.may_lead(lead).then_some(()))?;
        for sectors in geometry.unit_extents(lead) {
            self.free_run(sectors)?;
        }
        self.forget(lead);
        Ok(())
    }

    /// The checksum of a sector of a file; nothing if it was not written: it is zero.
    pub(crate) fn sum(&mut self, lba: Lba) -> Result<Option<u32>, Stop> {
        let SumPlace { lead, at } = self.geometry().sum_of(lba);
        let sum = Fields(self.read(lead, Kind::Sums, 0)?).u32(4 * at);
        Ok((sum != 0).then_some(sum))
    }

    /// Asks for it, without need of it yet.
    pub(crate) fn want_sum(&mut self, lba: Lba) {
        let SumPlace { lead, .. } = self.geometry().sum_of(lba);
        self.want(lead);
    }

    /// Sets it.
    pub(crate) fn set_sum(&mut self, lba: Lba, sum: Option<u32>) -> Result<(), Stop> {
        let SumPlace { lead, at } = self.geometry().sum_of(lba);
        assert_ne!(sum, Some(0), "0 is none");
        FieldsMut(self.change(lead, Kind::Sums, 0)?).put_u32(4 * at, sum.unwrap_or(0));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::{Ground, RoomLeft};
    use crate::cache::Cache;
    use crate::made::wishes;
    use crate::recent::Recent;

    /// An extent that ended where a group does asked for the bitmap of the next one. Had nothing been taken there yet, it had never been
    /// written, counted as lost, and so did the group.
    #[test]
    fn nothing_grows_into_a_group_of_which_nothing_was_taken() {
        let new = crate::make(&wishes(4_096, 2)).unwrap();
        let geometry = new.superblock.geometry;
        let (mut cache, recent, lost) = (Cache::new(64), Recent::default(), Default::default());
        for written in &new.first {
            if let Ok(head) = crate::format::unit::Head::open(&written.bytes) {
                cache.insert_read(head.lba, &head, *written.bytes);
            }
        }
        let (superblock, room) = (&new.superblock, RoomLeft::default());
        let ground = Ground { superblock, recent: &recent, room, cache: &mut cache, lost: &lost };
        let mut attempt = Attempt::new(ground);
        let next = geometry.group(GroupIdx(1));
        assert_eq!(attempt.free_of(GroupIdx(1)), Ok(None), "nothing was taken of it");
        assert_eq!(attempt.take_behind(Extent::new(next.lba, Sectors::new(3))), Ok(false));
        assert_eq!(attempt.take_missing(), []);
    }
}
