//! A client's request on its way through the engine: how it is answered whatever happens, and how long
//! the last ones took.

use std::collections::VecDeque;

use levelhead_block::semaphore::Permit;
use levelhead_block::{Command, Data, Done, Outcome, Reply};
use levelhead_stats::Summary;
use levelhead_units::{Instant, Nanos};

/// How many latencies are kept.
const LATENCIES: usize = 4_096;

/// A request that has not been answered. If it is dropped, it is answered as [`Outcome::Gone`]: no
/// client waits for an engine that has ended.
pub(crate) struct Pending {
    pub(crate) command: Command,
    pub(crate) submitted: Instant,
    /// Absent once it has been answered.
    done: Option<(Done, Permit)>,
}

impl Pending {
    pub(crate) fn new(command: Command, submitted: Instant, done: Done, permit: Permit) -> Self {
        Self { command, submitted, done: Some((done, permit)) }
    }

    /// Answers it; there is room for another one before the client hears of it.
    pub(crate) fn answer(mut self, outcome: Outcome, data: Data) {
        let (done, permit) = self.done.take().expect("a request is answered once");
        drop(permit);
        done(Reply { outcome, data, reason: None });
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some((done, permit)) = self.done.take() {
            drop(permit);
            done(Reply::gone("the array is not running any more"));
        }
    }
}

/// What a client may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// To read.
    Read,
    /// To write, zeroes included.
    Write,
    /// To make safe what was written.
    Flush,
    /// To forget.
    Trim,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Trim];

    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
        }
    }

    fn of(command: &Command) -> Self {
        match command {
            Command::Read { .. } => Self::Read,
            Command::Write { .. } | Command::WriteZeroes { .. } => Self::Write,
            Command::Flush => Self::Flush,
            Command::Trim { .. } => Self::Trim,
        }
    }
}

/// How the requests of one kind have ended since the array was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Those that took at most as long as the bound of their place in [`Answered::BOUNDS`] and longer than the one before;
    /// in the last place those that took longer than all bounds.
    pub counts: [u64; Self::BOUNDS.len() + 1],
    /// How long they took together.
    pub total: Nanos,
    /// Those that did not give or store all that they asked for.
    pub failed: u64,
}

impl Answered {
    /// The bounds that latencies are counted by.
    pub const BOUNDS: [Nanos; 18] = {
        let micros = [
            100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
            1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
        ];
        let mut bounds = [Nanos::ZERO; 18];
        let mut at = 0;
        while at < bounds.len() {
            bounds[at] = Nanos::from_micros(micros[at]);
            at += 1;
        }
        bounds
    };

    fn note(&mut self, outcome: &Outcome, latency: Nanos) {
        self.counts[Self::BOUNDS.partition_point(|&bound| bound < latency)] += 1;
        self.total += latency;
        self.failed += u64::from(!outcome.is_good());
    }
}

/// The latencies of the last requests, and how all of them ended.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    last: VecDeque<Nanos>,
    answered: [Answered; Operation::ALL.len()],
}

impl Latencies {
    pub(crate) fn note(&mut self, command: &Command, outcome: &Outcome, latency: Nanos) {
        if self.last.len() == LATENCIES {
            self.last.pop_front();
        }
        self.last.push_back(latency);
        self.answered[Operation::of(command) as usize].note(outcome, latency);
    }

    pub(crate) fn summary(&self) -> Summary {
        let mut latencies: Vec<Nanos> = self.last.iter().copied().collect();
        Summary::of(&mut latencies)
    }

    /// In the order of [`Operation::ALL`].
    pub(crate) fn answered(&self) -> [Answered; Operation::ALL.len()] {
        self.answered
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::Effort;
    use levelhead_units::{Extent, Lba, Sectors};

    use super::*;

    #[test]
    fn latencies_are_counted_by_the_bound_that_they_do_not_exceed() {
        assert!(Answered::BOUNDS.is_sorted());
        let extent = Extent::new(Lba::ZERO, Sectors::new(1));
        let read = Command::Read { extent, effort: Effort::Full };
        let mut latencies = Latencies::default();
        for micros in [0, 99, 100, 101, 250, 60_000_000, 60_000_001] {
            latencies.note(&read, &Outcome::GOOD, Nanos::from_micros(micros));
        }
        latencies.note(&Command::Flush, &Outcome::Gone, Nanos::from_micros(400));
        let [read, write, flush, trim] = latencies.answered();
        let mut counts = [0; 19];
        (counts[0], counts[1], counts[17], counts[18]) = (3, 2, 1, 1);
        let total = Nanos::from_micros(99 + 100 + 101 + 250 + 60_000_000 + 60_000_001);
        assert_eq!(read, Answered { counts, total, failed: 0 });
        assert_eq!((flush.counts[2], flush.failed), (1, 1));
        assert_eq!((write, trim), (Answered::default(), Answered::default()));
        assert_eq!(latencies.summary().count, 8);
        let idx = Operation::ALL.map(|operation| operation as usize);
        assert_eq!(idx, [0, 1, 2, 3]);
    }
}
