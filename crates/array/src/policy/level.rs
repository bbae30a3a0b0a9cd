//! `level`: read from the drives that will answer soonest, wait for no retry that redundancy can replace more
//! cheaply, and spend no capacity that is not there. `docs/level.md` explains it with its mathematics and
//! measurements.
//!
//! ```text
//!   w[j]  = (queued + inside + 1) service[j]                       the predicted wait
//!   lags  = w > 1.5 median(w) and service > 1.5 median(service), each as if alone in its drive
//!   slow  = at most k drives that sit out or, where the read leaves some drive out, lag; the longest w first, as long as
//!           reading the others costs less
//!   l     = drives with requested data, n = drives of the group
//!
//!   mean service under 30 us        the l drives: the host would spend more than it saves
//!   n - l = 0                       whole group: the extra answer is free
//!   it costs less                   whole group, but for slow drives; of a read that follows another one and meets no
//!                                   drive that lags: of those codewords alone of which it wants half or more
//!   a drive among the l is slow     what it holds is computed from the others
//!   else                            the l drives
//! ```
//!
//! [`cost`](super::cost) says what costs how much. Retries are off, unless retries at once cost less than a
//! second trip; the answer goes out as soon as every codeword decodes. What a slow drive
//! still owes is not counted on (the *tardy rule*). Sectors that were lost are computed from the rest of
//! the group, which is fetched at the head of the queues; and only if that cannot do, the fewest of them are read again with
//! retries, on drives that are not slow.

use std::fmt;
use std::str::FromStr;

use levelhead_block::Effort;
use levelhead_units::{DriveIdx, DriveSet};

use super::cost::Costs;
use super::{Again, AnswerWhen, First, Late, Plan, Surplus, View};
use crate::policy::tau::{DriveView, Share};

/// A drive lags if its predicted wait and its pace are both more than this multiple of the median: a long queue alone
/// does not make a drive slow.
const LAGS: f64 = 1.5;

/// The same for what a write reads: the way round a drive reads several others.
pub(crate) const LAGS_FOR_WRITES: f64 = 3.0;

/// The policy and its option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// How many reads healthy drives may be given beyond those that must be, in percent of these.
    pub extra_percent: u16,
}

/// The largest share of extra reads, in percent.
const EXTRA_PERCENT_MAX: u16 = 1_000;

impl Level {
    /// As it is without options.
    pub const DEFAULT: Self = Self { extra_percent: 5 };
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::DEFAULT => f.write_str("level"),
            Self { extra_percent } => write!(f, "level:extra-reads={extra_percent}%"),
        }
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
        let extra_percent =
            percent.filter(|&percent| percent <= EXTRA_PERCENT_MAX).ok_or_else(|| {
                format!(
                    "'{text}' is not a share of extra reads: expected 0% to {EXTRA_PERCENT_MAX}%"
                )
            })?;
        Ok(Self { extra_percent })
    }
}

/// The plan for one read.
pub(super) fn decide(view: &View<'_>) -> Plan {
    let lagging = lagging(view.shares, LAGS);
    let aside = slow(view, lagging);
    let slack = view.spare.saturating_sub(aside.len() as usize);
    let costs = Costs::of(view, aside);
    // Of a mirror one copy is read. A second one occupies a drive for as long as it saves the first one, and takes
    // both arms to the same place.
    let is_paid = !costs.is_healthy() || f64::from(costs.extra()) <= view.extra;
    let may_take_group = view.mirror.is_none() && slack > 0 && costs.may_save() && is_paid;
    let is_group = may_take_group && costs.group() < costs.wanted();
    // What the previous read asks for of the same codewords has passed under the head by then, and comes again after a rotation.
    let is_half = view.follows && lagging.is_empty() && costs.is_readable();
    let first = match (is_group, is_half) {
        (false, _) => First::Wanted,
        (true, false) => First::Group,
        (true, true) => First::GroupOfHalf,
    };
    // Without slack what fails must be retried: at once rather than on a second trip.
    let is_fast = slack > 0 && (first == First::Group || costs.is_fast());
    Plan {
        first,
        effort: if is_fast { Effort::Fast } else { Effort::Full },
        answer: AnswerWhen::Decodable,
        surplus: Surplus::Removed,
        late: Late::WhenSlow,
        again: Again::Fewest,
        aside,
        extra: if is_group && costs.is_healthy() { costs.extra() } else { 0 },
    }
}

/// The drives whose waits and paces are more than `times` the median.
pub(crate) fn lagging(shares: &[Share], times: f64) -> DriveSet {
    let wait_max = times * median(shares, DriveView::wait);
    let pace_max = times * median(shares, |drive| drive.pace_alone);
    let lags = |share: &&Share| {
        let Share { drive, .. } = share;
        drive.wait() > wait_max && drive.pace_alone > pace_max
    };
    shares.iter().filter(lags).map(|share| share.idx).collect()
}

