//! The lists of drives: what is to be on the next one, and what the one says that lies on a drive when a run begins.

use std::collections::BTreeSet;

use levelhead_block::BufId;
use levelhead_units::{DriveIdx, DriveSet, Lba, Sectors};

use super::known::{Expected, Group, List, OnDrive, UnderWay, Unsaid};
use super::list::Entry;
use super::sector::{NO_TAG, SUMS, Sums};
use super::state::Tags;
use crate::names::SubId;

/// What a new list is to say.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) generation: u64,
    pub(crate) slot: usize,
    pub(crate) entries: Vec<Entry>,
    groups: Vec<u64>,
    /// Groups that the one before has.
    left_out: Vec<u64>,
}

impl Listed {
    fn say(&mut self, first: Lba, group: u64, unsaid: &Unsaid) {
        let entry = |(at, since, sum): (usize, u64, u32)| {
            let lba = first + Sectors::new(at as u64);
            Entry { lba, is_tag: false, since: since.min(self.generation), sum }
        };
        self.entries.extend(unsaid.iter().map(entry));
        self.groups.push(group);
    }

    /// The list says what the tag sector of a group should say, if that is to be read back.
    fn expect(&mut self, first: Lba, known: &Group) {
        self.entries.extend(known.expected.map(|Expected { since, digest }| {
            let since = since.min(self.generation);
            Entry { lba: first, is_tag: true, since, sum: digest }
        }));
    }

    /// Where room is left the list says what does not count, too: no tag sector says anything of it (TG9).
    fn hint(&mut self, tags: &Tags, drive: DriveIdx, most: usize) {
        let of = &tags.drives[drive.as_usize()];
        let entries = of.hinted.iter().flat_map(|&group| {
            let known = &of.groups[&group];
            let hints = known.hints.iter().flat_map(|hints| hints.iter());
            let left = hints.filter(|&(at, _)| known.hint(at).is_some());
            let first = tags.first_of(group);
            left.map(move |(at, sum)| {
                let lba = first + Sectors::new(at as u64);
                Entry { lba, is_tag: false, since: 0, sum }
            })
        });
        let room = most.saturating_sub(self.entries.len());
        self.entries.extend(entries.take(room));
    }
}

