//! Figures as SVG: lines, steps and grouped bars over linear, logarithmic and tail axes; heat maps.
//!
//! A [`Figure`] is plain data; [`Figure::to_svg`] projects it ([`axis`]) and draws it ([`draw`], and
//! heat maps [`grid`]).
//! Coordinates are fractions of a unit, never whole pixels: the far tail of a distribution is a
//! matter of half a pixel, and rounding would turn it into stairs.
//!
//! What cannot be drawn (P3): a point with a coordinate that is not a number is left out (a line
//! breaks there, a group of bars has a gap, a field of a heat map is blank); an infinite coordinate,
//! one outside a given range, and one at or below zero on a logarithmic axis is drawn at the edge. A
//! line under the figure says how many of each there are, by series ([`notes`]).
//!
//! Colours come from custom properties (`--lh-ink`, `--lh-1`, `--lh-warm` and so on), so that a page decides
//! light or dark; every element also carries the light colour for readers that know no properties.

mod axis;
mod draw;
mod grid;
mod live;
mod notes;
mod svg;

pub use axis::{Axis, Scale};
pub use grid::Shading;
pub(crate) use live::Live;
pub(crate) use svg::{Breadth, RULES};

use grid::Grid;

/// A picture: a title, and below it axes with what is drawn between them, or a grid.
#[derive(Clone, Debug)]
pub struct Figure {
    title: String,
    content: Content,
    notes: Vec<String>,
}

#[derive(Clone, Debug)]
enum Content {
    Lines { x: Axis, y: Axis, series: Vec<Series> },
    Bars { y: Axis, groups: Vec<String>, bars: Vec<Bars>, stand: Stand },
    Grid(Grid),
}

/// Points under one name.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Horizontal and vertical coordinates, in the order they are joined.
    pub points: Vec<(f64, f64)>,
    /// How they are joined.
    pub shape: Shape,
}

/// How the points of a series are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Straight from each to the next; few points are marked by dots.
    Line,
    /// Along, then up: the value before a point holds until the point.
    Step,
    /// Not at all: a dot each.
    Dots,
}

/// How the bars of a group stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Beside,
    /// Each on top of the one before it.
    Stacked,
}

/// One bar a group, under one name.
#[derive(Clone, Debug)]
struct Bars {
    name: String,
    values: Vec<f64>,
    /// One a value, or none at all.
    intervals: Vec<Interval>,
}

/// Where a value may lie that was estimated: drawn as a whisker over its bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The low end; not a number where the value has no interval.
    pub low: f64,
    /// The high end; not a number where the value has no interval.
    pub high: f64,
}

impl Interval {
    /// Of a value that has none.
    pub const NONE: Self = Self { low: f64::NAN, high: f64::NAN };

    /// Whether there is something between the ends.
    fn is_shown(&self) -> bool {
        self.low < self.high
    }

    fn text(&self) -> String {
        format!("{} to {}", axis::number(self.low), axis::number(self.high))
    }
}

impl Series {
    /// Points joined by straight lines.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), shape: Shape::Line }
    }

    /// Points joined by steps.
    pub fn step(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), shape: Shape::Step }
    }

    /// Points that nothing joins.
    pub fn dots(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), shape: Shape::Dots }
    }
}

impl Figure {
    fn new(title: impl Into<String>, content: Content) -> Self {
        Self { title: title.into(), content, notes: Vec::new() }
    }

    /// Series over two axes.
    pub fn lines(title: impl Into<String>, x: Axis, y: Axis, series: Vec<Series>) -> Self {
        Self::new(title, Content::Lines { x, y, series })
    }

    /// Distributions: the share of values at or below each value. `series` are names with values in
    /// ascending order; values that are not a number are left out of the count, an infinite one (a
    /// request that never ended) counts. The horizontal axis is logarithmic, and the vertical one a
    /// [`Scale::Tail`] as far as the largest series reaches; [`Figure::with_x`] and
    /// [`Figure::with_y`] set others.
    pub fn cdf(title: impl Into<String>, x_label: &str, series: &[(&str, &[f64])]) -> Self {
        let distribution = |&(name, values): &(&str, &[f64])| {
            let values: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
            let share = |at: usize| (at + 1) as f64 / values.len() as f64;
            // Starting from none, so that the first value is a step too.
            let start = values.first().map(|&first| (first, 0.0));
            let steps = values.iter().enumerate().map(|(at, &value)| (value, share(at)));
            Series::step(name, start.into_iter().chain(steps))
        };
        let series: Vec<Series> = series.iter().map(distribution).collect();
        Self::lines(title, Axis::log(x_label), Axis::tail("share at or below"), series)
    }

