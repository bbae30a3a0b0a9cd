//! What a write puts into the queues of drives: one command for each run of neighbouring sectors.

use levelhead_block::{Command, Segment, ZeroTail};
use levelhead_units::{DriveIdx, Extent, Instant, Sectors};

use super::{Cause, WriteOp};
use crate::action::append;
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::log::contents::Stored;
use crate::names::SubId;
use crate::shape::Cell;

/// Neighbouring sectors of one drive that become one sub-write.
#[derive(Clone, Debug)]
struct Run {
    drive: DriveIdx,
    extent: Extent,
    segments: Vec<Segment>,
    /// The groups whose tag sectors lie between.
    along: Vec<u64>,
}

impl WriteOp {
    /// Puts all sub-writes into the queues.
    pub(super) fn write(
        &mut self,
        core: &mut Core,
        now: Instant,
        mut cells: Vec<Stored>,
    ) -> Vec<SubId> {
        let durability = self.durability();
        if !core.drives.lost_data().is_empty() {
            let stripe = |stored: &Stored| core.layout().symbol(stored.cell).0.stripe;
            cells.retain(|stored| core.holds(stored.cell.drive, stripe(stored)));
        }
        if let Cause::Resync { .. } = self.cause {
            // What the journal has not put in place yet it will, in its order (J3).
            cells.retain(|stored| core.log.unplaced.find(stored.cell).is_none());
        }
        cells.sort_unstable_by_key(|stored| stored.cell);
        let mut pending = Vec::new();
        for Run { drive, extent, segments, along } in self.join(core, &cells) {
            let command = Command::Write { extent, durability, zero_tail: ZeroTail::None };
            let sub = core.enqueue(
                now,
                Enqueue {
                    purpose: Purpose::Op(self.op),
                    drive,
                    command,
                    segments: segments.into(),
                    origin: self.origin(),
                    end: End::Tail,
                    fate: Fate::Certain,
                    since: self.since(),
                },
            );
            if self.is_announced {
                core.announce(sub, &along);
            }
            pending.push(sub);
            self.cost.subs += 1;
        }
        pending
    }

    /// Runs of neighbouring cells on the same drive, with the pieces of memory they come from. What was announced goes over the tag
    /// sectors of groups that it has all of (TG8).
    fn join(&self, core: &Core, cells: &[Stored]) -> Vec<Run> {
        let area = core.area();
        let mut runs: Vec<Run> = Vec::new();
        for (at, &Stored { cell: Cell { drive, lba }, place }) in cells.iter().enumerate() {
            let last = runs.last_mut();
            let last = last.filter(|run| run.drive == drive && run.extent.end() == lba);
            let whole = || {
                area.tag_of(lba).filter(|_| self.is_announced).filter(|tag| {
                    let rest = (tag.covers.end() - lba).as_usize();
                    let end = Cell { drive, lba: tag.covers.end() };
                    let has_rest = cells.get(at + rest - 1).is_some_and(|last| {
                        last.cell.drive == drive && last.cell.lba + Sectors::new(1) == end.lba
                    });
                    has_rest && area.may_pass(lba, lba) && core.may_carry(drive, tag.group)
                })
            };
            let is_next = area.are_neighbours(lba, lba);
            match last {
                Some(run) if is_next => {
                    run.extent.sectors += Sectors::new(1);
                    append(&mut run.segments, place);
                }
                Some(run)
                    if let Some(tag) = whole().filter(|tag| tag.covers.lba >= run.extent.lba) =>
                {
                    run.extent.sectors += Sectors::new(1);
                    append(&mut run.segments, place);
                    run.along.push(tag.group);
                }
                Some(_) | None => {
                    let extent = Extent::new(lba, Sectors::new(1));
                    let segments = vec![Segment { place, sectors: 1 }];
                    runs.push(Run { drive, extent, segments, along: Vec::new() });
                }
            }
        }
        runs
    }
}
