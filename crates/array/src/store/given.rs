//! What drives are given: copies of the superblock and of the metadata, and flushes.

use std::sync::Arc;

use levelhead_block::{Command, Durability, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Sectors};

use super::{Flush, FlushPart, Store, What, Writing};
use crate::action::{Action, Inscribed};
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::meta::membership::not_present;
use crate::meta::metadata::{Inscription, Metadata};
use crate::meta::superblock::Superblock;
use crate::names::SubId;

impl Store {
    /// Gives every drive that is meant what it is to have next. One that is silent gets it when it answers again, unless it is
    /// needed: what is written at the end, or is on too few drives without it, is waited for.
    pub(super) fn write(&mut self, core: &mut Core, now: Instant, silent: DriveSet) {
        let meant = self.meant(core);
        let away = not_present(&self.content.members);
        let others = meant.without(silent);
        let is_needed = self.phase.is_last() || !core.layout().spec().is_enough(away.or(others));
        let given = if is_needed { meant } else { others };
        let given = self.alone.map_or(given, |alone| DriveSet::EMPTY.with(alone.drive));
        let given = if core.is_held(now) { DriveSet::EMPTY } else { given };
        for drive in given.iter() {
            let holder = &self.holders[drive.as_usize()];
            let is_behind = holder.has.max(holder.unstored) < self.content.generation;
            // A generation is given to those only that it names.
            let is_named = self.content.members[drive.as_usize()].id == core.meta.id(drive);
            let next = match holder.superblock {
                _ if holder.writing.is_some() => continue,
                Some(copy) => self.superblock(core, drive, copy),
                None if is_behind && is_named => self.metadata(core, drive),
                None => continue,
            };
            let writing = next.write(core, now, drive);
            self.holders[drive.as_usize()].writing = Some(writing);
        }
    }

    fn superblock(&self, core: &Core, drive: DriveIdx, copy: usize) -> Next {
        let own = self.own(drive).expect("a drive that is reachable said something of itself");
        let Metadata { array, spec, drive_size, journal, .. } = &*self.content;
        let superblock = Superblock {
            array: *array,
            member: core.meta.id(drive).uuid,
            spec: *spec,
            drive_size: *drive_size,
            logs: journal.map(|kept| kept.logs),
            own: own.clone(),
            read_only: 0,
        };
        Next {
            extent: Extent::new(own.copies()[copy], Sectors::new(1)),
            what: What::Superblock,
            inscribed: Inscribed::Superblock(Box::new(superblock)),
        }
    }

    fn metadata(&self, core: &Core, drive: DriveIdx) -> Next {
        let own = self.own(drive).expect("a drive that is reachable said something of itself");
        let slot = own.slots()[self.holders[drive.as_usize()].next];
        let (metadata, holder) = (Arc::clone(&self.content), core.meta.id(drive));
        Next {
            extent: Extent::new(slot.lba, metadata.sectors()),
            what: What::Metadata(metadata.generation),
            inscribed: Inscribed::Metadata(Inscription { metadata, holder }),
        }
    }
}

/// What a drive is given next.
struct Next {
    extent: Extent,
    what: What,
    inscribed: Inscribed,
}

impl Next {
    pub(super) fn write(self, core: &mut Core, now: Instant, drive: DriveIdx) -> Writing {
        let Self { extent, what, inscribed } = self;
        let into = Place { buf: core.out.acquire(extent.sectors), sector: 0 };
        if core.out.carries_content() {
            core.out.push(Action::Inscribe { into, what: inscribed });
        }
        let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
        let segment = Segment { place: into, sectors: extent.sectors.get() as u32 };
        let command = Command::Write { extent, durability, zero_tail };
        let sub = ask(core, now, drive, command, vec![segment]);
        Writing { sub, buf: into.buf, what }
    }
}

/// All drives that are reachable are flushed.
pub(super) fn flush(core: &mut Core, now: Instant) -> Flush {
    let reachable: Vec<DriveIdx> = core.drives.reachable().iter().collect();
    let ask = |drive| FlushPart { drive, sub: ask(core, now, drive, Command::Flush, Vec::new()) };
    let pending = reachable.into_iter().map(ask).collect();
    Flush { pending, orders: core.tag_orders() }
}

fn ask(
    core: &mut Core,
    now: Instant,
    drive: DriveIdx,
    command: Command,
    segments: Vec<Segment>,
) -> SubId {
    let origin = core.own_origin();
    let what = Enqueue {
        purpose: Purpose::Meta,
        drive,
        command,
        segments: segments.into(),
        origin,
        end: End::First,
        fate: Fate::Certain,
        since: None,
    };
    core.enqueue(now, what)
}
