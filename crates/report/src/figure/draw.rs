//! Drawing: where the parts of a figure go, and the paths of its series.
//!
//! ```text
//!   title
//!   legend, in as many rows as it takes
//!   +--+-----------------------------+
//!   |y |                             |
//!   |  |          plot               |
//!   +--+-----------------------------+
//!        x ticks, x label
//!   notes
//! ```

use super::axis::{Axis, Projection, Tick, number};
use super::svg::{Anchor, Paint, Point, RuleClass, Stands, Svg, Voice, coord, text_width};
use super::{Bars, Content, Figure, Series, Shape, notes};

/// Width of every figure; pages scale it.
const WIDTH: f64 = 760.0;
const PLOT_HEIGHT: f64 = 340.0;
pub(super) const MARGIN: f64 = 14.0;
/// Where a plot ends on the right.
pub(super) const PLOT_RIGHT: f64 = WIDTH - MARGIN - 10.0;
/// The baseline of the legend's first row.
pub(super) const LEGEND_BASELINE: f64 = MARGIN + 36.0;
/// From the baseline of the legend's last row to the plot.
pub(super) const LEGEND_GAP: f64 = 14.0;
const LINE_HEIGHT: f64 = 20.0;
pub(super) const LABEL_SIZE: f64 = 13.0;
pub(super) const TICK_SIZE: f64 = 12.0;
/// What is left free between two labels side by side.
pub(super) const LABEL_GAP: f64 = 6.0;
/// Points nearer than this to the last one drawn are not drawn: a million values stay a small file.
const APART_MIN: f64 = 0.2;
/// Lines of at most so many points show where the points are.
const DOTS_MAX: usize = 40;

/// The plot's edges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    /// The place `x` of the horizontal axis and `y` of the vertical one.
    pub(super) fn at(&self, x: f64, y: f64) -> Point {
        (self.left + x * (self.right - self.left), self.bottom - y * (self.bottom - self.top))
    }
}

/// What a plot leaves to its figure.
#[derive(Debug)]
pub(super) struct Plotted {
    /// How far down it reaches.
    pub(super) below: f64,
    /// What it could not draw as it is.
    pub(super) notes: Vec<String>,
}

/// The figure as SVG.
pub(crate) fn draw(figure: &Figure, stands: Stands) -> String {
    let mut svg = Svg::default();
    svg.text(Voice::Title, (MARGIN, MARGIN + 12.0), Anchor::Start, 0.0, &figure.title);
    let Plotted { below, notes } = match &figure.content {
        Content::Lines { x, y, series } => plot_lines(&mut svg, x, y, series),
        Content::Bars { y, groups, bars } => plot_bars(&mut svg, y, groups, bars),
        Content::Grid(grid) => grid.plot(&mut svg),
    };
    let mut down = below;
    for note in figure.notes.iter().chain(&notes) {
        down += LINE_HEIGHT;
        svg.text(Voice::Faint, (MARGIN, down), Anchor::Start, 0.0, note);
    }
    svg.finish(stands, WIDTH, down + MARGIN, &figure.title)
}

fn plot_lines(svg: &mut Svg, x_axis: &Axis, y_axis: &Axis, series: &[Series]) -> Plotted {
    let points = || series.iter().flat_map(|one| &one.points);
    let x = Projection::new(x_axis, points().map(|point| point.0));
    let y = Projection::new(y_axis, points().map(|point| point.1));
    let names: Vec<&str> = series.iter().map(|one| &*one.name).collect();
    let top = legend(svg, Key::Line, &names);
    let frame = y_scale(svg, top, &y_axis.label, &y.ticks());
    let below = x_scale(svg, frame, &x_axis.label, &x.ticks());
    for (idx, one) in series.iter().enumerate() {
        draw_series(svg, frame, (&x, &y), Paint::of(idx), one);
    }
    edges(svg, frame);
    let notes = series.iter().flat_map(|one| notes::of_series(one, &x, &y)).collect();
    Plotted { below, notes }
}

fn plot_bars(svg: &mut Svg, y_axis: &Axis, groups: &[String], bars: &[Bars]) -> Plotted {
    let values = bars.iter().flat_map(|one| one.values.iter().copied());
    let y = Projection::of_bars(y_axis, values);
    let names: Vec<&str> = bars.iter().map(|one| &*one.name).collect();
    let top = legend(svg, Key::Box, &names);
    let frame = y_scale(svg, top, &y_axis.label, &y.ticks());
    draw_bars(svg, frame, &y, groups, bars);
    let below = group_labels(svg, frame, groups);
    edges(svg, frame);
    Plotted { below, notes: notes::of_bars(bars, groups, &y) }
}

