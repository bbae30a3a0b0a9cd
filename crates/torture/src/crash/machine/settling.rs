//! The end of a life: with nothing wrong any more, all that was begun completes, and every buffer is released.

use levelhead_array::{RebuildWish, Resync, ScrubState};
use levelhead_stats::Rng;

use super::Machine;

/// Steps in which an array of this size completes all that was begun. No life of 60 seeds of each aim took more than a third.
const STEPS_MAX: u32 = 20_000;

impl Machine {
    /// Steps until the array is at rest, and says what never completes.
    pub(crate) fn settle(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.trouble = None;
        let wish = RebuildWish { is_paused: false, ..self.array.rebuild_wish() };
        if self.array.rebuild_wish() != wish {
            self.array.handle_rebuild_wish(self.now, wish);
            self.carry_out();
        }
        for _ in 0..STEPS_MAX {
            if self.unfinished().is_none() {
                return self.held();
            }
            if self.array.resync() == Resync::Idle && !self.is_synced() {
                self.resync();
            }
            let moved = self.step(rng);
            self.is_good()?;
            if !moved {
                break;
            }
        }
        match self.unfinished() {
            None => self.held(),
            Some(what) => Err(format!("{what} never ends")),
        }
    }

    fn is_synced(&self) -> bool {
        self.array.synced() == self.array.layout().stripes()
    }

    /// What is under way.
    fn unfinished(&self) -> Option<String> {
        let array = &self.array;
        let is_rebuilding = array.lost() != array.away();
        let may_resync = array.away().is_empty() && array.resync() != Resync::Stuck;
        if self.outstanding() > 0 {
            Some(format!("{} requests", self.outstanding()))
        } else if is_rebuilding {
            Some(format!("the rebuild of {:?}", array.lost().without(array.away())))
        } else if array.copy().is_some() {
            Some("a replacement by copying".into())
        } else if array.scrub().state == ScrubState::Running {
            Some("a scrub".into())
        } else if may_resync && !self.is_synced() {
            Some("a resync".into())
        } else if !array.is_quiet() {
            Some("an operation or a command".into())
        } else if array.journal_status().is_some_and(|status| status.open > 0) {
            Some("a transaction".into())
        } else {
            None
        }
    }

    /// A4: at rest the array holds no buffer, unless some written sectors wait to be read back.
    fn held(&self) -> Result<(), String> {
        let waiting = self.array.verify_status().map_or(0, |status| status.waiting);
        let held = self.buffers.len();
        let is_good = held == 0 || waiting > 0;
        is_good.then_some(()).ok_or_else(|| format!("A4: {held} buffers are held at rest"))
    }
}
