//! Tag sectors that are written with their data, by one command (TG8): long writes that the journal has announced.
//!
//! ```text
//!   in the drive's queue --> inside the drive --> ended --> being flushed --> to be read back --> as it should be
//!        |                      from here on what memory has       |
//!        +-- no list begins     is on its way into the tag sector  +-- durable
//! ```

use levelhead_block::BufId;
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use super::known::{Carried, Carry, Checked, Expected, Group, Stage};
use super::sector::{SUMS, Sums};
use super::state::Tags;
use crate::names::SubId;
use crate::shape::{Area, TagPlace};

/// The most tag sectors of a drive that are to be read back: what was written before the last GiB or two is believed.
const UNCHECKED_MAX: usize = 8_192;

/// A tag sector that goes to a drive with its data.
#[derive(Clone, Debug)]
pub(crate) struct Going {
    pub(crate) tag: TagPlace,
    /// What is known of its group beside what the command writes.
    pub(crate) sums: Sums,
}

/// What the end of a command has made of what it had with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carriage {
    /// Memory that nothing needs any more.
    pub(crate) buf: Option<BufId>,
    /// The checksums of its sectors, if they are known, of those of which no tag sector was with it.
    pub(crate) sums: Vec<(Lba, u32)>,
}

impl Tags {
    /// Whether the tag sector of a group may be written with its data: nothing else writes it, and no list says anything
    /// meanwhile.
    pub(crate) fn may_carry(&self, drive: DriveIdx, group: u64) -> bool {
        let of = &self.drives[drive.as_usize()];
        let is_listing = of.list.under_way.is_some() || of.list.is_due || of.list.is_unread;
        let is_busy = of.groups.get(&group).is_some_and(|known| known.is_busy);
        let on_their_way: usize = of.carries.values().map(|carry| carry.groups.len()).sum();
        // All of them are on a list that is written meanwhile.
        let has_room = of.lacking + (on_their_way + 1) * SUMS <= self.list_max / 2;
        // More are only while no list can be written.
        let is_checked = of.unchecked.len() < 2 * UNCHECKED_MAX;
        self.has_lists() && !is_listing && !is_busy && has_room && is_checked
    }

    /// Whether the tag sectors of groups may be held for commands that wait: not before a list that something waits for.
    pub(crate) fn may_hold(&self, drive: DriveIdx) -> bool {
        !self.drives[drive.as_usize()].list.is_wanted
    }

    /// An announced write of these sectors waits in its drive's queue, which has all data of these groups.
    pub(crate) fn announce(&mut self, drive: DriveIdx, sub: SubId, extent: Extent, groups: &[u64]) {
        for &group in groups {
            self.group_mut(drive, group).is_busy = true;
        }
        let groups = groups.iter().map(|&group| Carried { group, order: u64::MAX }).collect();
        let (sums, buf) = (Vec::new(), None);
        let carry = Carry { extent, stage: Stage::Waiting, groups, sums, buf };
        self.drives[drive.as_usize()].carries.insert(sub, carry);
    }

    /// An announced write goes nowhere.
    pub(crate) fn withdraw_carry(&mut self, drive: DriveIdx, sub: SubId) {
        let Some(carry) = self.drives[drive.as_usize()].carries.remove(&sub) else { return };
        self.drives[drive.as_usize()].list.has_no_room = false;
        for Carried { group, .. } in carry.groups {
            self.group_mut(drive, group).is_busy = false;
        }
    }

    /// A write goes out to its drive: the tag sectors that go with it, in order, if it was announced. If it may take in what lies beside
    /// it, these are also one before its first sector, and one behind its last that ends the area.
    pub(crate) fn send_with(
        &mut self,
        area: &Area,
        drive: DriveIdx,
        sub: SubId,
        may_widen: bool,
    ) -> Option<Vec<Going>> {
        let carry = self.drives[drive.as_usize()].carries.get(&sub)?;
        let extent = carry.extent;
        let mut groups: Vec<u64> = carry.groups.iter().map(|carried| carried.group).collect();
        let there = area.on_drive(extent);
        for group in self.groups_of(extent) {
            let tag = area.tag_of(self.first_of(group).max(extent.lba)).expect("it has groups");
            // Of a stream what follows has the tag sector before it with it.
            let is_last = tag.lba == there.end() && tag.covers.end() == extent.end();
            let is_beside = tag.lba + Sectors::new(1) == there.lba || is_last;
            let may = may_widen && is_beside && self.may_carry(drive, group);
            if may && self.is_complete(drive, &tag, extent) {
                groups.push(group);
            }
        }
        groups.sort_unstable();
        let of = &mut self.drives[drive.as_usize()];
        for group in &groups {
            of.groups.entry(*group).or_default().is_busy = true;
        }
        let carry = of.carries.get_mut(&sub).expect("it was there");
        let carried = groups.iter().map(|&group| Carried { group, order: u64::MAX });
        (carry.groups, carry.stage) = (carried.collect(), Stage::Inside);
        let going = |&group: &u64| {
            let tag = area.tag_of(self.first_of(group).max(extent.lba)).expect("it has groups");
            let mut sums = Sums::NONE;
            for lba in tag.covers.iter().filter(|&lba| !extent.contains(lba)) {
                let sum = self.coming(drive, lba).expect("it is complete");
                sums.set(self.find(lba).1, sum);
            }
            Going { tag, sums }
        };
        Some(groups.iter().map(going).collect())
    }

