//! Axes: how a value becomes a place between 0 and 1, and which values are marked.
//!
//! ```text
//!   Linear   v                 ticks at 1, 2 or 5 times a power of ten
//!   Log      log10 v           ticks at powers of ten, faint ones at 2 to 9 times
//!   Tail     -log10 (1 - v)    ticks at 0, 50, 90, 99, 99.9 %: each nine is one decade
//! ```
//!
//! A tail axis shows shares from 0 to below 1. A share of 1 lies infinitely far up and is drawn at
//! the upper edge, which lies a little above the highest share below 1.

/// What an axis shows, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured, in which unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
    range: Option<(f64, f64)>,
}

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm: a decade is as long as the next.
    Log,
    /// Shares from 0 to 1, by the logarithm of what is left to 1: 90 %, 99 % and 99.9 % are equally
    /// far apart.
    Tail,
}

impl Axis {
    fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale, range: None }
    }

    /// A linear axis as long as the data needs.
    pub fn linear(label: impl Into<String>) -> Self {
        Self::new(label, Scale::Linear)
    }

    /// A logarithmic axis as long as the data needs.
    pub fn log(label: impl Into<String>) -> Self {
        Self::new(label, Scale::Log)
    }

    /// A tail axis as long as the data needs.
    pub fn tail(label: impl Into<String>) -> Self {
        Self::new(label, Scale::Tail)
    }

    /// The axis from `low` to `high` exactly; what lies outside is drawn at the edge.
    ///
    /// # Panics
    ///
    /// If the range is empty or not finite, or lies outside what the scale can show: above zero for
    /// a logarithmic axis, from 0 to below 1 for a tail axis.
    #[must_use]
    pub fn with_range(mut self, low: f64, high: f64) -> Self {
        assert!(low < high, "{}: {low} to {high}", self.label);
        let shown = [low, high].iter().all(|&value| self.scale.transform(value).is_some());
        assert!(shown, "{}: {low} to {high} on {:?}", self.label, self.scale);
        self.range = Some((low, high));
        self
    }
}

/// The farthest value a linear axis reaches, so that differences stay finite.
const LINEAR_MAX: f64 = 1e300;
/// The share of an axis that the number at the end of the longest bar takes.
const NUMBER_ROOM: f64 = 0.04;
/// The most nines a tail axis shows.
const NINES_MAX: f64 = 12.0;

impl Scale {
    /// Where `value` lies, before the axis is fitted; `None` for what has no place.
    fn transform(self, value: f64) -> Option<f64> {
        let place = match self {
            Self::Linear => value,
            Self::Log if value > 0.0 => value.log10(),
            Self::Tail if (0.0..1.0).contains(&value) => {
                -(-value).ln_1p() / std::f64::consts::LN_10
            }
            Self::Log | Self::Tail => return None,
        };
        (place.is_finite() && place.abs() <= LINEAR_MAX).then_some(place)
    }
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Where, from 0 to 1.
    pub(crate) place: f64,
    /// What stands there; a faint mark has none.
    pub(crate) label: Option<String>,
}

/// An axis fitted to its data.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    scale: Scale,
    /// The ends, transformed. `low < high`.
    low: f64,
    high: f64,
}

