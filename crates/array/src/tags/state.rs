//! What memory has of checksums: what was written and no tag sector says, what tag sectors say, and which are being written.
//!
//! ```text
//!   a place is written --> unlisted --> on the list of its drive --> in its tag sector
//!                             |                                         ^
//!                             +-----------------------------------------+
//! ```

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use levelhead_block::BufId;
use levelhead_units::{Bytes, DriveIdx, Extent, Instant, Lba, Sectors};

use super::known::{Checked, Expected, Fold, Group, Inside, List, OnDrive, TagRead};
use super::sector::{NO_TAG, SUMS, Sums};
use crate::names::SubId;
use crate::shape::{Area, Groups};

/// The memory of an array for tag sectors.
pub const TAG_MEMORY: Bytes = Bytes::new(64 << 20);

/// What of it the tag sector of a group takes.
pub const TAG_MEMORY_EACH: Bytes = Bytes::new(320);

/// The most groups of which tag sectors are remembered.
const REMEMBERED_MAX: usize = (TAG_MEMORY.get() / TAG_MEMORY_EACH.get()) as usize;

/// The most of them that are looked at for one to be forgotten.
const LOOKS_MAX: usize = 8;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Tags {
    pub(super) groups: Groups,
    pub(super) drives: Vec<OnDrive>,
    /// The most sectors that a list has room for; none where there are no lists.
    pub(super) list_max: usize,
    /// When each group that is remembered was used last, oldest first.
    pub(super) used: BTreeSet<(u64, DriveIdx, u64)>,
    clock: u64,
    pub(super) most: usize,
}

/// A group to be written next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Its tag sector is to be read: first, or because it was written with its data.
    Read(u64),
    /// Its tag sector is to say this.
    Write(u64, Box<Sums>),
}

impl Tags {
    /// Of drives whose lists have room for this number of sectors, and are to be read where there are bytes.
    pub(crate) fn new(groups: Groups, drives: usize, list_max: usize, has_bytes: bool) -> Self {
        let is_unread = has_bytes && list_max > 0;
        let list = List { is_unread, ..List::default() };
        let drives = (0..drives).map(|_| OnDrive { list: list.clone(), ..OnDrive::default() });
        let drives = drives.collect();
        let (used, most) = (BTreeSet::new(), REMEMBERED_MAX);
        Self { groups, drives, list_max, used, clock: 0, most }
    }

    /// How many sectors of data a group has.
    pub(crate) fn sectors(&self) -> u64 {
        self.groups.data().get()
    }

    /// The group whose tag sector a command reads, if it reads nothing else.
    pub(crate) fn read_of(&self, drive: DriveIdx, sub: SubId) -> Option<u64> {
        self.drives[drive.as_usize()].reads.get(&sub).map(|read| read.group)
    }

    /// The group of a sector, and which of its sectors that is.
    pub(crate) fn find(&self, lba: Lba) -> (u64, usize) {
        let data = self.groups.data().get();
        (lba.get() / data, (lba.get() % data) as usize)
    }

    /// The sectors of a drive that a read of these sectors asks for, together with tag sectors that memory does not have; where no
    /// client waits for it, with all that lie between them or right behind.
    pub(crate) fn widened(
        &self,
        area: &Area,
        drive: DriveIdx,
        asked: Extent,
        confirms: bool,
    ) -> Extent {
        let on_drive = area.on_drive(asked);
        let (mut first, mut last) = (on_drive.lba, on_drive.end());
        for group in self.groups_of(asked) {
            let own = |lba: &Lba| self.find(*lba).0 == group;
            let needs = asked.iter().filter(own).any(|lba| self.get(drive, lba).is_none());
            let tag = area.tag_of(self.first_of(group).max(asked.lba)).expect("it has groups");
            let is_known = self.knows(drive, group) || self.is_brought(drive, tag.lba);
            // The next one lies nearer, and comes right behind.
            let end = asked.end();
            let is_next = tag.lba > on_drive.end()
                && tag.covers.contains(end)
                && self.is_queued_at(drive, end);
            // It goes with the sector before it.
            let after = area.count_at(tag.lba);
            let is_confirmed = confirms && asked.lba < after && after <= end;
            if (needs && !is_known && !is_next) || is_confirmed {
                (first, last) = (first.min(tag.lba), last.max(tag.lba + Sectors::new(1)));
            }
        }
        Extent::new(first, last - first)
    }

