//! `tukey`: beyond the outer fence of the group's quartiles, window after window.
//!
//! A window is an outlier above `Q3 + 3 (Q3 - Q1)` of the members' latencies: "far out" after J. W. Tukey, "Exploratory Data
//! Analysis", 1977. Slow after 12 outliers in a row. OpenZFS 2.4 compares the children of a raidz with such a fence, of 50
//! quartile distances, each second: right for sitting out what stalls, and far above what mild slowness shows.

use super::mad::Outliers;
use super::peers::{log_ratios, quantile, usable};
use super::{Detector, Finding, Reading};

/// Quartile distances above the upper quartile.
const FENCE: f64 = 3.0;
/// Outliers in a row.
const ROW: u32 = 12;
/// Members with a usable reading that a window needs: quartiles of fewer are two of the values.
const MEMBERS_MIN: usize = 4;

/// See the module.
#[derive(Clone, Debug)]
pub struct Tukey {
    members: Vec<Outliers>,
}

impl Tukey {
    /// A group of this number of members.
    pub fn new(member_count: usize) -> Self {
        Self { members: vec![Outliers::new(); member_count] }
    }
}

impl Detector for Tukey {
    fn handle_window(&mut self, at: i64, members: &[Option<Reading>]) {
        assert_eq!(members.len(), self.members.len(), "a group keeps its members");
        let mut latencies: Vec<f64> = members.iter().filter_map(usable).collect();
        if latencies.len() < MEMBERS_MIN {
            return;
        }
        latencies.sort_by(f64::total_cmp);
        let (lower, upper) = (quantile(&latencies, 0.25), quantile(&latencies, 0.75));
        let fence = upper + FENCE * (upper - lower);
        let ratios = log_ratios(members, MEMBERS_MIN - 1);
        for (idx, member) in self.members.iter_mut().enumerate() {
            let (Some(latency), Some(ratio)) = (usable(&members[idx]), ratios[idx]) else {
                continue;
            };
            member.take(at, ratio, latency > fence, ROW);
        }
    }

    fn findings(&self) -> Vec<Finding> {
        self.members.iter().map(Outliers::finding).collect()
    }
}

pub(super) fn explain() -> String {
    format!(
        "tukey: slow while the last {ROW} windows were all above Q3 + {FENCE} (Q3 - Q1) of the group's latencies\n\
         (far out after Tukey 1977).\n\
         \x20 fence    {FENCE} quartile distances\n\
         \x20 in a row {ROW} windows\n\
         \x20 members  at least {MEMBERS_MIN}\n\
         the interval is that of 95 % of the windows' ratios\n"
    )
}
