//! What drives hold and what not: which of them count, what the lost ones miss, what is damaged.

use levelhead_units::{DriveIdx, DriveSet, Extent, Sectors};

use super::copied::Copied;
use super::{Core, Sub};
use crate::action::Action;
use crate::meta::membership::Membership;
use crate::meta::state::Lacks;
use crate::settings::Settings;
use crate::shape::Cell;

/// What the drives hold of what was written.
#[derive(Clone, Debug)]
pub(crate) struct Holdings {
    /// For every drive the stripes, from the first on, that it holds: all that was written there. All of them of a
    /// drive that is there, none of one that is lost, some of one that is being filled.
    valid: Vec<u64>,
    /// A drive that is being filled and is full: the journal counts it already, so that by the time it is present enough
    /// rings have everything.
    nearly_present: DriveSet,
    /// What a drive holds that is given a copy of another one, if one is.
    copied: Option<Copied>,
    /// Redundancy of stripes from here on is not valid yet.
    synced: u64,
    /// The same as a start after a crash would know it.
    synced_for_good: u64,
}

impl Holdings {
    pub(super) fn new(settings: &Settings, stripes: u64) -> Self {
        Self {
            valid: (0..settings.spec.members()).map(|at| valid_at_first(settings, at)).collect(),
            nearly_present: DriveSet::EMPTY,
            copied: None,
            synced: settings.synced.min(stripes),
            synced_for_good: settings.synced,
        }
    }

    /// For every drive the stripes, from the first on, that it holds.
    pub(crate) fn valid(&self) -> &[u64] {
        &self.valid
    }

    /// The stripes, from the first on, that a drive holds.
    pub(crate) fn front(&self, drive: DriveIdx) -> u64 {
        self.valid[drive.as_usize()]
    }

    /// A drive holds the stripes up to this one from now on.
    pub(crate) fn fill_to(&mut self, drive: DriveIdx, end: u64) {
        self.valid[drive.as_usize()] = end;
    }

    /// A drive holds nothing any more.
    pub(crate) fn lose(&mut self, drive: DriveIdx) {
        self.fill_to(drive, 0);
        self.nearly_present = self.nearly_present.without(DriveSet::EMPTY.with(drive));
    }

    /// A drive that was filled is present.
    pub(crate) fn end_filling(&mut self, drive: DriveIdx) {
        self.fill_to(drive, u64::MAX);
        self.nearly_present = self.nearly_present.without(DriveSet::EMPTY.with(drive));
    }

    pub(crate) fn is_nearly_present(&self, drive: DriveIdx) -> bool {
        self.nearly_present.contains(drive)
    }

    /// A drive that is being filled is full.
    pub(crate) fn set_nearly_present(&mut self, drive: DriveIdx) {
        self.nearly_present = self.nearly_present.with(drive);
    }

    pub(crate) fn copied(&self) -> Option<&Copied> {
        self.copied.as_ref()
    }

    pub(crate) fn copied_mut(&mut self) -> Option<&mut Copied> {
        self.copied.as_mut()
    }

    /// A drive is given a copy of another one.
    pub(crate) fn begin_copy(&mut self, copied: Copied) {
        self.copied = Some(copied);
    }

    /// No drive is given a copy any more.
    pub(crate) fn take_copied(&mut self) -> Option<Copied> {
        self.copied.take()
    }

    pub(crate) fn synced(&self) -> u64 {
        self.synced
    }

    pub(crate) fn set_synced(&mut self, end: u64) {
        self.synced = end;
    }

    pub(crate) fn synced_for_good(&self) -> u64 {
        self.synced_for_good
    }

    /// Members have recorded that redundancy is valid up to there.
    pub(crate) fn note_synced_for_good(&mut self, end: u64) {
        self.synced_for_good = self.synced_for_good.max(end);
    }
}

impl Core {
    /// A sector goes onto the list of damaged sectors. Nothing of it waits to be read back any more: what is redundant may
    /// have been written before it counted what is nowhere as zeroes.
    pub(crate) fn list_damaged(&mut self, Cell { drive, lba }: Cell) {
        let extent = Extent::new(lba, Sectors::new(1));
        let event = self.meta.damage(drive, extent);
        self.out.extend(event.map(Action::Event));
        self.verify.records.give_up(drive, extent);
        self.release_checked();
    }

