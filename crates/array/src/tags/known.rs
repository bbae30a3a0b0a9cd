//! What is known of the checksums of a drive.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::BufId;
use levelhead_units::{Extent, Instant, Lba};

use super::sector::{SUMS, Sums};
use crate::names::SubId;

/// What is known of a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct OnDrive {
    pub(super) groups: BTreeMap<u64, Group>,
    /// Groups with something that neither a list nor a tag sector says, in the order in which that was written.
    pub(super) unlisted: BTreeMap<u64, u64>,
    /// The next number in that order.
    pub(super) next: u64,
    /// Groups whose tag sector is to be written, and of how many sectors it lacks what was written.
    pub(super) unfolded: BTreeSet<u64>,
    pub(super) lacking: usize,
    /// What is safe when a list or tag sectors say all that was written before this number.
    pub(super) barriers: VecDeque<(u64, u64)>,
    /// Writes of tag sectors, and reads of nothing else.
    pub(super) folds: BTreeMap<SubId, Fold>,
    pub(super) reads: BTreeMap<SubId, TagRead>,
    /// Announced writes that may have tag sectors with them, and tag sectors that are to be read back, with when each was written
    /// (TG8).
    pub(super) carries: BTreeMap<SubId, Carry>,
    pub(super) unchecked: BTreeMap<u64, u64>,
    /// Groups of which the list said something that does not count (TG9).
    pub(super) hinted: BTreeSet<u64>,
    /// Groups whose tag sector is known to be none, until another one is durable.
    pub(super) bad: BTreeSet<u64>,
    pub(super) list: List,
    /// When the drive ended what was no command for tags.
    pub(super) busy_at: Instant,
    /// Commands inside the drive that move what is compared with checksums, or have ended and wait for that.
    pub(super) inside: BTreeMap<SubId, Inside>,
    /// Where the reads begin that wait in the drive's queue.
    pub(super) queued: BTreeMap<Lba, u32>,
}

/// The write of a tag sector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    pub(super) group: u64,
    pub(super) buf: BufId,
    /// The number of the first of what it says that no list does.
    pub(super) order: Option<u64>,
}

/// The read of a tag sector alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagRead {
    pub(super) group: u64,
    /// Whether the tag sector is to be written then, or was; if not, reads wait for it that have not brought it.
    pub(super) is_own: bool,
}

/// The list of a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    /// The number of the newest one that was begun, and of the newest one that is durable.
    pub(super) newest: u64,
    pub(super) durable: u64,
    /// Which of its two slots the next one goes to.
    pub(super) slot: usize,
    pub(super) under_way: Option<UnderWay>,
    /// Whether something waits for the next one.
    pub(super) is_wanted: bool,
    /// Whether the one that lies on the drive is still to be read.
    pub(super) is_unread: bool,
    /// Whether one may be on the drive that is not known to be: another one comes before tag sectors are written (TG6).
    pub(super) is_due: bool,
    /// Whether there is no room for another one until more tag sectors are written.
    pub(super) has_no_room: bool,
}

/// A list that is being written.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    pub(super) sub: SubId,
    pub(super) buf: BufId,
    /// The number of the first of what it says and the one before did not.
    pub(super) order: Option<u64>,
    /// Transactions of which a sector is safe once it is durable.
    pub(super) safe: Vec<u64>,
}

/// What a tag sector should say that was written with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// The first list that said so: a tag sector that was written when there was that one is newer.
    pub(super) since: u64,
    pub(super) digest: u32,
}

impl Expected {
    /// Whether a tag sector says this, or is newer.
    pub(super) fn is_met(self, sums: &Sums, list: u64) -> bool {
        list != u64::MAX && (self.since <= list || self.digest == sums.digest())
    }
}

/// What the read of a tag sector has shown.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// The group that it is of, if it was written with its data and is not there.
    pub(crate) lost: Option<u64>,
    /// The transactions of which a sector is safe now, each as often as it has some.
    pub(crate) safe: Vec<u64>,
}