/// The two lines that a plot stands on.
fn edges(svg: &mut Svg, frame: Frame) {
    svg.rule(RuleClass::Axis, (frame.left, frame.top), (frame.left, frame.bottom));
    svg.rule(RuleClass::Axis, (frame.left, frame.bottom), (frame.right, frame.bottom));
}

/// What stands before a name in the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Line,
    Box,
}

/// Draws the names of the series; returns where the plot begins.
fn legend(svg: &mut Svg, key: Key, names: &[&str]) -> f64 {
    let mut down = LEGEND_BASELINE;
    let mut across = MARGIN;
    for (idx, name) in names.iter().enumerate() {
        let width = 30.0 + text_width(name, LABEL_SIZE) + 18.0;
        if across + width > WIDTH - MARGIN && across > MARGIN {
            across = MARGIN;
            down += LINE_HEIGHT;
        }
        match key {
            Key::Line => {
                let line = format!("M{} {}h22", coord(across), coord(down - 4.5));
                svg.path(Paint::of(idx), &line, name);
            }
            Key::Box => svg.bar(Paint::of(idx), (across + 9.0, down - 11.0), (13.0, 13.0), name),
        }
        svg.text(Voice::Label, (across + 29.0, down), Anchor::Start, 0.0, name);
        across += width;
    }
    down + LEGEND_GAP
}

/// Draws ticks and label of the vertical axis of a plot that begins at `top`; returns the plot's edges.
fn y_scale(svg: &mut Svg, top: f64, label: &str, ticks: &[Tick]) -> Frame {
    let widest = ticks.iter().filter_map(|tick| tick.label.as_deref());
    let widest = widest.map(|label| text_width(label, TICK_SIZE)).fold(0.0, f64::max);
    let left = MARGIN + LINE_HEIGHT + widest + 8.0;
    let frame = Frame { left, right: PLOT_RIGHT, top, bottom: top + PLOT_HEIGHT };
    for tick in ticks {
        let from = frame.at(0.0, tick.place);
        let class = if tick.label.is_some() { RuleClass::Grid } else { RuleClass::FaintGrid };
        svg.rule(class, from, frame.at(1.0, tick.place));
        if let Some(label) = &tick.label {
            svg.text(Voice::Faint, (from.0 - 7.0, from.1 + 4.0), Anchor::End, 0.0, label);
        }
    }
    let middle = (MARGIN + 10.0, f64::midpoint(frame.top, frame.bottom));
    svg.text(Voice::Label, middle, Anchor::Middle, -90.0, label);
    frame
}

/// Draws ticks and label of the horizontal axis; returns the label's baseline.
fn x_scale(svg: &mut Svg, frame: Frame, label: &str, ticks: &[Tick]) -> f64 {
    for tick in ticks {
        let from = frame.at(tick.place, 0.0);
        let class = if tick.label.is_some() { RuleClass::Grid } else { RuleClass::FaintGrid };
        svg.rule(class, from, frame.at(tick.place, 1.0));
        if let Some(label) = &tick.label {
            svg.text(Voice::Faint, (from.0, from.1 + 18.0), Anchor::Middle, 0.0, label);
        }
    }
    let middle = (f64::midpoint(frame.left, frame.right), frame.bottom + 42.0);
    svg.text(Voice::Label, middle, Anchor::Middle, 0.0, label);
    middle.1
}

fn draw_series(
    svg: &mut Svg,
    frame: Frame,
    (x, y): (&Projection, &Projection),
    paint: Paint,
    series: &Series,
) {
    // A point without a place breaks a line; a step goes on, as the value before it still holds.
    let place = |&(across, up): &(f64, f64)| {
        (!across.is_nan() && !up.is_nan()).then(|| frame.at(x.place(across), y.place(up)))
    };
    let places: Vec<Option<Point>> = series.points.iter().map(place).collect();
    let path = match series.shape {
        Shape::Line => line_path(&places),
        Shape::Step => step_path(&places.iter().copied().flatten().collect::<Vec<_>>()),
        Shape::Dots => String::new(),
    };
    if !path.is_empty() {
        svg.path(paint, &path, &series.name);
    }
    let has_dots = match series.shape {
        Shape::Line => places.len() <= DOTS_MAX,
        Shape::Step => false,
        Shape::Dots => true,
    };
    if has_dots {
        for at in places.into_iter().flatten() {
            svg.dot(paint, at);
        }
    }
}

