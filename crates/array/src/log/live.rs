//! Which records may still be found after a crash: what is said of sectors that they name must not be older than they are.
//!
//! A record that is found is newer than all that the metadata says, as far as a recovery can tell. So what puts sectors onto the
//! list of damaged ones while it holds their stripes waits until every ring says for good that all records from before are over.

use std::collections::BTreeMap;

use crate::names::OpId;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    /// Whether records are kept.
    is_kept: bool,
    /// The next transaction's name.
    next: u64,
    /// Every ring says for good that all below this one are over.
    said: u64,
    /// Operations that wait until that is said of all below this one.
    waiting: BTreeMap<OpId, u64>,
}

impl Live {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self { is_kept, next: 0, said: 0, waiting: BTreeMap::new() }
    }

    /// The next transaction has this name.
    pub(crate) fn note_next(&mut self, next: u64) {
        self.next = next;
    }

    /// Whether no record from before an operation that holds its stripes would be found after a crash. If not, the operation is
    /// advanced once that is so.
    pub(crate) fn is_over_for(&mut self, op: OpId) -> bool {
        if !self.is_kept {
            return true;
        }
        let below = *self.waiting.entry(op).or_insert(self.next);
        let is_over = below <= self.said;
        if is_over {
            self.waiting.remove(&op);
        }
        is_over
    }

    /// What is to be said so that every operation goes on that waits.
    pub(crate) fn wanted(&self) -> Option<u64> {
        self.waiting.values().copied().max().filter(|&below| below > self.said)
    }

    /// Every ring says so. Returns the operations that go on.
    pub(crate) fn note_said(&mut self, below: u64) -> Vec<OpId> {
        self.said = self.said.max(below);
        self.waiting.keys().copied().collect()
    }

    /// Only these operations are still there.
    pub(crate) fn keep(&mut self, is_there: impl Fn(OpId) -> bool) {
        self.waiting.retain(|&op, _| is_there(op));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_goes_on_once_all_that_was_begun_before_it_asked_is_said_to_be_over() {
        let mut live = Live::new(true);
        live.note_next(7);
        assert!(!live.is_over_for(1));
        live.note_next(9);
        assert!(!live.is_over_for(1) && !live.is_over_for(2));
        assert_eq!(live.wanted(), Some(9));
        assert_eq!(live.note_said(7), [1, 2]);
        assert!(live.is_over_for(1) && !live.is_over_for(2));
        live.keep(|op| op != 2);
        assert_eq!(live.wanted(), None);
    }

    #[test]
    fn nothing_is_waited_for_where_no_records_are_kept() {
        assert!(Live::new(false).is_over_for(1));
    }
}
