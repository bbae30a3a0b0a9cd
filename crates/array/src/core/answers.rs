//! Answers, and those that wait until a loss is recorded.

use levelhead_block::Outcome;
use levelhead_units::{DriveSet, Instant};

use super::Core;
use crate::action::{Action, Answer};

/// An answer that waits until the loss of some drives is safely recorded.
#[derive(Clone, Debug)]
pub(super) struct Held {
    relies_on: DriveSet,
    answer: Answer,
    /// When it goes out as a failure, where there is a limit.
    by: Option<Instant>,
}

impl Core {
    /// Answers a request, once the loss of these drives is safely recorded.
    pub(crate) fn answer(&mut self, relies_on: DriveSet, answer: Answer) {
        let relies_on = relies_on.and(self.unrecorded);
        if relies_on.is_empty() {
            self.actions.push_back(Action::Answer(answer));
        } else {
            self.counters.held += 1;
            self.held.push(Held { relies_on, answer, by: None });
        }
    }

    /// Answers that are held and have no limit yet get this one.
    pub(crate) fn limit_held(&mut self, by: Instant) {
        self.held.iter_mut().for_each(|held| held.by = held.by.or(Some(by)));
    }

    /// When the first answer that is held is given up.
    pub(crate) fn held_by(&self) -> Option<Instant> {
        self.held.iter().filter_map(|held| held.by).min()
    }

    /// The loss of these drives is safely recorded.
    pub(crate) fn note_recorded(&mut self, drives: DriveSet) {
        self.unrecorded = self.unrecorded.without(drives);
        for Held { relies_on, answer, by } in std::mem::take(&mut self.held) {
            let relies_on = relies_on.and(self.unrecorded);
            if relies_on.is_empty() {
                self.actions.push_back(Action::Answer(answer));
            } else {
                self.held.push(Held { relies_on, answer, by });
            }
        }
    }

    /// No loss will ever be recorded again: the held answers go out as failures.
    pub(crate) fn fail_held(&mut self) {
        self.fail_held_if(|_| true);
    }

    /// Sends the held answers as failures for whose time limit `is_over` returns true.
    pub(crate) fn fail_held_if(&mut self, is_over: impl Fn(Option<Instant>) -> bool) {
        for held in self.held.extract_if(.., |held| is_over(held.by)) {
            let answer = Answer { outcome: Outcome::Gone, ..held.answer };
            self.actions.push_back(Action::Answer(answer));
        }
    }
}