/// Straight lines through what has a place.
fn line_path(places: &[Option<Point>]) -> String {
    let mut path = String::new();
    for run in places.split(Option::is_none) {
        let run: Vec<Point> = run.iter().copied().flatten().collect();
        for (at, (x, y)) in thinned(&run).into_iter().enumerate() {
            path.push_str(if at == 0 { "M" } else { "L" });
            path.push_str(&format!("{} {}", coord(x), coord(y)));
        }
    }
    path
}

/// Along to each point, then up to it.
fn step_path(places: &[Point]) -> String {
    let mut path = String::new();
    for (at, (x, y)) in thinned(places).into_iter().enumerate() {
        if at == 0 {
            path.push_str(&format!("M{} {}", coord(x), coord(y)));
        } else {
            path.push_str(&format!("H{}V{}", coord(x), coord(y)));
        }
    }
    path
}

/// The first and the last of `points`, and those between that lie apart from the last one kept.
fn thinned(points: &[Point]) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for (at, &point) in points.iter().enumerate() {
        let is_apart = kept.last().is_none_or(|last| {
            (point.0 - last.0).abs() >= APART_MIN || (point.1 - last.1).abs() >= APART_MIN
        });
        if is_apart || at + 1 == points.len() {
            kept.push(point);
        }
    }
    kept
}

fn draw_bars(svg: &mut Svg, frame: Frame, y: &Projection, groups: &[String], bars: &[Bars]) {
    let slot = 1.0 / groups.len().max(1) as f64;
    let width = 0.8 * slot / bars.len().max(1) as f64;
    let width_drawn = width * (frame.right - frame.left);
    let base = frame.at(0.0, y.place(0.0)).1;
    let numbers = bars.iter().flat_map(|one| &one.values).filter(|value| !value.is_nan());
    let has_room = |value: &f64| text_width(&number(*value), TICK_SIZE) <= width_drawn + 4.0;
    let are_numbered = numbers.into_iter().all(has_room);
    for (series_idx, series) in bars.iter().enumerate() {
        for (group_idx, (&value, group)) in series.values.iter().zip(groups).enumerate() {
            if value.is_nan() {
                continue;
            }
            let from = slot * (group_idx as f64 + 0.1) + width * series_idx as f64;
            let (left, end) = frame.at(from, y.place(value));
            let text = number(value);
            let what = format!("{group}, {}: {text}", series.name);
            // A gap of a tenth between bars, at most two units.
            let gap = (0.1 * width_drawn).min(2.0);
            let size = (width_drawn - gap, (base - end).abs());
            svg.bar(Paint::of(series_idx), (left + gap / 2.0, base.min(end)), size, &what);
            if are_numbered {
                let down = if end <= base { end - 5.0 } else { end + 14.0 };
                let at = (left + width_drawn / 2.0, down);
                svg.text(Voice::Faint, at, Anchor::Middle, 0.0, &text);
            }
        }
    }
    if base < frame.bottom {
        svg.rule(RuleClass::Axis, (frame.left, base), (frame.right, base));
    }
}

/// Draws the names of the groups, slanted where they are too long; returns how far down they reach.
pub(super) fn group_labels(svg: &mut Svg, frame: Frame, groups: &[String]) -> f64 {
    let slot = 1.0 / groups.len().max(1) as f64;
    let widest = widest(groups);
    let are_slanted = widest > slot * (frame.right - frame.left) - LABEL_GAP;
    for (idx, group) in groups.iter().enumerate() {
        let (x, bottom) = frame.at(slot * (idx as f64 + 0.5), 0.0);
        if are_slanted {
            svg.text(Voice::Label, (x + 4.0, bottom + 16.0), Anchor::End, -30.0, group);
        } else {
            svg.text(Voice::Label, (x, bottom + 20.0), Anchor::Middle, 0.0, group);
        }
    }
    frame.bottom + if are_slanted { 20.0 + 0.5 * widest } else { 22.0 }
}

/// How wide the longest of these labels is.
pub(super) fn widest(labels: &[String]) -> f64 {
    labels.iter().map(|label| text_width(label, LABEL_SIZE)).fold(0.0, f64::max)
}
