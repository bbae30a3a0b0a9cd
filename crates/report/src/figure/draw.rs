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
use super::svg::{
    Anchor, Breadth, Paint, Point, RuleClass, Stands, Svg, Voice, coord, fitted, shortened,
    text_width, wrapped,
};
use super::{Bars, Content, Figure, Interval, Series, Shape, Stand, notes};

const PLOT_HEIGHT: f64 = 340.0;
pub(super) const MARGIN: f64 = 14.0;
const TITLE_SIZE: f64 = 16.0;
/// From the baseline of the title's last line to that of the legend's first row.
const TITLE_GAP: f64 = 24.0;
/// From the baseline of the legend's last row to the plot.
pub(super) const LEGEND_GAP: f64 = 14.0;
const LINE_HEIGHT: f64 = 20.0;
pub(super) const LABEL_SIZE: f64 = 13.0;
pub(super) const TICK_SIZE: f64 = 12.0;
/// What is left free between two labels side by side.
pub(super) const LABEL_GAP: f64 = 6.0;
/// Few bars are no wider than this.
const BAR_WIDTH_MAX: f64 = 54.0;
/// Few stacks are no wider than this.
const STACK_WIDTH_MAX: f64 = 90.0;
/// How far apart labels of this slant, in degrees, stand without touching.
const SLANTED_APART: f64 = 29.0;
const UPRIGHT_APART: f64 = 15.0;
/// How far to the side a slanted name reaches, of its width: the cosine of its slant, rounded up.
pub(super) const SLANTED_SHARE: f64 = 0.87;
/// Names of groups that are longer are cut. They reach down, where a narrow figure has as much room as a
/// broad one.
pub(super) const GROUP_CHARS_MAX: usize = 36;
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
pub(crate) fn draw(figure: &Figure, stands: Stands, breadth: Breadth) -> String {
    let mut svg = Svg::new(breadth);
    let room = breadth.width() - 2.0 * MARGIN;
    let mut down = MARGIN + 12.0 - LINE_HEIGHT;
    // Bold.
    for line in wrapped(&figure.title, 1.06 * TITLE_SIZE, room) {
        down += LINE_HEIGHT;
        svg.text(Voice::Title, (MARGIN, down), Anchor::Start, 0.0, &line);
    }
    svg.title_ends_at(down + TITLE_GAP - 16.0);
    let under_title = down + TITLE_GAP;
    let Plotted { below, notes } = match &figure.content {
        Content::Lines { x, y, series } => plot_lines(&mut svg, under_title, [x, y], series),
        Content::Bars { y, groups, bars, stand: Stand::Beside } => {
            plot_bars(&mut svg, under_title, y, groups, bars)
        }
        Content::Bars { y, groups, bars, stand: Stand::Stacked } => {
            plot_stacks(&mut svg, under_title, y, groups, bars)
        }
        Content::Grid(grid) => grid.plot(&mut svg, under_title),
    };
    let mut down = below;
    for note in figure.notes.iter().chain(&notes) {
        down += 2.0;
        for line in wrapped(note, TICK_SIZE, room) {
            down += LINE_HEIGHT - 2.0;
            svg.text(Voice::Faint, (MARGIN, down), Anchor::Start, 0.0, &line);
        }
    }
    svg.finish(stands, down + MARGIN, &figure.title)
}

/// Where a plot of this breadth ends on the right.
pub(super) const fn plot_right(breadth: Breadth) -> f64 {
    breadth.width() - MARGIN - 10.0
}

fn plot_lines(svg: &mut Svg, top: f64, axes: [&Axis; 2], series: &[Series]) -> Plotted {
    let [x, y] = projections(axes, series);
    let names: Vec<&str> = series.iter().map(|one| &*one.name).collect();
    let top = legend(svg, top, Key::Line, &names);
    let frame = y_scale(svg, top, &axes[1].label, &y);
    let below = x_scale(svg, frame, &axes[0].label, &x);
    for (idx, one) in series.iter().enumerate() {
        svg.of_series(idx, |svg| draw_series(svg, frame, [&x, &y], Paint::of(idx), one));
    }
    edges(svg, frame);
    let notes = series.iter().flat_map(|one| notes::of_series(one, &x, &y)).collect();
    Plotted { below, notes }
}

/// The horizontal and the vertical axis, fitted to all series.
pub(super) fn projections([x, y]: [&Axis; 2], series: &[Series]) -> [Projection; 2] {
    let points = || series.iter().flat_map(|one| &one.points);
    let x = Projection::new(x, points().map(|point| point.0));
    [x, Projection::new(y, points().map(|point| point.1))]
}

