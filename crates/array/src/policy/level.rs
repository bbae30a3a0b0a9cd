//! `level`: read from the drives that will answer soonest, and never wait for a retry that redundancy
//! can replace. `docs/level.md` explains it with its mathematics and measurements.
//!
//! ```text
//!   w[j]  = (queued + inside + 1) service[j]                       the predicted wait
//!   slow  = at most k drives with w > 3 median(w) and service > 1.5 median(service), worst first
//!   l     = drives with requested data, n = drives of the group
//!
//!   n - l = 0                       whole group: the extra answer is free
//!   n - l <= k and it pays          whole group, but for slow drives
//!   a drive among the l is slow     what it holds is computed from the others
//!   else                            the l drives
//! ```
//!
//! All of it with retries off; the answer goes out as soon as every codeword decodes. What a slow drive
//! still owes is not counted on (the *tardy rule*). Sectors that were lost are computed from the rest of
//! the group, which is fetched at the head of the queues, and only if that cannot do, the fewest of them
//! are read again with retries, on drives that are not slow.
//!
//! The whole group *pays* if a second trip is likelier than one read in [`SECOND_TRIP_MIN`]: some sector
//! of the read fails with `f = 1 - (1 - p)^b`, `p` being what was learnt of each drive.

use std::fmt;

use levelhead_block::Effort;
use levelhead_units::{DriveSet, Nanos};

use super::{Again, AnswerWhen, First, Late, Plan, Surplus, View};
use crate::quantile::Quantile;
use crate::tau::{DriveView, Share};

/// A drive is slow if its predicted wait is more than this many times the median.
const SLOW_WAIT: f64 = 3.0;

/// And if one command of it takes more than this many times the median: a queue is no fault of the
/// drive's.
const SLOW_SERVICE: f64 = 1.5;

/// From this probability of a second trip on, reading the whole group at once pays.
const SECOND_TRIP_MIN: f64 = 0.02;

/// A drive that has not answered after so many times the array's p99 is not waited for.
const LATE_TAILS: u8 = 2;

/// The policy and its option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// When drives are given new commands.
    pub admission: Admission,
}

/// When a drive is given new commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Whenever its window has room.
    Always,
    /// Not while a part of an old request is inside it: a drive that may choose among many commands
    /// passes by the unlucky ones for long.
    Aging,
}

/// Which requests are old: those slower than all but a share of the others.
///
/// An old request holds up every drive that it has a part in, and each of them with all that waits
/// there, so the share goes down with the square of the drives that a request takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ages {
    latency: Quantile,
    /// How many drives a read takes, lately.
    drives: f64,
}

/// The share is so much over the square of the drives, within bounds.
const OLD_SHARE: f64 = 1.1;
const OLD_SHARE_MIN: f64 = 0.01;
const OLD_SHARE_MAX: f64 = 0.10;

/// Reads over which the number of drives is averaged.
const DRIVES_MEMORY: f64 = 64.0;

impl Default for Ages {
    fn default() -> Self {
        Self { latency: Quantile::new(1.0 - OLD_SHARE_MAX), drives: 1.0 }
    }
}

impl Ages {
    /// A read of so many drives took so long.
    pub(crate) fn note(&mut self, latency: Nanos, drives: u32) {
        self.drives += (f64::from(drives) - self.drives) / DRIVES_MEMORY;
        let share = OLD_SHARE / (self.drives * self.drives).max(1.0);
        self.latency.note_at(1.0 - share.clamp(OLD_SHARE_MIN, OLD_SHARE_MAX), latency);
    }

    /// From this age on a request is old, once that is known.
    pub(crate) fn old(self) -> Option<Nanos> {
        self.latency.get()
    }
}

impl Level {
    /// As it is without options.
    pub const DEFAULT: Self = Self { admission: Admission::Aging };

    /// All forms, by the names of the command line.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::DEFAULT, "level"), (Self { admission: Admission::Always }, "level:no-admission")];

    /// The plan for one read.
    pub fn decide(self, view: &View<'_>) -> Plan {
        let View { shares, spare, sat_out, .. } = *view;
        let aside = slow(shares, spare, sat_out);
        let slack = spare.saturating_sub(aside.len() as usize);
        let is_extra = |share: &&Share| share.wanted == 0 && !aside.contains(share.idx);
        let extra = shares.iter().filter(is_extra).count();
        let pays = || extra == 0 || second_trip(shares) > SECOND_TRIP_MIN;
        let is_group = extra <= slack && slack > 0 && pays();
        Plan {
            first: if is_group { First::Group } else { First::Wanted },
            // Without slack what fails must be retried: at once rather than on a second trip.
            effort: if slack > 0 { Effort::Fast } else { Effort::Full },
            answer: AnswerWhen::Decodable,
            surplus: Surplus::Removed,
            late: Late::TimesTail(LATE_TAILS),
            again: Again::Fewest,
            aside,
        }
    }
}