    /// Bars in groups: each of `series` has a name and one value a group.
    ///
    /// # Panics
    ///
    /// If a series has more or fewer values than there are groups.
    pub fn bars(
        title: impl Into<String>,
        y: Axis,
        groups: &[&str],
        series: &[(&str, &[f64])],
    ) -> Self {
        let bars = series.iter().map(|&(name, values)| {
            assert_eq!(values.len(), groups.len(), "values of {name}");
            Bars { name: name.to_owned(), values: values.to_vec(), intervals: Vec::new() }
        });
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        let (bars, stand) = (bars.collect(), Stand::Beside);
        Self::new(title, Content::Bars { y, groups, bars, stand })
    }

    /// Bars that stand on top of each other, the first of `series` below: parts of a whole, of which the
    /// sum stands above. What is not above zero is not drawn. The vertical axis is an even one.
    ///
    /// # Panics
    ///
    /// If a series has more or fewer values than there are groups.
    pub fn stacks(
        title: impl Into<String>,
        y_label: &str,
        groups: &[&str],
        series: &[(&str, &[f64])],
    ) -> Self {
        let mut figure = Self::bars(title, Axis::linear(y_label), groups, series);
        if let Content::Bars { stand, .. } = &mut figure.content {
            *stand = Stand::Stacked;
        }
        figure
    }

    /// The figure with an interval over each bar of the series `name`, one a group; one whose ends
    /// are not in order or not numbers is not drawn. Figures without bars stay as they are.
    ///
    /// # Panics
    ///
    /// If there are bars, but stacked ones or no such series, or more or fewer intervals than groups.
    #[must_use]
    pub fn with_intervals(mut self, name: &str, intervals: &[Interval]) -> Self {
        if let Content::Bars { groups, bars, stand, .. } = &mut self.content {
            assert_eq!(*stand, Stand::Beside, "intervals of parts of a stack");
            assert_eq!(intervals.len(), groups.len(), "intervals of {name}");
            let series = bars.iter_mut().find(|one| one.name == name);
            series.unwrap_or_else(|| panic!("no bars of {name}")).intervals = intervals.to_vec();
        }
        self
    }

    /// A heat map: a grid of ratios, coloured by how far they lie from one. `values` has one entry a
    /// row, and in it one ratio a column; a field whose ratio is not a number is left blank.
    ///
    /// # Panics
    ///
    /// If there are more or fewer values than rows, or in one of them than columns.
    pub fn heat_map(
        title: impl Into<String>,
        columns: &[&str],
        rows: &[&str],
        values: &[Vec<f64>],
        shading: Shading,
    ) -> Self {
        Self::new(title, Content::Grid(Grid::new(columns, rows, values, shading)))
    }

    /// The figure with another horizontal axis; bars and heat maps have none, and stay as they are.
    #[must_use]
    pub fn with_x(mut self, axis: Axis) -> Self {
        match &mut self.content {
            Content::Lines { x, .. } => *x = axis,
            Content::Bars { .. } | Content::Grid(_) => {}
        }
        self
    }

    /// The figure with another vertical axis; heat maps have none, and stay as they are.
    #[must_use]
    pub fn with_y(mut self, axis: Axis) -> Self {
        match &mut self.content {
            Content::Lines { y, .. } | Content::Bars { y, .. } => *y = axis,
            Content::Grid(_) => {}
        }
        self
    }

    /// The figure with one more line of text under it.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The figure as a file of its own.
    pub fn to_svg(&self) -> String {
        draw::draw(self, svg::Stands::Alone, Breadth::Broad)
    }

    /// The figure as an element of a page that has the rules and the colours.
    pub(crate) fn to_inline_svg(&self, breadth: Breadth) -> String {
        draw::draw(self, svg::Stands::InPage, breadth)
    }