fn plot_bars(svg: &mut Svg, top: f64, y_axis: &Axis, groups: &[String], bars: &[Bars]) -> Plotted {
    let ends = |interval: &Interval| [interval.low, interval.high];
    let values = bars
        .iter()
        .flat_map(|one| one.values.iter().copied().chain(one.intervals.iter().flat_map(ends)));
    let y = Projection::of_bars(y_axis, values);
    let names: Vec<&str> = bars.iter().map(|one| &*one.name).collect();
    let top = legend(svg, top, Key::Box, &names);
    let frame = y_scale(svg, top, &y_axis.label, &y);
    draw_bars(svg, frame, &y, groups, bars);
    let below = group_labels(svg, frame, groups);
    edges(svg, frame);
    svg.ask_between([frame.left, frame.top, frame.right, frame.bottom]);
    Plotted { below, notes: notes::of_bars(bars, groups, &y) }
}

fn plot_stacks(
    svg: &mut Svg,
    top: f64,
    y_axis: &Axis,
    groups: &[String],
    bars: &[Bars],
) -> Plotted {
    let part = |one: &Bars, group: usize| {
        Some(one.values[group]).filter(|value| value.is_finite() && *value > 0.0)
    };
    let sum = |group: usize| bars.iter().filter_map(|one| part(one, group)).sum::<f64>();
    let y = Projection::of_bars(y_axis, (0..groups.len()).map(sum));
    let names: Vec<&str> = bars.iter().map(|one| &*one.name).collect();
    let top = legend(svg, top, Key::Box, &names);
    let frame = y_scale(svg, top, &y_axis.label, &y);
    let slot = 1.0 / groups.len().max(1) as f64;
    let width = (0.7 * slot * (frame.right - frame.left)).min(STACK_WIDTH_MAX);
    let left = |group: usize| frame.at(slot * (group as f64 + 0.5), 0.0).0 - width / 2.0;
    let mut heights = vec![0.0; groups.len()];
    for (idx, one) in bars.iter().enumerate() {
        svg.of_series(idx, |svg| {
            for (group, name) in groups.iter().enumerate() {
                let Some(value) = part(one, group) else { continue };
                let from = frame.at(0.0, y.place(heights[group])).1;
                heights[group] += value;
                let to = frame.at(0.0, y.place(heights[group])).1;
                let what = format!("{name}, {}: {}", one.name, number(value));
                svg.bar(Paint::of(idx), (left(group), to), (width, from - to), &what);
            }
        });
    }
    for (group, &height) in heights.iter().enumerate() {
        let (middle, up) = (left(group) + width / 2.0, frame.at(0.0, y.place(height)).1);
        if text_width(&number(height), TICK_SIZE) <= slot * (frame.right - frame.left) {
            let text = number(height);
            svg.text(Voice::Faint, (middle, up - 5.0), Anchor::Middle, 0.0, &text);
        }
    }
    let below = group_labels(svg, frame, groups);
    edges(svg, frame);
    svg.ask_between([frame.left, frame.top, frame.right, frame.bottom]);
    Plotted { below, notes: Vec::new() }
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

/// Draws the names of the series, the first of them with this baseline; returns where the plot begins.
fn legend(svg: &mut Svg, baseline: f64, key: Key, names: &[&str]) -> f64 {
    let (mut across, mut down) = (MARGIN, baseline);
    let right = svg.breadth().width() - MARGIN;
    for (idx, name) in names.iter().enumerate() {
        let shown = fitted(name, LABEL_SIZE, right - MARGIN - 30.0);
        let width = 30.0 + text_width(&shown, LABEL_SIZE);
        if across + width > right && across > MARGIN {
            across = MARGIN;
            down += LINE_HEIGHT;
        }
        svg.key(idx, |svg| {
            match key {
                Key::Line => {
                    let line = format!("M{} {}h22", coord(across), coord(down - 4.5));
                    svg.path(Paint::of(idx), &line, name);
                }
                Key::Box => {
                    svg.bar(Paint::of(idx), (across + 9.0, down - 11.0), (13.0, 13.0), name);
                }
            }
            svg.text(Voice::Label, (across + 29.0, down), Anchor::Start, 0.0, &shown);
        });
        across += width + 18.0;
    }
    down + LEGEND_GAP
}

/// Draws ticks and label of the vertical axis of a plot that begins at `top`; returns the plot's edges.
fn y_scale(svg: &mut Svg, top: f64, label: &str, y: &Projection) -> Frame {
    let ticks = y.ticks_apart(PLOT_HEIGHT, |_| TICK_SIZE + 2.0);
    let widest = ticks.iter().filter_map(|tick| tick.label.as_deref());
    let widest = widest.map(|label| text_width(label, TICK_SIZE)).fold(0.0, f64::max);
    let lines = wrapped(label, LABEL_SIZE, PLOT_HEIGHT);
    let beside = LINE_HEIGHT + 15.0 * lines.len().saturating_sub(1) as f64;
    let left = MARGIN + beside + widest + 8.0;
    let right = plot_right(svg.breadth());
    let frame = Frame { left, right, top, bottom: top + PLOT_HEIGHT };
    for tick in &ticks {
        let from = frame.at(0.0, tick.place);
        svg.rule(grid_class(tick), from, frame.at(1.0, tick.place));
        if let Some(label) = &tick.label {
            svg.text(Voice::Faint, (from.0 - 7.0, from.1 + 4.0), Anchor::End, 0.0, label);
        }
    }
    let middle = f64::midpoint(frame.top, frame.bottom);
    for (idx, line) in lines.iter().enumerate() {
        let at = (MARGIN + 10.0 + 15.0 * idx as f64, middle);
        svg.text(Voice::Label, at, Anchor::Middle, -90.0, line);
    }
    frame
}

/// Draws ticks and label of the horizontal axis; returns the baseline of the label's last line.
fn x_scale(svg: &mut Svg, frame: Frame, label: &str, x: &Projection) -> f64 {
    let ticks =
        x.ticks_apart(frame.right - frame.left, |label| text_width(label, TICK_SIZE) + LABEL_GAP);
    for tick in &ticks {
        let from = frame.at(tick.place, 0.0);
        svg.rule(grid_class(tick), from, frame.at(tick.place, 1.0));
        if let Some(label) = &tick.label {
            // A label at the edge stays within the figure.
            let half = text_width(label, TICK_SIZE) / 2.0;
            let x = from.0.min(svg.breadth().width() - 3.0 - half);
            svg.text(Voice::Faint, (x, from.1 + 18.0), Anchor::Middle, 0.0, label);
        }
    }
    let mut down = frame.bottom + 42.0 - 17.0;
    for line in wrapped(label, LABEL_SIZE, svg.breadth().width() - 2.0 * MARGIN) {
        down += 17.0;
        // In the middle of the plot, as far as the figure has room there.
        let half = text_width(&line, LABEL_SIZE) / 2.0 + 4.0;
        let middle = f64::midpoint(frame.left, frame.right);
        let middle = middle.min(svg.breadth().width() - half).max(half);
        svg.text(Voice::Label, (middle, down), Anchor::Middle, 0.0, &line);
    }
    down
}

fn grid_class(tick: &Tick) -> RuleClass {
    if tick.label.is_some() { RuleClass::Grid } else { RuleClass::FaintGrid }
}

fn draw_series(
    svg: &mut Svg,
    frame: Frame,
    [x, y]: [&Projection; 2],
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
    apart(points).into_iter().map(|idx| points[idx]).collect()
}

/// Which of `points` lie apart from the last one before them that does; the first and the last do.
pub(super) fn apart(points: &[Point]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for (idx, point) in points.iter().enumerate() {
        let is_apart = kept.last().map(|&last| points[last]).is_none_or(|last| {
            (point.0 - last.0).abs() >= APART_MIN || (point.1 - last.1).abs() >= APART_MIN
        });
        if is_apart || idx + 1 == points.len() {
            kept.push(idx);
        }
    }
    kept
}

fn draw_bars(svg: &mut Svg, frame: Frame, y: &Projection, groups: &[String], bars: &[Bars]) {
    let slot = 1.0 / groups.len().max(1) as f64;
    let width_drawn =
        (0.8 * slot / bars.len().max(1) as f64 * (frame.right - frame.left)).min(BAR_WIDTH_MAX);
    let width = width_drawn / (frame.right - frame.left);
    let base = frame.at(0.0, y.place(0.0)).1;
    let numbers = bars.iter().flat_map(|one| &one.values).filter(|value| !value.is_nan());
    let has_room = |value: &f64| text_width(&number(*value), TICK_SIZE) <= width_drawn;
    let are_numbered = numbers.into_iter().all(has_room);
    for (series_idx, series) in bars.iter().enumerate() {
        svg.of_series(series_idx, |svg| {
            for (group_idx, (&value, group)) in series.values.iter().zip(groups).enumerate() {
                if value.is_nan() {
                    continue;
                }
                let first = slot * (group_idx as f64 + 0.5) - width * bars.len() as f64 / 2.0;
                let from = first + width * series_idx as f64;
                let (left, end) = frame.at(from, y.place(value));
                let text = number(value);
                let interval = series.intervals.get(group_idx).filter(|one| one.is_shown());
                let range = interval.map_or(String::new(), |one| format!(" ({})", one.text()));
                let what = format!("{group}, {}: {text}{range}", series.name);
                // A gap of a tenth between bars, at most two units.
                let gap = (0.1 * width_drawn).min(2.0);
                let size = (width_drawn - gap, (base - end).abs());
                svg.bar(Paint::of(series_idx), (left + gap / 2.0, base.min(end)), size, &what);
                let middle = left + width_drawn / 2.0;
                let ends =
                    interval.map(|one| [one.low, one.high].map(|at| frame.at(0.0, y.place(at)).1));
                if let Some([low, high]) = ends {
                    whisker(svg, middle, [low, high], (0.3 * width_drawn).min(6.0));
                }
                if are_numbered {
                    let [lowest, highest] =
                        ends.map_or([end, end], |[low, high]| [low.max(end), high.min(end)]);
                    let down = if end <= base { highest - 5.0 } else { lowest + 14.0 };
                    svg.text(Voice::Faint, (middle, down), Anchor::Middle, 0.0, &text);
                }
            }
        });
    }
    if base < frame.bottom {
        svg.rule(RuleClass::Axis, (frame.left, base), (frame.right, base));
    }
}

/// An interval: a line from its low end to its high one, with a cap of twice `half` at each.
fn whisker(svg: &mut Svg, across: f64, [low, high]: [f64; 2], half: f64) {
    svg.rule(RuleClass::Whisker, (across, low), (across, high));
    for end in [low, high] {
        svg.rule(RuleClass::Whisker, (across - half, end), (across + half, end));
    }
}

/// Draws the names of groups or columns, slanted or upright where they are too long, and not all of
/// them where they are too many; returns how far down they reach.
pub(super) fn group_labels(svg: &mut Svg, frame: Frame, groups: &[String]) -> f64 {
    let slot = (frame.right - frame.left) / groups.len().max(1) as f64;
    let shown: Vec<String> = groups.iter().map(|group| shortened(group, GROUP_CHARS_MAX)).collect();
    // A slanted name ends under its group and begins further left, where the figure has to have room.
    let stance = Stance::of(&shown, slot, (frame.left + slot / 2.0) / SLANTED_SHARE);
    let every = (UPRIGHT_APART / slot).ceil().max(1.0) as usize;
    for (idx, group) in shown.iter().enumerate().step_by(every) {
        let (x, bottom) = (frame.left + slot * (idx as f64 + 0.5), frame.bottom);
        match stance {
            Stance::Level => {
                svg.text(Voice::Label, (x, bottom + 20.0), Anchor::Middle, 0.0, group);
            }
            Stance::Slanted => {
                svg.text(Voice::Label, (x + 4.0, bottom + 16.0), Anchor::End, -30.0, group);
            }
            Stance::Upright => {
                svg.text(Voice::Label, (x + 4.5, bottom + 8.0), Anchor::End, -90.0, group);
            }
        }
    }
    frame.bottom
        + match stance {
            Stance::Level => 22.0,
            Stance::Slanted => 20.0 + 0.5 * widest(&shown),
            Stance::Upright => 10.0 + widest(&shown),
        }
}

/// How the names of groups stand under them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stance {
    Level,
    Slanted,
    Upright,
}

impl Stance {
    /// For these names, each with `slot` of its own. A slanted one reaches to the left, where the first has
    /// `room`, and each other one has that of a slot more.
    pub(super) fn of(names: &[String], slot: f64, room: f64) -> Self {
        if widest(names) <= slot - LABEL_GAP {
            Self::Level
        } else if slot >= SLANTED_APART
            && names.iter().enumerate().all(|(idx, name)| {
                text_width(name, LABEL_SIZE) <= room + idx as f64 * slot / SLANTED_SHARE
            })
        {
            Self::Slanted
        } else {
            Self::Upright
        }
    }
}

/// How wide the longest of these labels is.
pub(super) fn widest(labels: &[String]) -> f64 {
    labels.iter().map(|label| text_width(label, LABEL_SIZE)).fold(0.0, f64::max)
}