impl Checked {
    pub(super) const NOTHING: Self = Self { lost: None, safe: Vec::new() };
}

/// What a tag sector may not say.
#[derive(Clone, Debug)]
pub(super) struct Unsaid {
    pub(super) sums: Sums,
    /// The first list that said each; what none says has the highest number.
    pub(super) since: [u64; SUMS],
}

impl Unsaid {
    pub(super) const NOTHING: Self = Self { sums: Sums::NONE, since: [u64::MAX; SUMS] };

    pub(super) fn set(&mut self, offset: usize, since: u64, sum: u32) {
        self.sums.set(offset, sum);
        self.since[offset] = since;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u64, u32)> {
        self.sums.iter().map(|(at, sum)| (at, self.since[at], sum))
    }
}

/// A command of which the sectors have checksums.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    /// Its sectors, as the layout counts them.
    pub(super) extent: Extent,
    /// What a read brings of its drive, until it has ended; nothing of a write.
    pub(super) brings: Option<Extent>,
    /// Whether it writes.
    pub(super) is_write: bool,
    /// Those of its sectors that were being written at the same time: what a read brings of them says nothing.
    pub(super) moved: Vec<Extent>,
}

/// What is known of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// What its tag sector says, or will when it is written; none if that is not known.
    pub(super) tag: Option<Box<Sums>>,
    /// The list that it names, if it was read.
    pub(super) tag_list: u64,
    /// When that was used last.
    pub(super) used: u64,
    /// What the list said when this run began, until the tag sector is read: that may be newer (TG6).
    pub(super) loaded: Option<Box<Unsaid>>,
    /// What it said that does not count, of sectors of which the tag sector says nothing: what has such a checksum is right, and what
    /// has another one may be newer (TG9).
    pub(super) hints: Option<Box<Sums>>,
    /// What was written since,
    pub(super) newer: Option<Box<Sums>>,
    /// and of which sectors that is being computed, as bits.
    pub(super) pending: u64,
    /// The number of the first of that which no list says, and whether one says some of it.
    pub(super) order: Option<u64>,
    pub(super) is_listed: bool,
    /// Transactions of which a sector is safe when a list or the tag sector says that; those whose sectors the write under way of
    /// the tag sector says.
    pub(super) waiting: Vec<u64>,
    pub(super) said: Vec<u64>,
    /// Whether its tag sector is being written, or read to be written.
    pub(super) is_busy: bool,
    /// What its tag sector should say, if it is to be read back.
    pub(super) expected: Option<Expected>,
    /// How many reads are under way that want its checksums (TG5), and how many wait in the drive's queue.
    pub(super) readers: u32,
    pub(super) queued: u32,
}

impl Group {
    pub(super) fn get(&self, offset: usize) -> Option<u32> {
        let newer = self.newer.as_ref().and_then(|sums| sums.get(offset));
        let tag = self.tag.as_ref().filter(|_| self.loaded.is_none());
        newer.or_else(|| tag?.get(offset))
    }

    /// Whether something was written there that no tag sector says.
    pub(super) fn is_newer(&self, offset: usize) -> bool {
        let is_known = self.newer.as_ref().is_some_and(|sums| sums.get(offset).is_some());
        is_known || self.pending >> offset & 1 == 1
    }

    /// The checksum that a sector has if it was not written since the list was that said so.
    pub(super) fn hint(&self, offset: usize) -> Option<u32> {
        let is_free = self.get(offset).is_none() && self.pending >> offset & 1 == 0;
        self.hints.as_ref()?.get(offset).filter(|_| is_free)
    }

    /// Whether its tag sector lacks something.
    pub(super) fn lacks(&self) -> bool {
        self.newer.is_some() || self.loaded.is_some()
    }

