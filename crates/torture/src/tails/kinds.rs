//! Kinds of late reads, told apart by what a run has shown of their ways: which request held their stripes, when drives
//! were given commands for them, and which command ended last.

use std::fmt;

use levelhead_trace::{Arrival, Kind as Access};
use levelhead_units::Instant;

use super::Aim;
use super::draw::Script;
use super::pass::{Outcomes, Way};

/// What kept a read for the largest part of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A drive that hung: no others were asked for what it did not return.
    Hung,
    /// The queues of its drives.
    Queued,
    /// A write in place to one of its stripes: the array has no journal.
    Unjournaled,
    /// A write to one of its stripes, with too few rings besides those of the bad drives (a mirror).
    FewRings,
    /// A write to one of its stripes that waited for a bad drive although there are rings enough.
    Held,
    /// Work of the array's own that has one of its stripes: a scrub, a rebuild, a repair.
    OwnWork,
    /// Drives that were asked late, after others had not answered.
    AskedLate,
    /// Drives that were asked in time and are slow.
    Slow,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Hung,
        Self::Queued,
        Self::Unjournaled,
        Self::FewRings,
        Self::Held,
        Self::OwnWork,
        Self::AskedLate,
        Self::Slow,
    ];

    /// Whether the array is known to have it. What repairs one takes its aim away.
    pub fn is_known(self) -> bool {
        Aim::KNOWN.iter().any(|&(known, ..)| known == self)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hung => "a drive that hangs",
            Self::Queued => "queues",
            Self::Unjournaled => "a write without a journal",
            Self::FewRings => "a write with too few rings",
            Self::Held => "a write with rings enough",
            Self::OwnWork => "the array's own work",
            Self::AskedLate => "drives asked late",
            Self::Slow => "drives that are slow",
        })
    }
}

/// A run, to tell of each request what kept it.
#[derive(Clone, Copy)]
pub(super) struct Ways<'a> {
    pub(super) script: &'a Script,
    pub(super) arrivals: &'a [Arrival],
    pub(super) outcomes: &'a Outcomes,
}

impl Ways<'_> {
    /// What kept a request.
    pub(super) fn kind(&self, mut index: usize) -> Kind {
        loop {
            let (Arrival { at, kind, .. }, way) =
                (self.arrivals[index], &self.outcomes.ways[index]);
            let answered = self.answered(index);
            // The journal gives drives its records in its own name.
            let other = way.behind.iter().max_by_key(|&&other| self.answered(other));
            let free = other.map_or(at, |&other| self.answered(other).min(answered));
            let [first, last] = way.given.unwrap_or([free; 2]);
            let begins = first.saturating_since(at);
            let asks = last.saturating_since(first);
            let waits = answered.saturating_since(last);
            let is_held = begins >= asks.max(waits);
            // Ones that were answered soon have not held it up.
            let is_behind = is_held && free.saturating_since(at) * 2 >= begins;
            match (other.filter(|_| is_behind), kind) {
                (Some(&other), _) => index = other,
                (None, _) if is_held && way.is_beside_own_work => return Kind::OwnWork,
                (None, Access::Write) if !self.script.has_journal => return Kind::Unjournaled,
                (None, Access::Write) if !self.script.goes_round() => return Kind::FewRings,
                (None, Access::Write) => return Kind::Held,
                (None, Access::Read) if is_held => return Kind::Queued,
                (None, Access::Read) if self.has_hung(way, last, answered) => return Kind::Hung,
                (None, Access::Read) if asks >= waits => return Kind::AskedLate,
                (None, Access::Read) => return Kind::Slow,
            }
        }
    }

    fn answered(&self, index: usize) -> Instant {
        self.arrivals[index].at + self.outcomes.latencies[index]
    }

    /// Whether the drive whose command ended last hung until then.
    fn has_hung(&self, way: &Way, asked: Instant, answered: Instant) -> bool {
        let mut mishaps = self.script.mishaps.iter();
        let mishap = mishaps.find(|mishap| Some(mishap.drive) == way.last);
        let mut hangs = mishap.into_iter().flat_map(|mishap| &mishap.hangs);
        hangs.any(|&[_, until]| asked < until && until <= answered)
    }
}
