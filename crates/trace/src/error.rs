//! Where a trace could not be read, what was expected there and what was found.

use std::borrow::Cow;
use std::fmt;

use levelhead_units::escaped;

/// A trace that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The name that was given for the trace.
    pub file: String,
    /// Where in it.
    pub position: Position,
    /// What should have been there, or the limit that was passed.
    pub expected: String,
    /// What was there instead; text of the file is in quotes.
    pub found: String,
}

/// A position in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// In a text, unpacked.
    Line {
        /// The line, counted from 1.
        line: u64,
        /// The byte of the line, counted from 1.
        column: u64,
    },
    /// In a file of binary records, unpacked.
    Record {
        /// The record, counted from 0.
        record: u64,
        /// Its first byte, counted from 0.
        byte: u64,
    },
    /// Where reading the file itself failed.
    After {
        /// How many bytes of it, packed as they are, had been read.
        bytes: u64,
    },
    /// The trace as a whole.
    Whole,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, position, expected, found } = self;
        match position {
            Position::Line { line, column } => write!(f, "{file}:{line}:{column}: ")?,
            Position::Record { record, byte } => {
                write!(f, "{file}, record {record} (byte {byte}): ")?;
            }
            Position::After { bytes } => write!(f, "{file}, after {bytes} bytes: ")?,
            Position::Whole => write!(f, "{file}: ")?,
        }
        write!(f, "expected {expected}, found {found}")
    }
}

impl std::error::Error for TraceError {}

impl TraceError {
    /// Something is wrong with the trace as a whole.
    pub(crate) fn whole(file: &str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        let (expected, found) = (expected.into(), found.into());
        Self { file: file.to_owned(), position: Position::Whole, expected, found }
    }
}

/// What is wrong with one line; the caller knows which line of which file it is.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The byte of the line, counted from 0.
    pub(crate) column: usize,
    pub(crate) expected: Cow<'static, str>,
    pub(crate) found: String,
}

impl Problem {
    /// This problem, in line `line` (counted from 1) of `file`.
    pub(crate) fn in_line(self, file: &str, line: u64) -> TraceError {
        TraceError {
            file: file.to_owned(),
            position: Position::Line { line, column: self.column as u64 + 1 },
            expected: self.expected.into_owned(),
            found: self.found,
        }
    }
}

/// Bytes of a file, fit for a message: in quotes, on one line, and not too long.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 40;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN_MAX)]);
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    let more = if shown.len() < bytes.len() { "..." } else { "" };
    format!("'{}{more}'", escaped(&shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_position() {
        let mut error = TraceError::whole("t.csv", "a trace", "nothing");
        assert_eq!(error.to_string(), "t.csv: expected a trace, found nothing");
        error.position = Position::Line { line: 17, column: 3 };
        assert_eq!(error.to_string(), "t.csv:17:3: expected a trace, found nothing");
        error.position = Position::Record { record: 12, byte: 384 };
        let text = error.to_string();
        assert_eq!(text, "t.csv, record 12 (byte 384): expected a trace, found nothing");
        error.position = Position::After { bytes: 9 };
        assert_eq!(error.to_string(), "t.csv, after 9 bytes: expected a trace, found nothing");
    }

    #[test]
    fn quotes_are_short_and_harmless() {
        assert_eq!(quoted(b"abc"), "'abc'");
        assert_eq!(quoted(b"\x1b[31m"), "'\\x1b[31m'");
        assert_eq!(quoted(&[b'x'; 5000]), format!("'{}...'", "x".repeat(40)));
        assert_eq!(quoted(&[0xFF, 0xFE]), "'\u{FFFD}\u{FFFD}'");
    }
}