    pub(super) fn group_mut(&mut self, drive: DriveIdx, group: u64) -> &mut Group {
        self.drives[drive.as_usize()].groups.entry(group).or_default()
    }

    /// The checksum of a sector, if memory has it.
    pub(crate) fn get(&self, drive: DriveIdx, lba: Lba) -> Option<u32> {
        let (group, offset) = self.find(lba);
        let of = &self.drives[drive.as_usize()];
        let known = of.groups.get(&group).filter(|_| !of.list.is_unread)?;
        known.get(offset)
    }

    /// The checksum that a sector of which memory has none has if it was not written since the list was that said so (TG9).
    pub(crate) fn hint(&self, drive: DriveIdx, lba: Lba) -> Option<u32> {
        let (group, offset) = self.find(lba);
        let of = &self.drives[drive.as_usize()];
        of.groups.get(&group).filter(|_| !of.list.is_unread)?.hint(offset)
    }

    /// Whether the list of a drive is still to be read: until then nothing is known of what it holds.
    pub(crate) fn is_unread(&self, drive: DriveIdx) -> bool {
        self.drives[drive.as_usize()].list.is_unread
    }

    /// Whether memory has what the tag sector of a group says.
    pub(crate) fn knows(&self, drive: DriveIdx, group: u64) -> bool {
        let known = self.drives[drive.as_usize()].groups.get(&group);
        known.is_some_and(|group| group.tag.is_some())
    }

    /// The groups of these sectors.
    pub(crate) fn groups_of(&self, extent: Extent) -> RangeInclusive<u64> {
        let last = extent.lba + (extent.sectors - Sectors::new(1));
        self.find(extent.lba).0..=self.find(last).0
    }

    /// A read of these sectors waits in its drive's queue.
    pub(crate) fn note_queued(&mut self, drive: DriveIdx, extent: Extent) {
        self.groups_of(extent).for_each(|group| self.group_mut(drive, group).queued += 1);
        *self.drives[drive.as_usize()].queued.entry(extent.lba).or_default() += 1;
    }

    /// It does not wait there any more.
    pub(crate) fn note_unqueued(&mut self, drive: DriveIdx, extent: Extent) {
        for group in self.groups_of(extent) {
            // The drive may have been lost since.
            let known = self.group_mut(drive, group);
            known.queued = known.queued.saturating_sub(1);
            self.note_used(drive, group);
        }
        let queued = &mut self.drives[drive.as_usize()].queued;
        if let Some(count) = queued.get_mut(&extent.lba) {
            *count -= 1;
            if *count == 0 {
                queued.remove(&extent.lba);
            }
        }
    }

    /// Whether a read that begins at this sector waits in the drive's queue.
    pub(crate) fn is_queued_at(&self, drive: DriveIdx, lba: Lba) -> bool {
        self.drives[drive.as_usize()].queued.contains_key(&lba)
    }

    /// Whether a read of a group waits in the drive's queue.
    pub(crate) fn is_queued(&self, drive: DriveIdx, group: u64) -> bool {
        let known = self.drives[drive.as_usize()].groups.get(&group);
        known.is_some_and(|known| known.queued > 0)
    }

    /// A read of these sectors goes out to its drive, and brings those of the drive (TG5).
    pub(crate) fn begin_read(
        &mut self,
        drive: DriveIdx,
        sub: SubId,
        extent: Extent,
        brings: Extent,
    ) {
        self.groups_of(extent).for_each(|group| self.group_mut(drive, group).readers += 1);
        let inside = &mut self.drives[drive.as_usize()].inside;
        let writes = inside.values().filter(|of| of.is_write && meet(of.extent, extent));
        let moved = writes.map(|of| of.extent).collect();
        inside.insert(sub, Inside { extent, brings: Some(brings), is_write: false, moved });
    }

