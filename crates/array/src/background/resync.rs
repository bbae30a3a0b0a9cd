//! Making redundancy valid, a step at a time.

use levelhead_units::{Instant, Sectors};

use crate::ops::write::{Cause, Part, Progress};
use crate::{Array, Start};

/// Sectors of every drive that one step of a resync covers at most, or one stripe if that is more: 4 MiB.
const RESYNC_STEP: Sectors = Sectors::new(1024);

/// Sectors of all drives together that one step covers at most, or one stripe if that is more: 64 MiB.
const RESYNC_MEMORY: Sectors = Sectors::new(1 << 14);

/// How far the array is with making its redundancy valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resync {
    /// Nothing is under way; there may be stripes left to do.
    Idle,
    /// A step is under way.
    Running,
    /// It cannot go on: a drive is lost, or data of the next stripes cannot be read. A write to those
    /// stripes lets it try again.
    Stuck,
}

impl Array {
    /// Starts the next step of making redundancy valid, unless one is under way, all is done, or it
    /// is stuck. The step's end shows in [`Array::synced`] and [`Array::resync`].
    pub fn handle_resync(&mut self, now: Instant) {
        let (first, stripes) = (self.core.synced, self.core.layout.stripes());
        if self.resync != Resync::Idle || first == stripes || self.core.code.is_none() {
            return;
        }
        if !self.core.drives.lost().is_empty() {
            self.resync = Resync::Stuck;
            return self.tell_resync();
        }
        self.resync = Resync::Running;
        let spec = self.core.layout.spec();
        let sectors = RESYNC_STEP.get().min(RESYNC_MEMORY.get() / spec.drives() as u64);
        let step = (sectors / spec.chunk().get()).max(1);
        let end = stripes.min(first + step);
        self.claim(now, Start::Write(Cause::Resync { first, end }));
        self.move_on(now);
    }

    pub(crate) fn note_resync(&mut self, now: Instant, progress: Progress, cause: &Cause) {
        match (progress, cause) {
            (Progress::NotYet, _) | (Progress::Failed, Cause::Client(_)) => {}
            (Progress::Done, &Cause::Resync { first, end }) => {
                assert_eq!(first, self.core.synced, "one step at a time");
                self.core.synced = end;
                if end == self.core.layout.stripes()
                    && let Some(ledger) = &mut self.ledger
                {
                    ledger.handle_synced(&mut self.core, now);
                }
                self.resync = Resync::Idle;
            }
            (Progress::Failed, Cause::Resync { .. }) => self.resync = Resync::Stuck,
            (Progress::Done, Cause::Client(parts)) => {
                let stripes = |part: &Part| self.core.layout.stripes_of(part.extent);
                let unsynced = |part: &Part| stripes(part).end > self.core.synced;
                if self.resync == Resync::Stuck && parts.iter().any(unsynced) {
                    self.resync = Resync::Idle;
                }
            }
        }
    }
}