    /// How many sectors its tag sector lacks.
    pub(super) fn lacking(&self) -> usize {
        let newer = self.newer.as_ref().map_or(0, |sums| sums.count());
        newer + self.loaded.as_ref().map_or(0, |loaded| loaded.sums.count())
    }

    /// All that its tag sector may not say, with what is on its way into it.
    pub(super) fn unsaid(&self, is_folding: bool) -> Unsaid {
        let mut unsaid = self.loaded.as_deref().cloned().unwrap_or(Unsaid::NOTHING);
        let tag = self.tag.as_deref().filter(|_| is_folding);
        for sums in tag.into_iter().chain(self.newer.as_deref()) {
            sums.iter().for_each(|(at, sum)| unsaid.set(at, u64::MAX, sum));
        }
        unsaid
    }

    pub(super) fn is_idle(&self) -> bool {
        let is_clean =
            !self.lacks() && self.pending == 0 && !self.is_busy && self.expected.is_none();
        is_clean && self.hints.is_none() && self.readers == 0 && self.queued == 0
    }
}

impl OnDrive {
    /// The number of the first of what neither a list nor a tag sector says.
    pub(super) fn oldest(&self) -> u64 {
        let folds = self.folds.values().filter_map(|fold| fold.order);
        let carries = self.carries.values().filter(|carry| carry.has_begun());
        let carries = carries.flat_map(|carry| carry.groups.iter().map(|carried| carried.order));
        let list = self.list.under_way.iter().filter_map(|list| list.order);
        let first = self.unlisted.keys().next().copied();
        first.into_iter().chain(folds).chain(carries).chain(list).min().unwrap_or(self.next)
    }

    /// A group has something that neither a list nor a tag sector says.
    pub(super) fn note_unlisted(&mut self, group: u64) {
        let known = self.groups.get_mut(&group).expect("something of it was written");
        if known.order.is_none() {
            known.order = Some(self.next);
            self.unlisted.insert(self.next, group);
            self.next += 1;
        }
    }

    /// What is safe by now.
    pub(super) fn take_safe(&mut self) -> Vec<u64> {
        let oldest = self.oldest();
        let mut safe = Vec::new();
        while let Some((_, id)) = self.barriers.pop_front_if(|(before, _)| *before <= oldest) {
            safe.push(id);
        }
        safe
    }

    /// The groups of which what memory has is on its way into the tag sector.
    pub(super) fn on_their_way(&self) -> BTreeSet<u64> {
        let carries = self.carries.values().filter(|carry| carry.has_begun());
        let carried = carries.flat_map(|carry| carry.groups.iter().map(|carried| carried.group));
        self.folds.values().map(|fold| fold.group).chain(carried).collect()
    }

    /// Whether what memory has of a group is on its way into its tag sector.
    pub(super) fn is_on_its_way(&self, group: u64) -> bool {
        let mut carries = self.carries.values().filter(|carry| carry.has_begun());
        self.folds.values().any(|fold| fold.group == group)
            || carries.any(|carry| carry.groups.iter().any(|carried| carried.group == group))
    }

    /// Whether no list may begin: what commands write that the drive does not have yet would be older there than in their tag sectors
    /// (TG6).
    pub(super) fn has_carries_before(&self) -> bool {
        let mut carries = self.carries.values();
        carries.any(|carry| !carry.has_begun() && !carry.groups.is_empty())
    }

    /// What the list says of a sector does not count.
    pub(super) fn note_hint(&mut self, group: u64, offset: usize, sum: u32) {
        let known = self.groups.entry(group).or_default();
        if known.tag.as_ref().is_none_or(|tag| tag.get(offset).is_none()) {
            known.hints.get_or_insert_with(|| Box::new(Sums::NONE)).set(offset, sum);
            self.hinted.insert(group);
        }
    }