    /// Whether memory has the checksums of all sectors of a group but these.
    fn is_complete(&self, drive: DriveIdx, tag: &TagPlace, but: Extent) -> bool {
        let is_pending = |known: &Group| known.pending != 0;
        let of = &self.drives[drive.as_usize()];
        let mut others = tag.covers.iter().filter(|&lba| !but.contains(lba));
        !of.groups.get(&tag.group).is_some_and(is_pending)
            && others.all(|lba| self.coming(drive, lba).is_some())
    }

    /// The checksum of a sector when all that is inside the drive has ended.
    fn coming(&self, drive: DriveIdx, lba: Lba) -> Option<u32> {
        let mut inside = self.drives[drive.as_usize()].carries.values();
        match inside.find(|carry| carry.stage < Stage::Ended && carry.extent.contains(lba)) {
            Some(carry) => carry.sums.get((lba - carry.extent.lba).get() as usize).copied(),
            None => self.get(drive, lba),
        }
    }

    /// The checksums of an announced write that goes out to its drive: what goes with it is on its way into the tag sectors. Returns
    /// whether anything waits for that still.
    pub(crate) fn begin_carry(
        &mut self,
        drive: DriveIdx,
        sub: SubId,
        buf: Option<BufId>,
        sums: Vec<u32>,
        going: &[Going],
    ) -> bool {
        let data = self.groups.data().get();
        let of = &mut self.drives[drive.as_usize()];
        // The drive may have been lost since.
        let Some(mut carry) = of.carries.remove(&sub) else { return false };
        (carry.stage, carry.buf) = (Stage::Begun, buf);
        let extent = carry.extent;
        for (carried, Going { tag, sums: others }) in carry.groups.iter_mut().zip(going) {
            let known = of.groups.entry(tag.group).or_default();
            debug_assert_eq!(known.pending, 0, "what is being computed is in no tag sector");
            let mut all = *others;
            for (lba, sum) in extent.iter().zip(&sums).filter(|(lba, _)| tag.covers.contains(*lba))
            {
                all.set((lba.get() % data) as usize, *sum);
            }
            carried.order = match known.order.take() {
                Some(order) => {
                    of.unlisted.remove(&order);
                    order
                }
                None => {
                    of.next += 1;
                    of.next - 1
                }
            };
            of.set_tag(tag.group, Box::new(all));
        }
        carry.sums = sums;
        of.carries.insert(sub, carry);
        true
    }

    /// An announced write has ended well. If it is not durable, it is after a flush that begins from now on.
    pub(crate) fn end_carry(
        &mut self,
        drive: DriveIdx,
        sub: SubId,
        is_durable: bool,
    ) -> Option<Carriage> {
        let of = &mut self.drives[drive.as_usize()];
        let carry = of.carries.get_mut(&sub)?;
        if !carry.has_begun() {
            self.withdraw_carry(drive, sub);
            return None;
        }
        carry.stage = if is_durable { Stage::Durable } else { Stage::Ended };
        let (extent, sums, buf) = (carry.extent, std::mem::take(&mut carry.sums), carry.buf.take());
        if carry.groups.is_empty() {
            of.carries.remove(&sub);
        }
        let on_their_way = of.on_their_way();
        let is_left = |(lba, sum): &(Lba, u32)| {
            !on_their_way.contains(&self.find(*lba).0) || self.get(drive, *lba) != Some(*sum)
        };
        let sums = extent.iter().zip(sums).filter(is_left).collect();
        Some(Carriage { buf, sums })
    }

    /// Another one decides when what an announced write has put in place is safe: its tag sectors are written again.
    pub(crate) fn give_up_carry(&mut self, drive: DriveIdx, sub: SubId) {
        let of = &mut self.drives[drive.as_usize()];
        let Some(carry) = of.carries.remove(&sub) else { return };
        of.list.has_no_room = false;
        for Carried { group, order } in carry.groups {
            let known = of.groups.get_mut(&group).expect("its tag sector was with it");
            known.is_busy = false;
            known.waiting.append(&mut known.said);
            of.take_back(group, Some(order));
        }
    }

