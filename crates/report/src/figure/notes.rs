//! The lines under a figure with axes: what could not be drawn as it is.

use super::axis::Projection;
use super::{Bars, Series};

/// Points of a series that are left out or lie at the edge.
pub(super) fn of_series(series: &Series, x: &Projection, y: &Projection) -> Vec<String> {
    let (mut missing, mut at_edge) = (0, 0);
    for &(across, up) in &series.points {
        if across.is_nan() || up.is_nan() {
            missing += 1;
        } else if !x.shows(across) || !y.shows(up) {
            at_edge += 1;
        }
    }
    let missing = (missing > 0)
        .then(|| format!("{}: {} left out, not a number", series.name, counted(missing)));
    missing.into_iter().chain(beyond(&series.name, at_edge)).collect()
}

/// Bars of every series that end at the edge, then groups that lack a bar.
pub(super) fn of_bars(bars: &[Bars], groups: &[String], y: &Projection) -> Vec<String> {
    let at_edge = |one: &Bars| {
        let there = one.values.iter().filter(|value| !value.is_nan());
        there.filter(|value| !y.shows(**value)).count()
    };
    let edges = bars.iter().filter_map(|one| beyond(&one.name, at_edge(one)));
    edges.chain(bars.iter().filter_map(|one| gaps(one, groups))).collect()
}

fn beyond(name: &str, at_edge: usize) -> Option<String> {
    (at_edge > 0)
        .then(|| format!("{name}: {} beyond the axes, drawn at the edge", counted(at_edge)))
}

/// `1 value`, `2 values`.
pub(super) fn counted(count: usize) -> String {
    format!("{count} value{}", if count == 1 { "" } else { "s" })
}

/// Which groups have no bar of a series: a few by name, more of them by number.
fn gaps(bars: &Bars, groups: &[String]) -> Option<String> {
    let gaps: Vec<&str> = groups
        .iter()
        .zip(&bars.values)
        .filter(|(_, value)| value.is_nan())
        .map(|(group, _)| group.as_str())
        .collect();
    let name = &bars.name;
    match gaps.len() {
        0 => None,
        1..=3 => Some(format!("{name}: no number for {}", gaps.join("; "))),
        more => Some(format!("{name}: no number for {more} of {}", groups.len())),
    }
}
