//! Heat maps: a grid of ratios, each field coloured by how far its ratio lies from one; or of amounts,
//! coloured by how much they are.
//!
//! ```text
//!   0.91 or less, 1.00, 1.10 or more       the legend
//!         +------+------+------+
//!     row | 1.02 |      | 0.97 |           a ratio that is not a number: nothing is drawn
//!         +------+------+------+
//!     row | 1.10 | 1.00 | 1.31 |           at the limit and beyond: the same colour
//!         +------+------+------+
//!          column names, slanted where they are too long
//! ```
//!
//! Strength goes by the logarithm: a ratio and its inverse are equally far from one. Strength is
//! opacity over the page's ground, so that one is as light or dark as the page.

use std::collections::BTreeMap;

use super::axis::number;
use super::draw::{
    Frame, GROUP_CHARS_MAX, LABEL_GAP, LABEL_SIZE, LEGEND_GAP, MARGIN, Plotted, SLANTED_SHARE,
    Stance, TICK_SIZE, group_labels, plot_right, widest,
};
use super::notes::counted;
use super::svg::{Anchor, Breadth, Hue, Point, Svg, TINT_MAX, Tint, Voice, shortened, text_width};

const ROW_HEIGHT: f64 = 28.0;
/// Rows of amounts, which have no numbers in them.
const ROW_HEIGHT_LOW: f64 = 20.0;
/// How much of the ground the largest amount covers, which has no text over it.
const AMOUNT_MAX: f64 = 0.95;
/// Few columns are no wider than this.
const COLUMN_WIDTH_MAX: f64 = 90.0;
/// Between one field and the next, where fields are not tiny.
const GAP: f64 = 2.0;
/// How a heat map colours its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shading {
    kind: Kind,
    /// Where colours have their full strength.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Ratios: those above one warm, those below one cool, one itself not at all.
    Ratios,
    /// Amounts: zero not at all, the more the warmer. Columns are moments or other steps in order, of
    /// which some have a label.
    Amounts,
}

impl Shading {
    /// Of ratios: colours that have their full strength at `limit` and beyond, and at its inverse and
    /// below.
    ///
    /// # Panics
    ///
    /// If `limit` is not finite, or below 1.01: ratios are shown with two decimals.
    pub fn full_at(limit: f64) -> Self {
        assert!(limit.is_finite() && limit >= 1.01, "{limit} as the limit of a shading");
        Self { kind: Kind::Ratios, limit }
    }

    /// Of amounts: no colour at zero and below, full strength at `most` and above.
    ///
    /// # Panics
    ///
    /// If `most` is not finite or not above zero.
    pub fn up_to(most: f64) -> Self {
        assert!(most.is_finite() && most > 0.0, "{most} as the most of a shading");
        Self { kind: Kind::Amounts, limit: most }
    }

    fn tint(self, value: f64) -> Tint {
        let hue = match self.kind {
            Kind::Ratios if value < 1.0 => Hue::Cool,
            Kind::Ratios | Kind::Amounts => Hue::Warm,
        };
        let strength = match self.kind {
            // What is not above zero has no logarithm and lies at the lower edge.
            Kind::Ratios if value > 0.0 => value.ln().abs() / self.limit.ln(),
            Kind::Ratios => 1.0,
            Kind::Amounts => (value / self.limit).max(0.0),
        };
        let most = match self.kind {
            Kind::Ratios => TINT_MAX,
            Kind::Amounts => AMOUNT_MAX,
        };
        Tint { hue, strength: strength.min(1.0), most }
    }

    fn text(self, value: f64) -> String {
        match self.kind {
            Kind::Ratios => ratio_text(value),
            Kind::Amounts => number(value),
        }
    }

    /// Values that explain the colours, and what to say of each, where `most` is the largest value.
    fn keys(self, most: f64) -> [(f64, String); 3] {
        let limit = self.limit;
        match self.kind {
            Kind::Ratios => [(1.0 / limit, " or less"), (1.0, ""), (limit, " or more")],
            Kind::Amounts if most <= limit => [(0.0, ""), (limit / 2.0, ""), (limit, "")],
            Kind::Amounts => [(0.0, ""), (limit / 2.0, ""), (limit, " or more")],
        }
        .map(|(value, qualifier)| (value, format!("{}{qualifier}", self.text(value))))
    }

    const fn row_height(self) -> f64 {
        match self.kind {
            Kind::Ratios => ROW_HEIGHT,
            Kind::Amounts => ROW_HEIGHT_LOW,
        }
    }
}