    /// What a heat map shows, as a sentence, if all its fields show the same: a picture would show nothing.
    pub(crate) fn one_value(&self) -> Option<String> {
        let Content::Grid(grid) = &self.content else { return None };
        let (value, count) = grid.one_value()?;
        let notes: String = self.notes.iter().map(|note| format!(" {note}")).collect();
        Some(format!("{}: {value} in each of the {count} fields.{notes}", self.title))
    }

    /// What the page's script makes the figure answer from, as JSON: nothing for a figure that stays
    /// as it is.
    pub(crate) fn to_live(&self) -> Option<Live> {
        live::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure's text, after checking what holds for every figure.
    fn checked(figure: &Figure) -> String {
        let svg = figure.to_svg();
        for word in ["NaN", "inf", "script", "href"] {
            assert!(!svg.contains(word), "{word} in {svg}");
        }
        assert_eq!(svg.matches("<svg ").count(), 1);
        assert!(svg.ends_with("</svg>\n"));
        assert_eq!(svg, figure.to_svg(), "P1");
        svg
    }

    /// The figure's series paths: those that are no key of the legend.
    fn paths(svg: &str) -> Vec<&str> {
        let rest = svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        rest.filter(|path| !path.ends_with("h22")).collect()
    }

    #[test]
    fn a_distribution_steps_from_none_to_all() {
        let svg = checked(&Figure::cdf("Latency", "ms", &[("normal", &[1.0, 10.0, 100.0])]));
        let path = paths(&svg)[0];
        assert!(path.starts_with('M') && path.matches('H').count() == 3, "{path}");
        for text in
            [">Latency</text>", ">ms</text>", ">normal</text>", ">10</text>", ">90 %</text>"]
        {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn values_at_zero_on_a_log_axis_are_drawn_at_the_edge_and_counted() {
        let figure = Figure::cdf("a", "ms", &[("cached", &[0.0, 0.0, 5.0])]);
        assert!(checked(&figure).contains("cached: 3 values beyond the axes, drawn at the edge"));
        let all = Figure::cdf("a", "ms", &[("zero", &[0.0])]);
        assert_eq!(paths(&checked(&all)).len(), 1);
    }

    #[test]
    fn nothing_one_value_and_no_number_are_figures_too() {
        let odd: [&[f64]; 7] = [
            &[],
            &[3.0],
            &[3.0, 3.0, 3.0],
            &[f64::NAN],
            &[f64::NAN, 1.0, f64::INFINITY],
            &[f64::NEG_INFINITY, f64::MIN, 0.0, f64::MIN_POSITIVE, f64::MAX],
            &[-2.0, -1.0],
        ];
        for values in odd {
            let cdf = Figure::cdf("a", "b", &[("c", values)]);
            checked(&cdf);
            checked(&cdf.clone().with_x(Axis::linear("b")).with_y(Axis::linear("d")));
            checked(&cdf.with_y(Axis::log("d")));
            let points = || values.iter().map(|&value| (value, value));
            for axis in [Axis::linear("e"), Axis::log("e"), Axis::tail("e")] {
                let series = vec![
                    Series::line("f", points()),
                    Series::step("g", points()),
                    Series::dots("j", points()),
                ];
                checked(&Figure::lines("a", axis.clone(), axis.clone(), series));
                let groups: Vec<&str> = values.iter().map(|_| "group").collect();
                checked(&Figure::bars("a", axis, &groups, &[("h", values), ("i", values)]));
            }
        }
        checked(&Figure::cdf("a", "b", &[]));
        checked(&Figure::bars("a", Axis::linear("b"), &[], &[]));
        checked(&Figure::bars("a", Axis::linear("b"), &["no bars"], &[]));
    }

    #[test]
    fn a_line_breaks_where_a_point_is_missing() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 0.0)];
        let (x, y) = (Axis::linear("x"), Axis::linear("y"));
        let svg = checked(&Figure::lines("a", x, y, vec![Series::line("b", points)]));
        assert_eq!(paths(&svg)[0].matches('M').count(), 2);
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(svg.contains("b: 1 value left out, not a number"));
    }

