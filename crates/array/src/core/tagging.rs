//! What the heart of the array does for the checksums of sectors: which tag sectors a read brings, what its sectors are compared
//! with, and what is remembered of a write.

use levelhead_block::{BufId, Command, Durability, Outcome, Place, Segment};
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use super::geometry::Geometry;
use super::{Core, Purpose, Sub};
use crate::action::{Action, part_of};
use crate::log::contents::Stored;
use crate::names::SubId;
use crate::shape::Cell;
use crate::tags::carried::{Carriage, Going};
use crate::tags::sector::{Sums, TagSector};
use crate::tags::state::Tags;
use crate::tags::{ReadTag, TagAlong};

impl Geometry {
    /// A sector of the group whose tag sector a command writes, if it writes one.
    pub(super) fn tagged_by(&self, sub: &Sub) -> Option<Extent> {
        let extent = sub.command.extent().filter(|_| sub.command.is_write())?;
        let is_inside = |run: Extent| run.contains(extent.lba);
        let is_tag = sub.purpose == Purpose::Tag && self.area().runs().any(is_inside);
        let one = Sectors::new(1);
        // It goes with the sector before it.
        let next = self.area().count_at(extent.lba) - Lba::ZERO;
        is_tag.then(|| Extent::new(Lba::ZERO + (next - one), one))
    }
}

/// Sectors of a read, by their offsets in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Untagged {
    /// They have another checksum than they should have.
    pub(crate) wrong: Vec<u32>,
    /// Nothing says which they should have.
    pub(crate) unproven: Vec<u32>,
    /// The drive may say which, if it tries harder.
    pub(crate) unknown: Vec<u32>,
}

impl Core {
    /// A read comes into its drive's queue, or leaves it.
    pub(super) fn note_queue(&mut self, state: &Sub, is_in: bool) {
        let (Some(tags), Some(extent)) = (&mut self.tags, state.compared()) else { return };
        match is_in {
            true => tags.note_queued(state.drive, extent),
            false => tags.note_unqueued(state.drive, extent),
        }
    }

    /// A command goes out to its drive: what it reads will be compared with checksums (TG5), what it writes has others.
    pub(super) fn begin_tagged(tags: Option<&mut Tags>, sub: SubId, state: &Sub) {
        let Some(tags) = tags else { return };
        match (state.compared(), state.first, state.writes_places()) {
            (Some(extent), Some(brings), _) => tags.begin_read(state.drive, sub, extent, brings),
            (_, _, Some(extent)) => tags.begin_write(state.drive, sub, extent),
            _ => {}
        }
    }

    /// The groups of a read that has ended whose tag sectors memory lacks.
    fn lacking(&self, state: &Sub, outcome: &Outcome) -> impl Iterator<Item = (u64, Lba)> {
        let is_read = matches!(outcome, Outcome::Done { .. }) && !state.is_orphan;
        let (drive, extent) = (state.drive, state.compared().filter(|_| is_read));
        let tags = self.tags.iter().filter_map(move |tags| Some((tags, extent?)));
        tags.flat_map(move |(tags, extent)| {
            let lacking = tags.groups_of(extent).filter(move |&group| !tags.knows(drive, group));
            lacking.map(move |group| {
                let lba = Lba::new(group * tags.sectors()).max(extent.lba);
                (group, self.area().tag_of(lba).expect("it has groups").lba)
            })
        })
    }

    /// Whether another read of the same drive will bring a tag sector that what this one has brought is compared with.
    pub(crate) fn waits_for_tags(&self, state: &Sub, outcome: &Outcome) -> bool {
        let Some(tags) = &self.tags else { return false };
        let drive = state.drive;
        let is_brought = |(group, lba): (u64, Lba)| {
            let is_asked = tags.is_queued(drive, group) || tags.is_being_read(drive, group);
            is_asked || tags.is_brought(drive, lba)
        };
        let is_read = matches!(outcome, Outcome::Done { .. }) && !state.is_orphan;
        let is_unread = tags.is_unread(drive) && is_read && state.compared().is_some();
        is_unread || self.lacking(state, outcome).any(is_brought)
    }