    /// The tag sector of a group says this from now on.
    pub(super) fn set_tag(&mut self, group: u64, sums: Box<Sums>) {
        let known = self.groups.entry(group).or_default();
        self.lacking -= known.lacking();
        if known
            .hints
            .as_ref()
            .is_some_and(|hints| hints.iter().all(|(at, _)| sums.get(at).is_some()))
        {
            known.hints = None;
            self.hinted.remove(&group);
        }
        (known.tag, known.tag_list) = (Some(sums), 0);
        (known.newer, known.loaded, known.is_listed) = (None, None, false);
        known.said.append(&mut known.waiting);
        known.expected = None;
        self.unchecked.remove(&group);
        self.unfolded.remove(&group);
    }

    /// The tag sector of a group is not what it should be: lists say so until another one is written, which has what memory has.
    pub(super) fn refute(&mut self, group: u64, expected: Expected) {
        self.groups.get_mut(&group).expect("it was looked at").expected = Some(expected);
        self.unchecked.insert(group, 0);
        self.bad.insert(group);
        self.unfolded.insert(group);
    }

    /// What memory has as what the tag sector of a group says is not there: it is to be written. `order` is the number of the first of
    /// that which no list says, if nothing was sure of it yet.
    pub(super) fn take_back(&mut self, group: u64, order: Option<u64>) {
        let known = self.groups.get_mut(&group).expect("memory has what it says");
        self.lacking -= known.lacking();
        let tag = known.tag.take().map_or(Sums::NONE, |tag| *tag);
        let all = tag.under(known.newer.as_deref().unwrap_or(&Sums::NONE));
        known.newer = Some(Box::new(all));
        self.lacking += known.lacking();
        known.expected = None;
        self.unchecked.remove(&group);
        self.unfolded.insert(group);
        match order {
            Some(order) => self.put_back(group, order),
            None => self.note_unlisted(group),
        }
    }

    /// Nothing says something of a group yet of which this was the number.
    pub(super) fn put_back(&mut self, group: u64, order: u64) {
        let known = self.groups.get_mut(&group).expect("something of it was written");
        let own = known.order.take();
        let first = own.map_or(order, |own| own.min(order));
        own.iter().for_each(|own| _ = self.unlisted.remove(own));
        known.order = Some(first);
        self.unlisted.insert(first, group);
    }

    /// Of more than this number of tag sectors that are to be read back the oldest that a list has are believed, `step` more than
    /// needed.
    pub(super) fn forget_unchecked(&mut self, most: usize, step: usize) {
        if self.unchecked.len() <= most {
            return;
        }
        // What is known not to be there is to be written, and is not believed.
        let is_listed =
            |(of, _): &(&u64, &u64)| self.groups[*of].order.is_none() && !self.bad.contains(*of);
        let listed = self.unchecked.iter().filter(is_listed);
        let mut ages: Vec<(u64, u64)> = listed.map(|(of, age)| (*age, *of)).collect();
        ages.sort_unstable();
        for (_, group) in ages.iter().take(self.unchecked.len() - most + step.min(most)) {
            self.unchecked.remove(group);
            self.groups.get_mut(group).expect("it is to be checked").expected = None;
        }
    }
}

/// A write that may have tag sectors with it.
#[derive(Clone, Debug)]
pub(super) struct Carry {
    pub(super) extent: Extent,
    pub(super) stage: Stage,
    /// The groups whose tag sectors it writes.
    pub(super) groups: Vec<Carried>,
    /// The checksums of its sectors, once they are known.
    pub(super) sums: Vec<u32>,
    /// The memory of the tag sectors, until the command has ended.
    pub(super) buf: Option<BufId>,
}

/// A group whose tag sector is written with its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) group: u64,
    /// The number of the first of what that says and no list does, once it is on its way.
    pub(super) order: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Waiting,
    Inside,
    /// Inside the drive, and what its tag sectors say is known.
    Begun,
    Ended,
    Flushing,
    Durable,
}

impl Carry {
    /// Whether what its tag sectors say is in memory as what they say.
    pub(super) fn has_begun(&self) -> bool {
        self.stage >= Stage::Begun
    }
}
