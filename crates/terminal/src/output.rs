//! How results are printed.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use levelhead_app::{AppError, Show};
use levelhead_units::escaped_lines;

/// Whether a result stands on standard output.
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn has_printed() -> bool {
    HAS_PRINTED.load(Ordering::Relaxed)
}

/// What every command understands.
#[derive(Args, Clone, Copy)]
pub struct Output {
    /// Print one JSON value on standard output and nothing else
    #[arg(long, global = true, display_order = 1000)]
    pub json: bool,
    /// Show no progress, and no messages that only report success
    #[arg(long, global = true, display_order = 1000)]
    pub quiet: bool,
}

impl Output {
    /// Prints a result as it was asked for.
    pub fn print(self, result: &dyn Show) -> Result<(), AppError> {
        self.print_on(result).map(drop)
    }

    /// The same for one of many results: a break if standard output is not read any more.
    pub fn print_on(self, result: &dyn Show) -> Result<ControlFlow<()>, AppError> {
        self.print_after("", result)
    }

    /// Prints what a command has done, whose caller may only want to know that it has.
    pub fn print_done(self, result: &dyn Show) -> Result<(), AppError> {
        // Of what has failed the error says all there is to be said.
        let is_empty = !self.json && result.text().is_empty();
        if self.is_silent() || is_empty { Ok(()) } else { self.print(result) }
    }

    /// Whether nothing is said of what went well.
    pub fn is_silent(self) -> bool {
        self.quiet && !self.json
    }

    /// Prints what another run of this program has made of a result.
    pub fn print_text(self, text: &str) -> Result<(), AppError> {
        self.write("", text).map(drop)
    }

    /// The same with something before it.
    pub fn print_after(self, before: &str, result: &dyn Show) -> Result<ControlFlow<()>, AppError> {
        let text = if self.json { result.json() } else { result.text() };
        self.write(before, &text)
    }

    /// Prints that a command has failed, as one JSON object.
    pub(crate) fn print_failure(self, kind: &str, code: u8, sentence: &str) {
        let error =
            serde_json::json!({ "error": { "kind": kind, "code": code, "message": sentence } });
        // If it is not read, the exit code says it.
        drop(self.write("", &error.to_string()));
    }

    /// Writes a text; where people read it, without what would steer their terminal.
    fn write(self, before: &str, text: &str) -> Result<ControlFlow<()>, AppError> {
        use std::io::{ErrorKind, Write};
        let text = if self.json { Cow::Borrowed(text) } else { escaped_lines(text) };
        HAS_PRINTED.store(true, Ordering::Relaxed);
        match writeln!(std::io::stdout(), "{before}{}", text.trim_end()) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            // A reader that has gone away has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
            Err(error) => Err(AppError::trouble(format!("standard output: {error}"))),
        }
    }
}
