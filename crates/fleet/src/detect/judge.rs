//! A detector over whole recordings, and its findings against labels.

use std::collections::BTreeSet;

use levelhead_stats::median_of_sorted;

use super::{Detector, Finding, Recording, Window};

/// A member of a group and what was found of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The group's name.
    pub group: String,
    /// The member's name.
    pub drive: String,
    /// What was found.
    pub finding: Finding,
}

/// A member that is known to be slow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// The group's name.
    pub group: String,
    /// The member's name.
    pub drive: String,
}

/// Findings against labels. A drive counts as found if it was ever found slow, also where it has been fine again since.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// Drives looked at.
    pub drives: usize,
    /// Labelled drives found slow.
    pub found: usize,
    /// Drives found slow that have no label.
    pub false_ones: Vec<Label>,
    /// Labelled drives not found slow.
    pub missed: Vec<Label>,
    /// Busy hours to the verdict of each labelled drive found, in rising order.
    pub busy_hours: Vec<f64>,
}

impl Score {
    /// The median of the busy hours to the verdict, of an even number the mean of the two in the middle; none if nothing was found.
    pub fn busy_hours_median(&self) -> Option<f64> {
        (!self.busy_hours.is_empty()).then(|| median_of_sorted(&self.busy_hours))
    }

    /// The most busy hours to a verdict; none if nothing was found.
    pub fn busy_hours_max(&self) -> Option<f64> {
        self.busy_hours.last().copied()
    }
}

/// Tells `detector` of all windows and returns what it says of each member, in the recording's order.
pub fn detect(recording: &Recording, detector: &mut dyn Detector) -> Vec<Row> {
    for window in &recording.windows {
        detector.handle_window(window.at, &window.members);
    }
    let findings = detector.findings();
    assert_eq!(findings.len(), recording.drives.len());
    let row = |(drive, finding): (&String, Finding)| Row {
        group: recording.group.clone(),
        drive: drive.clone(),
        finding,
    };
    recording.drives.iter().zip(findings).map(row).collect()
}

/// Counts findings against labels. A label of a drive that no row has is not missed: nothing was said of it.
pub fn score(rows: &[Row], labels: &[Label]) -> Score {
    let labels: BTreeSet<&Label> = labels.iter().collect();
    let mut score = Score { drives: rows.len(), ..Score::default() };
    for row in rows {
        let label = Label { group: row.group.clone(), drive: row.drive.clone() };
        match (labels.contains(&label), row.finding.decided_at.is_some()) {
            (true, true) => {
                score.found += 1;
                score.busy_hours.push(row.finding.busy_hours);
            }
            (true, false) => score.missed.push(label),
            (false, true) => score.false_ones.push(label),
            (false, false) => {}
        }
    }
    score.busy_hours.sort_by(f64::total_cmp);
    score
}

/// The group as several of `size` members each, in its order; what is left over at the end is no set.
///
/// Panics for a size of 0.
pub fn cut(recording: &Recording, size: usize) -> Vec<Recording> {
    assert!(size > 0, "a set has members");
    let set = |number: usize| {
        let members = number * size..(number + 1) * size;
        let window = |window: &Window| Window {
            at: window.at,
            members: window.members[members.clone()].to_vec(),
        };
        Recording {
            group: recording.group.clone(),
            drives: recording.drives[members.clone()].to_vec(),
            windows: recording.windows.iter().map(window).collect(),
        }
    };
    (0..recording.drives.len() / size).map(set).collect()
}
