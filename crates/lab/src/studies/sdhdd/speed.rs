//! What the measured studies of `[SDHDD]` share: losses, and closed forms beside them.

use levelhead_planner::kinds::{Disk, Stored};
use levelhead_planner::system::{forced_failure_rate, pages};

use crate::studies::files::least;
use crate::studies::{Bars, Drawing, Whose};

pub(super) const DISK: Disk = Disk::PAPER;

/// What closed forms are made of.
pub(super) const CLOSED: &str = "Closed forms are ours, of mean times by the paper's sec. 4.3: 10 ms to move the head, 33 us for a sector, \
                                 8.33 ms for a rotation; reads pass over what lies between a page and its complementary sector. They know \
                                 no filesystem, and stand beside what is measured to show what of it is the layout's alone.";

/// Files of kind B with the code that leaves 1e-6 of the groups of 255 sectors.
pub(super) fn forced(failure_rate: f64) -> Result<Stored, String> {
    let failure_rate = forced_failure_rate(failure_rate);
    Ok(Stored::Forced { pages: pages(256), code: least(255, failure_rate)?, failure_rate })
}

/// How much of a rate is lost, in percent.
pub(super) fn loss(before: f64, after: f64) -> f64 {
    (1.0 - after / before) * 100.0
}

pub(super) fn bars(title: &str, metrics: &[&str], groups: &[String]) -> Drawing {
    let bar = |metric: &&str| Bars {
        name: (*metric).to_owned(),
        rows: groups.iter().map(|case| (case.clone(), (*metric).to_owned())).collect(),
        whose: Whose::Ours,
    };
    Drawing::Bars {
        title: title.to_owned(),
        axis: "loss (%)".to_owned(),
        is_log: false,
        groups: groups.to_vec(),
        bars: metrics.iter().map(bar).collect(),
    }
}
