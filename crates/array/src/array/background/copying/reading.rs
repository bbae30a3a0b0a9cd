//! What the drive that is copied gives, and what it does not: one part of [`copying`](super).

use levelhead_block::{BufId, Command, Durability, Outcome, Place, Segment, ZeroTail};
use levelhead_units::{Extent, Instant, Sectors};

use super::Step;
use crate::array::background::Background;
use crate::array::{Array, Moved};
use crate::core::ForComing;
use crate::core::copied::What;
use crate::names::SubId;
use crate::shape::{Cell, Row};

impl Array {
    /// A read of the drive that is copied has ended.
    pub(crate) fn handle_copy_read(
        &mut self,
        now: Instant,
        sub: SubId,
        buf: Option<BufId>,
        outcome: &Outcome,
    ) {
        let step = self.own.copies.now.as_deref_mut().and_then(|copying| {
            let at = copying.steps.iter().position(|step| step.sub == sub)?;
            Some(copying.steps.swap_remove(at))
        });
        let (Some(Step { region, extent, .. }), Some(buf)) = (step, buf) else {
            return buf.into_iter().for_each(|buf| self.core.out.release(buf));
        };
        if !outcome.is_good() {
            self.core.out.release(buf);
            self.mend_uncopied(self.not_given(extent, outcome));
            return self.pass_over(now, region);
        }
        let copying = self.own.copies.now.as_deref_mut().expect("it has a step");
        let on_drive = self.core.area().on_drive_to_next(extent);
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        let sectors = on_drive.sectors.get() as u32;
        let segments = Segment { place: Place { buf, sector: 0 }, sectors }.into();
        let command = Command::Write { extent: on_drive, durability, zero_tail };
        self.core.counters.copy_writes += 1;
        let ask = ForComing { what: What::Copy, command, segments, bufs: vec![buf] };
        let sub = self.core.ask_coming(now, ask);
        copying.steps.push(Step { region, extent, sub });
    }

    /// The rows of what a read of the drive did not give. What is mended there marks its region, which is copied then.
    fn not_given(&self, extent: Extent, outcome: &Outcome) -> Vec<Row> {
        let Outcome::Done { damaged, .. } = outcome else { return Vec::new() };
        let Some(drive) = self.own.copies.now.as_deref().map(|copying| copying.drive) else {
            return Vec::new();
        };
        let row = |offset: u32| {
            let lba = extent.lba + Sectors::new(u64::from(offset));
            self.core.layout().symbol(Cell { drive, lba }).0
        };
        damaged.iter().map(row).collect()
    }

    /// The drive does not give all of a region, for now.
    fn pass_over(&mut self, now: Instant, region: u64) {
        let copying = self.own.copies.now.as_deref_mut().expect("a copy is made");
        copying.cursor = copying.cursor.filter(|cursor| cursor.region != region);
        copying.tempo.end(now);
        self.core.holdings.copied_mut().expect("CO1: it is copied").note_unread(region);
        self.end_region_if_done(region);
    }

    /// When a read of the drive will have taken too long: its region is passed over then.
    pub(super) fn late_read_at(&self) -> Option<Instant> {
        let steps = self.own.copies.now.as_deref()?.steps.iter();
        let oldest = steps.filter_map(|step| self.core.inside_since(step.sub)).min();
        Some(oldest? + self.core.drives.patience()?.lost)
    }

    pub(super) fn give_up_late_read(&mut self, now: Instant) -> Moved {
        if self.late_read_at().is_none_or(|at| now < at) {
            return Moved::No;
        }
        let Self { own: Background { copies, .. }, core, .. } = self;
        let copying = copies.now.as_deref_mut().expect("it has a step");
        let since = |step: &Step| core.inside_since(step.sub);
        let oldest = (0..copying.steps.len()).filter(|&at| since(&copying.steps[at]).is_some());
        let oldest = oldest.min_by_key(|&at| since(&copying.steps[at])).expect("it is late");
        let Step { region, sub, .. } = copying.steps.swap_remove(oldest);
        core.abandon(now, sub);
        self.pass_over(now, region);
        Moved::Yes
    }
}
