//! How much was seen, and how slow drives and groups were: tables 1 and 3, figures 2 and 4.

use super::{
    Curve, Exhibit, Fleet, Line, NO_PAPER, Paper, Picture, Point, Scale, Unit, line, paper, percent,
};
use crate::analysis::Histogram;

pub(super) const TABLE1: Exhibit = Exhibit {
    name: "table1",
    title: "Slow hours of drives and of groups",
    says: "0.22 % of the hours of disks and 0.58 % of those of solid-state drives are slow (twice the group's median or more); 1.54 % \
           and 2.23 % of group hours have a slow drive.",
    lines: table1,
    picture: None,
};

fn table1(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let (c, tail) = (s.counts(), s.tails(1));
    let count = |value: u64| (value > 0).then_some(value as f64);
    let lines = [
        line("groups", Unit::Count, NO_PAPER, count(s.group_count())),
        line("data drives", Unit::Count, NO_PAPER, count(s.drive_count())),
        line("drive hours", Unit::Count, NO_PAPER, Some(c.drive_hours as f64)),
        line("slow drive hours", Unit::Count, NO_PAPER, Some(c.slow_drive_hours as f64)),
        line(
            "drive hours, S >= 2",
            Unit::Percent,
            paper(0.22, 0.58),
            percent(c.slow_drive_hours, c.drive_hours),
        ),
        line(
            "drive hours, S >= 1.5",
            Unit::Percent,
            paper(0.69, 1.27),
            percent(s.slowdowns().at_least(1.5), c.drive_hours),
        ),
        line("RAID hours", Unit::Count, NO_PAPER, Some(c.raid_hours as f64)),
        line("tail hours", Unit::Count, NO_PAPER, Some(c.tail_hours as f64)),
        line(
            "RAID hours, T1 >= 2",
            Unit::Percent,
            paper(1.54, 2.23),
            percent(c.tail_hours, c.raid_hours),
        ),
        line(
            "RAID hours, T1 >= 1.5",
            Unit::Percent,
            paper(4.6, 4.8),
            percent(tail.at_least(1.5), c.raid_hours),
        ),
    ];
    lines.into_iter().flatten().collect()
}

pub(super) const FIG2: Exhibit = Exhibit {
    name: "fig2",
    title: "Width of groups, and length of the record",
    says: "Groups of disks have 11.9 drives of data on average, those of solid-state drives 7.0; they were seen for 87 days.",
    lines: fig2,
    picture: Some(|fleet| {
        let s = fleet.hours;
        let widths = rising(s.spans().map(|span| span.drives as f64));
        let days = rising(s.spans().map(|span| span.hours as f64 / 24.0));
        Picture {
            across: "drives of a group; days from its first hour to its last",
            across_scale: Scale::Log,
            up: "share of groups at or below",
            up_scale: Scale::Linear,
            curves: vec![cdf("drives", &widths), cdf("days", &days)],
        }
    }),
};

fn fig2(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let widths = rising(s.spans().map(|span| span.drives as f64));
    let days = rising(s.spans().map(|span| span.hours as f64 / 24.0));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let middle = |values: &[f64]| values.get(values.len() / 2).copied();
    // The study's widths follow from its counts of drive hours and group hours.
    let lines = [
        line("drives a group, mean", Unit::Count, paper(11.90, 6.97), Some(mean(&widths))),
        line("drives a group, median", Unit::Count, NO_PAPER, middle(&widths)),
        line("days a group, mean", Unit::Count, paper(87.0, 87.0), Some(mean(&days))),
        line("days a group, median", Unit::Count, NO_PAPER, middle(&days)),
    ];
    lines.into_iter().flatten().collect()
}

pub(super) const TABLE3: Exhibit = Exhibit {
    name: "table3",
    title: "Slowdowns by percentile",
    says: "S is a drive's slowdown, T1 the largest of a group hour. Of solid-state drives T1 = 20 at 99.9 % and S = 10 at 99.99 % \
           contradict each other: the first is of 1,073 group hours, the second leaves 748 drive hours above 10.",
    lines: table3,
    picture: None,
};

/// A quantile, what it is called, and the study's S and T1 there.
struct Nines {
    share: f64,
    name: &'static str,
    s: Paper,
    t1: Paper,
}

const NINES: [Nines; 6] = [
    Nines { share: 0.9, name: "p90", s: paper(1.1, 1.1), t1: paper(1.3, 1.3) },
    Nines { share: 0.95, name: "p95", s: paper(1.2, 1.2), t1: paper(1.5, 1.5) },
    Nines { share: 0.99, name: "p99", s: paper(1.4, 1.7), t1: paper(2.4, 2.5) },
    Nines { share: 0.999, name: "p99.9", s: paper(2.7, 3.1), t1: paper(9.0, 20.0) },
    Nines { share: 0.9999, name: "p99.99", s: paper(9.0, 10.0), t1: paper(29.0, 37.0) },
    Nines { share: 0.99999, name: "p99.999", s: paper(30.0, 39.0), t1: paper(229.0, 65.0) },
];

