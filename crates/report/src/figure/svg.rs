//! SVG text: elements, fractional coordinates, and the rules that colour them.

use crate::markup::{LIGHT, PALETTE_SIZE, colour_rules, escape};

/// Whether a figure brings its own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    /// A file of its own.
    Alone,
    /// In a page that has them.
    InPage,
}

/// For how broad a page a figure is drawn: text keeps its size, so that it is read on both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Breadth {
    /// A screen or a sheet of paper.
    #[default]
    Broad,
    /// A telephone.
    Narrow,
}

impl Breadth {
    /// Width of the whole figure; pages scale it.
    pub(crate) const fn width(self) -> f64 {
        match self {
            Self::Broad => 720.0,
            Self::Narrow => 340.0,
        }
    }

    /// Names of rows that are longer are cut.
    pub(crate) const fn name_chars_max(self) -> usize {
        match self {
            Self::Broad => 36,
            Self::Narrow => 17,
        }
    }

    /// What a page calls it.
    const fn class(self) -> &'static str {
        match self {
            Self::Broad => "lh-broad",
            Self::Narrow => "lh-narrow",
        }
    }
}

/// How a figure looks; the colours are those of the page or of the figure alone.
pub(crate) const RULES: &str = "\
.lh-figure text{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--lh-ink)}
.lh-figure .lh-faint{fill:var(--lh-faint)}
.lh-figure .lh-ground{fill:var(--lh-paper)}
.lh-figure .lh-axis{stroke:var(--lh-faint)}
.lh-figure .lh-grid{stroke:var(--lh-grid)}
.lh-figure .lh-whisker{stroke:var(--lh-ink)}
.lh-figure .lh-s1{--c:var(--lh-1)}.lh-figure .lh-s2{--c:var(--lh-2)}.lh-figure .lh-s3{--c:var(--lh-3)}
.lh-figure .lh-s4{--c:var(--lh-4)}.lh-figure .lh-s5{--c:var(--lh-5)}.lh-figure .lh-s6{--c:var(--lh-6)}
.lh-figure .lh-s7{--c:var(--lh-7)}
.lh-figure .lh-line{stroke:var(--c)}
.lh-figure .lh-area{fill:var(--c)}
.lh-figure .lh-warm{stroke:var(--lh-grid);fill:var(--lh-warm)}
.lh-figure .lh-cool{stroke:var(--lh-grid);fill:var(--lh-cool)}
";

const _: () = assert!(PALETTE_SIZE == 7, "the rules above name every colour");

/// To which side of its point a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    Title,
    Label,
    Faint,
    /// The number in a field, which leaves the pointer to the field.
    Inside,
}

/// Which colours a series has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    colour: usize,
    round: usize,
}

impl Paint {
    /// Of the series at `idx`: colours repeat with another line pattern.
    pub(crate) fn of(idx: usize) -> Self {
        Self { colour: idx % PALETTE_SIZE, round: idx / PALETTE_SIZE }
    }

    fn class(self) -> usize {
        self.colour + 1
    }

    fn light(self) -> &'static str {
        LIGHT.palette[self.colour]
    }

    fn dashes(self) -> &'static str {
        match self.round % 3 {
            0 => "",
            1 => " stroke-dasharray=\"7 4\"",
            _ => " stroke-dasharray=\"2 3\"",
        }
    }

    /// Areas of later rounds are paler.
    fn opacity(self) -> &'static str {
        match self.round % 3 {
            0 => "",
            1 => " fill-opacity=\"0.6\"",
            _ => " fill-opacity=\"0.35\"",
        }
    }
}

/// To which side of one a ratio lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hue {
    Warm,
    Cool,
}

/// The colour of a field, over whatever ground the page has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tint {
    pub(crate) hue: Hue,
    /// How much of it, from 0 to 1.
    pub(crate) strength: f64,
    /// How much of the ground the strongest covers.
    pub(crate) most: f64,
}

impl Tint {
    /// How much of the ground it covers, as SVG has it.
    pub(crate) fn opacity(self) -> String {
        coord(self.most * self.strength)
    }
}