/// The drives to set aside, `spare` at most: those that were sat out by hand, and of those that the array sat out
/// or that lag the ones with the longest waits, as long as reading the other drives instead costs less.
/// A drive that sits out has no queue. So it may be the better one while another is slow, and where all others
/// have long queues it is read.
fn slow(view: &View<'_>, lagging: DriveSet) -> DriveSet {
    let View { shares, spare, sat_out, by_hand, .. } = *view;
    if by_hand.len() as usize >= spare {
        return by_hand;
    }
    // A read of all drives, or one that has a choice of copies, waits for none that lags as it is.
    let may_lag = view.mirror.is_none() && shares.iter().any(|share| share.wanted == 0);
    let (mut aside, mut kept) = (by_hand, DriveSet::EMPTY);
    while (aside.len() as usize) < spare {
        let is_slow = |share: &&Share| {
            let is_open =
                !aside.or(kept).contains(share.idx) && view.can_spare(aside.with(share.idx));
            let lags = may_lag && lagging.contains(share.idx);
            (lags || sat_out.contains(share.idx)) && is_open
        };
        let by_wait =
            |left: &&Share, right: &&Share| left.drive.wait().total_cmp(&right.drive.wait());
        let Some(worst) = shares.iter().filter(is_slow).max_by(by_wait) else { break };
        let without = aside.with(worst.idx);
        // It is not missed where it has nothing that is requested and others are left to compute with.
        let is_free = worst.wanted == 0 && (without.len() as usize) < spare;
        if is_free || Costs::of(view, without).spares(worst) {
            aside = without;
        } else {
            kept = kept.with(worst.idx);
        }
    }
    aside
}