/// What a heat map shows.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    columns: Vec<String>,
    rows: Vec<Row>,
    shading: Shading,
}

#[derive(Clone, Debug)]
struct Row {
    name: String,
    /// One a column.
    ratios: Vec<f64>,
}

impl Grid {
    pub(super) fn new(
        columns: &[&str],
        rows: &[&str],
        values: &[Vec<f64>],
        shading: Shading,
    ) -> Self {
        assert_eq!(values.len(), rows.len(), "rows of values");
        let row = |(&name, ratios): (&&str, &Vec<f64>)| {
            assert_eq!(ratios.len(), columns.len(), "values of {name}");
            Row { name: name.to_owned(), ratios: ratios.clone() }
        };
        let rows = rows.iter().zip(values).map(row).collect();
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { columns, rows, shading }
    }

    pub(super) fn plot(&self, svg: &mut Svg, top: f64) -> Plotted {
        let top = self.legend(svg, top);
        let chars_max = svg.breadth().name_chars_max();
        let names: Vec<String> =
            self.rows.iter().map(|row| shortened(&row.name, chars_max)).collect();
        let columns: Vec<String> =
            self.columns.iter().map(|name| shortened(name, GROUP_CHARS_MAX)).collect();
        let frame = self.frame(svg.breadth(), top, &names, &columns);
        let height = self.shading.row_height();
        for (idx, name) in names.iter().enumerate() {
            let at = (frame.left - 8.0, frame.top + height * (idx as f64 + 0.5) + 4.5);
            svg.text(Voice::Label, at, Anchor::End, 0.0, name);
        }
        match self.shading.kind {
            Kind::Ratios => self.fields(svg, frame),
            Kind::Amounts => self.many_fields(svg, frame),
        }
        svg.ask_between([frame.left, frame.top, frame.right, frame.bottom]);
        let below = match self.shading.kind {
            Kind::Ratios => group_labels(svg, frame, &columns),
            Kind::Amounts => step_labels(svg, frame, &columns),
        };
        Plotted { below, notes: self.notes() }
    }

    /// The text of all fields and their number, if all show the same.
    pub(super) fn one_value(&self) -> Option<(String, usize)> {
        let mut texts =
            self.ratios().map(|value| (!value.is_nan()).then(|| self.shading.text(value)));
        let first = texts.next()??;
        texts.all(|text| text.as_ref() == Some(&first)).then(|| (first, self.ratios().count()))
    }

    /// Names of rows and columns, and the text of each field, empty where there is no number.
    pub(super) fn texts(&self) -> (Vec<String>, Vec<String>, Vec<Vec<String>>) {
        let text = |value: &f64| {
            if value.is_nan() { String::new() } else { self.shading.text(*value) }
        };
        let values = self.rows.iter().map(|row| row.ratios.iter().map(text).collect());
        let rows = self.rows.iter().map(|row| row.name.clone()).collect();
        (rows, self.columns.clone(), values.collect())
    }

    /// Draws what the colours mean; returns where the grid begins.
    fn legend(&self, svg: &mut Svg, baseline: f64) -> f64 {
        let (mut across, mut down) = (MARGIN, baseline);
        let most = self.ratios().fold(0.0, f64::max);
        for (value, name) in self.shading.keys(most) {
            let width = 30.0 + text_width(&name, LABEL_SIZE);
            if across + width > svg.breadth().width() - MARGIN && across > MARGIN {
                across = MARGIN;
                down += 20.0;
            }
            let corner = (across, down - 11.0);
            svg.field(self.shading.tint(value), corner, (22.0, 13.0), &name);
            svg.text(Voice::Label, (across + 29.0, down), Anchor::Start, 0.0, &name);
            across += width + 18.0;
        }
        down + LEGEND_GAP
    }