    /// A write of these sectors goes out to its drive.
    pub(crate) fn begin_write(&mut self, drive: DriveIdx, sub: SubId, extent: Extent) {
        let inside = &mut self.drives[drive.as_usize()].inside;
        let reads = inside.values_mut().filter(|of| !of.is_write && meet(of.extent, extent));
        reads.for_each(|of| of.moved.push(extent));
        let write = Inside { extent, brings: None, is_write: true, moved: Vec::new() };
        inside.insert(sub, write);
    }

    /// Whether a read inside the drive brings a sector of it.
    pub(crate) fn is_brought(&self, drive: DriveIdx, lba: Lba) -> bool {
        let mut inside = self.drives[drive.as_usize()].inside.values();
        inside.any(|of| of.brings.is_some_and(|brings| brings.contains(lba)))
    }

    /// A command brings nothing more: it has ended, or nothing waits for it.
    pub(crate) fn end_inside(&mut self, drive: DriveIdx, sub: SubId) {
        let inside = &mut self.drives[drive.as_usize()].inside;
        if let Some(of) = inside.get_mut(&sub) {
            of.brings = None;
            if of.is_write {
                inside.remove(&sub);
            }
        }
    }

    /// Whether a sector was written while a read of it was inside the drive: what that brings of it says nothing.
    pub(crate) fn is_moved(&self, drive: DriveIdx, sub: SubId, lba: Lba) -> bool {
        let of = self.drives[drive.as_usize()].inside.get(&sub);
        of.is_some_and(|of| of.moved.iter().any(|moved| moved.contains(lba)))
    }

    /// What a read has brought was compared, or nothing wants it.
    pub(crate) fn end_read(&mut self, drive: DriveIdx, sub: SubId) {
        let ended = self.drives[drive.as_usize()].inside.remove(&sub);
        let Some(Inside { extent, .. }) = ended else { return };
        for group in self.groups_of(extent) {
            // The drive may have been lost since, and have come back.
            let Some(known) = self.drives[drive.as_usize()].groups.get_mut(&group) else {
                continue;
            };
            known.readers = known.readers.saturating_sub(1);
            self.note_used(drive, group);
        }
        self.forget_oldest();
    }

    /// What the tag sector of a group says was read, and which list was the newest when it was written (TG6). What memory has of
    /// it already is newer. Returns whether it says what was written there with its data; if not, it counts as none.
    pub(crate) fn note_tag(&mut self, drive: DriveIdx, group: u64, sums: Sums, list: u64) -> bool {
        let of = &mut self.drives[drive.as_usize()];
        let known = of.groups.entry(group).or_default();
        if known.tag.is_some() {
            return true;
        }
        if let Some(expected) = known.expected.take() {
            of.unchecked.remove(&group);
            if !expected.is_met(&sums, list) {
                self.note_tag(drive, group, NO_TAG.0, NO_TAG.1);
                self.drives[drive.as_usize()].refute(group, expected);
                return false;
            }
        }
        known.tag = Some(Box::new(sums));
        known.tag_list = list;
        if list != u64::MAX {
            of.list.newest = of.list.newest.max(list);
        }
        of.lacking -= known.lacking();
        let mut hints = Vec::new();
        for (at, since, sum) in known.loaded.take().iter().flat_map(|loaded| loaded.iter()) {
            let newer = known.newer.as_ref().and_then(|sums| sums.get(at));
            match since > list {
                true if newer.is_some() => {}
                true => known.newer.get_or_insert_with(|| Box::new(Sums::NONE)).set(at, sum),
                false => hints.push((at, sum)),
            }
        }
        of.lacking += known.lacking();
        hints.into_iter().for_each(|(at, sum)| of.note_hint(group, at, sum));
        let known = of.groups.get_mut(&group).expect("it was there");
        if list == u64::MAX {
            // What a list says of it does not count until it is written again (TG6).
            of.bad.insert(group);
            known.is_listed = false;
        }
        if !known.lacks() && known.pending == 0 {
            known.is_listed = false;
            of.unfolded.remove(&group);
            // Nothing is left that a list or a tag sector could say of a bad one.
            if list == u64::MAX && known.waiting.is_empty() {
                known.order.take().iter().for_each(|order| _ = of.unlisted.remove(order));
            }
        } else if list == u64::MAX {
            of.note_unlisted(group);
        }
        true
    }

