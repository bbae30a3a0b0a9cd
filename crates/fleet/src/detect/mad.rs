//! `mad`: a number of median absolute deviations above the group's median, window after window.
//!
//! A window is an outlier when `0.6745 (x - median) / MAD > 3.5` over the members' latencies `x`: the modified z-score and its bound after
//! B. Iglewicz and D. Hoaglin, "How to Detect and Handle Outliers", ASQC, 1993. Slow after 12 outliers in a row, as
//! detectors of clusters ask for several reports in a row. The scale is that of one window: a few members that are slow
//! alike swell it, and a difference that is small against one window's noise is never found, however long it lasts.

use levelhead_stats::{distances_from, median_of};

use super::history::History;
use super::median_ratio::Tally;
use super::peers::{log_ratios, usable};
use super::{Detector, Finding, Reading, WINDOWS_PER_HOUR};

/// The bound of the modified z-score.
const SCORE: f64 = 3.5;
/// What a MAD of a normal distribution is, in standard deviations.
const MAD_NORMAL: f64 = 0.6745;
/// Outliers in a row.
const ROW: u32 = 12;
/// Members with a usable reading that a window needs.
const MEMBERS_MIN: usize = 3;

/// See the module.
#[derive(Clone, Debug)]
pub struct Mad {
    members: Vec<Outliers>,
}

/// A member, its outliers in a row, and its ratios of the last busy hours.
#[derive(Clone, Debug)]
pub(super) struct Outliers {
    history: History,
    in_row: u32,
    tally: Tally,
}

impl Outliers {
    /// Nothing is known.
    pub(super) fn new() -> Self {
        Self { history: History::new(&[15 * WINDOWS_PER_HOUR]), in_row: 0, tally: Tally::default() }
    }

    /// One more window: slow after `row` outliers in a row.
    pub(super) fn take(&mut self, at: i64, ratio: f64, is_outlier: bool, row: u32) {
        self.history.push(ratio);
        self.tally.count();
        self.in_row = if is_outlier { self.in_row.saturating_add(1) } else { 0 };
        self.tally.judge(at, self.in_row >= row);
    }

    /// See [`Tally::finding`].
    pub(super) fn finding(&self) -> Finding {
        self.tally.finding(self.history.len() >= WINDOWS_PER_HOUR, self.history.sorted(0))
    }
}

impl Mad {
    /// A group of this number of members.
    pub fn new(member_count: usize) -> Self {
        Self { members: vec![Outliers::new(); member_count] }
    }
}

impl Detector for Mad {
    fn handle_window(&mut self, at: i64, members: &[Option<Reading>]) {
        assert_eq!(members.len(), self.members.len(), "a group keeps its members");
        let mut latencies: Vec<f64> = members.iter().filter_map(usable).collect();
        if latencies.len() < MEMBERS_MIN {
            return;
        }
        let median = median_of(&mut latencies);
        distances_from(median, &mut latencies);
        let mad = median_of(&mut latencies);
        let ratios = log_ratios(members, MEMBERS_MIN - 1);
        for (idx, member) in self.members.iter_mut().enumerate() {
            let (Some(latency), Some(ratio)) = (usable(&members[idx]), ratios[idx]) else {
                continue;
            };
            let is_outlier = MAD_NORMAL * (latency - median) > SCORE * mad;
            member.take(at, ratio, is_outlier, ROW);
        }
    }

    fn findings(&self) -> Vec<Finding> {
        self.members.iter().map(Outliers::finding).collect()
    }
}

pub(super) fn explain() -> String {
    format!(
        "mad: slow while the last {ROW} windows were all outliers, {MAD_NORMAL} (latency - median) / MAD > {SCORE} over\n\
         the group's members (modified z-score, Iglewicz and Hoaglin 1993).\n\
         \x20 bound    {SCORE}\n\
         \x20 in a row {ROW} windows\n\
         \x20 members  at least {MEMBERS_MIN}\n\
         the interval is that of 95 % of the windows' ratios\n"
    )
}
