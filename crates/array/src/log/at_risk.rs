//! What a client's flush waits for where a journal is kept: what that has only announced and not logged.

use std::collections::BTreeSet;

/// Intents whose operations were answered and that no flush has made safe.
#[derive(Clone, Debug, Default)]
pub(crate) struct AtRisk {
    ids: BTreeSet<u64>,
    /// A client's flush waits until these, and all before them, are safe.
    awaited: Option<u64>,
    has_changed: bool,
}

impl AtRisk {
    /// The operation of an intent is being answered.
    pub(crate) fn begin(&mut self, id: u64) {
        self.ids.insert(id);
    }

    /// A client's flush waits for all that there are now; returns the last one.
    pub(crate) fn wait(&mut self) -> Option<u64> {
        let last = self.ids.last().copied();
        self.awaited = self.awaited.max(last);
        last
    }

    /// Whether some of what a flush waits for is not safe.
    pub(crate) fn holds_up_to(&self, awaited: u64) -> bool {
        self.ids.first().is_some_and(|&first| first <= awaited)
    }

    /// Whether a flush waits for any.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited.is_some_and(|awaited| self.holds_up_to(awaited))
    }

    /// It is safe.
    pub(crate) fn end(&mut self, id: u64) {
        self.has_changed |= self.ids.remove(&id);
    }

    /// The array has failed: none will be safe.
    pub(crate) fn fail(&mut self) {
        self.has_changed |= !self.ids.is_empty();
        self.ids.clear();
    }

    /// Whether flushes may have what they wait for.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_the_last_that_there_is_and_all_before_it() {
        let mut at_risk = AtRisk::default();
        assert_eq!((at_risk.wait(), at_risk.is_awaited()), (None, false));
        [3, 5].into_iter().for_each(|id| at_risk.begin(id));
        assert_eq!((at_risk.wait(), at_risk.is_awaited()), (Some(5), true));
        at_risk.begin(9);
        assert_eq!([2, 3, 9].map(|awaited| at_risk.holds_up_to(awaited)), [false, true, true]);
        at_risk.end(4);
        assert!(!at_risk.take_changed(), "it was not at risk");
        at_risk.end(5);
        assert!(at_risk.is_awaited() && at_risk.take_changed() && !at_risk.take_changed());
        at_risk.end(3);
        assert!(!at_risk.is_awaited(), "the last one came later");
        assert!(at_risk.take_changed());
        at_risk.fail();
        assert!(at_risk.take_changed() && !at_risk.holds_up_to(9));
    }
}