/// A slowdown, and the percentages of S and T1 below it in the study.
struct At {
    slowdown: f64,
    s: Paper,
    t1: Paper,
}

const AT: [At; 4] = [
    At { slowdown: 1.2, s: paper(97.0, 95.9), t1: paper(83.3, 87.0) },
    At { slowdown: 1.5, s: paper(99.3, 98.7), t1: paper(95.4, 95.2) },
    At { slowdown: 2.0, s: paper(99.78, 99.42), t1: paper(98.50, 97.77) },
    At { slowdown: 4.0, s: paper(99.96, 99.92), t1: paper(99.72, 99.67) },
];

fn table3(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let (of_drives, of_groups) = (s.slowdowns(), s.tails(1));
    // A quantile of less than ten values beyond it is chance.
    let quantile = |histogram: &Histogram, share: f64| {
        let beyond = (1.0 - share) * histogram.total() as f64;
        if beyond >= 10.0 { histogram.quantile(share) } else { None }
    };
    let mut lines = Vec::new();
    for Nines { share, name, s, .. } in NINES {
        lines.push(line(format!("S at {name}"), Unit::Times, s, quantile(of_drives, share)));
    }
    for Nines { share, name, t1, .. } in NINES {
        lines.push(line(format!("T1 at {name}"), Unit::Times, t1, quantile(of_groups, share)));
    }
    let counts = s.counts();
    for At { slowdown, s: of_paper, .. } in AT {
        let least =
            if slowdown < 1.3 { counts.drive_hours_mild } else { of_drives.at_least(slowdown) };
        let below = percent(of_drives.total() - least, of_drives.total());
        lines.push(line(format!("S < {slowdown}"), Unit::Percent, of_paper, below));
    }
    for At { slowdown, t1, .. } in AT {
        let least =
            if slowdown < 1.3 { counts.raid_hours_mild } else { of_groups.at_least(slowdown) };
        let below = percent(of_groups.total() - least, of_groups.total());
        lines.push(line(format!("T1 < {slowdown}"), Unit::Percent, t1, below));
    }
    let cut = [
        ("tail hours", paper(1.5, 2.2)),
        ("tail hours without the slowest drive", paper(0.6, 1.4)),
        ("tail hours without the two slowest", paper(0.3, 0.8)),
    ];
    for (k, (metric, of_paper)) in cut.into_iter().enumerate() {
        let tail = s.tails(k + 1);
        lines.push(line(
            metric,
            Unit::Percent,
            of_paper,
            percent(tail.at_least(2.0), tail.total()),
        ));
    }
    lines.into_iter().flatten().collect()
}

pub(super) const FIG4: Exhibit = Exhibit {
    name: "fig4",
    title: "Distribution of slowdowns",
    says: "S of drive hours, and T1, T2, T3: the largest, the second and the third largest slowdown of a group hour.",
    lines: fig4,
    picture: Some(|fleet| {
        let s = fleet.hours;
        Picture {
            across: "slowdown",
            across_scale: Scale::Log,
            up: "share below",
            up_scale: Scale::Tail,
            curves: std::iter::once(("S", s.slowdowns()))
                .chain([("T1", s.tails(1)), ("T2", s.tails(2)), ("T3", s.tails(3))])
                .map(|(name, histogram)| shares(name, histogram))
                .collect(),
        }
    }),
};

fn fig4(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let mut lines = Vec::new();
    for (name, histogram) in
        [("S", s.slowdowns()), ("T1", s.tails(1)), ("T2", s.tails(2)), ("T3", s.tails(3))]
    {
        for (share, at) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")] {
            let value = histogram.quantile(share);
            lines.push(line(format!("{name} at {at}"), Unit::Times, NO_PAPER, value));
        }
    }
    lines.into_iter().flatten().collect()
}

/// The share of a histogram's values below each.
pub(super) fn shares(name: &str, histogram: &Histogram) -> Curve {
    let points = histogram.shares().into_iter().map(|at| Point { across: at.below, up: at.share });
    Curve { name: name.to_owned(), points: points.collect() }
}

fn rising(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The share of values at or below each that differs from the next.
fn cdf(name: &str, rising: &[f64]) -> Curve {
    let count = rising.len() as f64;
    let points = rising.chunk_by(|a, b| a.total_cmp(b).is_eq()).scan(0, |seen, equal| {
        *seen += equal.len();
        Some(Point { across: equal[0], up: *seen as f64 / count })
    });
    Curve { name: name.to_owned(), points: points.collect() }
}