/// How much of the ground the strongest tint covers under text, which stays readable on both grounds.
pub(crate) const TINT_MAX: f64 = 0.55;

/// A point of the drawing; `x` to the right, `y` down.
pub(crate) type Point = (f64, f64);

/// The text of a drawing.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    body: String,
    breadth: Breadth,
    /// How far down the title reaches.
    titled: f64,
    /// Left, top, right and bottom edge of what a pointer may ask for, once that is known.
    asked: Option<[f64; 4]>,
}

impl Svg {
    /// An empty drawing.
    pub(crate) fn new(breadth: Breadth) -> Self {
        Self { breadth, ..Self::default() }
    }

    pub(crate) const fn breadth(&self) -> Breadth {
        self.breadth
    }

    /// The title reaches down to here.
    pub(crate) const fn title_ends_at(&mut self, down: f64) {
        self.titled = down;
    }

    /// Groups or fields are asked for by their place between these edges: left, top, right, bottom.
    pub(crate) const fn ask_between(&mut self, edges: [f64; 4]) {
        self.asked = Some(edges);
    }

    /// What `draw` draws belongs to the series at `idx`, and comes and goes with it.
    pub(crate) fn of_series(&mut self, idx: usize, draw: impl FnOnce(&mut Self)) {
        self.body.push_str(&format!("<g data-of=\"{idx}\">\n"));
        draw(self);
        self.body.push_str("</g>\n");
    }

    /// What `draw` draws is the entry of the legend for the series at `idx`.
    pub(crate) fn key(&mut self, idx: usize, draw: impl FnOnce(&mut Self)) {
        self.body.push_str(&format!("<g class=\"lh-key\" data-key=\"{idx}\">\n"));
        draw(self);
        self.body.push_str("</g>\n");
    }

    /// A straight line of the frame.
    pub(crate) fn rule(&mut self, class: RuleClass, from: Point, to: Point) {
        let (name, colour, width) = match class {
            RuleClass::Axis => ("lh-axis", LIGHT.faint, "1"),
            RuleClass::Grid => ("lh-grid", LIGHT.grid, "1"),
            RuleClass::FaintGrid => ("lh-grid", LIGHT.grid, "0.5"),
            RuleClass::Whisker => ("lh-whisker", LIGHT.ink, "1.2"),
        };
        self.body.push_str(&format!(
            "<line class=\"{name}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{colour}\" \
             stroke-width=\"{width}\"/>\n",
            coord(from.0),
            coord(from.1),
            coord(to.0),
            coord(to.1),
        ));
    }