    /// Whether memory has what the tag sector of a group says, and nothing else is to be said there.
    pub(crate) fn is_at_rest(&self, drive: DriveIdx, group: u64) -> bool {
        let of = &self.drives[drive.as_usize()];
        let known = of.groups.get(&group).filter(|known| known.tag.is_some());
        let is_free = |known: &Group| !known.is_busy && known.expected.is_none();
        known.is_some_and(|known| !known.lacks() && known.pending == 0 && is_free(known))
            && !of.is_on_its_way(group)
    }

    /// What the tag sector of a group says was read although memory has it. If it says something else its write was lost, or it has
    /// changed since: it is to be written again.
    pub(crate) fn confirm(&mut self, drive: DriveIdx, group: u64, sums: &Sums, list: u64) {
        let is_bad = self.drives[drive.as_usize()].bad.contains(&group);
        if is_bad || !self.is_at_rest(drive, group) {
            return; // It is none, is being written, or will be.
        }
        let of = &mut self.drives[drive.as_usize()];
        let digest = of.groups[&group].tag.as_ref().expect("it is known").digest();
        let expected = Expected { since: u64::MAX, digest };
        if !expected.is_met(sums, list) {
            of.refute(group, expected);
        }
    }

    /// A sector was written in place. What its checksum is will be said.
    pub(crate) fn note_written(&mut self, drive: DriveIdx, lba: Lba) {
        let (group, offset) = self.find(lba);
        let of = &mut self.drives[drive.as_usize()];
        let known = of.groups.entry(group).or_default();
        known.pending |= 1 << offset;
        of.unfolded.insert(group);
        of.note_unlisted(group);
    }

    /// The checksum of a sector that was written in place.
    pub(crate) fn note_sum(&mut self, drive: DriveIdx, lba: Lba, sum: u32) {
        let (group, offset) = self.find(lba);
        let of = &mut self.drives[drive.as_usize()];
        let Some(known) = of.groups.get_mut(&group) else { return };
        // The drive may have been lost since.
        if known.pending >> offset & 1 == 1 {
            of.lacking -= known.lacking();
            known.pending &= !(1 << offset);
            known.newer.get_or_insert_with(|| Box::new(Sums::NONE)).set(offset, sum);
            of.lacking += known.lacking();
        }
    }

    /// A transaction has a sector in its place, which is safe with its checksum; returns whether it is.
    pub(crate) fn is_safe(&mut self, drive: DriveIdx, lba: Lba, id: u64) -> bool {
        let (group, offset) = self.find(lba);
        let of = &mut self.drives[drive.as_usize()];
        let Some(known) = of.groups.get_mut(&group) else { return true };
        if known.is_newer(offset) {
            match &mut of.list.under_way {
                _ if known.order.is_some() => known.waiting.push(id),
                Some(list) => list.safe.push(id),
                // The list says it.
                None => return true,
            }
            return false;
        }
        if known.is_busy && of.is_on_its_way(group) {
            let known = of.groups.get_mut(&group).expect("it was there");
            known.said.push(id);
            return false;
        }
        true
    }

    /// A transaction is safe once all is listed or in tag sectors that was written up to now; returns whether it is.
    pub(crate) fn is_clean_or_waits(&mut self, drive: DriveIdx, id: u64) -> bool {
        let of = &mut self.drives[drive.as_usize()];
        if of.oldest() == of.next {
            return true;
        }
        of.barriers.push_back((of.next, id));
        false
    }

