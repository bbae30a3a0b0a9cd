//! What a page's script makes a figure answer from: its numbers, as the figure has drawn them.
//!
//! What the figure draws at an edge across lies there, and points that it leaves out as too near to
//! others are left out. A share on a tail axis is given as what is left to one, of which a
//! nine is as long as the next on a logarithmic axis.
//!
//! A figure with a tail axis across, or with a line that goes back and forth, stays as it is.

use serde::Serialize;

use super::axis::{Axis, Projection, Scale, number};
use super::draw::{apart, projections};
use super::svg::{Breadth, Point};
use super::{Bars, Content, Figure, Series, Shape};

/// See the module.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Live {
    /// Series over two axes, drawn anew by the script.
    Lines { title: String, x: LiveAxis, y: LiveAxis, series: Vec<LiveSeries>, notes: Vec<String> },
    /// Bars, which stay drawn as they are.
    Bars { title: String, groups: Vec<String>, series: Vec<LiveBars> },
    /// A grid, which stays drawn as it is: `values` has a list for each row.
    Grid { title: String, rows: Vec<String>, columns: Vec<String>, values: Vec<Vec<String>> },
}

#[derive(Debug, Serialize)]
pub(crate) struct LiveAxis {
    label: String,
    scale: &'static str,
    low: f64,
    high: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct LiveSeries {
    name: String,
    shape: &'static str,
    x: Vec<f64>,
    /// Nothing where a line breaks.
    y: Vec<Option<f64>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct LiveBars {
    name: String,
    /// With their intervals; empty where there is none.
    values: Vec<String>,
}

impl Live {
    /// As the text of a `<script>` element: no tag ends or begins in it.
    pub(crate) fn to_script_text(&self) -> String {
        let json = serde_json::to_string(self).expect("names and numbers are JSON");
        json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    }

    /// Whether the script draws it anew.
    pub(crate) const fn is_drawn(&self) -> bool {
        matches!(self, Self::Lines { .. })
    }
}

pub(super) fn of(figure: &Figure) -> Option<Live> {
    let title = figure.title.clone();
    match &figure.content {
        Content::Lines { x, y, series } => {
            let fitted = projections([x, y], series);
            let [across, up] = &fitted;
            let notes = series.iter().flat_map(|one| super::notes::of_series(one, across, up));
            let notes = figure.notes.iter().cloned().chain(notes).collect();
            let lives = series.iter().map(|one| live_series(one, [across, up], y.scale));
            let series = lives.collect::<Option<_>>()?;
            let axis = |axis: &Axis, fitted: &Projection| live_axis(axis, fitted);
            let (x, y) = (axis(x, across), axis(y, up));
            (x.scale != TAIL).then_some(Live::Lines { title, x, y, series, notes })
        }
        Content::Bars { groups, bars, .. } => {
            let series = bars.iter().map(live_bars).collect();
            Some(Live::Bars { title, groups: groups.clone(), series })
        }
        Content::Grid(grid) => {
            let (rows, columns, values) = grid.texts();
            Some(Live::Grid { title, rows, columns, values })
        }
    }
}

const TAIL: &str = "tail";

fn live_axis(axis: &Axis, fitted: &Projection) -> LiveAxis {
    let [low, high] = fitted.ends();
    let (scale, [low, high]) = match axis.scale {
        Scale::Linear => ("linear", [low, high]),
        Scale::Log => ("log", [low, high]),
        Scale::Tail => (TAIL, [1.0 - low, fitted.left_at_end()]),
    };
    LiveAxis { label: axis.label.clone(), scale, low, high }
}

/// The points of a series from left to right; nothing if its line goes back.
fn live_series(series: &Series, [x, y]: [&Projection; 2], up: Scale) -> Option<LiveSeries> {
    let mut points: Vec<Point> =
        series.points.iter().copied().filter(|point| !point.0.is_nan()).collect();
    let goes_back = |points: &[Point]| points.windows(2).any(|pair| pair[1].0 < pair[0].0);
    if series.shape == Shape::Dots {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    } else if goes_back(&points) {
        points.reverse();
        if goes_back(&points) {
            return None;
        }
    }
    if series.shape == Shape::Step {
        points.retain(|point| !point.1.is_nan());
    }
    let kept = kept(&points, [x, y]);
    let value = |value: f64| match up {
        Scale::Tail => (1.0 - value).clamp(0.0, 1.0),
        Scale::Linear | Scale::Log if value.is_finite() => value,
        Scale::Linear | Scale::Log => y.clamped(value),
    };
    Some(LiveSeries {
        name: series.name.clone(),
        shape: match series.shape {
            Shape::Line => "line",
            Shape::Step => "step",
            Shape::Dots => "dots",
        },
        x: kept.iter().map(|&idx| short(x.clamped(points[idx].0))).collect(),
        y: kept
            .iter()
            .map(|&idx| points[idx].1)
            .map(|up| (!up.is_nan()).then(|| short(value(up))))
            .collect(),
    })
}

/// Which points lie apart in the drawing, and which break a line.
fn kept(points: &[Point], [x, y]: [&Projection; 2]) -> Vec<usize> {
    // As broad as the figure, without its frame.
    let (width, height) = (Breadth::Broad.width(), 340.0);
    let mut kept = Vec::new();
    let mut run: Vec<Point> = Vec::new();
    let mut first = 0;
    let end_run = |run: &mut Vec<Point>, first: usize, kept: &mut Vec<usize>| {
        kept.extend(apart(run).into_iter().map(|idx| first + idx));
        run.clear();
    };
    for (idx, point) in points.iter().enumerate() {
        if point.1.is_nan() {
            end_run(&mut run, first, &mut kept);
            kept.push(idx);
            continue;
        }
        if run.is_empty() {
            first = idx;
        }
        run.push((x.place(point.0) * width, y.place(point.1) * height));
    }
    end_run(&mut run, first, &mut kept);
    kept
}

/// A number to five digits.
fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().expect("a number that was written as one")
}

fn live_bars(bars: &Bars) -> LiveBars {
    let text = |(idx, value): (usize, &f64)| {
        let interval = bars.intervals.get(idx).filter(|one| one.is_shown());
        let range = interval.map_or(String::new(), |one| format!(" ({})", one.text()));
        if value.is_nan() { String::new() } else { format!("{}{range}", number(*value)) }
    };
    LiveBars { name: bars.name.clone(), values: bars.values.iter().enumerate().map(text).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Interval, Shading};
    use super::*;

    fn live(figure: &Figure) -> Value {
        serde_json::to_value(figure.to_live().expect("it answers")).unwrap()
    }

    #[test]
    fn shares_are_given_by_what_is_left_to_one() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        let live = live(&Figure::cdf("a", "ms", &[("b", &values)]));
        assert_eq!((&live["kind"], &live["y"]["scale"]), (&json!("lines"), &json!("tail")));
        let series = &live["series"][0];
        assert_eq!(series["shape"], "step");
        let [x, y] = ["x", "y"].map(|name| series[name].as_array().unwrap());
        assert_eq!((&x[0], &y[0]), (&json!(1.0), &json!(1.0)), "nothing lies below the first");
        assert_eq!((x.last(), y.last()), (Some(&json!(1000.0)), Some(&json!(0.0))));
        assert!(y.contains(&json!(0.001)), "the tail is whole");
        assert!(live["y"]["high"].as_f64().unwrap() < 0.001 && live["y"]["low"] == 1.0);
    }

