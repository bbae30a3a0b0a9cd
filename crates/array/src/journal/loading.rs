//! What comes first of all where sectors have checksums: the list of every drive is read, of what its tag sectors did not have yet
//! when the array ended or was cut off.

use std::collections::BTreeMap;

use levelhead_block::{BufId, Command, Effort, Place, Segment};
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Sectors};

use super::Journal;
use crate::action::Action;
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::names::SubId;
use crate::tags::list::{Entry, ListSector, Owner};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Loading {
    /// Whether nothing else may begin before it has ended: the array has just begun.
    is_first: bool,
    has_begun: bool,
    reads: BTreeMap<SubId, Read>,
    /// What is known of each drive whose list has not been read.
    drives: BTreeMap<DriveIdx, Heads>,
}

/// The first sectors of a drive's slots.
#[derive(Clone, Debug, Default)]
struct Heads {
    /// Those that were read, each with its slot.
    known: Vec<(usize, ListSector)>,
    /// How many are still to come.
    left: usize,
    /// The newest list, if not all of it was given.
    part: Option<(usize, Vec<ListSector>)>,
}

/// What is read.
#[derive(Clone, Copy, Debug)]
struct Read {
    drive: DriveIdx,
    slot: usize,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Head,
    All,
}

impl Journal {
    /// The list of a drive that has come back is read, if memory does not have it.
    pub(crate) fn read_list_of(&mut self, core: &mut Core, now: Instant, drive: DriveIdx) {
        if core.tags.as_ref().is_none_or(|tags| !tags.is_unread(drive)) {
            return;
        }
        self.loading.get_or_insert_with(|| Loading { has_begun: true, ..Loading::default() });
        self.read_heads(core, now, drive);
    }

    fn read_heads(&mut self, core: &mut Core, now: Instant, drive: DriveIdx) {
        self.loading_mut().drives.insert(drive, Heads { left: 2, ..Heads::default() });
        for slot in 0..2 {
            let head = Extent::new(self.slot(slot).lba, Sectors::new(1));
            self.read_list(core, now, Read { drive, slot, what: What::Head }, head);
        }
    }

    /// Moves the reading on; returns whether nothing has to wait for it any more.
    pub(super) fn load(&mut self, core: &mut Core, now: Instant) -> bool {
        let Some(loading) = &mut self.loading else { return true };
        if core.has_failed() {
            self.loading = None;
            return true;
        }
        if !loading.has_begun {
            loading.has_begun = true;
            let data = self.form.spec.data_drives().and(core.drives.reachable());
            for drive in data.iter() {
                self.read_heads(core, now, drive);
            }
        }
        if self.loading_mut().drives.is_empty() {
            self.loading = None;
        }
        self.loading.as_ref().is_none_or(|loading| !loading.is_first)
    }

    fn loading_mut(&mut self) -> &mut Loading {
        self.loading.as_mut().expect("lists are being read")
    }

    /// One of the two slots of a drive's lists.
    pub(super) fn slot(&self, slot: usize) -> Extent {
        let all = self.form.lists.expect("the array has lists");
        let each = Sectors::new(all.sectors.get() / 2);
        Extent::new(all.lba + each * slot as u64, each)
    }

    fn read_list(&mut self, core: &mut Core, now: Instant, read: Read, extent: Extent) {
        let (buf, sectors) = (core.out.name_buf(), extent.sectors.get() as u32);
        let what = Enqueue {
            purpose: Purpose::Tag,
            drive: read.drive,
            command: Command::Read { extent, effort: Effort::Full },
            segments: Segment { place: Place { buf, sector: 0 }, sectors }.into(),
            origin: core.own_origin(),
            end: End::Tail,
            fate: Fate::Certain,
            since: None,
        };
        let sub = core.enqueue(now, what);
        self.loading_mut().reads.insert(sub, read);
    }

    /// A command has ended: whether it was to read a list.
    pub(super) fn is_of_list(&self, sub: SubId) -> bool {
        self.loading.as_ref().is_some_and(|loading| loading.reads.contains_key(&sub))
    }

