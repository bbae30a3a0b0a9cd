//! Answers, and those that wait until a loss is recorded.

use levelhead_block::Outcome;
use levelhead_units::{DriveIdx, DriveSet, Instant};

use super::Core;
use crate::action::{Action, Answer};
use crate::meta::recorded::Recorded;

/// An answer that waits until the loss of some drives is safely recorded.
#[derive(Clone, Debug)]
struct Held {
    relies_on: DriveSet,
    answer: Answer,
    /// When it goes out as a failure, where there is a limit.
    by: Option<Instant>,
}

/// What must be recorded before data is written, and before what relies on a loss is answered.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// Whether data may be written: where that is recorded, once it is.
    may_write: bool,
    /// When the lease ends, where one is needed.
    lease_end: Option<Instant>,
    /// Those of the lost drives whose loss is not safely recorded yet, where losses are recorded.
    unrecorded: DriveSet,
    /// Answers that rely on such a loss and wait for its record.
    held: Vec<Held>,
}

impl Gate {
    pub(super) fn new(recorded: Option<&Recorded>) -> Self {
        Self {
            may_write: recorded.is_none(),
            lease_end: recorded.filter(|known| known.is_in_reach).map(|_| Instant::ZERO),
            unrecorded: DriveSet::EMPTY,
            held: Vec::new(),
        }
    }

    pub(crate) fn may_write(&self) -> bool {
        self.may_write
    }

    /// From now on data may be written, or not any more.
    pub(crate) fn set_open(&mut self, is_open: bool) {
        self.may_write = is_open;
    }

    pub(crate) fn lease_end(&self) -> Option<Instant> {
        self.lease_end
    }

    /// The lease ends then, where one is needed.
    pub(crate) fn set_lease_end(&mut self, end: Instant) {
        self.lease_end = self.lease_end.map(|_| end);
    }

    pub(crate) fn unrecorded(&self) -> DriveSet {
        self.unrecorded
    }

    /// The loss of a drive is to be recorded.
    pub(crate) fn lose(&mut self, drive: DriveIdx) {
        self.unrecorded = self.unrecorded.with(drive);
    }
}

impl Core {
    /// Answers a request, once the loss of these drives is safely recorded.
    pub(crate) fn answer(&mut self, relies_on: DriveSet, answer: Answer) {
        let relies_on = relies_on.and(self.gate.unrecorded);
        if relies_on.is_empty() {
            self.out.push(Action::Answer(answer));
        } else {
            self.counters.held += 1;
            self.gate.held.push(Held { relies_on, answer, by: None });
        }
    }

    /// Answers that are held and have no limit yet get this one.
    pub(crate) fn limit_held(&mut self, by: Instant) {
        self.gate.held.iter_mut().for_each(|held| held.by = held.by.or(Some(by)));
    }

    /// When the first answer that is held is given up.
    pub(crate) fn held_by(&self) -> Option<Instant> {
        self.gate.held.iter().filter_map(|held| held.by).min()
    }

    /// The loss of these drives is safely recorded.
    pub(crate) fn note_recorded(&mut self, drives: DriveSet) {
        self.gate.unrecorded = self.gate.unrecorded.without(drives);
        for Held { relies_on, answer, by } in std::mem::take(&mut self.gate.held) {
            let relies_on = relies_on.and(self.gate.unrecorded);
            if relies_on.is_empty() {
                self.out.push(Action::Answer(answer));
            } else {
                self.gate.held.push(Held { relies_on, answer, by });
            }
        }
    }

    /// No loss will ever be recorded again: the held answers go out as failures.
    pub(crate) fn fail_held(&mut self) {
        self.fail_held_if(|_| true);
    }

    /// Sends the held answers as failures for whose time limit `is_over` returns true.
    pub(crate) fn fail_held_if(&mut self, is_over: impl Fn(Option<Instant>) -> bool) {
        for held in self.gate.held.extract_if(.., |held| is_over(held.by)) {
            let answer = Answer { outcome: Outcome::Gone, ..held.answer };
            self.out.push(Action::Answer(answer));
        }
    }
}