/// The lower median of what `of` says of each drive.
pub(crate) fn median(shares: &[Share], of: impl Fn(&DriveView) -> f64) -> f64 {
    let mut values = [0.0; DriveIdx::MAX as usize];
    let values = &mut values[..shares.len()];
    if values.is_empty() {
        return 0.0;
    }
    values.iter_mut().zip(shares).for_each(|(value, share)| *value = of(&share.drive));
    let middle = (values.len() - 1) / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use levelhead_units::DriveIdx;

    use super::*;
    use crate::policy::Arrivals;

    const PACE: f64 = 0.006;

    fn shares(wanted: [u32; 6]) -> Vec<Share> {
        let drive = DriveView {
            queued: 3.0,
            pace: PACE,
            pace_alone: PACE,
            retry_time: 0.025,
            ..DriveView::default()
        };
        (0..6)
            .map(|at| Share { idx: DriveIdx::from_usize(at), drive, wanted: wanted[at] })
            .collect()
    }

    /// Every drive has `queued` commands.
    fn queued(mut shares: Vec<Share>, queued: f64) -> Vec<Share> {
        shares.iter_mut().for_each(|share| share.drive.queued = queued);
        shares
    }

    fn failing(mut shares: Vec<Share>, rate: f64) -> Vec<Share> {
        shares.iter_mut().for_each(|share| share.drive.failure_rate = rate);
        shares
    }

    fn set_pace(share: &mut Share, pace: f64) {
        (share.drive.pace, share.drive.pace_alone) = (pace, pace);
    }

    fn view(shares: &[Share], spare: usize) -> View<'_> {
        let [sat_out, by_hand, persistent] = [DriveSet::EMPTY; 3];
        let seen = shares.iter().map(|share| share.drive.queued).sum::<f64>() / 6.0;
        let arrivals = Arrivals::Independent;
        let mirror = None;
        View {
            shares,
            spare,
            mirror,
            arrivals,
            window: 32.0,
            seen,
            extra: f64::INFINITY,
            follows: false,
            sat_out,
            by_hand,
            persistent,
        }
    }

    fn decide(shares: &[Share], spare: usize) -> Plan {
        super::decide(&view(shares, spare))
    }

    const WIDE: [u32; 6] = [2, 2, 2, 2, 2, 0];
    const NARROW: [u32; 6] = [1, 0, 0, 0, 0, 0];

    #[test]
    fn healthy_drives_are_asked_for_nothing_extra_where_others_wait() {
        for waiting in [16.0, 30.0, 600.0] {
            let shares = |wanted| queued(shares(wanted), waiting);
            assert_eq!(decide(&shares([2; 6]), 1).first, First::Group, "nothing is extra");
            assert_eq!(decide(&shares(WIDE), 1).first, First::Wanted, "{waiting}");
            assert_eq!(decide(&shares([1, 1, 1, 0, 0, 0]), 1).first, First::Wanted, "{waiting}");
            assert_eq!(decide(&shares(NARROW), 1).first, First::Wanted, "{waiting}");
        }
    }

    #[test]
    fn an_idle_array_asks_the_whole_group_for_wide_reads_and_not_for_narrow_ones() {
        let first = |wanted| decide(&queued(shares(wanted), 0.0), 1).first;
        assert_eq!(first(WIDE), First::Group);
        assert_eq!(first([1, 1, 1, 0, 0, 0]), First::Group);
        assert_eq!(first(NARROW), First::Wanted);
    }

    /// Memory, and not disks: computing takes longer than reading.
    #[test]
    fn drives_as_fast_as_the_host_are_asked_for_nothing_extra() {
        for (pace, first) in [(20e-6, First::Wanted), (40e-6, First::Group)] {
            let mut shares = queued(shares(WIDE), 0.0);
            shares.iter_mut().for_each(|share| set_pace(share, pace));
            assert_eq!(decide(&shares, 1).first, first, "{pace} s");
        }
    }

    #[test]
    fn one_extra_read_pays_where_sectors_fail_and_four_do_not() {
        assert_eq!(decide(&failing(shares(WIDE), 0.02), 1).first, First::Group);
        assert_eq!(decide(&failing(shares([2, 0, 0, 0, 0, 0]), 0.02), 1).first, First::Wanted);
    }

    #[test]
    fn retries_are_on_at_once_where_queues_are_long_and_many_reads_would_be_needed() {
        let effort =
            |wanted, waiting| decide(&failing(queued(shares(wanted), waiting), 0.02), 1).effort;
        assert_eq!(effort(NARROW, 0.5), Effort::Fast, "idle drives are asked for the rest");
        assert_eq!(effort(NARROW, 30.0), Effort::Full, "five reads more are dearer than a retry");
        assert_eq!(effort([1, 1, 1, 1, 0, 0], 30.0), Effort::Fast, "one read more is cheaper");
        let healthy = decide(&queued(shares(NARROW), 30.0), 1).effort;
        assert_eq!(healthy, Effort::Fast, "or nothing would be learnt");
    }

    #[test]
    fn what_a_slow_drive_would_give_does_not_make_the_group_dearer() {
        let mut shares = queued(shares(WIDE), 12.0);
        set_pace(&mut shares[5], 0.060);
        let plan = decide(&shares, 2);
        assert_eq!(plan.aside, DriveSet::EMPTY.with(DriveIdx::new(5)));
        assert_eq!(plan.first, First::Group, "the other five are asked anyway");
    }

    #[test]
    fn a_queue_alone_makes_no_drive_slow_and_at_most_the_spare_ones_are_set_aside() {
        let mut shares = shares(WIDE);
        shares[1].drive.queued = 90.0;
        assert!(decide(&shares, 1).aside.is_empty());
        shares[1].drive.queued = 3.0;
        set_pace(&mut shares[3], 0.060);
        assert_eq!(decide(&shares, 1).aside, DriveSet::EMPTY.with(DriveIdx::new(3)));
        set_pace(&mut shares[4], 0.090);
        assert_eq!(decide(&shares, 1).aside, DriveSet::EMPTY.with(DriveIdx::new(4)));
        let both = DriveSet::EMPTY.with(DriveIdx::new(3)).with(DriveIdx::new(4));
        assert_eq!(decide(&shares, 2).aside, both);
        assert_eq!(decide(&shares, 2).effort, Effort::Full, "nothing is left to decode with");
        assert!(decide(&shares, 0).aside.is_empty());
    }

    /// It asks for all, and goes on with the first that suffice.
    #[test]
    fn a_read_of_all_drives_sets_none_aside_that_only_lags() {
        let mut shares = shares([2; 6]);
        set_pace(&mut shares[3], 0.060);
        let plan = decide(&shares, 1);
        assert_eq!((plan.first, plan.effort), (First::Group, Effort::Fast));
        assert!(plan.aside.is_empty());
        let only = DriveSet::EMPTY.with(DriveIdx::new(3));
        assert_eq!(super::decide(&View { sat_out: only, ..view(&shares, 1) }).aside, only);
    }

    #[test]
    fn healthy_drives_are_given_no_more_extra_reads_than_were_saved() {
        let mut shares = queued(shares(WIDE), 0.0);
        let plan = |shares: &[Share], extra| super::decide(&View { extra, ..view(shares, 1) });
        assert_eq!((plan(&shares, 1.0).first, plan(&shares, 1.0).extra), (First::Group, 1));
        assert_eq!((plan(&shares, 0.9).first, plan(&shares, 0.9).extra), (First::Wanted, 0));
        shares = failing(shares, 0.02);
        assert_eq!((plan(&shares, 0.0).first, plan(&shares, 0.0).extra), (First::Group, 0));
    }

    /// The rest of what lies at its ends is what the read before and the one behind read, too.
    #[test]
    fn read_that_follows_another_asks_for_no_redundancy_at_its_ends() {
        let first =
            |shares: &[Share], follows| super::decide(&View { follows, ..view(shares, 2) }).first;
        let alike = queued(shares(WIDE), 0.0);
        assert_eq!(first(&alike, true), First::GroupOfHalf);
        assert_eq!(first(&alike, false), First::Group);
        assert_eq!(first(&failing(alike.clone(), 0.02), true), First::Group, "it will be needed");
        let mut lagging = alike;
        set_pace(&mut lagging[5], 0.060);
        assert_eq!(first(&lagging, true), First::Group, "it may be needed");
        assert_eq!(first(&shares(NARROW), true), First::Wanted);
    }

    #[test]
    fn where_sectors_fail_the_last_redundancy_is_not_spent_on_a_drive_that_lags() {
        let mut shares = shares(WIDE);
        set_pace(&mut shares[3], 0.014);
        let only = DriveSet::EMPTY.with(DriveIdx::new(3));
        assert_eq!(decide(&shares, 1).aside, only);
        let shares = failing(shares, 0.1);
        assert!(decide(&shares, 1).aside.is_empty(), "each loss would cost a retry");
        assert_eq!(decide(&shares, 2).aside, only, "another drive is left to compute with");
    }

    /// It has nothing that is requested, but without it a sector that fails is retried, by everybody behind it.
    #[test]
    fn drive_without_requested_data_is_the_last_redundancy_of_what_fails() {
        let aside = |shares: &[Share], spare| decide(shares, spare).aside;
        let only = DriveSet::EMPTY.with(DriveIdx::new(5));
        let mut shares = failing(shares(WIDE), 0.02);
        set_pace(&mut shares[5], 0.010);
        assert!(aside(&shares, 1).is_empty(), "85 ms there are less than 100 ms of a retry");
        assert_eq!(aside(&shares, 2), only, "another one is left");
        set_pace(&mut shares[5], 0.060);
        assert_eq!(aside(&shares, 1), only, "a retry is less than 510 ms");
    }

    #[test]
    fn a_slow_drive_is_read_where_the_others_have_no_time_to_spare() {
        let mut shares = shares([0, 0, 0, 1, 0, 0]);
        set_pace(&mut shares[3], 0.060);
        shares[3].drive.queued = 1.0;
        let slow = DriveSet::EMPTY.with(DriveIdx::new(3));
        let aside =
            |shares: &[Share]| super::decide(&View { sat_out: slow, ..view(shares, 1) }).aside;
        assert_eq!(aside(&shares), slow, "five reads of 6 ms are cheaper than one of 60");
        for at in [0, 1, 2, 4, 5] {
            shares[at].drive.queued = 40.0;
        }
        assert!(aside(&shares).is_empty(), "200 commands wait that they would delay");
        let by_hand = View { sat_out: slow, by_hand: slow, ..view(&shares, 1) };
        assert_eq!(super::decide(&by_hand).aside, slow, "an operator's word holds");
    }

    #[test]
    fn of_a_drive_that_sits_out_and_a_slow_one_the_one_with_the_longer_wait_is_done_without() {
        let (out, other) = (DriveIdx::new(2), DriveIdx::new(4));
        let only = |drive| DriveSet::EMPTY.with(drive);
        let mut shares = shares([2, 2, 2, 2, 2, 0]);
        let slow_of = |shares: &[Share], spare, by_hand| {
            let view = View { sat_out: only(out), by_hand, ..view(shares, spare) };
            slow(&view, lagging(shares, LAGS))
        };
        let none = DriveSet::EMPTY;
        set_pace(&mut shares[2], 0.090);
        shares[2].drive.queued = 0.0;
        assert_eq!(slow_of(&shares, 1, none), only(out), "no other is in trouble");
        set_pace(&mut shares[4], 0.180);
        assert_eq!(slow_of(&shares, 1, none), only(other));
        assert_eq!(slow_of(&shares, 2, none), only(out).with(other));
        assert_eq!(slow_of(&shares, 1, only(out)), only(out), "an operator wants it so");
        // Both are slow: reads go where the wait is shorter.
        set_pace(&mut shares[2], 0.180);
        assert_eq!(slow_of(&shares, 1, none), only(other));
        shares[2].drive.queued = 5.0;
        assert_eq!(slow_of(&shares, 1, none), only(out));
    }

    #[test]
    fn drives_known_for_nothing_are_all_alike() {
        let (idx, drive) = (DriveIdx::new(0), DriveView::default());
        let shares = [Share { idx, drive, wanted: 1 }; 4];
        assert!(decide(&shares, 1).aside.is_empty());
        assert!(slow(&view(&[], 1), DriveSet::EMPTY).is_empty());
    }
}