    /// Commands of a drive that write tag sectors or a list, or read tag sectors to be written.
    pub(crate) fn inside(&self, drive: DriveIdx) -> usize {
        let of = &self.drives[drive.as_usize()];
        of.folds.len() + of.reads.len() + usize::from(of.list.under_way.is_some())
    }

    /// A drive has ended what was no command for tags.
    pub(crate) fn note_busy(&mut self, now: Instant, drive: DriveIdx) {
        self.drives[drive.as_usize()].busy_at = now;
    }

    /// When a drive ended what was no command for tags.
    pub(crate) fn busy_at(&self, drive: DriveIdx) -> Instant {
        self.drives[drive.as_usize()].busy_at
    }

    /// The next group of a drive whose tag sector is to be written: the first one from a sector on.
    pub(crate) fn next(
        &self,
        drive: DriveIdx,
        from: Lba,
        may_check: bool,
        sectors: impl Fn(u64) -> usize,
    ) -> Option<Next> {
        let of = &self.drives[drive.as_usize()];
        if of.list.under_way.is_some() || of.list.is_due {
            return None; // What it says of a group would not be older than the tag sector (TG6).
        }
        let (from, _) = self.find(from);
        let bad = of.bad.intersection(&of.unfolded);
        let all = bad.chain(of.unfolded.range(from..)).chain(of.unfolded.range(..from));
        let is_ready = |(group, known): &(&u64, &Group)| {
            let is_due = known.lacks() || of.bad.contains(*group);
            is_due && known.pending == 0 && !known.is_busy
        };
        let mut ready = all.filter_map(|group| of.groups.get_key_value(group)).filter(is_ready);
        let Some((&group, known)) = ready.next() else {
            let mut all = of.unchecked.range(from..).chain(of.unchecked.range(..from));
            let is_free =
                |(group, _): &(&u64, &u64)| !of.groups[*group].is_busy && !of.bad.contains(*group);
            let (group, _) = all.find(is_free)?;
            return may_check.then_some(Next::Read(*group));
        };
        let newer = known.newer.as_deref().unwrap_or(&Sums::NONE);
        match &known.tag {
            Some(tag) => Some(Next::Write(group, Box::new(tag.under(newer)))),
            None if newer.has_first(sectors(group)) => Some(Next::Write(group, Box::new(*newer))),
            None => Some(Next::Read(group)),
        }
    }

    /// The tag sector of a group is being written, or read to be written.
    pub(crate) fn begin(&mut self, drive: DriveIdx, sub: SubId, next: Next, buf: BufId) {
        let of = &mut self.drives[drive.as_usize()];
        match next {
            Next::Read(group) => {
                of.groups.get_mut(&group).expect("it is known").is_busy = true;
                of.reads.insert(sub, TagRead { group, is_own: true });
            }
            Next::Write(group, sums) => {
                let is_refuted = of.bad.contains(&group) && of.unchecked.contains_key(&group);
                let expected = Expected { since: u64::MAX, digest: sums.digest() };
                of.set_tag(group, sums);
                let known = of.groups.get_mut(&group).expect("it has a tag");
                // The one that is there may not count meanwhile.
                known.expected = is_refuted.then_some(expected);
                known.is_busy = true;
                let order = known.order.take();
                order.iter().for_each(|order| _ = of.unlisted.remove(order));
                of.folds.insert(sub, Fold { group, buf, order });
            }
        }
    }

    /// The tag sector of a group is being read for reads that have not brought it.
    pub(crate) fn begin_tag_read(&mut self, drive: DriveIdx, sub: SubId, group: u64) {
        self.drives[drive.as_usize()].reads.insert(sub, TagRead { group, is_own: false });
    }

    /// Whether one of any group is.
    pub(crate) fn is_reading(&self) -> bool {
        self.drives.iter().any(|of| !of.reads.is_empty())
    }