    /// The groups of which a read has not brought the tag sector, because another read was to bring it, which has not: nothing is
    /// known of their sectors until it is read.
    pub(crate) fn not_brought(&self, state: &Sub, outcome: &Outcome) -> Vec<u64> {
        let is_reachable = self.drives.reachable().contains(state.drive);
        let own = |lba: Lba| state.first.is_some_and(|first| first.contains(lba));
        let lacking = self.lacking(state, outcome).filter(|&(_, lba)| is_reachable && !own(lba));
        lacking.map(|(group, _)| group).collect()
    }

    /// What a read has brought was compared, or nothing wants it.
    pub(crate) fn end_tagged_read(&mut self, sub: SubId, state: &Sub) {
        if let Some(tags) = self.tags.as_mut().filter(|_| !state.is_orphan) {
            tags.end_read(state.drive, sub);
        }
    }

    /// Has the tag sectors looked at that a read has brought and that memory does not have; of a read that no client waits for, as a
    /// scrub's, also those that memory has.
    pub(crate) fn look_at_tags(&mut self, sub: SubId, state: &Sub, outcome: &Outcome) {
        let (Some(tags), Some(extent)) = (&mut self.tags, state.compared()) else { return };
        let (Some(first), Some(buf)) = (state.first, state.read_buf()) else { return };
        let Outcome::Done { unknown, damaged } = outcome else { return };
        let Command::Read { .. } = state.command else { return };
        let mut places = Vec::new();
        let may_confirm = state.since.is_none() && self.out.carries_content();
        for group in tags.groups_of(extent) {
            let is_known = tags.knows(state.drive, group);
            if is_known && !(may_confirm && tags.is_at_rest(state.drive, group)) {
                continue;
            }
            let lba = Lba::new(group * tags.sectors()).max(extent.lba);
            let tag = self.place.area().tag_of(lba).expect("it has groups");
            if tag.lba < first.lba || tag.lba >= first.end() {
                continue;
            }
            let sector = (tag.lba - first.lba).get() as u32;
            if unknown.contains(sector) || damaged.contains(sector) {
                continue;
            }
            match self.out.carries_content() {
                true => places.push(ReadTag { group, place: Place { buf, sector } }),
                false => _ = tags.note_tag(state.drive, group, Sums::OF_NOTHING, 0),
            }
        }
        if !places.is_empty() {
            let drive = state.drive;
            self.out.push(Action::Tags { sub, drive, of: places });
        }
    }

    /// Whether a tag sector is this array's, and lies where it says.
    pub(crate) fn is_own(&self, drive: DriveIdx, group: u64, found: &TagSector) -> bool {
        let array = self.meta.now().array;
        (found.array, found.drive, found.group) == (array, drive, group)
    }

    /// Which sectors of a read have another checksum than they should (TG1). Those that have what a list says that does not count have it
    /// from now on (TG9).
    pub(crate) fn untagged(&mut self, id: SubId, sub: &Sub, sums: &[u32]) -> Untagged {
        let mut untagged = Untagged::default();
        let Some(tags) = &self.tags else { return untagged };
        let (drive, Command::Read { extent, effort }) = (sub.drive, sub.command) else {
            return untagged;
        };
        let synced = self.holdings.synced();
        let mut found = Vec::new();
        for ((at, lba), sum) in (0..).zip(extent.iter()).zip(sums) {
            let (row, _) = self.layout().symbol(Cell { drive, lba });
            if row.stripe >= synced || tags.is_moved(drive, id, lba) {
                continue;
            }
            match tags.get(drive, lba) {
                Some(known) if known == *sum => {}
                // The drive stopped before it gave the tag sector.
                None if tags.hint(drive, lba) == Some(*sum) => {
                    found.push((Cell { drive, lba }, *sum));
                }
                None if !tags.knows(drive, tags.find(lba).0) && !effort.is_full() => {
                    untagged.unknown.push(at);
                }
                None => untagged.unproven.push(at),
                Some(_) => untagged.wrong.push(at),
            }
        }
        found.into_iter().for_each(|(cell, sum)| self.note_found(cell, sum));
        untagged
    }

    /// Whether the tag sector of a group may be written with its data by a command that is not in its drive's queue yet.
    pub(crate) fn may_carry(&self, drive: DriveIdx, group: u64) -> bool {
        self.tags.as_ref().is_some_and(|tags| tags.may_hold(drive) && tags.may_carry(drive, group))
    }