    /// The grid's edges: beside its rows' names, and far enough from the margin for its columns'.
    fn frame(&self, breadth: Breadth, top: f64, names: &[String], columns: &[String]) -> Frame {
        let count = columns.len().max(1) as f64;
        let right = plot_right(breadth);
        let slot = |left: f64| match self.shading.kind {
            Kind::Ratios => ((right - left) / count).min(COLUMN_WIDTH_MAX),
            Kind::Amounts => (right - left) / count,
        };
        let beside_names = MARGIN + widest(names) + 8.0;
        let is_slanted = self.shading.kind == Kind::Ratios
            && Stance::of(columns, slot(beside_names), f64::INFINITY) == Stance::Slanted;
        // Names that are too long for half of the room that is there are cut where they are drawn.
        let left = match is_slanted {
            true => beside_names.max(MARGIN + SLANTED_SHARE * widest(columns)).min(right / 2.0),
            false => beside_names,
        };
        let bottom = top + self.shading.row_height() * names.len() as f64;
        Frame { left, right: left + count * slot(left), top, bottom }
    }

    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().flat_map(|row| row.ratios.iter().copied())
    }

    fn fields(&self, svg: &mut Svg, frame: Frame) {
        let slot = (frame.right - frame.left) / self.columns.len().max(1) as f64;
        let gap = GAP.min(0.1 * slot);
        let height = self.shading.row_height();
        let size = (slot - gap, height - GAP);
        let has_room = |value: f64| text_width(&self.shading.text(value), TICK_SIZE) <= size.0;
        // Numbers in some fields alone would look as if these were the ones that count.
        let are_numbered = self.shading.kind == Kind::Ratios
            && self.ratios().filter(|ratio| !ratio.is_nan()).all(has_room);
        for (row_idx, row) in self.rows.iter().enumerate() {
            let top = frame.top + height * row_idx as f64 + GAP / 2.0;
            for (column_idx, (&ratio, column)) in row.ratios.iter().zip(&self.columns).enumerate() {
                if ratio.is_nan() {
                    continue;
                }
                let left = frame.left + slot * column_idx as f64 + gap / 2.0;
                let text = self.shading.text(ratio);
                let what = format!("{}, {column}: {text}", row.name);
                svg.field(self.shading.tint(ratio), (left, top), size, &what);
                if are_numbered {
                    let middle = (left + size.0 / 2.0, top + size.1 / 2.0 + 4.0);
                    svg.text(Voice::Inside, middle, Anchor::Middle, 0.0, &text);
                }
            }
        }
    }

    /// Fields without texts, of which there are thousands: those of one strength are one shape.
    fn many_fields(&self, svg: &mut Svg, frame: Frame) {
        let slot = (frame.right - frame.left) / self.columns.len().max(1) as f64;
        let gap = GAP.min(0.1 * slot);
        let height = self.shading.row_height();
        let mut shapes: BTreeMap<String, (Tint, Vec<Point>)> = BTreeMap::new();
        for (row_idx, row) in self.rows.iter().enumerate() {
            let top = frame.top + height * row_idx as f64 + GAP / 2.0;
            for (column_idx, &amount) in row.ratios.iter().enumerate() {
                if !amount.is_nan() {
                    let tint = self.shading.tint(amount);
                    let shape = shapes.entry(tint.opacity()).or_insert((tint, Vec::new()));
                    shape.1.push((frame.left + slot * column_idx as f64 + gap / 2.0, top));
                }
            }
        }
        for (tint, corners) in shapes.values() {
            svg.fields(*tint, corners, (slot - gap, height - GAP));
        }
    }

    fn notes(&self) -> Vec<String> {
        let all = self.ratios().count();
        let blank = self.ratios().filter(|ratio| ratio.is_nan()).count();
        let has_no_place = |value: &f64| match self.shading.kind {
            Kind::Ratios => value.is_infinite() || *value <= 0.0,
            Kind::Amounts => value.is_infinite() || *value < 0.0,
        };
        let at_edge = self.ratios().filter(has_no_place).count();
        let mut notes = Vec::new();
        if blank > 0 {
            notes.push(format!("Blank: no number ({blank} of {all} fields)"));
        }
        if at_edge > 0 {
            let values = counted(at_edge);
            notes.push(format!(
                "{values} without bound or not above zero, drawn at the edge of the scale"
            ));
        }
        notes
    }
}

/// Draws as many of the names of steps as have room side by side, the first one among them; returns
/// how far down they reach.
fn step_labels(svg: &mut Svg, frame: Frame, names: &[String]) -> f64 {
    let slot = (frame.right - frame.left) / names.len().max(1) as f64;
    let every = ((widest(names) + 2.0 * LABEL_GAP) / slot).ceil().max(1.0) as usize;
    for (idx, name) in names.iter().enumerate().step_by(every) {
        let middle = frame.left + slot * (idx as f64 + 0.5);
        let half = text_width(name, TICK_SIZE) / 2.0;
        let at = middle.min(svg.breadth().width() - 3.0 - half);
        svg.text(Voice::Faint, (at, frame.bottom + 17.0), Anchor::Middle, 0.0, name);
    }
    frame.bottom + 20.0
}