    /// One line of text with its baseline at `at`, turned by `degrees`.
    pub(crate) fn text(
        &mut self,
        voice: Voice,
        at: Point,
        anchor: Anchor,
        degrees: f64,
        text: &str,
    ) {
        let (x, y) = (coord(at.0), coord(at.1));
        let side = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let look = match voice {
            Voice::Title => format!(
                "class=\"lh-svg-title\" font-size=\"16\" font-weight=\"600\" fill=\"{}\"",
                LIGHT.ink
            ),
            Voice::Label => format!("font-size=\"13\" fill=\"{}\"", LIGHT.ink),
            Voice::Faint => format!("class=\"lh-faint\" font-size=\"12\" fill=\"{}\"", LIGHT.faint),
            Voice::Inside => {
                format!("font-size=\"12\" pointer-events=\"none\" fill=\"{}\"", LIGHT.ink)
            }
        };
        let turn = if degrees.abs() < 0.01 {
            String::new()
        } else {
            format!(" transform=\"rotate({} {x} {y})\"", coord(degrees))
        };
        self.body.push_str(&format!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{side}\" {look}{turn}>{}</text>\n",
            escape(text)
        ));
    }

    /// The line of a series, through `path`, with its name for a pointer that rests on it.
    pub(crate) fn path(&mut self, paint: Paint, path: &str, name: &str) {
        self.body.push_str(&format!(
            "<path class=\"lh-line lh-s{}\" d=\"{path}\" fill=\"none\" stroke=\"{}\" \
             stroke-width=\"1.8\" stroke-linejoin=\"round\"{}><title>{}</title></path>\n",
            paint.class(),
            paint.light(),
            paint.dashes(),
            escape(name),
        ));
    }

    /// A dot of a series.
    pub(crate) fn dot(&mut self, paint: Paint, at: Point) {
        self.body.push_str(&format!(
            "<circle class=\"lh-area lh-s{}\" cx=\"{}\" cy=\"{}\" r=\"2.6\" fill=\"{}\"/>\n",
            paint.class(),
            coord(at.0),
            coord(at.1),
            paint.light(),
        ));
    }

    /// A bar from `corner`, with what it stands for.
    pub(crate) fn bar(&mut self, paint: Paint, corner: Point, size: (f64, f64), what: &str) {
        self.body.push_str(&format!(
            "<rect class=\"lh-area lh-s{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
             fill=\"{}\"{}><title>{}</title></rect>\n",
            paint.class(),
            coord(corner.0),
            coord(corner.1),
            coord(size.0),
            coord(size.1),
            paint.light(),
            paint.opacity(),
            escape(what),
        ));
    }

    /// A field of a grid from `corner`, with what it stands for.
    pub(crate) fn field(&mut self, tint: Tint, corner: Point, size: (f64, f64), what: &str) {
        let (name, colour) = match tint.hue {
            Hue::Warm => ("lh-warm", LIGHT.warm),
            Hue::Cool => ("lh-cool", LIGHT.cool),
        };
        self.body.push_str(&format!(
            "<rect class=\"{name}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
             stroke=\"{}\" fill=\"{colour}\" fill-opacity=\"{}\"><title>{}</title></rect>\n",
            coord(corner.0),
            coord(corner.1),
            coord(size.0),
            coord(size.1),
            LIGHT.grid,
            tint.opacity(),
            escape(what),
        ));
    }

    /// Fields of one tint and one size from each of `corners`, as one shape.
    pub(crate) fn fields(&mut self, tint: Tint, corners: &[Point], size: (f64, f64)) {
        let (name, colour) = match tint.hue {
            Hue::Warm => ("lh-warm", LIGHT.warm),
            Hue::Cool => ("lh-cool", LIGHT.cool),
        };
        let around = format!("h{}v{}h-{0}z", coord(size.0), coord(size.1));
        let path: String = corners
            .iter()
            .map(|corner| format!("M{} {}{around}", coord(corner.0), coord(corner.1)))
            .collect();
        self.body.push_str(&format!(
            "<path class=\"{name}\" d=\"{path}\" stroke=\"{}\" fill=\"{colour}\" fill-opacity=\"{}\"/>\n",
            LIGHT.grid,
            tint.opacity(),
        ));
    }

    /// The whole drawing, down to `height`; `title` is what a screen reader says.
    pub(crate) fn finish(self, stands: Stands, height: f64, title: &str) -> String {
        let (width, height, title) = (coord(self.breadth.width()), coord(height), escape(title));
        let head = format!("viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\"");
        match stands {
            Stands::InPage => {
                let asked = self.asked.map(|edges| edges.map(coord).join(" "));
                let asked = asked.map_or(String::new(), |edges| format!(" data-asked=\"{edges}\""));
                let (class, titled) = (self.breadth.class(), coord(self.titled));
                format!(
                    "<svg class=\"lh-figure {class}\" data-titled=\"{titled}\"{asked} {head}>\n{}</svg>\n",
                    self.body
                )
            }
            Stands::Alone => format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lh-figure\" width=\"{width}\" \
                 height=\"{height}\" {head}>\n<title>{title}</title>\n<style>\n{}{RULES}</style>\n\
                 <rect class=\"lh-ground\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n\
                 {}</svg>\n",
                colour_rules(".lh-figure"),
                LIGHT.paper,
                self.body
            ),
        }
    }
}

