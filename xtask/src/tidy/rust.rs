//! Rust source as tokens: enough to tell code from comments, strings and characters.
//!
//! Comments are dropped. Numbers are words; every other punctuation mark is a token of its own.
//! Text that is not Rust gives tokens too, never a panic.

/// A token and the line it starts on, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// The source text; of a string with its quotes and prefix, of `r#name` the name alone.
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier, a keyword or a number.
    Word,
    /// A string or a character, of bytes or not.
    Literal,
    /// One character of punctuation.
    Mark,
}

impl Token<'_> {
    /// Whether it is the word `text`.
    pub(crate) fn is_word(&self, text: &str) -> bool {
        self.kind == Kind::Word && self.text == text
    }

    /// Whether it is the punctuation `mark`.
    pub(crate) fn is(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }
}

/// The tokens of `source`, in order.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { source, at: 0, line: 1, tokens: Vec::new() };
    while lexer.at < source.len() {
        lexer.step();
    }
    lexer.tokens
}

struct Lexer<'a> {
    source: &'a str,
    /// Always on a character's first byte.
    at: usize,
    line: usize,
    tokens: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    /// Moves on by `len` bytes.
    fn skip(&mut self, len: usize) -> &'a str {
        let text = &self.rest()[..len];
        self.line += text.matches('\n').count();
        self.at += len;
        text
    }

    fn push(&mut self, kind: Kind, len: usize) {
        let line = self.line;
        let text = self.skip(len);
        self.tokens.push(Token { kind, text, line });
    }

    fn step(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().expect("there is more");
        if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else if rest.starts_with("//") {
            self.skip(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.skip(block_comment_len(rest));
        } else if let Some(len) = literal_len(rest) {
            self.push(Kind::Literal, len);
        } else if is_word(first) {
            if rest.starts_with("r#") && rest[2..].starts_with(is_word) {
                self.skip(2);
            }
            let rest = self.rest();
            self.push(Kind::Word, rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        } else {
            self.push(Kind::Mark, first.len_utf8());
        }
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The length of the comment that `text` starts with; comments nest.
fn block_comment_len(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        match text.get(at..at + 2) {
            Some("/*") => (depth, at) = (depth + 1, at + 2),
            Some("*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of the string or character that `text` starts with, if it starts with one.
fn literal_len(text: &str) -> Option<usize> {
    let (prefix, body) = text.split_at(text.find(|c: char| !c.is_ascii_lowercase())?);
    let len = match (prefix, body.chars().next()?) {
        ("" | "b" | "c", '"') => quoted_len(body, '"'),
        ("r" | "br" | "cr", '"' | '#') => raw_len(body)?,
        ("" | "b", '\'') => char_len(body)?,
        _ => return None,
    };
    Some(prefix.len() + len)
}

/// The length of the text in `quote`s that `text` starts with; a backslash hides what follows it.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return at + 1;
        }
        if c == '\\' {
            chars.next();
        }
    }
    text.len()
}

/// The length of `#"text"#`, with any number of `#`.
fn raw_len(text: &str) -> Option<usize> {
    let hashes = text.find(|c| c != '#')?;
    let inner = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &text[..hashes]);
    Some(inner.find(&end).map_or(text.len(), |at| hashes + 1 + at + end.len()))
}

/// The length of a character in single quotes; `None` for a lifetime.
fn char_len(text: &str) -> Option<usize> {
    let mut inner = text.chars().skip(1);
    let first = inner.next()?;
    if first == '\\' {
        return Some(quoted_len(text, '\''));
    }
    (inner.next() == Some('\'')).then(|| 2 + first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, want: &[&str]) {
        let got: Vec<_> = tokens(source).iter().map(|token| token.text).collect();
        assert_eq!(got, want, "{source}");
    }

    #[test]
    fn comments_are_dropped_and_nest() {
        check("a // b\nc /* d /* e */ f */ g /// h", &["a", "c", "g"]);
        check("/* never closed", &[]);
    }

    #[test]
    fn strings_are_one_token_each() {
        check(
            r#"x("un\"safe", b"b", c"c")"#,
            &["x", "(", r#""un\"safe""#, ",", "b\"b\"", ",", "c\"c\"", ")"],
        );
        check("r\"\\\" br#\"a\"b\"# z", &["r\"\\\"", "br#\"a\"b\"#", "z"]);
        check("\"open", &["\"open"]);
        check("r#\"open", &["r#\"open"]);
    }

    #[test]
    fn characters_are_not_lifetimes() {
        check(
            r"'a' 'b '\'' '\u{1b}' b'\\' 'é'",
            &["'a'", "'", "b", r"'\''", r"'\u{1b}'", r"b'\\'", "'é'"],
        );
        check("&'static str", &["&", "'", "static", "str"]);
    }

    #[test]
    fn raw_names_lose_their_mark() {
        check("r#async r for\"s\"", &["async", "r", "for", "\"s\""]);
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let lines: Vec<_> =
            tokens("a\n/*\n*/ b \"\n\" c").iter().map(|t| (t.text, t.line)).collect();
        assert_eq!(lines, [("a", 1), ("b", 3), ("\"\n\"", 3), ("c", 4)]);
    }

    #[test]
    fn odd_text_gives_tokens_and_no_panic() {
        for source in ["'", "b'", "r#", "\\", "é'", "\"\\", "/", "'\\", "/*é", "r##\"x\"#"] {
            tokens(source);
        }
    }
}