    /// Whether the tag sector of a group is being read alone.
    pub(crate) fn is_being_read(&self, drive: DriveIdx, group: u64) -> bool {
        let mut reads = self.drives[drive.as_usize()].reads.values();
        reads.any(|read| read.group == group)
    }

    /// Whether tag sectors are to be written at once: what was written of their groups counts only then.
    pub(crate) fn has_bad(&self, drive: DriveIdx) -> bool {
        let of = &self.drives[drive.as_usize()];
        !of.bad.is_disjoint(&of.unfolded)
    }

    /// What the tag sector of a group says where buffers have no bytes.
    pub(crate) fn said_before(&self, drive: DriveIdx, group: u64) -> Option<(Sums, u64)> {
        let known = self.drives[drive.as_usize()].groups.get(&group);
        let tag = known.and_then(|known| known.tag.as_deref().copied());
        Some((tag.unwrap_or(Sums::OF_NOTHING), 0))
    }

    /// The read of a tag sector has ended: what it says, if anything (TG3).
    pub(crate) fn end_tag_read(
        &mut self,
        drive: DriveIdx,
        sub: SubId,
        found: Option<(Sums, u64)>,
    ) -> Checked {
        let read = self.drives[drive.as_usize()].reads.remove(&sub);
        let Some(TagRead { group, is_own }) = read else { return Checked::NOTHING };
        self.group_mut(drive, group).is_busy &= !is_own;
        self.note_used(drive, group);
        let (sums, list) = found.unwrap_or(NO_TAG);
        if is_own && self.group_mut(drive, group).expected.is_some() {
            return self.check(drive, group, sums, list);
        }
        let is_there = self.note_tag(drive, group, sums, list);
        Checked { lost: (!is_there).then_some(group), safe: Vec::new() }
    }

    /// The write of a tag sector has ended; returns its memory and the transactions of which a sector is safe now, each as often
    /// as it has some.
    pub(crate) fn end_write(&mut self, drive: DriveIdx, sub: SubId) -> Option<(BufId, Vec<u64>)> {
        let of = &mut self.drives[drive.as_usize()];
        let Fold { group, buf, .. } = of.folds.remove(&sub)?;
        of.list.has_no_room = false;
        of.bad.remove(&group);
        let known = of.groups.get_mut(&group).expect("it is being written");
        (known.is_busy, known.expected) = (false, None);
        let mut safe = std::mem::take(&mut known.said);
        safe.extend(of.take_safe());
        self.note_used(drive, group);
        self.forget_oldest();
        Some((buf, safe))
    }

    pub(super) fn first_of(&self, group: u64) -> Lba {
        Lba::new(group * self.groups.data().get())
    }

    pub(super) fn note_used(&mut self, drive: DriveIdx, group: u64) {
        self.clock += 1;
        let clock = self.clock;
        let known = self.group_mut(drive, group);
        let before = std::mem::replace(&mut known.used, clock);
        self.used.remove(&(before, drive, group));
        self.used.insert((clock, drive, group));
    }

    /// Forgets what was not used for longest, as long as there is too much (TG5). What is in use counts as used now, so that it is not
    /// looked at again and again.
    pub(super) fn forget_oldest(&mut self) {
        for _ in 0..LOOKS_MAX {
            if self.used.len() <= self.most {
                return;
            }
            let Some((_, drive, group)) = self.used.pop_first() else { return };
            let groups = &mut self.drives[drive.as_usize()].groups;
            match groups.get_mut(&group).filter(|known| !known.is_idle()) {
                Some(known) => {
                    self.clock += 1;
                    known.used = self.clock;
                    self.used.insert((self.clock, drive, group));
                }
                None => {
                    groups.remove(&group);
                    self.drives[drive.as_usize()].bad.remove(&group);
                }
            }
        }
    }
}

/// Whether two extents have a sector in common.
fn meet(one: Extent, other: Extent) -> bool {
    one.lba < other.end() && other.lba < one.end()
}

const _: () = assert!(SUMS == 64);