/// The straight lines of a frame, and those that show an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleClass {
    Axis,
    Grid,
    FaintGrid,
    Whisker,
}

/// A coordinate to a hundredth of a unit, as short as it can be.
pub(crate) fn coord(value: f64) -> String {
    assert!(value.is_finite(), "a coordinate is a number");
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// About how wide `text` is in a font of `size`: a little too wide rather than too narrow.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * 0.6 * size
}

/// `text` in lines of at most `width`, broken at spaces; a longer word is cut.
pub(crate) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = fitted(word, size, width);
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            Some(_) | None => lines.push(word),
        }
    }
    lines
}

/// `text`, cut where it is wider than `width`.
pub(crate) fn fitted(text: &str, size: f64, width: f64) -> String {
    let chars_max = (width / text_width("x", size)).max(2.0) as usize;
    shortened(text, chars_max)
}

/// `text`, cut to at most `chars_max` characters.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some(_) => text.chars().take(chars_max - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup::{Colours, DARK};

    #[test]
    fn text_is_broken_at_spaces_and_long_words_are_cut() {
        let width = text_width("12345678", 10.0) + 0.1;
        assert_eq!(wrapped("a bc defghi jk", 10.0, width), ["a bc", "defghi", "jk"]);
        assert_eq!(wrapped("abcdefghijklm n", 10.0, width), ["abcdefg…", "n"]);
        assert_eq!(wrapped("", 10.0, width), [] as [&str; 0]);
        for (text, want) in [("äöü", "äöü"), ("äöüä", "äö…")] {
            assert_eq!(shortened(text, 3), want);
        }
    }

    /// Red, green and blue of `#rrggbb`, each from 0 to 1.
    fn channels(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0)
    }

    /// How bright a colour is, from 0 to 1: relative luminance as in WCAG 2.1.
    fn luminance(channels: [f64; 3]) -> f64 {
        let linear =
            |c: f64| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
        let [red, green, blue] = channels.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// WCAG 2.1 asks for 4.5 between small text and its ground.
    #[test]
    fn text_over_the_strongest_tint_is_readable_on_both_grounds() {
        for Colours { paper, ink, warm, cool, .. } in [LIGHT, DARK] {
            for tint in [warm, cool] {
                let (below, above) = (channels(paper), channels(tint));
                let mix = |at: usize| below[at] + TINT_MAX * (above[at] - below[at]);
                let ground = luminance([0, 1, 2].map(mix));
                let text = luminance(channels(ink));
                let contrast = (ground.max(text) + 0.05) / (ground.min(text) + 0.05);
                assert!(contrast >= 4.5, "{ink} over {tint} on {paper}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn coordinates_are_fractions_and_short() {
        assert_eq!(coord(12.345), "12.35");
        assert_eq!(coord(12.0), "12");
        assert_eq!(coord(100.0), "100");
        assert_eq!(coord(-0.001), "0");
        assert_eq!(coord(0.5), "0.5");
    }

    #[test]
    fn colours_repeat_with_another_pattern() {
        let (first, eighth) = (Paint::of(0), Paint::of(PALETTE_SIZE));
        assert_eq!(first.light(), eighth.light());
        assert_ne!(first.dashes(), eighth.dashes());
    }

    #[test]
    fn text_is_escaped_wherever_it_goes() {
        let mut svg = Svg::default();
        svg.text(Voice::Label, (0.0, 0.0), Anchor::Start, 0.0, "a<b");
        svg.path(Paint::of(0), "M0 0", "c<d");
        svg.bar(Paint::of(0), (0.0, 0.0), (1.0, 1.0), "e<f");
        svg.field(
            Tint { hue: Hue::Warm, strength: 0.5, most: TINT_MAX },
            (0.0, 0.0),
            (1.0, 1.0),
            "i<j",
        );
        let text = svg.finish(Stands::Alone, 10.0, "g<h\"");
        for raw in ["a<b", "c<d", "e<f", "g<h", "i<j"] {
            assert!(!text.contains(raw), "{text}");
        }
    }
}
