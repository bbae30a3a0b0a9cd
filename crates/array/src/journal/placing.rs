//! What the journal asks of drives beside its rings: that what is committed comes to its place, and that what was only
//! announced is safe there.

use levelhead_block::{Command, Durability, Segment, ZeroTail};
use levelhead_units::{DriveIdx, Instant};

use super::placer::{Busy, Haste, Known};
use super::rules::Rule;
use super::{Blocked, Journal};
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::names::SubId;

/// A sector is overdue when its transaction lies this many times as far back as all that are open would, were they
/// placed in order.
const OVERDUE: u64 = 4;

impl Journal {
    /// Writes what is marked in its places (J2).
    pub(super) fn place(&mut self, core: &mut Core, now: Instant) {
        if core.log.unplaced.is_empty() {
            self.placing.unmarked_since = None;
            return;
        }
        let marked = self.marked(core);
        if marked >= self.watermarks().committed {
            self.placing.unmarked_since = None;
        }
        // Were they placed in order, this many transactions would be on their way to their places.
        let overdue = marked.saturating_sub(OVERDUE * self.transactions.open.len() as u64);
        for drive in core.drives.reachable().iter() {
            let at = drive.as_usize();
            let hinders = core.log.hindering.contains(drive);
            let haste = match self.place_haste() {
                Haste::Idle if hinders => Haste::Hindered,
                haste => haste,
            };
            // A drive that hinders chooses among what it has; what it gets next is the oldest.
            let known = Known { marked, overdue: if hinders { marked } else { overdue } };
            while let Some(next) = {
                let busy = Busy { queue: core.drives.queue_len(drive), arm: core.arm(drive) };
                self.placing.placers[at].next(&core.log.unplaced, core.area(), known, haste, busy)
            } {
                let (extent, segments) = (next.extent, next.segments.clone());
                // A flush of what many of them left in a drive's memory would keep it from all else for seconds.
                let durability = match self.form.rules.keep(Rule::Flush) {
                    true => Durability::Durable,
                    false => Durability::Cached,
                };
                let zero_tail = ZeroTail::None;
                let command = Command::Write { extent, durability, zero_tail };
                let sub = self.ask(core, now, drive, command, segments);
                core.counters.journal_places += 1;
                self.placing.placers[at].note_begun(sub, next);
            }
        }
    }

    /// Whether something waits for places.
    pub(super) fn place_haste(&self) -> Haste {
        let hurries = self.placing.drains || self.placing.hurries;
        if hurries || self.requests.blocked.is_some() { Haste::Now } else { Haste::Idle }
    }

    /// Whether something waits for transactions to be over.
    pub(super) fn flush_haste(&self) -> Haste {
        let is_blocked = matches!(self.requests.blocked, Some(Blocked::Space(_) | Blocked::Intent));
        if self.placing.drains || self.placing.hurries || is_blocked {
            Haste::Now
        } else {
            Haste::Idle
        }
    }

    /// Flushes the drives that have much in place that is not safe.
    pub(super) fn flush(&mut self, core: &mut Core, now: Instant) {
        self.note_tags_ended(core, now);
        let haste = match core.log.at_risk.is_awaited() {
            true => Haste::Now,
            false => self.flush_haste(),
        };
        for drive in core.drives.reachable().iter() {
            if self.placing.placers[drive.as_usize()].wants_flush(now, haste) {
                let sub = self.ask(core, now, drive, Command::Flush, Vec::new());
                core.counters.journal_flushes += 1;
                self.placing.placers[drive.as_usize()].note_flush(sub);
                core.tags.iter_mut().for_each(|tags| tags.begin_flush(drive));
            }
        }
    }

    fn ask(
        &self,
        core: &mut Core,
        now: Instant,
        drive: DriveIdx,
        command: Command,
        segments: Vec<Segment>,
    ) -> SubId {
        let origin = core.own_origin();
        core.enqueue(
            now,
            Enqueue {
                purpose: Purpose::Place,
                drive,
                command,
                segments: segments.into(),
                origin,
                end: End::Tail,
                fate: Fate::Certain,
                since: None,
            },
        )
    }
}
