//! What both programs share: options' values and help, output, progress bars, signals, completions and man pages.
//!
//! Exit codes: 0 good, 1 found trouble, 2 wrong usage, 3 what was looked at has failed. Results go to standard output, everything
//! else (progress, errors) to standard error.

#![forbid(unsafe_code)]

pub mod completions;
pub mod examples;
pub mod faults;
pub mod man;
mod output;
pub mod policies;
pub mod printer;
pub mod progress;
pub mod signals;
pub mod values;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use levelhead_app::AppError;
use levelhead_units::{escaped, escaped_lines};

pub use output::Output;

/// Says how a program's command has ended, if that was not well: in a sentence on standard error and, with `--json`, in an object
/// on standard output as well, unless a result stands there.
pub fn end(program: &str, output: Output, result: Result<(), AppError>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let (kind, code) = match &error {
        AppError::Trouble(_) => ("trouble", 1),
        AppError::Usage(_) => ("usage", 2),
        AppError::Failed(_) => ("failed", 3),
    };
    if output.json && !output::has_printed() {
        output.print_failure(kind, code, &error.to_string());
    }
    printer::say_last(format!("{program}: {error}"));
    ExitCode::from(code)
}

/// Says what is wrong with a command line: one sentence on the first line, and below it what may
/// help.
pub fn refuse(program: &str, error: &clap::Error) -> ExitCode {
    // What an option's `help` has to say.
    if let Some(ContextValue::String(help)) = error.get(ContextKind::Custom) {
        use std::io::Write;
        // If it is not read, there is no one to tell.
        let _ = std::io::stdout().write_all(help.as_bytes());
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    // Help and the version come this way too.
    let Some(text) = text.strip_prefix("error: ") else { error.exit() };
    let (sentence, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let sentence: Vec<&str> = sentence.lines().map(str::trim).collect();
    if std::env::args_os().any(|argument| argument == "--json") {
        Output { json: true, quiet: false }.print_failure("usage", 2, &sentence.join(" "));
    }
    write_error(&format!(
        "{program}: {}\n\n{}",
        escaped(&sentence.join(" ")),
        escaped_lines(rest.trim_end())
    ));
    ExitCode::from(2)
}

/// Whether standard output is a pipe that is not read any more.
pub fn is_unread() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}

/// Writes a sentence to standard error, as one line whatever is in it.
pub fn say(sentence: &str) {
    write_error(&escaped(sentence));
}

/// Writes to standard error, if it is still read.
fn write_error(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}
