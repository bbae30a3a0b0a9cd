//! What memory has of checksums: what was written and no tag sector says, what tag sectors say, and which are being written.
//!
//! ```text
//!   a place is written --> unlisted --> on the list of its drive --> in its tag sector
//!                             |                                         ^
//!                             +-----------------------------------------+
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use levelhead_block::BufId;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use super::list::Entry;
use super::sector::{SUMS, Sums};
use crate::names::SubId;
use crate::shape::{Area, Groups};

/// The most groups of which tag sectors are remembered: 64 MiB.
const REMEMBERED_MAX: usize = (64 << 20) / 320;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Tags {
    groups: Groups,
    drives: Vec<OnDrive>,
    /// The most sectors that a list has room for; none where there are no lists.
    list_max: usize,
    /// When each group that is remembered was used last, oldest first.
    used: BTreeSet<(u64, DriveIdx, u64)>,
    clock: u64,
    most: usize,
}

/// What is known of a drive.
#[derive(Clone, Debug, Default)]
struct OnDrive {
    groups: BTreeMap<u64, Group>,
    /// Groups with something that neither a list nor a tag sector says, in the order in which that was written.
    unlisted: BTreeMap<u64, u64>,
    /// The next number in that order.
    next: u64,
    /// Groups whose tag sector is to be written, and of how many sectors it lacks what was written.
    unfolded: BTreeSet<u64>,
    lacking: usize,
    /// What is safe when a list or tag sectors say all that was written before this number.
    barriers: VecDeque<(u64, u64)>,
    /// Writes of tag sectors, and reads of those that are to be written.
    folds: BTreeMap<SubId, Fold>,
    reads: BTreeMap<SubId, u64>,
    list: List,
    /// When the drive ended what was no command for tags.
    busy_at: Instant,
    /// Commands inside the drive that move what is compared with checksums, or have ended and wait for that.
    inside: BTreeMap<SubId, Inside>,
    /// Where the reads begin that wait in the drive's queue.
    queued: BTreeMap<Lba, u32>,
}

/// The write of a tag sector.
#[derive(Clone, Copy, Debug)]
struct Fold {
    group: u64,
    buf: BufId,
    /// The number of the first of what it says that no list does.
    order: Option<u64>,
}

/// The list of a drive.
#[derive(Clone, Debug, Default)]
struct List {
    /// The number of the newest one that was begun, and of the newest one that is durable.
    newest: u64,
    durable: u64,
    /// Which of its two slots the next one goes to.
    slot: usize,
    under_way: Option<UnderWay>,
    /// Whether something waits for the next one.
    is_wanted: bool,
    /// Whether the one that lies on the drive is still to be read.
    is_unread: bool,
    /// Whether one may be on the drive that is not known to be: another one comes before tag sectors are written (TG6).
    is_due: bool,
}

/// A list that is being written.
#[derive(Clone, Debug)]
struct UnderWay {
    sub: SubId,
    buf: BufId,
    /// The number of the first of what it says and the one before did not.
    order: Option<u64>,
    /// Transactions of which a sector is safe once it is durable.
    safe: Vec<u64>,
}

/// What a new list is to say.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) generation: u64,
    pub(crate) slot: usize,
    pub(crate) entries: Vec<Entry>,
    groups: Vec<u64>,
}

impl Listed {
    fn say(&mut self, first: Lba, group: u64, unsaid: &Unsaid) {
        let entry = |(at, since, sum): (usize, u64, u32)| {
            let lba = first + Sectors::new(at as u64);
            Entry { lba, since: since.min(self.generation), sum }
        };
        self.entries.extend(unsaid.iter().map(entry));
        self.groups.push(group);
    }
}

/// What a tag sector may not say.
#[derive(Clone, Debug)]
struct Unsaid {
    sums: Sums,
    /// The first list that said each; what none says has the highest number.
    since: [u64; SUMS],
}

impl Unsaid {
    const NOTHING: Self = Self { sums: Sums::NONE, since: [u64::MAX; SUMS] };

    fn set(&mut self, offset: usize, since: u64, sum: u32) {
        self.sums.set(offset, sum);
        self.since[offset] = since;
    }

    fn iter(&self) -> impl Iterator<Item = (usize, u64, u32)> {
        self.sums.iter().map(|(at, sum)| (at, self.since[at], sum))
    }
}