impl Tags {
    /// The list of a drive said this when this run began.
    pub(crate) fn load(
        &mut self,
        drive: DriveIdx,
        generation: u64,
        slot: usize,
        entries: &[Entry],
    ) {
        for &Entry { lba, is_tag, since, sum } in entries {
            let (group, offset) = self.find(lba);
            let of = &mut self.drives[drive.as_usize()];
            let known = of.groups.entry(group).or_default();
            if is_tag {
                let expected = Expected { since, digest: sum };
                match known.tag.as_ref().map(|tag| expected.is_met(tag, known.tag_list)) {
                    None => {
                        known.expected = Some(expected);
                        of.unchecked.insert(group, 0);
                    }
                    // It was read before the list was.
                    Some(false) => {
                        (known.tag, known.tag_list) = (Some(Box::new(NO_TAG.0)), NO_TAG.1);
                        of.refute(group, expected);
                    }
                    Some(true) => {}
                }
                continue;
            }
            of.lacking -= known.lacking();
            if known.tag.is_some() {
                // It was read before the list was.
                if since <= known.tag_list {
                    of.lacking += known.lacking();
                    of.note_hint(group, offset, sum);
                    continue;
                }
                if known.newer.as_ref().is_none_or(|newer| newer.get(offset).is_none()) {
                    let newer = known.newer.get_or_insert_with(|| Box::new(Sums::NONE));
                    newer.set(offset, sum);
                    known.is_listed = true;
                    of.unfolded.insert(group);
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
        // One that was seen and not given might be given later.
        list.is_due |= generation < list.newest;
        list.newest = list.newest.max(generation);
        (list.slot, list.durable) = (1 - slot, generation);
        list.is_unread = false;
    }

    /// A list of a drive has been seen with this number: the next one has a higher one.
    pub(crate) fn note_list(&mut self, drive: DriveIdx, generation: u64) {
        let list = &mut self.drives[drive.as_usize()].list;
        list.newest = list.newest.max(generation);
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

    /// A list was to be written and cannot be yet: it is as soon as it may.
    pub(crate) fn want_list(&mut self, drive: DriveIdx) {
        let of = &mut self.drives[drive.as_usize()];
        let is_held = of.has_carries_before();
        of.list.is_wanted |= is_held;
        let is_coming_free = !of.folds.is_empty() || !of.carries.is_empty();
        of.list.has_no_room |= !is_held && of.list.under_way.is_none() && is_coming_free;
    }

    /// Whether another list comes before tag sectors are written.
    pub(crate) fn is_list_due(&self, drive: DriveIdx) -> bool {
        self.drives[drive.as_usize()].list.is_due
    }

    /// What is remembered of what tag sectors lack is on no list of the drive: it is a copy of the one before.
    pub(crate) fn relist(&mut self, drive: DriveIdx) {
        self.give_up_carries(drive);
        let of = &mut self.drives[drive.as_usize()];
        of.unfolded.clone().into_iter().for_each(|group| of.note_unlisted(group));
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.drives.iter().all(|of| of.oldest() == of.next)
    }

    /// The number of the newest list of a drive that is durable (TG6).
    pub(crate) fn durable_list(&self, drive: DriveIdx) -> u64 {
        self.drives[drive.as_usize()].list.durable
    }

    /// What a new list of a drive is to say, if it has room for it: all that the one before says and no tag sector does, and of what
    /// neither says as much as there is room for. Its number is `after` at least.
    pub(crate) fn new_list(&self, drive: DriveIdx, after: u64) -> Option<Listed> {
        let of = &self.drives[drive.as_usize()];
        let has_news = !of.unlisted.is_empty() || of.list.is_due;
        let is_held = of.list.under_way.is_some() || of.list.has_no_room || of.has_carries_before();
        if is_held || !has_news || self.list_max == 0 {
            return None;
        }
        let mut listed = Listed {
            generation: after.max(of.list.newest.saturating_add(1)),
            slot: of.list.slot,
            entries: Vec::new(),
            groups: Vec::new(),
            left_out: Vec::new(),
        };
        // What is on its way into a tag sector is not there yet.
        let folding = of.on_their_way();
        for &group in folding.iter().chain(of.unfolded.difference(&folding)) {
            let known = &of.groups[&group];
            if folding.contains(&group) || known.is_listed || known.loaded.is_some() {
                let unsaid = known.unsaid(folding.contains(&group));
                let count = unsaid.sums.count() + usize::from(known.expected.is_some());
                if listed.entries.len() + count > self.list_max {
                    if !of.list.is_due {
                        return None;
                    }
                    // What has no room on the first one has on a later one, once tag sectors have been written.
                    listed.left_out.push(group);
                    continue;
                }
                listed.say(self.first_of(group), group, &unsaid);
                listed.expect(self.first_of(group), known);
            }
        }
        let said: BTreeSet<u64> = listed.groups.iter().copied().collect();
        let is_old = |(group, _): &(&u64, &u64)| {
            let is_news = of.groups[*group].order.is_some() && !of.bad.contains(*group);
            !is_news && !folding.contains(*group) && !said.contains(*group)
        };
        let room = self.list_max.saturating_sub(listed.entries.len());
        for (group, _) in of.unchecked.iter().filter(is_old).take(room) {
            listed.expect(self.first_of(*group), &of.groups[group]);
        }
        let said: BTreeSet<u64> = listed.groups.iter().chain(&listed.left_out).copied().collect();
        let is_news = |group: &&u64| !said.contains(group) && !of.bad.contains(group);
        for group in of.unlisted.values().filter(is_news) {
            let known = &of.groups[group];
            let unsaid = known.unsaid(false);
            if listed.entries.len() + unsaid.sums.count() + 1 > self.list_max {
                break;
            }
            listed.say(self.first_of(*group), *group, &unsaid);
            listed.expect(self.first_of(*group), known);
        }
        listed.hint(self, drive, self.list_max);
        // Without news the same list would be written again and again.
        let is_news = |group: &u64| of.groups[group].order.is_some() && !of.bad.contains(group);
        (of.list.is_due || listed.groups.iter().any(is_news)).then_some(listed)
    }

    /// What the list of a lost drive's copy is to say, which is written before the copy has the drive's place. What has no room there
    /// is on the next one.
    pub(crate) fn list_of_copy(&mut self, drive: DriveIdx, after: u64) -> Listed {
        let of = &self.drives[drive.as_usize()];
        let mut listed = Listed {
            generation: after.max(of.list.newest.saturating_add(1)),
            // The next one goes to the same slot of whichever drive has the place then.
            slot: 1 - of.list.slot,
            entries: Vec::new(),
            groups: Vec::new(),
            left_out: Vec::new(),
        };
        for &group in &of.unfolded {
            let unsaid = of.groups[&group].unsaid(false);
            match listed.entries.len() + unsaid.sums.count() > self.list_max {
                true => listed.left_out.push(group),
                false => listed.say(self.first_of(group), group, &unsaid),
            }
        }
        let room = self.list_max.saturating_sub(listed.entries.len());
        for (group, _) in of.unchecked.iter().take(room) {
            listed.expect(self.first_of(*group), &of.groups[group]);
        }
        listed.hint(self, drive, self.list_max);
        let list = &mut self.drives[drive.as_usize()].list;
        (list.newest, list.durable) = (listed.generation, listed.generation);
        listed
    }

    /// A list is being written.
    pub(crate) fn begin_list(&mut self, drive: DriveIdx, sub: SubId, buf: BufId, listed: &Listed) {
        let of = &mut self.drives[drive.as_usize()];
        let (mut order, mut safe) = (None, Vec::new());
        let folding = of.on_their_way();
        for group in &listed.groups {
            let known = of.groups.get_mut(group).expect("it was listed");
            known.is_listed = !folding.contains(group) || known.lacks();
            // What is being computed is not on it, and where the tag sector is not given it does not count (TG6).
            if known.pending == 0
                && !of.bad.contains(group)
                && let Some(first) = known.order.take()
            {
                of.unlisted.remove(&first);
                order = Some(order.map_or(first, |order: u64| order.min(first)));
                safe.append(&mut known.waiting);
            }
        }
        for &group in &listed.left_out {
            of.groups.get_mut(&group).expect("it lacks something").is_listed = false;
            of.note_unlisted(group);
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
        let newest = of.list.newest.saturating_add(1);
        let lost = &mut self.drives[drive.as_usize()];
        lost.next = of.next;
        let List { durable, slot, is_unread, ref under_way, is_due, .. } = of.list;
        let is_due = is_due || under_way.is_some();
        lost.list = List { newest, durable, slot, is_unread, is_due, ..List::default() };
        for &group in &of.hinted {
            lost.groups.entry(group).or_default().hints = of.groups[&group].hints.clone();
        }
        lost.hinted = of.hinted.clone();
        for (&group, &age) in &of.unchecked {
            let Some(expected) = of.groups[&group].expected else { continue };
            let since = expected.since.min(newest);
            lost.groups.entry(group).or_default().expected = Some(Expected { since, ..expected });
            lost.unchecked.insert(group, age);
        }
        let folding = of.on_their_way();
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
        let carried = of.carries.into_values().filter_map(|carry| carry.buf);
        of.folds.into_values().map(|fold| fold.buf).chain(list).chain(carried).collect()
    }

    /// Another drive comes into the place of a lost one: nothing is known of it.
    pub(crate) fn forget(&mut self, drive: DriveIdx) {
        let of = &mut self.drives[drive.as_usize()];
        // Numbers go on: tag sectors of the drive before it may be there, if it is the same one.
        let list = List { newest: of.list.newest, ..List::default() };
        *of = OnDrive { next: of.next, list, ..OnDrive::default() };
        self.used.retain(|&(_, of, _)| of != drive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Groups;

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
