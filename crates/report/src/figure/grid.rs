//! Heat maps: a grid of ratios, each field coloured by how far its ratio lies from one.
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

use super::axis::number;
use super::draw::{
    Frame, LABEL_GAP, LABEL_SIZE, LEGEND_BASELINE, LEGEND_GAP, MARGIN, PLOT_RIGHT, Plotted,
    TICK_SIZE, group_labels, widest,
};
use super::notes::counted;
use super::svg::{Anchor, Hue, Svg, Tint, Voice, text_width};

const ROW_HEIGHT: f64 = 28.0;
/// Few columns are no wider than this.
const COLUMN_WIDTH_MAX: f64 = 90.0;
/// Between one field and the next, where fields are not tiny.
const GAP: f64 = 2.0;
/// Longer names are cut.
const NAME_CHARS_MAX: usize = 36;
/// How far to the side a slanted name reaches, of its width: the cosine of its slant, rounded up.
const SLANTED_SHARE: f64 = 0.87;

/// How a heat map colours ratios: those above one warm, those below one cool, one itself not at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shading {
    limit: f64,
}

impl Shading {
    /// Colours that have their full strength at `limit` and beyond, and at its inverse and below.
    ///
    /// # Panics
    ///
    /// If `limit` is not finite, or below 1.01: ratios are shown with two decimals.
    pub fn full_at(limit: f64) -> Self {
        assert!(limit.is_finite() && limit >= 1.01, "{limit} as the limit of a shading");
        Self { limit }
    }

    fn tint(self, ratio: f64) -> Tint {
        let hue = if ratio >= 1.0 { Hue::Warm } else { Hue::Cool };
        // What is not above zero has no logarithm and lies at the lower edge.
        let strength = if ratio > 0.0 { ratio.ln().abs() / self.limit.ln() } else { 1.0 };
        Tint { hue, strength: strength.min(1.0) }
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

    pub(super) fn plot(&self, svg: &mut Svg) -> Plotted {
        let top = self.legend(svg);
        let names: Vec<String> = self.rows.iter().map(|row| shortened(&row.name)).collect();
        let columns: Vec<String> = self.columns.iter().map(|name| shortened(name)).collect();
        let frame = frame(top, &names, &columns);
        for (idx, name) in names.iter().enumerate() {
            let at = (frame.left - 8.0, frame.top + ROW_HEIGHT * (idx as f64 + 0.5) + 4.5);
            svg.text(Voice::Label, at, Anchor::End, 0.0, name);
        }
        self.fields(svg, frame);
        Plotted { below: group_labels(svg, frame, &columns), notes: self.notes() }
    }

    /// Draws what the colours mean; returns where the grid begins.
    fn legend(&self, svg: &mut Svg) -> f64 {
        let limit = self.shading.limit;
        let mut across = MARGIN;
        for (ratio, qualifier) in [(1.0 / limit, " or less"), (1.0, ""), (limit, " or more")] {
            let name = format!("{}{qualifier}", ratio_text(ratio));
            let corner = (across, LEGEND_BASELINE - 11.0);
            svg.field(self.shading.tint(ratio), corner, (22.0, 13.0), &name);
            let at = (across + 29.0, LEGEND_BASELINE);
            svg.text(Voice::Label, at, Anchor::Start, 0.0, &name);
            across += 30.0 + text_width(&name, LABEL_SIZE) + 18.0;
        }
        LEGEND_BASELINE + LEGEND_GAP
    }

    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().flat_map(|row| row.ratios.iter().copied())
    }

    fn fields(&self, svg: &mut Svg, frame: Frame) {
        let slot = (frame.right - frame.left) / self.columns.len().max(1) as f64;
        let gap = GAP.min(0.1 * slot);
        let size = (slot - gap, ROW_HEIGHT - GAP);
        let has_room = |ratio: f64| text_width(&ratio_text(ratio), TICK_SIZE) <= size.0;
        // Numbers in some fields alone would look as if these were the ones that count.
        let are_numbered = self.ratios().filter(|ratio| !ratio.is_nan()).all(has_room);
        for (row_idx, row) in self.rows.iter().enumerate() {
            let top = frame.top + ROW_HEIGHT * row_idx as f64 + GAP / 2.0;
            for (column_idx, (&ratio, column)) in row.ratios.iter().zip(&self.columns).enumerate() {
                if ratio.is_nan() {
                    continue;
                }
                let left = frame.left + slot * column_idx as f64 + gap / 2.0;
                let text = ratio_text(ratio);
                let what = format!("{}, {column}: {text}", row.name);
                svg.field(self.shading.tint(ratio), (left, top), size, &what);
                if are_numbered {
                    let middle = (left + size.0 / 2.0, top + size.1 / 2.0 + 4.0);
                    svg.text(Voice::Inside, middle, Anchor::Middle, 0.0, &text);
                }
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let all = self.ratios().count();
        let blank = self.ratios().filter(|ratio| ratio.is_nan()).count();
        let has_no_place = |ratio: &f64| ratio.is_infinite() || *ratio <= 0.0;
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

/// The grid's edges: beside its rows' names, and far enough from the margin for its columns'.
fn frame(top: f64, names: &[String], columns: &[String]) -> Frame {
    let count = columns.len().max(1) as f64;
    let slot = |left: f64| ((PLOT_RIGHT - left) / count).min(COLUMN_WIDTH_MAX);
    let beside_names = MARGIN + widest(names) + 8.0;
    let column_widest = widest(columns);
    let are_slanted = column_widest > slot(beside_names) - LABEL_GAP;
    let left = match are_slanted {
        true => beside_names.max(MARGIN + SLANTED_SHARE * column_widest),
        false => beside_names,
    };
    let bottom = top + ROW_HEIGHT * names.len() as f64;
    Frame { left, right: left + count * slot(left), top, bottom }
}

/// A name as it stands beside the grid; fields have the whole of it.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some(_) => name.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect(),
        None => name.to_owned(),
    }
}

/// A ratio with two decimals, or three digits where that would be longer than four characters.
fn ratio_text(ratio: f64) -> String {
    let text = format!("{ratio:.2}");
    if ratio.is_finite() && text.len() <= 4 { text } else { number(ratio) }
}

#[cfg(test)]
mod tests {
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
    fn a_grid_stays_within_its_figure() {
        let names = |count: usize, name: &str| vec![shortened(name); count];
        for name in ["", "a", "of some length", &"very long ".repeat(100)] {
            for count in [0, 1, 3, 16, 2000] {
                let frame = frame(0.0, &names(2, name), &names(count, name));
                assert!(frame.left < frame.right && frame.right <= PLOT_RIGHT + 1e-9, "{frame:?}");
            }
        }
        assert!(shortened(&"ä".repeat(100)).ends_with("ä…"));
    }

    #[test]
    #[should_panic(expected = "as the limit of a shading")]
    fn a_shading_without_room_is_our_bug() {
        let _ = Shading::full_at(1.0);
    }
}