    /// Whether a drive holds what was written to its part of a stripe.
    pub(crate) fn holds(&self, drive: DriveIdx, stripe: u64) -> bool {
        stripe < self.holdings.valid[drive.as_usize()] || self.meta.spares(drive, stripe)
    }

    /// A drive is lost, or was not there when the array was opened. What it lacks from now on is known where a journal says
    /// what was under way. One that was done without already goes on lacking what it did.
    pub(crate) fn lose_member(&mut self, drive: DriveIdx, membership: Membership) {
        let member = &self.meta.members()[drive.as_usize()];
        let is_new = member.is_present() || member.is_filling();
        if !is_new && membership == Membership::Missing {
            return;
        }
        let has_data = self.layout().spec().data_drives().contains(drive);
        let is_known = self.log.is_journaled && has_data;
        let lacks = if is_known { Lacks::Known } else { Lacks::Unknown };
        self.meta.lose(drive, membership, lacks);
        if !is_new || !is_known {
            return;
        }
        // Redundancy that was made valid may not be safe on the drive. Copies of a mirror may differ where they were not
        // made alike, and are made alike without it.
        let stripes = self.layout().stripes();
        let first = self.holdings.synced_for_good.min(stripes);
        let is_mirror = self.layout().spec().is_mirror();
        let end = if is_mirror { stripes } else { self.holdings.synced.max(first) };
        self.meta.miss_all(drive, first..end);
        // What was not read back may not be there, or not in the copy that was made of it.
        let unchecked: Vec<Extent> = self.verify.records.extents(drive).collect();
        for extent in unchecked {
            let stripe = |lba| self.layout().symbol(Cell { drive, lba }).0.stripe;
            let last = extent.lba + (extent.sectors - Sectors::new(1));
            self.meta.miss_all(drive, stripe(extent.lba)..stripe(last) + 1);
        }
        self.note_not_copied(drive);
    }

    /// A drive is lost that another one was given a copy of: what that one does not hold, this one lacks.
    fn note_not_copied(&mut self, drive: DriveIdx) {
        let Some(copied) = self.holdings.copied.as_mut().filter(|copied| copied.drive == drive)
        else {
            return;
        };
        copied.note_lost(self.place.layout());
        let of_drive =
            self.commands.subs.values().filter(|sub| sub.drive == drive && !sub.is_orphan);
        for extent in of_drive.filter_map(Sub::writes_places) {
            copied.mark(self.place.layout(), extent);
        }
        let behind: Vec<u64> = copied.behind().collect();
        for region in behind {
            self.meta.miss_all(drive, copied.stripes(self.place.layout(), region));
        }
    }

    /// The drives that count: those that are there, and one that is about to.
    pub(crate) fn counted(&self) -> DriveSet {
        self.drives
            .present()
            .or(self.holdings.nearly_present)
            .and(self.layout().spec().ring_drives())
    }

    /// The drives that are there and whose rings do not count.
    pub(crate) fn uncounted(&self) -> DriveSet {
        self.drives.filling().without(self.holdings.nearly_present)
    }

    /// Whether more drives are lost than the layout survives.
    pub(crate) fn has_failed(&self) -> bool {
        self.drives.has_failed()
    }

    /// Whether the array holds what was written to the stripes below `end` as often as it can. Every write of a mirror
    /// goes to all copies, whatever else these hold.
    pub(crate) fn is_redundant(&self, end: u64) -> bool {
        end <= self.holdings.synced || self.layout().spec().is_mirror()
    }

    /// A drive was just lost: whether writes that were answered and not flushed may be gone with it, because some
    /// stripes have no valid redundancy.
    pub(crate) fn loses_writes(&self) -> bool {
        let is_covered = self.is_redundant(self.layout().stripes()) && !self.has_failed();
        !is_covered && self.writes.are_unflushed()
    }
}

/// The stripes that a drive holds when the array is started.
fn valid_at_first(settings: &Settings, at: usize) -> u64 {
    let drive = DriveIdx::from_usize(at);
    if !settings.lost.contains(drive) {
        return u64::MAX;
    }
    settings.recorded.as_ref().and_then(|known| known.filled_to(drive)).unwrap_or(0)
}