    /// What a read of a list has brought, which is nothing if it has failed.
    pub(crate) fn handle_lists(
        &mut self,
        core: &mut Core,
        now: Instant,
        sub: SubId,
        found: Vec<Option<ListSector>>,
    ) {
        let Some(loading) = &mut self.loading else { return };
        let Some(Read { drive, slot, what }) = loading.reads.remove(&sub) else { return };
        let owner = self.owner(drive);
        let is_own = |sector: &ListSector| sector.owner == owner;
        let own: Vec<ListSector> = found.into_iter().flatten().filter(is_own).collect();
        let heads = self.loading_mut().drives.get_mut(&drive).expect("it is being read");
        if what == What::Head {
            heads.left -= 1;
            heads.known.extend(own.into_iter().map(|head| (slot, head)));
            // The newest one is the last.
            heads.known.sort_by_key(|(_, head)| head.generation);
            return self.read_newest(core, now, drive);
        }
        let (_, head) = heads.known.last().expect("its head was read").clone();
        let part: Vec<ListSector> =
            own.into_iter().filter(|of| of.generation == head.generation).collect();
        let is_whole = (0..head.sectors).eq(part.iter().map(|of| of.index));
        heads.known.pop();
        if is_whole {
            // What there is of a newer one is newer.
            let newer = heads.part.take().into_iter().flat_map(|(_, newer)| newer);
            let list: Vec<ListSector> = part.into_iter().chain(newer).collect();
            return self.note_list(core, drive, slot, &list);
        }
        heads.part.get_or_insert((slot, part));
        self.read_newest(core, now, drive);
    }

    /// Reads the newest list of a drive that is not known to have gaps; without any, only what there is of the newest one counts.
    fn read_newest(&mut self, core: &mut Core, now: Instant, drive: DriveIdx) {
        let heads = &self.loading_mut().drives[&drive];
        if heads.left > 0 {
            return;
        }
        let Some((slot, head)) = heads.known.last() else {
            let (slot, part) = heads.part.clone().unwrap_or((1, Vec::new()));
            return self.note_list(core, drive, slot, &part);
        };
        let (slot, sectors) = (*slot, Sectors::new(head.sectors.into()));
        let generation = head.generation;
        core.tags.as_mut().expect("it has lists").note_list(drive, generation);
        let extent = self.slot(slot);
        let extent = Extent::new(extent.lba, sectors.min(extent.sectors));
        self.read_list(core, now, Read { drive, slot, what: What::All }, extent);
    }

    fn note_list(&mut self, core: &mut Core, drive: DriveIdx, slot: usize, list: &[ListSector]) {
        self.loading_mut().drives.remove(&drive);
        let tags = core.tags.as_mut().expect("it has lists");
        let generation = list.first().map_or(0, |first| first.generation);
        let size = core.place.area().size();
        let entries = list.iter().flat_map(|sector| sector.entries.iter().copied());
        let entries: Vec<Entry> = entries.filter(|entry| entry.lba < Lba::ZERO + size).collect();
        tags.load(drive, generation, slot, &entries);
    }

    /// Whose lists a drive has.
    pub(super) fn owner(&self, drive: DriveIdx) -> Owner {
        let name = self.rings[drive.as_usize()].name;
        Owner { array: name.array, member: name.member.uuid }
    }

    /// The array does without a drive: nothing of it is read any more.
    pub(super) fn lose_list(&mut self, drive: DriveIdx) {
        if let Some(loading) = &mut self.loading {
            loading.reads.retain(|_, read| read.drive != drive);
            loading.drives.remove(&drive);
        }
    }

    /// Has what a read of a list has brought looked at.
    pub(super) fn look_at_list(
        &mut self,
        core: &mut Core,
        now: Instant,
        sub: SubId,
        buf: BufId,
        is_good: bool,
    ) {
        match is_good {
            true => core.out.push(Action::Lists { sub, buf }),
            false => self.handle_lists(core, now, sub, Vec::new()),
        }
        core.out.release(buf);
    }
}

impl Loading {
    /// What an array begins with.
    pub(super) fn first() -> Self {
        Self { is_first: true, ..Self::default() }
    }

    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }
}