    /// A write that was announced is in its drive's queue, and has all data of these groups (TG8).
    pub(crate) fn announce(&mut self, sub: SubId, groups: &[u64]) {
        let Some(tags) = &mut self.tags else { return };
        let Some(state) = self.commands.subs.get(sub) else { return };
        let extent = state.command.extent().expect("it writes somewhere");
        tags.announce(state.drive, sub, extent, groups);
    }

    /// A command goes out to its drive: what was announced has tag sectors with it (TG8).
    pub(super) fn take_tags_along(&mut self, drive: DriveIdx, sub: SubId) {
        let Some(tags) = &mut self.tags else { return };
        // Of a drive that is copied the sectors beside may be copied already.
        let is_copied = self.holdings.copied_mut().is_some_and(|copied| copied.drive == drive);
        let area = self.place.area();
        let Some(going) = tags.send_with(area, drive, sub, !is_copied) else { return };
        let state = self.commands.subs.get_mut(sub).expect("a queued command is known");
        let extent = state.command.extent().expect("it writes somewhere");
        let count = extent.sectors.as_usize();
        let tag_sectors = Sectors::new(going.len() as u64);
        let buf = (!going.is_empty()).then(|| self.out.acquire(tag_sectors));
        if let Some(buf) = buf {
            let own = (0..).zip(&going).map(|(at, Going { tag, .. })| {
                let place = Place { buf, sector: at };
                (tag.lba, vec![Segment { place, sectors: 1 }])
            });
            let data = area.pieces(extent).into_iter().map(|piece| {
                let from = (piece.counted.lba - extent.lba).get() as u32;
                let sectors = piece.counted.sectors.get() as u32;
                (piece.lba, part_of(&state.segments, from, sectors))
            });
            let mut parts: Vec<(Lba, Vec<Segment>)> = own.chain(data).collect();
            parts.sort_unstable_by_key(|(lba, _)| *lba);
            let sectors = extent.sectors + tag_sectors;
            let segments: Vec<Segment> = parts.iter().flat_map(|(_, of)| of.clone()).collect();
            state.along = Some(Box::new((Extent::new(parts[0].0, sectors), segments.into())));
        }
        if !self.out.carries_content() {
            tags.begin_carry(drive, sub, buf, vec![0; count], &going);
            return;
        }
        let (array, list) = (self.meta.now().array, tags.durable_list(drive));
        let along = |(at, going): (u32, &Going)| {
            let Going { tag, sums } = going;
            let own = |lba: Lba| lba.clamp(extent.lba, extent.end());
            let (first, end) = (own(tag.covers.lba), own(tag.covers.end()));
            TagAlong {
                into: Place { buf: buf.expect("there are some"), sector: at },
                tag: TagSector { array, drive, group: tag.group, list, sums: *sums },
                of: (first - extent.lba).as_usize()..(end - extent.lba).as_usize(),
                first: tags.find(first).1,
            }
        };
        let into = (0..).zip(&going).map(along).collect();
        self.tagged += 1;
        let id = ALONG | self.tagged;
        let of = state.segments.to_vec();
        self.along.insert(id, Along { drive, sub, buf, going });
        self.out.push(Action::Digest { id, of, into });
    }

    /// The checksums of what goes out with tag sectors; returns whether these are some.
    pub(crate) fn handle_sums_along(&mut self, id: u64, sums: &[u32]) -> bool {
        let Some(Along { drive, sub, buf, going }) = self.along.remove(&id) else { return false };
        let tags = self.tags.as_mut().expect("only an array with checksums asks for these");
        if !tags.begin_carry(drive, sub, buf, sums.to_vec(), &going) {
            buf.into_iter().for_each(|buf| self.out.release(buf));
        }
        true
    }

    /// A write in place has ended well: what was written has another checksum from now on.
    pub(super) fn note_untagged(&mut self, sub: SubId, state: &Sub, extent: Extent) {
        let Some(tags) = &mut self.tags else { return };
        let drive = state.drive;
        let is_durable =
            matches!(state.command, Command::Write { durability: Durability::Durable, .. });
        if let Some(Carriage { buf, sums }) = tags.end_carry(drive, sub, is_durable) {
            for (lba, sum) in sums {
                tags.note_written(drive, lba);
                tags.note_sum(drive, lba, sum);
            }
            if state.purpose == Purpose::Place {
                // The journal has it: no flush is asked for.
                tags.give_up_carry(drive, sub);
            }
            return buf.into_iter().for_each(|buf| self.out.release(buf));
        }
        extent.iter().for_each(|lba| tags.note_written(drive, lba));
        if !self.out.carries_content() {
            return extent.iter().for_each(|lba| tags.note_sum(drive, lba, 0));
        }
        let cells = extent.iter().map(|lba| Cell { drive, lba }).collect();
        self.sum_written(cells, state.segments.to_vec());
    }

