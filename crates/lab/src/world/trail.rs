//! What drives were given and have ended, kept for an account of where a replay's time went.

use levelhead_array::{SubId, Submit};
use levelhead_drive::Completion;
use levelhead_units::{DriveIdx, Instant, Nanos};

/// A drive's part of a request's way.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A drive was given a command.
    Given {
        /// When.
        at: Instant,
        /// Which drive.
        drive: DriveIdx,
        /// Which command.
        sub: SubId,
        /// The request it serves, or a number near the largest for the array's own.
        origin: u64,
    },
    /// A drive has ended one.
    Ended {
        /// Which drive.
        drive: DriveIdx,
        /// Which command.
        sub: SubId,
        /// When it was served first.
        began: Instant,
        /// When its retries began, or its end if there were none.
        retried: Instant,
        /// When the drive itself ended it.
        ended: Instant,
    },
}

/// What drives were given and have ended since the last look, where that is kept.
#[derive(Debug, Default)]
pub struct Trail {
    steps: Option<Vec<Step>>,
}

impl Trail {
    /// Keeps what drives are given and end from now on, for [`Trail::take`].
    pub fn keep(&mut self) {
        self.steps = Some(Vec::new());
    }

    /// What drives were given and have ended since the last call, in this order.
    pub fn take(&mut self) -> Vec<Step> {
        self.steps.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn note_given(&mut self, now: Instant, submit: &Submit) {
        let Some(steps) = &mut self.steps else { return };
        let Submit { drive, sub, origin, .. } = *submit;
        steps.push(Step::Given { at: now, drive, sub, origin });
    }

    pub(super) fn note_ended(&mut self, drive: DriveIdx, done: &Completion) {
        let Some(steps) = &mut self.steps else { return };
        let before =
            |time: Nanos| Instant::from_nanos(done.ended.as_nanos().saturating_sub(time.get()));
        let (began, retried) = (before(done.service), before(done.retrying));
        steps.push(Step::Ended { drive, sub: SubId(done.id), began, retried, ended: done.ended });
    }
}
