//! `regression`: latency against load, day by day, after PERSEUS.
//!
//! `[PERSEUS]` fits the latency of a host's drives on their throughput each day and counts how long and how far a drive is above
//! the fit's upper bound. Here a day's windows of all members are points of load and latency:
//!
//! ```text
//!   a day's points --> DBSCAN without outliers --> polynomial of degree 4, upper 97.5 % bound of a point
//!                  --> windows above the bound --> a day's score, by how many and how far --> sum of 15 days
//! ```
//!
//! A window of five minutes is one of PERSEUS's events of 20 samples, and the scores and bounds are those published with it.
//! What differs: neighbours of DBSCAN are further apart, as there are 20 times fewer points; the paper's principal components only turn the plane in which DBSCAN measures distances, and are left out; of equal
//! clusters the one of the lower latency is normal; a point beyond the loads of the normal ones is judged as at the
//! nearest of them. A day ends at midnight UTC and is judged when the next one's first window comes.

mod fit;

use std::collections::VecDeque;

use super::history::History;
use super::median_ratio::Tally;
use super::peers::{log_ratios, usable};
use super::{Detector, Finding, Reading, WINDOWS_PER_HOUR};
use fit::{Bound, Point, normal_points};

const DAY: i64 = 86_400;
/// Days whose scores are added.
const DAYS: i64 = 15;
/// The sum that is slow.
const SCORE: u32 = 50;
/// The fewest windows above the bound that a day counts.
const WINDOWS_MIN: u32 = 2;
/// The fewest points of a day that are fitted.
const POINTS_MIN: usize = 24;
/// The most points of a day that are fitted: with more, every second window is, or every third, and so on.
const POINTS_MAX: usize = 4096;
/// Members with a usable reading that a window needs.
const MEMBERS_MIN: usize = 3;

/// Windows above the bound in a day, and what they score by their mean latency over the bound: below 2, from 2 on, from 5 on.
const SCORES: [(u32, [u32; 3]); 3] = [(24, [10, 25, 100]), (12, [5, 10, 25]), (6, [1, 5, 10])];

/// See the module.
#[derive(Clone, Debug)]
pub struct Regression {
    members: Vec<Member>,
    day: i64,
    /// The day's windows: at most as many as a day has.
    windows: Vec<Vec<Option<Reading>>>,
}

#[derive(Clone, Debug)]
struct Member {
    history: History,
    /// The day and its score.
    scores: VecDeque<(i64, u32)>,
    tally: Tally,
}

impl Regression {
    /// A group of this number of members.
    pub fn new(member_count: usize) -> Self {
        let member = Member {
            history: History::new(&[15 * WINDOWS_PER_HOUR]),
            scores: VecDeque::new(),
            tally: Tally::default(),
        };
        Self { members: vec![member; member_count], day: i64::MIN, windows: Vec::new() }
    }

    /// The upper bounds of the day that is over.
    fn bound(&self) -> Option<Bound> {
        let stride = (self.windows.len() * self.members.len()).div_ceil(POINTS_MAX).max(1);
        let fitted = self.windows.iter().step_by(stride).flatten().flatten();
        let points: Vec<Point> = fitted
            .map(|reading| Point { load: reading.load, latency: reading.latency_us })
            .collect();
        if points.len() < POINTS_MIN {
            return None;
        }
        Bound::fit(&normal_points(&points)?)
    }

    fn end_day(&mut self, now: i64) {
        let bound = self.bound();
        for (idx, member) in self.members.iter_mut().enumerate() {
            let (mut count, mut excess) = (0, 0.0);
            if let Some(bound) = &bound {
                for reading in self.windows.iter().filter_map(|window| window[idx]) {
                    let ratio = reading.latency_us / bound.at(reading.load);
                    if ratio > 1.0 {
                        count += 1;
                        excess += ratio;
                    }
                }
            }
            let score =
                if count < WINDOWS_MIN { 0 } else { score_of(count, excess / f64::from(count)) };
            member.scores.push_back((self.day, score));
            while member.scores.front().is_some_and(|&(day, _)| day <= self.day - DAYS) {
                member.scores.pop_front();
            }
            let sum: u32 = member.scores.iter().map(|day| day.1).sum();
            member.tally.judge(now, sum >= SCORE);
        }
        self.windows.clear();
    }
}

fn score_of(windows: u32, ratio: f64) -> u32 {
    let column = if ratio >= 5.0 {
        2
    } else if ratio >= 2.0 {
        1
    } else {
        0
    };
    SCORES.iter().find(|row| windows >= row.0).map_or(0, |row| row.1[column])
}

impl Detector for Regression {
    fn handle_window(&mut self, at: i64, members: &[Option<Reading>]) {
        assert_eq!(members.len(), self.members.len(), "a group keeps its members");
        let day = at.div_euclid(DAY);
        if day != self.day {
            if !self.windows.is_empty() {
                self.end_day(at - super::WINDOW);
            }
            self.day = day;
        }
        let ratios = log_ratios(members, MEMBERS_MIN - 1);
        if ratios.iter().all(Option::is_none) {
            return;
        }
        for (member, ratio) in self.members.iter_mut().zip(&ratios) {
            if let Some(ratio) = ratio {
                member.history.push(*ratio);
                member.tally.count();
            }
        }
        if self.windows.len() < (DAY / super::WINDOW) as usize {
            let of_use = |reading: &Option<Reading>| {
                reading
                    .filter(|reading| usable(&Some(*reading)).is_some() && reading.load.is_finite())
            };
            self.windows.push(members.iter().map(of_use).collect());
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let finding = |member: &Member| {
            member.tally.finding(!member.scores.is_empty(), member.history.sorted(0))
        };
        self.members.iter().map(finding).collect()
    }
}

pub(super) fn explain() -> String {
    let mut text = format!(
        "regression: a day's latencies on loads, outliers left out by DBSCAN (eps {}, {} points), polynomial of degree {};\n\
         a window is above where its latency is above the fit plus {} standard errors of a point; slow while the scores\n\
         of the last {DAYS} days add up to {SCORE} (PERSEUS, FAST '23, with the constants published with it).\n\
         \x20 a day counts from {WINDOWS_MIN} windows above and {POINTS_MIN} points on; at most {POINTS_MAX} are fitted\n",
        fit::EPS,
        fit::NEIGHBOURS,
        fit::DEGREE,
        fit::ERRORS,
    );
    for (windows, [mild, clear, strong]) in SCORES {
        text += &format!(
            "\x20 {windows} windows above: {mild}; from a mean of 2 times the bound on {clear}, of 5 times {strong}\n"
        );
    }
    text + "the interval is that of 95 % of the windows' ratios\n"
}