    #[test]
    fn lines_run_to_the_right_and_keep_their_breaks() {
        let figure =
            |series: Series| Figure::lines("a", Axis::linear("x"), Axis::log("y"), vec![series]);
        let down = Series::line("b", [(3.0, 1.0), (2.0, f64::NAN), (1.0, 4.0)]);
        let live_down = live(&figure(down));
        assert_eq!(live_down["series"][0]["x"], json!([1.0, 2.0, 3.0]));
        assert_eq!(live_down["series"][0]["y"], json!([4.0, null, 1.0]));
        let dots = Series::dots("b", [(2.0, 1.0), (1.0, 4.0), (3.0, 2.0)]);
        assert_eq!(live(&figure(dots))["series"][0]["x"], json!([1.0, 2.0, 3.0]));
        let loops = Series::line("b", [(1.0, 1.0), (3.0, 2.0), (2.0, 4.0)]);
        assert!(figure(loops).to_live().is_none(), "it stays a picture");
    }

    #[test]
    fn what_has_no_bound_lies_at_the_edge() {
        let series = Series::line("b", [(1.0, 2.0), (2.0, f64::INFINITY), (3.0, 5.0)]);
        let axis = Axis::linear("y").with_range(0.0, 4.0);
        let live = live(&Figure::lines("a", Axis::linear("x"), axis, vec![series]));
        assert_eq!(live["series"][0]["y"], json!([2.0, 4.0, 5.0]));
    }

    #[test]
    fn bars_and_fields_say_what_they_carry() {
        let bars = Figure::bars("a", Axis::linear("ms"), &["x", "y"], &[("b", &[17.4, f64::NAN])])
            .with_intervals("b", &[Interval { low: 16.0, high: 19.0 }, Interval::NONE]);
        assert_eq!(live(&bars)["series"][0]["values"], json!(["17.4 (16 to 19)", ""]));
        let values = [vec![1.5, f64::NAN]];
        let grid = Figure::heat_map("a", &["x", "y"], &["r"], &values, Shading::full_at(1.1));
        assert_eq!(live(&grid)["values"], json!([["1.50", ""]]));
    }
}
