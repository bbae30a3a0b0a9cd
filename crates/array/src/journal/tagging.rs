//! Tag sectors are written when their drive has had nothing else to do for a while, and before more wait for that than the drive's
//! list has room for. A list is written when transactions are to be over.

use levelhead_block::{BufId, Command, Durability, Effort, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos, Sectors};

use super::placer::Haste;
use super::{Blocked, Journal};
use crate::action::{Action, Inscribed};
use crate::core::copied::What;
use crate::core::{Core, Enqueue, ForComing, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::meta::superblock::Uuid;
use crate::names::SubId;
use crate::tags::ReadTag;
use crate::tags::known::Checked;
use crate::tags::list::{ListSector, Owner, sectors_of};
use crate::tags::listing::Listed;
use crate::tags::sector::TagSector;
use crate::tags::state::Next;

/// A drive that has had nothing else to do for this long gets tag sectors to write: longer than the gaps between the commands of
/// clients that keep it half busy,
const IDLE_AFTER: Nanos = Nanos::from_millis(100);

/// this number of commands at a time,
const IDLE_MAX: usize = 2;

/// and one that clients keep busy one for so many groups whose tag sectors are to be written, where there are no lists.
const PRESSING: usize = 64;

/// The most at a time.
const COMMANDS_MAX: usize = 32;

/// A list is written when this part of a ring, as a divisor, is of transactions that wait for one: they have two sectors each.
const LIST_SHARE: u64 = 32;

/// The least and the most groups that are worth a list.
const LIST_FROM: [u64; 2] = [4, 1_024];

impl Journal {
    /// Writes tag sectors and lists.
    pub(super) fn tag(&mut self, core: &mut Core, now: Instant) {
        if core.tags.is_none() || core.has_failed() || !core.gate.may_write() {
            return;
        }
        if self.placing.drains && core.are_tags_written() {
            return; // The array ends: what is to be read back is on lists.
        }
        let is_read =
            |drive: &DriveIdx| core.tags.as_ref().is_some_and(|tags| !tags.is_unread(*drive));
        let drives: Vec<DriveIdx> = core.drives.reachable().iter().filter(is_read).collect();
        for drive in drives {
            Self::settle_tags(core, drive);
            if self.wants_list(core, drive) {
                self.list(core, now, drive);
            }
            while let Some(next) = self.next_tag(core, now, drive) {
                self.fold(core, now, drive, next);
            }
        }
    }

    /// What has its tag sectors with it is durable.
    pub(super) fn settle_tags(core: &mut Core, drive: DriveIdx) {
        let Some(tags) = &mut core.tags else { return };
        tags.settle(drive);
    }

    /// What has ended with tag sectors is to be flushed.
    pub(super) fn note_tags_ended(&mut self, core: &Core, now: Instant) {
        let Some(tags) = &core.tags else { return };
        let ended = core.drives.reachable();
        let ended = ended.iter().filter(|&drive| tags.has_carries_ended(drive));
        ended.for_each(|drive| self.placing.placers[drive.as_usize()].note_tags(now));
    }

    /// When a drive has been idle for long enough that tag sectors are written, if that is still to come.
    pub(crate) fn tag_at(&self, core: &Core, now: Instant) -> Option<Instant> {
        let tags = core.tags.as_ref().filter(|tags| tags.has_lists())?;
        let drives = core.drives.reachable();
        let waits = |drive: &DriveIdx| {
            tags.unfolded(*drive) + tags.unchecked(*drive) > 0
                && !tags.is_unread(*drive)
                && core.drives.queue_len(*drive) == tags.inside(*drive)
        };
        let at = |drive| tags.busy_at(drive) + IDLE_AFTER;
        drives.iter().filter(waits).map(at).filter(|&at| at > now).min()
    }

    /// Whether the list of a drive is to be written now (TG2).
    fn wants_list(&self, core: &Core, drive: DriveIdx) -> bool {
        let tags = core.tags.as_ref().expect("it has some");
        let unlisted = tags.unlisted(drive);
        let (is_wanted, is_due) = (tags.is_list_wanted(drive), tags.is_list_due(drive));
        if (unlisted == 0 && !is_wanted) || !tags.has_lists() {
            return false;
        }
        let sizes = self.rings.iter().map(super::Ring::size).filter(|&size| size > 0);
        let room = sizes.min().unwrap_or(0) / LIST_SHARE;
        let [least, most] = LIST_FROM;
        if tags.is_full(drive) && !is_due {
            return false; // Tag sectors are written.
        }
        self.is_list_awaited() || is_wanted || unlisted as u64 >= room.clamp(least, most)
    }

    /// Whether transactions that wait for lists are to be over soon.
    fn is_list_awaited(&self) -> bool {
        let is_blocked = matches!(self.requests.blocked, Some(Blocked::Space(_) | Blocked::Intent));
        self.recovery.is_some() || self.placing.drains || is_blocked
    }

    fn list(&self, core: &mut Core, now: Instant, drive: DriveIdx) {
        let tags = core.tags.as_mut().expect("it has some");
        let Some(listed) = tags.new_list(drive, self.transactions.next) else {
            return tags.want_list(drive);
        };
        let (slot, buf) = self.inscribe_list(core, self.owner(drive), &listed);
        let sub = ask(core, now, drive, durable(slot), buf);
        core.tags.as_mut().expect("it has some").begin_list(drive, sub, buf, &listed);
    }

    /// Puts a list into memory; returns where on its drive it goes, and the memory.
    fn inscribe_list(&self, core: &mut Core, owner: Owner, listed: &Listed) -> (Extent, BufId) {
        let sectors = sectors_of(listed.entries.len());
        let slot = Extent::new(self.slot(listed.slot).lba, sectors);
        let buf = core.out.acquire(sectors);
        if core.out.carries_content() {
            let what = ListSector::of(owner, listed.generation, &listed.entries);
            let what = Inscribed::List(what.into());
            core.out.push(Action::Inscribe { into: Place { buf, sector: 0 }, what });
        }
        core.counters.tag_lists += 1;
        (slot, buf)
    }

    /// Writes the list of a lost drive to its copy, which is to be this member; returns whether there is one.
    pub(crate) fn list_copy(
        &self,
        core: &mut Core,
        now: Instant,
        drive: DriveIdx,
        member: Uuid,
    ) -> bool {
        let Some(tags) = core.tags.as_mut().filter(|tags| tags.has_lists()) else { return false };
        let listed = tags.list_of_copy(drive, self.transactions.next);
        let owner = Owner { member, ..self.owner(drive) };
        let (slot, buf) = self.inscribe_list(core, owner, &listed);
        let sectors = slot.sectors.get() as u32;
        let segments = Segment { place: Place { buf, sector: 0 }, sectors }.into();
        let (what, command, bufs) = (What::List, durable(slot), vec![buf]);
        core.ask_coming(now, ForComing { what, command, segments, bufs });
        true
    }

    fn next_tag(&self, core: &Core, now: Instant, drive: DriveIdx) -> Option<Next> {
        let tags = core.tags.as_ref()?;
        let (unfolded, inside) = (tags.unfolded(drive), tags.inside(drive));
        if unfolded + tags.unchecked(drive) == 0 {
            return None;
        }
        let is_idle = core.drives.queue_len(drive) == inside;
        let has_rested = is_idle && tags.busy_at(drive) + IDLE_AFTER <= now;
        let most = if tags.has_lists() {
            let idle = if has_rested { IDLE_MAX } else { 0 };
            match tags.is_full(drive) {
                true if self.is_list_awaited() || tags.is_list_wanted(drive) => COMMANDS_MAX,
                true => idle.max(1),
                false => idle.max(usize::from(tags.has_bad(drive))),
            }
        } else {
            let awaited = core.log.at_risk.is_awaited() || self.recovery.is_some();
            let haste =
                if awaited { Haste::Now } else { self.flush_haste().max(self.place_haste()) };
            match haste {
                Haste::Now | Haste::Hindered => COMMANDS_MAX,
                Haste::Idle if is_idle => IDLE_MAX,
                Haste::Idle => (unfolded / PRESSING).min(COMMANDS_MAX),
            }
        };
        if inside >= most {
            return None;
        }
        let area = core.area();
        let sectors = |group: u64| {
            let tag = area.tag_of(Lba::new(group * tags.sectors())).expect("it has groups");
            tag.covers.sectors.as_usize()
        };
        tags.next(drive, area.count_at(core.arm(drive)), has_rested, sectors)
    }

    /// Writes a tag sector, or reads it to be written.
    fn fold(&self, core: &mut Core, now: Instant, drive: DriveIdx, next: Next) {
        let (Next::Read(group) | Next::Write(group, _)) = next;
        let tags = core.tags.as_ref().expect("it has some");
        let (first, list) = (Lba::new(group * tags.sectors()), tags.durable_list(drive));
        let lba = core.area().tag_of(first).expect("it has groups").lba;
        let extent = Extent::new(lba, Sectors::new(1));
        let (command, buf) = match &next {
            Next::Read(_) => {
                core.counters.tag_reads += 1;
                // What was written with its data is to come from the medium.
                let effort = match tags.is_unchecked(drive, group) {
                    true => Effort::Medium,
                    false => Effort::Full,
                };
                (Command::Read { extent, effort }, core.out.name_buf())
            }
            Next::Write(_, sums) => {
                core.counters.tag_writes += 1;
                let buf = core.out.acquire(extent.sectors);
                if core.out.carries_content() {
                    let what = TagSector {
                        array: core.meta.now().array,
                        drive,
                        group,
                        list,
                        sums: **sums,
                    };
                    let what = Inscribed::Tags(Box::new(what));
                    core.out.push(Action::Inscribe { into: Place { buf, sector: 0 }, what });
                }
                (durable(extent), buf)
            }
        };
        let sub = ask(core, now, drive, command, buf);
        core.tags.as_mut().expect("it has some").begin(drive, sub, next, buf);
    }

    /// A tag sector was read; returns its group if it was written with its data and is not there.
    pub(crate) fn note_checked(
        &mut self,
        core: &mut Core,
        drive: DriveIdx,
        Checked { lost, safe }: Checked,
    ) -> Option<u64> {
        safe.into_iter().for_each(|id| self.note_safe(core, drive, id));
        lost
    }

    /// Reads a tag sector that reads wait for which have not brought it.
    pub(crate) fn read_tag(core: &mut Core, now: Instant, drive: DriveIdx, group: u64) {
        let tags = core.tags.as_ref().expect("it has some");
        let first = Lba::new(group * tags.sectors());
        let lba = core.area().tag_of(first).expect("it has groups").lba;
        let extent = Extent::new(lba, Sectors::new(1));
        core.counters.tag_reads += 1;
        let buf = core.out.name_buf();
        let command = Command::Read { extent, effort: Effort::Full };
        let sub = ask(core, now, drive, command, buf);
        core.tags.as_mut().expect("it has some").begin_tag_read(drive, sub, group);
    }

    /// A command that reads or writes a tag sector or a list has ended. `buf` is what a read filled. Returns the group whose tag
    /// sector was to be read back and is not there.
    pub(crate) fn handle_tagged(
        &mut self,
        core: &mut Core,
        now: Instant,
        drive: DriveIdx,
        ended: &Tagged,
    ) -> Option<u64> {
        let &Tagged { sub, buf, is_good } = ended;
        if self.is_of_list(sub) {
            let buf = buf.expect("a read fills one");
            self.look_at_list(core, now, sub, buf, is_good);
            return None;
        }
        let tags = core.tags.as_mut()?;
        let Some(group) = tags.read_of(drive, sub) else {
            let ended = tags.end_list(drive, sub);
            let Some((buf, safe)) = ended.or_else(|| tags.end_write(drive, sub)) else {
                buf.into_iter().for_each(|buf| core.out.release(buf));
                return None;
            };
            core.out.release(buf);
            safe.into_iter().for_each(|id| self.note_safe(core, drive, id));
            return None;
        };
        let buf = buf.expect("a read fills one");
        let mut lost = None;
        if is_good && core.out.carries_content() {
            let of = vec![ReadTag { group, place: Place { buf, sector: 0 } }];
            core.out.push(Action::Tags { sub, drive, of });
        } else {
            let said = tags.said_before(drive, group);
            let checked = tags.end_tag_read(drive, sub, said.filter(|_| is_good));
            lost = self.note_checked(core, drive, checked);
        }
        core.out.release(buf);
        lost
    }
}

/// The end of such a command.
pub(crate) struct Tagged {
    pub(crate) sub: SubId,
    pub(crate) buf: Option<BufId>,
    pub(crate) is_good: bool,
}

fn durable(extent: Extent) -> Command {
    let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
    Command::Write { extent, durability, zero_tail }
}

fn ask(core: &mut Core, now: Instant, drive: DriveIdx, command: Command, buf: BufId) -> SubId {
    let sectors = command.extent().expect("it is about sectors").sectors.get() as u32;
    let what = Enqueue {
        purpose: Purpose::Tag,
        drive,
        command,
        segments: Segment { place: Place { buf, sector: 0 }, sectors }.into(),
        origin: core.own_origin(),
        end: End::Tail,
        fate: Fate::Certain,
        since: None,
    };
    core.enqueue(now, what)
}
