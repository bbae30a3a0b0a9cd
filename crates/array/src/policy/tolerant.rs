//! ToleRAID: reads that tolerate a late drive, or two (`[TAIL16]` sec. 5).
//!
//! | strategy | asks first | when a drive is late |
//! |---|---|---|
//! | `reactive` | the requested data | as much more as decodes without it |
//! | `proactive-1` | all data and one drive's worth of redundancy | it is waited for |
//! | `proactive-2` | all data and two drives' worth of redundancy | it is waited for |
//! | `adaptive` | `reactive`, until the same drive was late [`REPEATS`] times in a row; then `proactive-1`, or `-2` if there are two such drives, until they are in time again | |
//!
//! A drive is late when it has not answered [`SLOW_TIMES`] times the median latency after the read
//! began. The median is that of the drives of the same read: known once half of them have answered.
//! The paper reads whole stripes from fixed parity drives. Here any parity will do, and a read may be
//! of a part of a stripe: then a median of its own needs three drives, and fewer take the median of
//! the array's recent commands, and a drive for late only if it is slower than the array's others, too, or
//! each long queue would bring more reads; and `proactive` takes the codewords' other data, too, without which
//! redundancy decodes nothing.
//!
//! # Where it collapses
//!
//! The paper's rule compares latencies, and behind queues a quarter of them are twice the median although no
//! drive is slow. Reads of three drives or more are hedged for it: with 64 reads of 24 kB outstanding on six
//! healthy drives `reactive` issues 1.45 times the reads and has 0.76 of the rate. It is the paper's, and kept.
//!
//! # Differs from the paper
//!
//! What still waits in the host's queues at the answer is withdrawn, so that no queue grows without
//! bound. A command withdrawn after its time counts as late.

use std::fmt;

use levelhead_units::{DriveIdx, DriveSet};

use super::{AnswerWhen, First, Late, Plan};

/// ST: a drive this many times as slow as its fellows is late.
pub const SLOW_TIMES: u8 = 2;

/// SR: a drive that was late this number of times in a row is persistently slow. The paper does not give the number.
pub const REPEATS: u8 = 3;

/// The strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerant {
    /// Asks for more when a drive is late.
    Reactive,
    /// Tolerates one late drive, always.
    Proactive1,
    /// Tolerates two late drives, always.
    Proactive2,
    /// Reactive, and proactive while drives are persistently slow.
    Adaptive,
}

impl Tolerant {
    /// All of them, by the names of the command line.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Reactive, "reactive"),
        (Self::Proactive1, "proactive-1"),
        (Self::Proactive2, "proactive-2"),
        (Self::Adaptive, "adaptive"),
    ];

    /// The plan while these drives are persistently slow.
    pub fn decide(self, persistent: DriveSet) -> Plan {
        let spare = match self {
            Self::Reactive => 0,
            Self::Proactive1 => 1,
            Self::Proactive2 => 2,
            Self::Adaptive => persistent.len().min(2) as u8,
        };
        let (first, late) = match spare {
            0 => (First::Wanted, Late::TimesMedian(SLOW_TIMES)),
            // Late drives are noted, or the array would not see that the slow drive has recovered.
            spare if self == Self::Adaptive => (First::Spare(spare), Late::Noted(SLOW_TIMES)),
            spare => (First::Spare(spare), Late::Never),
        };
        Plan { first, late, answer: AnswerWhen::Decodable, ..Plan::NORMAL }
    }
}

impl fmt::Display for Tolerant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(one, _)| one == self).map_or("", |(_, name)| name))
    }
}

/// How many times in a row each drive was late.
#[derive(Clone, Debug)]
pub(crate) struct Streaks {
    late: Vec<u8>,
    persistent: DriveSet,
}

impl Streaks {
    pub(crate) fn new(drives: usize) -> Self {
        Self { late: vec![0; drives], persistent: DriveSet::EMPTY }
    }

    /// A drive was late with its part of a read, or in time.
    pub(crate) fn note(&mut self, drive: DriveIdx, is_late: bool) {
        let streak = &mut self.late[drive.as_usize()];
        let this = DriveSet::EMPTY.with(drive);
        *streak = if is_late { streak.saturating_add(1) } else { 0 };
        if *streak >= REPEATS {
            self.persistent = self.persistent.or(this);
        } else if !is_late {
            self.persistent = self.persistent.without(this);
        }
    }

    /// A drive is lost.
    pub(crate) fn forget(&mut self, drive: DriveIdx) {
        self.note(drive, false);
    }

    pub(crate) fn persistent(&self) -> DriveSet {
        self.persistent
    }
}

/// Which of the answers of a read, in their order, gives the median of the `asked` drives: the lower one
/// of two. A read of fewer than three drives has none of its own.
pub(crate) fn rank(asked: usize) -> Option<usize> {
    (asked >= 3).then(|| (asked - 1) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_late_three_times_in_a_row_is_persistent_until_it_is_in_time() {
        let (mut streaks, drive) = (Streaks::new(6), DriveIdx::new(4));
        for is_late in [true, true, false, true, true] {
            streaks.note(drive, is_late);
        }
        assert!(streaks.persistent().is_empty());
        streaks.note(drive, true);
        assert!(streaks.persistent().contains(drive));
        assert_eq!(Tolerant::Adaptive.decide(streaks.persistent()).first, First::Spare(1));
        streaks.note(drive, false);
        assert_eq!(Tolerant::Adaptive.decide(streaks.persistent()).first, First::Wanted);
    }

    #[test]
    fn two_persistent_drives_make_adaptive_proactive_2() {
        let persistent = DriveSet::first(2);
        let first = Tolerant::Adaptive.decide(persistent).first;
        assert_eq!(first, Tolerant::Proactive2.decide(persistent).first);
    }

    #[test]
    fn median_is_known_once_half_have_answered() {
        assert_eq!([2, 3, 5, 6].map(rank), [None, Some(1), Some(2), Some(2)]);
    }
}