/// A ratio with two decimals, or three digits where that would be longer than four characters.
fn ratio_text(ratio: f64) -> String {
    let text = format!("{ratio:.2}");
    if ratio.is_finite() && text.len() <= 4 { text } else { number(ratio) }
}

#[cfg(test)]
mod tests {
    use super::super::svg::Stands;
    use super::*;

    #[test]
    fn a_ratio_and_its_inverse_are_equally_strong_up_to_the_limit() {
        let shading = Shading::full_at(1.21);
        for (ratio, strength) in
            [(1.0, 0.0), (1.1, 0.5), (1.21, 1.0), (3.0, 1.0), (f64::INFINITY, 1.0)]
        {
            let (above, below) = (shading.tint(ratio), shading.tint(1.0 / ratio));
            assert!((above.strength - strength).abs() < 1e-12, "{ratio}: {above:?}");
            assert!((below.strength - strength).abs() < 1e-12, "{ratio}: {below:?}");
            assert_eq!(above.hue, Hue::Warm);
        }
        for ratio in [0.999, 0.5, 0.0, -0.0, -3.0, f64::NEG_INFINITY] {
            assert_eq!(shading.tint(ratio).hue, Hue::Cool, "{ratio}");
        }
        assert!((shading.tint(-3.0).strength - 1.0).abs() < 1e-12);
    }

    #[test]
    fn numbers_have_two_decimals_and_at_most_four_characters_below_ten_thousand() {
        for (ratio, text) in [
            (1.0, "1.00"),
            (0.996, "1.00"),
            (9.994, "9.99"),
            (12.34, "12.3"),
            (1234.4, "1234"),
            (0.001, "0.00"),
            (-0.0, "0"),
            (f64::INFINITY, "∞"),
            (1e300, "10³⁰⁰"),
        ] {
            assert_eq!(ratio_text(ratio), text);
        }
    }

    #[test]
    fn amounts_are_the_stronger_the_more_they_are() {
        let shading = Shading::up_to(4.0);
        for (amount, strength) in [(-1.0, 0.0), (0.0, 0.0), (1.0, 0.25), (4.0, 1.0), (9.0, 1.0)] {
            let tint = shading.tint(amount);
            assert!((tint.strength - strength).abs() < 1e-12, "{amount}: {tint:?}");
            assert_eq!(tint.hue, Hue::Warm);
        }
    }

    #[test]
    fn fields_of_amounts_are_one_shape_for_each_strength() {
        let values = vec![vec![0.0, 1.0, 5.0], vec![1.0, f64::NAN, 0.0]];
        let grid = Grid::new(&["a", "b", "c"], &["r", "s"], &values, Shading::up_to(5.0));
        let mut svg = Svg::default();
        grid.plot(&mut svg, 50.0);
        let svg = svg.finish(Stands::InPage, 100.0, "");
        let mut corners: Vec<(&str, usize)> = svg
            .lines()
            .filter(|line| line.starts_with("<path"))
            .map(|line| {
                let opacity = line.split("fill-opacity=\"").nth(1).unwrap();
                (opacity.split('"').next().unwrap(), line.matches('M').count())
            })
            .collect();
        corners.sort_unstable();
        assert_eq!(corners, [("0", 2), ("0.19", 2), ("0.95", 1)]);
    }

    #[test]
    fn a_grid_stays_within_its_figure() {
        for breadth in [Breadth::Broad, Breadth::Narrow] {
            for shading in [Shading::full_at(1.1), Shading::up_to(1.0)] {
                for name in ["", "a", "of some length", &"very long ".repeat(100)] {
                    for count in [0, 1, 3, 16, 2000] {
                        let rows = vec![shortened(name, breadth.name_chars_max()); 2];
                        let columns = vec![shortened(name, GROUP_CHARS_MAX); count];
                        let grid = Grid::new(&[], &[], &[], shading);
                        let frame = grid.frame(breadth, 0.0, &rows, &columns);
                        let most = plot_right(breadth) + 1e-9;
                        assert!(frame.left < frame.right && frame.right <= most, "{frame:?}");
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "as the limit of a shading")]
    fn a_shading_without_room_is_our_bug() {
        let _ = Shading::full_at(1.0);
    }
}
