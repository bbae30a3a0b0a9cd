//! `level`: read from the drives that will answer soonest, and never wait for a retry that redundancy
//! can replace. `docs/level.md` explains it with its mathematics and measurements.
//!
//! ```text
//!   w[j]  = (queued + inside + 1) service[j]                       the predicted wait
//!   slow  = at most k drives that sit out, or have w > 3 median(w) and service > 1.5 median(service),
//!           the longest w first
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
use levelhead_units::{DriveIdx, DriveSet};

use super::{Again, AnswerWhen, First, Late, Plan, Surplus, View};
use crate::tau::{DriveView, Share};

/// A drive is slow if its predicted wait is more than this many times the median.
const SLOW_WAIT: f64 = 3.0;

/// And if one command of it takes more than this many times the median: a queue is no fault of the
/// drive's.
const SLOW_PACE: f64 = 1.5;

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
    /// Hardly any while an old request counts on one inside it: a drive that may choose among many
    /// commands passes by the unlucky ones for long.
    Aging,
}

impl Level {
    /// As it is without options.
    pub const DEFAULT: Self = Self { admission: Admission::Aging };

    /// All forms, by the names of the command line.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::DEFAULT, "level"), (Self { admission: Admission::Always }, "level:no-admission")];

    /// The plan for one read.
    pub fn decide(self, view: &View<'_>) -> Plan {
        let View { shares, spare, sat_out, by_hand, .. } = *view;
        let aside = slow(shares, spare, sat_out, by_hand);
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

/// Drives to be done without, `spare` at most: those that somebody sat out, and the worst of those that
/// the array sat out or that are slow now. A drive that sits out has no queue, so it may be the better
/// one while another is in trouble.
pub fn slow(shares: &[Share], spare: usize, sat_out: DriveSet, by_hand: DriveSet) -> DriveSet {
    if by_hand.len() as usize >= spare {
        return by_hand;
    }
    let wait_max = SLOW_WAIT * median(shares, DriveView::wait);
    let pace_max = SLOW_PACE * median(shares, |drive| drive.pace);
    let mut aside = by_hand;
    for _ in by_hand.len() as usize..spare {
        let is_slow = |share: &&Share| {
            let Share { idx, drive, .. } = **share;
            let lags = drive.wait() > wait_max && drive.pace > pace_max;
            (lags || sat_out.contains(idx)) && !aside.contains(idx)
        };
        let by_wait =
            |left: &&Share, right: &&Share| left.drive.wait().total_cmp(&right.drive.wait());
        let Some(worst) = shares.iter().filter(is_slow).max_by(by_wait) else { break };
        aside = aside.with(worst.idx);
    }
    aside
}

/// The lower median of what `of` says of each drive.
fn median(shares: &[Share], of: impl Fn(&DriveView) -> f64) -> f64 {
    let mut values = [0.0; DriveIdx::MAX as usize];
    let values = &mut values[..shares.len()];
    if values.is_empty() {
        return 0.0;
    }
    values.iter_mut().zip(shares).for_each(|(value, share)| *value = of(&share.drive));
    let middle = (values.len() - 1) / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
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
        let [sat_out, by_hand, persistent] = [DriveSet::EMPTY; 3];
        Level::DEFAULT.decide(&View { shares, spare, sat_out, by_hand, persistent })
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
    fn one_extra_read_pays_from_one_second_trip_in_fifty_on() {
        let first = |failure_rate| {
            let mut shares = shares([2, 2, 2, 2, 2, 0]);
            shares.iter_mut().for_each(|share| share.drive.failure_rate = failure_rate);
            decide(&shares, 1).first
        };
        assert_eq!(first(0.0018), First::Wanted, "ten sectors: 1.8 %");
        assert_eq!(first(0.0023), First::Group, "ten sectors: 2.3 %");
    }

    #[test]
    fn what_a_slow_drive_would_give_does_not_make_the_group_dearer() {
        let mut shares = shares([2, 2, 2, 2, 2, 0]);
        shares[5].drive.pace = 0.060;
        let plan = decide(&shares, 2);
        assert_eq!(plan.aside, DriveSet::EMPTY.with(DriveIdx::new(5)));
        assert_eq!(plan.first, First::Group, "the other five are asked anyway");
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
    fn of_a_drive_that_sits_out_and_a_slow_one_the_one_with_the_longer_wait_is_done_without() {
        let (out, other) = (DriveIdx::new(2), DriveIdx::new(4));
        let only = |drive| DriveSet::EMPTY.with(drive);
        let mut shares = shares([2; 6]);
        // It has been quick again for a while: its probes say so.
        shares[2].drive.queued = 0.0;
        assert_eq!(
            slow(&shares, 1, only(out), DriveSet::EMPTY),
            only(out),
            "no other is in trouble"
        );
        shares[4].drive.pace = 0.060;
        assert_eq!(slow(&shares, 1, only(out), DriveSet::EMPTY), only(other));
        assert_eq!(slow(&shares, 2, only(out), DriveSet::EMPTY), only(out).with(other));
        assert_eq!(slow(&shares, 1, only(out), only(out)), only(out), "somebody wants it so");
        // Both are slow: reads go where the wait is shorter.
        shares[2].drive.pace = 0.060;
        assert_eq!(slow(&shares, 1, only(out), DriveSet::EMPTY), only(other));
        shares[2].drive.queued = 5.0;
        assert_eq!(slow(&shares, 1, only(out), DriveSet::EMPTY), only(out));
    }

    #[test]
    fn drives_known_for_nothing_are_all_alike() {
        let (idx, drive) = (DriveIdx::new(0), DriveView::default());
        let shares = [Share { idx, drive, wanted: 1 }; 4];
        assert!(decide(&shares, 1).aside.is_empty());
        assert!(slow(&[], 1, DriveSet::EMPTY, DriveSet::EMPTY).is_empty());
    }
}