/// A command of which the sectors have checksums.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    /// Its sectors, as the layout counts them.
    extent: Extent,
    /// What a read brings of its drive, until it has ended; nothing of a write.
    brings: Option<Extent>,
    /// Whether it writes.
    is_write: bool,
    /// Those of its sectors that were being written at the same time: what a read brings of them says nothing.
    moved: Vec<Extent>,
}

/// What is known of a group.
#[derive(Clone, Debug, Default)]
struct Group {
    /// What its tag sector says, or will when it is written; none if that is not known.
    tag: Option<Box<Sums>>,
    /// The list that it names, if it was read.
    tag_list: u64,
    /// When that was used last.
    used: u64,
    /// What the list said when this run began, until the tag sector is read: that may be newer (TG6).
    loaded: Option<Box<Unsaid>>,
    /// What was written since,
    newer: Option<Box<Sums>>,
    /// and of which sectors that is being computed, as bits.
    pending: u64,
    /// The number of the first of that which no list says, and whether one says some of it.
    order: Option<u64>,
    is_listed: bool,
    /// Transactions of which a sector is safe when a list or the tag sector says that; those whose sectors the write under way of
    /// the tag sector says.
    waiting: Vec<u64>,
    said: Vec<u64>,
    /// Whether its tag sector is being written, or read to be written.
    is_busy: bool,
    /// How many reads are under way that want its checksums (TG5), and how many wait in the drive's queue.
    readers: u32,
    queued: u32,
}

/// A group to be written next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Its tag sector is to be read first.
    Read(u64),
    /// Its tag sector is to say this.
    Write(u64, Box<Sums>),
}

impl Group {
    fn get(&self, offset: usize) -> Option<u32> {
        let newer = self.newer.as_ref().and_then(|sums| sums.get(offset));
        let tag = self.tag.as_ref().filter(|_| self.loaded.is_none());
        newer.or_else(|| tag?.get(offset))
    }

    /// Whether something was written there that no tag sector says.
    fn is_newer(&self, offset: usize) -> bool {
        let is_known = self.newer.as_ref().is_some_and(|sums| sums.get(offset).is_some());
        is_known || self.pending >> offset & 1 == 1
    }

    /// Whether its tag sector lacks something.
    fn lacks(&self) -> bool {
        self.newer.is_some() || self.loaded.is_some()
    }

    /// How many sectors its tag sector lacks.
    fn lacking(&self) -> usize {
        let newer = self.newer.as_ref().map_or(0, |sums| sums.count());
        newer + self.loaded.as_ref().map_or(0, |loaded| loaded.sums.count())
    }

    /// All that its tag sector may not say, with what is on its way into it.
    fn unsaid(&self, is_folding: bool) -> Unsaid {
        let mut unsaid = self.loaded.as_deref().cloned().unwrap_or(Unsaid::NOTHING);
        let tag = self.tag.as_deref().filter(|_| is_folding);
        for sums in tag.into_iter().chain(self.newer.as_deref()) {
            sums.iter().for_each(|(at, sum)| unsaid.set(at, u64::MAX, sum));
        }
        unsaid
    }

    fn is_idle(&self) -> bool {
        let is_clean = !self.lacks() && self.pending == 0 && !self.is_busy;
        is_clean && self.readers == 0 && self.queued == 0
    }
}

impl OnDrive {
    /// The number of the first of what neither a list nor a tag sector says.
    fn oldest(&self) -> u64 {
        let folds = self.folds.values().filter_map(|fold| fold.order);
        let list = self.list.under_way.iter().filter_map(|list| list.order);
        let first = self.unlisted.keys().next().copied();
        first.into_iter().chain(folds).chain(list).min().unwrap_or(self.next)
    }

    /// What is safe by now.
    fn take_safe(&mut self) -> Vec<u64> {
        let oldest = self.oldest();
        let mut safe = Vec::new();
        while let Some((_, id)) = self.barriers.pop_front_if(|(before, _)| *before <= oldest) {
            safe.push(id);
        }
        safe
    }
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

    /// The group whose tag sector a command reads, if it reads one to be written.
    pub(crate) fn read_of(&self, drive: DriveIdx, sub: SubId) -> Option<u64> {
        self.drives[drive.as_usize()].reads.get(&sub).copied()
    }

    /// The group of a sector, and which of its sectors that is.
    pub(crate) fn find(&self, lba: Lba) -> (u64, usize) {
        let data = self.groups.data().get();
        (lba.get() / data, (lba.get() % data) as usize)
    }

