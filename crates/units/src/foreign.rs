//! Text that somebody else wrote: a peer, a drive, a label, a server, a file's name.
//!
//! Such text is cleaned once, where it enters the program ([`foreign`]), so that whatever is made of it later is one line that
//! neither steers a terminal nor passes for a line of a log. Whoever writes sentences for people escapes what slipped through
//! ([`escaped`], [`escaped_lines`]).
//!
//! - FO1. The result has no control character, line end or mark that changes the direction of text; [`escaped_lines`] keeps line feeds
//!   and tabs.
//! - FO2. Clean text stays as it is, so that cleaning twice is cleaning once. A backslash is clean: the result is for people, and not
//!   for reading back.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The most characters of a foreign text; the rest is cut off, and `...` says so.
pub const FOREIGN_MAX: usize = 256;

/// A foreign text as one clean line of [`FOREIGN_MAX`] characters at most, not counting what escaping adds.
pub fn foreign(text: &str) -> String {
    match text.char_indices().nth(FOREIGN_MAX) {
        None => escaped(text).into_owned(),
        Some((end, _)) => format!("{}...", escaped(&text[..end])),
    }
}

/// A text as one clean line, however long.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape_where(text, is_harmful)
}

/// A text with its line feeds and tabs, and with nothing else that could do harm on a terminal.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escape_where(text, |c| is_harmful(c) && !matches!(c, '\n' | '\t'))
}

/// Control characters, line and paragraph separators, and the marks of [Unicode's bidirectional algorithm](https://unicode.org/reports/tr9/).
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{2028}' | '\u{2029}'
            | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape_where(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_escaped(c) => clean.push(c),
            '\n' => clean.push_str("\\n"),
            '\r' => clean.push_str("\\r"),
            '\t' => clean.push_str("\\t"),
            c if c.is_ascii() => {
                write!(clean, "\\x{:02x}", u32::from(c)).expect("a string takes everything");
            }
            c => write!(clean, "\\u{{{:x}}}", u32::from(c)).expect("a string takes everything"),
        }
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_ends_a_line_is_escaped() {
        for (text, clean) in [
            (
                "\x1b[31mRED\x1b]0;title\x07\nlevelhead: fake",
                r"\x1b[31mRED\x1b]0;title\x07\nlevelhead: fake",
            ),
            ("a\tb\r\n\0\x7f", r"a\tb\r\n\x00\x7f"),
            ("c1 \u{9b}31m", r"c1 \u{9b}31m"),
            ("\u{202e}gpj.exe\u{2066}\u{200f}\u{61c}", r"\u{202e}gpj.exe\u{2066}\u{200f}\u{61c}"),
            ("one\u{2028}two\u{85}three", r"one\u{2028}two\u{85}three"),
        ] {
            assert_eq!(escaped(text), clean);
            assert_eq!(foreign(text), clean);
        }
        assert_eq!(escaped_lines("a\tb\n\r\x1bc\n"), "a\tb\n\\r\\x1bc\n");
    }

    #[test]
    fn clean_text_stays_and_cleaning_twice_is_cleaning_once() {
        for text in [
            "",
            "data",
            "Größe 7 µs",
            r"\\.\PhysicalDrive0",
            "数据",
            "e\u{301} \u{1f469}\u{200d}\u{1f52c}",
        ] {
            assert_eq!(foreign(text), text);
        }
        let once = foreign("\x1b\u{202e}\n");
        assert_eq!(foreign(&once), once);
    }

    #[test]
    fn foreign_text_has_a_bound_in_characters() {
        let most = "ä".repeat(FOREIGN_MAX);
        assert_eq!(foreign(&most), most);
        assert_eq!(foreign(&format!("{most}x")), format!("{most}..."));
        assert!(foreign(&"\u{202e}".repeat(1 << 20)).len() <= 8 * FOREIGN_MAX + 3);
    }
}
