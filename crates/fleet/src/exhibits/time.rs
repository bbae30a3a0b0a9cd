//! For how long drives are slow, and how many of them ever: figures 5 and 6.

use super::{
    Curve, Exhibit, Fleet, Line, NO_PAPER, Picture, Point, Scale, Unit, line, paper, percent,
};

/// A day, in hours.
const DAY: usize = 24;

pub(super) const FIG5: Exhibit = Exhibit {
    name: "fig5",
    title: "Length of slow intervals, and time to the next slow hour",
    says: "40 % of slow intervals of disks last two hours or more, 13 % eight or more; 90 % of slow hours come within a day of the \
           drive's slow hour before. Of solid-state drives 35 %, 3 % and 85 %.",
    lines: fig5,
    picture: Some(|fleet| {
        let s = fleet.hours;
        Picture {
            across: "hours",
            across_scale: Scale::Log,
            up: "share at or below",
            up_scale: Scale::Tail,
            curves: vec![
                lengths("a slow interval lasts", &s.intervals()),
                lengths("since the slow hour before", s.gaps()),
            ],
        }
    }),
};

fn fig5(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let (intervals, gaps) = (s.intervals(), s.gaps());
    let stay = s.stay().map(|share| 100.0 * share);
    let lasting = |hours: usize| percent(sum(&intervals[hours..]), sum(&intervals));
    let within = percent(sum(&gaps[..=DAY]), sum(gaps));
    let lines = [
        line("slow intervals of 2 hours and more", Unit::Percent, paper(40.0, 35.0), lasting(2)),
        line("slow intervals of 8 hours and more", Unit::Percent, paper(13.0, 3.0), lasting(8)),
        line("slow hours within a day of the one before", Unit::Percent, paper(90.0, 85.0), within),
        line("slow hours after which the next is slow", Unit::Percent, NO_PAPER, stay),
    ];
    lines.into_iter().flatten().collect()
}

fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, &count| u64::saturating_add(sum, count))
}

fn lengths(name: &str, counts: &[u64]) -> Curve {
    let total = sum(counts) as f64;
    let mut seen = 0_u64;
    let counted = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let points = counted.map(|(hours, count)| {
        seen = seen.saturating_add(*count);
        Point { across: hours as f64, up: seen as f64 / total }
    });
    Curve { name: name.to_owned(), points: points.collect() }
}

pub(super) const FIG6: Exhibit = Exhibit {
    name: "fig6",
    title: "Drives that were ever slow",
    says: "26 % of disks were at least once slow and 1.6 % at least once sixteen times as slow as their group; of those that were \
           slow 62 % were in fewer than five hours and 6 % in a hundred or more. Of solid-state drives 29, 2.5, 70 and 5 %.",
    lines: fig6,
    picture: Some(|fleet| {
        let s = fleet.hours;
        let all = s.drive_count().max(1) as f64;
        let thresholds = (1..=40).map(|step| f64::exp2(f64::from(step) / 4.0));
        let point = |slowdown: f64| Point { across: slowdown, up: s.ever(slowdown) as f64 / all };
        Picture {
            across: "slowdown",
            across_scale: Scale::Log,
            up: "share of drives that were ever so slow",
            up_scale: Scale::Log,
            curves: vec![Curve {
                name: "drives".to_owned(),
                points: thresholds.map(point).filter(|point| point.up > 0.0).collect(),
            }],
        }
    }),
};

fn fig6(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let (all, slow) = (s.drive_count(), s.slow_at_least(1));
    let lines = [
        line("drives ever S >= 2", Unit::Percent, paper(26.0, 29.0), percent(s.ever(2.0), all)),
        line("drives ever S >= 16", Unit::Percent, paper(1.6, 2.5), percent(s.ever(16.0), all)),
        line(
            "slow drives with fewer than 5 slow hours",
            Unit::Percent,
            paper(62.0, 70.0),
            percent(slow - s.slow_at_least(5), slow),
        ),
        line(
            "slow drives with 100 slow hours and more",
            Unit::Percent,
            paper(6.0, 5.0),
            percent(s.slow_at_least(100), slow),
        ),
    ];
    lines.into_iter().flatten().collect()
}