    /// The sectors of a drive that a read of these sectors asks for, together with tag sectors that memory does not have.
    pub(crate) fn widened(&self, area: &Area, drive: DriveIdx, asked: Extent) -> Extent {
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
            if needs && !is_known && !is_next {
                (first, last) = (first.min(tag.lba), last.max(tag.lba + Sectors::new(1)));
            }
        }
        Extent::new(first, last - first)
    }

    fn group_mut(&mut self, drive: DriveIdx, group: u64) -> &mut Group {
        self.drives[drive.as_usize()].groups.entry(group).or_default()
    }

    /// The checksum of a sector, if memory has it.
    pub(crate) fn get(&self, drive: DriveIdx, lba: Lba) -> Option<u32> {
        let (group, offset) = self.find(lba);
        let of = &self.drives[drive.as_usize()];
        let known = of.groups.get(&group).filter(|_| !of.list.is_unread)?;
        known.get(offset)
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
    /// it already is newer.
    pub(crate) fn note_tag(&mut self, drive: DriveIdx, group: u64, sums: Sums, list: u64) {
        let of = &mut self.drives[drive.as_usize()];
        let known = of.groups.entry(group).or_default();
        if known.tag.is_some() {
            return;
        }
        known.tag = Some(Box::new(sums));
        known.tag_list = list;
        if list != u64::MAX {
            of.list.newest = of.list.newest.max(list);
        }
        of.lacking -= known.lacking();
        for (at, since, sum) in known.loaded.take().iter().flat_map(|loaded| loaded.iter()) {
            let newer = known.newer.as_ref().and_then(|sums| sums.get(at));
            if since > list && newer.is_none() {
                known.newer.get_or_insert_with(|| Box::new(Sums::NONE)).set(at, sum);
            }
        }
        of.lacking += known.lacking();
        if !known.lacks() && known.pending == 0 {
            known.is_listed = false;
            of.unfolded.remove(&group);
        }
    }

    /// The list of a drive said this when this run began.
    pub(crate) fn load(
        &mut self,
        drive: DriveIdx,
        generation: u64,
        slot: usize,
        entries: &[Entry],
    ) {
        for &Entry { lba, since, sum } in entries {
            let (group, offset) = self.find(lba);
            let of = &mut self.drives[drive.as_usize()];
            let known = of.groups.entry(group).or_default();
            of.lacking -= known.lacking();
            if known.tag.is_some() {
                // It was read before the list was.
                let newer = known.newer.get_or_insert_with(|| Box::new(Sums::NONE));
                if since > known.tag_list && newer.get(offset).is_none() {
                    newer.set(offset, sum);
                    known.is_listed = true;
                    of.unfolded.insert(group);
                }
                if newer.count() == 0 {
                    known.newer = None;
                }
                of.lacking += known.lacking();
                continue;
            }
            let loaded = known.loaded.get_or_insert_with(|| Box::new(Unsaid::NOTHING));
            loaded.set(offset, since, sum);
            known.is_listed = true;
            of.lacking += known.lacking();
            of.unfolded.insert(group);
        }
        let list = &mut self.drives[drive.as_usize()].list;
        list.newest = list.newest.max(generation);
        (list.slot, list.durable) = (1 - slot, generation);
        list.is_unread = false;
    }

    /// A list of a drive has been seen with this number: the next one has a higher one.
    pub(crate) fn note_list(&mut self, drive: DriveIdx, generation: u64) {
        let list = &mut self.drives[drive.as_usize()].list;
        list.newest = list.newest.max(generation);
    }

    /// A sector was written in place. What its checksum is will be said.
    pub(crate) fn note_written(&mut self, drive: DriveIdx, lba: Lba) {
        let (group, offset) = self.find(lba);
        let of = &mut self.drives[drive.as_usize()];
        let known = of.groups.entry(group).or_default();
        known.pending |= 1 << offset;
        of.unfolded.insert(group);
        if known.order.is_none() {
            known.order = Some(of.next);
            of.unlisted.insert(of.next, group);
            of.next += 1;
        }
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
        if known.is_busy && of.folds.values().any(|fold| fold.group == group) {
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

    /// How many groups of a drive have something that neither a list nor a tag sector says.
    pub(crate) fn unlisted(&self, drive: DriveIdx) -> usize {
        self.drives[drive.as_usize()].unlisted.len()
    }

    /// How many groups of a drive have tag sectors that are to be written.
    pub(crate) fn unfolded(&self, drive: DriveIdx) -> usize {
        self.drives[drive.as_usize()].unfolded.len()
    }

    /// Whether tag sectors lack more sectors of a drive than its list can well have.
    pub(crate) fn is_full(&self, drive: DriveIdx) -> bool {
        let lacking = self.drives[drive.as_usize()].lacking;
        4 * lacking >= 3 * self.list_max || lacking + SUMS > self.list_max
    }

    /// Whether the list of one of these drives is: then nothing is written that no client waits for. Of a lost drive nothing comes
    /// free, and nothing waits for that.
    pub(crate) fn are_full(&self, reachable: DriveSet) -> bool {
        self.has_lists() && reachable.iter().any(|drive| self.is_full(drive))
    }

    /// Whether there are lists.
    pub(crate) fn has_lists(&self) -> bool {
        self.list_max > 0
    }

    /// For every drive the number of what will be written next.
    pub(crate) fn orders(&self) -> Vec<u64> {
        self.drives.iter().map(|of| of.next).collect()
    }

    /// Whether a list or tag sectors say all of a drive that was written before this number. If not, a list is written.
    pub(crate) fn says_before(&mut self, drive: DriveIdx, order: u64) -> bool {
        let of = &mut self.drives[drive.as_usize()];
        let is_said = order <= of.oldest();
        of.list.is_wanted |= !is_said;
        is_said
    }

    /// Whether something waits for a list.
    pub(crate) fn is_list_wanted(&self, drive: DriveIdx) -> bool {
        let list = &self.drives[drive.as_usize()].list;
        list.is_wanted || list.is_due
    }

    /// Whether another list comes before tag sectors are written.
    pub(crate) fn is_list_due(&self, drive: DriveIdx) -> bool {
        self.drives[drive.as_usize()].list.is_due
    }

    /// What is remembered of what tag sectors lack is on no list of the drive: it is a copy of the one before.
    pub(crate) fn relist(&mut self, drive: DriveIdx) {
        let of = &mut self.drives[drive.as_usize()];
        for &group in &of.unfolded {
            let known = of.groups.get_mut(&group).expect("its tag sector lacks something");
            if known.order.is_none() {
                known.order = Some(of.next);
                of.unlisted.insert(of.next, group);
                of.next += 1;
            }
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.drives.iter().all(|of| of.oldest() == of.next)
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
        sectors: impl Fn(u64) -> usize,
    ) -> Option<Next> {
        let of = &self.drives[drive.as_usize()];
        if of.list.under_way.is_some() || of.list.is_due {
            return None; // What it says of a group would not be older than the tag sector (TG6).
        }
        let (from, _) = self.find(from);
        let all = of.unfolded.range(from..).chain(of.unfolded.range(..from));
        let is_ready =
            |(_, known): &(&u64, &Group)| known.lacks() && known.pending == 0 && !known.is_busy;
        let mut ready = all.filter_map(|group| of.groups.get_key_value(group)).filter(is_ready);
        let (&group, known) = ready.next()?;
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
                of.groups.get_mut(&group).expect("it lacks something").is_busy = true;
                of.reads.insert(sub, group);
            }
            Next::Write(group, sums) => {
                let known = of.groups.get_mut(&group).expect("it lacks something");
                known.is_busy = true;
                of.lacking -= known.lacking();
                known.tag = Some(sums);
                (known.newer, known.loaded, known.is_listed) = (None, None, false);
                known.said.append(&mut known.waiting);
                let order = known.order.take();
                if let Some(order) = order {
                    of.unlisted.remove(&order);
                }
                of.unfolded.remove(&group);
                of.folds.insert(sub, Fold { group, buf, order });
            }
        }
    }

    /// The number of the newest list of a drive that is durable (TG6).
    pub(crate) fn durable_list(&self, drive: DriveIdx) -> u64 {
        self.drives[drive.as_usize()].list.durable
    }

    /// The read of a tag sector has ended: what it says, if anything (TG3).
    pub(crate) fn end_tag_read(&mut self, drive: DriveIdx, sub: SubId, found: Option<(Sums, u64)>) {
        let Some(group) = self.drives[drive.as_usize()].reads.remove(&sub) else { return };
        // Whether it was newer than the list is not known then: nothing counts that says what it said.
        let (sums, list) = found.unwrap_or((Sums::NONE, u64::MAX));
        self.note_tag(drive, group, sums, list);
        self.group_mut(drive, group).is_busy = false;
    }

    /// The write of a tag sector has ended; returns its memory and the transactions of which a sector is safe now, each as often
    /// as it has some.
    pub(crate) fn end_write(&mut self, drive: DriveIdx, sub: SubId) -> Option<(BufId, Vec<u64>)> {
        let of = &mut self.drives[drive.as_usize()];
        let Fold { group, buf, .. } = of.folds.remove(&sub)?;
        let known = of.groups.get_mut(&group).expect("it is being written");
        known.is_busy = false;
        let mut safe = std::mem::take(&mut known.said);
        safe.extend(of.take_safe());
        self.note_used(drive, group);
        self.forget_oldest();
        Some((buf, safe))
    }

    /// What a new list of a drive is to say, if it has room for it: all that the one before says and no tag sector does, and of what
    /// neither says as much as there is room for. Its number is `after` at least.
    pub(crate) fn new_list(&self, drive: DriveIdx, after: u64) -> Option<Listed> {
        let of = &self.drives[drive.as_usize()];
        let has_news = !of.unlisted.is_empty() || of.list.is_due;
        if of.list.under_way.is_some() || !has_news || self.list_max == 0 {
            return None;
        }
        let mut listed = Listed {
            generation: after.max(of.list.newest + 1),
            slot: of.list.slot,
            entries: Vec::new(),
            groups: Vec::new(),
        };
        // What is on its way into a tag sector is not there yet.
        let folding: BTreeSet<u64> = of.folds.values().map(|fold| fold.group).collect();
        for &group in folding.iter().chain(of.unfolded.difference(&folding)) {
            let known = &of.groups[&group];
            if folding.contains(&group) || known.is_listed || known.loaded.is_some() {
                listed.say(self.first_of(group), group, &known.unsaid(folding.contains(&group)));
            }
        }
        if listed.entries.len() > self.list_max {
            if !of.list.is_due {
                return None;
            }
            listed.entries.truncate(self.list_max);
        }
        let said: BTreeSet<u64> = listed.groups.iter().copied().collect();
        for group in of.unlisted.values().filter(|group| !said.contains(group)) {
            let unsaid = of.groups[group].unsaid(false);
            if listed.entries.len() + unsaid.sums.count() > self.list_max {
                break;
            }
            listed.say(self.first_of(*group), *group, &unsaid);
        }
        // Without news the same list would be written again and again.
        let is_news = |group: &u64| of.groups[group].order.is_some();
        (of.list.is_due || listed.groups.iter().any(is_news)).then_some(listed)
    }

    fn first_of(&self, group: u64) -> Lba {
        Lba::new(group * self.groups.data().get())
    }

    /// A list is being written.
    pub(crate) fn begin_list(&mut self, drive: DriveIdx, sub: SubId, buf: BufId, listed: &Listed) {
        let of = &mut self.drives[drive.as_usize()];
        let (mut order, mut safe) = (None, Vec::new());
        for group in &listed.groups {
            let known = of.groups.get_mut(group).expect("it was listed");
            known.is_listed = !of.folds.values().any(|fold| fold.group == *group) || known.lacks();
            // What is being computed is not on it.
            if known.pending == 0
                && let Some(first) = known.order.take()
            {
                of.unlisted.remove(&first);
                order = Some(order.map_or(first, |order: u64| order.min(first)));
                safe.append(&mut known.waiting);
            }
        }
        of.list.newest = listed.generation;
        of.list.is_wanted = false;
        of.list.under_way = Some(UnderWay { sub, buf, order, safe });
    }

    /// The write of a list has ended, if it was this command; returns its memory and the transactions of which a sector is safe now.
    pub(crate) fn end_list(&mut self, drive: DriveIdx, sub: SubId) -> Option<(BufId, Vec<u64>)> {
        let of = &mut self.drives[drive.as_usize()];
        let UnderWay { buf, mut safe, .. } = of.list.under_way.take_if(|list| list.sub == sub)?;
        of.list.slot = 1 - of.list.slot;
        (of.list.durable, of.list.is_due) = (of.list.newest, false);
        safe.extend(of.take_safe());
        Some((buf, safe))
    }

    /// The drive is lost. What it lacks in its tag sectors is remembered: it may come back. Returns the memory of what was being
    /// written.
    pub(crate) fn lose(&mut self, drive: DriveIdx) -> Vec<BufId> {
        let of = std::mem::take(&mut self.drives[drive.as_usize()]);
        self.used.retain(|&(_, of, _)| of != drive);
        // What was on its way into a tag sector may be there or not: what is remembered counts.
        let newest = of.list.newest + 1;
        let lost = &mut self.drives[drive.as_usize()];
        lost.next = of.next;
        let List { durable, slot, is_unread, ref under_way, is_due, .. } = of.list;
        let is_due = is_due || under_way.is_some();
        lost.list = List { newest, durable, slot, is_unread, is_due, ..List::default() };
        let folding: BTreeSet<u64> = of.folds.values().map(|fold| fold.group).collect();
        for group in folding.iter().chain(of.unfolded.difference(&folding)) {
            // What is on no list is of transactions that are not over: the drive is given it again.
            let known = &of.groups[group];
            if !known.is_listed && known.loaded.is_none() && !folding.contains(group) {
                continue;
            }
            let mut unsaid = known.unsaid(folding.contains(group));
            let since = unsaid.since.iter_mut();
            since.for_each(|since| *since = (*since).min(newest));
            if unsaid.sums.count() > 0 {
                lost.lacking += unsaid.sums.count();
                let known = lost.groups.entry(*group).or_default();
                (known.loaded, known.is_listed) = (Some(Box::new(unsaid)), true);
                lost.unfolded.insert(*group);
            }
        }
        let list = of.list.under_way.map(|list| list.buf);
        of.folds.into_values().map(|fold| fold.buf).chain(list).collect()
    }

    /// Another drive comes into the place of a lost one: nothing is known of it.
    pub(crate) fn forget(&mut self, drive: DriveIdx) {
        let of = &mut self.drives[drive.as_usize()];
        // Numbers go on: tag sectors of the drive before it may be there, if it is the same one.
        let list = List { newest: of.list.newest, ..List::default() };
        *of = OnDrive { next: of.next, list, ..OnDrive::default() };
        self.used.retain(|&(_, of, _)| of != drive);
    }

    fn note_used(&mut self, drive: DriveIdx, group: u64) {
        self.clock += 1;
        let clock = self.clock;
        let known = self.group_mut(drive, group);
        let before = std::mem::replace(&mut known.used, clock);
        self.used.remove(&(before, drive, group));
        self.used.insert((clock, drive, group));
    }

    /// Forgets what was not used for longest, as long as there is too much (TG5).
    fn forget_oldest(&mut self) {
        let excess = self.used.len().saturating_sub(self.most);
        if excess == 0 {
            return;
        }
        let is_idle = |&&(_, drive, group): &&(u64, DriveIdx, u64)| {
            self.drives[drive.as_usize()].groups.get(&group).is_none_or(Group::is_idle)
        };
        let oldest: Vec<_> = self.used.iter().filter(is_idle).take(excess).copied().collect();
        for (used, drive, group) in oldest {
            self.used.remove(&(used, drive, group));
            self.drives[drive.as_usize()].groups.remove(&group);
        }
    }
}

/// Whether two extents have a sector in common.
fn meet(one: Extent, other: Extent) -> bool {
    one.lba < other.end() && other.lba < one.end()
}

const _: () = assert!(SUMS == 64);

#[cfg(test)]
mod tests {
    use super::*;

    /// What is remembered of a lost drive keeps no other one's resync or rebuild waiting.
    #[test]
    fn list_of_a_lost_drive_is_waited_for_by_nothing() {
        let (drive, other) = (DriveIdx::new(0), DriveIdx::new(1));
        let mut tags = Tags::new(Groups::of_chunk(Sectors::new(16)), 2, 201, false);
        for lba in (0..160).map(Lba::new) {
            tags.note_written(drive, lba);
            tags.note_sum(drive, lba, 7);
        }
        let listed = tags.new_list(drive, 1).expect("it has room");
        tags.begin_list(drive, SubId(1), BufId::Own(1), &listed);
        assert!(tags.end_list(drive, SubId(1)).is_some());
        let [all, left] = [DriveSet::first(2), DriveSet::EMPTY.with(other)];
        assert!(tags.are_full(all) && !tags.are_full(left));
        tags.lose(drive);
        assert!(tags.is_full(drive) && !tags.are_full(left));
        tags.forget(drive);
        assert!(!tags.are_full(all));
    }
}
