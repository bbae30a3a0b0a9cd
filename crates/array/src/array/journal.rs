//! How the array and its journal work together.

use levelhead_block::BufId;
use levelhead_units::Instant;

use crate::array::{Array, Moved, Op};
use crate::journal::Told;
use crate::journal::status::JournalStatus;
use crate::log::record::FoundRecord;
use crate::names::{OpId, SubId};
use crate::tags::list::ListSector;

impl Array {
    /// What its journal has, where one is kept.
    pub fn journal_status(&self) -> Option<JournalStatus> {
        let journal = self.journal.as_ref()?;
        Some(JournalStatus {
            is_recovering: !journal.is_ready(),
            open: journal.open(),
            unplaced: self.core.log.unplaced.len(),
        })
    }

    /// What was found in a buffer that was to be examined.
    pub fn handle_examined(&mut self, now: Instant, buf: BufId, found: Vec<FoundRecord>) {
        let journal = self.journal.as_mut().expect("only a journal has buffers examined");
        journal.handle_examined(buf, found);
        self.move_on(now);
    }

    /// What a read of a list of checksums has brought; nothing for each sector that is none.
    pub fn handle_lists(&mut self, now: Instant, sub: SubId, found: Vec<Option<ListSector>>) {
        let journal = self.journal.as_mut().expect("only a journal has lists looked at");
        journal.handle_lists(&mut self.core, now, sub, found);
        self.move_on(now);
    }

    /// The checksums of the sectors of a buffer, in order.
    pub fn handle_summed(&mut self, now: Instant, buf: BufId, sums: &[u32]) {
        let journal = self.journal.as_mut().expect("only a journal has checksums computed");
        journal.handle_summed(buf, sums);
        self.move_on(now);
    }

    /// Moves the journal on, and tells operations what has become of what they gave it.
    pub(crate) fn keep_journal(&mut self, now: Instant) -> Moved {
        let Some(journal) = &mut self.journal else { return Moved::No };
        let was_ready = journal.is_ready();
        let before = self.core.log.hindering;
        journal.advance(&mut self.core, now);
        let ended = journal.take_ended();
        for op in journal.take_taken_over() {
            let Some(Op::Write(write)) = self.work.ops.get_mut(op) else {
                unreachable!("N2: operation {op} writes in place")
            };
            for sub in write.leave_places() {
                let written = self.core.give_to_journal(sub);
                journal.adopt(sub, written.drive, written.extent);
            }
        }
        let ops = &self.work.ops;
        self.core.log.live.keep(|op| ops.contains(op));
        let wanted = self.core.log.live.wanted().filter(|_| journal.is_ready());
        let said = wanted.filter(|&below| journal.says_over(&mut self.core, now, below));
        let over = said.map_or(Vec::new(), |below| self.core.log.live.note_said(below));
        if !was_ready && (journal.is_ready() || self.core.has_failed()) {
            self.work.open();
        }
        let is_safe = self.core.log.at_risk.take_changed();
        let is_moved = !ended.is_empty() || is_safe || !over.is_empty();
        let moved = if is_moved { Moved::Yes } else { Moved::No };
        for Told { op, logged, to_place } in ended {
            let Some(Op::Write(write)) = self.work.ops.get_mut(op) else {
                unreachable!("W4: operation {op} waits for the journal")
            };
            write.handle_logged(&mut self.core, now, logged, to_place);
            self.advance(now, op);
        }
        over.into_iter().for_each(|op| self.advance(now, op));
        if is_safe {
            self.advance_flushes(now);
        }
        if !self.core.log.hindering.without(before).is_empty() {
            self.leave_hindering(now);
        }
        moved
    }

    /// Writes that read from drives that hinder do without, if they can.
    fn leave_hindering(&mut self, now: Instant) {
        let ops: Vec<OpId> = self.work.ops.names().collect();
        for op in ops {
            let Some(Op::Write(write)) = self.work.ops.get_mut(op) else { continue };
            if write.leave_hindering(&mut self.core, now) {
                self.advance(now, op);
            }
        }
    }
}