    /// All announced writes that have ended are such.
    pub(super) fn give_up_carries(&mut self, drive: DriveIdx) {
        let carries = self.drives[drive.as_usize()].carries.iter();
        let ended = carries.filter(|(_, carry)| carry.stage >= Stage::Ended).map(|(sub, _)| *sub);
        let ended: Vec<SubId> = ended.collect();
        ended.into_iter().for_each(|sub| self.give_up_carry(drive, sub));
    }

    /// Whether a flush of a drive would make tag sectors safe.
    pub(crate) fn has_carries_ended(&self, drive: DriveIdx) -> bool {
        let mut carries = self.drives[drive.as_usize()].carries.values();
        carries.any(|carry| carry.stage == Stage::Ended)
    }

    /// A flush of a drive begins.
    pub(crate) fn begin_flush(&mut self, drive: DriveIdx) {
        let carries = self.drives[drive.as_usize()].carries.values_mut();
        let ended = carries.filter(|carry| carry.stage == Stage::Ended);
        ended.for_each(|carry| carry.stage = Stage::Flushing);
    }

    /// It has ended.
    pub(crate) fn end_flush(&mut self, drive: DriveIdx) {
        let carries = self.drives[drive.as_usize()].carries.values_mut();
        let flushed = carries.filter(|carry| carry.stage == Stage::Flushing);
        flushed.for_each(|carry| carry.stage = Stage::Durable);
    }

    /// What is durable with its tag sectors is to be read back: until then, or until a list says what the tag sectors should say,
    /// nothing counts as safe.
    pub(crate) fn settle(&mut self, drive: DriveIdx) {
        let of = &mut self.drives[drive.as_usize()];
        let durable = of.carries.extract_if(.., |_, carry| carry.stage == Stage::Durable);
        let groups: Vec<Carried> = durable.flat_map(|(_, carry)| carry.groups).collect();
        if groups.is_empty() {
            return;
        }
        of.list.has_no_room = false;
        for Carried { group, order } in groups {
            let of = &mut self.drives[drive.as_usize()];
            let known = of.groups.get_mut(&group).expect("its tag sector was with it");
            let tag = known.tag.as_deref().expect("memory has what it says");
            known.expected = Some(Expected { since: u64::MAX, digest: tag.digest() });
            known.is_busy = false;
            known.waiting.append(&mut known.said);
            of.put_back(group, order);
            of.bad.remove(&group);
            self.note_used(drive, group);
            let of = &mut self.drives[drive.as_usize()];
            of.unchecked.insert(group, of.groups[&group].used);
        }
        self.drives[drive.as_usize()].forget_unchecked(UNCHECKED_MAX, UNCHECKED_MAX / 8);
        self.forget_oldest();
    }

    /// The sectors of a group.
    pub(crate) fn covers(&self, area: &Area, group: u64) -> Extent {
        area.tag_of(self.first_of(group)).expect("it has groups").covers
    }

    /// Whether the tag sector of a group is to be read back.
    pub(crate) fn is_unchecked(&self, drive: DriveIdx, group: u64) -> bool {
        self.drives[drive.as_usize()].unchecked.contains_key(&group)
    }

    /// How many tag sectors of a drive are to be read back.
    pub(crate) fn unchecked(&self, drive: DriveIdx) -> usize {
        self.drives[drive.as_usize()].unchecked.len()
    }

    /// A tag sector was read back, and says this. If it is not what was written, a command was lost that had the data as well: what
    /// memory has is what they should be.
    pub(super) fn check(&mut self, drive: DriveIdx, group: u64, sums: Sums, list: u64) -> Checked {
        let of = &mut self.drives[drive.as_usize()];
        let known = of.groups.get_mut(&group).expect("it is to be checked");
        if known.tag.is_some() && of.bad.contains(&group) {
            return Checked::NOTHING; // Another read has brought it meanwhile, and it was found then.
        }
        if known.tag.is_none() {
            let is_there = self.note_tag(drive, group, sums, list);
            return Checked { lost: (!is_there).then_some(group), safe: Vec::new() };
        }
        of.unchecked.remove(&group);
        let is_there = known.expected.take().is_some_and(|expected| expected.is_met(&sums, list));
        let mut safe = Vec::new();
        if !is_there {
            if list == u64::MAX {
                of.bad.insert(group);
            }
            of.take_back(group, None);
        } else if !known.lacks() && known.pending == 0 {
            safe.append(&mut known.waiting);
            known.order.take().iter().for_each(|order| _ = of.unlisted.remove(order));
            safe.extend(of.take_safe());
        }
        self.note_used(drive, group);
        self.forget_oldest();
        Checked { lost: (!is_there).then_some(group), safe }
    }
}