    fn sum_written(&mut self, cells: Vec<Cell>, of: Vec<Segment>) {
        self.tagged += 1;
        let id = WRITTEN | self.tagged;
        self.summing.insert(id, cells);
        self.out.push(Action::digest(id, of));
    }

    /// What was read of these sectors is what they hold: nothing says that it is not.
    pub(crate) fn trust(&mut self, stored: &[Stored]) {
        let Some(tags) = &mut self.tags else { return };
        stored.iter().for_each(|stored| tags.note_written(stored.cell.drive, stored.cell.lba));
        let cells: Vec<Cell> = stored.iter().map(|stored| stored.cell).collect();
        if !self.out.carries_content() {
            return cells.iter().for_each(|cell| tags.note_sum(cell.drive, cell.lba, 0));
        }
        let of = stored.iter().map(|stored| Segment { place: stored.place, sectors: 1 }).collect();
        self.sum_written(cells, of);
    }

    /// The checksums of what was written in place; returns whether these are some.
    pub(crate) fn handle_written_sums(&mut self, id: u64, sums: &[u32]) -> bool {
        let Some(cells) = self.summing.remove(&id) else { return false };
        if let Some(tags) = &mut self.tags {
            let pairs = cells.iter().zip(sums);
            pairs.for_each(|(cell, &sum)| tags.note_sum(cell.drive, cell.lba, sum));
        }
        true
    }

    /// A sector was found in its place with this checksum, which counts from now on.
    pub(crate) fn note_found(&mut self, cell: Cell, sum: u32) {
        if let Some(tags) = &mut self.tags {
            tags.note_written(cell.drive, cell.lba);
            tags.note_sum(cell.drive, cell.lba, sum);
        }
    }

    /// For every drive the number of what will be written there next without its tag sector.
    pub(crate) fn tag_orders(&self) -> Vec<u64> {
        self.tags.as_ref().map_or(Vec::new(), Tags::orders)
    }

    /// Whether tag sectors and lists say all that was written in place before these. If not, lists are written.
    pub(crate) fn are_tagged_before(&mut self, orders: &[u64]) -> bool {
        let drives = (0..).map(DriveIdx::from_usize).zip(orders);
        let Some(tags) = &mut self.tags else { return true };
        let mut lacking =
            drives.into_iter().filter(|&(drive, &order)| !tags.says_before(drive, order));
        lacking.by_ref().count() == 0
    }

    /// Whether so much waits for tag sectors that nothing is written which no client waits for.
    pub(crate) fn are_tags_full(&self) -> bool {
        let reachable = self.drives.reachable();
        self.tags.as_ref().is_some_and(|tags| tags.are_full(reachable))
    }

    /// Whether a tag sector is being read by itself.
    pub(crate) fn is_reading_tags(&self) -> bool {
        self.tags.as_ref().is_some_and(Tags::is_reading)
    }

    /// Whether no command for tag sectors is inside a drive that answers: what one reads may show that one is to be written.
    pub(crate) fn are_tags_at_rest(&self) -> bool {
        let answering = self.drives.reachable().without(self.drives.silent());
        self.tags.as_ref().is_none_or(|tags| answering.iter().all(|drive| tags.inside(drive) == 0))
    }

    /// Whether tag sectors and lists say all that was written in place.
    pub(crate) fn are_tags_written(&self) -> bool {
        self.tags.as_ref().is_none_or(Tags::is_clean)
    }
}

/// The names of what writes in place are to have computed, and of what goes out with tag sectors.
pub(crate) const WRITTEN: u64 = 1 << 62;
pub(crate) const ALONG: u64 = 1 << 61;

/// An announced write whose checksums are being computed.
#[derive(Clone, Debug)]
pub(super) struct Along {
    drive: DriveIdx,
    sub: SubId,
    buf: Option<BufId>,
    going: Vec<Going>,
}
