//! `median-ratio`: the plain rule, a fixed bound on the median ratio of five days.
//!
//! Slow when the median, over the last 15 busy hours, of the latency over the median of the others' is above 1.15. It needs no more than
//! that on PERSEUS's quiet clusters, and 15 hours; it knows nothing of a group's noise.

use super::history::History;
use super::peers::log_ratios;
use super::{Detector, Finding, Reading, Verdict, WINDOW, WINDOWS_PER_HOUR, peers};

/// The span, in busy hours.
const HOURS: usize = 15;
/// The bound of the median ratio.
const RATIO: f64 = 1.15;
/// Peers with a usable reading that a member's window needs.
const PEERS_MIN: usize = 2;

/// See the module.
#[derive(Clone, Debug)]
pub struct MedianRatio {
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    history: History,
    tally: Tally,
}

/// What every plain rule keeps of a member: usable windows, and the first verdict.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    windows: u64,
    is_slow: bool,
    decided: Option<(i64, u64)>,
}

impl Tally {
    /// One more usable window.
    pub(super) fn count(&mut self) {
        self.windows += 1;
    }

    /// Whether the rule holds now; `at` is the window's beginning.
    pub(super) fn judge(&mut self, at: i64, is_slow: bool) {
        self.is_slow = is_slow;
        if is_slow {
            self.decided.get_or_insert((at + WINDOW, self.windows));
        }
    }

    /// The finding, with the median of the ratios' logs, in order of value, and the interval that holds 95 % of them.
    pub(super) fn finding(&self, is_known: bool, sorted_logs: &[f64]) -> Finding {
        let share = |share: f64| {
            if sorted_logs.is_empty() {
                f64::NAN
            } else {
                peers::quantile(sorted_logs, share).exp()
            }
        };
        Finding {
            verdict: match (is_known, self.is_slow) {
                (_, true) => Verdict::Slow,
                (true, false) => Verdict::Fine,
                (false, false) => Verdict::CannotTell,
            },
            ratio: share(0.5),
            low: share(0.025),
            high: share(0.975),
            decided_at: self.decided.map(|decided| decided.0),
            busy_hours: self.decided.map_or(self.windows, |decided| decided.1) as f64
                / WINDOWS_PER_HOUR as f64,
        }
    }
}

impl MedianRatio {
    /// A group of this number of members.
    pub fn new(member_count: usize) -> Self {
        let history = History::new(&[HOURS * WINDOWS_PER_HOUR]);
        Self { members: vec![Member { history, tally: Tally::default() }; member_count] }
    }
}

impl Detector for MedianRatio {
    fn handle_window(&mut self, at: i64, members: &[Option<Reading>]) {
        assert_eq!(members.len(), self.members.len(), "a group keeps its members");
        for (member, ratio) in self.members.iter_mut().zip(log_ratios(members, PEERS_MIN)) {
            let Some(ratio) = ratio else { continue };
            member.history.push(ratio);
            member.tally.count();
            let median = member.history.median(0);
            member.tally.judge(at, median.is_some_and(|median| median > RATIO.ln()));
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let finding = |member: &Member| {
            member.tally.finding(member.history.median(0).is_some(), member.history.sorted(0))
        };
        self.members.iter().map(finding).collect()
    }
}

pub(super) fn explain() -> String {
    format!(
        "median-ratio: slow while the median of latency over the median of the other members', over the last\n\
         {HOURS} busy hours, is above {RATIO}.\n\
         \x20 span   {HOURS} h\n\
         \x20 bound  {RATIO}\n\
         \x20 peers  at least {PEERS_MIN}\n\
         a fixed bound; the interval is that of 95 % of the windows' ratios\n"
    )
}