impl Projection {
    /// Fits `axis` to `values`; what has no place on it plays no part.
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let places = values.filter_map(|value| axis.scale.transform(value));
        let bounds = places.fold(None, |bounds: Option<(f64, f64)>, place| {
            Some(bounds.map_or((place, place), |(low, high)| (low.min(place), high.max(place))))
        });
        Self::fit(axis, bounds)
    }

    /// Fits `axis` to bars, which grow from zero, or on other scales from below the least.
    pub(crate) fn of_bars(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        match axis.scale {
            Scale::Linear => {
                let mut fitted = Self::new(axis, values.chain([0.0]));
                if axis.range.is_none() {
                    let room = NUMBER_ROOM * (fitted.high - fitted.low);
                    // The number of a bar that hangs stands below it, of others above.
                    fitted.low -= if fitted.low < 0.0 { room } else { 0.0 };
                    fitted.high += if fitted.high > 0.0 { room } else { 0.0 };
                }
                fitted
            }
            Scale::Log if axis.range.is_none() => {
                let mut fitted = Self::new(axis, values);
                // A whole decade is a base that a reader can name.
                fitted.low = fitted.low.floor();
                fitted.high += NUMBER_ROOM * (fitted.high - fitted.low);
                fitted
            }
            Scale::Log | Scale::Tail => Self::new(axis, values),
        }
    }

    fn fit(axis: &Axis, bounds: Option<(f64, f64)>) -> Self {
        let scale = axis.scale;
        if let Some((low, high)) = axis.range {
            let place = |value| scale.transform(value).expect("with_range checked it");
            return Self { scale, low: place(low), high: place(high) };
        }
        let (low, high) = match (scale, bounds) {
            (Scale::Linear, None) => (0.0, 1.0),
            (Scale::Log, None) => (0.0, 1.0),
            (Scale::Tail, None) => (0.0, 2.0),
            (Scale::Linear, Some((low, high))) => linear_ends(low, high),
            (Scale::Log, Some((low, high))) => {
                let margin = (0.03 * (high - low)).max(0.02);
                let short = (0.3 - (high - low)).max(0.0) / 2.0;
                (low - margin - short, high + margin + short)
            }
            (Scale::Tail, Some((_, high))) => (0.0, (high + 0.15).clamp(1.05, NINES_MAX)),
        };
        assert!(low < high, "{}: {low} to {high}", axis.label);
        Self { scale, low, high }
    }

    /// Where `value` is drawn, from 0 to 1. Not for what is not a number.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = match self.scale.transform(value) {
            Some(place) => place,
            // Only ends are left: infinities, and shares or logarithms of what has none.
            None if value <= 0.0 => self.low,
            None => self.high,
        };
        ((place - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Whether `value` is drawn where it belongs. A share of 1 belongs at the edge.
    pub(crate) fn shows(&self, value: f64) -> bool {
        if self.scale == Scale::Tail && value.total_cmp(&1.0).is_eq() {
            return true;
        }
        let slack = 1e-9 * (self.high - self.low);
        let within = |place: f64| self.low - slack <= place && place <= self.high + slack;
        self.scale.transform(value).is_some_and(within)
    }

    /// The values at the ends.
    pub(crate) fn ends(&self) -> [f64; 2] {
        [self.low, self.high].map(|place| match self.scale {
            Scale::Linear => place,
            Scale::Log => 10_f64.powf(place),
            Scale::Tail => 1.0 - 10_f64.powf(-place),
        })
    }

    /// `value`, or the end of the axis at which it is drawn.
    pub(crate) fn clamped(&self, value: f64) -> f64 {
        let [low, high] = self.ends();
        match self.place(value) {
            _ if self.shows(value) => value,
            place if place < 0.5 => low,
            _ => high,
        }
    }

    /// What the share at the upper end of a tail axis leaves to one.
    pub(crate) fn left_at_end(&self) -> f64 {
        10_f64.powf(-self.high)
    }

    /// The marks, of which labels that would stand over one another lose theirs: `room` says how
    /// much of the axis, which is `length` long, a label takes.
    pub(crate) fn ticks_apart(&self, length: f64, room: impl Fn(&str) -> f64) -> Vec<Tick> {
        let mut ticks = self.ticks();
        let mut taken: Vec<(f64, f64)> = Vec::new();
        // Whole decades and nines first; an even axis has no other kind.
        let is_whole = |label: &str| {
            self.scale == Scale::Linear
                || label.trim_start_matches(['0', '.']).starts_with('1')
                || label.contains('9')
                || label.starts_with("0 ")
        };
        for whole in [true, false] {
            for tick in &mut ticks {
                let Some(label) = tick.label.as_deref().filter(|text| is_whole(text) == whole)
                else {
                    continue;
                };
                let (middle, half) = (tick.place * length, room(label) / 2.0);
                let ends = (middle - half, middle + half);
                if taken.iter().any(|other| ends.0 < other.1 && other.0 < ends.1) {
                    tick.label = None;
                } else {
                    taken.push(ends);
                }
            }
        }
        ticks
    }

    /// The marks, from low to high.
    pub(crate) fn ticks(&self) -> Vec<Tick> {
        let marks = match self.scale {
            Scale::Linear => self.linear_marks(),
            Scale::Log => self.log_marks(),
            Scale::Tail => self.tail_marks(),
        };
        let span = self.high - self.low;
        let ticks =
            marks.into_iter().map(|(at, label)| Tick { place: (at - self.low) / span, label });
        let mut ticks: Vec<Tick> =
            ticks.filter(|tick| (-1e-9..=1.0 + 1e-9).contains(&tick.place)).collect();
        ticks.sort_by(|a, b| a.place.total_cmp(&b.place));
        ticks
    }

    fn linear_marks(&self) -> Vec<(f64, Option<String>)> {
        let step = nice_step(self.high - self.low);
        let first = (self.low / step - 1e-6).ceil();
        let marks = (0..=10).map(|at| (first + f64::from(at)) * step);
        marks
            .take_while(|&at| at <= self.high + 1e-6 * step)
            .map(|at| (at, Some(linear_label(at, step))))
            .collect()
    }

    fn log_marks(&self) -> Vec<(f64, Option<String>)> {
        let decades = self.high - self.low;
        // Every decade while ten labels suffice, then every second, third, and so on.
        let every = (decades / 10.0).ceil().max(1.0) as i32;
        // One form for all labels: in full where all are short, else as powers of ten.
        let is_short = self.low >= -3.5 && self.high <= 5.5;
        let whole = |exponent| match is_short {
            true => number(10_f64.powi(exponent)),
            false => format!("10{}", superscript(exponent)),
        };
        let mut marks = Vec::new();
        for exponent in self.low.floor() as i32..=self.high.ceil() as i32 {
            if exponent.rem_euclid(every) == 0 {
                marks.push((f64::from(exponent), Some(whole(exponent))));
            }
            if every > 1 {
                continue;
            }
            for digit in 2..=9_u8 {
                let at = f64::from(exponent) + f64::from(digit).log10();
                let is_labelled = (decades < 3.0 && (digit == 2 || digit == 5))
                    || (decades < 0.5 && digit != 9 && digit != 7);
                let between = || match is_short {
                    true => number(f64::from(digit) * 10_f64.powi(exponent)),
                    false => format!("{digit}·{}", whole(exponent)),
                };
                let label = is_labelled.then(between);
                marks.push((at, label));
            }
        }
        marks
    }

    fn tail_marks(&self) -> Vec<(f64, Option<String>)> {
        let mut marks =
            vec![(0.0, Some("0 %".to_owned())), (0.5_f64.log10().abs(), Some("50 %".to_owned()))];
        for nines in 0..=NINES_MAX as u8 {
            if nines > 0 {
                marks.push((f64::from(nines), Some(nines_label(usize::from(nines)))));
            }
            // What is left: 9 to 2 of the next smaller power of ten.
            for left in [9, 8, 7, 6, 5, 4, 3, 2_u8] {
                if nines > 0 || left != 5 {
                    marks.push((f64::from(nines) + 1.0 - f64::from(left).log10(), None));
                }
            }
        }
        marks
    }
}

/// The ends of a linear axis: zero where it is near, and a little room.
fn linear_ends(low: f64, high: f64) -> (f64, f64) {
    let span = high - low;
    if span <= f64::EPSILON * low.abs().max(high.abs()) || span <= f64::MIN_POSITIVE {
        // One value, in the middle or on top of zero.
        let room = if low.abs() < f64::MIN_POSITIVE * 1e9 { 1.0 } else { low.abs() * 0.5 };
        return if low.abs() < room { (0.0, room) } else { (low - room, high + room) };
    }
    let room = 0.04 * span;
    let is_near_zero = |end: f64| end.abs() <= 0.6 * span;
    let low_end = if low >= 0.0 && is_near_zero(low) { 0.0 } else { low - room };
    let high_end = if high <= 0.0 && is_near_zero(high) { 0.0 } else { high + room };
    (low_end, high_end)
}

/// A step of 1, 2 or 5 times a power of ten that divides `span` into four to ten parts.
fn nice_step(span: f64) -> f64 {
    let raw = span / 5.0;
    let power = 10_f64.powf(raw.log10().floor());
    let share = raw / power;
    let factor = match share {
        share if share < 1.5 => 1.0,
        share if share < 3.5 => 2.0,
        share if share < 7.5 => 5.0,
        _ => 10.0,
    };
    factor * power
}

fn linear_label(value: f64, step: f64) -> String {
    if value.abs() < step * 1e-6 {
        return "0".to_owned();
    }
    if value.abs() >= 1e6 || step < 1e-4 {
        return number(value);
    }
    let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    format!("{value:.decimals$}").replace('-', "\u{2212}")
}

/// `90 %`, `99 %`, `99.9 %`.
fn nines_label(nines: usize) -> String {
    match nines {
        1 => "90 %".to_owned(),
        2 => "99 %".to_owned(),
        more => format!("99.{} %", "9".repeat(more - 2)),
    }
}

/// A number to three digits: in full from 0.001 to below a million, else by its power of ten.
pub(crate) fn number(value: f64) -> String {
    if value.is_nan() || value.is_infinite() {
        return if value.is_nan() {
            "?"
        } else if value > 0.0 {
            "∞"
        } else {
            "\u{2212}∞"
        }
        .to_owned();
    }
    // Rounding first: 999.96 has the exponent of 1000.
    let rounded = format!("{:.2e}", value.abs());
    let (mantissa, exponent) = rounded.split_once('e').expect("written in this form");
    let exponent: i32 = exponent.parse().expect("written in this form");
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let text = match exponent {
        _ if value.abs() < f64::MIN_POSITIVE => return "0".to_owned(),
        -3..=5 => {
            let decimals = usize::try_from(2 - exponent).unwrap_or(0);
            trim(&format!("{:.decimals$}", value.abs()))
        }
        _ if mantissa == "1.00" => format!("10{}", superscript(exponent)),
        _ => format!("{}·10{}", trim(mantissa), superscript(exponent)),
    };
    if value < 0.0 { format!("\u{2212}{text}") } else { text }
}

fn superscript(exponent: i32) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁰' as u32 + digit as u32 - '0' as u32).expect("a digit"),
    };
    exponent.to_string().chars().map(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let projection = Projection::new(axis, values.iter().copied());
        projection.ticks().into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_start_at_a_near_zero() {
        assert_eq!(labels(&Axis::linear("a"), &[1.0, 9.7]), ["0", "2", "4", "6", "8", "10"]);
        let below = ["\u{2212}0.2", "\u{2212}0.1", "0", "0.1", "0.2", "0.3"];
        assert_eq!(labels(&Axis::linear("a"), &[-0.2, 0.31]), below);
        assert_eq!(labels(&Axis::linear("a"), &[1000.0, 1010.0])[..2], ["1000", "1002"]);
    }

    #[test]
    fn log_ticks_are_decades_with_faint_ones_between() {
        assert_eq!(labels(&Axis::log("a"), &[0.02, 3000.0]), ["0.1", "1", "10", "100", "1000"]);
        assert_eq!(labels(&Axis::log("a"), &[1e-6, 1e-3]), ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³"]);
        let wanted = ["5·10⁻⁵", "10⁻⁴", "2·10⁻⁴", "5·10⁻⁴", "10⁻³", "2·10⁻³"];
        assert_eq!(labels(&Axis::log("a"), &[3e-5, 3e-3]), wanted, "one form for all");
        let projection = Projection::new(&Axis::log("a"), [1.0, 10_000.0].into_iter());
        assert!(projection.ticks().iter().filter(|tick| tick.label.is_none()).count() >= 32);
        assert_eq!(labels(&Axis::log("a"), &[3.0, 14.0]), ["5", "10"]);
        let wanted = ["2", "5", "10", "20", "50"];
        assert_eq!(labels(&Axis::log("a"), &[2.0, 60.0]), wanted);
        assert!(labels(&Axis::log("a"), &[1e-300, 1e300]).len() <= 12);
    }

    #[test]
    fn tail_ticks_count_nines() {
        let want = ["0 %", "50 %", "90 %", "99 %", "99.9 %"];
        assert_eq!(labels(&Axis::tail("a"), &[0.1, 0.999]), want);
        assert_eq!(labels(&Axis::tail("a"), &[]), ["0 %", "50 %", "90 %", "99 %"]);
        let projection = Projection::new(&Axis::tail("a"), [0.0, 0.9999].into_iter());
        let gap = |low: f64, high: f64| projection.place(high) - projection.place(low);
        assert!((gap(0.9, 0.99) - gap(0.99, 0.999)).abs() < 1e-9);
        assert!(projection.place(1.0) > projection.place(0.9999));
    }

    #[test]
    fn everything_but_nan_has_a_place_on_every_axis() {
        let odd =
            [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 0.0, -0.0, -1.0, 1.0, 5e-324];
        for axis in [Axis::linear("a"), Axis::log("a"), Axis::tail("a")] {
            for few in [&odd[..], &odd[2..3], &odd[4..5], &odd[8..], &[], &[f64::NAN]] {
                let projection = Projection::new(&axis, few.iter().copied());
                let bars = Projection::of_bars(&axis, few.iter().copied());
                for value in odd {
                    assert!((0.0..=1.0).contains(&projection.place(value)), "{axis:?} {value}");
                    assert!((0.0..=1.0).contains(&bars.place(value)), "{axis:?} {value}");
                }
                assert!(projection.ticks().iter().all(|tick| tick.place.is_finite()), "{axis:?}");
                assert!(projection.ticks().len() < 200, "{axis:?}");
            }
        }
    }

    #[test]
    fn zero_on_a_log_axis_lies_at_the_edge_and_is_not_shown() {
        let projection = Projection::new(&Axis::log("a"), [0.0, 1.0, 10.0].into_iter());
        assert!(projection.place(0.0).abs() < f64::EPSILON);
        assert!(!projection.shows(0.0));
        assert!(projection.shows(1.0));
        assert!(projection.place(1.0) > 0.0);
    }

    #[test]
    fn a_given_range_is_kept() {
        let projection =
            Projection::new(&Axis::linear("a").with_range(0.0, 4.0), [9.0].into_iter());
        assert!((projection.place(1.0) - 0.25).abs() < 1e-12);
        assert!(!projection.shows(9.0));
        assert!((projection.place(9.0) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    #[should_panic(expected = "0 to 10 on Log")]
    fn a_log_axis_from_zero_is_our_bug() {
        let _ = Axis::log("a").with_range(0.0, 10.0);
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (999.96, "1000"),
            (123_456.0, "123456"),
            (0.001, "0.001"),
            (0.012_34, "0.0123"),
            (-2.5, "\u{2212}2.5"),
            (1e6, "10⁶"),
            (2.5e-7, "2.5·10⁻⁷"),
            (f64::INFINITY, "∞"),
            (f64::NAN, "?"),
        ];
        for (value, want) in cases {
            assert_eq!(number(value), want);
        }
    }
}
