//! How much of the drives' time and of memory the array's own work may use.
//!
//! ```text
//!   clients wait:     step ... pause ... step ... pause ...
//!   no client waits:  step step step
//! ```
//!
//! # Invariants
//!
//! - B1. One step is under way at a time, of all the array's own work together.
//! - B2. While clients wait, a step begins no sooner than a pause after the end of the last one.

use levelhead_units::{Instant, Nanos, Sectors};

use crate::shape::Layout;

/// How much of the drives' time and of memory the array's own work may use: resync, and all other work that no
/// client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Sectors of every drive that one step covers at most, or one stripe if that is more.
    pub step: Sectors,
    /// Sectors of all drives together that one step covers at most, or one stripe if that is more.
    pub memory: Sectors,
    /// The pause between two steps while clients wait.
    pub pause: Nanos,
    /// How long what a rebuild has copied is not recorded at most.
    pub mark: Nanos,
}

impl Budget {
    /// 4 MiB of every drive and 64 MiB of all together; 250 ms; half a minute.
    pub const DEFAULT: Self = Self {
        step: Sectors::new(1 << 10),
        memory: Sectors::new(1 << 14),
        pause: Nanos::from_millis(250),
        mark: Nanos::from_secs(30),
    };

    /// How many stripes one step covers.
    pub(crate) fn stripes(self, layout: &Layout) -> u64 {
        let spec = layout.spec();
        let sectors = self.step.get().min(self.memory.get() / spec.drives() as u64);
        layout.stripes_in(sectors / spec.chunk().get()).max(1)
    }
}

/// When the next step may begin.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    budget: Budget,
    /// Whether steps begin by themselves.
    is_automatic: bool,
    next: Instant,
    is_under_way: bool,
}

impl Pacer {
    /// Without a budget nothing begins by itself, and a step has the default size.
    pub(crate) fn new(budget: Option<Budget>) -> Self {
        Self {
            budget: budget.unwrap_or(Budget::DEFAULT),
            is_automatic: budget.is_some(),
            next: Instant::ZERO,
            is_under_way: false,
        }
    }

    /// Whether the array's own work begins by itself.
    pub(crate) fn is_automatic(&self) -> bool {
        self.is_automatic
    }

    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    /// When the next step begins by itself while clients wait.
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.is_automatic && !self.is_under_way).then_some(self.next)
    }

    /// Whether a step begins by itself now, where `waiting` requests are not answered.
    pub(crate) fn may_begin(&self, now: Instant, waiting: usize) -> bool {
        self.next().is_some_and(|next| waiting == 0 || next <= now)
    }

    pub(crate) fn note_begin(&mut self) {
        assert!(!self.is_under_way, "B1");
        self.is_under_way = true;
    }

    pub(crate) fn note_end(&mut self, now: Instant) {
        assert!(self.is_under_way, "B1");
        self.is_under_way = false;
        self.next = now + self.budget.pause; // B2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_each_other_at_once_unless_clients_wait() {
        let at = |millis| Instant::ZERO + Nanos::from_millis(millis);
        let mut pacer = Pacer::new(Some(Budget::DEFAULT));
        assert!(pacer.may_begin(at(0), 5), "nothing was done yet");
        pacer.note_begin();
        assert!(!pacer.may_begin(at(900), 0), "B1");
        pacer.note_end(at(1_000));
        assert!(pacer.may_begin(at(1_000), 0));
        assert!(!pacer.may_begin(at(1_249), 1), "B2");
        assert!(pacer.may_begin(at(1_250), 1));
        let mut by_hand = Pacer::new(None);
        assert!(!by_hand.may_begin(at(9_000), 0));
        by_hand.note_begin();
        by_hand.note_end(at(9_000));
        assert_eq!(by_hand.next(), None);
    }

    #[test]
    fn step_is_bounded_by_each_drive_and_by_all_of_them_and_is_one_stripe_at_least() {
        let stripes = |text: &str| {
            let layout = Layout::new(text.parse().unwrap(), Sectors::new(1 << 20));
            Budget::DEFAULT.stripes(&layout)
        };
        assert_eq!(stripes("raid5:5+1,chunk=64KiB"), 64, "4 MiB of each of six drives");
        assert_eq!(stripes("raid6:30+2,chunk=64KiB"), 32, "64 MiB of 32 drives");
        assert_eq!(stripes("raid5:2+1,chunk=8MiB"), 1);
        assert_eq!(stripes("raid1:2,chunk=64KiB"), 64);
        assert_eq!(stripes("raid10:8,chunk=64KiB"), 256, "four in each row of chunks");
    }
}