    #[test]
    fn dots_are_not_joined() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0)];
        let (x, y) = (Axis::linear("x"), Axis::log("y"));
        let svg = checked(&Figure::lines("a", x, y, vec![Series::dots("b", points)]));
        assert_eq!(paths(&svg).len(), 0);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("b: 1 value left out, not a number"));
    }

    #[test]
    fn a_million_values_stay_a_small_file_and_keep_their_ends() {
        let values: Vec<f64> = (1..=1_000_000).map(f64::from).collect();
        let drawn = |values: &[f64]| {
            let figure = Figure::cdf("a", "b", &[("c", values)]).with_y(Axis::linear("share"));
            checked(&figure)
        };
        let (svg, few) = (drawn(&values), drawn(&[1.0, 1e6]));
        assert!(svg.len() < 200_000, "{}", svg.len());
        let start = |svg: &str| paths(svg)[0].split('H').next().map(str::to_owned);
        let end = |svg: &str| paths(svg)[0].rsplit('V').next().map(str::to_owned);
        assert_eq!(start(&svg), start(&few));
        assert_eq!(end(&svg), end(&few));
    }

    #[test]
    fn bars_stand_side_by_side_and_carry_their_numbers() {
        let series: [(&str, &[f64]); 2] = [("paper", &[18.0, 221.0]), ("ours", &[17.4, -3.0])];
        let svg = checked(&Figure::bars("a", Axis::linear("ms"), &["8 kB", "40 kB"], &series));
        let keys = 2;
        assert_eq!(svg.matches("<rect class=\"lh-area").count(), 4 + keys);
        assert!(svg.contains("<title>40 kB, paper: 221</title>"));
        assert!(svg.contains(">17.4</text>"));
    }

    #[test]
    fn intervals_are_whiskers_that_lie_within_the_axis() {
        let series: [(&str, &[f64]); 2] = [("paper", &[18.0, 221.0]), ("ours", &[17.4, 30.0])];
        let figure = Figure::bars("a", Axis::linear("ms"), &["8 kB", "40 kB"], &series);
        let intervals = [Interval { low: 16.0, high: 1000.0 }, Interval::NONE];
        let svg = checked(&figure.clone().with_intervals("ours", &intervals));
        let whiskers = |svg: &str| svg.matches("<line class=\"lh-whisker\"").count();
        assert_eq!(whiskers(&svg), 3, "a line and two caps");
        assert!(svg.contains("<title>8 kB, ours: 17.4 (16 to 1000)</title>"), "{svg}");
        assert!(svg.contains(">1000</text>"), "the axis reaches the high end");
        assert_eq!(whiskers(&checked(&figure)), 0);
        let odd =
            [Interval { low: 2.0, high: 1.0 }, Interval { low: f64::NEG_INFINITY, high: 3.0 }];
        let odd = checked(&figure.with_intervals("paper", &odd));
        assert_eq!(whiskers(&odd), 3, "{odd}");
    }

    #[test]
    #[should_panic(expected = "no bars of theirs")]
    fn intervals_of_no_series_are_our_bug() {
        let figure = Figure::bars("a", Axis::linear("b"), &["one"], &[("ours", &[1.0])]);
        let _ = figure.with_intervals("theirs", &[Interval::NONE]);
    }

    /// The legend stands right above the plot, and the highest bar must not push its number into it.
    #[test]
    fn the_number_of_the_highest_bar_stays_clear_of_the_legend() {
        let series: [(&str, &[f64]); 2] = [("paper", &[310.0, 670.0]), ("ours", &[400.0, 450.0])];
        for axis in [Axis::linear("ms"), Axis::log("ms")] {
            let svg = checked(&Figure::bars("a", axis, &["8 kB", "40 kB"], &series));
            let down = |text: &str| -> f64 {
                let line = svg.lines().find(|line| line.contains(&format!(">{text}</text>")));
                line.unwrap()
                    .split(" y=\"")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap()
            };
            // From baseline to baseline: two lines of text, and half a line free between them.
            assert!(down("670") - down("paper") >= 28.0, "{} {}", down("670"), down("paper"));
        }
    }

    /// Two names that are cut to the same few letters tell nothing apart.
    #[test]
    fn names_of_groups_are_not_cut_for_want_of_room_to_the_left() {
        let groups = ["assisted, eRAID(2)", "assisted, eRAID(3)", "pro-active, eRAID(2)", "level"];
        let figure = Figure::bars("a", Axis::linear("%"), &groups, &[("b", &[1.0, 2.0, 3.0, 4.0])]);
        for breadth in [Breadth::Broad, Breadth::Narrow] {
            let svg = figure.to_inline_svg(breadth);
            for group in groups {
                assert!(svg.contains(&format!(">{group}</text>")), "{breadth:?}: {group}");
            }
            // The first would begin left of a narrow figure.
            assert_eq!(svg.contains("rotate(-30 "), breadth == Breadth::Broad);
        }
    }

    #[test]
    fn stacks_stand_on_each_other_under_their_sum() {
        let series: [(&str, &[f64]); 3] =
            [("wait", &[10.0, 0.0]), ("work", &[5.5, f64::NAN]), ("retry", &[-1.0, 2.0])];
        let svg = checked(&Figure::stacks("a", "ms", &["x", "y"], &series));
        let tops: Vec<&str> = svg.lines().filter(|line| line.contains("<title>x, ")).collect();
        let number = |line: &str, name: &str| -> f64 {
            let rest = line.split(&format!(" {name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        assert_eq!(tops.len(), 2, "nothing below zero: {svg}");
        let [below, above] =
            [tops[0], tops[1]].map(|line| (number(line, "y"), number(line, "height")));
        assert!((above.0 + above.1 - below.0).abs() < 0.02, "{below:?} {above:?}");
        assert!(svg.contains(">15.5</text>") && svg.contains(">2</text>"), "{svg}");
    }

    #[test]
    fn a_group_without_a_number_has_a_gap_that_is_named() {
        let series: [(&str, &[f64]); 2] = [("paper", &[f64::NAN, 221.0]), ("ours", &[17.4, 3.0])];
        let svg = checked(&Figure::bars("a", Axis::linear("ms"), &["8 kB", "40 kB"], &series));
        assert!(svg.contains("paper: no number for 8 kB"), "{svg}");
    }

    /// Numbers over some bars and not over others would look as if these were the ones that count.
    #[test]
    fn bars_too_narrow_for_one_number_carry_none() {
        let groups: Vec<String> = (0..40).map(|group| group.to_string()).collect();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let mut values = vec![7.0; 40];
        let drawn = |values: &[f64]| {
            let svg = checked(&Figure::bars("a", Axis::linear("%"), &groups, &[("b", values)]));
            svg.matches(">7</text>").count()
        };
        let all = drawn(&values);
        values[3] = 123.4;
        assert!(all >= 40 && drawn(&values) <= 1, "{all}");
    }

    /// The opacity of each field whose tooltip begins with `name`.
    fn opacities<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
        let fields = svg.lines().filter(|line| line.contains(&format!("<title>{name}")));
        let opacity = |field: &'a str| field.split("fill-opacity=\"").nth(1)?.split('"').next();
        fields.filter_map(opacity).collect()
    }

    #[test]
    fn fields_are_coloured_by_their_ratio_and_carry_it() {
        let values = [vec![1.0, 1.1, 1.7], vec![0.5, 1.0 / 1.1, 1.02]];
        let shading = Shading::full_at(1.1);
        let svg = checked(&Figure::heat_map("a", &["x", "y", "z"], &["r", "s"], &values, shading));
        let keys = 3;
        assert_eq!(svg.matches("<rect class=\"lh-warm\"").count(), 4 + keys - 1);
        assert_eq!(svg.matches("<rect class=\"lh-cool\"").count(), 2 + 1);
        assert_eq!(opacities(&svg, "r, "), ["0", "0.55", "0.55"]);
        assert_eq!(opacities(&svg, "s, "), ["0.55", "0.55", "0.11"]);
        for text in
            [">1.70</text>", "<title>s, z: 1.02</title>", ">1.10 or more</text>", ">x</text>"]
        {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("Blank"), "every field has a number");
    }

    #[test]
    fn fields_without_a_number_are_blank_and_those_without_bound_at_the_edge() {
        let values = [vec![f64::NAN, f64::INFINITY], vec![0.0, f64::NAN]];
        let shading = Shading::full_at(1.1);
        let svg = checked(&Figure::heat_map("a", &["x", "y"], &["r", "s"], &values, shading));
        assert_eq!(opacities(&svg, "r, "), ["0.55"]);
        assert!(
            svg.contains("<title>r, y: ∞</title>") && svg.contains("<title>s, x: 0.00</title>")
        );
        assert!(svg.contains("Blank: no number (2 of 4 fields)"));
        assert!(
            svg.contains(
                "2 values without bound or not above zero, drawn at the edge of the scale"
            )
        );
    }

    #[test]
    fn nothing_one_field_and_many_are_heat_maps_too() {
        let odd =
            [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -0.0, f64::MIN, f64::MAX, 1e-310, 1.0];
        for (row_count, column_count) in [(0, 0), (0, 3), (3, 0), (1, 1), (2, 8), (3, 500)] {
            for name in ["a", "a name that is too long to stand beside anything else at all"] {
                let (rows, columns) = (vec![name; row_count], vec![name; column_count]);
                let row: Vec<f64> = odd.iter().copied().cycle().take(column_count).collect();
                for limit in [1.01, 1.1, f64::MAX] {
                    let (values, shading) = (vec![row.clone(); row_count], Shading::full_at(limit));
                    let map = Figure::heat_map("a", &columns, &rows, &values, shading);
                    let drawn = values.iter().flatten().filter(|value| !value.is_nan()).count();
                    assert_eq!(checked(&map).matches("fill-opacity").count(), drawn + 3);
                    checked(&map.with_x(Axis::log("x")).with_y(Axis::tail("y")));
                }
            }
        }
    }

    #[test]
    fn columns_are_slanted_where_their_names_are_too_long() {
        let drawn = |columns: &[&str]| {
            let values = [vec![1.0; columns.len()]];
            checked(&Figure::heat_map("a", columns, &["r"], &values, Shading::full_at(1.1)))
        };
        assert!(!drawn(&["x", "y"]).contains("rotate"));
        assert_eq!(drawn(&["x", "a name of some length"]).matches("rotate(-30 ").count(), 2);
    }

    #[test]
    #[should_panic(expected = "values of two")]
    fn a_field_too_few_is_our_bug() {
        let values = [vec![1.0], vec![]];
        let _ = Figure::heat_map("a", &["x"], &["one", "two"], &values, Shading::full_at(1.1));
    }

    #[test]
    fn names_are_escaped_and_notes_are_shown() {
        let figure = Figure::cdf("<t>", "<x>", &[("<s>", &[1.0])]).with_note("<n>");
        let svg = checked(&figure);
        for (raw, escaped) in [("<t>", "&lt;t&gt;"), ("<x>", "&lt;x&gt;"), ("<n>", "&lt;n&gt;")] {
            assert!(!svg.contains(raw) && svg.contains(escaped), "{raw}");
        }
        assert!(!svg.contains("<s>"));
        let values = [vec![1.0]];
        let map = Figure::heat_map("<t>", &["<x>"], &["<s>"], &values, Shading::full_at(1.1));
        let svg = checked(&map.with_note("<n>"));
        for raw in ["<t>", "<x>", "<s>", "<n>"] {
            assert!(!svg.contains(raw), "{raw}");
        }
        assert!(svg.contains("<title>&lt;s&gt;, &lt;x&gt;: 1.00</title>"));
    }

    #[test]
    fn a_figure_in_a_page_brings_no_rules_of_its_own() {
        let figure = Figure::cdf("a", "b", &[("c", &[1.0])]);
        assert!(figure.to_svg().contains("<style>") && figure.to_svg().contains("xmlns="));
        let inline = figure.to_inline_svg(Breadth::Broad);
        assert!(!inline.contains("<style>") && !inline.contains("xmlns"), "{inline}");
    }

    #[test]
    #[should_panic(expected = "values of ours")]
    fn a_bar_too_few_is_our_bug() {
        let _ = Figure::bars("a", Axis::linear("b"), &["one", "two"], &[("ours", &[1.0])]);
    }
}