/// Drives to be done without: those that sit out, and the slow ones among the others, `spare` in all.
pub fn slow(shares: &[Share], spare: usize, sat_out: DriveSet) -> DriveSet {
    let mut aside = sat_out;
    if sat_out.len() as usize >= spare {
        return aside;
    }
    let wait_max = SLOW_WAIT * median(shares, DriveView::wait);
    let service_max = SLOW_SERVICE * median(shares, |drive| drive.pace);
    for _ in sat_out.len() as usize..spare {
        let is_slow = |share: &&Share| {
            let drive = &share.drive;
            drive.wait() > wait_max && drive.pace > service_max && !aside.contains(share.idx)
        };
        let worst = shares
            .iter()
            .filter(is_slow)
            .max_by(|left, right| left.drive.wait().total_cmp(&right.drive.wait()));
        let Some(worst) = worst else { break };
        aside = aside.with(worst.idx);
    }
    aside
}

/// The lower median of what `of` says of each drive, without a copy: there are few of them.
fn median(shares: &[Share], of: impl Fn(&DriveView) -> f64) -> f64 {
    let rank = shares.len().saturating_sub(1) / 2;
    let is_median = |value: f64| {
        let below = shares.iter().filter(|share| of(&share.drive) < value).count();
        let up_to = shares.iter().filter(|share| of(&share.drive) <= value).count();
        below <= rank && rank < up_to
    };
    shares.iter().map(|share| of(&share.drive)).find(|&value| is_median(value)).unwrap_or(0.0)
}

/// The probability that some requested sector is not given at the first attempt.
fn second_trip(shares: &[Share]) -> f64 {
    let log_good: f64 = shares
        .iter()
        .map(|share| f64::from(share.wanted) * (-share.drive.failure_rate.min(0.99)).ln_1p())
        .sum();
    -log_good.exp_m1()
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(one, _)| one == self).map_or("", |(_, name)| name))
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::DriveIdx;

    use super::*;

    fn shares(wanted: [u32; 6]) -> Vec<Share> {
        let drive = DriveView { queued: 3.0, pace: 0.006, ..DriveView::default() };
        (0..6)
            .map(|at| Share { idx: DriveIdx::from_usize(at), drive, wanted: wanted[at] })
            .collect()
    }

    fn decide(shares: &[Share], spare: usize) -> Plan {
        let (sat_out, persistent) = (DriveSet::EMPTY, DriveSet::EMPTY);
        Level::DEFAULT.decide(&View { shares, spare, sat_out, persistent })
    }

    #[test]
    fn healthy_drives_are_asked_for_nothing_extra() {
        assert_eq!(decide(&shares([2; 6]), 1).first, First::Group, "nothing is extra");
        assert_eq!(decide(&shares([2, 2, 2, 2, 2, 0]), 1).first, First::Wanted);
        assert_eq!(decide(&shares([2, 0, 0, 0, 0, 0]), 1).first, First::Wanted);
    }

    #[test]
    fn one_extra_read_pays_where_sectors_fail_and_four_do_not() {
        let mut wide = shares([2, 2, 2, 2, 2, 0]);
        let mut narrow = shares([2, 0, 0, 0, 0, 0]);
        for share in wide.iter_mut().chain(&mut narrow) {
            share.drive.failure_rate = 0.02;
        }
        assert_eq!(decide(&wide, 1).first, First::Group);
        assert_eq!(decide(&narrow, 1).first, First::Wanted);
    }

    #[test]
    fn a_queue_alone_makes_no_drive_slow_and_at_most_the_spare_ones_are_set_aside() {
        let mut shares = shares([2; 6]);
        shares[1].drive.queued = 90.0;
        assert!(decide(&shares, 1).aside.is_empty());
        shares[3].drive.pace = 0.060;
        assert_eq!(decide(&shares, 1).aside, DriveSet::EMPTY.with(DriveIdx::new(3)));
        shares[4].drive.pace = 0.090;
        assert_eq!(decide(&shares, 1).aside, DriveSet::EMPTY.with(DriveIdx::new(4)));
        let both = DriveSet::EMPTY.with(DriveIdx::new(3)).with(DriveIdx::new(4));
        assert_eq!(decide(&shares, 2).aside, both);
        assert_eq!(decide(&shares, 2).effort, Effort::Full, "nothing is left to decode with");
        assert!(decide(&shares, 0).aside.is_empty());
    }

    #[test]
    fn drives_known_for_nothing_are_all_alike() {
        let (idx, drive) = (DriveIdx::new(0), DriveView::default());
        let shares = [Share { idx, drive, wanted: 1 }; 4];
        assert!(decide(&shares, 1).aside.is_empty());
        assert!(slow(&[], 1, DriveSet::EMPTY).is_empty());
    }
}
