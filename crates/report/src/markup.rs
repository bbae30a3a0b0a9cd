//! What SVG and HTML share: escaping, and the colours of a page and of a figure alone.

use std::borrow::Cow;

/// `text` as it stands between tags or inside a quoted attribute (P2).
///
/// Control characters, which XML forbids even when escaped, become the replacement character.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !matches!(c, '<' | '>' | '&' | '"' | '\'') && !is_forbidden(c);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if is_forbidden(c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

fn is_forbidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// How many series have a colour of their own before the next line pattern begins.
pub(crate) const PALETTE_SIZE: usize = LIGHT.palette.len();

/// The colours of one ground.
pub(crate) struct Colours {
    pub(crate) paper: &'static str,
    pub(crate) ink: &'static str,
    pub(crate) faint: &'static str,
    pub(crate) grid: &'static str,
    /// Behind what is set apart from the paper.
    pub(crate) panel: &'static str,
    /// Of ratios above one.
    pub(crate) warm: &'static str,
    /// Of ratios below one.
    pub(crate) cool: &'static str,
    pub(crate) palette: [&'static str; 7],
}

/// Okabe and Ito's palette, which people with any common colour blindness tell apart, without its
/// yellow, which nobody tells from white.
pub(crate) const LIGHT: Colours = Colours {
    paper: "#ffffff",
    ink: "#1d2430",
    faint: "#5b6472",
    grid: "#dfe3e8",
    panel: "#f2f5f9",
    warm: "#d55e00",
    cool: "#0072b2",
    palette: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d"],
};

/// The same hues, light enough for a dark ground.
pub(crate) const DARK: Colours = Colours {
    paper: "#14181f",
    ink: "#e8ebf0",
    faint: "#a3acba",
    grid: "#2f3743",
    panel: "#1d232d",
    warm: "#ff8040",
    cool: "#4a9fe0",
    palette: ["#4a9fe0", "#ff8040", "#2cc295", "#e39cc5", "#f0b429", "#9bd8ff", "#b8bec8"],
};

/// The rules that name the colours of `selector` as custom properties, for both grounds. A page
/// that embeds a figure may set them otherwise.
pub(crate) fn colour_rules(selector: &str) -> String {
    let light = properties(&LIGHT);
    let dark = properties(&DARK);
    format!("{selector}{{{light}}}\n@media (prefers-color-scheme: dark){{{selector}{{{dark}}}}}\n")
}

fn properties(colours: &Colours) -> String {
    let Colours { paper, ink, faint, grid, panel, warm, cool, palette } = colours;
    let mut rules = format!(
        "--lh-paper:{paper};--lh-ink:{ink};--lh-faint:{faint};--lh-grid:{grid};--lh-panel:{panel};--lh-warm:{warm};\
         --lh-cool:{cool}"
    );
    for (at, colour) in palette.iter().enumerate() {
        rules.push_str(&format!(";--lh-{}:{colour}", at + 1));
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("plain text, µs"), "plain text, µs");
        assert_eq!(
            escape("<script>alert(\"a\" & 'b')</script>"),
            "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;"
        );
        assert_eq!(escape("a\u{0}\u{1b}[31m\tb"), "a\u{fffd}\u{fffd}[31m\tb");
    }

    #[test]
    fn both_grounds_have_every_colour() {
        let rules = colour_rules(".x");
        for name in ["--lh-ink:", "--lh-warm:", "--lh-cool:", "--lh-7:"] {
            assert_eq!(rules.matches(name).count(), 2, "{name}");
        }
        assert!(rules.contains("@media (prefers-color-scheme: dark){.x{"));
    }
}
